"""`Translating`: the segments of one request, from the cache or from the search threads."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from heed.decode.options import DecodeOptions, options_from, require_storable, with_alternatives
from heed.errors import ConfigError
from heed.serve.refusal import Refusal
from heed.serve.work.cache import Cache, Keys
from heed.serve.work.job import Call, Job, Segment
from heed.serve.work.results import Results
from heed.serve.work.scheduler import Scheduler
from heed.serve.work.versions import Opened
from heed.translate.lines import Line, LineReader, require_room
from heed.translate.parts import Chunk
from heed.translate.remember import add_pairs
from heed.translate.result import Translation

Pair = tuple[str, str]
"""A source and its translation."""

InWork: TypeAlias = "WeakValueDictionary[bytes, Segment]"
"""The segments that are being searched, by the keys of the cache."""


def call_of(
    model: Opened, *, options: Mapping[str, Any], alternatives: int, alignment: bool
) -> Call:
    """The call for a request to a model.

    Raises:
        Refusal: an option is unknown, or its value is out of the range for requests.
    """
    if "n_best" in options:
        raise _wrong_option("n_best is not an option of a request; use alternatives.")
    chosen = checked_options(model.translator.options, options)
    if alternatives:
        chosen = with_alternatives(chosen, alternatives)
    return Call(
        translator=model.translator,
        model=model.name,
        options=chosen,
        alignment=alignment,
        alternatives=alternatives,
    )


def checked_options(base: DecodeOptions, options: Mapping[str, Any]) -> DecodeOptions:
    """The options of a search for a client.

    Args:
        base: those of the model.
        options: the client's.

    Raises:
        Refusal: an option is unknown, or its value is out of the range for requests.
    """
    try:
        chosen = options_from(base, options)
        require_storable(chosen, where="in a request", remedy="")
    except (ConfigError, TypeError) as error:
        raise _wrong_option(str(error).replace("decoding.", "options.")) from None
    return chosen


def _wrong_option(sentence: str) -> Refusal:
    return Refusal(400, sentence, code="wrong_option", field="options")


class Translating:
    """Segments in progress. Equal ones are translated once, even those of different requests.

    Args:
        model: the model that translates them.
        call: translation options.
        lines: the segments, by their numbers in the request; the number seeds random sampling.
        pairs: sources and translations of the request, which guide its translations.
    """

    def __init__(
        self,
        model: Opened,
        call: Call,
        lines: Mapping[int, Line],
        pairs: Sequence[Pair] = (),
    ) -> None:
        self._call = call
        self._lines = lines
        self._pairs = pairs
        self._reader = model.translator.reader
        keys = Keys(model.version, call, pairs)
        self._keys = {number: keys.of(line) for number, line in lines.items()}
        first: dict[object, int] = {}
        self._first = {
            number: first.setdefault(number if key is None else key, number)
            for number, key in self._keys.items()
        }
        self._distinct = list(dict.fromkeys(self._first.values()))
        self._known: dict[int, Translation] = {}
        self._chunks: dict[int, list[Chunk]] = {}
        self._place: dict[int, int] = {}
        self._results: Results[Translation] | None = None
        self._cache: Cache | None = None

    def look(self, cache: Cache) -> None:
        """Take translations from the cache. In the event loop."""
        self._cache = cache
        for number in self._distinct:
            if (key := self._keys[number]) is not None and (found := cache.get(key)):
                self._known[number] = found

    def read(self, check: Callable[[], None]) -> None:
        """Make the parts of the segments that were not in the cache.

        Args:
            check: called before each segment and pair; raises an error if no client waits.

        Raises:
            ConfigError: the client's expressions take too long.
            DataError: a prefix is too long.
        """
        wanted = [number for number in self._distinct if number not in self._known]
        reader, tag = self._guided(wanted, check), self._reader.tag(None)
        for number in wanted:
            check()
            chunks = reader.parts(self._lines[number], number, tag)
            require_room(
                chunks,
                number,
                self._call.options.max_length,
                length_limit=reader.length_limit,
            )
            if chunks:
                self._chunks[number] = chunks
            else:
                self._known[number] = Translation(text="", status="empty")

    def _guided(self, numbers: Sequence[int], check: Callable[[], None]) -> LineReader:
        """A reader of these segments, which follows the pairs of the request."""
        if not (self._pairs and numbers):
            return self._reader
        reader = copy(self._reader)
        # A pair equals only a segment that is read in the same way, and all segments are.
        line = self._lines[numbers[0]]
        reader.rules = reader.rules if line.rules is None else line.rules
        reader.keep_typos = reader.keep_typos if line.keep_typos is None else line.keep_typos
        for lang in dict.fromkeys(self._lines[number].target_lang for number in numbers):
            add_pairs(reader, _each(self._pairs, check), target_lang=lang)
        return reader

    def start(self, scheduler: Scheduler, in_work: InWork, *, timeout_s: float) -> None:
        """Queue these segments, unless they are being searched already. In the event loop.

        Raises:
            Refusal: the queue is full.
        """
        wanted = list(self._chunks)
        self._place = {number: place for place, number in enumerate(wanted)}
        if not wanted:
            return
        self._results = Results(len(wanted), timeout_s=timeout_s)
        n_parts = sum(len(self._chunks[number]) for number in wanted)
        own = [number for number in wanted if not self._join(number, in_work, n_parts)]
        if not own:
            scheduler.watch(self._results)
            return
        job = Job(
            self._call,
            [self._chunks[number] for number in own],
            n_chars=sum(len(self._lines[number].text) for number in own),
            results=self._results,
            places=[self._place[number] for number in own],
        )
        scheduler.submit(job)
        for number, segment in zip(own, job.segments, strict=True):
            if (key := self._keys[number]) is not None:
                in_work[key] = segment

    def _join(self, number: int, in_work: InWork, n_parts: int) -> bool:
        """Wait for another request's search of the segment, if that takes no longer."""
        key = self._keys[number]
        segment = None if key is None else in_work.get(key)
        if segment is None or not segment.may_be_joined(n_parts):
            return False
        assert self._results is not None
        segment.join(self._results, self._place[number])
        return True

    async def get(self, number: int) -> Translation:
        """Wait for the translation of a segment.

        Raises:
            Refusal: the request failed or timed out.
        """
        first = self._first[number]
        if first not in self._known:
            assert self._results is not None and self._cache is not None
            found = self._known[first] = await self._results.get(self._place[first])
            if (key := self._keys[first]) is not None:
                self._cache.put(key, found)
        return self._known[first]

    def abandon(self) -> None:
        """Abandon the segments, because no client waits for them."""
        if self._results is not None:
            self._results.abandon()


def _each(pairs: Iterable[Pair], check: Callable[[], None]) -> Iterator[Pair]:
    """The pairs, with a check before each."""
    for pair in pairs:
        check()
        yield pair
