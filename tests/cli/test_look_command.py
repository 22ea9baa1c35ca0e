import json
from collections.abc import Callable
from typing import Any

import pytest


def test_next_word_shows_probabilities_from_large_to_small(
    call: Callable[..., Any], model: str
) -> None:
    """Claim 3."""
    code, out, _ = call("next-word", "-m", model, "纽约是一座城市", "--prefix", "New", "-k", "4")
    assert code == 0
    chances = [float(line.split()[0]) for line in out.splitlines()]
    assert len(chances) == 4
    assert chances == sorted(chances, reverse=True)
    records = json.loads(call("next-word", "-m", model, "纽约是一座城市", "--json")[1])
    assert len(records) == 10
    assert set(records[0]) == {"token", "probability"}


def test_align_draws_a_row_per_target_piece(call: Callable[..., Any], model: str) -> None:
    """Claim 65."""
    code, out, _ = call("align", "-m", model, "纽约是一座城市", "New York")
    assert code == 0
    record = json.loads(call("align", "-m", model, "纽约是一座城市", "New York", "--json")[1])
    assert len(out.splitlines()) == 1 + len(record["target_tokens"])
    assert len(record["weights"]) == len(record["target_tokens"])
    assert {len(row) for row in record["weights"]} == {len(record["source_tokens"])}


def test_align_refuses_a_layer_that_is_not_there(call: Callable[..., Any], model: str) -> None:
    code, _, err = call("align", "-m", model, "A", "B", "--layer", "7")
    assert code == 1
    assert "layer must lie between -1 and 0, but is 7." in err


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["next-word", "LONG"], "source"),
        (["next-word", "A", "--prefix", "LONG"], "prefix"),
        (["align", "LONG"], "source"),
        (["align", "A", "LONG"], "translation"),
    ],
)
def test_a_text_too_long_to_be_read_in_one_piece_is_refused(
    call: Callable[..., Any], model: str, arguments: list[str], what: str
) -> None:
    long = "city " * 10_000
    arguments = [long if argument == "LONG" else argument for argument in arguments]
    code, out, err = call(*arguments, "-m", model)
    assert (code, out) == (1, "")
    assert (
        f"heed: The {what} must have at most 1024 tokens to be read in one piece, but has " in err
    )
    assert "Give one sentence of it." in err


@pytest.mark.parametrize("name", ["next-word", "align"])
def test_a_text_is_needed(call: Callable[..., Any], name: str) -> None:
    code, _, err = call(name)
    assert code == 2
    assert "missing argument 'TEXT'" in err
