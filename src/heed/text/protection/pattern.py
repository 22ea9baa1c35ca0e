"""A rule: its name, its expression, and a fast test for texts without any match."""

import re
from typing import NamedTuple

CLOSE = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\uff66-\uffdc"
    r"\U00020000-\U0003ffff"
)
"""Scripts without blanks between words, and Korean, whose particles follow a word directly."""

JOINED = rf"{CLOSE}\u05d0-\u05ea\u0620-\u064a\u066e-\u06ff\u0750-\u077f\u08a0-\u08c9"
"""These, Hebrew and Arabic, which write short words together with the next one: `ב2011`."""

LETTER = rf"[^\W\d{CLOSE}]"
"""Letters that bound a number. Scripts without blanks between words are left out: `2011年`."""

LETTER_BEFORE = rf"[^\W\d{JOINED}]"
"""Letters after which no number or identifier begins."""

MARKS = (
    r"\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    r"\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a"
    r"\u07a6-\u07b0\u07eb-\u07f3\u08d3-\u08e1\u08e3-\u0963\u0966-\u0df3\u135d-\u135f\u1dc0-\u1dff"
    r"\u200c\u200d"
)
r"""Accents, vowel signs and joiners, which are parts of words, though `\w` does not match them."""

WORD = rf"(?:[^\W\d_]++[{MARKS}]*+)++"
"""A word of letters with their marks; possessive, so that a long one takes no more memory."""

SOLID_MARKS = (
    r"\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059"
    r"\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d"
    r"\u17b4-\u17d3\u17dd"
)
"""The same of scripts without blanks between words: Thai, Lao, Burmese and Khmer."""


class Pattern(NamedTuple):
    """One rule.

    Attributes:
        rule: its name.
        about: the spans that it finds, in words.
        needed: a fast expression; a text without a match of it has no span of the rule.
        finds: the expression whose matches are the spans.
        is_near_digits: every match lies in a word with a digit or `#`, or beside one.
    """

    rule: str
    about: str
    needed: re.Pattern[str]
    finds: re.Pattern[str]
    is_near_digits: bool = False


_DIGIT = re.compile(r"[\d#]")
_TO_LAST_DIGIT = re.compile(r".*[\d#]", re.DOTALL)


def words_near_digits(text: str) -> tuple[int, int]:
    """From one word before the first digit or `#` of a text to one word after the last.

    Searching only there takes a third of the time in lines of 100 characters with one number.
    """
    first, to_last = _DIGIT.search(text), _TO_LAST_DIGIT.match(text)
    assert first is not None and to_last is not None, "the text has a digit"
    start = text.rfind(" ", 0, max(0, text.rfind(" ", 0, first.start()))) + 1
    end = text.find(" ", text.find(" ", to_last.end()) + 1)
    return start, len(text) if end < to_last.end() else end
