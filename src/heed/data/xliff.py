"""Translated segments of XLIFF 1.2 and 2, as translation programs write them.

The format: https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html and
https://docs.oasis-open.org/xliff/xliff-core/v2.1/xliff-core-v2.1.html
"""

from collections.abc import Iterator
from pathlib import Path

from heed.data.xml_events import MAX_NAME_CHARS, XmlEvents
from heed.data.xml_segments import Segment, SegmentText, Unit, rank_of, units_in
from heed.errors import DataError
from heed.text.protection.fields import is_field

CODES = frozenset(("bpt", "ept", "it", "ph", "x", "bx", "ex", "sc", "ec"))
FIELDS = ("equiv-text", "equiv", "disp")
_SIDES = ("source", "target")
ASIDE = frozenset(("alt-trans", "seg-source", "matches", "glossary", "note", "originalData"))
"""Their sources and targets are not those of the unit."""
UNITS = frozenset(("trans-unit", "segment"))
UNTRANSLATED = frozenset(("new", "needs-translation", "needs-l10n", "needs-adaptation", "initial"))
"""States of a target that nobody has translated yet."""
_MOST_SHOWN = 10  # directions in a message


def read_segments(path: str | Path, source_lang: str, target_lang: str) -> Iterator[Unit]:
    """The translated segments of a file, in the wanted direction.

    Raises:
        DataError: the file is missing, damaged or not XLIFF, or is in other languages.
    """
    reader = _Reader(str(path), source_lang, target_lang)
    yield from reader.units()
    if reader.others and not reader.has_wanted:
        raise DataError(
            f"{path} must translate between {source_lang} and {target_lang}, but translates "
            f"{' and '.join(sorted(reader.others))}."
        )


class _Reader:
    """Collects segments from the elements of a file; a `Handler`."""

    def __init__(self, path: str, source_lang: str, target_lang: str) -> None:
        self.has_wanted = False
        self.others: set[str] = set()
        self._path, self._wanted = path, (source_lang, target_lang)
        self._languages = ("", "")  # of the whole file, in XLIFF 2
        self._order: tuple[int, int] | None = None  # of source and target; None = not wanted
        self._events = XmlEvents(path, "an XLIFF file", self)
        self._segment = Segment(self._events, "source> or <target")
        self._open: list[str] = []  # the elements around what is read
        self._n_aside = 0
        self._is_kept = self._is_unit_kept = True
        self._found: dict[str, SegmentText] = {}
        self._units: list[Unit] = []

    def units(self) -> Iterator[Unit]:
        """The segments of the file."""
        return units_in(self._path, self._events, self._segment, self._units)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        tag = tag.rpartition(":")[2]
        self._segment.nest()
        if not self._open:
            self._begin_root(tag, attributes)
        self._open.append(tag)
        if tag in ASIDE:
            self._n_aside += 1
        elif self._n_aside:
            return
        elif tag == "file":
            self._begin_file(attributes)
        elif tag == "unit":
            self._is_unit_kept = not _is_untranslated(attributes)
        elif tag in UNITS:
            self._found = {}
            self._is_kept = self._is_unit_kept and not _is_untranslated(attributes)
        elif tag in _SIDES and len(self._open) > 1 and self._open[-2] in UNITS:
            self._is_kept = self._is_kept and not _is_untranslated(attributes)
            self._segment.begin()
        elif tag in CODES:
            # A code may say in an attribute which field it stands for.
            fields = (attributes.get(name, "") for name in FIELDS)
            field = next(filter(is_field, fields), "")
            self._segment.add(field)
            self._segment.begin_code(may_be_field=tag == "ph" and not field)

    def end(self, tag: str) -> None:
        """An element ends."""
        tag = tag.rpartition(":")[2]
        self._open.pop()
        if tag in ASIDE:
            self._n_aside -= 1
        elif self._n_aside:
            return
        elif tag in UNITS:
            self._end_unit()
        elif tag in _SIDES and self._segment.is_open and self._open[-1] in UNITS:
            self._found[tag] = self._segment.ended()
        elif tag in CODES:
            self._segment.end_code()

    def characters(self, text: str) -> None:
        """Text of an element."""
        if not self._n_aside:
            self._segment.add(text)

    def entity(self, name: str) -> None:
        """An entity that a DTD outside of the file may define."""
        if not self._n_aside:
            self._segment.add_entity(name)

    def _begin_root(self, tag: str, attributes: dict[str, str]) -> None:
        self._events.require_root(tag, "xliff")
        self._languages = attributes.get("srcLang", ""), attributes.get("trgLang", "")

    def _begin_file(self, attributes: dict[str, str]) -> None:
        """Find which side of the file's segments is which."""
        source = attributes.get("source-language") or self._languages[0]
        target = attributes.get("target-language") or self._languages[1]
        self._order = None
        for order in ((0, 1), (1, 0)):
            wanted = [self._wanted[side] for side in order]
            # Some programs leave the target language out.
            if _fits(source, wanted[0]) and (not target or _fits(target, wanted[1])):
                self._order, self.has_wanted = order, True
                return
        names = (source[:MAX_NAME_CHARS] or "?", target[:MAX_NAME_CHARS] or "?")
        if len(self.others) < _MOST_SHOWN:
            self.others.add(" into ".join(names))

    def _end_unit(self) -> None:
        if self._order is None or not self._is_kept or len(self._found) < 2:
            return
        sides = [self._found[_SIDES[side]] for side in self._order]
        src, tgt = (side.text for side in sides)
        if src.strip() and tgt.strip():
            is_complete = all(side.is_complete for side in sides)
            self._units.append(Unit(src, tgt, self._events.line, is_complete))


def _is_untranslated(attributes: dict[str, str]) -> bool:
    return attributes.get("translate") == "no" or attributes.get("state") in UNTRANSLATED


def _fits(language: str, wanted: str) -> bool:
    return rank_of(language, wanted) is not None
