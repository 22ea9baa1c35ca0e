"""What clients made is kept for a while, in bounded memory."""

import pytest

from heed.serve.inside.shelf import MOST_BYTES, Shelf
from heed.serve.refusal import Refusal


def shelf(n_kept: int = 3) -> Shelf[str]:
    return Shelf("trace", "/api/v1/trace", is_allowed=True, n_kept=n_kept)


def kept(things: Shelf[str], ids: str) -> str:
    """Those of the ids that are still there."""
    found = ""
    for id in ids:
        try:
            found += things.get(id)
        except Refusal as refusal:
            assert refusal.status == 404
    return found


def test_of_too_many_the_one_used_least_recently_goes() -> None:
    things = shelf()
    for id in "abc":
        things.put(id, id)
    assert things.get("a") == "a"
    things.put("d", "d")
    assert kept(things, "abcd") == "acd"


@pytest.mark.parametrize(
    ("sizes", "left"),
    [
        ((MOST_BYTES, 1, 1), "bc"),
        ((MOST_BYTES // 2, MOST_BYTES // 2, 0), "abc"),
        ((1, 1, 2 * MOST_BYTES), "c"),
    ],
)
def test_large_things_make_room_but_the_latest_is_kept(sizes: tuple[int, ...], left: str) -> None:
    things = shelf()
    for id, size in zip("abc", sizes, strict=True):
        things.put(id, id, size_bytes=size)
    assert kept(things, "abc") == left
