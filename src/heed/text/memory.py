"""A translation memory: pairs of sentences as ids, and the one most like a new source.

Translators' programs call this a fuzzy match. Pairs are compared by the pieces of their sources,
so this works for every language. `heed.decode.guided` says what a search does with a match.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.disk.tensors import decode_with_metadata, encode_tensors
from heed.errors import FormatError

LEAST_SIMILARITY = 0.4
"""A pair that is less like a source says nothing about its translation."""

MOST_PAIRS = 500_000
"""Pairs that a memory holds: 490,000 software strings take 36 MB, and a search in them 0.7 ms."""

BONUSES = 16.0, 5.0
"""Bonuses that a run tries for its training pairs; the last is usual for pairs never tried.

1,500 software strings, BLEU and chrF2 with 0, 6, 10, 16 and 24: 26.1, 31.5, 31.8, 32.3, 31.7; 52.1,
54.9, 55.2, 56.0, 55.2. 300 sentences of Tatoeba, en→de, whose similar pairs say other things, with
0, 5, 10 and 16: 39.4, 38.8, 36.3, 31.6; 60.8, 61.2, 59.0, 55.9.
"""

_MOST_BONUS = 50.0
_N_CANDIDATES = 16
_MOST_READ = 1 << 14
"""Numbers of pairs read from the index for one source, those of its rarest pieces first."""
_LEAST_SHARED = 0.3
"""A candidate shares at least so much of what the one that shares most does."""

_NUMBER = re.compile(r"\d{1,3}(?:\.\d{1,6})?")
_NAMES = {"src", "src_counts", "tgt", "tgt_counts", "postings", "posting_counts"}

Ids = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Nearest:
    """The pair of a memory that is most like a source.

    Attributes:
        number: of the pair.
        similarity: 1 minus the edits from one source to the other, as a share of the longer one.
    """

    number: int
    similarity: float


class TranslationMemory:
    """Pairs of ids, and an index of the pieces of their sources.

    Args:
        arrays: as `arrays` gives them.
        bonus: largest addition to the log-prob of a token that a pair suggests, from 0.
    """

    def __init__(self, arrays: Mapping[str, Ids], bonus: float = BONUSES[-1]) -> None:
        self.arrays, self.bonus = dict(arrays), bonus
        self._src, self._tgt = arrays["src"], arrays["tgt"]
        self._src_ends = np.cumsum(arrays["src_counts"], dtype=np.int64)
        self._tgt_ends = np.cumsum(arrays["tgt_counts"], dtype=np.int64)
        self._postings = arrays["postings"]
        self._posting_ends = np.cumsum(arrays["posting_counts"], dtype=np.int64)

    @classmethod
    def of(
        cls, pairs: Iterable[tuple[Sequence[int], Sequence[int]]], sizes: tuple[int, int]
    ) -> "TranslationMemory":
        """The memory of some pairs; of pairs with the same source, the last.

        Args:
            pairs: source and target ids without special pieces; the tag of a target language, if
                there is one, stays in front of the source.
            sizes: of the source and target vocabulary.
        """
        by_source = {tuple(src): tgt for src, tgt in pairs}
        kept = [(src, tgt) for src, tgt in by_source.items() if src and len(tgt)]
        sources, targets = [src for src, _ in kept], [tgt for _, tgt in kept]
        src_counts = np.array([len(ids) for ids in sources], dtype=np.int32)
        src = np.fromiter(chain.from_iterable(sources), np.int32)
        # The numbers of the pairs that have a piece, piece by piece.
        keys = np.unique(src.astype(np.int64) * len(kept) + np.arange(len(kept)).repeat(src_counts))
        pieces, numbers = np.divmod(keys, max(1, len(kept)))
        return cls(
            {
                "src": _narrow(src, sizes[0]),
                "src_counts": src_counts,
                "tgt": _narrow(np.fromiter(chain.from_iterable(targets), np.int32), sizes[1]),
                "tgt_counts": np.array([len(ids) for ids in targets], dtype=np.int32),
                "postings": numbers.astype(np.int32),
                "posting_counts": np.bincount(pieces, minlength=sizes[0]).astype(np.int32),
            }
        )

    @classmethod
    def from_bytes(
        cls, data: bytes, sizes: tuple[int, int], where: PathLike[str]
    ) -> "TranslationMemory":
        """The memory of a file.

        Args:
            data: the whole file.
            sizes: of the source and target vocabulary.
            where: its name in errors.

        Raises:
            FormatError: it is damaged, or does not fit the vocabularies.
        """
        arrays, metadata = decode_with_metadata(data, where)
        bonus = metadata.get("bonus", "")
        if not _is_sound(arrays, sizes) or not _NUMBER.fullmatch(bonus):
            raise FormatError(f"{where} is damaged, or belongs to another model.")
        return cls(arrays, min(float(bonus), _MOST_BONUS))

    def to_bytes(self) -> bytes:
        """Its file."""
        return encode_tensors(self.arrays, metadata={"bonus": f"{self.bonus:g}"})

    def with_bonus(self, bonus: float) -> "TranslationMemory":
        """The same pairs with another bonus."""
        return TranslationMemory(self.arrays, bonus)

    def __len__(self) -> int:
        return len(self._src_ends)

    def src(self, number: int) -> Ids:
        """Source ids of a pair, `(n_pieces,)`."""
        return self._src[_start(self._src_ends, number) : self._src_ends[number]]

    def tgt(self, number: int) -> Ids:
        """Target ids of a pair, `(n_pieces,)`."""
        return self._tgt[_start(self._tgt_ends, number) : self._tgt_ends[number]]

    def pairs(self) -> Iterator[tuple[list[int], list[int]]]:
        """Source and target ids of each pair."""
        for number in range(len(self)):
            yield self.src(number).tolist(), self.tgt(number).tolist()

    def match(self, src_ids: Sequence[int], n_tags: int = 0) -> Nearest | None:
        """The pair whose source is most like this one; None if none is similar enough.

        Args:
            src_ids: without special pieces, except the tag of a target language.
            n_tags: 1 with such a tag: only pairs of the same language are compared.
        """
        whole = np.asarray(src_ids, dtype=np.int64)
        tag, own = whole[:n_tags], whole[n_tags:]
        if not len(own):
            return None
        if (same := self._same(whole)) is not None:
            return Nearest(same, 1.0)
        candidates = self._candidates(own, tag)
        if not len(candidates):
            return None
        sources = [self.src(number)[n_tags:] for number in candidates.tolist()]
        longest = np.array([max(len(own), len(ids)) for ids in sources])
        similarities = 1 - distances(own, sources) / longest
        best = int(similarities.argmax())
        if similarities[best] < LEAST_SIMILARITY:
            return None
        return Nearest(int(candidates[best]), float(similarities[best]))

    def _same(self, whole: Ids) -> int | None:
        """The number of the pair with this source, if there is one."""
        counts = self.arrays["posting_counts"][whole]
        rarest = counts.argmin()
        end = self._posting_ends[whole[rarest]]
        numbers = self._postings[end - counts[rarest] : end]
        numbers = numbers[self.arrays["src_counts"][numbers] == len(whole)]
        starts = self._src_ends[numbers] - len(whole)
        is_same = (self._src[starts[:, None] + np.arange(len(whole))] == whole).all(axis=1)
        return int(numbers[is_same][-1]) if is_same.any() else None

    def _candidates(self, own: Ids, tag: Ids) -> Ids:
        """Numbers of the pairs that share most with a source, weighted by rarity, best first.

        Args:
            own: the source without its tag.
            tag: only pairs with this tag are compared; empty = there are no tags.
        """
        pieces = np.unique(own)
        counts = self.arrays["posting_counts"][pieces]
        pieces = pieces[np.lexsort((pieces, counts))]
        counts = self.arrays["posting_counts"][pieces]
        n_read = max(1, int((counts.cumsum() <= _MOST_READ).sum()))
        ends = self._posting_ends[pieces[:n_read]]
        postings = [
            self._postings[end - count : end]
            for end, count in zip(ends.tolist(), counts[:n_read].tolist(), strict=True)
        ]
        weights = self._rarity[pieces[:n_read]].repeat(counts[:n_read])
        shared = np.bincount(np.concatenate(postings), weights, len(self))
        if len(tag):
            shared[self._first_ids != tag[0]] = 0.0
        numbers = (shared >= _LEAST_SHARED * shared.max(initial=1.0)).nonzero()[0]
        whole = np.maximum(self._totals[numbers], self._rarity[pieces].sum())
        order = np.lexsort((numbers, -shared[numbers] / whole))
        found: Ids = numbers[order[:_N_CANDIDATES]]
        return found

    @cached_property
    def _first_ids(self) -> Ids:
        """The first id of each source, which is its tag if there are tags, `(n_pairs,)`."""
        found: Ids = self._src[self._src_ends - self.arrays["src_counts"]]
        return found

    @cached_property
    def _rarity(self) -> NDArray[np.float64]:
        """The weight of each piece, `(vocab_size,)`: the log of how few pairs have it, squared."""
        counts = np.maximum(1, self.arrays["posting_counts"])
        return np.log(1 + len(self) / counts) ** 2

    @cached_property
    def _totals(self) -> NDArray[np.float64]:
        """The sum of the weights of the pieces of each pair, each piece once, `(n_pairs,)`."""
        weights = self._rarity.repeat(self.arrays["posting_counts"])
        return np.bincount(self._postings, weights, len(self)).astype(np.float64)


def distances(own: Ids, others: Sequence[Ids]) -> NDArray[np.int64]:
    """The fewest insertions, deletions and replacements from one sequence to each of others.

    Args:
        own: `(n_ids,)`.
        others: of any lengths.

    Returns:
        `(n_others,)`.

    Source: Wagner and Fischer 1974, row by row for all others at once.
    """
    lengths = np.array([len(ids) for ids in others])
    table = np.full((len(others), lengths.max(initial=0)), -1)
    for row, ids in zip(table, others, strict=True):
        row[: len(ids)] = ids
    columns = np.arange(table.shape[1] + 1)
    last = np.tile(columns, (len(others), 1))
    for number, id in enumerate(own.tolist(), start=1):
        row = np.minimum(last[:, 1:] + 1, last[:, :-1] + (table != id))
        row = np.concatenate([np.full((len(row), 1), number), row], axis=1)
        # An insertion costs one for each column passed since the best place before it.
        last = np.minimum.accumulate(row - columns, axis=1) + columns
    found: NDArray[np.int64] = np.take_along_axis(last, lengths[:, None], axis=1)[:, 0]
    return found


def _narrow(ids: Ids, size: int) -> Ids:
    """Ids of a vocabulary in as few bytes as they need."""
    return ids.astype(np.int16) if size <= np.iinfo(np.int16).max else ids


def _is_sound(arrays: Mapping[str, NDArray[Any]], sizes: tuple[int, int]) -> bool:
    """Whether arrays from a file are those of a memory, and fit vocabularies of these sizes."""
    if arrays.keys() != _NAMES or any(a.ndim != 1 or a.dtype.kind != "i" for a in arrays.values()):
        return False
    src_counts, tgt_counts, n_postings = map(
        arrays.__getitem__, ("src_counts", "tgt_counts", "posting_counts")
    )
    return (
        len(src_counts) == len(tgt_counts)
        and len(n_postings) == sizes[0]
        and min(src_counts.min(initial=1), tgt_counts.min(initial=1)) > 0
        and _fits(arrays["src"], src_counts, sizes[0])
        and _fits(arrays["tgt"], tgt_counts, sizes[1])
        and _fits(arrays["postings"], n_postings, len(src_counts))
    )


def _start(ends: NDArray[np.int64], number: int) -> int:
    return int(ends[number - 1]) if number else 0


def _fits(items: Ids, counts: Ids, size: int) -> bool:
    """Whether counted items are as many as there are, and all from 0 to below `size`."""
    if counts.min(initial=0) < 0 or counts.sum(dtype=np.int64) != len(items):
        return False
    return bool(items.min(initial=0) >= 0 and items.max(initial=-1) < size)
