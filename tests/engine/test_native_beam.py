"""Beam search in the compiled engine: what `heed/decode/beam.py` finds, to the last bit."""

from collections.abc import Callable
from ctypes import byref, c_void_p
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.engine.conftest import needs_compiler, sources
from tests.engine.test_shortlist import shortlist

from heed.decode.early_stopping import EARLY_STOPPING
from heed.decode.length_penalty import LENGTH_FORMULAS
from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.decode.slots import Slot, SlotRules
from heed.decode.state import Flags, IsWanted
from heed.engine import library
from heed.engine.library import SearchRecord
from heed.engine.native import NativeState
from heed.engine.native_beam import NativeBeam
from heed.engine.network import Network
from heed.engine.runtime import Engine
from heed.errors import ConfigError, HeedError
from heed.model.interface import BeamPlan, Ids

pytestmark = needs_compiler

IDS: dict[str, Any] = {"bos_id": 2, "eos_id": 3, "pad_id": 0, "forbidden": (0, 1, 2)}
KINDS: list[dict[str, Any]] = [
    {},
    {"norm": "pre", "positions": "rotary"},
    {"decoder_self": "ssru"},
    {"family": "decoder"},
]
FIVE = DecodeOptions(max_length=20, n_best=3)


def search(model: Engine, src: Ids, options: DecodeOptions, **others: Any) -> Any:
    return decode(model, src, options, **IDS | others)


def step_by_step(model: Engine, src: Ids, options: DecodeOptions, **others: Any) -> Any:
    """What the search finds whose steps are in Python."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "begin_beam", lambda self, src, plan: None)
        return search(model, src, options, **others)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[BeamPlan]:
    """The searches that the engine ran itself."""
    seen: list[BeamPlan] = []
    begin = Engine.begin_beam

    def begin_beam(self: Engine, src: Ids, plan: BeamPlan) -> NativeBeam | None:
        made = begin(self, src, plan)
        seen.extend([plan] if made else [])
        return made

    monkeypatch.setattr(Engine, "begin_beam", begin_beam)
    return seen


def constraints(random: np.random.Generator, n_sources: int, beam_size: int) -> dict[str, Any]:
    """Prefixes and slots at random, each for some searches, and in these for some sources."""
    found: dict[str, Any] = {}
    if beam_size > 1 and random.random() < 0.3:
        lengths = random.integers(0, 4, n_sources)
        found["prefixes"] = [random.integers(4, 70, length).tolist() for length in lengths]
    if random.random() < 0.5:
        found["slots"] = [slots(random) for _ in range(n_sources)]
    return found


def suppressed(random: np.random.Generator) -> tuple[int, ...]:
    """None, some, or nearly all ids."""
    return tuple(random.permutation(np.arange(4, 70))[: random.choice([0, 20, 60, 65])].tolist())


def slots(random: np.random.Generator) -> list[Slot]:
    """Up to four slots, pairs among them, each perhaps inside an earlier pair."""
    ids = iter(random.permutation(np.arange(40, 70)).tolist())
    made: list[Slot] = []
    for _ in range(random.integers(0, 5)):
        pairs = [place for place, slot in enumerate(made) if slot.closing_id is not None]
        made.append(
            Slot(
                id=next(ids),
                closing_id=next(ids) if random.random() < 0.5 else None,
                inside=int(random.choice(pairs)) if pairs and random.random() < 0.7 else None,
            )
        )
    return made


@pytest.mark.parametrize("has_shortlist", [False, True])
@pytest.mark.parametrize("is_quantized", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_it_finds_what_the_steps_in_python_find(
    kind: dict[str, Any],
    is_quantized: bool,
    has_shortlist: bool,
    network: Callable[..., Network],
    runs: list[BeamPlan],
) -> None:
    weights = network(is_quantized=is_quantized, **kind)
    lists = shortlist(weights.config.src_vocab_size) if has_shortlist else None
    model = Engine(weights, shortlist=lists, threads=2)
    random = np.random.default_rng(4)
    n_searches, endings = 40, set()
    for _ in range(n_searches):
        beam_size = int(random.integers(1, 10))
        options = DecodeOptions(
            beam_size=beam_size,
            n_best=int(random.integers(1, beam_size + 1)),
            max_length=int(random.integers(6, 30)),
            length_formula=str(random.choice(sorted(LENGTH_FORMULAS))),
            length_penalty=float(random.choice([0.0, 0.6, 1.0, 3.0])),
            early_stopping=str(random.choice(sorted(EARLY_STOPPING))),
            min_length=int(random.choice([0, 0, 1, 5])),
            no_repeat_ngram_size=int(random.choice([0, 0, 1, 2, 3])),
            suppress=suppressed(random),
        )
        src = sources()[random.integers(0, 4, random.integers(1, 7))]
        found = step_by_step(model, src, options)
        # An id that is probable somewhere ends hypotheses; one at random seldom would.
        eos_id = int(random.choice(found[0][0].ids or [3]))
        others = {"eos_id": eos_id} | constraints(random, len(src), beam_size)
        found = step_by_step(model, src, options, **others)
        endings |= {(one.status, len(one.ids) > 2) for of in found for one in of}
        assert search(model, src, options, **others) == found
    assert len(runs) == n_searches
    assert endings >= {("eos", False), ("eos", True), ("max_length", True)}


def test_a_source_that_is_no_longer_wanted_leaves(network: Callable[..., Network]) -> None:
    model, calls = Engine(network()), []

    def is_wanted(sources: Ids) -> Flags:
        calls.append(sources.tolist())
        gone = {1} if len(calls) == 3 else {0, 2} if len(calls) == 5 else set()
        return np.array([source not in gone for source in sources.tolist()])

    found = search(model, sources(), FIVE, is_wanted=is_wanted)
    assert calls[:6] == [[0, 1, 2, 3]] * 3 + [[0, 2, 3]] * 2 + [[3]]
    assert found[:3] == [[], [], []]
    assert found[3] == step_by_step(model, sources(), FIVE)[3]


def test_no_source_is_wanted(network: Callable[..., Network]) -> None:
    none: IsWanted = lambda sources: np.zeros(len(sources), bool)  # noqa: E731
    assert search(Engine(network()), sources(), FIVE, is_wanted=none) == [[]] * 4


@pytest.mark.parametrize(
    "others",
    [
        {"observer": lambda step: None},
        {"phrases": [None] * 4},
        {"options": DecodeOptions(beam_size=1, max_length=20), "prefixes": [[5]] * 4},
        {"options": replace(FIVE, repetition_penalty=1.2)},
        {"options": replace(FIVE, suppress=tuple(range(70)))},
    ],
    ids=["observer", "phrases", "greedy prefix", "repetition penalty", "no id is left"],
)
def test_other_searches_are_left_to_the_steps_in_python(
    others: dict[str, Any], network: Callable[..., Network], runs: list[BeamPlan]
) -> None:
    assert search(Engine(network()), sources(), **{"options": FIVE} | others)
    assert not runs


def test_an_id_beyond_the_vocabulary_is_refused_as_ever(network: Callable[..., Network]) -> None:
    with pytest.raises(ConfigError, match=r"decoding\.suppress must hold ids below .* \(70\)"):
        search(Engine(network()), sources(), replace(FIVE, suppress=(70,)))


@pytest.mark.parametrize("kind", [{}, {"family": "decoder"}], ids=str)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_model_without_numbers_is_refused_as_ever(
    kind: dict[str, Any], value: float, network: Callable[..., Network]
) -> None:
    weights = network(**kind)
    weights.matrices["output"].panels.fill(value)
    said = []
    for run in (search, step_by_step):
        with pytest.raises(HeedError, match="The best log-prob of sentence 1 ") as error:
            run(Engine(weights), sources(), FIVE)
        said.append(str(error.value))
    assert said[0] == said[1]


def tables(slots: list[Slot], **changes: Any) -> dict[str, Any]:
    """The arrays of four sources with these slots."""
    rules = SlotRules.of([slots] * 4)
    assert rules is not None
    return vars(rules) | changes


def begin(model: Engine, **changes: Any) -> NativeBeam:
    state = model.start(sources(), beam_size=2)
    assert isinstance(state, NativeState)
    plan = BeamPlan(
        n_best=2,
        beam_size=2,
        early_stopping="never",
        bos_id=2,
        eos_id=3,
        forbidden=np.array([0]),
        limits=np.array([3, 3, 3, 3]),
        divisors=np.ones(4),
        penalties=np.ones(64),
        min_length=0,
        no_repeat_ngram_size=0,
        prefixes=np.empty((4, 0), np.int64),
        slots=None,
        missing_cost=0.0,
        required_ids=np.empty((4, 0), np.int64),
    )
    return NativeBeam(state, replace(plan, **changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_best": 3}, "n_best must be 1 to 2, but is 3"),
        ({"n_best": 0}, "n_best must be 1 to 2, but is 0"),
        ({"eos_id": 70}, "a target id is not in the vocabulary"),
        ({"bos_id": -1}, "a target id is not in the vocabulary"),
        ({"forbidden": np.array([70])}, "a target id is not in the vocabulary"),
        ({"limits": np.array([3, 64, 3, 3])}, "a limit must be 1 to 63, but is 64"),
        ({"limits": np.array([3, 3, 3, 0])}, "a limit must be 1 to 63, but is 0"),
        ({"min_length": -1}, "min_length must be 0 to "),
        ({"no_repeat_ngram_size": -1}, "no_repeat_ngram_size must be 0 to "),
        ({"prefixes": np.array([[5], [70], [5], [5]])}, "a target id is not in the vocabulary"),
        ({"prefixes": np.array([[5], [-2], [5], [5]])}, "a target id is not in the vocabulary"),
        ({"slots": tables([Slot(id=70)])}, "a target id is not in the vocabulary"),
        ({"slots": tables([Slot(id=5)], closers=np.full((4, 1), 1))}, "that closes a pair must be"),
    ],
)
def test_a_search_that_does_not_fit_is_refused(
    changes: dict[str, Any], words: str, network: Callable[..., Network]
) -> None:
    with pytest.raises(HeedError, match=words):
        begin(Engine(network()), **changes)


def test_a_search_that_is_over_has_no_further_step(network: Callable[..., Network]) -> None:
    beam = begin(Engine(network()))
    assert [beam.step(), beam.step(), beam.step()] == [4, 4, 0]
    with pytest.raises(HeedError, match="the search cannot go on"):
        beam.step()
    with pytest.raises(HeedError, match="the search cannot go on"):
        beam.drop(np.array([False]))


def test_only_a_state_without_tokens_is_searched(network: Callable[..., Network]) -> None:
    state = Engine(network()).start(sources(), beam_size=2)
    assert isinstance(state, NativeState)
    state.step(np.full(8, 2))
    handle, options = c_void_p(), SearchRecord(n_best=1, n_penalties=1)
    words = library.functions().heed_search_new(state.handle, byref(options), byref(handle))
    assert words == b"there are tokens already"


def test_flags_for_other_sources_are_refused(network: Callable[..., Network]) -> None:
    beam = begin(Engine(network()))
    beam.step()
    with pytest.raises(HeedError, match="there must be one flag for each source"):
        beam.drop(np.array([True]))
