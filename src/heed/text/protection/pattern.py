"""A rule: its name, its expression, and a fast test for texts without any match."""

import re
from typing import NamedTuple

LETTER = (
    r"[^\W\d\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\uff66-\uffdc"
    r"\U00020000-\U0003ffff]"
)
"""Letters that bound a number. Scripts without blanks between words are left out: `2011年`."""

MARKS = (
    r"\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u200c\u200d"
)
r"""Accents, vowel signs and joiners, which are parts of words, though `\w` does not match them."""


class Pattern(NamedTuple):
    """One rule.

    Attributes:
        rule: its name.
        about: the spans that it finds, in words.
        needed: a fast expression; a text without a match of it has no span of the rule.
        finds: the expression whose matches are the spans.
    """

    rule: str
    about: str
    needed: re.Pattern[str]
    finds: re.Pattern[str]
