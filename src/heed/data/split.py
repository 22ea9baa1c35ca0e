"""Setting pairs aside for dev and test so that training never saw a sentence of theirs.

Not here: the pairs themselves: one number per sentence is enough, see `sentence_key`.
Read on in `prepare.py`, which streams the pairs to where this sends them.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from heed.data.clean import Rule, sentence_hash
from heed.data.readers import Pair

Keys = NDArray[np.uint64]

TRAIN, DEV, TEST = range(3)
# A sentence with many translations ties many pairs together; a larger knot is drawn only if there
# is nothing else, or it would fill dev with variants of one sentence.
_LARGEST_KNOT = 4


def sentence_key(text: str) -> int:
    """64 bits to recognize a sentence by, whatever its case and the punctuation around it."""
    return sentence_hash(text.casefold().strip(" .!?…。！？") or text)


def split(
    src_keys: Keys,
    tgt_keys: Keys,
    *,
    dev_size: int,
    test_size: int,
    seed: int,
) -> NDArray[np.uint8]:
    """Draw dev and test pairs that share no sentence of either side with each other or training.

    Pairs that share a sentence, directly or through others, stay together.

    Args:
        src_keys: `sentence_key` of each source, `(n_pairs)`.
        tgt_keys: `sentence_key` of each target, `(n_pairs)`.
        dev_size: pairs wanted in dev; fewer if sharing leaves no choice.
        test_size: pairs wanted in test.
        seed: decides the draw.

    Returns:
        `TRAIN`, `DEV` or `TEST` for each pair, `(n_pairs)`.
    """
    parts = np.full(len(src_keys), TRAIN, dtype=np.uint8)
    knots = _knots(src_keys, tgt_keys)
    members = np.argsort(knots, kind="stable")
    starts = np.flatnonzero(np.diff(knots[members], prepend=-1))
    sizes = np.diff(np.append(starts, len(members)))
    random = np.random.Generator(np.random.Philox(key=np.array([seed, 0], dtype=np.uint64)))
    shuffled = random.permutation(len(sizes))
    large_last = np.argsort(np.where(sizes <= _LARGEST_KNOT, 0, sizes)[shuffled], kind="stable")
    drawn = iter(shuffled[large_last].tolist())
    for part, wanted in ((TEST, test_size), (DEV, dev_size)):
        count = 0
        while count < wanted and (knot := next(drawn, None)) is not None:
            if count + sizes[knot] <= wanted:
                parts[members[starts[knot] : starts[knot] + sizes[knot]]] = part
                count += int(sizes[knot])
    return parts


def shared_with(pairs: Iterable[Pair], name: str) -> Rule:
    """A rule against training pairs that share a sentence, on either side, with `pairs`.

    Args:
        pairs: the dev or test pairs, few enough for memory.
        name: what the reason calls them: `in_dev`.
    """
    src_keys, tgt_keys = set(), set()
    for pair in pairs:
        src_keys.add(sentence_key(pair.src))
        tgt_keys.add(sentence_key(pair.tgt))

    def rule(pair: Pair) -> str | None:
        is_shared = sentence_key(pair.src) in src_keys or sentence_key(pair.tgt) in tgt_keys
        return f"in_{name}" if is_shared else None

    return rule


def _knots(src_keys: Keys, tgt_keys: Keys) -> NDArray[np.int64]:
    """Give pairs that share a sentence, directly or through others, one number, `(n_pairs)`."""
    _, src, src_counts = np.unique(src_keys, return_inverse=True, return_counts=True)
    _, tgt, tgt_counts = np.unique(tgt_keys, return_inverse=True, return_counts=True)
    tgt += len(src_counts)  # sentences of both sides in one row: the nodes of a graph of pairs
    parents = list(range(len(src_counts) + len(tgt_counts)))

    def root(node: int) -> int:
        while parents[node] != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    counts = np.concatenate((src_counts, tgt_counts))
    tied = np.flatnonzero((counts[src] > 1) | (counts[tgt] > 1))
    for a, b in zip(src[tied].tolist(), tgt[tied].tolist(), strict=True):
        parents[root(b)] = root(a)
    knots = src.astype(np.int64)
    knots[tied] = [root(node) for node in src[tied].tolist()]
    return knots
