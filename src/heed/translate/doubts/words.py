"""Statistics of pieces from training pairs: translations, fertility and language.

`learn_words` makes the arrays that a model stores, `Words` reads them. A piece is covered if a
piece that translates it is on the other side.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heed.bundle.doubts import Arrays
from heed.data.links import Counted, Pairs, Swapped, Translations, expected_counts
from heed.data.portions import random_portions
from heed.machine.seeds import derive_seed
from heed.text.vocab import Vocab
from heed.translate.words import largest_sum

MAX_LINKS = 1 << 22
"""Pairs of a source and a target piece that are counted: some seconds, 50 MB."""

SAMPLE = 1 << 20
"""Sum of squared lengths of the pairs in which coverage of pieces is counted."""

LOOSE, STRICT = 0.08, 0.25
"""A link counts as loose or strict from this probability on, in either direction."""

LEAST = 1.5
"""Fewest expected occurrences of a link; one sentence is not enough."""

_USUAL = 6.0
"""Surprise of a protected span, which is in no vocabulary: about that of a usual piece."""

SMOOTHED = 4.0
"""Occurrences that a rare piece borrows from all pieces."""

N_VALUES = 7
"""Numbers about a piece: see `_Side`."""

Shares = NDArray[np.float64]
Values = NDArray[np.float32]
Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Coverage:
    """How well one side of some pairs is covered by the other; a row a pair.

    Attributes:
        lengths: pieces of each, `(n,)`.
        total: sum of the log-odds of all pieces that they were left out, `(n,)`.
        worst: the sum of the worst stretch, `(n,)`.
        total_strict: `total` by strict links, `(n,)`.
        worst_strict: `worst` by strict links, `(n,)`.
        fertility: pieces expected on the other side, `(n,)`.
        language: sum of the log-odds of the side's language, `(n,)`.
        surprise: sum of minus the logs of the pieces' shares of their side, `(n,)`.
        odds: log-odds of each piece, 0 after the end, `(n, longest)`.
    """

    lengths: Shares
    total: Shares
    worst: Shares
    total_strict: Shares
    worst_strict: Shares
    fertility: Shares
    language: Shares
    surprise: Shares
    odds: Shares

    def beyond(self, other: "Coverage") -> tuple[Shares, Shares]:
        """How much worse texts are covered than by `other`: in all, and in the worst stretch.

        Args:
            other: of the same texts.
        """
        difference = self.odds - other.odds
        # In the order of the pieces: `sum` alone adds in another order if another text is longer.
        total = difference.cumsum(axis=1)[:, -1:].sum(axis=1)
        return total, _worst(difference)

    def span(self, row: int) -> tuple[int, int]:
        """The worst stretch of a pair, first piece and one past the last."""
        return largest_sum(self.odds[row], above=0.0)


class Words:
    """The arrays of a model.

    Args:
        arrays: from `learn_words`.
        src_vocab: pieces of the source side.
        tgt_vocab: pieces of the target side.
    """

    def __init__(self, arrays: Arrays, src_vocab: Vocab, tgt_vocab: Vocab) -> None:
        ids = [
            {piece: id for id, piece in enumerate(vocab.pieces(range(vocab.size)))}
            for vocab in (src_vocab, tgt_vocab)
        ]
        # A name on both sides is its own translation.
        same = [(ids[0][piece], ids[1][piece]) for piece in ids[0].keys() & ids[1].keys()]
        copies = np.array(sorted(same), np.int64).reshape(-1, 2)
        src = np.concatenate([arrays["links.src"], copies[:, 0]])
        tgt = np.concatenate([arrays["links.tgt"], copies[:, 1]])
        strict = np.concatenate([arrays["links.strict"].astype(bool), np.ones(len(copies), bool)])
        self.src = _Side((src, tgt, strict), arrays["src.values"], ids[0])
        self.tgt = _Side((tgt, src, strict), arrays["tgt.values"], ids[1])

    def cover(
        self, sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]]
    ) -> tuple[Coverage, Coverage]:
        """Coverage of sources by their translations, and of translations by their sources.

        Args:
            sources: pieces of each source.
            targets: pieces of each translation.
        """
        src, tgt = self.src.rows(sources), self.tgt.rows(targets)
        return self.src.cover(src, self.tgt.present(tgt)), self.tgt.cover(
            tgt, self.src.present(src)
        )


class _Rows(NamedTuple):
    """Some texts as ids.

    Attributes:
        ids: of all pieces, concatenated, `(n_pieces,)`.
        rows: the index of the text of each, `(n_pieces,)`.
        places: the index of each in its text, `(n_pieces,)`.
        lengths: of the texts, `(n,)`.
    """

    ids: Ids
    rows: Ids
    places: Ids
    lengths: Ids


class _Side:
    """Statistics of the pieces of one side.

    Args:
        links: ids of this side, ids of the other, and whether they are strict.
        values: log-odds if covered and if not, the same of strict links, fertility, language and
            surprise of each piece, `(vocab_size, N_VALUES)`.
        ids: of the pieces.
    """

    def __init__(
        self, links: tuple[Ids, Ids, NDArray[np.bool_]], values: Values, ids: dict[str, int]
    ) -> None:
        order = np.argsort(links[0], kind="stable")
        own, self._others, self._strict = (array[order] for array in links)
        # One piece more, for all that are not in the vocabulary.
        self._starts = np.searchsorted(own, np.arange(len(values) + 2))
        never = np.array([[0, 0, 0, 0, 1, 0, _USUAL]])
        self._values = np.concatenate([values.astype(np.float64), never])
        self._ids = ids

    def rows(self, texts: Sequence[Sequence[str]]) -> _Rows:
        """The ids of some texts."""
        find = self._find
        lengths = np.array([len(text) for text in texts], np.int64)
        ids = np.array([find(piece) for text in texts for piece in text], np.int64)
        rows = np.arange(len(texts)).repeat(lengths)
        places = np.arange(len(ids)) - (np.cumsum(lengths) - lengths).repeat(lengths)
        return _Rows(ids, rows, places, lengths)

    def _find(self, piece: str) -> int:
        """The id of a piece; of a translation in capitals, as the model wrote it."""
        id = self._ids.get(piece)
        if id is None and piece.isupper():
            id = self._ids.get(piece.lower())
            if id is None:
                id = self._ids.get(piece[:2] + piece[2:].lower())
        return len(self._values) - 1 if id is None else id

    def present(self, texts: _Rows) -> NDArray[np.bool_]:
        """Which pieces stand in each text, `(n, vocab_size + 1)`."""
        found = np.zeros((len(texts.lengths), len(self._values)), bool)
        found[texts.rows, texts.ids] = True
        return found

    def cover(self, texts: _Rows, present: NDArray[np.bool_]) -> Coverage:
        """Coverage of texts by the other side, given the pieces present there."""
        starts = self._starts[texts.ids]
        counts = self._starts[texts.ids + 1] - starts
        token = np.arange(len(texts.ids)).repeat(counts)
        link = np.arange(len(token)) + (starts - (np.cumsum(counts) - counts)).repeat(counts)
        is_there = present[texts.rows[token], self._others[link]]
        is_covered, is_covered_strictly = (np.zeros(len(texts.ids), bool) for _ in range(2))
        is_covered[token[is_there]] = True
        is_covered_strictly[token[is_there & self._strict[link]]] = True
        values = self._values[texts.ids]
        odds = np.where(is_covered, values[:, 0], values[:, 1])
        strict_odds = np.where(is_covered_strictly, values[:, 2], values[:, 3])
        n_rows = len(texts.lengths)
        # Summed in the order of the pieces, so that sums do not depend on other texts.
        sums: list[Shares] = [
            np.bincount(texts.rows, weights, n_rows).astype(np.float64)
            for weights in (odds, strict_odds, values[:, 4], values[:, 5], values[:, 6])
        ]
        table = _table(texts, odds)
        return Coverage(
            lengths=texts.lengths.astype(np.float64),
            total=sums[0],
            worst=_worst(table),
            total_strict=sums[1],
            worst_strict=_worst(_table(texts, strict_odds)),
            fertility=sums[2],
            language=sums[3],
            surprise=sums[4],
            odds=table,
        )


def _table(texts: _Rows, values: Shares) -> Shares:
    """Values of pieces, a row a text, `(n, longest)`."""
    table = np.zeros((len(texts.lengths), int(texts.lengths.max(initial=0))))
    table[texts.rows, texts.places] = values
    return table


def _worst(table: Shares) -> Shares:
    """The largest sum of neighbors in each row, at least 0, `(n,)`."""
    if not table.shape[1]:
        return np.zeros(len(table))
    sums = np.cumsum(table, axis=1)
    before = np.zeros_like(sums)
    before[:, 1:] = sums[:, :-1]
    worst: Shares = (sums - np.minimum.accumulate(before, axis=1)).max(axis=1, initial=0.0)
    return worst


def counted(pairs: Pairs, src_vocab: Vocab, tgt_vocab: Vocab) -> Counted:
    """Training pairs, ids without special pieces, whose translations are counted when needed."""
    return Counted(pairs, src_vocab.size, tgt_vocab.size, at_most=MAX_LINKS)


def learn_words(training: Counted, src_vocab: Vocab, tgt_vocab: Vocab) -> Arrays:
    """Count in training pairs which pieces translate which.

    Args:
        training: from `counted`.
        src_vocab: pieces of their sources.
        tgt_vocab: pieces of their targets.
    """
    pairs, n_src, n_tgt = training.pairs, src_vocab.size, tgt_vocab.size
    forth, tgt_per_src = _links(training.forth, pairs, n_src)
    back, src_per_tgt = _links(training.back, Swapped(pairs), n_tgt)
    src = np.concatenate([forth[0], back[1]])
    tgt = np.concatenate([forth[1], back[0]])
    chances = np.concatenate([forth[2], back[2]])
    keys, places = np.unique(src * n_tgt + tgt, return_inverse=True)
    best = np.zeros(len(keys))
    np.maximum.at(best, places, chances)
    src, tgt = np.divmod(keys, n_tgt)
    strict = best >= STRICT
    numbers = next(
        random_portions(
            pairs.src_lengths.astype(np.int64) * pairs.tgt_lengths,
            SAMPLE,
            seed=derive_seed(0, "doubts"),
        ),
        [],
    )
    sample = [(pairs.src(n), pairs.tgt(n)) for n in numbers]
    swapped = [(b, a) for a, b in sample]
    of_src, of_tgt = _languages(sample, src_vocab, tgt_vocab)
    return {
        "links.src": src.astype(np.int32),
        "links.tgt": tgt.astype(np.int32),
        "links.strict": strict.astype(np.uint8),
        "src.values": np.column_stack(
            [*_odds((src, tgt, strict), sample, n_src), tgt_per_src, *of_src]
        ).astype(np.float32),
        "tgt.values": np.column_stack(
            [*_odds((tgt, src, strict), swapped, n_tgt), src_per_tgt, *of_tgt]
        ).astype(np.float32),
    }


def _links(
    translations: Translations, pairs: Pairs, n_src: int
) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64], Shares], Shares]:
    """Source ids, target ids and probabilities of links; and the fertility of each source id."""
    src, tgt, chances, links = translations
    if not len(src):
        return (src, tgt, chances), np.ones(n_src)
    expected = expected_counts(links, chances)
    counts = np.zeros(n_src + 1)
    seen = np.bincount(src, expected, n_src + 1)
    for numbers in random_portions(
        pairs.src_lengths.astype(np.int64) * (pairs.tgt_lengths - 1),
        MAX_LINKS,
        seed=derive_seed(0, "lexicon"),
    ):
        ids = np.concatenate([pairs.src(number) for number in numbers])
        counts[: n_src + 1] += np.bincount(ids, minlength=n_src + 1)
    average = seen[:n_src].sum() / max(1.0, counts.sum())
    fertility = (seen + SMOOTHED * average)[:n_src] / (counts + SMOOTHED)[:n_src]
    kept = (src < n_src) & (chances >= LOOSE) & (expected >= LEAST)
    return (src[kept], tgt[kept], chances[kept]), fertility


Sample = list[tuple[NDArray[np.int32], NDArray[np.int32]]]


def _odds(
    links: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]], sample: Sample, size: int
) -> list[Shares]:
    """Of each piece the log-odds if covered and if not, by loose and then by strict links.

    They compare the rate at which a piece is covered in its own pair with the rate in another
    pair, where its translation is missing as if it had been left out.
    """
    found: list[Shares] = []
    others = [other for _, other in sample]
    for is_kept in (np.ones(len(links[0]), bool), links[2]):
        sets: dict[int, set[int]] = {}
        for id, other_id in zip(
            links[0][is_kept].tolist(), links[1][is_kept].tolist(), strict=True
        ):
            sets.setdefault(id, set()).add(other_id)
        seen, own, foreign = np.zeros(size), np.zeros(size), np.zeros(size)
        for place, (ids, other) in enumerate(sample):
            here, there = set(other.tolist()), set(others[place - 1].tolist())
            for id in ids.tolist():
                candidates = sets.get(id, ())
                seen[id] += 1
                own[id] += not here.isdisjoint(candidates)
                foreign[id] += not there.isdisjoint(candidates)
        n_seen = max(1.0, seen.sum())
        share, foreign_share = own.sum() / n_seen, foreign.sum() / n_seen
        good = (own + SMOOTHED * share) / (seen + SMOOTHED)
        bad = (foreign + SMOOTHED * foreign_share) / (seen + SMOOTHED)
        good = np.clip(good, 1e-3, 1 - 1e-3)
        bad = np.clip(np.minimum(bad, good), 1e-3, 1 - 1e-3)
        found += [np.log(bad / good), np.log((1 - bad) / (1 - good))]
    return found


def _languages(
    sample: Sample, src_vocab: Vocab, tgt_vocab: Vocab
) -> tuple[list[Shares], list[Shares]]:
    """For the pieces of each side, the log-odds that they are of its language, and the surprise.

    The texts of the other side are read with the vocabulary of this one.
    """
    sides = (src_vocab, [ids for ids, _ in sample]), (tgt_vocab, [ids for _, ids in sample])
    found = []
    for (vocab, own), (other_vocab, other) in (sides, sides[::-1]):
        if vocab.hash != other_vocab.hash:
            texts = [other_vocab.decode(ids.tolist()) for ids in other]
            other = [np.array(ids, np.int32) for ids in vocab.encode_all(texts)]
        here, there = (
            np.bincount(np.concatenate([*ids, np.zeros(0, np.int32)]), minlength=vocab.size) + 0.5
            for ids in (own, other)
        )
        shares = here / here.sum()
        found.append([np.log(shares) - np.log(there / there.sum()), -np.log(shares)])
    return found[0], found[1]
