"""Terms of the user that a translation must repeat unchanged: names, products, commands.

They are found as whole words and in the case in which they are written. With a million terms this
takes microseconds a line: each word is looked up among the first words of all terms.
"""

import re
from collections.abc import Iterable, Iterator

from heed.errors import DataError
from heed.text.normalize import normalize
from heed.text.protection.pattern import LETTER, MARKS

MAX_LENGTH = 500
"""Most characters of a term; a longer one is probably a line of text, given by mistake."""

# Words, single characters of scripts without blanks between words, and single marks.
_TOKEN = re.compile(rf"(?:{LETTER}|\d|[{MARKS}])+|\S")


class Terms:
    """A set of terms, compiled once; two of the same terms are equal."""

    __slots__ = ("_lengths", "_terms")

    def __init__(self, terms: Iterable[str] = ()) -> None:
        self._terms = frozenset(terms)
        lengths: dict[str, set[int]] = {}
        for term in self._terms:
            tokens = _TOKEN.findall(term)
            lengths.setdefault(tokens[0], set()).add(len(tokens))
        # Most first words have terms of one length; equal tuples are one object.
        known: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._lengths: dict[str, tuple[int, ...]] = {}
        for word, found in lengths.items():
            ordered = tuple(sorted(found, reverse=True))
            self._lengths[word] = known.setdefault(ordered, ordered)

    @classmethod
    def of_lines(cls, lines: Iterable[str], name: str) -> "Terms":
        """One term a line; empty lines and repeated terms are skipped.

        Args:
            lines: of a file.
            name: of the file, for messages.

        Raises:
            DataError: a line is not a term, or there is no term at all.
        """
        terms = cls(_checked(lines, name))
        if not terms:
            raise DataError(f"{name} has no term. Write one a line, such as the name of a product.")
        return terms

    def find(self, text: str) -> list[tuple[int, int]]:
        """The places of terms in a text, in order; of two at one place the longer one."""
        found: list[tuple[int, int]] = []
        lengths = self._lengths
        tokens = list(_TOKEN.finditer(text))
        place = 0
        for index, token in enumerate(tokens):
            start = token.start()
            if start < place or (possible := lengths.get(token[0])) is None:
                continue
            for length in possible:
                last = index + length - 1
                if last < len(tokens) and text[start : tokens[last].end()] in self._terms:
                    place = tokens[last].end()
                    found.append((start, place))
                    break
        return found

    def __len__(self) -> int:
        return len(self._terms)

    def __iter__(self) -> Iterator[str]:
        return iter(self._terms)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Terms) and self._terms == other._terms)

    def __hash__(self) -> int:
        return hash(self._terms)

    def __repr__(self) -> str:
        return f"Terms({len(self):,} terms)"


def _checked(lines: Iterable[str], name: str) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if "\t" in line:
            raise DataError(
                f"{name} line {number}: a term must be text without tabs. "
                "A table of terms and their translations is a glossary: --glossary."
            )
        term = normalize(line)
        if len(term) > MAX_LENGTH:
            raise DataError(
                f"{name} line {number}: a term must have at most {MAX_LENGTH} characters, "
                f"but has {len(term):,}. Is this a list of terms, one a line?"
            )
        if term:
            yield term
