"""`Job`: the segments that one request wants translated, and `Call`, how.

Segments of several jobs share a batch if their calls are equal.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from heed.decode.options import DecodeOptions
from heed.serve.work.results import Results
from heed.translate.parts import Chunk
from heed.translate.result import Translation, join_parts, keep_distinct
from heed.translate.search import rows_of
from heed.translate.translator import Translator


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """How segments are translated.

    Attributes:
        translator: the model.
        model: its name.
        options: how to search.
        alignment: also record cross-attention.
        alternatives: other translations of each segment.
    """

    translator: Translator
    model: str
    options: DecodeOptions
    alignment: bool = False
    alternatives: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A chunk of a segment of a job: what batches are made of.

    Attributes:
        job: whose it is.
        segment: index of its segment.
        place: its place among the chunks of the segment.
        chunk: what is searched.
    """

    job: "Job"
    segment: int
    place: int
    chunk: Chunk

    @property
    def n_tokens(self) -> int:
        """Source tokens."""
        return self.chunk.n_tokens


class Job:
    """The segments of one request.

    Args:
        call: how to translate.
        segments: the chunks of each segment, at least one.
        n_chars: characters of all of them.
        results: gets the translation of each segment.

    Attributes:
        waiting: parts that no batch has taken yet, in order.
    """

    def __init__(
        self,
        call: Call,
        segments: Sequence[Sequence[Chunk]],
        *,
        n_chars: int,
        results: Results[Translation],
    ) -> None:
        self.call = call
        self.n_chars = n_chars
        self.results = results
        self.waiting = deque(
            Part(self, segment, place, chunk)
            for segment, chunks in enumerate(segments)
            for place, chunk in enumerate(chunks)
        )
        self._parts: list[list[Translation | None]] = [[None] * len(chunks) for chunks in segments]

    @property
    def is_waiting(self) -> bool:
        """Whether it wants a turn of a thread."""
        return self.results.is_wanted and bool(self.waiting)

    @property
    def n_positions(self) -> int:
        """Source tokens of the waiting parts times hypotheses: the work to do."""
        return rows_of(self.call.options) * sum(part.n_tokens for part in self.waiting)

    def take(self, found: Sequence[tuple[Part, Translation]]) -> dict[int, Translation]:
        """Keep translations of some parts; return those of the segments that are whole now."""
        for part, translation in found:
            self._parts[part.segment][part.place] = translation
        whole = {}
        for segment in dict.fromkeys(part.segment for part, _ in found):
            parts = [part for part in self._parts[segment] if part is not None]
            if len(parts) == len(self._parts[segment]):
                whole[segment] = keep_distinct(join_parts(parts), self.call.alternatives)
        return whole


class Errand:
    """A short piece of other work that one thread does alone, such as scoring a pair.

    Args:
        function: called with whether the result is still wanted, which it may ask at any time.
        n_chars: characters that it reads.
        results: gets its one result.
    """

    def __init__(
        self,
        function: Callable[[Callable[[], bool]], Any],
        *,
        n_chars: int,
        results: Results[Any],
    ) -> None:
        self.function = function
        self.n_chars = n_chars
        self.n_positions = n_chars
        self.results = results

    @property
    def is_waiting(self) -> bool:
        """Whether it wants a turn of a thread."""
        return self.results.is_wanted
