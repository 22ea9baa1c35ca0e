"""Set pairs aside for dev and test so that training contains none of their sentences.

A pair is represented by one number a sentence; see `sentence_key`.
"""

from array import array
from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from heed.data.clean import Rule, sentence_hash
from heed.data.readers import Pair

Keys = NDArray[np.uint64]

TRAIN, DEV, TEST, MADE = range(4)
"""The sets of pairs; `MADE` are training pairs that a model has translated."""
# A sentence with many translations joins many pairs into one group. Larger groups than this are
# drawn only if there is no other, because they would fill dev with variants of one sentence.
LARGEST_KNOT = 4


def sentence_key(text: str) -> int:
    """A 64-bit hash of a sentence, without its case and the punctuation around it."""
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
        dev_size: pairs wanted in dev; may be fewer because of shared sentences.
        test_size: pairs wanted in test.
        seed: decides the draw.

    Returns:
        `TRAIN`, `DEV` or `TEST` for each pair, `(n_pairs)`.
    """
    parts = np.full(len(src_keys), TRAIN, dtype=np.uint8)
    knots = _knots(src_keys, tgt_keys)
    members = np.argsort(knots, kind="stable").astype(np.int32)
    starts = np.flatnonzero(np.diff(knots[members], prepend=-1)).astype(np.int32)
    sizes = np.diff(np.append(starts, len(members)))
    random = np.random.Generator(np.random.Philox(key=np.array([seed, 0], dtype=np.uint64)))
    shuffled = random.permutation(len(sizes))
    large_last = np.argsort(np.where(sizes <= LARGEST_KNOT, 0, sizes)[shuffled], kind="stable")
    drawn: Iterator[int] = map(int, shuffled[large_last])
    for part, wanted in ((TEST, test_size), (DEV, dev_size)):
        count, too_large = 0, array("i")
        while count < wanted and (knot := next(drawn, None)) is not None:
            if count + sizes[knot] <= wanted:
                parts[members[starts[knot] : starts[knot] + sizes[knot]]] = part
                count += int(sizes[knot])
            else:
                too_large.append(knot)
        drawn = chain(too_large, drawn)  # they may fit into the next part
    return parts


def count_groups(src_keys: Keys, tgt_keys: Keys) -> int:
    """How many groups of pairs there are that share no sentence, directly or through others."""
    return len(np.unique(_knots(src_keys, tgt_keys)))


def shared_with(pairs: Iterable[Pair], name: str) -> Rule:
    """A rule against training pairs that share a sentence, on either side, with `pairs`.

    Args:
        pairs: the dev or test pairs, few enough for memory.
        name: the reason in the report: `in_dev`.
    """
    src_keys, tgt_keys = set(), set()
    for pair in pairs:
        src_keys.add(sentence_key(pair.src))
        tgt_keys.add(sentence_key(pair.tgt))

    def rule(pair: Pair) -> str | None:
        is_shared = sentence_key(pair.src) in src_keys or sentence_key(pair.tgt) in tgt_keys
        return f"in_{name}" if is_shared else None

    return rule


def _knots(src_keys: Keys, tgt_keys: Keys) -> NDArray[np.int32]:
    """One number for all pairs that share a sentence, directly or through others, `(n_pairs)`."""
    src, is_shared_src = _numbered(src_keys)
    tgt, is_shared_tgt = _numbered(tgt_keys)
    # Only shared sentences join pairs: sources and targets are the nodes of a graph of pairs.
    tied = np.flatnonzero(is_shared_src[src] | is_shared_tgt[tgt])
    n_sources, n_targets = len(is_shared_src), len(is_shared_tgt)
    parents = array("i", range(n_sources + n_targets))

    def root(node: int) -> int:
        while parents[node] != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    for a, b in zip(map(int, src[tied]), map(int, tgt[tied]), strict=True):
        parents[root(n_sources + b)] = root(a)
    src[tied] = np.fromiter(map(root, map(int, src[tied])), dtype=np.int32, count=len(tied))
    return src


def _numbered(keys: Keys) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Equal keys as equal numbers from 0, `(n_pairs)`, and whether one occurs more than once."""
    order = np.argsort(keys).astype(np.int32)
    is_first = np.append(True, np.diff(keys[order]) != 0) if len(keys) else np.zeros(0, np.bool_)
    numbers = np.empty(len(keys), dtype=np.int32)
    numbers[order] = np.cumsum(is_first, dtype=np.int32) - 1
    counts = np.diff(np.flatnonzero(np.append(is_first, True)))
    return numbers, counts > 1
