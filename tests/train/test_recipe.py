"""The rule that fills in a recipe: what it makes of settings that depend on one another."""

from dataclasses import replace

import pytest

from heed.errors import ConfigError
from heed.lines import MAX_SOURCE_TOKENS, MIN_SOURCE_TOKENS
from heed.train import optimizer, recipe
from heed.train.recipe import UNKNOWN, choose_size, max_source_tokens, resolve


@pytest.mark.parametrize(
    ("longest", "expected"),
    [(5, MIN_SOURCE_TOKENS), (100, 100), (1000, MAX_SOURCE_TOKENS)],
)
def test_sources_in_one_piece_are_as_long_as_those_learnt_from_within_limits(
    longest: int, expected: int
) -> None:
    assert max_source_tokens(resolve({}), longest) == expected


def test_a_longer_translation_has_room_for_a_longer_source() -> None:
    recipe = resolve({"data": {"max_length": 2000}, "decoding": {"max_length": 800}})
    assert max_source_tokens(recipe, 700) == 700
    assert max_source_tokens(recipe, 1500) == 800


def test_no_source_is_longer_than_the_positions_learnt() -> None:
    recipe = resolve({"model": {"positions": "learned", "max_positions": 40}})
    assert max_source_tokens(recipe, 100) == 38


def test_separate_vocabularies_share_no_embedding() -> None:
    assert resolve({}).model.tied == "three-way"
    assert resolve({"tokenizer": {"joint": False}}).model.tied == "output"


@pytest.mark.parametrize(
    ("gflops", "n_pairs", "hours", "expected"),
    [
        (100.0, 30_000, 0.5, "tiny"),
        (100.0, 30_000, 8, "small"),
        (40_000.0, 30_000, 8, "small"),  # there are too few pairs for more
        (40_000.0, 1_000_000, 1, "base"),
        (40_000.0, 5_000_000, 5, "big"),
    ],
)
def test_the_size_fits_the_time_the_machine_and_the_corpus(
    gflops: float, n_pairs: int, hours: float, expected: str
) -> None:
    n_tokens = 20 * n_pairs
    facts = replace(
        UNKNOWN, gflops=gflops, n_pairs=n_pairs, n_src_tokens=n_tokens, n_tgt_tokens=n_tokens
    )
    assert choose_size(facts, 3600 * hours) == expected


def batch_tokens(time: str, n_tgt_tokens: int) -> int:
    facts = replace(UNKNOWN, n_src_tokens=n_tgt_tokens, n_tgt_tokens=n_tgt_tokens)
    training = resolve({"preset": "small", "training": {"time_s": time}}, facts).training
    assert training.first_batch_tokens == training.batch_tokens // 2
    return training.batch_tokens


def test_batches_grow_with_the_time_and_with_the_corpus() -> None:
    sizes = [batch_tokens(time, 500_000) for time in ("1m", "5m", "20m", "60m", "10h")]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[1] < sizes[2] < sizes[3] <= 4096
    assert sizes[-1] == 4096
    assert batch_tokens("10h", 50_000) < 1000


def test_a_larger_shape_than_the_presets_sees_less_in_its_time_and_drops_less() -> None:
    timed = {"training": {"time_s": "1h"}}
    usual, wide = (resolve({**timed, "model": model}) for model in ({}, {"d_ff": 8192}))
    assert wide.training.batch_tokens < usual.training.batch_tokens
    assert wide.model.dropout < usual.model.dropout


def test_a_run_of_few_steps_has_small_batches() -> None:
    few, many = (
        resolve({"training": {"max_steps": n}}).training.batch_tokens for n in (100, 100_000)
    )
    assert few < 1024 < many


def test_batches_never_begin_larger_than_asked_for() -> None:
    training = resolve({"training": {"batch_tokens": 64, "time_s": "10h"}}).training
    assert (training.first_batch_tokens, training.batch_tokens) == (64, 64)


def test_muon_rests_more_often_the_smaller_the_batch() -> None:
    every = [
        resolve({"preset": "small", "training": {"batch_tokens": n}}).training.matrix_every
        for n in (256, 2048, 4096, 100_000)
    ]
    assert every == sorted(every, reverse=True)
    assert every[0] == 4
    assert every[-1] == 1


def test_the_rule_counts_the_polynomials_there_are() -> None:
    assert len(optimizer.POLYNOMIALS) == recipe.POLYNOMIALS


def test_each_optimizer_gets_a_rate_it_bears() -> None:
    def rate(**training: str) -> float:
        return resolve({"training": training}).training.learning_rate

    assert rate(optimizer="adamw") == 1e-3 < rate(optimizer="muon")
    assert rate(optimizer="adam", schedule="paper") == 1.0


def test_embeddings_that_know_something_get_a_lower_rate() -> None:
    def rate(**training: str) -> float:
        return resolve({"training": training}).training.learning_rate

    assert rate() < rate(first_embeddings="random")
    assert rate(parent="model") == rate(parent="model", first_embeddings="random")


def test_matrices_decay_where_muon_moves_them_and_nothing_was_learnt_before() -> None:
    def decay(**training: str) -> float:
        return resolve({"training": training}).training.weight_decay

    assert decay() == recipe.WEIGHT_DECAY > 0
    assert decay(optimizer="adam") == decay(optimizer="adamw") == decay(parent="model") == 0


def test_only_adam_keeps_its_long_warm_up_in_a_short_run() -> None:
    def warmup(steps: int, **training: str) -> int:
        return resolve({"training": {"max_steps": steps, **training}}).training.warmup_steps

    assert warmup(300) == 10
    assert warmup(100_000) == warmup(300, optimizer="adam") == 100


@pytest.mark.parametrize("value", ["soon", [1], True])
def test_a_time_that_is_none_is_told_with_its_key_and_file(value):
    with pytest.raises(ConfigError, match=r"^my\.toml: training\.time_s"):
        resolve({"training": {"time_s": value}}, where="my.toml")
