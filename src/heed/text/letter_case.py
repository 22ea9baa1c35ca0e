"""Upper and lower case, as written in each language."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

from heed.text.scripts import script_of

TURKISH = re.compile("[ığĞİ]")
"""A letter that identifies Turkish."""
_GREEK_ACCENTS = re.compile("([\u0370-\u03ff])\u0301|([\u0370-\u03ff]\u0308)\u0301")
_GEORGIAN = re.compile("[\u10d0-\u10ff]+")


def has_case(text: str) -> bool:
    """Whether a text has letters with an upper case that is in use."""
    return upper(text) != lower(text)


def upper(text: str) -> str:
    """In capitals: German `ß` becomes `SS`, Turkish `i` becomes `İ`; Greek loses its accents."""
    if text.isascii():
        return text.upper()
    if TURKISH.search(text):
        text = text.replace("i", "İ")
    large = _GEORGIAN.split(text)
    if len(large) > 1:  # Georgian has capitals in Unicode, but they are hardly used.
        kept = [*_GEORGIAN.findall(text), ""]
        return "".join(upper(part) + small for part, small in zip(large, kept, strict=True))
    large_text = text.upper()
    if "greek" in map(script_of, large_text):
        bare = _GREEK_ACCENTS.sub(r"\1\2", unicodedata.normalize("NFD", large_text))
        return unicodedata.normalize("NFC", bare)
    return unicodedata.normalize("NFC", large_text)


def lower(text: str) -> str:
    """In lower case: the last sigma of a Greek word is `ς`, Turkish `I` becomes `ı`."""
    if text.isascii():
        return text.lower()
    if TURKISH.search(text):
        text = text.replace("I", "ı").replace("İ", "i")
    return unicodedata.normalize("NFC", text.replace("İ", "i").lower())


def with_other_case(texts: Iterable[str], coverage: float) -> str:
    """The letters of some texts whose upper or lower case is usual, sorted.

    Args:
        texts: some.
        coverage: share of the characters that are of the usual ones.
    """
    counts = Counter("".join(texts))
    usual: set[str] = set()
    covered = 0
    for character, count in counts.most_common():
        if covered >= coverage * counts.total():
            break
        usual.add(character)
        covered += count
    others = {case for each in usual for case in (each.lower(), each.upper()) if case != each}
    return "".join(sorted(others & counts.keys()))
