"""A translator that keeps what its searches found: calibration needs some of it twice.

Development sources are searched to rank hypotheses and again to doubt them. The hypotheses are the
same both times, only their order may differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from heed.decode.options import DecodeOptions
from heed.decode.state import Hypothesis, Observer
from heed.decode.state import IsWanted as BatchIsWanted
from heed.model.interface import Decodable
from heed.translate.parts import Chunk
from heed.translate.search import Searcher
from heed.translate.translator import Translator

Known = dict[tuple[Any, DecodeOptions], list[Hypothesis]]
"""The hypotheses of each part and options, before they are ranked anew."""


class RecallingTranslator(Translator):
    """A translator, and its copies, that search equal parts with equal options once.

    Args:
        translator: the one to be like; it must not change while this one is in use.
    """

    def __init__(self, translator: Translator) -> None:
        vars(self).update(vars(translator))
        self.known: Known = {}

    @property
    def searcher(self) -> Searcher:
        """Translates parts of lines, as `reader.parts` makes them."""
        own = super().searcher
        values = {each.name: getattr(own, each.name) for each in fields(own)}
        return _RecallingSearcher(**values, known=self.known)


@dataclass(frozen=True, kw_only=True)
class _RecallingSearcher(Searcher):
    """A searcher that decodes only parts that are not known.

    Attributes:
        known: what was found so far.
    """

    known: Known = field(default_factory=dict)

    def decode(
        self,
        chunks: Sequence[Chunk],
        options: DecodeOptions,
        is_wanted: BatchIsWanted | None = None,
        *,
        model: Decodable | None = None,
        observer: Observer | None = None,
    ) -> list[list[Hypothesis]]:
        """As `Searcher.decode`; samples, and searches that are watched, are not kept."""
        if options.sample or is_wanted is not None or observer is not None:
            return super().decode(chunks, options, is_wanted, model=model, observer=observer)
        keys = [(chunk.question, options) for chunk in chunks]
        new = [place for place, key in enumerate(keys) if key not in self.known]
        if new:
            found = super().decode([chunks[place] for place in new], options, model=model)
            self.known.update(zip([keys[place] for place in new], found, strict=True))
        return [[*self.known[key]] for key in keys]
