"""Fields of word processing whose parts are in runs of their own: page numbers, references, links.

A field begins with a mark and an instruction; a separator and its latest result may follow; then it
ends. Runs up to the separator stand for a start tag, and the run of the end for an end tag, so that
the result moves among the words as a link does. A field without a result is an empty element.

Source: ECMA-376, part 1, section 17.16 (fields and hyperlinks).
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from heed.documents.tags import Kind, Token

_MARK, _TEXT, _RUN = "w:fldChar", "w:t", "w:r"
_TYPE = re.compile(r"[\s:]fldCharType\s*=\s*[\"'](begin|separate|end)[\"']")


@dataclass(slots=True)
class _Field:
    """A field that is open: its first mark, and the mark that separates its result, or -1."""

    begin: int
    separate: int = -1


def field_tags(tokens: Sequence[Token]) -> dict[int, tuple[Kind, int]]:
    """The runs that stand for a tag of a field.

    A field is left out if its parts share a run with text or with another field, or if they are in
    different elements, such as paragraphs.

    Args:
        tokens: those of a well-formed part, with the usual prefixes.

    Returns:
        For the first token of such runs, the kind of the tag, and the number of the last token.
    """
    place = _Places(tokens)
    found: dict[int, tuple[Kind, int]] = {}
    opened: list[_Field] = []
    for mark in place.run:
        kind = _TYPE.search(tokens[mark].raw)
        if kind and kind[1] == "begin":
            opened.append(_Field(mark))
        elif kind and opened and kind[1] == "separate":
            opened[-1].separate = mark
        elif kind and opened:
            found |= place.tags(opened.pop(), mark)
    return found


class _Places:
    """Where the marks of fields are.

    Attributes:
        run: the run of each mark, by the number of its first token; -1 if it is in none.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.run: dict[int, int] = {}
        self._parent: dict[int, int] = {}
        self._last: dict[int, int] = {}  # tokens of runs
        self._marks: dict[int, list[int]] = defaultdict(list)
        self._with_text: set[int] = set()
        opened = [-1, -1]
        for number, token in enumerate(tokens):
            run = opened[-1]
            if token.name == _MARK and token.kind != "close":
                self.run[number] = run if run >= 0 and tokens[run].name == _RUN else -1
                self._parent[run] = opened[-2]
                self._marks[run].append(number)
            elif token.name == _TEXT:
                self._with_text.add(run)
            if token.kind == "open":
                opened.append(number)
            elif token.kind == "close":
                self._last[opened.pop()] = number

    def tags(self, field: _Field, end: int) -> dict[int, tuple[Kind, int]]:
        """The runs that stand for the tags of a field that ends at a mark."""
        first, last = self.run[field.begin], self.run[end]
        middle = self.run.get(field.separate, last)
        runs = (first, middle, last)
        if min(runs) < 0 or len({self._parent[run] for run in runs}) > 1:
            return {}
        if self._marks[first][0] != field.begin:
            return {}
        if middle == last and self._marks[last][-1] == end:
            return {first: ("empty", self._last[last])}
        is_apart = not self._with_text & {first, middle, last}
        if is_apart and self._marks[middle][-1] == field.separate and self._marks[last] == [end]:
            return {first: ("open", self._last[middle]), last: ("close", self._last[last])}
        return {}
