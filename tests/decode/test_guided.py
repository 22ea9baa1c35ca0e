"""A guide changes log-probs as its formula says, and a strong one is followed to its end."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.decode.guided import SHARES, Guide, GuidedModel, GuidedNextTokens
from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.decode.slots import Slot
from heed.decode.state import Hypothesis
from heed.model.interface import ArrayNextTokens, Changes

BOS, EOS, VOCAB_SIZE = 2, 1, 9
STRONG = 60.0
NAMED = ("guides", "prefixes", "slots")


def search(model: Any, kinds: list[int], **options: Any) -> list[list[Hypothesis]]:
    """Sources of one id each; `HashModel` tells them apart by it."""
    given = {name: options.pop(name) for name in NAMED if name in options}
    return decode(
        model,
        np.array([[kind] for kind in kinds]),
        DecodeOptions(**{"max_length": 12, **options}),
        bos_id=BOS,
        eos_id=EOS,
        pad_id=0,
        forbidden=[0, BOS],
        **given,
    )


@st.composite
def guided_rows(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Log-probs of some rows, and entries with a bonus, some of them twice."""
    n_rows = draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    logits = random.standard_normal((n_rows, VOCAB_SIZE)) * 3
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    n_entries = draw(st.integers(1, 6))
    return (
        log_probs.astype(np.float32),
        random.integers(0, n_rows, n_entries),
        random.integers(0, VOCAB_SIZE, n_entries),
        random.uniform(0.1, 20, n_entries).astype(np.float32),
    )


def bonuses_in_place(
    log_probs: np.ndarray, rows: np.ndarray, ids: np.ndarray, bonuses: np.ndarray
) -> np.ndarray:
    added = np.zeros(log_probs.shape)
    np.maximum.at(added, (rows, ids), bonuses.astype(np.float64))
    return added


def by_formula(
    log_probs: np.ndarray, rows: np.ndarray, ids: np.ndarray, bonuses: np.ndarray
) -> np.ndarray:
    """log p e^b / Σ p e^b in float64, of equal entries with the largest bonus."""
    added = bonuses_in_place(log_probs, rows, ids, bonuses)
    raised = log_probs.astype(np.float64) + added
    return raised - np.log(np.exp(raised).sum(axis=1, keepdims=True))


@given(guided_rows())
def test_log_probs_are_those_of_the_formula(
    found: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    following = GuidedNextTokens(ArrayNextTokens(found[0]), *found[1:])
    expected = by_formula(*found)
    np.testing.assert_allclose(following.all_log_probs(), expected, atol=1e-4)
    every = np.tile(np.arange(VOCAB_SIZE), (len(expected), 1))
    np.testing.assert_allclose(following.log_probs_of(every), expected, atol=1e-4)
    assert np.exp(following.all_log_probs().astype(np.float64)).sum(axis=1) == pytest.approx(
        1.0, abs=1e-5
    )


@given(guided_rows(), st.integers(1, VOCAB_SIZE), st.integers(0, 2**32))
@settings(max_examples=200)
def test_the_largest_are_those_of_all_scores(
    found: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray], count: int, seed: int
) -> None:
    """With the changes of a search, too: forbidden ids, forbidden entries, lowered ones."""
    following = GuidedNextTokens(ArrayNextTokens(found[0]), *found[1:])
    random = np.random.default_rng(seed)
    n_rows, n_entries = len(found[0]), int(random.integers(0, 6))
    changes = Changes(
        forbidden=np.unique(random.integers(0, VOCAB_SIZE, int(random.integers(0, 3)))),
        rows=random.integers(0, n_rows, n_entries),
        ids=random.integers(0, VOCAB_SIZE, n_entries),
        scores=random.choice([-np.inf, -9.0, -2.0], n_entries).astype(np.float32),
    )
    limits = np.full(found[0].shape, np.inf)
    np.minimum.at(limits, (changes.rows, changes.ids), changes.scores)
    limits[:, changes.forbidden] = -np.inf
    # An entry that may not come next has no bonus.
    raised = found[0] + bonuses_in_place(*found) * (limits > -np.inf)
    expected = np.minimum(raised - np.log(np.exp(raised).sum(axis=1, keepdims=True)), limits)
    scores, ids = following.top_k(count, changes)
    assert ids.min() >= 0
    np.testing.assert_allclose(scores, -np.sort(-expected, axis=1)[:, :count], atol=1e-4)
    for row, values, own in zip(ids, scores, expected, strict=True):
        possible = row[values > -np.inf]
        assert len(set(possible.tolist())) == len(possible), "an id came twice"
        np.testing.assert_allclose(own[possible], values[values > -np.inf], atol=1e-4)


@pytest.mark.parametrize(
    "options",
    [{"beam_size": 1}, {"beam_size": 5}, {"sample": True, "n_best": 3, "beam_size": 1, "seed": 4}],
)
def test_a_strong_guide_is_followed(fakes: SimpleNamespace, options: dict[str, Any]) -> None:
    """Whatever the model would write, and with repeated words in the guide."""
    model = fakes.hash_model(1, vocab_size=VOCAB_SIZE, n_kinds=3)
    ids = (4, 5, 4, 4, 5, 6, EOS)
    for kind in range(3):
        for best in search(model, [kind], guides=[Guide(ids, STRONG)], **options)[0]:
            assert best.ids == list(ids[:-1]) and best.status == "eos"
            assert best.log_prob == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_scores_are_log_probs_of_the_guided_model(fakes: SimpleNamespace, beam_size: int) -> None:
    model = fakes.hash_model(2, vocab_size=VOCAB_SIZE)
    guide = Guide((3, 4, 5, 6, EOS), 2.0)
    (best,) = search(model, [0], guides=[guide], beam_size=beam_size, length_penalty=0.0)[0]
    tokens, expected = [BOS, *best.ids, EOS], []
    for place, following in enumerate(tokens[1:]):
        log_probs = np.array([model.log_probs_after(0, tokens[: place + 1])])
        added = np.zeros(VOCAB_SIZE)
        for number, id in enumerate(guide.ids):
            context, so_far = guide.ids[:number], tuple(tokens[1 : place + 1])
            agreed = max(
                n
                for n in range(len(context) + 1)
                if so_far[len(so_far) - n :] == context[len(context) - n :]
            )
            is_beginning = agreed == len(context) == len(so_far)
            share = 1.0 if is_beginning else SHARES[min(agreed, len(SHARES) - 1)]
            added[id] = max(added[id], guide.bonus * share)
        raised = log_probs[0] + added
        expected.append(raised[following] - np.log(np.exp(raised).sum()))
    np.testing.assert_allclose(best.token_log_probs, expected, atol=1e-4)
    assert best.score == pytest.approx(sum(expected), abs=1e-3)


@given(seed=st.integers(0, 10_000), bonus=st.floats(0.5, STRONG))
@settings(max_examples=30, deadline=None)
def test_a_guide_changes_no_other_source(fakes: SimpleNamespace, seed: int, bonus: float) -> None:
    """Bit for bit, though the others of the batch have guides of other lengths or none."""
    model = fakes.hash_model(seed, vocab_size=VOCAB_SIZE, n_kinds=3)
    guides = [None, Guide((4, 5, EOS), bonus), Guide((3, 3, 8, 7, 6, EOS), bonus)]
    for options in ({"beam_size": 1}, {"beam_size": 4, "n_best": 2}):
        together = search(model, [0, 1, 2], guides=guides, **options)
        alone = [
            search(model, [kind], guides=[guide], **options)[0] for kind, guide in enumerate(guides)
        ]
        assert together == alone
        assert together[0] == search(model, [0], **options)[0]


def test_a_row_with_more_entries_changes_no_other_row() -> None:
    """Bit for bit: sums must not be in another order."""
    random = np.random.default_rng(0)
    rows, ids = np.array([0] * 7 + [1] * 18), np.array([*range(7), *range(18)])
    for _ in range(50):
        log_probs = np.log(random.dirichlet(np.ones(20), size=2)).astype(np.float32)
        bonuses = random.uniform(1, 5, len(ids)).astype(np.float32)
        both = GuidedNextTokens(ArrayNextTokens(log_probs), rows, ids, bonuses)
        one = GuidedNextTokens(ArrayNextTokens(log_probs[:1]), rows[:7], ids[:7], bonuses[:7])
        assert both.all_log_probs()[0].tolist() == one.all_log_probs()[0].tolist()
        assert both.top_k(5)[0][0].tolist() == one.top_k(5)[0][0].tolist()


def test_no_probability_is_above_1() -> None:
    """The bonus of an improbable token is subtracted again as a sum, which rounds."""
    random = np.random.default_rng(1)
    own = random.uniform(-30, -1, 4000).astype(np.float32)
    log_probs = np.column_stack([own, np.log1p(-np.exp(own))]).astype(np.float32)
    rows, ids = np.arange(len(own)), np.zeros(len(own), np.int64)
    found = GuidedNextTokens(
        ArrayNextTokens(log_probs), rows, ids, np.full(len(own), STRONG, np.float32)
    )
    scores = [found.log_probs_of(ids[:, None]), found.top_k(1)[0], found.all_log_probs()]
    assert [float(each.max()) for each in scores] == [0, 0, 0]
    assert min(each[:, 0].min() for each in scores) > -1e-4


@pytest.mark.parametrize(
    "options", [{"beam_size": 1}, {"beam_size": 4}, {"sample": True, "n_best": 2}]
)
def test_there_is_room_for_a_long_guide(fakes: SimpleNamespace, options: dict[str, Any]) -> None:
    """A short source has a low limit, but may have a long translation."""
    model = fakes.hash_model(9, vocab_size=VOCAB_SIZE)
    ids = (4, 5, 6, 7, 8, 3, 5, 4)
    limits = {"max_length_factor": 0.0, "max_length_offset": 4.0}
    for best in search(model, [0], guides=[Guide((*ids, EOS), STRONG)], **options, **limits)[0]:
        assert (tuple(best.ids), best.status) == (ids, "eos")


def test_a_bonus_of_nearly_nothing_changes_nearly_nothing(fakes: SimpleNamespace) -> None:
    model = fakes.hash_model(5, vocab_size=VOCAB_SIZE)
    own = search(model, [0], beam_size=1)[0][0]
    guided = search(model, [0], beam_size=1, guides=[Guide((3, 4, 5, EOS), 1e-6)])[0][0]
    assert guided.ids == own.ids
    assert guided.log_prob == pytest.approx(own.log_prob, abs=1e-4)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_prefix_of_the_guide_is_continued(fakes: SimpleNamespace, beam_size: int) -> None:
    """Also where the prefix is read at once."""
    model = fakes.hash_model(6, vocab_size=VOCAB_SIZE)
    guide = Guide((4, 5, 6, 7, 8, EOS), STRONG)
    for prefix in ([4], [4, 5, 6], [4, 5, 6, 7, 8]):
        found = search(model, [0], guides=[guide], prefixes=[prefix], beam_size=beam_size)[0][0]
        assert found.ids == [4, 5, 6, 7, 8]


def test_after_two_words_of_the_guide_its_next_one_follows(fakes: SimpleNamespace) -> None:
    """A hypothesis that left the guide comes back to it."""
    model = fakes.hash_model(7, vocab_size=VOCAB_SIZE)
    guide = Guide((3, 4, 5, 6, EOS), STRONG)
    found = search(model, [0], guides=[guide], prefixes=[[8, 4, 5]], beam_size=1)[0][0]
    assert found.ids == [8, 4, 5, 6]


def test_tokens_in_memory_that_a_step_overwrites_are_read_before(fakes: SimpleNamespace) -> None:
    """The results of the engine are valid until its next step."""

    class Overwriting(fakes.HashModel):  # type: ignore[name-defined]
        given: tuple[np.ndarray, ...] = ()

        def step(self, state: Any, tokens: np.ndarray) -> ArrayNextTokens:
            following = super().step(state, tokens)
            for array in self.given:
                array[:] = 0
            find = following.top_k

            def top_k(count: int, changes: Changes | None = None) -> tuple[np.ndarray, ...]:
                self.given = find(count, changes)
                return self.given

            following.top_k = top_k
            return following

    table = fakes.hash_model(7, vocab_size=VOCAB_SIZE).table
    guides = [Guide((3, 4, 5, 6, EOS), STRONG), None]
    # The second source has no prefix, so that of the first is taken step by step.
    given = {"guides": guides, "prefixes": [[8, 4, 5], []], "beam_size": 1}
    found = search(Overwriting(table), [0, 0], **given)
    assert found[0][0].ids == [8, 4, 5, 6]
    assert found == search(fakes.HashModel(table), [0, 0], **given)


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"beam_size": 3}, {"sample": True}])
def test_slots_of_another_source_change_no_guided_one(
    fakes: SimpleNamespace, options: dict[str, Any]
) -> None:
    """Bit for bit: the log-probs of the other one are not its scores."""
    options = {**options, "suppress": (3, 8)}  # as slots are, where they are not those of a source
    for seed in range(20):
        model = fakes.hash_model(seed, vocab_size=VOCAB_SIZE, n_kinds=2)
        guides, slots = [Guide((4, 5, 6, EOS), 1.7), None], [[], [Slot(id=3), Slot(id=8)]]
        together = search(model, [0, 1], guides=guides, slots=slots, **options)
        assert together[0] == search(model, [0], guides=guides[:1], **options)[0]


def test_forbidden_ids_stay_forbidden(fakes: SimpleNamespace) -> None:
    model = fakes.hash_model(8, vocab_size=VOCAB_SIZE)
    guide = Guide((4, 0, 5, EOS), STRONG)  # 0 is padding, which a search never writes
    for beam_size in (1, 4):
        found = search(model, [0], guides=[guide], beam_size=beam_size)[0][0]
        assert 0 not in found.ids and found.ids[0] == 4


def test_the_tokens_of_guides_are_computed(fakes: SimpleNamespace) -> None:
    """A model with a shortlist computes probable tokens only, and those that it is asked for."""

    class Asked(fakes.HashModel):  # type: ignore[name-defined]
        required: np.ndarray | None = None

        def start(self, src: np.ndarray, **named: Any) -> Any:
            self.required = named["required_ids"]
            return super().start(src, **named)

    model = Asked(np.zeros((2, 7, VOCAB_SIZE)))
    state = GuidedModel(model, [Guide((4, 5, EOS), 1.0), None]).start(
        np.array([[0], [1]]), beam_size=2, required_ids=np.array([[3], [-1]])
    )
    assert model.required is not None
    assert model.required.tolist() == [[3, 4, 5, EOS], [-1, -1, -1, -1]]
    assert len(state.targets) == 4
