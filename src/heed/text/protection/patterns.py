"""How each kind of protected span is spelled: one regular expression a rule.

All of them take time in proportion to the text, also for hostile ones such as a hundred thousand
`<`: repeats are possessive and stop at the next character that could begin the same span.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple


class Pattern(NamedTuple):
    """One rule: its name, and what it finds.

    Attributes:
        rule: the name.
        signs: a text without any of these holds nothing for this rule; each is one string.
        finds: the expression. A group `near` is looked at and is not part of the span.
    """

    rule: str
    signs: tuple[str, ...]
    finds: re.Pattern[str]


# Letters of scripts that write words without blanks do not bound a number: `2011年` holds one.
_LETTER = (
    r"[^\W\d\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\uff66-\uffdc"
    r"\U00020000-\U0003ffff]"
)
_ATTRIBUTE = r"\s++[A-Za-z_:@][\w:.\-]*+\s*+=\s*+(?:\"[^\"<]*+\"|'[^'<]*+'|[^\s\"'<>=]++)"

TAG = re.compile(
    r"<!--(?:[^<\-]++|<(?!!--)|-(?!->))*+-->"
    r"|<!\[CDATA\[|\]\]>"
    r"|<\?[A-Za-z](?:[^<>?]++|\?(?!>))*+\?>"
    r"|<!(?:DOCTYPE|doctype)\b[^<>]*+>"
    r"|</(?P<closed>[A-Za-z_][\w:.\-]*+|\d{1,3})\s*+>"
    rf"|<(?P<opened>[A-Za-z_][\w:.\-]*+|\d{{1,3}})(?:{_ATTRIBUTE})*+\s*+(?P<empty>/?)>"
)
_QUOTES = r"\u201c-\u201f\u00ab\u00bb\u2018-\u201a\u3000-\u303f\uff00-\uff60"
_URL = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:https?|ftps?|file|wss?|git|ssh|sftp|ldaps?|irc|news|nntp|smb|vnd)://"
    r"|(?:mailto|tel|urn|data|magnet):(?=[^\s<>\"])|www\.(?=\w))"
    rf"(?:[.,:;!?*_~…]*+(?:[^\s<>\"'`(){{}}\[\]|\\^.,:;!?*_~…{_QUOTES}]"
    r"|\([^\s()<>]*+\)|\{[^\s{}<>]*+\}|\[[^\s\[\]<>]*+\]))++"
)
_EMAIL = re.compile(
    r"(?<![\w.+\-])[A-Za-z0-9_](?:[\w+\-]|\.(?=[\w+\-])){0,63}+@(?:[\w\-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w\-])"
)
_BRACES = re.compile(
    r"\{\{\{[^{}]{0,200}+\}\}\}|\{\{[^{}]{0,200}+\}\}|\{%[^{}]{0,200}+%\}"
    r"|[$#%@]\{[^{}\s]{1,100}+\}|\$\([A-Za-z_]\w*+\)"
    r"|\{(?:[\w.\-]++(?:\[\w*+\])?)*+(?:![rsa])?(?::[^{}\s]{0,40}+|(?:,\s?[\w.:#\-]++){0,2}+)\}"
    r"|\$[A-Za-z_]\w*+\$?"
)
_PRINTF = re.compile(
    r"(?<![\d%])%(?:(?:\d{1,2}\$|\(\w{1,60}\)|<\w{1,60}>)?(?:-(?=\d)|[+0#'])*+(?:\*|\d{1,3})?(?:\.(?:\*|\d{1,3}))?"
    r"(?:hh|ll|[hlLqjzt])?(?:[dsiuoxXfFc@]|[aAeEgGp](?![A-Za-z]))"
    r"|[A-Z][A-Z_]{2,}\d*|L?\d{1,2}(?![.,]?\d)|n(?![A-Za-z])|[BbHIjmMpSUwWyYZ](?![A-Za-z])|%)"
)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_NUMBER = re.compile(
    rf"(?<!{_LETTER})(?<!\d)(?<!\d[.,:/\-])[+\-\u2212\u00b1]?\d++(?:[.,:'\u2019\u00a0\u202f/\-]\d++)*+(?!{_LETTER})"
)

BUILT_IN = (
    Pattern("tag", ("<",), TAG),
    Pattern("url", ("://", "www.", "mailto:", "tel:", "urn:", "data:", "magnet:"), _URL),
    Pattern("email", ("@",), _EMAIL),
    Pattern("printf", ("%",), _PRINTF),
    Pattern("braces", ("{", "$"), _BRACES),
    Pattern("entity", ("&",), _ENTITY),
    Pattern("number", tuple("0123456789"), _NUMBER),
)
"""Earlier rules win where two of them find something at the same place."""

NAMES = tuple(pattern.rule for pattern in BUILT_IN)


def candidates(patterns: Iterable[Pattern]) -> re.Pattern[str]:
    """What is searched for first: a text without it holds no span."""
    signs = sorted({sign for pattern in patterns for sign in pattern.signs})
    single = "".join(re.escape(sign) for sign in signs if len(sign) == 1)
    longer = [re.escape(sign) for sign in signs if len(sign) > 1]
    return re.compile("|".join([f"[{single}\\d]", *longer]) if single or longer else r"(?!)")
