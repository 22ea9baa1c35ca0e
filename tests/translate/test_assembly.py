"""The translation of a part from those of its halves."""

import pytest

from heed.translate.assembly import UNWANTED, join_halves
from heed.translate.result import Status, Translation


def half(text: str, status: Status = "ok") -> Translation:
    return Translation(text=text, tokens=[text], token_scores=[-0.1, -0.1], status=status)


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [("ok", "ok", "split"), ("max_length", "ok", "max_length"), ("ok", "max_length", "max_length")],
)
def test_a_translation_is_cut_off_if_one_of_its_halves_is(
    first: Status, second: Status, status: Status
) -> None:
    joined = join_halves([half("Der Hund", first), half("schläft", second)])
    assert (joined.text, joined.status) == ("Der Hund schläft", status)


def test_a_translation_with_an_unwanted_half_is_unwanted() -> None:
    assert join_halves([half("Der Hund", "max_length"), UNWANTED]) == UNWANTED
