"""`Job`: the segments that one request has searched, and `Call`, how.

Segments of several jobs share a batch if their calls are equal.
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


class Segment:
    """A segment that is searched once for all requests that wait for it.

    `is_wanted` and `take` are for the threads that search, the rest is for the event loop.

    Args:
        n_parts: chunks that it was cut into.
        n_together: parts that take turns with these.
        results: of the first request that waits.
        index: in these results.

    Attributes:
        has_begun: a thread has taken a part of it.
    """

    def __init__(self, n_parts: int, n_together: int, results: Results[Translation], index: int):
        self._waiting = [(results, index)]
        self._found: list[Translation | None] = [None] * n_parts
        self._n_together = n_together
        self._is_done = False
        self.has_begun = False

    @property
    def is_wanted(self) -> bool:
        """Whether a request still waits."""
        return any(results.is_wanted for results, _ in self._waiting)

    @property
    def is_shared(self) -> bool:
        """Whether several requests have waited."""
        return len(self._waiting) > 1

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """That of the requests."""
        return self._waiting[0][0].loop

    def may_be_joined(self, n_parts: int) -> bool:
        """Whether a request of so many parts gets its translation no later than by itself.

        Nobody waits for the turns of a longer request. What nobody wants any more is being dropped.
        """
        is_near = self.has_begun or self._n_together <= n_parts
        return is_near and not self._is_done and self.is_wanted

    def join(self, results: Results[Translation], index: int) -> None:
        """One more request waits."""
        self._waiting.append((results, index))

    def take(self, place: int, translation: Translation) -> list[Translation] | None:
        """Keep the translation of a part; all of them, as soon as none is missing."""
        self._found[place] = translation
        found = [each for each in self._found if each is not None]
        return found if len(found) == len(self._found) else None

    def bring(self, translation: Translation) -> None:
        """The translation, for all who wait."""
        self._is_done = True
        for results, index in self._waiting:
            results.take({index: translation})

    def refuse(self, refusal: Refusal) -> None:
        """There will be no translation."""
        self._is_done = True
        for results, _ in self._waiting:
            results.refuse(refusal)

    def forget(self) -> None:
        """The event loop has ended, and with it all who wait."""
        for results, _ in self._waiting:
            results.is_wanted = False


def bring_all(found: Iterable[tuple[Segment, Translation]]) -> None:
    """Translations from a thread; an event loop is woken once for all of them."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Segment, Translation]]] = {}
    for segment, translation in found:
        by_loop.setdefault(segment.loop, []).append((segment, translation))
    for loop, together in by_loop.items():
        if not call_soon(loop, _bring_each, together):
            for segment, _ in together:
                segment.forget()


def refuse_all(segments: Iterable[Segment], refusal: Refusal) -> None:
    """From a thread: there will be no translations of these."""
    for segment in segments:
        if not call_soon(segment.loop, segment.refuse, refusal):
            segment.forget()


def _bring_each(found: Iterable[tuple[Segment, Translation]]) -> None:
    for segment, translation in found:
        segment.bring(translation)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A chunk of a segment: what batches are made of.

    Attributes:
        job: in whose turns it is searched.
        segment: its segment.
        place: its place among the chunks of the segment.
        chunk: what is searched.
        first: its first answer, which is open; None = it was not searched yet.
    """

    job: "Job"
    segment: Segment
    place: int
    chunk: Chunk
    first: Translation | None = None

    @property
    def n_tokens(self) -> int:
        """Source tokens."""
        return self.chunk.n_tokens

    def take(self, translation: Translation) -> Translation | None:
        """Keep its translation; return that of the segment, if it is whole now."""
        parts = self.segment.take(self.place, translation)
        if parts is None:
            return None
        return keep_distinct(join_parts(parts), self.job.call.alternatives)


class Turns:
    """Parts of one request that take turns with those of others, in order.

    Args:
        call: how to translate.
        parts: all searched for the first time, or all for the second.
        n_chars: characters that they add to what waits.
        is_again: for the second time: they have first answers.

    Attributes:
        waiting: parts that no batch has taken yet.
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
        """Whether a turn of a thread is wanted."""
        return any(part.segment.is_wanted for part in self.waiting)

    @property
    def n_positions(self) -> int:
        """Source tokens of the waiting parts times hypotheses: the work to do."""
        return rows_of(self.call.options) * sum(part.n_tokens for part in self.waiting)

    def next_part(self) -> Part:
        """The first waiting part that is wanted; if there is none, the last."""
        part = self.waiting.popleft()
        while self.waiting and not part.segment.is_wanted:
            part = self.waiting.popleft()
        return part


class Job(Turns):
    """The segments that are searched in the turns of one request.

    Args:
        call: how to translate.
        segments: the chunks of each segment, at least one.
        n_chars: characters of all of them.
        results: get the translation of each segment.
        places: where in the results; None = in order.

    Attributes:
        segments: on their way.
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
        """Whether a turn of a thread is wanted."""
        if not self.waiting or self.results.is_wanted:
            return bool(self.waiting)
        return super().is_waiting  # by other requests


def second_turns(parts: Iterable[Part]) -> list[Turns]:
    """The parts with open answers, by their jobs."""
    of_jobs: dict[Job, list[Part]] = {}
    for part in parts:
        of_jobs.setdefault(part.job, []).append(part)
    return [Turns(job.call, own, is_again=True) for job, own in of_jobs.items()]


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
