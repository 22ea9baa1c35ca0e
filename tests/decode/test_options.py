import math
from typing import Any

import pytest

from heed.decode.early_stopping import EARLY_STOPPING
from heed.decode.length_penalty import LENGTH_FORMULAS
from heed.decode.options import (
    DecodeOptions,
    options_from,
    require_storable,
    with_alternatives,
    with_new_names,
)
from heed.errors import ConfigError


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"beam_size": 0},
            r"decoding.beam_size must be a whole number from 1 to 1024, but is 0. Use 1",
        ),
        ({"beam_size": 2.5}, r"decoding.beam_size must be a whole number .*, but is 2.5"),
        ({"beam_size": True}, r"decoding.beam_size must be a whole number .*, but is True"),
        (
            {"n_best": 6},
            r"decoding.n_best must be at most decoding.beam_size \(5\), but is 6. Raise",
        ),
        ({"length_formula": "gmnt"}, r"length_formula must be one of gnmt, power, none, but is"),
        ({"early_stopping": True}, r"early_stopping must be one of first, bound, never, but is T"),
        ({"length_penalty": math.nan}, r"length_penalty must be a number from 0 to 10, but is nan"),
        ({"length_penalty": "1"}, r"length_penalty must be a number from 0 to 10, but is '1'"),
        ({"max_length": 0}, r"decoding.max_length must be a whole number from 1 to 4096, but is 0"),
        ({"max_length_factor": -1.0}, r"decoding.max_length_factor must be a number from 0 to 100"),
        (
            {"max_length_offset": math.inf},
            r"decoding.max_length_offset must be a number from 0 to 4096, but is inf",
        ),
        ({"max_length": 4097}, r"from 1 to 4096, but is 4097. 256 suits sentences."),
        ({"max_length": 10**400}, r"from 1 to 4096, but is 1000"),
        (
            {"max_length_offset": 5000},
            r"decoding.max_length_offset must be a number from 0 to 4096",
        ),
        (
            {"min_length": 256},
            r"decoding.min_length must be below decoding.max_length \(256\), but",
        ),
        ({"sample": 1}, r"decoding.sample must be true or false, but is 1"),
        ({"temperature": 0.0, "sample": True}, r"temperature must be a number from 0.001 to 1000"),
        ({"temperature": 0.7}, r"temperature must be 1.0 unless decoding.sample is on, but is"),
        ({"top_k": 5}, r"decoding.top_k must be 0 unless decoding.sample is on, but is 5"),
        (
            {"top_p": 1.5, "sample": True},
            r"decoding.top_p must be a number from 0 to 1, but is 1.5",
        ),
        (
            {"min_p": -0.1, "sample": True},
            r"decoding.min_p must be a number from 0 to 1, but is -0.1",
        ),
        ({"seed": -1}, r"decoding.seed must be a whole number from 0 to \d+, but is -1"),
        (
            {"no_repeat_ngram_size": -1},
            r"decoding.no_repeat_ngram_size must be a whole number from 0 to 1000",
        ),
        (
            {"repetition_penalty": 0.5},
            r"decoding.repetition_penalty must be a number from 1 to 100",
        ),
        (
            {"suppress": (1.5,)},
            r"decoding.suppress must be a list, each a whole number .*, but is \(1.5",
        ),
        (
            {"suppress": (2**31,)},
            r"suppress must be a list, each .* from 0 to 2147483647, but is \(2147483648,",
        ),
        (
            {"suppress": "12"},
            r"decoding.suppress must be a list, each a whole number .*, but is '12'",
        ),
    ],
)
def test_an_impossible_setting_is_refused_in_words(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        DecodeOptions(**given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"beam_size": 65},
            r"beam_size must be at most 64 where it is stored .*, but is 65. A sin",
        ),
        (
            {"n_best": 65, "sample": True},
            r"n_best must be at most 64 where it is stored with a model",
        ),
        ({"max_length_factor": 20.5}, r"max_length_factor must be at most 20.0 where .* is 20.5"),
        ({"max_length_offset": 257}, r"max_length_offset must be at most 256.0 where .* is 257"),
    ],
)
def test_a_call_may_ask_for_more_than_a_model_folder(given: dict[str, Any], words: str) -> None:
    options = DecodeOptions(**given)
    with pytest.raises(ConfigError, match=rf"^decoding\.{words}"):
        require_storable(options)
    require_storable(DecodeOptions(beam_size=64, max_length_factor=20, max_length_offset=256))


def test_a_list_from_a_file_becomes_a_tuple() -> None:
    assert DecodeOptions(suppress=[4, 5]).suppress == (4, 5)


def test_samples_may_outnumber_the_beam() -> None:
    assert DecodeOptions(sample=True, n_best=9).n_best == 9


def test_alternatives_widen_only_a_beam_that_is_too_narrow() -> None:
    wide = with_alternatives(DecodeOptions(beam_size=5), 2)
    assert (wide.beam_size, wide.n_best) == (5, 5)
    narrow = with_alternatives(DecodeOptions(beam_size=1), 2)
    assert (narrow.beam_size, narrow.n_best) == (3, 3)
    drawn = with_alternatives(DecodeOptions(sample=True, n_best=2), 4)
    assert (drawn.beam_size, drawn.n_best) == (5, 5)


@pytest.mark.parametrize("name", LENGTH_FORMULAS)
def test_alpha_zero_is_neutral_and_no_penalty_falls_with_length(name: str) -> None:
    penalty = LENGTH_FORMULAS[name]
    assert [penalty(length, 0.0) for length in (1, 2, 50)] == [1.0, 1.0, 1.0]
    divisors = [penalty(length, 0.6) for length in range(1, 50)]
    assert divisors == sorted(divisors)


def test_length_penalties_are_their_formulas() -> None:
    assert LENGTH_FORMULAS["gnmt"](7, 0.5) == pytest.approx(math.sqrt(2.0))
    assert LENGTH_FORMULAS["power"](9, 0.5) == pytest.approx(3.0)
    assert LENGTH_FORMULAS["none"](9, 0.5) == 1.0


def test_the_documented_defaults_exist() -> None:
    options = DecodeOptions()
    assert options.length_formula in LENGTH_FORMULAS
    assert options.early_stopping in EARLY_STOPPING


def test_options_of_an_older_heed_have_todays_names() -> None:
    old = {"alpha": 1.0, "length_penalty": "power", "beam_size": 3}
    new: dict[str, Any] = {"length_penalty": 1.0, "length_formula": "power", "beam_size": 3}
    assert with_new_names(old) == with_new_names(new) == new
    with pytest.warns(FutureWarning, match="alpha is now called length_penalty"):
        assert options_from(DecodeOptions(), old) == DecodeOptions(**new)
