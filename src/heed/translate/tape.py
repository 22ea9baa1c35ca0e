"""A translation as a sequence of words and protected spans; missing spans are placed in it.

A pair of tags goes around the words aligned with those that it enclosed in the source. A span that
the model read and did not repeat replaces the words aligned with it. Any other span goes after the
word that is aligned with the word before it.
"""

import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from heed.text.protected import NAME, Rules, find_spans
from heed.text.scripts import is_written_solid
from heed.translate.given_spans import words_equal
from heed.translate.source import Kept
from heed.translate.words import Links, best_stretch

# Between one of these and a span there is a blank, unless the source had none there.
_CLOSING = frozenset(".,!?;:…،؛؟।")
# A span replaces a word if more than this share of the word is linked with it.
_LEAST_SHARE = 0.25


@dataclass(eq=False, slots=True)
class Atom:
    """A word of the translation, or a protected span.

    Attributes:
        text: its text.
        is_spaced: whether a blank is before it.
        span: index of the protected span; None = a word.
        word: its index among the words of the links; None = it was put in.
        is_fixed: whether it must stay, as part of the caller's prefix.
    """

    text: str
    is_spaced: bool
    span: int | None = None
    word: int | None = None
    is_fixed: bool = False


class Tape:
    """The atoms of a translation, in order.

    Args:
        spans: of the source.
        atoms: of the translation.
    """

    def __init__(self, spans: Sequence[Kept], atoms: Iterable[Atom]) -> None:
        self.spans = spans
        self.atoms = list(atoms)

    @property
    def missing(self) -> list[int]:
        """The spans of the source that the tape lacks, in order."""
        there = {atom.span for atom in self.atoms}
        return [index for index in range(len(self.spans)) if index not in there]

    def has(self, index: int) -> bool:
        """Whether the tape has a span."""
        return any(atom.span == index for atom in self.atoms)

    def write(self) -> tuple[str, list[tuple[int, int]]]:
        """The text, and the place of each atom in it."""
        parts: list[str] = []
        places: list[tuple[int, int]] = []
        length = 0
        for atom in self.atoms:
            if atom.is_spaced and length:
                parts.append(" ")
                length += 1
            parts.append(atom.text)
            places.append((length, length + len(atom.text)))
            length += len(atom.text)
        return "".join(parts), places

    def recognized(
        self, text: str, places: Sequence[tuple[int, int]], rules: Rules
    ) -> set[tuple[int, int]]:
        """The places of spans that a rule finds, and of names that are no part of a longer word.

        Args:
            text: of the tape, as `write` gives it.
            places: of its atoms.
            rules: those of the source.
        """
        found = {(span.start, span.end) for span in find_spans(text, rules)}
        for atom, place in zip(self.atoms, places, strict=True):
            if atom.span is not None and self.spans[atom.span].rule == NAME:
                found.update({place} & {*words_equal(text, atom.text)})
        return found

    def remove(self, atoms: Collection[Atom]) -> None:
        """Remove atoms; the atom after a removed one is spaced if either of them was.

        Those of the caller's prefix stay, as words.
        """
        out = {id(atom) for atom in atoms if not atom.is_fixed}
        for atom in atoms:
            atom.span = None
        kept: list[Atom] = []
        is_spaced = False
        for atom in self.atoms:
            is_spaced |= atom.is_spaced
            if id(atom) not in out:
                atom.is_spaced |= is_spaced and (atom.span is not None or atom.text.isalnum())
                kept.append(atom)
                is_spaced = False
        self.atoms = kept

    def swap(self, first: int, second: int) -> bool:
        """Exchange two spans; False if either is a mark of a pair, or in the caller's prefix."""
        if any(self.spans[index].partner is not None for index in (first, second)):
            return False
        one, other = (next(a for a in self.atoms if a.span == i) for i in (first, second))
        if one.is_fixed or other.is_fixed:
            return False
        one.span, other.span = other.span, one.span
        one.text, other.text = other.text, one.text
        one.word, other.word = other.word, one.word
        return True

    def space_spans(self) -> None:
        """Put a blank between a closing mark and a span if the span had a blank in the source.

        A blank inside the marks of emphasis goes outside: `** a**` is not emphasis in Markdown.
        """
        for number, atom in enumerate(self.atoms[1:], start=1):
            if atom.span is None or atom.is_spaced or atom.is_fixed:
                continue
            before, span = self.atoms[number - 1], self.spans[atom.span]
            if before.span is not None or before.text not in _CLOSING or span.kind == "close":
                continue
            word = self.atoms[number - 2].text if number > 1 else before.text
            atom.is_spaced = span.before in ("", " ") and not is_written_solid(word[-1])
        for number, atom in enumerate(self.atoms):
            kind = self._emphasis(atom)
            inner = number + 1 if kind == "open" else number
            if not kind or inner == len(self.atoms) or self.atoms[inner].is_fixed:
                continue
            if not self.atoms[inner].is_spaced or self._is_empty(
                (self.atoms[inner - 1], self.atoms[inner])
            ):
                continue
            self.atoms[inner].is_spaced = False
            for outer in self.outer_sides(number):
                beside = self.atoms[outer - 1].text[-1] + self.atoms[outer].text[0]
                self.atoms[outer].is_spaced |= beside[kind == "close"].isalnum()

    def outer_sides(self, number: int) -> list[int]:
        """The atoms before which a blank may part the span at this number from its neighbors.

        No blank comes inside the marks of emphasis or into the caller's prefix.
        """
        return [
            side
            for side in (number, number + 1)
            if 0 < side < len(self.atoms)
            and not self.atoms[side].is_fixed
            and self._emphasis(self.atoms[side - 1]) != "open"
            and self._emphasis(self.atoms[side]) != "close"
        ]

    def _emphasis(self, atom: Atom) -> str:
        """The kind of a span that is a mark of emphasis in Markdown, else ""."""
        span = None if atom.span is None else self.spans[atom.span]
        return span.kind if span is not None and _is_emphasis(span) else ""

    def clean(self) -> None:
        """Close the pairs of the prefix, and remove misplaced spans and emphasis of nothing."""
        self.close_fixed()
        self.remove_misplaced()
        while empty := next(filter(self._is_empty, pairwise(self.atoms)), None):
            self.remove(empty)

    def _is_empty(self, beside: tuple[Atom, Atom]) -> bool:
        """Whether two neighbors are marks of emphasis with nothing between them."""
        opening, closing = beside
        if opening.span is None or self._emphasis(opening) != "open" or closing.is_fixed:
            return False
        return closing.span == self.spans[opening.span].partner

    def close_fixed(self) -> None:
        """Close the pairs that the caller's prefix opens, before the first span outside of them."""
        for atom in [atom for atom in self.atoms if atom.is_fixed and atom.span is not None]:
            assert atom.span is not None
            span, partner = self.spans[atom.span], self.spans[atom.span].partner
            if span.kind != "open" or partner is None or self.has(partner):
                continue
            inside = range(atom.span, partner)
            begin, end = self.atoms.index(atom), len(self.atoms)
            outside = (
                place
                for place in range(begin, end)
                if self.atoms[place].span is not None and self.atoms[place].span not in inside
            )
            end = next(outside, end)
            if not any(other.is_fixed for other in self.atoms[end:]):
                closing = Atom(self.spans[partner].text, is_spaced=False, span=partner)
                self.atoms.insert(end, closing)

    def remove_misplaced(self) -> None:
        """Remove misplaced spans: those outside their pair, or crossing another pair."""
        while (wrong := self._misplaced()) is not None:
            pair = {wrong, self.spans[wrong].partner}
            self.remove([atom for atom in self.atoms if atom.span in pair])

    def _misplaced(self) -> int | None:
        """The first span in a wrong place; those of a prefix may stand outside their pairs."""
        there = {atom.span for atom in self.atoms if atom.span is not None}
        around: list[int] = []
        for atom in self.atoms:
            if atom.span is None:
                continue
            span = self.spans[atom.span]
            if span.partner is not None and span.partner not in there:
                return atom.span
            if span.kind == "close":
                if not around or around[-1] != span.partner:
                    return atom.span
                around.pop()
                continue
            is_outside = (around[-1] if around else None) != self._around(span, there)
            if is_outside and not atom.is_fixed:
                return atom.span
            if span.kind == "open":
                around.append(atom.span)
        return around[-1] if around else None

    def _around(self, span: Kept, there: set[int]) -> int | None:
        """The innermost pair around a span, of the pairs on the tape."""
        around = span.inside
        while around is not None and around not in there:
            around = self.spans[around].inside
        return around

    def correct_copies(self, links: Links, sources: Sequence[tuple[int, int]]) -> None:
        """Replace copies of spans that the model wrote when it read a missing span.

        It wrote the number of one span in place of that of another.

        Args:
            links: as in `place_missing`, like the other argument.
            sources: the words of each span in the source.
        """
        missing = [index for index in self.missing if _is_copied(self.spans[index])]
        for atom in self.atoms:
            if atom.span is None or atom.word is None or atom.is_fixed:
                continue
            if not missing or not _is_copied(self.spans[atom.span]):
                continue
            shares = {
                index: float(links.read[atom.word][slice(*sources[index])].sum())
                for index in (atom.span, *missing)
            }
            best = max(missing, key=shares.__getitem__)
            if shares[best] > max(shares[atom.span], _LEAST_SHARE):
                missing.remove(best)
                atom.span, atom.text = best, self.spans[best].text
        self.remove_misplaced()

    def place_missing(self, links: Links, sources: Sequence[tuple[int, int]]) -> None:
        """Give every missing span a place.

        Args:
            links: of the words that the model read with those that it wrote.
            sources: for each span, the first word of the source that begins after its start, and
                the first one after its end.
        """
        placer = _Placer(self, links, sources)
        # Outer spans come first; placing them may remove inner ones.
        for index, span in enumerate(self.spans):
            if span.kind == "open" and not self.has(index):
                placer.place_pair(index)
        for index in self.missing:
            placer.place_thing(index)


class _Placer:
    """Places the missing spans of one tape; the arguments are those of `Tape.place_missing`."""

    def __init__(self, tape: Tape, links: Links, sources: Sequence[tuple[int, int]]) -> None:
        self.tape = tape
        self.links = links
        self.sources = sources

    def place_pair(self, index: int) -> None:
        """Put a pair around the words linked with those that it enclosed."""
        tape, spans = self.tape, self.tape.spans
        partner = spans[index].partner
        assert partner is not None, "an opening mark has a partner"
        inner = {*range(index + 1, partner)}
        first, last = self._room(spans[index].inside)
        runs = self._runs(first, last, inner)
        owned = [sum(tape.atoms[i].span in inner for i in range(*run)) for run in runs]
        if any(owned):
            run = runs[int(np.argmax(owned))]
            strangers = [
                atom
                for place, atom in enumerate(tape.atoms)
                if atom.span in inner and not (atom.is_fixed or run[0] <= place < run[1])
            ]
            stretch = self._stretch([run], index, partner, inner=inner)
            held = [i for i in range(*run) if tape.atoms[i].span in inner]
            begin, end = (min(held), max(held) + 1)
            if stretch is not None:
                begin, end = min(begin, stretch[0]), max(end, stretch[1])
            self._insert_pair(index, partner, begin, end)
            tape.remove(strangers)
            tape.remove_misplaced()
            return
        stretch = self._stretch(runs, index, partner)
        if stretch is None:
            gap = self._gap(index, runs, last)
            stretch = self._word_at(gap, runs) if _is_emphasis(spans[index]) else (gap, gap)
        self._insert_pair(index, partner, *stretch)

    def place_thing(self, index: int) -> None:
        """Put a span in place of the words linked with it, or after the word before it."""
        first, last = self._room(self.tape.spans[index].inside)
        runs = self._runs(first, last, set())
        if _is_copied(self.tape.spans[index]):
            stretch = self._stretch(runs, index, index, least=_LEAST_SHARE)
            if stretch is not None:
                is_spaced = self.tape.atoms[stretch[0]].is_spaced
                self._insert(index, stretch[0])
                self.tape.atoms[stretch[0]].is_spaced = is_spaced
                self.tape.remove(self.tape.atoms[stretch[0] + 1 : stretch[1] + 1])
                return
        self._insert(index, self._gap(index, runs, last))

    def _room(self, around: int | None) -> tuple[int, int]:
        """The atoms inside the innermost pair on the tape around a span."""
        places = {atom.span: place for place, atom in enumerate(self.tape.atoms)}
        while around is not None:
            partner = self.tape.spans[around].partner
            if around in places and partner in places:
                last = places[partner]
                if not self.tape.atoms[last].is_fixed:  # a prefix is not changed
                    return places[around] + 1, last
            around = self.tape.spans[around].inside
        return 0, len(self.tape.atoms)

    def _runs(self, first: int, last: int, inner: set[int]) -> list[tuple[int, int]]:
        """Stretches of free atoms without a foreign span, and not inside a foreign pair.

        Args:
            first: the first atom that may be taken.
            last: one past the last.
            inner: the spans that are not foreign.
        """
        runs: list[tuple[int, int]] = []
        start, depth = first, 0
        for place in range(first, last):
            atom = self.tape.atoms[place]
            if atom.is_fixed:
                start = place + 1
            if atom.span is None or atom.span in inner:
                continue
            if depth == 0:
                runs.append((start, place))
            kind = self.tape.spans[atom.span].kind
            depth += (kind == "open") - (kind == "close")
            start = place + 1
        runs.append((start, last))
        return runs

    def _stretch(
        self,
        runs: Sequence[tuple[int, int]],
        index: int,
        partner: int,
        *,
        inner: Collection[int] = (),
        least: float = 0.0,
    ) -> tuple[int, int] | None:
        """The atoms that belong most to the source words of a span, or to those inside a pair.

        Args:
            runs: stretches of atoms that may be taken.
            index: of the span.
            partner: the other mark of the pair; the span itself if it is not a pair.
            inner: the spans that may be taken like words.
            least: the smallest share of one word that must be linked with them.
        """
        begin = self.sources[index][0 if index == partner else 1]
        end = self.sources[partner][1 if index == partner else 0]
        if begin >= end:
            return None
        atoms = self.tape.atoms
        shares = np.zeros(len(atoms))
        free = np.zeros(len(atoms), dtype=np.bool_)
        of_words = self.links.weights[:, begin:end].sum(axis=1)
        for run in runs:
            for place in range(*run):
                word, span = atoms[place].word, atoms[place].span
                if word is not None and (span is None or span in inner):
                    shares[place], free[place] = of_words[word], True
        if not free.any() or shares[free].max() < least:
            return None
        return best_stretch(shares, free)

    def _gap(self, index: int, runs: Sequence[tuple[int, int]], last: int) -> int:
        """The place after the word linked with the word before a span.

        If the span touches the next word, it is before the word linked with that one.
        """
        allowed = sorted({place for run in runs for place in range(run[0], run[1] + 1)})
        before = self.sources[index][0] - 1
        wanted = self._place_of(before, runs)
        if wanted is not None:
            wanted += 1
        elif (following := self._place_of(self.sources[index][1], runs)) is not None:
            wanted = following
        else:
            wanted = allowed[0] if before < 0 else last
        return min(allowed, key=lambda place: (abs(place - wanted), -place))

    def _place_of(self, word: int, runs: Sequence[tuple[int, int]]) -> int | None:
        """The atom most linked with a word of the source."""
        if not 0 <= word < self.links.weights.shape[1]:
            return None
        weights: NDArray[np.float64] = self.links.weights[:, word]
        atoms = self.tape.atoms
        found = [
            (float(weights[number]), -place)
            for place, atom in enumerate(atoms)
            if (number := atom.word) is not None
        ]
        return -max(found)[1] if found else None

    def _word_at(self, gap: int, runs: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """The word nearest to a gap; the gap itself if there is none."""
        words = [
            place
            for run in runs
            for place in range(*run)
            if any(map(str.isalnum, self.tape.atoms[place].text))
        ]
        if not words:
            return gap, gap
        nearest = min(words, key=lambda place: abs(place - gap))
        return nearest, nearest + 1

    def _insert_pair(self, index: int, partner: int, begin: int, end: int) -> None:
        atoms, spans = self.tape.atoms, self.tape.spans
        closing = Atom(spans[partner].text, is_spaced=False, span=partner)
        opening = Atom(spans[index].text, is_spaced=False, span=index)
        if begin < end:
            opening.is_spaced, atoms[begin].is_spaced = atoms[begin].is_spaced, False
        else:
            opening.is_spaced = begin < len(atoms) and atoms[begin].is_spaced
        atoms.insert(end, closing)
        atoms.insert(begin, opening)

    def _insert(self, index: int, place: int) -> None:
        atoms = self.tape.atoms
        span = self.tape.spans[index]
        atom = Atom(span.text, is_spaced=place > 0, span=index)
        if place > 0 and (
            _is_opening(atoms[place - 1], self.tape.spans)
            or is_written_solid(atoms[place - 1].text[-1])
            or _is_joined(span, atoms[place - 1])
        ):
            atom.is_spaced = False
        if place < len(atoms):
            following = atoms[place]
            if following.text[0].isalnum() and not is_written_solid(following.text[0]):
                following.is_spaced = True
        atoms.insert(place, atom)


def _is_emphasis(span: Kept) -> bool:
    """Whether a span is one of a pair of marks of emphasis in Markdown."""
    return span.rule == "markdown" and span.partner is not None and not span.text.strip("*_~")


def _is_copied(span: Kept) -> bool:
    """Whether the model reads a span as text, and has to repeat it."""
    return span.slots is None and span.is_read


def _is_opening(atom: Atom, spans: Sequence[Kept]) -> bool:
    if atom.span is not None:
        return spans[atom.span].kind == "open"
    return unicodedata.category(atom.text[-1]) in ("Ps", "Pi")


def _is_joined(span: Kept, before: Atom) -> bool:
    """Whether a span belongs close to a word or a sign, because it was close to such a one."""
    one, other = span.before, before.text[-1]
    if before.span is not None or not one or one == " " or is_written_solid(one):
        return False
    return one == other or (one.isalnum() and other.isalnum())
