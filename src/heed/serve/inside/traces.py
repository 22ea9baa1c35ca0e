"""`Traces`: the latest traces made for clients, kept for requests that read their tensors."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from heed.errors import MissingExtraError
from heed.serve.inside.shelf import Shelf, new_id
from heed.serve.refusal import Refusal
from heed.serve.request import Direction
from heed.serve.service import IsWanted, Service
from heed.serve.work.deadline import require_wanted
from heed.serve.work.directions import Route
from heed.serve.work.translating import checked_options
from heed.translate.translator import Translator

if TYPE_CHECKING:
    from heed.translate.trace import BatchTrace, Trace


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A trace and its model.

    Attributes:
        id: its id for clients.
        model: name of the model.
        translator: the model, as it was loaded then.
        source_lang: code of the source language.
        target_lang: code of the target language.
        trace: of one sentence, or of several that were read as one batch.
    """

    id: str
    model: str
    translator: Translator
    source_lang: str
    target_lang: str
    trace: "Trace | BatchTrace"

    @property
    def sentences(self) -> "list[Trace]":
        """A trace of each sentence."""
        from heed.translate.trace import BatchTrace  # a trace exists, so torch is installed

        return self.trace.sentences if isinstance(self.trace, BatchTrace) else [self.trace]

    @property
    def sentence(self) -> "Trace":
        """The trace, for requests that need a single sentence.

        Raises:
            Refusal: it has several sentences.
        """
        if len(self.sentences) > 1:
            sentence = "This needs the trace of a single sentence, but this one has several."
            raise Refusal(400, sentence, code="several_sentences")
        return self.sentences[0]

    def part(self, number: int | None) -> "Trace | BatchTrace":
        """The trace of one sentence of the batch; None = the whole batch.

        Raises:
            Refusal: there is no such sentence.
        """
        if number is None:
            return self.trace
        n_sentences = len(self.sentences)
        if number >= n_sentences:
            raise Refusal(
                400, f"batch must be less than {n_sentences}.", code="wrong_value", field="batch"
            )
        return self.sentences[number]


class Traces:
    """Makes traces and keeps the latest ones. Call all methods in the event loop.

    When a model has been loaded again, those of its old translator are dropped with it.

    Args:
        service: provides the models.
        is_allowed: whether clients may inspect models.
        n_kept: number of traces in memory.
    """

    def __init__(self, service: Service, *, is_allowed: bool, n_kept: int) -> None:
        self._service = service
        self._shelf: Shelf[Kept] = Shelf(
            "trace",
            "/api/v1/trace",
            is_allowed=is_allowed,
            n_kept=n_kept,
            is_outdated=lambda kept: service.models.is_outdated(kept.model, kept.translator),
        )
        service.models.on_loaded.append(self._shelf.drop_outdated)

    async def make(
        self,
        texts: list[str],
        translations: list[str],
        direction: Direction,
        *,
        options: Mapping[str, Any],
        is_batch: bool = False,
    ) -> Kept:
        """Trace a sentence, or several as one batch, in a search thread.

        Args:
            texts: the sentences; only one, unless they are a batch.
            translations: one for each; empty = the model's own.
            direction: languages and model.
            options: decoding options.
            is_batch: whether the tensors get an axis of sentences.

        Raises:
            Refusal: the request is not valid, or inspection is not allowed here.
        """
        self._shelf.require_allowed()
        given = [text or None for text in translations]

        def run(translator: Translator, route: Route, is_wanted: IsWanted) -> Kept:
            checked_options(translator.options, options)
            check = partial(require_wanted, is_wanted)
            trace_ = partial(
                translator.trace, target_lang=route.target, on_progress=check, **options
            )
            try:
                trace: Trace | BatchTrace = (
                    trace_(texts, given) if is_batch else trace_(texts[0], given[0])
                )
            except MissingExtraError as error:
                raise Refusal(501, str(error), code="extra_missing") from None
            return Kept(
                id=new_id(),
                model=route.model,
                translator=translator,
                source_lang=route.source,
                target_lang=route.target,
                trace=trace,
            )

        kept = await self._service.with_model(
            run, " ".join(texts), direction, given=" ".join(translations)
        )
        self._shelf.put(kept.id, kept, size_bytes=kept.trace.size_bytes)
        return kept

    def get(self, id: str) -> Kept:
        """An earlier trace.

        Raises:
            Refusal: it is no longer kept, or inspection is not allowed here.
        """
        return self._shelf.get(id)

    def require_allowed(self) -> None:
        """Refuse clients if inspection is not allowed.

        Raises:
            Refusal: it is not (403).
        """
        self._shelf.require_allowed()
