"""Drops bad pairs by named rules, and reports the dropped pairs with reasons.

Every dropped pair is counted. `split.py` drops sentences shared with dev and test.
"""

import hashlib
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from heed.config import Range, check
from heed.data.columns import clipped
from heed.data.readers import Pair
from heed.text.normalize import normalize

Rule = Callable[[Pair], str | None]
"""The reason to drop a pair, in one or two words that name the rule; None = keep it."""

_MAX_EXAMPLES = 3
_EXAMPLE_CHARS = 120

# Letters that appear when UTF-8 is read as Latin-1 or Windows-1252: "Ã¤" for "ä", "â€™" for "’".
_MISREAD = re.compile("[ÂÃ][\u0080-\u00bf]|â€[\u009d\u2122œ“”˜¦]")
# C1 control characters except U+0085, which some systems write for a line break.
_STRAY_CONTROLS = re.compile("[\u0080-\u0084\u0086-\u009f\ufffd]")


@dataclass(frozen=True, kw_only=True)
class CleanConfig:
    """Which training pairs are dropped.

    Attributes:
        max_chars: longest side in characters, of development pairs, too; a side with more pieces
            than `data.max_length` is dropped later.
        max_ratio: how much longer one side may be than usual for its partner, see `length_ratio`.
        keep_copies: keep pairs whose sides are the same. They teach a model to copy instead of
            translating (Khayrallah and Koehn 2018), unless copying is the task.
        keep_duplicates: keep every occurrence of a pair.

    Raises:
        ConfigError: a value is out of its range.
    """

    max_chars: Annotated[int, Range(1, 10_000_000)] = 2000
    max_ratio: Annotated[float, Range(1, 1e9, above_low=True)] = 4.0
    keep_copies: bool = False
    keep_duplicates: bool = False

    def __post_init__(self) -> None:
        check(self, "data")


@dataclass
class CleanReport:
    """Counts of pairs read, kept and dropped, by reason, with a few examples."""

    n_read: int = 0
    n_kept: int = 0
    n_dropped: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[Pair]] = field(default_factory=dict)

    def drop(self, reason: str, pair: Pair) -> None:
        """Count a dropped pair."""
        self.n_dropped[reason] = self.n_dropped.get(reason, 0) + 1
        examples = self.examples.setdefault(reason, [])
        if len(examples) < _MAX_EXAMPLES:
            examples.append(pair)

    def reasons(self) -> str:
        """`duplicate 18, empty 1`, for messages."""
        return ", ".join(f"{reason} {count}" for reason, count in self.n_dropped.items())

    def fallen(self) -> str:
        """`Of 20 pairs read, 19 were dropped (duplicate 18, empty 1). `; empty if none were."""
        n_dropped = sum(self.n_dropped.values())
        if not n_dropped:
            return ""
        was = "was" if n_dropped == 1 else "were"
        read = amount(self.n_read, "pair")
        return f"Of {read} read, {n_dropped:,} {was} dropped ({self.reasons()}). "

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "read": self.n_read,
            "kept": self.n_kept,
            "dropped": dict(self.n_dropped),
            "examples": {
                reason: [
                    {
                        "origin": pair.origin,
                        "line": pair.line,
                        "src": _shortened(pair.src),
                        "tgt": _shortened(pair.tgt),
                    }
                    for pair in pairs
                ]
                for reason, pairs in self.examples.items()
            },
        }


def amount(count: int, noun: str, several: str = "") -> str:
    """A number and what it counts, for messages: `1 pair`, `1,000 pairs`.

    Args:
        count: the number.
        noun: one of what is counted.
        several: the noun in the plural, unless that is made with an s.
    """
    return f"{count:,} {noun if count == 1 else several or f'{noun}s'}"


def as_table(report: Mapping[str, Any], *, unit: str = "pair", of: str = "") -> str:
    """A report of `CleanReport.to_dict` as text: a sentence, and a line for each reason.

    Args:
        report: the counts and examples.
        unit: one of what was counted.
        of: what follows it, such as ` of de` for lines.
    """
    n_dropped = sum(report["dropped"].values())
    read = f"{amount(report['read'], unit)}{of} read"
    if not n_dropped:
        return f"{read}, all kept" if report["read"] > 1 else f"{read} and kept"
    lines = [f"{read}, {report['kept']:,} kept, {n_dropped:,} dropped:"]
    for reason, count in sorted(report["dropped"].items(), key=lambda item: -item[1]):
        first = report["examples"][reason][0]
        texts = " | ".join(clipped(first[side]) for side in ("src", "tgt"))
        lines.append(
            f"{count:>12,} {reason} (the first: {first['origin']} line {first['line']}: {texts})"
        )
    return "\n".join(lines)


def clean(
    pairs: Iterable[Pair],
    config: CleanConfig,
    report: CleanReport,
    *,
    extra_rules: Iterable[Rule] = (),
) -> Iterator[Pair]:
    """The pairs that pass all rules, normalized; the others are counted in `report`.

    Args:
        pairs: raw pairs, as the readers give them.
        config: limits of the rules.
        report: counts the pairs as they pass.
        extra_rules: further rules, applied just before `duplicate`.
    """
    rules = [
        empty,
        too_long(config.max_chars),
        length_ratio(config.max_ratio),
        *(() if config.keep_copies else (copy,)),
        *extra_rules,
        *(() if config.keep_duplicates else (duplicate(),)),
    ]
    for raw in pairs:
        report.n_read += 1
        src, tgt = normalize(raw.src), normalize(raw.tgt)
        is_changed = (src, tgt) != (raw.src, raw.tgt)
        pair = replace(raw, src=src, tgt=tgt) if is_changed else raw
        # Normalizing hides signs of a wrong encoding, so this rule reads the raw text.
        reason = raw.fault or bad_encoding(raw)
        for rule in rules:
            reason = reason or rule(pair)
        if reason:
            report.drop(reason, raw)
        else:
            report.n_kept += 1
            yield pair


def empty(pair: Pair) -> str | None:
    """A side is empty."""
    return None if pair.src and pair.tgt else "empty"


def bad_encoding(pair: Pair) -> str | None:
    """A side was read in the wrong encoding somewhere on its way: "schÃ¶n", U+FFFD, C1 controls."""
    for text in (pair.src, pair.tgt):
        if not text.isascii() and (_STRAY_CONTROLS.search(text) or _MISREAD.search(text)):
            return "bad_encoding"
    return None


def too_long(max_chars: float) -> Rule:
    """A side has more characters than `max_chars`."""
    return lambda pair: "too_long" if max(len(pair.src), len(pair.tgt)) > max_chars else None


def length_ratio(max_ratio: float) -> Rule:
    """One side is much longer than its partner, compared with earlier pairs of its languages.

    A Chinese sentence has a third of the characters of its English translation, so the usual ratio
    is learned from the pairs that this rule has kept. Ten characters are added to both
    sides, because short sentences vary most: "Hi" and "Guten Tag" are fine.
    """
    n_chars: dict[tuple[str, str], tuple[int, int]] = {}

    def rule(pair: Pair) -> str | None:
        languages = pair.source_lang, pair.target_lang
        # For the first dozens of pairs the usual ratio is taken to be 1:1.
        src_chars, tgt_chars = n_chars.get(languages, (1000, 1000))
        usual = (tgt_chars / src_chars) ** 0.5
        src = len(pair.src) * usual + 10
        tgt = len(pair.tgt) / usual + 10
        if max(src, tgt) > max_ratio * min(src, tgt):
            return "length_ratio"
        n_chars[languages] = src_chars + len(pair.src), tgt_chars + len(pair.tgt)
        return None

    return rule


def copy(pair: Pair) -> str | None:
    """Both sides are the same, ignoring case."""
    return "copy" if pair.src.casefold() == pair.tgt.casefold() else None


def duplicate() -> Rule:
    """The same pair has been read before.

    Stores 64 bits of each pair: of 10⁸ different ones, the odds that any is lost are 1 to 4,000.
    """
    seen = _HashSet()

    def rule(pair: Pair) -> str | None:
        return None if seen.add(sentence_hash(f"{pair.src}\n{pair.tgt}")) else "duplicate"

    return rule


def sentence_hash(text: str) -> int:
    """A 64-bit hash of a text, the same in every process; never 0."""
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") or 1


class _HashSet:
    """A set of 64-bit numbers in 16 to 32 bytes each, a fifth of the size of Python's set."""

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * 1024))
        self._count = 0

    def add(self, number: int) -> bool:
        """Add a number above 0; False if it was there."""
        slot = self._slot_of(number)
        if self._slots[slot]:
            return False
        self._slots[slot] = number
        self._count += 1
        if 2 * self._count > len(self._slots):
            old, self._slots = self._slots, array("Q", bytes(2 * 8 * len(self._slots)))
            for number in filter(None, old):
                self._slots[self._slot_of(number)] = number
        return True

    def _slot_of(self, number: int) -> int:
        """The slot of a number, or the free slot for it."""
        slots, mask = self._slots, len(self._slots) - 1
        slot = number & mask
        while slots[slot] and slots[slot] != number:
            slot = (slot + 1) & mask
        return slot


def _shortened(text: str) -> str:
    return text if len(text) <= _EXAMPLE_CHARS else f"{text[:_EXAMPLE_CHARS]}…"
