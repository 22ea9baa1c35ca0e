"""Fonts for labels of any script: choose installed fonts, and name the missing characters."""

from collections.abc import Iterable
from functools import lru_cache
from warnings import warn

from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

FIRST = "DejaVu Sans"
"""The font that comes with matplotlib."""


def families_for(texts: Iterable[str]) -> list[str]:
    """Font families that draw these texts together; the first with a character draws it.

    Warns about characters that no installed font has; these are drawn as boxes.
    """
    characters = frozenset("".join(texts))
    families = _families(characters)
    if missing := _uncovered(characters, families):
        warn(
            f"no installed font has {' '.join(sorted(missing))}: install one for that script, "
            "such as Noto, and remove matplotlib's cache of fonts",
            stacklevel=4,
        )
    return list(families)


@lru_cache(maxsize=256)
def _families(characters: frozenset[str]) -> tuple[str, ...]:
    found = [FIRST]
    missing = _uncovered(characters, found)
    for family, path in _installed().items():
        if not missing:
            break
        if covered := {c for c in missing if ord(c) in _characters_of(path)}:
            found.append(family)
            missing -= covered
    return tuple(found)


def _uncovered(characters: Iterable[str], families: Iterable[str]) -> set[str]:
    fonts = [_characters_of(_installed()[family]) for family in families]
    drawn = {c for c in characters if not c.isspace()}
    return {c for c in drawn if not any(ord(c) in font for font in fonts)}


@lru_cache(maxsize=1)
def _installed() -> dict[str, str]:
    """Maps each family to its file of regular weight, sans serif first."""
    fonts = [
        (font.name, font.fname)
        for font in font_manager.fontManager.ttflist
        # The font Last Resort has a box for every character.
        if "Last Resort" not in font.name
        and font.style == "normal"
        and font.weight in (400, "normal", "regular", "book")
    ]
    return dict(sorted(fonts, key=lambda font: (font[0] != FIRST, "Sans" not in font[0], font)))


@lru_cache(maxsize=512)
def _characters_of(path: str) -> frozenset[int]:
    return frozenset(FT2Font(path).get_charmap())
