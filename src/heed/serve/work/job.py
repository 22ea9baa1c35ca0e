"""`Job`: the segments of one request to search, and `Call`: their options.

Segments of several jobs can share a batch if their calls are equal.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from heed.decode.options import DecodeOptions
from heed.serve.refusal import Refusal
from heed.serve.work.results import Results, call_soon
from heed.translate.parts import Chunk
from heed.translate.result import Translation, join_parts, keep_distinct
from heed.translate.search import rows_of
from heed.translate.translator import Translator

WORST = 4
"""A text is not short if its translation may be more than this many times as long as it ought to
be: by default, that of a sentence of ten tokens is cut after 40."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """Options for translating segments.

    Attributes:
        translator: the model.
        model: its name.
        options: search options.
        alignment: also record cross-attention.
        alternatives: number of other translations of each segment.
    """

    translator: Translator
    model: str
    options: DecodeOptions
    alignment: bool = False
    alternatives: int = 0


class Segment:
    """A segment that is searched once for all requests that wait for it.

    `is_wanted` and `take` are called in search threads, the rest in the event loop.

    Args:
        n_parts: number of its chunks.
        n_together: number of parts in the same job.
        results: results of the first request that waits.
        index: index in these results.

    Attributes:
        has_begun: whether a thread has taken one of its parts.
    """

    def __init__(self, n_parts: int, n_together: int, results: Results[Translation], index: int):
        self._waiting = [(results, index)]
        self._found: list[Translation | None] = [None] * n_parts
        self._n_together = n_together
        self._is_done = False
        self.has_begun = False

    @property
    def is_wanted(self) -> bool:
        """Whether a request still waits for it."""
        return any(results.is_wanted for results, _ in self._waiting)

    @property
    def is_shared(self) -> bool:
        """Whether several requests have waited for it."""
        return len(self._waiting) > 1

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of the requests."""
        return self._waiting[0][0].loop

    def may_be_joined(self, n_parts: int) -> bool:
        """Whether a request of `n_parts` parts gets its translation no later than by its own job.

        It must not wait for the turns of a longer request, nor for a segment that is being dropped.
        """
        is_near = self.has_begun or self._n_together <= n_parts
        return is_near and not self._is_done and self.is_wanted

    def join(self, results: Results[Translation], index: int) -> None:
        """Add a request that waits."""
        self._waiting.append((results, index))

    def take(self, place: int, translation: Translation) -> list[Translation] | None:
        """Store the translation of a part; return all of them when none is missing."""
        self._found[place] = translation
        found = [each for each in self._found if each is not None]
        return found if len(found) == len(self._found) else None

    def bring(self, translation: Translation) -> None:
        """Give the translation to all waiting requests."""
        self._is_done = True
        for results, index in self._waiting:
            results.take({index: translation})

    def refuse(self, refusal: Refusal) -> None:
        """Tell all waiting requests that there is no translation."""
        self._is_done = True
        for results, _ in self._waiting:
            results.refuse(refusal)

    def forget(self) -> None:
        """Drop all waiting requests, because their event loop has ended."""
        for results, _ in self._waiting:
            results.is_wanted = False


def bring_all(found: Iterable[tuple[Segment, Translation]]) -> None:
    """Deliver translations from a thread; each event loop is woken only once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Segment, Translation]]] = {}
    for segment, translation in found:
        by_loop.setdefault(segment.loop, []).append((segment, translation))
    for loop, together in by_loop.items():
        if not call_soon(loop, _bring_each, together):
            for segment, _ in together:
                segment.forget()


def refuse_all(segments: Iterable[Segment], refusal: Refusal) -> None:
    """Deliver a refusal for these segments from a thread."""
    for segment in segments:
        if not call_soon(segment.loop, segment.refuse, refusal):
            segment.forget()


def _bring_each(found: Iterable[tuple[Segment, Translation]]) -> None:
    for segment, translation in found:
        segment.bring(translation)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A chunk of a segment, the unit of batches.

    Attributes:
        job: the job in whose turns it is searched.
        segment: its segment.
        place: its index among the chunks of the segment.
        chunk: the input of the search.
        first: its first translation, if it needs a second search; None = it was not searched yet.
    """

    job: "Job"
    segment: Segment
    place: int
    chunk: Chunk
    first: Translation | None = None

    @property
    def n_tokens(self) -> int:
        """Number of source tokens."""
        return self.chunk.n_tokens

    def take(self, translation: Translation) -> Translation | None:
        """Store its translation; return that of the segment, if it is complete now."""
        parts = self.segment.take(self.place, translation)
        if parts is None:
            return None
        return keep_distinct(join_parts(parts), self.job.call.alternatives)


class Turns:
    """Parts of one request that take turns with those of other requests, in order.

    Args:
        call: translation options.
        parts: either all for their first search, or all for their second.
        n_chars: number of characters, for the limit on waiting requests.
        is_again: whether this is the second search of the parts.

    Attributes:
        waiting: parts that are not in a batch yet.
    """

    def __init__(
        self, call: Call, parts: Iterable[Part], *, n_chars: int = 0, is_again: bool = False
    ) -> None:
        self.call = call
        self.n_chars = n_chars
        self.is_again = is_again
        self.waiting = deque(parts)

    @property
    def is_waiting(self) -> bool:
        """Whether it needs a turn of a thread."""
        return any(part.segment.is_wanted for part in self.waiting)

    @property
    def n_positions(self) -> int:
        """Source tokens of the waiting parts times hypotheses: the remaining work."""
        return rows_of(self.call.options) * sum(part.n_tokens for part in self.waiting)

    def is_within(self, n_positions: int) -> bool:
        """Whether the remaining work is at most so much, and not far more in the worst case."""
        options = self.call.options
        n_most = n_positions // rows_of(options)
        if len(self.waiting) > n_most:
            return False  # a part has at least one token
        n_read = n_written = 0
        for part in self.waiting:
            n_read += part.n_tokens
            n_written += min(options.max_length, options.source_limit(part.n_tokens))
        return n_read <= n_most and n_written <= WORST * n_most

    def next_part(self) -> Part:
        """The first waiting part that is still wanted; if there is none, the last one."""
        part = self.waiting.popleft()
        while self.waiting and not part.segment.is_wanted:
            part = self.waiting.popleft()
        return part


class Job(Turns):
    """The segments that are searched in the turns of one request.

    Args:
        call: translation options.
        segments: the chunks of each segment, at least one.
        n_chars: number of characters in all of them.
        results: receives the translation of each segment.
        places: indices of the segments in the results; None = in order.

    Attributes:
        segments: the segments in progress.
    """

    def __init__(
        self,
        call: Call,
        segments: Sequence[Sequence[Chunk]],
        *,
        n_chars: int,
        results: Results[Translation],
        places: Sequence[int] | None = None,
    ) -> None:
        self.results = results
        n_parts = sum(map(len, segments))
        self.segments = [
            Segment(len(chunks), n_parts, results, place)
            for place, chunks in zip(places or range(len(segments)), segments, strict=True)
        ]
        parts = (
            Part(self, segment, place, chunk)
            for segment, chunks in zip(self.segments, segments, strict=True)
            for place, chunk in enumerate(chunks)
        )
        super().__init__(call, parts, n_chars=n_chars)

    @property
    def is_waiting(self) -> bool:
        """Whether it needs a turn of a thread."""
        if not self.waiting or self.results.is_wanted:
            return bool(self.waiting)
        return super().is_waiting  # another request may wait for its segments


def second_turns(parts: Iterable[Part]) -> list[Turns]:
    """The parts that need a second search, by their jobs."""
    of_jobs: dict[Job, list[Part]] = {}
    for part in parts:
        of_jobs.setdefault(part.job, []).append(part)
    return [Turns(job.call, own, is_again=True) for job, own in of_jobs.items()]


class Errand:
    """A short task for one thread, such as scoring a pair.

    Args:
        function: called with a check whether the result is still wanted.
        n_chars: number of characters that it reads.
        results: receives its single result.
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
        """Whether it needs a turn of a thread."""
        return self.results.is_wanted
