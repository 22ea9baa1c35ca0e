"""Spans on both sides of a pair of sentences, which the translation repeats unchanged.

`protected.py` finds spans in one text; `slots.py` turns them into ids.
"""

import re
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from heed.text.protected import Kind, Rules, Span, find_spans
from heed.text.slots import Mark, Slots

_DIGITS = re.compile(r"\d+")
_NO_SIGNS = re.compile(r"[\d\s.,'\u2019]+")


@dataclass(frozen=True, slots=True)
class SharedSpan:
    """A span of a source that its target has, too.

    Attributes:
        src: its start and end in the source.
        tgt: its start and end in the target.
        kind: `open` and `close` come in pairs, in this order in the source.
        pair: number of the pair, from 0; 0 for others.
    """

    src: tuple[int, int]
    tgt: tuple[int, int]
    kind: Kind
    pair: int = 0


def shared_spans(src: str, tgt: str, rules: Rules) -> list[SharedSpan]:
    """The spans that both texts have, found by the same rule, in the order of the source.

    Numbers are the same if they differ only in separators and blanks, or in the place of a sign. A
    span that occurs twice in the source and once in the target is shared once. Of the two marks of
    a pair both are shared or none.

    Args:
        src: a source.
        tgt: its translation.
        rules: which spans to look for.
    """
    found = find_spans(src, rules)
    if not found:
        return []
    others = find_spans(tgt, rules)
    unused: dict[tuple[str, ...], deque[int]] = defaultdict(deque)
    for number, span in enumerate(others):
        if span.kind != "close":
            unused[_key(span, others, tgt)].append(number)
    shared: list[SharedSpan] = []
    n_pairs = 0
    for span in found:
        same = unused[_key(span, found, src)] if span.kind != "close" else ()
        if not same:
            continue
        other = others[same.popleft()]
        shared.append(SharedSpan((span.start, span.end), (other.start, other.end), span.kind))
        if span.partner is not None and other.partner is not None:
            first = shared.pop()
            last, other_last = found[span.partner], others[other.partner]
            ends = (last.start, last.end), (other_last.start, other_last.end)
            shared.append(SharedSpan(first.src, first.tgt, "open", n_pairs))
            shared.append(SharedSpan(*ends, "close", n_pairs))
            n_pairs += 1
    return sorted(shared, key=lambda span: span.src)


def marks_of(shared: Sequence[SharedSpan], slots: Slots) -> tuple[list[Mark], list[Mark]]:
    """The slots of shared spans in the source and in the target.

    Slots are given in the order of the source. Spans for which none is left stay text.
    """
    left = {"number": iter(slots.numbers), "thing": iter(slots.things)}
    marks: tuple[list[Mark], list[Mark]] = ([], [])
    for span in shared:
        if span.kind in ("open", "close"):
            of_kind = slots.opens if span.kind == "open" else slots.closes
            slot = of_kind[span.pair] if span.pair < len(of_kind) else None
        else:
            slot = next(left[span.kind], None)
        if slot is not None:
            marks[0].append((*span.src, slot))
            marks[1].append((*span.tgt, slot))
    return marks[0], sorted(marks[1])


def number_key(spelled: str) -> tuple[str, ...]:
    """Equal for numbers that differ in separators and blanks only, or in the place of a sign."""
    # A slot hides the spelling of a number, so `1,234.50` and `1.234,50`, `25%` and `25 %`, `$5`
    # and `5 $` are equal. Separators and blanks may differ, groups of digits may not.
    return (*_DIGITS.findall(spelled), "".join(sorted(_NO_SIGNS.sub("", spelled))))


def _key(span: Span, spans: Sequence[Span], text: str) -> tuple[str, ...]:
    """A key that is equal for corresponding spans."""
    spelled = text[span.start : span.end]
    if span.kind == "number":
        return number_key(spelled)
    own = (span.rule, span.kind, spelled)
    if span.partner is None:
        return own
    last = spans[span.partner]
    return (*own, text[last.start : last.end])
