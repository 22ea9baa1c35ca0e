"""Slots in a search: each once at most, pairs well nested; a beam ends only with all of them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.decode.slots import Slot
from heed.decode.state import Hypothesis

EOS, PLAIN, PAIRS = 1, (6, 7, 8), ((9, 10), (11, 12))
ENDS = {closing: opening for opening, closing in PAIRS}
VOCAB_SIZE = 13


@st.composite
def slot_lists(draw: st.DrawFn) -> list[Slot]:
    """The slots of a source: some of those there are, each anywhere inside the others."""
    found: list[Slot] = []
    pairs: list[int] = []
    wanted = draw(st.permutations([*PAIRS, *PLAIN]))
    for each in wanted[: draw(st.integers(0, len(wanted)))]:
        inside = draw(st.sampled_from([None, *pairs]))
        if isinstance(each, tuple):
            pairs.append(len(found))
            found.append(Slot(id=each[0], closing_id=each[1], inside=inside))
        else:
            found.append(Slot(id=each, inside=inside))
    return found


def around(ids: list[int]) -> dict[int, int | None]:
    """The pair that each slot stands in, read from left to right."""
    found: dict[int, int | None] = {}
    opened: list[int] = []
    for id in ids:
        if id < PLAIN[0]:
            continue
        assert id not in found, f"{id} came twice in {ids}"
        if id in ENDS:
            assert opened.pop() == ENDS[id], f"not nested: {ids}"
        found[id] = opened[-1] if opened else None
        if id in ENDS.values():
            opened.append(id)
    assert not opened, f"not closed: {ids}"
    return found


def searched(
    fakes: Any, slots: list[list[Slot]], seed: int, **options: Any
) -> list[list[Hypothesis]]:
    model = fakes.hash_model(seed, vocab_size=VOCAB_SIZE, n_kinds=len(slots))
    src = np.arange(len(slots))[:, None]
    return decode(
        model,
        src,
        DecodeOptions(max_length=30, **options),
        bos_id=0,
        eos_id=EOS,
        pad_id=99,
        forbidden=[0, EOS, *range(PLAIN[0], VOCAB_SIZE)],
        slots=slots,
        keys=range(len(slots)),
    )


@given(
    slots=st.lists(slot_lists(), min_size=1, max_size=4),
    seed=st.integers(0, 999),
    beam_size=st.integers(2, 5),
)
@settings(max_examples=60, deadline=None)
def test_a_beam_ends_with_every_slot_where_it_belongs(
    fakes: Any, slots: list[list[Slot]], seed: int, beam_size: int
) -> None:
    found = searched(fakes, slots, seed, beam_size=beam_size, n_best=beam_size)
    for listed, hypotheses in zip(slots, found, strict=True):
        expected = {
            slot.id: None if slot.inside is None else listed[slot.inside].id for slot in listed
        }
        expected |= {
            slot.closing_id: expected[slot.id] for slot in listed if slot.closing_id is not None
        }
        for each in hypotheses:
            if each.status == "eos":
                assert around(each.ids) == expected


@pytest.mark.parametrize("way", [{"beam_size": 1}, {"sample": True, "n_best": 3}])
def test_a_single_path_may_end_early_and_repeats_no_slot(fakes: Any, way: dict[str, Any]) -> None:
    listed = [Slot(id=6), Slot(id=7), Slot(id=8)]
    n_short = 0
    for seed in range(40):
        for each in searched(fakes, [listed], seed, **way)[0]:
            slots = [id for id in each.ids if id >= PLAIN[0]]
            assert len(slots) == len({*slots}) and {*slots} <= {6, 7, 8}
            n_short += each.status == "eos" and len(slots) < 3
    assert 0 < n_short < 40


def test_log_probs_are_those_of_the_model_with_slots(fakes: Any) -> None:
    model = fakes.hash_model(5, vocab_size=VOCAB_SIZE)
    (hypotheses,) = searched(fakes, [[Slot(id=6), Slot(id=7)]], 5, beam_size=3, n_best=3)
    for each in hypotheses:
        sequence = [0, *each.ids, *([EOS] if each.status == "eos" else [])]
        expected = [
            model.log_probs_after(0, sequence[: place + 1])[sequence[place + 1]]
            for place in range(len(sequence) - 1)
        ]
        assert each.token_log_probs == pytest.approx(expected, abs=1e-5)
