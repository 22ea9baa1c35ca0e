"""Features of pairs of texts, for the regressions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heed.translate.doubts.words import Coverage, Words
from heed.translate.result import Translation

NAMES = (
    *("length_ratio", "length_difference", "src_length", "tgt_length"),
    *("src_expected_ratio", "src_expected_difference"),
    *("tgt_expected_ratio", "tgt_expected_difference"),
    *("src_uncovered", "src_worst", "src_uncovered_strict", "src_worst_strict"),
    *("tgt_uncovered", "tgt_worst", "tgt_uncovered_strict", "tgt_worst_strict"),
    *("tgt_language", "tgt_language_sum", "tgt_surprise"),
    *("src_language", "src_language_sum", "src_surprise"),
    *("mean_log_prob", "lowest", "second_lowest", "last", "eos"),
    *("own_ratio", "own_difference", "own_found", "own_shared", "own_missing"),
    *("own_log_prob", "own_mean_log_prob", "own_better_covered", "own_best_covered"),
)
"""Of a pair: the pieces alone; five of the model's probabilities; the rest compares a translation
that is given with the model's own, and is 0 for that one."""

TEXT = NAMES[:-14]
"""Those that need neither probabilities nor a second translation."""

SOURCE = ("src_length", "src_language", "src_language_sum", "src_surprise")
"""Those that the source has alone."""

N_BESIDE = 9
"""Those that compare two translations."""

AT_ONCE = 64
"""Pairs computed together: a byte for each of them and each piece has to fit into a cache."""

Numbers = NDArray[np.float64]


def places_of(names: Sequence[str]) -> list[int]:
    """The columns of these features."""
    return [NAMES.index(name) for name in names]


@dataclass(frozen=True, slots=True)
class Measured:
    """The features of some pairs.

    Attributes:
        values: a row a pair, in the order of `NAMES`, `(n, n_features)`.
        blocks: coverage of sources and translations, `AT_ONCE` pairs each.
    """

    values: Numbers
    blocks: list[tuple[Coverage, Coverage]]

    def src_span(self, row: int) -> tuple[int, int]:
        """The pieces of a source that its translation covers worst."""
        return self.blocks[row // AT_ONCE][0].span(row % AT_ONCE)

    def tgt_span(self, row: int) -> tuple[int, int]:
        """The pieces of a translation that its source covers worst."""
        return self.blocks[row // AT_ONCE][1].span(row % AT_ONCE)


def measure(
    words: Words, found: Sequence[Translation], own: Sequence[Translation] | None = None
) -> Measured:
    """The features of translations and their sources; some microseconds each.

    Features of a pair do not depend on other pairs.

    Args:
        words: of the model.
        found: with their pieces.
        own: the model's own translations of the same sources; None = `found` are its own.
    """
    values, blocks = [np.zeros((0, len(NAMES)))], []
    for start in range(0, len(found), AT_ONCE):
        some = found[start : start + AT_ONCE]
        block = words.cover([one.source_tokens for one in some], [one.tokens for one in some])
        beside = [np.zeros(len(some))] * N_BESIDE
        if own is not None:
            beside = _of_both(words, block[0], some, own[start : start + AT_ONCE])
        values.append(np.column_stack([*_of_pieces(*block), *_of_scores(some), *beside]))
        blocks.append(block)
    return Measured(np.concatenate(values), blocks)


def _of_pieces(src: Coverage, tgt: Coverage) -> list[Numbers]:
    n_src, n_tgt = src.lengths, tgt.lengths
    columns = [*_ratio(n_src, n_tgt), np.log1p(n_src), np.log1p(n_tgt)]
    columns += [*_ratio(src.fertility, n_tgt), *_ratio(tgt.fertility, n_src)]
    for side in (src, tgt):
        columns += [side.total, side.worst, side.total_strict, side.worst_strict]
    for side in (tgt, src):
        n_more = side.lengths + 1
        columns += [side.language / n_more, side.language, side.surprise / n_more]
    return columns


def _ratio(expected: Numbers, length: Numbers) -> tuple[Numbers, Numbers]:
    """The excess length of one side, as a ratio and in standard deviations of a Poisson count."""
    return np.log((expected + 1) / (length + 1)), (expected - length) / np.sqrt(expected + 1)


def _of_scores(found: Sequence[Translation]) -> list[Numbers]:
    """Mean and lowest log-probabilities, and those of the end."""
    rows = [one.token_scores or [0.0] for one in found]
    lowest = [sorted(row)[:2] for row in rows]
    columns = [
        [sum(row) / len(row) for row in rows],
        [row[0] for row in lowest],
        [row[-1] for row in lowest],
        [min(row[-2:]) for row in rows],
        [row[-1] for row in rows],
    ]
    return [np.array(column) for column in columns]


def _of_both(
    words: Words, src: Coverage, found: Sequence[Translation], own: Sequence[Translation]
) -> list[Numbers]:
    """Given translations compared with the model's own.

    Words that are only in the model's translation may be missing in the given one: a machine
    translation serves as a reference (Soricut and Narsale 2012, "Combining Quality Prediction and
    System Selection for Improved Automatic Translation Output").
    """
    by_own, _ = words.cover([one.source_tokens for one in found], [one.tokens for one in own])
    rows = []
    for one, other in zip(found, own, strict=True):
        tokens, other_tokens = _in_same_case(one, other)
        said, would_say = set(tokens), set(other_tokens)
        n_shared = len(said & would_say)
        rows.append(
            (
                n_shared / max(1, len(would_say)),
                n_shared / max(1, len(said)),
                _longest_missing(other_tokens, said),
                sum(other.token_scores) - sum(one.token_scores),
                _mean(other.token_scores) - _mean(one.token_scores),
            )
        )
    n_found, n_own = (
        np.array([len(one.tokens) for one in some], np.float64) for some in (found, own)
    )
    columns = np.array(rows, np.float64).reshape(len(found), -1).T
    return [*_ratio(n_own, n_found), *columns, *src.beyond(by_own)]


def _in_same_case(one: Translation, other: Translation) -> tuple[list[str], list[str]]:
    """The pieces of two translations, without case if only one of them is in capitals."""
    # The model translates a source in capitals into capitals, people may not.
    if _is_large(one.text) == _is_large(other.text):
        return one.tokens, other.tokens
    small = [[piece.lower() for piece in each.tokens] for each in (one, other)]
    return small[0], small[1]


def _is_large(text: str) -> bool:
    """Whether most letters are capitals; protected spans may be in small letters."""
    return sum(map(str.isupper, text)) > sum(map(str.islower, text))


def _longest_missing(tokens: Sequence[str], said: set[str]) -> float:
    """Most pieces in a row that are not in `said`; pieces between them that are count minus."""
    most = now = 0.0
    for token in tokens:
        now = max(0.0, now + (-1.0 if token in said else 1.0))
        most = max(most, now)
    return most


def _mean(scores: Sequence[float]) -> float:
    return sum(scores) / max(1, len(scores))
