"""New pairs from the pairs of a small corpus: phrases take each other's place.

Where `a red shirt` and `a white hat` stand between the same words, and their translations too, each
may replace the other, on both sides.

Source: Andreas 2020, "Good-Enough Compositional Data Augmentation", section 3; fragments are
    phrases of two languages here.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from heed.data.word_alignment import aligned
from heed.machine.seeds import derive_seed
from heed.text.scripts import script_of
from heed.text.vocab import Vocab
from heed.train.epochs.phrases import Place, phrases
from heed.train.epochs.replaced import ReplacedPairs, Replacement
from heed.train.step.trainer import EpochPairs

MOST = 3
"""Most phrases of a pair that are replaced."""

_SOLID = frozenset(("han", "kana", "thai"))
"""Scripts whose words have no blanks between them: each piece counts as a word."""

_BLANK = "\u2581"

Ids = tuple[int, ...]


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
        n_tags = int(bool(src_vocab.languages))
        src_words, tgt_words = _Words(src_vocab), _Words(tgt_vocab)
        numbers = range(len(pairs.src_lengths))
        self._tags = [pairs.src(n)[:n_tags].tolist() for n in numbers]
        self._src = [src_words.split(pairs.src(n)[n_tags:].tolist()) for n in numbers]
        self._tgt = [tgt_words.split(pairs.tgt(n).tolist()) for n in numbers]
        self._choices = self._find_choices(src_words, tgt_words)

    def __call__(self, epoch: int) -> ReplacedPairs:
        """The pairs of an epoch; the seed and its number decide which phrases are replaced."""
        return ReplacedPairs(self._pairs, self._replacements(epoch))

    def _find_choices(self, src_words: "_Words", tgt_words: "_Words") -> list[list[_Choice]]:
        """For each pair its phrases that others can replace."""
        src = [[src_words.spell(word) for word in words] for words in self._src]
        tgt = [[tgt_words.spell(word) for word in words] for words in self._tgt]
        found: list[list[tuple[Place, Phrase, object]]] = [[] for _ in src]
        by_context: dict[object, dict[Phrase, None]] = {}
        for n, (forth, back) in enumerate(zip(aligned(src, tgt), aligned(tgt, src), strict=True)):
            links = dict(forth & {(i, j) for j, i in back})
            for place in phrases(links, len(src[n])):
                own = self._phrase(n, place)
                if src_words.is_fixed(own.src) or tgt_words.is_fixed(own.tgt):
                    continue
                context = (
                    *self._tags[n],
                    *_beside(src[n], place.src_start, place.src_end),
                    *_beside(tgt[n], place.tgt_start, place.tgt_end),
                    src_words.has_blank(own.src),
                    tgt_words.has_blank(own.tgt),
                )
                found[n].append((place, own, context))
                by_context.setdefault(context, {})[own] = None
        options = {key: [*own] for key, own in by_context.items() if len(own) > 1}
        return [
            [_Choice(place, own, options[key]) for place, own, key in places if key in options]
            for places in found
        ]

    def _phrase(self, number: int, place: Place) -> Phrase:
        return Phrase(
            _joined(self._src[number][place.src_start : place.src_end]),
            _joined(self._tgt[number][place.tgt_start : place.tgt_end]),
        )

    def _replacements(self, epoch: int) -> Iterator[Replacement]:
        key = derive_seed(self._seed, "recombined", epoch)
        random = np.random.Generator(np.random.Philox(key=key))
        for number in np.flatnonzero(random.random(len(self._src)) < self._share).tolist():
            found = self._changed(number, random)
            if found is not None and max(map(len, found[1:])) < self._max_length:
                yield found

    def _changed(self, number: int, random: np.random.Generator) -> Replacement | None:
        """The pair with one to three other phrases; None if none of its phrases has a rival."""
        wanted = 1 + int(random.random() * MOST)
        chosen: list[tuple[Place, Phrase]] = []
        for row in random.permutation(len(self._choices[number])).tolist():
            place, own, options = self._choices[number][row]
            # Words beside a replaced phrase are its context.
            if len(chosen) == wanted or any(place.touches(other) for other, _ in chosen):
                continue
            new = options[int(random.random() * len(options))]
            if new.src != own.src and new.tgt != own.tgt:
                chosen.append((place, new))
        if not chosen:
            return None
        src, tgt = list(self._src[number]), list(self._tgt[number])
        for place, new in chosen:
            src[place.src_start : place.src_end] = _padded(new.src, place.src_end - place.src_start)
            tgt[place.tgt_start : place.tgt_end] = _padded(new.tgt, place.tgt_end - place.tgt_start)
        return Replacement(number, [*self._tags[number], *_joined(src)], [*_joined(tgt)])


class _Words:
    """Splits ids into words: with a blank before each, or marks, or solid script."""

    def __init__(self, vocab: Vocab) -> None:
        ids = range(vocab.size)
        slots = set(vocab.slots.ids) if vocab.slots else set()
        self._pieces = vocab.pieces(ids)
        self._fixed = [vocab.is_control(id) or id in slots for id in ids]
        self._has_blank = vocab.begins_word.tolist()
        free = list(zip(self._pieces, self._fixed, strict=True))
        self._joins_left = [not fixed and _is_inside(piece[0]) for piece, fixed in free]
        self._joins_right = [
            not fixed and (_is_inside(piece[-1]) or piece == _BLANK) for piece, fixed in free
        ]

    def split(self, ids: Sequence[int]) -> list[Ids]:
        """The words."""
        words: list[Ids] = []
        for id in ids:
            if words and self._joins_left[id] and self._joins_right[words[-1][-1]]:
                words[-1] += (id,)
            else:
                words.append((id,))
        return words

    def spell(self, word: Ids) -> str:
        """A word without its blank."""
        return "".join(self._pieces[id] for id in word).lstrip(_BLANK).casefold()

    def is_fixed(self, ids: Ids) -> bool:
        """Whether a slot or a tag is among the ids."""
        return any(self._fixed[id] for id in ids)

    def has_blank(self, ids: Ids) -> bool:
        """Whether the first piece has a blank in front."""
        blank: bool = self._has_blank[ids[0]]
        return blank


def _is_inside(character: str) -> bool:
    """Whether a character is part of a word with other ones; pieces such as `<0xC3>` are."""
    if character in "<>":
        return True
    return character.isalnum() and script_of(character) not in _SOLID


def _beside(words: Sequence[str], start: int, end: int) -> tuple[str, str]:
    """The words on the left and on the right of a phrase; "" at an end."""
    return words[start - 1] if start else "", words[end] if end < len(words) else ""


def _padded(ids: Ids, n_words: int) -> list[Ids]:
    """A phrase in place of so many words, so that the places of other words stay the same."""
    return [ids, *[()] * (n_words - 1)]


def _joined(words: Sequence[Ids]) -> Ids:
    return tuple(id for word in words for id in word)
