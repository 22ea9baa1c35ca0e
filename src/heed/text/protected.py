"""Protected spans: what a translation must repeat unchanged, such as fields, tags, URLs, numbers.

The rules are in `heed.text.protection`. What becomes of the spans is decided by `translate`.
"""

import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal

from heed.errors import ConfigError
from heed.text.protection.pairs import pair_tags
from heed.text.protection.patterns import BUILT_IN, NAMES, Pattern, candidates

Kind = Literal["number", "thing", "open", "close"]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a text that must not change.

    Attributes:
        start: its first character.
        end: one past its last character.
        kind: `open` and `close` are the two marks of a pair; what is between them stays there.
        rule: the rule that found it, such as `printf` or `url`.
        partner: of an `open` or `close`: where the other mark of the pair stands in the list of
            spans. A mark without a partner is a `thing`.
        inner: stretches inside the span that are translated by themselves, such as the texts of an
            ICU message. Each is a place of the whole text.
    """

    start: int
    end: int
    kind: Kind
    rule: str
    partner: int | None = None
    inner: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Rules:
    """What is protected; compiled once, immutable, and cheap to pass around and compare.

    Attributes:
        names: rules of heed's own, see `Rules.default()`.
    """

    names: tuple[str, ...] = NAMES
    _compiled: tuple[Pattern, ...] = field(init=False, repr=False, compare=False)
    _candidates: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.names) - set(NAMES)):
            raise ConfigError(
                f"there is no rule {unknown[0]!r} for protected spans. Use {', '.join(NAMES)}."
            )
        compiled = tuple(pattern for pattern in BUILT_IN if pattern.rule in self.names)
        object.__setattr__(self, "_compiled", compiled)
        object.__setattr__(self, "_candidates", candidates(compiled))

    @classmethod
    def default(cls) -> "Rules":
        """All rules of heed's own."""
        return _default()

    @classmethod
    def none(cls) -> "Rules":
        """Nothing is protected."""
        return _none()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is protected."""
        return not self._compiled


@cache
def _default() -> Rules:
    return Rules()


@cache
def _none() -> Rules:
    return Rules(names=())


def find_spans(text: str, rules: Rules) -> list[Span]:
    """The protected spans of a text: disjoint, in order, pairs well nested.

    Takes time in proportion to the length of the text.

    Args:
        text: one line, as it was written or normalized.
        rules: what to look for.
    """
    if not rules._candidates.search(text):
        return []
    spans: list[Span] = []
    taken = bytearray(len(text))
    for pattern in rules._compiled:
        if not any(sign in text for sign in pattern.signs) and pattern.rule != "number":
            continue
        for match in pattern.finds.finditer(text):
            start, end = match.span()
            if start < end and taken.find(1, start, end) < 0:
                taken[start:end] = b"\1" * (end - start)
                kind: Kind = "number" if pattern.rule == "number" else "thing"
                spans.append(Span(start, end, kind, pattern.rule))
    spans.sort(key=lambda span: span.start)
    return _paired(text, spans)


def _paired(text: str, spans: list[Span]) -> list[Span]:
    """The spans with marks of pairs as such."""
    tags = [index for index, span in enumerate(spans) if span.rule == "tag"]
    for first, second in pair_tags([text[spans[i].start : spans[i].end] for i in tags]):
        left, right = tags[first], tags[second]
        spans[left] = replace(spans[left], kind="open", partner=right)
        spans[right] = replace(spans[right], kind="close", partner=left)
    return spans
