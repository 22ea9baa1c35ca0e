"""What scheduling is tested with: a translator whose searches are watched, blocked or broken."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self, cast

from heed.decode.options import DecodeOptions
from heed.serve.work.job import Call, Job
from heed.serve.work.results import Results
from heed.translate.parts import Chunk
from heed.translate.result import Translation
from heed.translate.translator import Translator

STEP_S = 0.002


class StandIn:
    """Translates a chunk of ids into the same ids; a chunk takes as many steps as it has ids.

    Attributes:
        batches: the ids of all chunks of each search, in the order of their begin.
        n_steps: of all searches.
        gate: searches wait for it.
        fault: called with the chunks of each search; may raise.
        doubtful: chunks of so many ids need a second search, which adds "again".
        second: the ids of all chunks of each second search.
    """

    def __init__(self) -> None:
        self.batches: list[list[list[int]]] = []
        self.n_steps = 0
        self.gate = threading.Event()
        self.gate.set()
        self.has_begun = threading.Event()
        self.fault: Callable[[Sequence[Chunk]], None] = lambda chunks: None
        self.doubtful: set[int] = set()
        self.second: list[list[list[int]]] = []

    @property
    def searcher(self) -> Self:
        """Itself: it searches, too."""
        return self

    def is_open(self, found: Translation, options: DecodeOptions) -> bool:
        return len(found.text.split()) in self.doubtful

    def search_again(
        self,
        chunks: Sequence[Chunk],
        found: Sequence[Translation],
        options: DecodeOptions,
        *,
        alignment: bool,
        is_wanted: Callable[[int], bool],
    ) -> list[Translation]:
        self.second.append([chunk.src_ids for chunk in chunks])
        others = self._search(chunks, is_wanted)
        return [
            replace(other, text=f"{first.text} again") if other.text == first.text else other
            for first, other in zip(found, others, strict=True)
        ]

    def search_once(
        self,
        chunks: Sequence[Chunk],
        options: DecodeOptions,
        *,
        alignment: bool,
        is_wanted: Callable[[int], bool],
    ) -> list[Translation]:
        self.batches.append([chunk.src_ids for chunk in chunks])
        return self._search(chunks, is_wanted)

    search = search_once

    def _search(
        self, chunks: Sequence[Chunk], is_wanted: Callable[[int], bool]
    ) -> list[Translation]:
        self.has_begun.set()
        self.gate.wait()
        self.fault(chunks)
        live = {place: len(chunk.src_ids) for place, chunk in enumerate(chunks)}
        found = [Translation(text="", status="unwanted")] * len(chunks)
        while live:
            self.n_steps += 1
            threading.Event().wait(STEP_S)
            for place in list(live):
                live[place] -= 1
                if not is_wanted(place):
                    del live[place]
                elif not live[place]:
                    found[place] = Translation(text=" ".join(map(str, chunks[place].src_ids)))
                    del live[place]
        return found

    def call(self, **options: Any) -> Call:
        return Call(
            translator=cast("Translator", self),
            model="stand-in",
            options=DecodeOptions(**{"beam_size": 1, **options}),
        )


def chunks_of(*lengths: int, first_id: int = 0) -> list[list[Chunk]]:
    """One segment of one chunk for each length."""
    return [[Chunk([first_id] * length, [], 0)] for length in lengths]


def make_job(call: Call, *lengths: int, first_id: int = 0, timeout_s: float = 30.0) -> Job:
    """A job with a segment of each length; in a running event loop only."""
    return Job(
        call,
        chunks_of(*lengths, first_id=first_id),
        n_chars=sum(lengths),
        results=Results(len(lengths), timeout_s=timeout_s),
    )
