"""Translation memories (TMX 1.1 to 1.4b), read unit by unit without building a tree.

The format: https://www.ttt.org/oscarStandards/tmx/tmx14b.html
"""

from collections.abc import Iterable, Iterator
from html.entities import html5
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from heed.data.lines import MAX_LINE_BYTES
from heed.data.xml_encoding import read_xml
from heed.errors import DataError
from heed.text.protection.fields import is_field

# Their content is another program's markup, such as "<b>", not words of either language. Only a
# field in a placeholder, such as "%s" in <ph>, belongs to the text that people translate.
_CODES = frozenset(("bpt", "ept", "it", "ph", "ut"))
_MAX_SEGMENT_CHARS = MAX_LINE_BYTES
_MAX_PIECES = 16  # that the parser gives of a field
# Expat keeps what is below in memory; before version 2.6 it also reads a tag, comment or entity
# again from its beginning with every chunk.
_MAX_TOKEN_BYTES = 1 << 20
_MAX_DOCTYPE_BYTES = 1 << 20
_MAX_DEPTH = 1000
_MAX_NAMES = 10_000  # of elements and attributes
_MAX_LANGUAGES = 1000
_MAX_NAME_CHARS = 40  # of a language, or of an element in a message
_SHOWN_LANGUAGES = 25  # a memory of the European Union has 24


class Unit(NamedTuple):
    """One translation unit.

    Attributes:
        src: the source, "" if it is absent.
        tgt: the target, "" if it is absent.
        line: where the unit ends, from 1.
        is_complete: False if an entity of a side is unknown, and was replaced by a blank.
    """

    src: str
    tgt: str
    line: int
    is_complete: bool = True


def read_units(path: str | Path, source_lang: str, target_lang: str) -> Iterator[Unit]:
    """The units of a file that have at least one of two languages.

    Raises:
        DataError: the file is missing, damaged or not TMX, never has both languages, or has
            an element or name longer than in any real TMX.
    """
    reader = _UnitReader(str(path), source_lang, target_lang)
    for chunk in read_xml(path):
        yield from reader.feed(chunk)
    yield from reader.feed(b"", is_final=True)
    if not reader.has_pair:
        raise DataError(
            f"{path} must have units in both {source_lang} and {target_lang}, but has none. "
            f"Languages found: {_listed(reader.languages)}."
        )


class _UnitReader:
    """Collects units from the events of the XML parser."""

    def __init__(self, path: str, source_lang: str, target_lang: str) -> None:
        self.languages: dict[str, _Ranks] = {}
        self.has_pair = False
        self._path = path
        self._wanted = (source_lang, target_lang)
        self._units: list[Unit] = []
        self._texts: list[_Text | None] = [None, None]  # of the unit being read, by side
        self._ranks: _Ranks = ()  # of the variant being read
        self._segment: list[str] | None = None
        self._n_chars = 0
        self._is_complete = True
        self._depth = self._code_depth = 0
        self._placeholder: list[str] | None = None  # text of the <ph> being read, without elements
        self._root = ""
        self._n_fed_bytes = self._n_ended_chars = 0
        self._doctype_start: int | None = None  # while its declarations are read
        self._parser = expat.ParserCreate("utf-8")
        self._parser.buffer_text = True
        self._parser.specified_attributes = True
        self._parser.StartDoctypeDeclHandler = self._start_doctype
        self._parser.EndDoctypeDeclHandler = self._end_doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.SkippedEntityHandler = self._skipped_entity
        self._parser.ExternalEntityRefHandler = self._external_entity

    def feed(self, chunk: bytes, *, is_final: bool = False) -> list[Unit]:
        """The units that end in this chunk of UTF-8."""
        try:
            self._parser.Parse(chunk, is_final)
        except expat.ExpatError as error:
            raise DataError(
                f"{self._path} line {error.lineno}: not well-formed XML: "
                f"{expat.ErrorString(error.code)}."
            ) from error
        self._n_fed_bytes += len(chunk)
        self._check_limits()
        units, self._units, self._n_ended_chars = self._units, [], 0
        return units

    def _check_limits(self) -> None:
        """Refuse input for which the parser would need more memory than for any TMX."""
        n_pending = self._n_fed_bytes - self._parser.CurrentByteIndex
        if n_pending > _MAX_TOKEN_BYTES:
            raise DataError(
                f"{self._where()}: a tag, comment or declaration must have at most "
                f"{_MAX_TOKEN_BYTES} bytes, but has more. Is this a TMX file?"
            )
        start = self._doctype_start
        if start is not None and self._n_fed_bytes - start > _MAX_DOCTYPE_BYTES:
            raise DataError(
                f"{self._where()}: <!DOCTYPE> must have at most {_MAX_DOCTYPE_BYTES} bytes, but "
                "has more. Is this a TMX file?"
            )
        if len(self._parser.intern) > _MAX_NAMES:
            raise DataError(
                f"{self._where()}: elements and attributes must have at most {_MAX_NAMES} "
                "different names, but have more. Is this a TMX file?"
            )

    def _start_doctype(self, *_: object) -> None:
        self._doctype_start = max(0, self._parser.CurrentByteIndex)

    def _end_doctype(self) -> None:
        self._doctype_start = None

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise DataError(
                f"{self._where()}: elements must be nested at most {_MAX_DEPTH} deep, but are "
                "deeper. Is this a TMX file?"
            )
        if self._code_depth:
            self._placeholder = None
        if not self._root:
            self._root = tag
            if tag != "tmx":
                found = tag[:_MAX_NAME_CHARS]
                raise DataError(
                    f"{self._where()}: must begin with <tmx>, but begins with <{found}>."
                )
        elif tag == "tu":
            self._texts = [None, None]
        elif tag == "tuv":
            language = attributes.get("xml:lang") or attributes.get("lang")
            if not language:
                raise DataError(f"{self._where()}: <tuv> has no xml:lang. Add the language.")
            self._ranks = self._ranks_of(language[:_MAX_NAME_CHARS])
        elif tag == "seg" and self._ranks:
            self._segment, self._n_chars, self._is_complete = [], 0, True
        elif tag in _CODES:
            if tag == "ph" and not self._code_depth:
                self._placeholder = []
            self._code_depth += 1

    def _end(self, tag: str) -> None:
        self._depth -= 1
        if tag == "tu":
            self._end_unit()
        elif tag == "seg" and self._segment is not None:
            self._end_segment("".join(self._segment))
            self._segment = None
        elif tag in _CODES:
            self._code_depth -= 1
            if self._placeholder is not None:
                text, self._placeholder = "".join(self._placeholder), None
                if is_field(text):
                    self._characters(text)

    def _characters(self, text: str) -> None:
        if self._placeholder is not None:
            is_short = len(self._placeholder) < _MAX_PIECES
            self._placeholder = [*self._placeholder, text] if is_short else None
        if self._segment is None or self._code_depth:
            return
        self._n_chars += len(text)
        if self._n_chars > _MAX_SEGMENT_CHARS:
            raise DataError(
                f"{self._where()}: a <seg> must have at most {_MAX_SEGMENT_CHARS} characters, "
                "but has more."
            )
        self._segment.append(text)

    def _skipped_entity(self, name: str, is_parameter: bool) -> None:
        """An entity that a DTD outside of the file may define: HTML's names are known."""
        self._placeholder = None
        if is_parameter or self._segment is None or self._code_depth:
            return
        character = html5.get(f"{name};")
        self._is_complete = self._is_complete and character is not None
        self._characters(character or " ")

    def _external_entity(self, *_: object) -> int:
        """An entity whose text is in another file, which is never opened."""
        self._placeholder = None
        if self._segment is not None and not self._code_depth:
            self._is_complete = False
            self._characters(" ")
        return 1

    def _end_segment(self, text: str) -> None:
        for side, rank in self._ranks:
            held = self._texts[side]
            if held is None or rank < held.rank:
                self._texts[side] = _Text(text, rank, self._is_complete)
        self._n_ended_chars += len(text)
        if self._n_ended_chars > 4 * _MAX_SEGMENT_CHARS:  # more than a chunk has without entities
            raise DataError(
                f"{self._where()}: entities must expand to at most {4 * _MAX_SEGMENT_CHARS} "
                "characters in one place, but expand to more."
            )

    def _end_unit(self) -> None:
        src, tgt = self._texts
        line = self._parser.CurrentLineNumber
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
            found = [(side, _rank(language, tag)) for side, tag in enumerate(self._wanted)]
            # Where pt and pt-BR are wanted, text in pt-BR is not taken for pt.
            best = min((rank for _, rank in found if rank is not None), default=0)
            ranks = tuple((side, rank) for side, rank in found if rank == best)
            if len(self.languages) <= _MAX_LANGUAGES:
                self.languages[language] = ranks
        return ranks

    def _where(self) -> str:
        return f"{self._path} line {self._parser.CurrentLineNumber}"


_Ranks = tuple[tuple[int, int], ...]
"""The sides that a language fits, 0 the source and 1 the target, each with its `_rank`."""


class _Text(NamedTuple):
    """The text of a side, how well its language fits (0 is best), and whether all of it is here."""

    text: str
    rank: int
    is_complete: bool


def _rank(language: str, wanted: str) -> int | None:
    """How well a language fits the wanted one: 0 the same, 1 a region of it, 2 its parent."""
    found, tag = (code.replace("_", "-").casefold() for code in (language, wanted))
    if found == tag:
        return 0
    if found.startswith(f"{tag}-"):
        return 1
    return 2 if found == tag.partition("-")[0] else None


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
