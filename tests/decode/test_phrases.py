"""Phrases that a search must and must not find, against trying everything."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heed.decode.length_penalty import LENGTH_FORMULAS
from heed.decode.options import DecodeOptions
from heed.decode.phrases import START, Form, Phrases, Progress, WordEdges
from heed.decode.search import decode

# A vocabulary of five words: begin, end and three more.
TINY: dict[str, Any] = {"bos_id": 0, "eos_id": 1, "pad_id": 99}


def contains(ids: list[int], phrases: Phrases) -> bool:
    """Whether there is a place of its own for each phrase, by trying all choices of places."""
    edges = phrases.edges

    def places(forms: tuple[Form, ...]) -> list[tuple[int, int]]:
        found = []
        for form, start in itertools.product(forms, range(len(ids))):
            end = start + len(form)
            if tuple(ids[start:end]) != form:
                continue
            is_cut_left = start and is_inside(ids[start - 1], ids[start])
            is_cut_right = end < len(ids) and is_inside(ids[end - 1], ids[end])
            if not is_cut_left and not is_cut_right:
                found.append((start, end))
        return found

    def is_inside(left: int, right: int) -> bool:
        return left in edges.ends_inside and right in edges.begins_inside

    return any(
        all(a[1] <= b[0] or b[1] <= a[0] for a, b in itertools.combinations(chosen, 2))
        for chosen in itertools.product(*map(places, phrases.required))
    )


def has_banned(ids: list[int], phrases: Phrases) -> bool:
    return any(
        tuple(ids[start : start + len(form)]) == form
        for form in phrases.banned
        for start in range(len(ids))
    )


FORMS = st.lists(st.integers(2, 4), min_size=1, max_size=3).map(tuple)
EDGES = st.builds(
    WordEdges,
    begins_inside=st.frozensets(st.integers(2, 4)),
    ends_inside=st.frozensets(st.integers(2, 4)),
)
PHRASES = st.builds(
    Phrases,
    required=st.lists(st.lists(FORMS, min_size=1, max_size=2).map(tuple), max_size=3).map(tuple),
    edges=st.just(WordEdges()) | EDGES,
)


@settings(max_examples=150, deadline=None)
@given(ids=st.lists(st.integers(2, 4), max_size=9), phrases=PHRASES)
def test_a_hypothesis_said_to_have_all_phrases_has_them(ids: list[int], phrases: Phrases) -> None:
    progress, state = Progress(phrases), START
    for id in ids:
        state = progress.step(state, id)
    if progress.has_all(state):
        assert contains(ids, phrases)
        assert progress.remaining(state) == 0


@settings(max_examples=150, deadline=None)
@given(ids=st.lists(st.integers(2, 4), max_size=7), forms=st.lists(FORMS, max_size=3, unique=True))
def test_phrases_of_one_form_that_do_not_overlap_are_found(
    ids: list[int], forms: list[Form]
) -> None:
    # A form that is part of another, or whose end begins another, leaves a choice of places.
    pairs = itertools.permutations(forms, 2)
    if any(a[-n:] == b[:n] for a, b in pairs for n in range(1, 4)):
        return
    if any(form[-n:] == form[:n] for form in forms for n in range(1, len(form))):
        return
    phrases = Phrases(tuple((form,) for form in forms))
    progress, state = Progress(phrases), START
    for id in ids:
        state = progress.step(state, id)
    if not any(set(a) <= set(b) for a, b in itertools.permutations(forms, 2)):
        assert progress.has_all(state) == contains(ids, phrases)


@settings(max_examples=150, deadline=None)
@given(phrases=PHRASES, begun=st.lists(st.integers(2, 4), max_size=5))
def test_the_ids_that_continue_phrases_lead_to_all_of_them(
    phrases: Phrases, begun: list[int]
) -> None:
    """From anywhere; a boundary of words may need one id that belongs to no phrase."""
    progress, state = Progress(phrases), START
    for id in begun:
        state = progress.step(state, id)
    for _ in range(30):
        if progress.has_all(state):
            break
        ways = [progress.step(state, id) for id in [9, *progress.next_ids(state)]]
        state = min(ways, key=progress.remaining)
        if progress.remaining(state) >= progress.remaining(ways[0]):
            state = ways[0]
    # Forms of which no end can be told from the middle of a word cannot be followed by others.
    assert progress.has_all(state) or phrases.edges.begins_inside


@pytest.mark.parametrize("length_formula", ["gnmt", "none"])
@pytest.mark.parametrize(
    "phrases",
    [
        Phrases((((3,),),)),
        Phrases((((3, 2),), ((4,),))),
        Phrases((((2, 3), (4, 4)),)),
        Phrases((((3,),), ((3,),))),
        Phrases((((4,),), ((4, 2),))),
        Phrases((((2,),),), banned=((2, 2), (3,))),
        Phrases(banned=((2,), (3, 4))),
    ],
)
def test_a_wide_beam_finds_the_best_of_all_answers_that_have_the_phrases(
    fakes: Any, phrases: Phrases, length_formula: str
) -> None:
    limit, n_best = 5, 5
    model = fakes.hash_model(7, vocab_size=5)
    penalty = LENGTH_FORMULAS[length_formula]
    everything = [
        (ids, log_prob / penalty(len(ids) + 1, 0.6))
        for ids, log_prob in fakes.all_complete(model, kind=0, bos_id=0, eos_id=1, limit=limit)
        if contains(ids, phrases) and not has_banned(ids, phrases)
    ]
    best = sorted(everything, key=lambda one: -one[1])[:n_best]
    options = DecodeOptions(
        beam_size=1024,
        n_best=n_best,
        max_length=limit,
        length_formula=length_formula,
        length_penalty=0.6,
        early_stopping="never",
    )
    (found,) = decode(model, np.array([[0]]), options, phrases=[phrases], **TINY)
    assert [answer.ids for answer in found] == [ids for ids, _ in best]
    assert [answer.score for answer in found] == pytest.approx([score for _, score in best])


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    beam_size=st.integers(1, 6),
    phrases=st.lists(st.none() | PHRASES, min_size=3, max_size=3),
    limit=st.integers(4, 10),
)
@example(
    # The last two of three words stand side by side, and are no single phrase of two words.
    seed=0,
    beam_size=2,
    phrases=[Phrases(required=(((2,),), ((2,),), ((2,), (2, 2)))), None, None],
    limit=4,
)
def test_every_answer_has_its_phrases_in_any_beam_and_batch(
    fakes: Any,
    seed: int,
    beam_size: int,
    phrases: list[Phrases | None],
    limit: int,
) -> None:
    model = fakes.hash_model(seed, vocab_size=9, n_kinds=3)
    src = np.array([[0], [1], [2]])
    options = DecodeOptions(beam_size=beam_size, max_length_factor=0.0, max_length_offset=limit)
    found = decode(model, src, options, phrases=phrases, **TINY)
    for source, wanted in enumerate(phrases):
        (best,) = found[source]
        if wanted and not wanted.edges.begins_inside:
            assert contains(best.ids, wanted)
        alone = decode(
            model,
            src[source : source + 1],
            options,
            phrases=None if wanted is None else [wanted],
            **TINY,
        )
        if beam_size > 1 or wanted is not None:
            assert alone == [found[source]]


def test_an_answer_that_is_cut_at_its_limit_has_its_phrases(fakes: Any) -> None:
    model = fakes.hash_model(3, vocab_size=6)
    model.table[..., 1] = -1e9  # it never ends
    options = DecodeOptions(beam_size=3, max_length_factor=0.0, max_length_offset=2.0)
    phrases = Phrases((((3, 4, 5),), ((2, 2),)))
    ((best,),) = decode(model, np.array([[0]]), options, phrases=[phrases], **TINY)
    assert best.status == "max_length" and contains(best.ids, phrases)


@pytest.mark.parametrize(
    ("seed", "beam_size", "source", "required"),
    [
        (692507834, 2, 2, (((3, 2, 3),),)),
        (482600572, 2, 0, (((4, 2, 2), (2, 2)),)),
        (735232954, 2, 0, (((2, 2),), ((2, 2), (3, 2, 2)))),
    ],
)
def test_a_hypothesis_of_small_probability_that_could_end_goes_on(
    fakes: Any, seed: int, beam_size: int, source: int, required: Any
) -> None:
    """Its `<eos>` came too late among the candidates, and nothing else of it was among them."""
    model = fakes.hash_model(seed, vocab_size=9, n_kinds=3)
    for limit in (4, 5, 6):
        options = DecodeOptions(
            beam_size=beam_size, max_length_factor=0.0, max_length_offset=float(limit)
        )
        phrases = Phrases(required)
        ((best,),) = decode(model, np.array([[source]]), options, phrases=[phrases], **TINY)
        assert contains(best.ids, phrases)


def test_an_id_without_any_probability_is_found_when_required(fakes: Any) -> None:
    model = fakes.hash_model(3, vocab_size=6)
    model.table[..., 4] = -np.inf
    phrases = Phrases((((4, 4),),))
    options = DecodeOptions(beam_size=2, max_length=8)
    ((best,),) = decode(model, np.array([[0]]), options, phrases=[phrases], **TINY)
    assert contains(best.ids, phrases)


def test_a_phrase_is_not_found_within_a_longer_word() -> None:
    edges = WordEdges(begins_inside=frozenset({3}), ends_inside=frozenset({2, 3}))
    progress = Progress(Phrases((((2,),),), edges=edges))
    state = progress.step(START, 2)
    assert progress.has_all(state)
    state = progress.step(state, 3)
    assert not progress.has_all(state)
    assert progress.has_all(progress.step(state, 2))
