"""Translation memories (TMX 1.1 to 1.4b) unit by unit; no tree is ever built.

Not here: compression (`lines.py`). The format: https://www.ttt.org/oscarStandards/tmx/tmx14b.html
Read on in `readers.py`, which makes pairs of this.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from heed.data.lines import read_chunks
from heed.errors import DataError

# Their content is another program's markup, such as "<b>", and no words of either language.
_CODES = frozenset(("bpt", "ept", "it", "ph", "ut"))
_MAX_SEGMENT_CHARS = 1 << 20


class Unit(NamedTuple):
    """One translation unit: both sides, an absent one as "", and the line where it ends."""

    src: str
    tgt: str
    line: int


def read_units(path: str | Path, source_lang: str, target_lang: str) -> Iterator[Unit]:
    """The units of a file that have at least one of two languages.

    Raises:
        DataError: the file is missing, damaged or no TMX, or never has both languages.
    """
    reader = _UnitReader(str(path), source_lang, target_lang)
    for chunk in read_chunks(path):
        yield from reader.feed(chunk)
    yield from reader.feed(b"", is_final=True)
    if not reader.has_pair:
        found = ", ".join(sorted(reader.languages)) or "none"
        raise DataError(
            f"{path} must have units in both {source_lang} and {target_lang}, but has none. "
            f"Languages found: {found}."
        )


class _UnitReader:
    """Collects what the XML parser reports."""

    def __init__(self, path: str, source_lang: str, target_lang: str) -> None:
        self.languages: set[str] = set()
        self.has_pair = False
        self._path = path
        self._wanted = (source_lang, target_lang)
        self._units: list[Unit] = []
        self._texts: dict[str, str] = {}  # of the unit being read, by language
        self._language = ""
        self._segment: list[str] | None = None
        self._n_chars = 0
        self._code_depth = 0
        self._root = ""
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters

    def feed(self, chunk: bytes, *, is_final: bool = False) -> list[Unit]:
        """The units that end in this chunk."""
        try:
            self._parser.Parse(chunk, is_final)
        except expat.ExpatError as error:
            raise DataError(
                f"{self._path} line {error.lineno}: not well-formed XML: "
                f"{expat.ErrorString(error.code)}."
            ) from error
        units, self._units = self._units, []
        return units

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self._root:
            self._root = tag
            if tag != "tmx":
                raise DataError(f"{self._where()}: must begin with <tmx>, but with <{tag}>.")
        elif tag == "tu":
            self._texts = {}
        elif tag == "tuv":
            language = attributes.get("xml:lang") or attributes.get("lang")
            if not language:
                raise DataError(
                    f"{self._where()}: <tuv> has no xml:lang. Add it: it says whose words follow."
                )
            self._language = language
            self.languages.add(language)
        elif tag == "seg":
            self._segment, self._n_chars = [], 0
        elif tag in _CODES:
            self._code_depth += 1

    def _end(self, tag: str) -> None:
        if tag == "tu":
            self._end_unit()
        elif tag == "seg" and self._segment is not None:
            self._texts.setdefault(self._language, "".join(self._segment))
            self._segment = None
        elif tag in _CODES:
            self._code_depth -= 1

    def _characters(self, text: str) -> None:
        if self._segment is None or self._code_depth:
            return
        self._n_chars += len(text)
        if self._n_chars > _MAX_SEGMENT_CHARS:
            raise DataError(
                f"{self._where()}: a <seg> must have at most {_MAX_SEGMENT_CHARS} characters, "
                "but has more."
            )
        self._segment.append(text)

    def _end_unit(self) -> None:
        src, tgt = (_best_match(self._texts, language) for language in self._wanted)
        if src is not None and tgt is not None:
            self.has_pair = True
        if src is not None or tgt is not None:
            self._units.append(Unit(src or "", tgt or "", self._parser.CurrentLineNumber))

    def _where(self) -> str:
        return f"{self._path} line {self._parser.CurrentLineNumber}"


def _best_match(texts: dict[str, str], wanted: str) -> str | None:
    """The text in a language: this very one, else one of its regions, else its parent."""
    tags = {language.replace("_", "-").casefold(): text for language, text in texts.items()}
    tag = wanted.replace("_", "-").casefold()
    if tag in tags:
        return tags[tag]
    regional = (text for found, text in tags.items() if found.startswith(f"{tag}-"))
    return next(regional, tags.get(tag.partition("-")[0]))
