"""Translated segments of XLIFF 1.2 and 2, as translation programs write them.

The format: https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html and
https://docs.oasis-open.org/xliff/xliff-core/v2.1/xliff-core-v2.1.html
"""

from collections.abc import Iterator
from pathlib import Path

from heed.data.xml_events import MAX_NAME_CHARS, XmlEvents
from heed.data.xml_segments import NO_TEXT, Segment, SegmentText, Unit, rank_of, units_in
from heed.errors import DataError
from heed.text.protection.fields import is_field

CODES = frozenset(("bpt", "ept", "it", "ph", "x", "bx", "ex", "sc", "ec"))
FIELDS = ("equiv-text", "equiv", "disp")
_SIDES = ("source", "target")
SEGMENTED = "seg-source"
"""The source in segments; the target then has the same ones."""
DATA = "originalData"
"""The text of codes, apart from them."""
ASIDE = frozenset(("alt-trans", "matches", "glossary", "note", DATA))
"""Their sources and targets are not those of the unit."""
UNITS = frozenset(("trans-unit", "segment"))
UNTRANSLATED = frozenset(("new", "needs-translation", "needs-l10n", "needs-adaptation", "initial"))
"""States of a target that nobody has translated yet."""
_MOST_SHOWN = 10  # directions in a message
_MOST_DATA = 1000  # texts of codes of a unit
_MOST_DATA_CHARS = 100  # a field is shorter


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
        self._is_kept = True
        self._forbidden = [False]  # for each open element, whether it must not be translated
        self._found: dict[str, SegmentText] = {}
        self._marked: dict[str, dict[str, tuple[int, int]]] = {}  # places of segments in a side
        self._data: dict[str, str] = {}  # fields of the unit's codes
        self._datum: str | None = None  # which of them is being read
        self._marks: list[tuple[str, int]] = []  # open `<mrk>`: segment, "" = none, and start
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
        self._forbidden.append(is_forbidden(attributes.get("translate", ""), self._forbidden[-1]))
        if tag in ASIDE:
            self._n_aside += 1
        elif self._n_aside:
            is_datum = tag == "data" and self._open[-2] == DATA and len(self._data) < _MOST_DATA
            self._datum = attributes.get("id", "") if is_datum else None
        elif tag == "file":
            self._begin_file(attributes)
        elif tag == "unit":
            self._data = {}
        elif tag in UNITS:
            self._found, self._marked = {}, {}
            self._is_kept = not (self._forbidden[-1] or attributes.get("state") in UNTRANSLATED)
        elif tag in (*_SIDES, SEGMENTED) and len(self._open) > 1 and self._open[-2] in UNITS:
            self._is_kept = self._is_kept and attributes.get("state") not in UNTRANSLATED
            self._marked[tag] = {}
            self._segment.begin()
        elif tag == "mrk":
            is_segment = attributes.get("mtype") == "seg"
            name = attributes.get("mid", "") if is_segment else ""
            self._marks.append((name, self._segment.n_chars))
        elif tag in CODES:
            # A code may say in an attribute which field it stands for.
            fields = [attributes.get(name, "") for name in FIELDS]
            fields.append(self._data.get(attributes.get("dataRef", ""), ""))
            field = next(filter(is_field, fields), "")
            self._segment.add(field)
            self._segment.begin_code(may_be_field=tag == "ph" and not field)

    def end(self, tag: str) -> None:
        """An element ends."""
        tag = tag.rpartition(":")[2]
        self._open.pop()
        self._forbidden.pop()
        if tag in ASIDE:
            self._n_aside -= 1
        elif self._n_aside:
            self._datum = None
        elif tag in UNITS:
            self._end_unit()
        elif tag in self._marked and self._segment.is_open and self._open[-1] in UNITS:
            self._found[tag] = self._segment.ended()
        elif tag == "mrk":
            name, start = self._marks.pop()
            side = next((each for each in reversed(self._open) if each in self._marked), "")
            if name and side:
                self._marked[side].setdefault(name, (start, self._segment.n_chars))
        elif tag in CODES:
            self._segment.end_code()

    def characters(self, text: str) -> None:
        """Text of an element."""
        if not self._n_aside:
            self._segment.add(text)
        elif self._datum is not None:
            known = self._data.get(self._datum, "")
            self._data[self._datum] = (known + text)[:_MOST_DATA_CHARS]

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
        if self._order is None or not self._is_kept:
            return
        for pair in self._pairs():
            src, tgt = (pair[side] for side in self._order)
            if src.text.strip() and tgt.text.strip():
                is_complete = src.is_complete and tgt.is_complete
                self._units.append(Unit(src.text, tgt.text, self._events.line, is_complete))

    def _pairs(self) -> list[tuple[SegmentText, SegmentText]]:
        """The source and the target of a unit, or of each of its segments."""
        sources, targets = (self._marked.get(name, {}) for name in (SEGMENTED, "target"))
        if not sources.keys() & targets.keys():
            return [(self._found.get("source", NO_TEXT), self._found.get("target", NO_TEXT))]
        source, target = self._found[SEGMENTED], self._found["target"]
        return [
            (source.part(*place), target.part(*targets[name]))
            for name, place in sources.items()
            if name in targets
        ]


def is_forbidden(translate: str, is_parent_forbidden: bool) -> bool:
    """Whether an element must not be translated.

    Args:
        translate: its attribute: `yes`, `no`, or "" if it has none.
        is_parent_forbidden: whether the element around it must not be.
    """
    return translate == "no" or (is_parent_forbidden and translate != "yes")


def _fits(language: str, wanted: str) -> bool:
    return rank_of(language, wanted) is not None
