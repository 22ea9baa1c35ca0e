"""Hard alignments, their files and AER, by hand."""

from pathlib import Path

import numpy as np
import pytest

from heed.errors import DataError
from heed.explain.attention.links import (
    Gold,
    error_rate,
    grow_diag,
    pharaoh,
    read_gold,
    strongest,
    strongest_readers,
)


def test_links_of_both_directions() -> None:
    weights = np.array([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1]], np.float32)
    assert strongest(weights) == {(0, 0), (0, 1)}
    assert strongest_readers(weights) == {(0, 0), (1, 1), (2, 0)}
    assert pharaoh({(2, 0), (0, 1), (0, 0)}) == "0-0 2-0 0-1"


def test_growing_takes_neighbors_without_a_partner() -> None:
    one, other = {(0, 0), (1, 1), (4, 4)}, {(0, 0), (1, 2), (5, 0)}
    # (1, 1) touches (0, 0); then (1, 2) touches (1, 1), and 2 has no partner yet; (4, 4) and
    # (5, 0) touch nothing.
    assert grow_diag(one, other) == {(0, 0), (1, 1), (1, 2)}


def test_error_rate_by_hand() -> None:
    """Och and Ney 2003: |A| = 3, |S| = 2, |A ∩ S| = 1, |A ∩ P| = 2."""
    gold = Gold(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (2, 1)}))
    assert error_rate([{(0, 0), (2, 1), (3, 3)}], [gold]) == pytest.approx(1 - 3 / 5)
    assert error_rate([{(0, 0), (1, 1)}], [gold]) == 0
    assert error_rate([set()], [Gold(frozenset(), frozenset())]) == 0
    two = error_rate([{(0, 0), (2, 1), (3, 3)}, {(0, 0), (1, 1)}], [gold, gold])
    assert two == pytest.approx(1 - (3 + 4) / (5 + 4))


def test_both_kinds_of_gold_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "gold"
    path.write_text("0-0 1?1\n\n2p0\n")
    assert read_gold(path, 3) == [
        Gold(frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)})),
        Gold(frozenset(), frozenset()),
        Gold(frozenset(), frozenset({(2, 0)})),
    ]
    path.write_text("0001 1 1 S\n0001 2 2 P\n3 3 1\n")
    assert read_gold(path, 3) == [
        Gold(frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)})),
        Gold(frozenset(), frozenset()),
        Gold(frozenset({(2, 0)}), frozenset({(2, 0)})),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0-0 1+1\n", r"line 1: a link must be like 3-5 or 3\?5, but is '1\+1'"),
        ("1 1 1 S\n1 0 1 S\n", "line 2: a link must be like 1 3 5 S, from 1, but is '1 0 1 S'"),
        ("3 1 1 S\n", "must have pairs from 1 to 2, but has pair 3"),
        ("1 1 1 S\n0 1 1 S\n", "must have pairs from 1 to 2, but has pair 0"),
        ("0-0\n", "must have alignments of 2 pairs, but has 1"),
    ],
)
def test_files_of_another_kind_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "gold"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_gold(path, 2)
