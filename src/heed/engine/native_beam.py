"""Beam search in the compiled engine, `engine/search.cpp`: the steps of `heed/decode/beam.py`."""

from ctypes import byref, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.engine.library import (
    EARLY_STOPPING,
    ProgressRecord,
    SearchRecord,
    address_of,
    checked_address,
    functions,
)
from heed.engine.native import NativeState
from heed.machine.compiled import check
from heed.model.interface import BeamPlan, Ids


class NativeBeam:
    """A beam search that the library runs; implements `heed.model.interface.RunningBeam`.

    Args:
        state: its sources, before the first token. Nothing else may change it.
        plan: the search.
    """

    def __init__(self, state: NativeState, plan: BeamPlan) -> None:
        self._state, self._plan = state, plan
        self._n_sources, self._n_steps = state.n_sources, 0
        self._left = np.arange(state.n_sources)
        self._progress = ProgressRecord(
            n_sources=state.n_sources, stuck=-1, sources=address_of(self._left)
        )
        options = _record(plan, state.n_sources)
        self._handle = c_void_p()
        check(functions().heed_search_new(state.handle, byref(options), byref(self._handle)))

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            functions().heed_search_delete(self._handle)

    @property
    def sources(self) -> Ids:
        """The sources of the call that are still searched, `(n_sources,)`."""
        return self._left[: self._progress.n_sources]

    @property
    def stuck(self) -> tuple[int, float] | None:
        """A source without any probable token, and its best total; None = there is none."""
        source: int = self._progress.stuck
        return None if source < 0 else (source, self._progress.best)

    def step(self) -> int:
        """Add one token to each hypothesis; return the number of sources still searched."""
        places = self._state.next_positions(1)
        check(functions().heed_search_step(self._handle, byref(places), byref(self._progress)))
        self._state.position += 1
        self._n_steps += 1
        left: int = self._progress.n_sources
        return left

    def drop(self, are_dropped: NDArray[np.bool_]) -> int:
        """Remove sources, `(n_sources,)`, without a result; return the number of those left."""
        flags = np.ascontiguousarray(are_dropped, np.uint8)
        check(functions().heed_search_drop(self._handle, address_of(flags), len(flags)))
        stay = self.sources[~are_dropped]
        self._left[: len(stay)] = stay
        self._progress.n_sources = len(stay)
        return len(stay)

    def found(self) -> list[list[tuple[list[int], list[float], float, bool]]]:
        """Of each source of the call its hypotheses, best first; see `RunningBeam.found`."""
        shape = self._n_sources, self._plan.n_best
        lengths, scores = np.empty(shape, np.int32), np.empty(shape)
        have_ended = np.empty(shape, np.bool_)
        ids = np.empty((*shape, self._n_steps), np.int64)
        log_probs = np.empty((*shape, self._n_steps), np.float32)
        arrays: tuple[NDArray[Any], ...] = (lengths, scores, have_ended, ids, log_probs)
        addresses = map(address_of, arrays)
        check(functions().heed_search_found(self._handle, self._n_steps, *addresses))
        return [
            [
                (
                    ids[source, place, :n].tolist(),
                    log_probs[source, place, :n].tolist(),
                    scores[source, place].item(),
                    have_ended[source, place].item(),
                )
                for place, n in enumerate(of_source)
                if n
            ]
            for source, of_source in enumerate(lengths.tolist())
        ]


def _record(plan: BeamPlan, n_sources: int) -> SearchRecord:
    """The plan for the library; its arrays must outlive the search."""
    prefix_len = plan.prefixes.shape[1]
    record = SearchRecord(
        n_best=plan.n_best,
        early_stopping=EARLY_STOPPING.index(plan.early_stopping),
        n_forbidden=len(plan.forbidden),
        n_penalties=len(plan.penalties),
        min_length=plan.min_length,
        no_repeat_ngram_size=plan.no_repeat_ngram_size,
        prefix_len=prefix_len,
        bos_id=plan.bos_id,
        eos_id=plan.eos_id,
        forbidden=checked_address(plan.forbidden, plan.forbidden.shape, np.int64),
        limits=checked_address(plan.limits, (n_sources,), np.int64),
        divisors=checked_address(plan.divisors, (n_sources,), np.float64),
        penalties=checked_address(plan.penalties, plan.penalties.shape, np.float64),
        prefixes=checked_address(plan.prefixes, (n_sources, prefix_len), np.int64),
        missing_cost=plan.missing_cost,
    )
    if plan.slots is not None:
        record.n_slots = n_slots = len(plan.slots["ids"])
        record.slots = checked_address(plan.slots["ids"], (n_slots,), np.int64)
        for name in ("is_slot", "parents", "depths", "closers", "is_closer"):
            kind = np.bool_ if name.startswith("is_") else np.int64
            setattr(record, name, checked_address(plan.slots[name], (n_sources, n_slots), kind))
    return record
