"""Translation memories (TMX 1.1 to 1.4b), read unit by unit without building a tree.

The format: https://www.ttt.org/oscarStandards/tmx/tmx14b.html
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from heed.data.xml_events import MAX_NAME_CHARS, XmlEvents
from heed.data.xml_segments import Segment, SegmentText, Unit, rank_of, units_in
from heed.errors import DataError

_CODES = frozenset(("bpt", "ept", "it", "ph", "ut"))
_MAX_LANGUAGES = 1000
_SHOWN_LANGUAGES = 25  # a memory of the European Union has 24


def read_units(path: str | Path, source_lang: str, target_lang: str) -> Iterator[Unit]:
    """The units of a file that have at least one of two languages.

    Raises:
        DataError: the file is missing, damaged or not TMX, never has both languages, or has
            an element or name longer than in any real TMX.
    """
    reader = _UnitReader(str(path), source_lang, target_lang)
    yield from reader.units()
    if not reader.has_pair:
        raise DataError(
            f"{path} must have units in both {source_lang} and {target_lang}, but has none. "
            f"Languages found: {_listed(reader.languages)}."
        )


class _UnitReader:
    """Collects units from the elements of a file; a `Handler`."""

    def __init__(self, path: str, source_lang: str, target_lang: str) -> None:
        self.languages: dict[str, _Ranks] = {}
        self.has_pair = False
        self._path, self._wanted = path, (source_lang, target_lang)
        self._units: list[Unit] = []
        self._texts: list[_Text | None] = [None, None]  # of the unit being read, by side
        self._ranks: _Ranks = ()  # of the variant being read
        self._has_root = False
        self._events = XmlEvents(path, "a TMX file", self)
        self._segment = Segment(self._events, "seg")

    def units(self) -> Iterator[Unit]:
        """The units of the file."""
        return units_in(self._path, self._events, self._segment, self._units)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self._segment.nest()
        if not self._has_root:
            self._has_root = True
            self._events.require_root(tag, "tmx")
        elif tag == "tu":
            self._texts = [None, None]
        elif tag == "tuv":
            language = attributes.get("xml:lang") or attributes.get("lang")
            if not language:
                raise DataError(f"{self._events.where}: <tuv> has no xml:lang. Add the language.")
            self._ranks = self._ranks_of(language[:MAX_NAME_CHARS])
        elif tag == "seg" and self._ranks:
            self._segment.begin()
        elif tag in _CODES:
            self._segment.begin_code(may_be_field=tag == "ph")

    def end(self, tag: str) -> None:
        """An element ends."""
        if tag == "tu":
            self._end_unit()
        elif tag == "seg" and self._segment.is_open:
            self._end_segment(self._segment.ended())
        elif tag in _CODES:
            self._segment.end_code()

    def characters(self, text: str) -> None:
        """Text of an element."""
        self._segment.add(text)

    def entity(self, name: str) -> None:
        """An entity that a DTD outside of the file may define."""
        self._segment.add_entity(name)

    def _end_segment(self, found: SegmentText) -> None:
        for side, rank in self._ranks:
            held = self._texts[side]
            if held is None or rank < held.rank:
                self._texts[side] = _Text(found.text, rank, found.is_complete)

    def _end_unit(self) -> None:
        src, tgt = self._texts
        line = self._events.line
        if src and tgt:
            self.has_pair = True
            is_complete = src.is_complete and tgt.is_complete
            self._units.append(Unit(src.text, tgt.text, line, is_complete))
        elif src:
            self._units.append(Unit(src.text, "", line, src.is_complete))
        elif tgt:
            self._units.append(Unit("", tgt.text, line, tgt.is_complete))

    def _ranks_of(self, language: str) -> "_Ranks":
        ranks = self.languages.get(language)
        if ranks is None:
            found = [(side, rank_of(language, tag)) for side, tag in enumerate(self._wanted)]
            # Where pt and pt-BR are wanted, text in pt-BR is not taken for pt.
            best = min((rank for _, rank in found if rank is not None), default=0)
            ranks = tuple((side, rank) for side, rank in found if rank == best)
            if len(self.languages) <= _MAX_LANGUAGES:
                self.languages[language] = ranks
        return ranks


_Ranks = tuple[tuple[int, int], ...]
"""The sides that a language fits, 0 the source and 1 the target, each with its rank."""


class _Text(NamedTuple):
    """The text of a side, how well its language fits (0 is best), and whether all of it is here."""

    text: str
    rank: int
    is_complete: bool


def _listed(languages: Iterable[str]) -> str:
    """The first names of many."""
    names = sorted(languages)
    shown = ", ".join(names[:_SHOWN_LANGUAGES]) or "none"
    n_more = len(names) - _SHOWN_LANGUAGES
    if n_more <= 0:
        return shown
    more = (
        f"more than {_MAX_LANGUAGES - _SHOWN_LANGUAGES}" if len(names) > _MAX_LANGUAGES else n_more
    )
    return f"{shown} and {more} more"
