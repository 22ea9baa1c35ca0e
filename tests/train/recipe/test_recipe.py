"""The rule that fills in a recipe: what it makes of settings that depend on one another."""

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from heed.data.corpus import Corpus, DataConfig
from heed.data.prepare import prepare
from heed.errors import ConfigError
from heed.model.config import ModelConfig
from heed.text.vocab import TokenizerConfig
from heed.train.recipe import choose, recipe
from heed.train.recipe.asked import Asked
from heed.train.recipe.choose import choose_size, time_limit
from heed.train.recipe.cost import UNKNOWN, Facts
from heed.train.recipe.recipe import Recipe, draft, max_source_tokens
from heed.train.recipe.settings import settle
from heed.translate.lines import MAX_SOURCE_TOKENS, MIN_SOURCE_TOKENS


def resolve(values: Mapping[str, Any], facts: Facts = UNKNOWN, *, where: str = "") -> Any:
    return recipe.resolve(Asked(values, where), facts)


@pytest.mark.parametrize(
    ("longest", "expected"),
    [(5, MIN_SOURCE_TOKENS), (100, 100), (1000, MAX_SOURCE_TOKENS)],
)
def test_sources_in_one_piece_are_as_long_as_those_learned_from_within_limits(
    longest: int, expected: int
) -> None:
    assert max_source_tokens(resolve({}), longest) == expected


def test_a_longer_translation_has_room_for_a_longer_source() -> None:
    recipe = resolve({"data": {"max_length": 2000}, "decoding": {"max_length": 800}})
    assert max_source_tokens(recipe, 700) == 700
    assert max_source_tokens(recipe, 1500) == 800


def test_no_source_is_longer_than_the_positions_learned() -> None:
    recipe = resolve(
        {"model": {"positions": "learned", "max_positions": 40}, "data": {"max_length": 38}}
    )
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


@pytest.mark.parametrize("max_steps", [100, 600, 3000, 50_000])
def test_a_run_of_steps_is_the_same_on_every_machine(max_steps: int) -> None:
    asked = {"training": {"max_steps": max_steps}}
    slow, fast = (resolve(asked, replace(UNKNOWN, gflops=speed)) for speed in (5.0, 5e4))
    assert slow == fast


def test_a_run_of_steps_drops_by_the_epochs_that_it_makes() -> None:
    def dropout(max_steps: int, **training: int) -> float:
        return resolve({"training": {"max_steps": max_steps, **training}}).model.dropout

    # 500,000 target tokens an epoch: 5 million are 10 epochs, 20 million are 40.
    sizes = {"batch_tokens": 1000, "first_batch_tokens": 1000}
    assert dropout(5000, **sizes) == 0.1 < dropout(9000, **sizes) < dropout(20_000, **sizes) == 0.3
    # Processes that accumulate differently must end with the same weights.
    assert dropout(9000, accumulate=4, **sizes) == dropout(9000, **sizes)


def test_a_speed_measured_a_tenth_higher_hardly_changes_dropout() -> None:
    epochs = [1.1**k for k in range(60)]
    rates = [choose.choose_dropout(each) for each in epochs]
    steps = [after - before for before, after in itertools.pairwise(rates)]
    assert (rates[0], rates[-1]) == (0.1, 0.3)
    assert all(0 <= step <= 0.0201 for step in steps)
    assert choose.choose_dropout(20.0) == 0.2


@pytest.mark.parametrize(
    ("settings", "positions"),
    [
        ({}, "rotary"),
        ({"family": "decoder"}, "rotary"),
        ({"positions": "learned"}, "learned"),
        ({"n_heads": 8, "d_k": 3}, "sinusoidal"),
        ({"attention": "linear"}, "sinusoidal"),
        ({"decoder_attention": "merged"}, "sinusoidal"),
        ({"decoder_self": "average"}, "sinusoidal"),
        ({"normalize_positions": True}, "sinusoidal"),
        ({"family": "conv"}, "sinusoidal"),
    ],
)
def test_positions_are_rotary_where_the_other_settings_allow_it(
    settings: dict[str, Any], positions: str
) -> None:
    assert resolve({"model": settings}).model.positions == positions


def test_fewer_pairs_are_disturbed_in_a_short_run() -> None:
    shares = [
        resolve({"training": {"max_steps": steps}}).data.disturb
        for steps in (100, 600, 2400, 20_000)
    ]
    assert shares == sorted(shares)
    assert shares[0] == 0.05
    assert shares[-1] == 0.2
    assert resolve({"task": "lm"}).data.disturb == 0


@pytest.mark.parametrize(
    ("n_pairs", "steps", "settings", "is_on"),
    [
        (5_000, 3_000, {}, True),
        (5_000, 100, {}, False),
        (500, 3_000, {}, False),
        (10_000, 6_000, {}, True),
        (13_000, 8_000, {}, False),
        (30_000, 3_000, {}, False),
        (5_000, 3_000, {"training": {"parent": "run"}}, False),
        (5_000, 3_000, {"task": "lm"}, False),
        (10_000, 3_000, {"data": {"both_directions": True}}, True),
        (1_600, 3_000, {"data": {"both_directions": True}}, False),
        (5_000, 3_000, {"data": {"recombine": 0.0}}, False),
    ],
)
def test_few_pairs_that_are_read_often_exchange_phrases(
    n_pairs: int, steps: int, settings: dict[str, Any], is_on: bool
) -> None:
    facts = replace(UNKNOWN, n_pairs=n_pairs, n_tgt_tokens=18 * n_pairs)
    training = {**settings.get("training", {}), "max_steps": steps}
    found = resolve({**settings, "training": training}, facts)
    assert (found.data.recombine > 0) is is_on


@pytest.mark.parametrize(("n_pairs", "is_few"), [(5_000, True), (500, False), (13_000, False)])
def test_pairs_that_teachers_have_made_do_not_count_among_few_pairs(
    n_pairs: int, is_few: bool
) -> None:
    facts = replace(UNKNOWN, n_pairs=4 * n_pairs, n_made=3 * n_pairs, n_tgt_tokens=72 * n_pairs)
    found = resolve({"training": {"max_steps": 12_000}}, facts)
    assert (found.data.recombine > 0, found.decoding.beam_size) == (is_few, 10 if is_few else 5)


@pytest.mark.parametrize(
    ("n_pairs", "settings", "width"),
    [
        (5_000, {}, 128),
        (12_000, {}, 128),
        (13_000, {}, 256),
        (5_000, {"preset": "small"}, 256),
        (5_000, {"training": {"time_s": "9h"}}, 256),
        (5_000, {"task": "lm"}, 256),  # not measured
    ],
)
def test_few_pairs_get_the_smallest_model_where_steps_alone_choose(
    n_pairs: int, settings: dict[str, Any], width: int
) -> None:
    facts = replace(UNKNOWN, n_pairs=n_pairs, n_src_tokens=90_000, n_tgt_tokens=90_000)
    training = {**settings.get("training", {}), "max_steps": 40_000}
    assert resolve({**settings, "training": training}, facts).model.d_model == width


def test_a_run_of_few_steps_has_small_batches() -> None:
    few, many = (
        resolve({"training": {"max_steps": n}}).training.batch_tokens for n in (100, 100_000)
    )
    assert few < 1024 < many


def test_a_run_without_a_limit_of_time_is_sized_by_its_steps() -> None:
    for steps in (20, 3_000, 100_000):
        alone = resolve({"training": {"max_steps": steps}})
        assert resolve({"training": {"max_steps": steps, "time_s": "none"}}) == alone
    assert alone.training.time_s is None
    assert resolve({"training": {"time_s": "None"}}).training.time_s is None


@pytest.mark.parametrize(
    ("training", "limit"),
    [
        ({}, 1800.0),
        ({"time_s": "1m"}, 60.0),
        ({"time_s": "1m", "max_steps": 9}, 60.0),
        ({"max_steps": 9}, None),
        ({"time_s": "none", "max_steps": 9}, None),
        ({"time_s": "none"}, None),
    ],
)
def test_the_limit_of_time_is_what_was_asked_for(
    training: dict[str, Any], limit: float | None
) -> None:
    assert time_limit(Asked({"training": training})) == limit


def test_a_run_of_few_steps_validates_less_often() -> None:
    runs = {"max_steps": 1}, {"max_steps": 20}, {"max_steps": 60}, {"max_steps": 10_000}
    assert [resolve({"training": run}).training.validations for run in runs] == [1, 1, 3, 10]
    asked = {"max_steps": 20, "validations": 7}
    assert resolve({"training": asked}).training.validations == 7
    assert resolve({"training": {"max_steps": 20, "time_s": 60}}).training.validations == 10


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


def test_matrices_decay_where_muon_moves_them_and_nothing_was_learned_before() -> None:
    def decay(**training: str) -> float:
        return resolve({"training": training}).training.weight_decay

    assert decay() == choose.WEIGHT_DECAY > 0
    assert decay(optimizer="adam") == decay(optimizer="adamw") == decay(parent="model") == 0


def test_beside_muon_dead_features_are_revived() -> None:
    def revives(**training: str) -> bool:
        return resolve({"training": training}).training.revive_features

    assert revives()
    assert not revives(optimizer="adam")
    assert not revives(optimizer="adamw")


def test_only_adam_keeps_its_long_warm_up_in_a_short_run() -> None:
    def warmup(steps: int, **training: str) -> int:
        return resolve({"training": {"max_steps": steps, **training}}).training.warmup_steps

    assert warmup(300) == 10
    assert warmup(100_000) == warmup(300, optimizer="adam") == 100


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("pad_id", 1, "follows from the vocabulary, where it is 0, but is set to 1. Leave it out."),
        ("pad_id", False, "where it is 0, but is set to False"),
        ("bos_id", 2.0, "where it is 2, but is set to 2.0"),
        ("eos_id", "3", "where it is 3, but is set to '3'"),
        ("src_vocab_size", "x", "and is a whole number, but is set to 'x'"),
    ],
)
def test_what_follows_from_the_vocabulary_cannot_be_set_otherwise(
    key: str, value: object, words: str
) -> None:
    with pytest.raises(ConfigError, match=rf"^recipe\.toml: model\.{key} .*{re.escape(words)}"):
        resolve({"model": {key: value}}, where="recipe.toml")


@pytest.mark.parametrize(("task", "pooling"), [("mlm", "mean"), ("classify", "none")])
def test_the_task_decides_whether_vectors_of_tokens_are_averaged(task: str, pooling: str) -> None:
    asked = {"task": task, "model": {"family": "encoder"}}
    assert resolve(asked).model.pooling != pooling
    with pytest.raises(ConfigError, match=rf"^model\.pooling must be .*task {task}, but is"):
        resolve({**asked, "model": {"family": "encoder", "pooling": pooling}})


def test_sizes_of_vocabularies_are_compared_once_they_are_known() -> None:
    asked = {"model": {"src_vocab_size": 9000, "tgt_vocab_size": 500, "eos_id": 3}}
    assert resolve(asked).model.src_vocab_size == UNKNOWN.src_vocab_size
    known = replace(UNKNOWN, src_vocab_size=9000, tgt_vocab_size=400, is_guess=False)
    with pytest.raises(ConfigError, match=r"^model\.tgt_vocab_size .* is 400, but is set to 500"):
        resolve(asked, known)
    right = replace(known, tgt_vocab_size=500)
    assert resolve(asked, right).model.tgt_vocab_size == 500


def test_special_ids_are_those_of_the_vocabulary_that_is_taken_over() -> None:
    asked = {"tokenizer": {"vocab_from": "model"}, "model": {"bos_id": 1, "eos_id": 2}}
    resolve(asked)
    other = replace(UNKNOWN, special_ids={"pad_id": 0, "bos_id": 1, "eos_id": 2}, is_guess=False)
    assert resolve({**asked, "model": {}}, other).model.eos_id == 2
    with pytest.raises(ConfigError, match=r"model\.bos_id .* where it is 2, but is set to 1"):
        resolve(asked, replace(UNKNOWN, is_guess=False))


@pytest.mark.parametrize("is_joint", [True, False])
def test_pieces_that_are_taken_over_decide_their_kind_and_what_is_shared(
    small_corpus: Corpus, tmp_path: Path, is_joint: bool
) -> None:
    own = TokenizerConfig(kind="char", joint=is_joint, vocab_size=300)
    folder = tmp_path / "data"
    data = prepare(small_corpus, folder, config=DataConfig(), tokenizer=own, seed=1)
    assert data.src_vocab.size == data.tgt_vocab.size
    asked = Asked({"tokenizer": {"vocab_from": str(folder)}})
    recipe = settle(tmp_path, asked, data, lambda: 30.0, {})
    assert (recipe.tokenizer.kind, recipe.tokenizer.joint) == ("char", is_joint)
    assert isinstance(recipe.model, ModelConfig)
    assert recipe.model.tied == ("three-way" if is_joint else "output")
    draft(asked.plus("tokenizer.kind", "char"))
    for name, wrong in (("kind", "bpe"), ("joint", not is_joint)):
        with pytest.raises(ConfigError, match=rf"tokenizer\.{name} cannot be .* of .*data, where"):
            draft(asked.plus(f"tokenizer.{name}", wrong))
    if not is_joint:
        with pytest.raises(ConfigError, match="needs one vocabulary .*, but .*data has two"):
            draft(asked.plus("data.both_directions", True))


def test_all_mistakes_of_a_recipe_are_told_at_once_also_where_sections_are_no_sections() -> None:
    asked = {
        "preset": ["tiny"],
        "model": 5,
        "decoding": [3],
        "training": {"time_s": "soon"},
        "modle": {"d_model": 3},
    }
    with pytest.raises(ConfigError) as caught:
        resolve(asked, where="recipe.toml")
    assert str(caught.value).splitlines() == [
        "5 settings are wrong:",
        "  recipe.toml: preset must be one of tiny, small, base, big, student, but is ['tiny'].",
        "  recipe.toml: modle is not a setting; did you mean model?",
        "  recipe.toml: model must be a section, but is 5.",
        "  recipe.toml: training.time_s: a duration is written like 90s, 30min, 2h or 1h30m, but "
        "not 'soon'.",
        "  recipe.toml: decoding must be a section, but is [3].",
    ]


ODD: tuple[Any, ...] = (
    None,
    True,
    5,
    -1,
    0,
    1.5,
    math.nan,
    math.inf,
    10**400,
    "x",
    "1e999",
    [],
    ["tiny"],
    {"a": 1},
)


def settings_of(section: type[Any], trail: str = "") -> Iterator[str]:
    for field in fields(section):
        yield (name := f"{trail}{field.name}")
        if is_dataclass(inner := get_type_hints(section)[field.name]):
            yield from settings_of(inner, f"{name}.")


@pytest.mark.parametrize("key", ["preset", *settings_of(Recipe)])
def test_no_value_of_a_setting_is_a_mistake_of_heed_itself(key: str) -> None:
    section, _, name = key.rpartition(".")
    for value in ODD:
        with suppress(ConfigError):
            resolve({section: {name: value}} if section else {name: value})


def test_a_model_larger_than_the_memory_is_refused_before_it_is_allocated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wide = {"model": {"d_model": 1 << 20, "d_ff": 1 << 20}, "training": {"device": "cpu"}}
    with pytest.raises(ConfigError, match=r"needs at least 844,527\.0 GB of memory for training"):
        resolve(wide)
    monkeypatch.setattr(recipe, "spare_host_memory", lambda: 20e6)
    words = (
        r"^the model has 2,349,568 parameters and needs at least 28\.2 MB of memory for training, "
        r"but only 20\.0 MB are available\. Lower model\.d_model, model\.d_ff, the numbers of "
        r"layers or the vocabulary\.$"
    )
    with pytest.raises(ConfigError, match=words):
        resolve({"preset": "tiny", "training": {"device": "cpu"}})
    resolve({"preset": "tiny", "training": {"device": "cuda"}})  # the rest lies in the GPU's memory
    resolve({"preset": "tiny", "training": {"shard": True}})


@pytest.mark.parametrize("value", ["soon", [1], True])
def test_a_time_that_is_none_is_told_with_its_key_and_file(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"^my\.toml: training\.time_s"):
        resolve({"training": {"time_s": value}}, where="my.toml")


def test_a_recipe_of_an_older_heed_is_read_in_todays_words() -> None:
    old: dict[str, Any] = {
        "training": {"packed": False, "compile": False, "first_embeddings": "company"},
        "decoding": {"alpha": 1.4, "length_penalty": "power"},
    }
    recipe = resolve(old)
    assert recipe.training.first_embeddings == "cooccurrence"
    assert (recipe.decoding.length_penalty, recipe.decoding.length_formula) == (1.4, "power")
    with pytest.raises(ConfigError, match=r"training\.packed is not a setting"):
        resolve({"training": {"packed": True}})
