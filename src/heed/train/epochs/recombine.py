"""New pairs from the pairs of a small corpus: phrases take each other's place.

Where `a red shirt` and `a white hat` stand between the same words, and their translations too, each
may replace the other, on both sides.

Source: Andreas 2020, "Good-Enough Compositional Data Augmentation", section 3; fragments are
    phrases of two languages here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heed.data.word_alignment import aligned
from heed.machine.seeds import derived_random
from heed.text.piece_words import words_of
from heed.text.vocab import Vocab
from heed.train.epochs.phrases import Place, phrases
from heed.train.epochs.replaced import ReplacedPairs, Replacement
from heed.train.step.trainer import EpochPairs

MOST = 3
"""Most phrases of a pair that are replaced."""

MAX_CELLS = 1 << 22
"""Most pairs of a source and a target word of the same sentences that are aligned, the shortest
sentences first. 5,000 captions have 0.9 million: 2.8 s and 140 MB."""

Ids = tuple[int, ...]
Words = list[str]


class Phrase(NamedTuple):
    """Ids of a phrase and of its translation."""

    src: Ids
    tgt: Ids


class _Choice(NamedTuple):
    """A phrase of a pair, and all phrases, its own included, that occur in its context."""

    place: Place
    own: Phrase
    options: list[Phrase]


class Recombiner:
    """Epoch → its pairs, some of them with phrases of other pairs; aligns the words first.

    Args:
        pairs: the corpus.
        src_vocab: pieces of the sources.
        tgt_vocab: pieces of the targets.
        share: share of the pairs of an epoch in which phrases are replaced.
        seed: decides which.
        max_length: most pieces of a side, `<eos>` included; a pair that would be longer is not
            changed.
    """

    def __init__(
        self,
        pairs: EpochPairs,
        src_vocab: Vocab,
        tgt_vocab: Vocab,
        *,
        share: float,
        seed: int,
        max_length: int,
    ) -> None:
        self._pairs, self._share, self._seed = pairs, share, seed
        self._max_length = max_length
        self._n_tags = int(bool(src_vocab.languages))
        self._src, self._tgt = _Side(src_vocab), _Side(tgt_vocab)
        self._read_words()
        self._choices = self._find_choices()

    def __call__(self, epoch: int) -> ReplacedPairs:
        """The pairs of an epoch; the seed and its number decide which phrases are replaced."""
        return ReplacedPairs(self._pairs, self._replacements(epoch))

    def _read_words(self) -> None:
        """Split pairs into words, the shortest first, up to `MAX_CELLS`."""
        pairs, n_cells = self._pairs, 0
        costs = pairs.src_lengths.astype(np.int64) * pairs.tgt_lengths
        for number in np.argsort(costs, kind="stable").tolist():
            src_ids = pairs.src(number)[self._n_tags :]
            n_src = self._src.read(number, src_ids)
            n_cells += n_src * self._tgt.read(number, pairs.tgt(number))
            if n_cells > MAX_CELLS:
                del self._src.texts[number], self._tgt.texts[number]
                return

    def _tag(self, number: int) -> list[int]:
        """The language tag of a pair, if there are any."""
        tag: list[int] = self._pairs.src(number)[: self._n_tags].tolist()
        return tag

    def _find_choices(self) -> dict[int, list[_Choice]]:
        """For each pair its phrases that others can replace."""
        found: dict[int, list[tuple[Place, Phrase, object]]] = {}
        by_context: dict[object, dict[Phrase, None]] = {}
        for n, links in _links(self._src.texts, self._tgt.texts):
            found[n], tag = [], self._tag(n)
            for place in phrases(links, len(self._src.texts[n])):
                src, tgt = place.src, place.tgt
                own = Phrase(self._src.phrase(n, *src), self._tgt.phrase(n, *tgt))
                if self._src.is_fixed(own.src) or self._tgt.is_fixed(own.tgt):
                    continue
                beside = self._src.beside(n, *src), self._tgt.beside(n, *tgt)
                context = *tag, *beside
                found[n].append((place, own, context))
                by_context.setdefault(context, {})[own] = None
        options = {key: [*own] for key, own in by_context.items() if len(own) > 1}
        return {
            n: [_Choice(place, own, options[key]) for place, own, key in places if key in options]
            for n, places in found.items()
        }

    def _replacements(self, epoch: int) -> Iterator[Replacement]:
        random = derived_random(self._seed, "recombined", epoch)
        n_pairs = len(self._pairs.src_lengths)
        for number in np.flatnonzero(random.random(n_pairs) < self._share).tolist():
            found = self._changed(number, random)
            if found is not None and found.fits(self._max_length):
                yield found

    def _changed(self, number: int, random: np.random.Generator) -> Replacement | None:
        """The pair with one to three other phrases; None if none of its phrases has a rival."""
        wanted, choices = 1 + int(random.random() * MOST), self._choices.get(number, ())
        chosen: list[tuple[Place, Phrase]] = []
        for row in random.permutation(len(choices)).tolist():
            place, own, options = choices[row]
            # Words beside a replaced phrase are its context.
            if len(chosen) == wanted or any(place.touches(other) for other, _ in chosen):
                continue
            new = options[int(random.random() * len(options))]
            if new.src != own.src and new.tgt != own.tgt:
                chosen.append((place, new))
        if not chosen:
            return None
        src = self._src.replaced(number, [(*place.src, new.src) for place, new in chosen])
        tgt = self._tgt.replaced(number, [(*place.tgt, new.tgt) for place, new in chosen])
        return Replacement(number, self._tag(number) + src, tgt)


class _Side:
    """The words of one side of some pairs by their numbers, as ids and as text."""

    def __init__(self, vocab: Vocab) -> None:
        slots = vocab.slots.ids if vocab.slots else ()
        self._vocab = vocab
        self._fixed = {id for id in range(vocab.size) if vocab.is_control(id)} | {*slots}
        self._begins = vocab.begins_word.tolist()
        self.ids: dict[int, list[Ids]] = {}
        self.texts: dict[int, Words] = {}

    def read(self, number: int, sentence: NDArray[np.integer[Any]]) -> int:
        """Split a sentence into words; returns how many it has."""
        ids = sentence.tolist()
        words = words_of(self._vocab.pieces(ids))
        self.ids[number] = [tuple(ids[word.first : word.end]) for word in words]
        self.texts[number] = [word.text for word in words]
        return len(words)

    def phrase(self, number: int, start: int, end: int) -> Ids:
        """The ids of some adjacent words of a sentence."""
        return _joined(self.ids[number][start:end])

    def beside(self, number: int, start: int, end: int) -> tuple[str, str, bool]:
        """The context of a phrase: the words beside it, "" at an end, and if a blank begins it."""
        texts = self.texts[number]
        before = texts[start - 1] if start else ""
        after = texts[end] if end < len(texts) else ""
        return before.casefold(), after.casefold(), self._begins[self.ids[number][start][0]]

    def is_fixed(self, ids: Ids) -> bool:
        """Whether a slot or a tag is among the ids."""
        return not self._fixed.isdisjoint(ids)

    def replaced(self, number: int, changes: Iterable[tuple[int, int, Ids]]) -> list[int]:
        """The ids of a sentence with other phrases between some words."""
        words = list(self.ids[number])
        for start, end, ids in changes:
            words[start:end] = [ids, *[()] * (end - start - 1)]
        return [*_joined(words)]


def _links(
    src: Mapping[int, Words], tgt: Mapping[int, Words]
) -> Iterator[tuple[int, dict[int, int]]]:
    """Numbers of pairs, and the target word of each source word by both directions."""
    numbers = sorted(src)
    sources, targets = [src[n] for n in numbers], [tgt[n] for n in numbers]
    links = zip(numbers, aligned(sources, targets), aligned(targets, sources), strict=True)
    for n, forth, back in links:
        yield n, dict(forth & {(i, j) for j, i in back})


def _joined(words: Sequence[Ids]) -> Ids:
    return tuple(id for word in words for id in word)
