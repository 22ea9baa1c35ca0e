import json
import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.decode.length_penalty import LENGTH_FORMULAS
from heed.decode.options import DecodeOptions, options_from
from heed.decode.state import Hypothesis
from heed.engine.network import Network
from heed.engine.runtime import Engine
from heed.errors import DataError
from heed.explain.decoding.record import PENALTIES, REASONS, STOPS, SearchRecord, ranking_formula
from heed.explain.decoding.recorded import path_to, record_search
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.decodable import TorchDecodable
from heed.text.vocab import Vocab
from heed.translate.parts import Chunk
from heed.translate.remember import remember
from heed.translate.result import Match
from heed.translate.translator import Translator

Make = Callable[..., Translator]
TEXT = "I walk home"

BEAMS = st.fixed_dictionaries(
    {
        "beam_size": st.integers(1, 5),
        "length_penalty": st.sampled_from([0.0, 0.6, 1.4]),
        "length_formula": st.sampled_from(sorted(LENGTH_FORMULAS)),
        "early_stopping": st.sampled_from(["first", "bound", "never"]),
        "no_repeat_ngram_size": st.integers(0, 2),
        "repetition_penalty": st.sampled_from([1.0, 1.3]),
        "min_length": st.integers(0, 3),
        "max_length": st.integers(4, 9),
    }
)


def decoded(translator: Translator, **options: Any) -> list[Hypothesis]:
    """What the search finds when nobody observes it."""
    src_ids = translator.reader.src_ids(TEXT, [])
    chosen = options_from(translator.options, options)
    return translator.searcher.decode([Chunk(src_ids, [], 0)], chosen)[0]


def as_hypothesis(record: SearchRecord, rank: int) -> Hypothesis:
    found = record.finished[rank]
    return Hypothesis(
        ids=found.ids,
        token_log_probs=found.token_log_probs,
        log_prob=found.log_prob,
        score=found.score,
        status=found.status,
    )


@given(seed=st.integers(0, 10_000), options=BEAMS, end=st.sampled_from([-2.0, 1.0, 3.0]))
@settings(max_examples=120)
def test_the_answer_of_the_record_is_that_of_the_search_to_the_bit(
    hash_translator: Make, seed: int, options: dict[str, Any], end: float
) -> None:
    """Claim 114."""
    translator = hash_translator(seed, end=end)
    for n_best in {1, options["beam_size"]}:
        found = decoded(translator, **options, n_best=n_best)
        record = record_search(translator, TEXT, **options, n_best=n_best).record
        answers = [as_hypothesis(record, rank) for rank in range(len(found))]
        assert answers == found
        assert [each.is_answer for each in record.finished].count(True) == len(found)


@given(seed=st.integers(0, 10_000), options=BEAMS)
@settings(max_examples=60)
def test_every_candidate_has_the_fate_that_its_step_gives_it(
    hash_translator: Make, seed: int, options: dict[str, Any]
) -> None:
    """Claim 114: of all expansions the k best stay; recomputed from the whole distributions."""
    translator = hash_translator(seed)
    search = record_search(translator, TEXT, **options)
    record, k = search.record, options["beam_size"]
    eos = translator.tgt_vocab.eos_id
    for step in record.steps[:-1]:
        at = search.at(step.number)
        before = np.array([row.total for row in step.rows])
        totals = before[:, None] + at.scores
        allowed = sorted(totals[totals > -math.inf].tolist(), reverse=True)
        best_going = np.sort(np.delete(totals, eos, axis=1), axis=None)[::-1][:k]
        kept = [each for each in step.candidates if each.fate == "kept"]
        ended = [each for each in step.candidates if each.fate == "ended"]
        assert [each.total for each in kept] == best_going[best_going > -math.inf].tolist()
        best = allowed[: k if k > 1 else None]
        assert all(each.id == eos and each.total in best for each in ended)
        for each in step.candidates:
            place = [row.slot for row in step.rows].index(each.parent)
            assert each.log_prob == at.log_probs[place, each.id]
            is_forbidden = each.reason in ("ngram", "min_length", "forbidden")
            assert is_forbidden == (at.scores[place, each.id] == -math.inf)
            assert (each.fate == "pruned") == bool(each.reason)


def test_a_beam_of_one_is_greedy(hash_translator: Make) -> None:
    """Claims 113 and 115."""
    record = record_search(hash_translator(3), TEXT, beam_size=1).record
    assert record.strategy == "greedy"
    for step in record.steps:
        best = max(step.candidates, key=lambda each: each.total if not each.reason else -math.inf)
        assert best.fate in ("kept", "ended", "cut")
        runners_up = [each for each in step.candidates if each.reason == "beam"]
        assert all(each.log_prob <= best.log_prob for each in runners_up)


LIKELY = {
    "": {"I": 0.4, "The": 0.35, "A": 0.25},
    "I": {"walk": 0.3, "sing": 0.2, "man": 0.1, "</s>": 0.05},
    "The": {"man": 0.8, "dog": 0.2},
    "The man": {"sings": 0.9, "walks": 0.1},
    "I walk": {"home": 1.0},
}
"""Greedy search begins with "I", and its best sentence has 0.12; "The man sings" has 0.252."""


def test_two_beginnings_are_expanded_and_the_two_best_stay(written: Make) -> None:
    """Claim 114: with k = 2, "I" and "The" stay; of their expansions, the two best again."""
    record = record_search(written(LIKELY), TEXT, beam_size=2).record
    kept = [
        [(each.parent, each.piece.strip("▁")) for each in step.candidates if each.fate == "kept"]
        for step in record.steps
    ]
    assert kept[0] == [(0, "I"), (0, "The")]
    assert kept[1] == [(1, "man"), (0, "walk")]
    pruned = {each.piece.strip("▁"): each.reason for each in record.steps[0].candidates[2:]}
    assert pruned["A"] == "beam"
    assert record.text == "The man sings"
    assert math.isclose(math.exp(record.finished[0].log_prob), 0.35 * 0.8 * 0.9, rel_tol=1e-5)
    greedy = record_search(written(LIKELY), TEXT, beam_size=1).record
    assert greedy.text == "I walk home"
    assert greedy.finished[0].log_prob < record.finished[0].log_prob


LOOPING = {"": {"I": 0.9, "A": 0.1}, "I": {"I": 0.8, "A": 0.1, "</s>": 0.1}, "I A": {"A": 1.0}}


def test_what_a_constraint_forbids_is_recorded_with_the_constraint(written: Make) -> None:
    translator = written(LOOPING)
    [_, second, *_] = record_search(
        translator, TEXT, beam_size=2, no_repeat_ngram_size=1
    ).record.steps
    again = next(each for each in second.candidates if each.piece == "▁I" and each.parent == 0)
    assert (again.fate, again.reason) == ("pruned", "ngram")
    [_, second, *_] = record_search(translator, TEXT, beam_size=2, min_length=3).record.steps
    end = next(each for each in second.candidates if each.piece == "</s>")
    assert (end.fate, end.reason) == ("pruned", "min_length")
    forced = record_search(translator, TEXT, beam_size=2, prefix="A").record
    assert forced.prefix_tokens == ["▁A"]
    assert {each.piece: each.reason for each in forced.steps[0].candidates}["▁I"] == "prefix"
    suppressed = record_search(translator, TEXT, suppress=translator.tgt_vocab.encode("I")).record
    assert suppressed.steps[0].candidates[-1].reason == "forbidden"


def test_a_search_says_why_it_stopped(written: Make) -> None:
    def stop(table: Any, **options: Any) -> str:
        return record_search(written(table), TEXT, **options).record.stop.reason

    endless = {"": {"I": 1.0}, "I": {"I": 1.0}, "I I": {"I": 1.0}}
    assert stop(endless, beam_size=1, max_length=3) == "max_length"
    assert stop(endless, beam_size=2, max_length=3, early_stopping="never") == "max_length"
    assert stop(LIKELY, beam_size=1) == "eos"
    assert stop(LIKELY, beam_size=2) == "first"
    assert stop(LIKELY, beam_size=2, early_stopping="bound") == "bound"
    found = record_search(written(LIKELY), TEXT, beam_size=2).record
    assert found.stop.sentence == f"{STOPS['first']}: 2 for a beam of 2"
    left = [each for each in found.steps[-1].candidates if each.reason == "stopped"]
    assert left
    assert all(each.slot is None for each in left)
    cut = record_search(written(endless), TEXT, beam_size=2, max_length=2).record
    assert "max_length" in {each.status for each in cut.finished}
    assert cut.steps[-1].candidates[0].fate == "cut"


@given(
    seed=st.integers(0, 10_000), top_k=st.sampled_from([0, 3]), top_p=st.sampled_from([0.6, 1.0])
)
@settings(max_examples=40)
def test_a_sample_is_recorded_as_it_is_drawn(
    hash_translator: Make, seed: int, top_k: int, top_p: float
) -> None:
    """Claims 116 and 117: drawn again by hand from the recorded distribution and number."""
    translator = hash_translator(seed)
    options = {"sample": True, "seed": seed, "top_k": top_k, "top_p": top_p, "temperature": 1.3}
    search = record_search(translator, TEXT, n_best=3, **options)
    [found] = decoded(translator, **options, n_best=1)
    assert as_hypothesis(search.record, 0) == found
    for step in search.record.steps:
        assert step.draw is not None
        final = step.draw.stages[-1]
        assert final.n_allowed == step.draw.n_allowed
        drawn = next(each for each in step.candidates if each.fate != "pruned")
        likely = {each.id: each for each in step.draw.likeliest}
        assert likely[drawn.id].probabilities[-1] > 0
        assert 0 <= step.draw.uniform < 1
        if top_k:
            assert step.draw.n_allowed <= top_k
        # In the order of the search: by id, or likeliest first where a filter has sorted them.
        order = sorted(likely) if top_k == 0 and top_p == 1.0 else list(likely)
        mass = np.cumsum([likely[each].probabilities[-1] for each in order])
        if len(order) == len(likely) and math.isclose(mass[-1], 1.0):
            place = int((mass > step.draw.uniform * mass[-1]).argmax())
            assert order[place] == drawn.id


def test_distributions_are_the_models_own_whether_kept_or_computed_again(
    hash_translator: Make,
) -> None:
    """Claim 112: each step's distribution follows from the tokens before it."""
    translator = hash_translator(4)
    options: dict[str, Any] = {"beam_size": 3, "early_stopping": "never"}
    kept = record_search(translator, TEXT, **options)
    again = record_search(translator, TEXT, max_bytes=1, **options)
    assert kept.record == again.record
    model: Any = translator.model
    for step in reversed(kept.record.steps):
        at, second = kept.at(step.number), again.at(step.number)
        np.testing.assert_array_equal(at.log_probs, second.log_probs)
        np.testing.assert_array_equal(at.scores, second.scores)
        np.testing.assert_allclose(np.exp(at.log_probs).sum(axis=1), 1.0, rtol=1e-5)
        for line, row in enumerate(step.rows):
            path = (
                []
                if row.candidate is None
                else path_to(kept.record.steps, step.number - 1, row.candidate)
            )
            tokens = [translator.tgt_vocab.bos_id, *(each.id for each in path)]
            expected = model.log_probs_after(0, tokens)
            assert at.log_probs[line].tolist() == expected


@pytest.mark.parametrize("runtime", ["torch", "engine"])
@pytest.mark.parametrize("options", [{"beam_size": 3}, {"sample": True, "top_p": 0.9}])
def test_both_runtimes_are_recorded(words: Vocab, runtime: str, options: dict[str, Any]) -> None:
    torch.manual_seed(1)
    config = ModelConfig(
        src_vocab_size=words.size, tgt_vocab_size=words.size, d_model=16, n_heads=2, d_ff=16,
        n_encoder_layers=1, n_decoder_layers=1,
    )  # fmt: skip
    network = build_model(config).eval()
    weights = {name: weight.numpy() for name, weight in network.state_dict().items()}
    model: Any = {
        "torch": lambda: TorchDecodable(network, torch.device("cpu")),
        "engine": lambda: Engine(Network.of(config, weights)),
    }[runtime]()
    translator = Translator(model, words, words, options=DecodeOptions(max_length=9))
    search = record_search(translator, TEXT, **options)
    assert [as_hypothesis(search.record, 0)] == decoded(translator, **options)
    for step in search.record.steps:
        probabilities = np.exp(search.at(step.number).log_probs, dtype=np.float64)
        assert probabilities.shape == (len(step.rows), words.size)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-4)


def test_a_prefix_may_be_ids_that_no_text_spells(hash_translator: Make) -> None:
    translator = hash_translator(5)
    ids = [i for i in range(translator.tgt_vocab.size) if not translator.tgt_vocab.is_control(i)]
    found = record_search(translator, TEXT, prefix_ids=[ids[3], ids[3]], beam_size=2).record
    assert all(each.ids[:2] == [ids[3], ids[3]] for each in found.finished)
    with pytest.raises(DataError, match="must hold ids of pieces of text, below"):
        record_search(translator, TEXT, prefix_ids=[translator.tgt_vocab.size])
    with pytest.raises(DataError, match="but holds 3"):
        record_search(translator, TEXT, prefix_ids=[translator.tgt_vocab.eos_id])


@pytest.mark.parametrize("rule", ["first", "bound", "never"])
def test_a_search_that_follows_a_memory_says_why_it_stopped(
    rule: str, hash_translator: Make
) -> None:
    """A search with a strong guide stops by the bound, whatever the options say."""
    translator = hash_translator(1)
    assert remember(translator, [(TEXT, "The man sings")]) == 1
    options = {"beam_size": 3, "early_stopping": rule}
    record = record_search(translator, TEXT, **options).record
    assert record.text == translator.translate([TEXT], **options)[0].text == "The man sings"
    assert record.stop.reason == "bound"


def test_a_record_names_the_pair_that_guided_it_and_can_do_without(hash_translator: Make) -> None:
    """Without the memory, the log-probs are those of the model alone."""
    alone = record_search(hash_translator(1), TEXT, beam_size=2)
    translator = hash_translator(1)
    remember(translator, [(TEXT, "The man sings")])
    guided = record_search(translator, TEXT, beam_size=2)
    match = Match(similarity=1.0, source=TEXT, target="The man sings")
    assert guided.record.match == match
    assert guided.record.to_dict()["match"] == asdict(match)
    assert not np.array_equal(guided.at(0).log_probs, alone.at(0).log_probs)
    without = record_search(translator, TEXT, beam_size=2, use_memory=False)
    assert without.record == alone.record
    assert without.record.match is None
    np.testing.assert_array_equal(without.at(0).log_probs, alone.at(0).log_probs)


def test_only_one_sentence_can_be_recorded(hash_translator: Make) -> None:
    translator = hash_translator(6)
    with pytest.raises(DataError, match="must be a sentence, but is blank"):
        record_search(translator, "  ")
    with pytest.raises(DataError, match="must have at most 1024 tokens to be read in one piece"):
        record_search(translator, "I " * 1100)
    with pytest.raises(DataError, match="The step must lie between 0 and"):
        record_search(translator, TEXT).at(99)


def test_every_length_formula_is_written_as_it_is_computed() -> None:
    assert PENALTIES.keys() == LENGTH_FORMULAS.keys()
    for name, formula in LENGTH_FORMULAS.items():
        written = PENALTIES[name].format(length=7, alpha=0.6)
        assert math.isclose(eval(written), formula(7, 0.6))
        line = ranking_formula(-6.0, 7, formula(7, 0.6), formula=name, alpha=0.6)
        assert line.startswith(f"−6.0000 / {written}")
        assert line.endswith(f"= −{6.0 / formula(7, 0.6):.4f}")


def test_a_record_is_json_and_every_reason_has_words(hash_translator: Make) -> None:
    record = record_search(hash_translator(7), TEXT, beam_size=3, no_repeat_ngram_size=1).record
    stored = json.loads(json.dumps(record.to_dict(), allow_nan=False))
    assert stored["finished"][0]["score"] == record.finished[0].score
    reasons = {each.reason for step in record.steps for each in step.candidates}
    assert reasons - {""} <= REASONS.keys()
    assert len(reasons) > 2
