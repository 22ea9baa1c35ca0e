"""A rule: its name, what it finds, and how a text is seen at a glance to hold nothing for it."""

import re
from typing import NamedTuple

LETTER = (
    r"[^\W\d\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\uff66-\uffdc"
    r"\U00020000-\U0003ffff]"
)
"""Letters that bound a number. Scripts without blanks between words are left out: `2011年`."""


class Pattern(NamedTuple):
    """One rule.

    Attributes:
        rule: its name.
        about: what it finds, in words.
        needed: a text without a match of this quick expression holds nothing for the rule.
        finds: the spans, each a match.
    """

    rule: str
    about: str
    needed: re.Pattern[str]
    finds: re.Pattern[str]
