"""One term of a glossary: a line of its file, checked."""

import re
from dataclasses import dataclass
from typing import Literal

from heed.errors import DataError
from heed.text.normalize import normalize

CaseRule = Literal["case", "any"]

KEEP = "="
"""The target of a term that stays as it is in the source."""

NEVER = "!"
"""The mark in front of a forbidden word."""

MAX_TERM_CHARS = 1000
MANY_WORDS = 50
"""A term of more words is longer than nearly all sentences."""

_OR = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class Term:
    """A source term and its target terms.

    Attributes:
        source: as in the glossary; "" = every text, for words that are always forbidden.
        targets: its forms, one of which is required; `(KEEP,)` = as in the source; none = the term
            only has forbidden words.
        banned: words that are forbidden if the term occurs.
        case: `case` = found only as it is written; `any` = found in any case, and its forms take
            the case of the occurrence.
    """

    source: str
    targets: tuple[str, ...]
    banned: tuple[str, ...]
    case: CaseRule

    @property
    def spelled(self) -> str:
        """The second column of its line."""
        targets = self.targets
        if targets != (KEEP,):
            targets = tuple(_escaped(each) for each in targets)
        return "|".join([*targets, *(NEVER + _escaped(each) for each in self.banned)])

    def with_banned(self, banned: tuple[str, ...]) -> "Term":
        """The term with more forbidden words."""
        both = tuple(dict.fromkeys((*self.banned, *banned)))
        return Term(self.source, self.targets, both, self.case)


def make_term(line: int, source: str, target: str, case: str = "") -> Term:
    r"""A term from the columns of a line.

    Args:
        line: its number, for errors.
        source: the source term; empty if the target is only `!word`.
        target: forms with `|` between them; `=`; `!word`. A backslash before `|`, `=` or `!` makes
            it an ordinary character.
        case: `case`, `any`, or anything else for the rule that follows from the spelling: a term in
            lower case is found in any case, another as it is written.

    Raises:
        DataError: names the line and its mistake.
    """
    source = normalize(_one_line(line, "source", source))
    parts = [normalize(part) for part in _OR.split(_one_line(line, "target", target))]
    banned = tuple(_plain(part[1:]) for part in parts if part.startswith(NEVER))
    targets = tuple(part if part == KEEP else _plain(part) for part in parts if part[:1] != NEVER)
    if source or targets:
        _require_word(line, "source", source)
    for each in targets:
        if each != KEEP:
            _require_word(line, "target", each)
    for each in banned:
        _require_word(line, "target", each, sign=NEVER)
    if KEEP in targets and len(targets) > 1:
        raise DataError(
            f"Line {line} of the glossary must have either {KEEP} (keep the term) or other forms, "
            f"but has {target!r}."
        )
    if both := [each for each in banned if each in targets]:
        raise DataError(
            f"Line {line} of the glossary asks for {both[0]!r} and forbids it. Keep one of them."
        )
    if case not in ("case", "any"):
        case = "any" if source == source.casefold() else "case"
    rule: CaseRule = "case" if case == "case" else "any"
    return Term(source, tuple(dict.fromkeys(targets)), tuple(dict.fromkeys(banned)), rule)


def _one_line(line: int, side: str, text: str) -> str:
    if len(text.strip().splitlines()) > 1:
        raise DataError(f"The {side} term in line {line} of the glossary must be one line.")
    return text


def _require_word(line: int, side: str, text: str, *, sign: str = "") -> None:
    if not any(map(str.isalnum, text)):
        raise DataError(
            f"The {side} term in line {line} of the glossary must hold a letter or a digit, but is "
            f"{sign + text!r}."
        )
    if len(text) > MAX_TERM_CHARS:
        raise DataError(
            f"The {side} term in line {line} of the glossary must have at most {MAX_TERM_CHARS} "
            f"characters, but has {len(text)}."
        )


def _plain(part: str) -> str:
    part = part.replace("\\|", "|").strip()
    return part[1:] if part[:2] in ("\\=", "\\!") else part


def _escaped(text: str) -> str:
    text = text.replace("|", "\\|")
    return f"\\{text}" if text[:1] in (KEEP, NEVER) else text
