"""Finds translations in a foreign script, and translations that are copies of their source."""

import re
from collections.abc import Iterable

SCRIPTS: dict[str, str] = {
    "latin": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "cyrillic": "\u0400-\u052f",
    "armenian": "\u0530-\u058f",
    "hebrew": "\u0590-\u05ff",
    "arabic": "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufeff",
    "indic": "\u0900-\u0dff",
    "thai": "\u0e00-\u0e7f",
    "lao": "\u0e80-\u0eff",
    "tibetan": "\u0f00-\u0fff",
    "burmese": "\u1000-\u109f",
    "georgian": "\u10a0-\u10ff\u1c90-\u1cbf",
    "hangul": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
    "ethiopic": "\u1200-\u139f",
    "khmer": "\u1780-\u17ff",
    "kana": "\u3040-\u30ff\u31f0-\u31ff",
    "han": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
}
"""Letters of the scripts that are told apart."""

_LETTERS = {name: re.compile(f"[{letters}]") for name, letters in SCRIPTS.items()}
_NOT_LATIN = re.compile(f"[^\\W\\d_{SCRIPTS['latin']}]")

FOREIGN = 0.5
"""A translation is doubtful when more than this share of its letters is of no script seen."""

USUAL = 0.01
"""A script belongs to a language when it has this share of the letters of its texts."""

LEAST_WORDS = 4
"""Fewest lowercase words of two letters or more in a sentence that is not a name or a label."""


def script_shares(texts: Iterable[str]) -> dict[str, float]:
    """The share that each script has of the letters of some texts."""
    counts = dict.fromkeys(SCRIPTS, 0)
    for text in texts:
        for name, letters in _LETTERS.items():
            if name == "latin" or not text.isascii():
                counts[name] += len(letters.findall(text))
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items() if count}


def is_in_foreign_script(source: str, text: str, usual: Iterable[str]) -> bool:
    """Whether most letters of a translation are of a script that its language does not use.

    Words that are copied from the source do not count.

    Args:
        source: the source text.
        text: its translation.
        usual: scripts of the language, names of `SCRIPTS`.
    """
    usual = frozenset(usual)
    if not usual:
        return False
    if "latin" in usual and (text.isascii() or not _NOT_LATIN.search(text)):
        return False  # a fast test for the most common case
    copied = set(source.split())
    own = " ".join(word for word in text.split() if word not in copied)
    shares = script_shares([own])
    return sum(share for name, share in shares.items() if name not in usual) > FOREIGN


def is_untranslated(source: str, text: str) -> bool:
    """Whether a translation equals its source, which is a sentence and not a name or a label.

    Args:
        source: the source text.
        text: its translation.
    """
    if source != text and source.split() != text.split():
        return False
    words = [word for word in text.split() if len(word) > 1 and word.isalpha() and word.islower()]
    return len(words) >= LEAST_WORDS
