"""Pairs whose source and target are exchanged among others, as where a memory is tagged wrongly."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from heed.data.columns import clipped
from heed.data.progress import Report
from heed.data.readers import Pair

SAMPLE = 5000
"""Pairs to look at, spread over a corpus."""
MARGIN = 5.0
"""In nats: how much likelier the words of a pair must be on the other side than on their own. In
5,000 pairs of six corpora at most 0.2 % are beyond it."""
FEWEST, SMALLEST_SHARE = 5, 0.01
"""Fewer pairs, or a smaller share of them, may be chance, names and quotations."""


def note_exchanged(pairs: Iterable[Pair], report: Report) -> None:
    """Report that some pairs are in the opposite direction of most.

    Nothing is said of two sides in one language, whose words do not tell their sides.

    Args:
        pairs: a sample of a corpus.
        report: gets the remark.
    """
    sample = list(pairs)
    balances = _balances(sample)
    found = [pair for pair, balance in zip(sample, balances, strict=True) if balance > MARGIN]
    n_clear = sum(balance < -MARGIN for balance in balances)
    if len(found) < max(FEWEST, SMALLEST_SHARE * len(sample)) or n_clear < len(sample) / 2:
        return
    first = found[0]
    text = (
        f"source and target seem to be exchanged in about {len(found) / len(sample):.0%} of the "
        f"pairs (the first: {first.origin} line {first.line}: {clipped(first.src)} | "
        f"{clipped(first.tgt)}). They are learned as they are: correct their languages, or leave "
        "them out."
    )
    report({"kind": "note", "text": text})


def _balances(pairs: Sequence[Pair]) -> list[float]:
    """How much likelier the words of each pair are if its sides are exchanged, in nats.

    A word on both sides counts for neither, nor does the pair itself.
    """
    words = [(_words(pair.src), _words(pair.tgt)) for pair in pairs]
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    sides = [(pair.source_lang or "source", pair.target_lang or "target") for pair in pairs]
    for names, both in zip(sides, words, strict=True):
        for name, found in zip(names, both, strict=True):
            counts[name].update(found)
    balances = []
    for (src_side, tgt_side), (src, tgt) in zip(sides, words, strict=True):
        own, other = counts[src_side], counts[tgt_side]
        balance = sum(_gain(other[word], own[word]) for word in src - tgt)
        balances.append(balance + sum(_gain(own[word], other[word]) for word in tgt - src))
    return balances


def _gain(n_there: int, n_here: int) -> float:
    return math.log((n_there + 0.5) / (n_here - 1 + 0.5))


def _words(text: str) -> set[str]:
    """The words of a text; the characters of one without blanks, as in Chinese."""
    lowered = text.lower()
    words = lowered.split()
    return set(words if len(words) > 1 else lowered)
