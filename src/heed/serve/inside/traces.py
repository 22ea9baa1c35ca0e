"""`Traces`: the last traces that clients asked for, kept for requests that read their tensors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heed.errors import MissingExtraError
from heed.serve.inside.shelf import Shelf, new_id
from heed.serve.refusal import Refusal
from heed.serve.request import Direction
from heed.serve.service import IsWanted, Service
from heed.translate.translator import Translator

if TYPE_CHECKING:
    from heed.translate.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A trace and the model it is of.

    Attributes:
        id: by which clients ask for it.
        translator: the model.
        target_lang: code of the language into which it translates.
        trace: of one sentence.
    """

    id: str
    translator: Translator
    target_lang: str
    trace: "Trace"


class Traces:
    """Makes traces, and keeps the last ones. All methods are called in the event loop.

    Args:
        service: has the models.
        is_allowed: whether clients may look into models.
        n_kept: traces in memory.
    """

    def __init__(self, service: Service, *, is_allowed: bool, n_kept: int) -> None:
        self._service = service
        self._shelf: Shelf[Kept] = Shelf(
            "trace", "/api/v1/trace", is_allowed=is_allowed, n_kept=n_kept
        )

    async def make(
        self,
        text: str,
        translation: str | None,
        direction: Direction,
        *,
        options: Mapping[str, Any],
    ) -> Kept:
        """Trace a sentence, in one of the threads that search.

        Args:
            text: the sentence.
            translation: of the same; None = the model's own.
            direction: languages and model.
            options: of decoding.

        Raises:
            Refusal: the request is not valid, or looking into models is not allowed here.
        """
        self._shelf.require_allowed()

        def run(translator: Translator, into: str, is_wanted: IsWanted) -> Kept:
            try:
                trace = translator.trace(text, translation, target_lang=into, **options)
            except MissingExtraError as error:
                raise Refusal(501, str(error), code="extra_missing") from None
            return Kept(id=new_id(), translator=translator, target_lang=into, trace=trace)

        kept = await self._service.with_model(run, text + (translation or ""), direction)
        self._shelf.put(kept.id, kept, size_bytes=kept.trace.size_bytes)
        return kept

    def get(self, id: str) -> Kept:
        """A trace that was made before.

        Raises:
            Refusal: it is not kept any more, or looking into models is not allowed here.
        """
        return self._shelf.get(id)

    def require_allowed(self) -> None:
        """Refuse clients where looking into models is not allowed.

        Raises:
            Refusal: it is not (403).
        """
        self._shelf.require_allowed()
