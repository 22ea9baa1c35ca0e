"""Protected spans: text that a translation must repeat unchanged: fields, tags, URLs, numbers.

The modules of `heed.text.protection` describe what each rule finds, what it does not, and how often
its spans are unchanged in human translations. `translate` puts the spans into translations.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from heed.text.protection import icu
from heed.text.protection.addresses import INNER_DOT
from heed.text.protection.expressions import find_matches
from heed.text.protection.markup import CODE, HEADING, TAG
from heed.text.protection.numerals import PICTURES, RAISED
from heed.text.protection.pairs import (
    Mark,
    Pair,
    emphasis_marks,
    link_marks,
    nest,
    nest_within,
    read_tag,
    with_quotes,
)
from heed.text.protection.pattern import words_near_digits
from heed.text.protection.rules import Rules
from heed.text.protection.terms import Terms

__all__ = ["Kind", "Rules", "Span", "Terms", "find_spans"]

Kind = Literal["number", "thing", "open", "close"]

_NUMBERS = frozenset(("number", "count"))
# Every rule needs one of these signs, or a dot within a word. Searching for a class of characters
# takes less than a microsecond, and most sentences have none of them.
_SIGNS = re.compile(rf"[\d{RAISED}%~{{$&@#*_`<>\]/\\{PICTURES}]")

_FREE = re.compile(b"\0+")

NAME = "name"
"""The rule of words that a model does not know; it depends on the model, not on the text alone."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a text that must not change.

    Attributes:
        start: its first character.
        end: one past its last character.
        kind: `open` and `close` are the two marks of a pair; text between them stays there.
        rule: the rule that found it, such as `printf` or `url`.
        partner: of an `open` or `close`: the index of the other mark of the pair in the list of
            spans. A mark without a partner is a `thing`.
        inner: stretches inside the span that are translated separately, such as the texts of an ICU
            message. Each is a place in the whole text.
    """

    start: int
    end: int
    kind: Kind
    rule: str
    partner: int | None = None
    inner: tuple[tuple[int, int], ...] = ()


def find_spans(text: str, rules: Rules) -> list[Span]:
    """The protected spans of a text: disjoint, in order, pairs well nested.

    The time is proportional to the length of the text, except for the user's expressions, which are
    limited to a second each, and to the time of `rules.limit` together.

    Args:
        text: one line, normalized or not.
        rules: the rules that find spans.

    Raises:
        ConfigError: the user's expressions take too long.
    """
    spans: list[Span] = []
    if (rules.names or rules.is_within_icu) and (
        _SIGNS.search(text) or ("." in text and INNER_DOT.search(text))
    ):
        spans = _of_heed(text, rules)
    if rules.patterns or rules.terms:
        spans = _merged(spans, _of_user(text, rules))
    return spans


class _Claims:
    """Spans of a text that do not overlap."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.taken = bytearray(len(text))
        self._spans: list[Span] = []
        self._pairs: list[Pair] = []

    def add(
        self,
        start: int,
        end: int,
        rule: str,
        inner: tuple[tuple[int, int], ...] = (),
    ) -> None:
        """Claim a stretch unless a part of it is taken."""
        if start < end and self.taken.find(1, start, end) < 0:
            self.taken[start:end] = b"\1" * (end - start)
            kind: Kind = "number" if rule in _NUMBERS else "thing"
            self._spans.append(Span(start, end, kind, rule, None, inner))

    def add_all(
        self, finds: "re.Pattern[str]", rule: str, within: tuple[int, int] | None = None
    ) -> None:
        """Claim the matches of an expression; of one that is partly taken, those in the rest."""
        for match in finds.finditer(self.text, *(within or ())):
            start, end = match.span()
            if self.taken.find(1, start, end) < 0:
                self.add(start, end, rule)
                continue
            for gap in _FREE.finditer(self.taken, start, end):
                for part in finds.finditer(self.text, *gap.span()):
                    self.add(*part.span(), rule)

    def add_marks(self, marks: Iterable[Mark], pairs: Sequence[Pair]) -> None:
        """Claim marks that are in pairs, or are protected even when alone."""
        self._pairs += pairs
        paired = {mark.start for pair in pairs for mark in pair}
        for mark in marks:
            if mark.is_kept or mark.start in paired:
                self.add(mark.start, mark.end, _rule_of(mark))

    @property
    def pairs(self) -> Sequence[Pair]:
        """The pairs so far."""
        return self._pairs

    def spans(self) -> list[Span]:
        """The spans in order, each mark of a pair with its partner."""
        found = sorted(self._spans, key=lambda span: span.start)
        if self._pairs:
            index_at = {span.start: index for index, span in enumerate(found)}
            for opening, closing in self._pairs:
                first, second = index_at[opening.start], index_at[closing.start]
                found[first] = replace(found[first], kind="open", partner=second)
                found[second] = replace(found[second], kind="close", partner=first)
        return found


def _rule_of(mark: Mark) -> str:
    is_tag = mark.name[:1] not in ("[", "*", "_", "~") or not mark.name
    return "tag" if is_tag else "markdown"


def _of_heed(text: str, rules: Rules) -> list[Span]:
    """The spans that heed's own rules find."""
    names = rules.names
    has_emphasis = "markdown" in names and any(sign in text for sign in "*_~")
    claims = _Claims(with_quotes(text) if has_emphasis else text)
    if rules.is_within_icu:
        claims.add_all(icu.INSIDE, "icu")
    if "icu" in names and icu.NEEDED.search(text):
        for message in icu.find_messages(text):
            claims.add(message.start, message.end, "icu", message.texts)
    if "code" in names and "`" in text:
        claims.add_all(CODE, "code")
    _add_tags_and_links(claims, text, names)
    near_digits: tuple[int, int] | None = None
    for pattern in rules.own_patterns:
        if not pattern.needed.search(text):
            continue
        if pattern.is_near_digits:
            near_digits = near_digits or words_near_digits(text)
            claims.add_all(pattern.finds, pattern.rule, near_digits)
        else:
            claims.add_all(pattern.finds, pattern.rule)
    if has_emphasis:
        marks = emphasis_marks(text, claims.taken)
        claims.add_marks(marks, nest_within(marks, claims.pairs))
    return claims.spans()


def _add_tags_and_links(claims: _Claims, text: str, names: Sequence[str]) -> None:
    marks: list[Mark] = []
    taken = bytearray(claims.taken)
    if "tag" in names and ("<" in text or "]]>" in text):
        for match in TAG.finditer(text):
            start, end = match.span()
            if taken.find(1, start, end) < 0:
                taken[start:end] = b"\1" * (end - start)
                marks.append(read_tag(start, match[0]))
    if "markdown" in names:
        if "](" in text:
            marks = sorted([*marks, *link_marks(text, taken)])
        if heading := HEADING.match(text):
            claims.add(*heading.span(), "markdown")
    if marks:
        claims.add_marks(marks, nest(marks))


def _of_user(text: str, rules: Rules) -> list[Span]:
    """The spans that the user's terms and expressions find; earlier expressions win."""
    claims = _Claims(text)
    for pattern in rules.patterns:
        for start, end in find_matches(pattern, text, rules.limit):
            claims.add(start, end, "regex")
    if rules.terms:
        for start, end in rules.terms.find(text):
            claims.add(start, end, "term")
    return claims.spans()


def _merged(spans: Sequence[Span], of_user: Sequence[Span]) -> list[Span]:
    """Spans of both, in order; where two overlap the user's, unless it is a part of the other."""
    starts = [span.start for span in spans]
    claimed = bytearray(max((span.end for span in (*spans, *of_user)), default=0))
    found: list[tuple[Span, int | None]] = []
    for wanted in of_user:
        before = bisect_right(starts, wanted.start) - 1
        if before < 0 or spans[before].end < wanted.end:
            claimed[wanted.start : wanted.end] = b"\1" * (wanted.end - wanted.start)
            found.append((wanted, None))
    for index, span in enumerate(spans):
        if claimed.find(1, span.start, span.end) < 0:
            found.append((span, index))
    found.sort(key=lambda each: each[0].start)
    moved = {index: place for place, (_, index) in enumerate(found) if index is not None}
    return [_with_partner(span, moved) for span, _ in found]


def _with_partner(span: Span, moved: dict[int, int]) -> Span:
    """The span with its partner's new place; a thing if the partner is gone."""
    if span.partner is None:
        return span
    if span.partner in moved:
        return replace(span, partner=moved[span.partner])
    return replace(span, kind="thing", partner=None)


def with_things(spans: Sequence[Span], places: Sequence[tuple[int, int]], rule: str) -> list[Span]:
    """Spans and further single ones, in order.

    Args:
        spans: as `find_spans` gives them.
        places: of the further ones, which touch none of them.
        rule: the rule of the further ones.
    """
    every = [*spans, *(Span(start, end, "thing", rule) for start, end in places)]
    order = sorted(range(len(every)), key=lambda number: every[number].start)
    moved = {number: place for place, number in enumerate(order)}
    return [_with_partner(every[number], moved) for number in order]
