"""Which marks belong together: tags by their names, such that no pair crosses another."""

from collections import defaultdict
from collections.abc import Sequence

from heed.text.protection.patterns import TAG


def pair_tags(tags: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of an opening and a closing tag, by their places in the list.

    A closing tag belongs to the nearest open tag of its name; open tags between the two stay
    alone, and so does a closing tag whose opening tag stands outside a pair that is open.

    Args:
        tags: in the order of the text; comments and the like are allowed and stay alone.
    """
    pairs: list[tuple[int, int]] = []
    open_tags: list[tuple[str, int]] = []
    counts: dict[str, int] = defaultdict(int)
    for index, tag in enumerate(tags):
        name, side = _read(tag)
        if side == "open":
            open_tags.append((name, index))
            counts[name] += 1
        elif side == "close" and counts[name]:
            while True:
                other, start = open_tags.pop()
                counts[other] -= 1
                if other == name:
                    pairs.append((start, index))
                    break
    return pairs


def _read(tag: str) -> tuple[str, str]:
    """The name of a tag, and whether it opens or closes."""
    if tag == "<![CDATA[":
        return tag, "open"
    if tag == "]]>":
        return "<![CDATA[", "close"
    match = TAG.fullmatch(tag)
    if match is None or match["empty"]:
        return "", ""
    if match["closed"]:
        return match["closed"].casefold(), "close"
    return (match["opened"].casefold(), "open") if match["opened"] else ("", "")
