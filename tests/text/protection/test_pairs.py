"""Pairs of marks: none crosses another, and each is the nearest that fits."""

from hypothesis import given
from hypothesis import strategies as st

from heed.text.protection.pairs import Mark, nest, nest_within


def marks_of(signs: str) -> list[Mark]:
    """Small letters open, capitals close, and `*` does both."""
    return [
        Mark(place, place + 1, sign.lower(), not sign.isupper(), not sign.islower(), False)
        for place, sign in enumerate(signs)
    ]


def places(signs: str) -> list[tuple[int, int]]:
    return sorted((first.start, second.start) for first, second in nest(marks_of(signs)))


def test_a_closing_mark_belongs_to_the_nearest_of_its_name() -> None:
    assert places("abBA") == [(0, 3), (1, 2)]
    assert places("aaA") == [(1, 2)]
    assert places("abAB") == [(0, 2)]
    assert places("Aa") == []
    assert places("**a*A*") == [(0, 1), (2, 4)]


def test_pairs_within_pairs_stay_on_their_side() -> None:
    inner = [Mark(place, place + 1, "*", True, True, False) for place in (1, 5, 7)]
    pair = (Mark(3, 4, "b", True, False, True), Mark(9, 10, "b", False, True, True))
    assert [(a.start, b.start) for a, b in nest_within(inner, [pair])] == [(5, 7)]


@given(st.text(alphabet="abcABC*", max_size=40))
def test_no_pair_crosses_another(signs: str) -> None:
    pairs = places(signs)
    for first, second in pairs:
        for other_first, other_second in pairs:
            assert not first < other_first < second < other_second
    ends = [place for pair in pairs for place in pair]
    assert len(ends) == len(set(ends))
