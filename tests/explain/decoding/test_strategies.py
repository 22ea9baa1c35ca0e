from collections.abc import Callable

import numpy as np
import pytest

from heed.explain.decoding import observe
from heed.explain.decoding.recorded import record_search
from heed.explain.decoding.strategies import (
    allowed_per_step,
    has_loop,
    loop_lines,
    loop_rates,
    sample_lines,
)
from heed.translate.translator import Translator

Make = Callable[..., Translator]
TEXT = "I walk home"


@pytest.mark.parametrize(
    ("tokens", "loops"),
    [
        ("a b c a b c a b c", True),
        ("x a b c a b c a b c y", True),
        ("a a a", True),
        ("a a", False),
        ("a b a b a", False),
        ("a b c a b c a b", False),
        ("", False),
    ],
)
def test_a_loop_is_a_phrase_three_times_in_a_row(tokens: str, loops: bool) -> None:
    assert has_loop(tokens.split()) is loops


def test_a_loop_is_found_wherever_it_stands() -> None:
    chance = np.random.default_rng(5)
    for _ in range(300):
        tokens = chance.integers(0, 3, size=chance.integers(0, 14)).tolist()
        expected = any(
            tokens[start : start + n] * 3 == tokens[start : start + 3 * n]
            for n in range(1, len(tokens) // 3 + 1)
            for start in range(len(tokens) - 3 * n + 1)
        )
        assert has_loop(tokens) is expected


def test_greedy_loops_where_sampling_does_not(written: Make) -> None:
    """Claim 116: the likeliest word again and again, which other draws leave."""
    so_far = [" ".join(["I"] * count) for count in range(9)]
    table = {text: {"I": 0.6, "</s>": 0.4} for text in so_far}
    ways = {"greedy": {"beam_size": 1}, "top-k 2": {"sample": True, "top_k": 2}}
    greedy, sampled = loop_rates(written(table, max_length=9), [TEXT] * 40, ways)
    assert greedy.rate == 1.0
    assert greedy.n_cut == 40
    # Three in a row need 0.6 ** 3; the range holds with more than 99.9 %.
    assert 0.0 < sampled.rate < 0.5
    assert loop_lines([greedy]) == ["greedy  100.00% loop (40 of 40), 40 cut at the limit"]


def test_the_k_of_top_p_changes_from_step_to_step(written: Make) -> None:
    """Claim 117: the smallest set above p, wide where the model doubts."""
    table = {"": {"I": 0.9, "A": 0.1}, "I": {"man": 0.3, "dog": 0.3, "sing": 0.2, "walk": 0.2}}
    sizes = allowed_per_step(written(table), [TEXT], top_p=0.8, seed=1)
    assert sizes == [[1, 4, 1]]


@pytest.mark.parametrize("n_likeliest", [0, 20])
def test_a_sample_is_written_with_its_distributions_before_and_after(
    written: Make, monkeypatch: pytest.MonkeyPatch, n_likeliest: int
) -> None:
    """Also where the drawn token is not among the most probable ones, which a record lists."""
    monkeypatch.setattr(observe, "N_LIKELIEST", n_likeliest)
    table = {"": {"I": 0.9, "A": 0.1}, "I": {"man": 0.4, "dog": 0.4, "sing": 0.2}}
    found = record_search(written(table), TEXT, sample=True, top_k=2, top_p=0.7, seed=1)
    head, first, second, last = (line.split() for line in sample_lines(found.record))
    assert head == ["drawn", "of", "p", "filtered", "bits", "filters"]
    entropy = -(0.9 * np.log2(0.9) + 0.1 * np.log2(0.1))
    assert first[:4] == ["▁I", "1", "0.9000", "1.0000"]
    assert float(first[4]) == pytest.approx(entropy, abs=0.005)
    assert first[7:] == ["top_k", "2", "leaves", "2,", "top_p", "0.7", "leaves", "1"]
    assert second[0] in {"▁man", "▁dog"}
    assert second[1:4] == ["2", "0.4000", "0.5000"]
    assert second[4:7] == ["1.52", "->", "1.00"]
    assert last[0] == "</s>"
