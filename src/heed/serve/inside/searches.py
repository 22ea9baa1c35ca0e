"""`Searches`: the latest recorded searches, kept for requests that read their distributions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from heed.serve.inside.shelf import Shelf, new_id
from heed.serve.refusal import Refusal
from heed.serve.request import Direction
from heed.serve.service import IsWanted, Service
from heed.serve.work.deadline import require_wanted
from heed.serve.work.directions import Route
from heed.serve.work.translating import checked_options
from heed.translate.translator import Translator

if TYPE_CHECKING:
    from heed.explain.decoding.observe import Distributions
    from heed.explain.decoding.recorded import RecordedSearch

MAX_BEAM = 64
"""Widest beam that is recorded, because a record holds the whole vocabulary for each row."""
KEPT_BYTES = 16 << 20
"""Limit for the distributions of each search in memory."""


@dataclass(frozen=True, kw_only=True)
class Searched:
    """A recorded search.

    Attributes:
        id: its id for clients.
        text: the sentence.
        direction: its languages, as resolved by the server.
        model: name of the model.
        translator: the model, as it was loaded then.
        search: the record and its distributions.
    """

    id: str
    text: str
    direction: Direction
    model: str
    translator: Translator
    search: "RecordedSearch"


class Searches:
    """Records searches and keeps the latest ones. Call all methods in the event loop.

    When a model has been loaded again, those of its old translator are dropped with it.

    Args:
        service: provides the models.
        is_allowed: whether clients may inspect models.
        n_kept: number of searches in memory.
    """

    def __init__(self, service: Service, *, is_allowed: bool, n_kept: int) -> None:
        self._service = service
        self._shelf: Shelf[Searched] = Shelf(
            "search",
            "/api/v1/search",
            is_allowed=is_allowed,
            n_kept=n_kept,
            is_outdated=lambda found: service.models.is_outdated(found.model, found.translator),
        )
        service.models.on_loaded.append(self._shelf.drop_outdated)

    async def make(
        self,
        text: str,
        direction: Direction,
        *,
        prefix: str,
        prefix_ids: Sequence[int] | None,
        use_memory: bool,
        options: Mapping[str, Any],
    ) -> Searched:
        """Search a sentence in a search thread, and record the search.

        Args:
            text: the sentence.
            direction: languages and model.
            prefix: required beginning of the translation.
            prefix_ids: the same as ids, instead of `prefix`.
            use_memory: let the model's memory guide the search.
            options: decoding options.

        Raises:
            Refusal: the request is not valid, or inspection is not allowed here.
        """
        self._shelf.require_allowed()
        beam_size = options.get("beam_size")
        if isinstance(beam_size, int) and beam_size > MAX_BEAM:
            raise Refusal(
                400,
                f"options.beam_size must be at most {MAX_BEAM} to be recorded, but is {beam_size}.",
                code="too_large",
                field="options",
            )

        def run(translator: Translator, route: Route, is_wanted: IsWanted) -> Searched:
            from heed.explain.decoding.recorded import record_search

            checked_options(translator.options, options)
            search = record_search(
                translator,
                text,
                prefix=prefix,
                prefix_ids=prefix_ids,
                use_memory=use_memory,
                target_lang=route.target,
                max_bytes=KEPT_BYTES,
                on_progress=partial(require_wanted, is_wanted),
                **options,
            )
            return Searched(
                id=new_id(),
                text=text,
                direction=replace(direction, source=route.source, target=route.target),
                model=route.model,
                translator=translator,
                search=search,
            )

        found = await self._service.with_model(run, text, direction, given=prefix)
        self._shelf.put(found.id, found)
        return found

    def get(self, id: str) -> Searched:
        """An earlier search.

        Raises:
            Refusal: it is no longer kept, or inspection is not allowed here.
        """
        return self._shelf.get(id)

    async def at(self, id: str, step: int) -> "Distributions":
        """The distributions of a step.

        Raises:
            Refusal: there is no such search or step.
        """
        found = self.get(id)
        if (kept := found.search.kept(step)) is not None:
            return kept

        def run(translator: Translator, route: Route, is_wanted: IsWanted) -> "Distributions":
            # May repeat the search.
            return found.search.at(step, on_progress=partial(require_wanted, is_wanted))

        return await self._service.with_model(run, found.text, found.direction)
