"""`Glossary`: terms, compiled once, and their occurrences in texts."""

import hashlib
import os
import reprlib
import warnings
from collections import ChainMap
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from heed.errors import DataError, UsageError
from heed.text.capitals import in_capitals
from heed.text.protected import Rules, find_spans
from heed.translate.glossary.matching import Match, Matcher, folded_words
from heed.translate.glossary.reading import decoded, rows_of
from heed.translate.glossary.terms import KEEP, MANY_WORDS, Term, make_term
from heed.translate.words import Span

MAX_ENTRIES = 1_000_000

Row = tuple[int, str, str, str]
"""Line number, source term, target and case rule."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A source term in a text.

    Attributes:
        term: as in the glossary.
        targets: its forms, in the case of the occurrence; none = no form is required.
        banned: words that are forbidden in the translation.
        is_exact: whether the forms are required in exactly this case.
        is_kept: whether the form is the occurrence itself, which keeps its case everywhere.
        start: start of the occurrence.
        end: its end.
        n_words: its number of words.
    """

    term: str
    targets: tuple[str, ...]
    banned: tuple[str, ...]
    is_exact: bool
    is_kept: bool
    start: int
    end: int
    n_words: int

    @property
    def target(self) -> str:
        """The first form, which is put in if no better one is found."""
        return self.targets[0]


class Glossary:
    """Source terms and their target terms; made once, and passed to any number of translations.

    Args:
        rows: of its file.

    Attributes:
        terms: by source term.
        banned: words that are forbidden in any translation.
        remarks: warnings about the rows, in sentences.

    Raises:
        DataError: names a line that is wrong, or contradicts another one.
        UsageError: the rows have the wrong type.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self.terms: MutableMapping[str, Term] = {}
        self.banned: tuple[str, ...] = ()
        self.remarks: list[str] = []
        lines: dict[str, int] = {}
        if isinstance(rows, Mapping | str) or not isinstance(rows, Iterable):
            raise UsageError(
                "rows must be the rows of a glossary file. Use Glossary.of for a dict, "
                "Glossary.read for a file."
            )
        for line, source, target, case in rows:
            self._add(make_term(line, source, target, case), line, lines)
            if len(self.terms) > MAX_ENTRIES:
                raise DataError(
                    f"The glossary must have at most {MAX_ENTRIES:,} entries, but line {line} is "
                    "one more. Leave out terms that the model knows, or those of other subjects."
                )
        if not self.terms and not self.banned:
            raise DataError("The glossary must have at least one entry, but is empty.")
        self._require_allowed(lines)

    def _require_allowed(self, lines: Mapping[str, int]) -> None:
        never = set(self.banned)
        for source, term in self.terms.items() if never else ():
            if both := never & {*term.targets}:
                raise DataError(
                    f"Line {lines[source]} of the glossary asks for {both.pop()!r}, which another "
                    "line forbids in every text. Keep one of them."
                )

    def _add(self, term: Term, line: int, lines: dict[str, int]) -> None:
        if not term.source:
            self.banned = tuple(dict.fromkeys((*self.banned, *term.banned)))
            return
        known = self.terms.get(term.source)
        if known and known.targets and term.targets:
            if (known.targets, known.case) != (term.targets, term.case):
                raise DataError(
                    f"Line {line} of the glossary repeats the source term {term.source!r} of line "
                    f"{lines[term.source]}. Keep one of them, or write the forms in one line, with "
                    "| between them."
                )
            self.remarks.append(f"Line {line} is the same as line {lines[term.source]}.")
        if known:
            term = (
                known.with_banned(term.banned) if known.targets else term.with_banned(known.banned)
            )
            if both := [each for each in term.banned if each in term.targets]:
                raise DataError(
                    f"Line {line} of the glossary contradicts line {lines[term.source]}: one asks "
                    f"for {both[0]!r} and the other forbids it. Keep one of them."
                )
        elif len(folded_words(term.source)) > MANY_WORDS:
            self.remarks.append(
                f"The source term in line {line} has more than {MANY_WORDS} words. Longer texts "
                "are translated in parts, so it will hardly ever be found."
            )
        lines.setdefault(term.source, line)
        self.terms[term.source] = term

    @classmethod
    def read(cls, path: str | Path) -> "Glossary":
        """Read a file: `.csv`, or else columns with tabs between them.

        Its columns are: source term, target, and optionally a case rule and notes. See
        `docs/terms.md`.

        Raises:
            DataError: names the file, and the line that is wrong.
            UsageError: it is not a path.
        """
        if not isinstance(path, str | os.PathLike):
            raise UsageError(
                f"path must be the path of a glossary file, but is {reprlib.repr(path)}. Use "
                "Glossary.of for a dict."
            )
        found = cls.open(Path(path))
        for remark in found.remarks:
            warnings.warn(f"{path}: {remark}", UserWarning, stacklevel=2)
        return found

    @classmethod
    def open(cls, path: Path) -> "Glossary":
        """Read a file as `read` does, without warnings: the caller shows the remarks."""
        format = "csv" if path.suffix.lower() == ".csv" else "tsv"
        text = decoded(path)
        try:
            return cls(rows_of(text, format))
        except DataError as error:
            raise DataError(f"{path}: {error}") from None

    @classmethod
    def of(cls, entries: Mapping[str, str]) -> "Glossary":
        """A glossary of source terms and their targets, as in the columns of a file.

        Raises:
            DataError: an entry is wrong, or contradicts another one.
            UsageError: it is not a mapping of strings.
        """
        if not isinstance(entries, Mapping):
            raise UsageError(
                "entries must be a dict of source and target terms, but is "
                f"{reprlib.repr(entries)}."
            )
        for source, target in entries.items():
            if not isinstance(source, str):
                raise UsageError(f"A source term must be a string, but is {reprlib.repr(source)}.")
            if not isinstance(target, str):
                raise UsageError(
                    f"The target term of {reprlib.repr(source)} must be a string, but is "
                    f"{reprlib.repr(target)}. Write several forms in one string, with | between "
                    "them."
                )
        return cls((n, *entry, "") for n, entry in enumerate(entries.items(), start=1))

    @classmethod
    def empty(cls) -> "Glossary":
        """A glossary without terms, for a line that must not use that of its call."""
        found = cls.__new__(cls)
        found.terms, found.banned, found.remarks = {}, (), []
        return found

    def over(self, other: "Glossary") -> "Glossary":
        """Both glossaries, in which a term of this one hides the same term of the other.

        A term that is found in any case hides all that differ from it in case only. The time does
        not depend on the size of the other glossary.
        """
        asked = {target for term in self.terms.values() for target in term.targets}
        found = Glossary.empty()
        found.terms = ChainMap({**self.terms}, other.terms)
        allowed = (each for each in other.banned if each not in asked)
        found.banned = tuple(dict.fromkeys((*self.banned, *allowed)))
        found.digest = hashlib.sha256(f"{self.digest}\n{other.digest}".encode()).hexdigest()
        found._sources = self._sources.over(other._sources, _joined)
        return found

    @property
    def entries(self) -> dict[str, str]:
        """The target of each source term, as in a file."""
        return {source: term.spelled for source, term in self.terms.items()}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the terms, in hex."""
        parts = [
            *self.banned,
            *(f"{term.source}\t{term.spelled}\t{term.case}" for term in self.terms.values()),
        ]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def __len__(self) -> int:
        return len(self.terms) + len(self.banned)

    def __bool__(self) -> bool:
        return bool(self.terms or self.banned)  # the length of joined glossaries takes long

    @cached_property
    def _sources(self) -> Matcher[Term]:
        return Matcher(self.terms.items())

    @cached_property
    def never(self) -> Matcher[str]:
        """Finds the words that are forbidden in any translation."""
        return Matcher((each, each) for each in self.banned)

    def occurrences(self, text: str, taken: Sequence[Span] = ()) -> list[Occurrence]:
        """The terms in a text, as whole words; of two that overlap the longer one.

        Args:
            text: in the source language.
            taken: stretches of it that are not words of the language, such as fields, in order.
        """
        found = (_occurrence(text, match) for match in self._sources.find(text, taken))
        return [one for one in found if one is not None]


def _joined(own: list[Term], others: list[Term]) -> list[Term]:
    """The terms of two glossaries for the same words."""
    if any(term.case == "any" for term in own):
        return own
    sources = {term.source for term in own}
    return [*own, *(term for term in others if term.source not in sources)]


def _occurrence(text: str, match: Match[Term]) -> Occurrence | None:
    written = text[match.start : match.end]
    blank_free = "".join(written.split())
    same = next((t for t in match.entries if "".join(t.source.split()) == blank_free), None)
    term = same or next((t for t in match.entries if t.case == "any"), None)
    if term is None:
        return None
    targets = term.targets
    is_kept = targets == (KEEP,)
    if is_kept:
        targets = (written,)
    elif term is not same and (match.first or written.isupper()):
        # A capital at the beginning of a sentence is not the case of the term.
        targets = tuple(dict.fromkeys(_in_case(target, written) for target in targets))
    return Occurrence(
        term=term.source,
        targets=targets,
        banned=term.banned,
        is_exact=is_kept or term.case == "case",
        is_kept=is_kept,
        start=match.start,
        end=match.end,
        n_words=match.n_words,
    )


def _in_case(target: str, written: str) -> str:
    """A target term in the case of an occurrence: HOUSE, House or house."""
    if len(written) > 1 and written.isupper():
        return in_large(target)
    return target[:1].upper() + target[1:] if written[:1].isupper() else target


def in_large(target: str) -> str:
    """A target term in capitals; its protected spans, such as `%s`, stay as they are."""
    spans = find_spans(target, Rules.default())
    return in_capitals(target, [(span.start, span.end) for span in spans])[0]
