"""Tags among the words of a sentence, and their positions in its translation.

A pair of tags goes around the target words that are aligned best with its source words. An element
without words goes after the target word that is aligned with the source word before it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from heed.documents.attributes import Template, render
from heed.text.normalize import BLANKS
from heed.text.protected import Rules, find_spans
from heed.text.scripts import is_written_solid
from heed.translate.result import Translation
from heed.translate.words import Links, Span, best_stretch, link_words

_STAND_IN = re.compile(r"\$[A-Za-z_]\w*\$")


def stand_in(number: int) -> str:
    """A text for an element that a model cannot read, such as a formula; a protected span."""
    return f"$x{number}$"


@dataclass(slots=True)
class Node:
    """An element inside a text.

    Attributes:
        start: its start in the text.
        end: its end; equal to `start` if it holds no text.
        opening: its start tag, or the whole element if it has no end tag or is kept.
        closing: its end tag.
        children: the elements in it, in order.
        is_kept: whether `opening` replaces all its text.
        is_break: whether it is a line break; it then goes to the end of a line.
        is_joined_before: whether the text has a blank before it that the page lacks, because a
            number touches a word there.
        is_joined_behind: the same behind it.
    """

    start: int
    end: int
    opening: Template
    closing: Template = field(default_factory=list)
    children: list["Node"] = field(default_factory=list)
    is_kept: bool = False
    is_break: bool = False
    is_joined_before: bool = False
    is_joined_behind: bool = False


@dataclass(slots=True)
class _Place:
    """The position of a node: words `first` up to `last`, characters `start` to `end`."""

    first: int
    last: int
    start: int
    end: int


def place_nodes(
    text: str,
    nodes: list[Node],
    translation: Translation,
    *,
    translations: Sequence[Translation],
    escape: Callable[[str], str],
) -> str:
    """A translation with the elements of its source.

    Args:
        text: the source.
        nodes: its elements, in order; well nested, at most some tens.
        translation: the translation of the text.
        translations: those of all segments, for the attributes of tags.
        escape: escapes text between tags.
    """
    every = list(_each(nodes))
    cuts = {place for node in every for place in (node.start, node.end)}
    links = link_words(text, translation, cuts)
    placer = _Placer(text, translation.text, links)
    placer.place(nodes)
    writer = _Writer(text, translation.text, translations, escape)
    writer.write(nodes, placer.places)
    return writer.finish()


def _each(nodes: list[Node]) -> Iterator[Node]:
    waiting = list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.children)


class _Placer:
    """Finds the position of each node, parents first."""

    def __init__(self, src: str, tgt: str, links: Links) -> None:
        self.src = src
        self.tgt = tgt
        self.links = links
        self.places: dict[int, _Place] = {}

    def place(self, nodes: list[Node]) -> None:
        """Find positions for all nodes; children stay inside their parent's range."""
        whole = _Place(0, len(self.links.tgt), 0, len(self.tgt))
        waiting = [(nodes, whole, (0, len(self.src)))]
        while waiting:
            siblings, parent, within = waiting.pop()
            free = np.zeros(len(self.links.tgt), dtype=bool)
            free[parent.first : parent.last] = True
            pairs = [node for node in siblings if self._words(node)]
            # The words of a kept element must not appear twice.
            for node in sorted(pairs, key=lambda node: (not node.is_kept, -len(self._words(node)))):
                self.places[id(node)] = place = self._stretch(node, free, parent)
                free[place.first : place.last] = False
            taken = [self.places[id(node)] for node in pairs]
            for node in siblings:
                if not self._words(node):
                    self.places[id(node)] = self._behind(node, parent, within, taken)
                if node.children:
                    span = (node.start, node.end)
                    waiting.append((node.children, self.places[id(node)], span))

    def _words(self, node: Node) -> range:
        """The source words that begin within a node."""
        starts = [start for start, _ in self.links.src]
        return range(*np.searchsorted(starts, [node.start, node.end], side="left").tolist())

    def _stretch(self, node: Node, free: NDArray[np.bool_], parent: _Place) -> _Place:
        """The free words aligned best with the words of a pair; at least one, if any is free."""
        words = self._words(node)
        if node.is_kept:
            free = free & ~self._others(node)
        if not free.any():
            return self._gap(node, parent.last, parent)
        shares = self.links.weights[:, words.start : words.stop].sum(axis=1)
        copy = self._copy_of(node, free)
        if copy is None and node.is_kept and _STAND_IN.fullmatch(self.src, node.start, node.end):
            return self._gap(node, best_stretch(shares, free)[1], parent)
        first, last = copy or best_stretch(shares, free)
        src = self.links.src
        start, end = self.links.tgt[first][0], self.links.tgt[last - 1][1]
        # Blanks inside the tags stay inside them.
        for _ in range(src[words.start][0] - node.start):
            start -= start > parent.first and self.tgt[start - 1] in BLANKS
        end += self._blanks(end, node.end - src[words.stop - 1][1], parent)
        return _Place(first, last, start, end)

    def _copy_of(self, node: Node, free: NDArray[np.bool_]) -> tuple[int, int] | None:
        """The free word that spells a kept element, which would else be there twice."""
        own = self.src[node.start : node.end]
        equal = (
            word
            for word, (start, end) in enumerate(self.links.tgt)
            if node.is_kept and free[word] and self.tgt[start:end] == own
        )
        word = next(equal, None)
        return None if word is None else (word, word + 1)

    def _others(self, node: Node) -> NDArray[np.bool_]:
        """The protected spans of the translation that a kept element must not replace."""
        own = self.src[node.start : node.end]
        places = {(s.start, s.end) for s in find_spans(self.tgt, Rules.default())}
        return np.array(
            [place in places and self.tgt[slice(*place)] not in own for place in self.links.tgt],
            dtype=bool,
        )

    def _behind(self, node: Node, parent: _Place, within: Span, taken: list[_Place]) -> _Place:
        """After the word aligned with the word before; before the next one, if it touches that."""
        shares = self.links.weights[parent.first : parent.last]
        if not len(shares):
            return self._gap(node, parent.first, parent)
        before = self._word_before(node)
        touches_next = self._touches_next(node) and node.end < within[1]
        if touches_next:
            word = parent.first + int(shares[:, before + 1].argmax())
        elif before >= 0 and self.links.src[before][0] >= within[0]:
            word = parent.first + int(shares[:, before].argmax()) + 1
        else:
            word = parent.first
        for other in taken:
            if other.first < word < other.last:
                word = other.last
        if touches_next and word < parent.last:
            place = self.links.tgt[word][0]
            return _Place(word, word, place, place)
        return self._gap(node, word, parent)

    def _gap(self, node: Node, word: int, parent: _Place) -> _Place:
        """After the word before `word`, plus as many blanks as in the source."""
        start = parent.start
        if word > parent.first:
            start = self.links.tgt[word - 1][1]
            before = self._word_before(node)
            src_end = self.links.src[before][1] if before >= 0 else node.start
            start += self._blanks(start, node.start - src_end, parent)
        end = start + self._blanks(start, node.end - node.start, parent)
        return _Place(word, word, start, end)

    def _blanks(self, place: int, at_most: int, parent: _Place) -> int:
        """The number of blanks after a position in the translation."""
        count = 0
        while count < at_most and place + count < parent.end and self.tgt[place + count] in BLANKS:
            count += 1
        return count

    def _word_before(self, node: Node) -> int:
        ends = [end for _, end in self.links.src]
        return int(np.searchsorted(ends, node.start, side="right")) - 1

    def _touches_next(self, node: Node) -> bool:
        before, after = self.src[: node.start][-1:], self.src[node.end :][:1]
        return not node.is_break and before in BLANKS and bool(after) and after not in BLANKS


class _Writer:
    """Writes a translation with tags, from left to right.

    A blank that separates an element from a word waits until it is outside of the element's tags.
    """

    def __init__(
        self,
        src: str,
        text: str,
        translations: Sequence[Translation],
        escape: Callable[[str], str],
    ) -> None:
        self.src = src
        self.text = text
        self.translations = translations
        self.escape = escape
        self.written = 0
        self.parts: list[str] = []
        self.needs_blank = False
        self.ends_in_blank = False  # without tags
        self.empty_at = -1  # the place in the source of the element without text just written

    def write(self, nodes: list[Node], places: dict[int, _Place]) -> None:
        """Write nodes and their children, in the order of their positions."""
        waiting: list[tuple[Node, bool]] = [(node, False) for node in _backwards(nodes, places)]
        while waiting:
            node, is_open = waiting.pop()
            place = places[id(node)]
            if is_open:
                self._text_until(place.end)
                self._tag(node.closing)
                if node.is_joined_behind:
                    self._skip_blank(place.end)
                continue
            if node.is_joined_before:
                self._text_until(place.start - 1)
                self._skip_blank(place.start - 1)
            self._text_until(place.start)
            is_gap = place.first == place.last
            if node.start != self.empty_at:  # else it touches that element, so no blank parts them
                if (node.is_kept or (is_gap and node.children)) and not node.is_break:
                    self._blank_as_in_source(node.start - 1, self.written - 1)
                self._blank()
            self._tag(node.opening)
            if node.is_kept:
                self.written = max(self.written, place.end)
                self.ends_in_blank = False
            self.empty_at = node.end if is_gap and node.start == node.end else -1
            if is_gap:
                self._blank_as_in_source(node.end, self.written)
            waiting.append((node, True))
            waiting += [(child, False) for child in _backwards(node.children, places)]

    def finish(self) -> str:
        """The text written so far, followed by the rest of the text."""
        self._text_until(len(self.text))
        return "".join(self.parts)

    def _blank_as_in_source(self, src_place: int, place: int) -> None:
        """Separate an element from the word beside it by a blank, if the source has one there."""
        if src_place >= 0 and self.src[src_place : src_place + 1].isspace() and place >= 0:
            character = self.text[place : place + 1]
            self.needs_blank |= character.isalnum() and not is_written_solid(character)

    def _blank(self) -> None:
        """Write the blank that waits."""
        if self.needs_blank and not self.ends_in_blank:
            self.parts.append(" ")
            self.ends_in_blank = True
        self.needs_blank = False

    def _skip_blank(self, place: int) -> None:
        """Leave out a blank between a number and a word."""
        before, after = self.text[:place][-1:], self.text[place + 1 :][:1]
        is_joint = before.isalnum() and after.isalnum() and before.isdigit() != after.isdigit()
        if is_joint and self.written == place and self.text[place] == " ":
            self.written += 1

    def _text_until(self, place: int) -> None:
        if place > self.written:
            self._blank()
            self.parts.append(self.escape(self.text[self.written : place]))
            self.written = place
            self.empty_at = -1
            self.ends_in_blank = self.text[place - 1] in BLANKS

    def _tag(self, tag: Template) -> None:
        self.parts.append(render(tag, self.translations))


def _backwards(nodes: list[Node], places: dict[int, _Place]) -> list[Node]:
    return sorted(nodes, key=lambda node: (places[id(node)].start, places[id(node)].end))[::-1]
