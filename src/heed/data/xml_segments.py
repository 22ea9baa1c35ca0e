"""The text of a segment in TMX and XLIFF, and how well its language fits a wanted one."""

import re
from collections.abc import Iterable, Iterator
from html.entities import html5
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from heed.data.lines import MAX_LINE_BYTES
from heed.data.xml_encoding import read_xml
from heed.data.xml_events import MAX_NAME_CHARS, XmlEvents
from heed.errors import DataError
from heed.text.protection.fields import is_field

MAX_CHARS = MAX_LINE_BYTES
_MOST_SHOWN = 10  # languages in a message
_MAX_PIECES = 16  # that the parser gives of a field


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


class SegmentText(NamedTuple):
    """The text of a segment; not complete if an unknown entity was replaced by a blank."""

    text: str
    is_complete: bool

    def part(self, start: int, end: int) -> "SegmentText":
        """What stands between two places."""
        return SegmentText(self.text[start:end], self.is_complete)


NO_TEXT = SegmentText("", True)


class Segment:
    """Collects the text of one segment after the other.

    Codes hold another program's markup, such as "<b>", not words of either language. Only a field
    in a placeholder, such as "%s" in `<ph>`, belongs to the text that people translate.

    Args:
        events: of the file.
        tag: of the elements, for messages.
    """

    def __init__(self, events: XmlEvents, tag: str) -> None:
        self._events, self._tag = events, tag
        self._parts: list[str] | None = None
        self._n_chars = self._n_codes = self._n_ended_chars = 0
        self._is_complete = True
        self._placeholder: list[str] | None = None  # text of the code being read, if not nested

    @property
    def is_open(self) -> bool:
        """Whether a segment is being read."""
        return self._parts is not None

    @property
    def n_chars(self) -> int:
        """The length of what has been read of the segment."""
        return self._n_chars

    def begin(self) -> None:
        """A segment begins."""
        self._parts, self._n_chars, self._is_complete = [], 0, True

    def ended(self) -> SegmentText:
        """The segment that ends here.

        Raises:
            DataError: entities stand for much text.
        """
        assert self._parts is not None
        text, self._parts = "".join(self._parts), None
        self._n_ended_chars += len(text)
        if self._n_ended_chars > 4 * MAX_CHARS:  # more than a chunk has without entities
            raise DataError(
                f"{self._events.where}: entities must expand to at most {4 * MAX_CHARS} "
                "characters in one place, but expand to more."
            )
        return SegmentText(text, self._is_complete)

    def begin_chunk(self) -> None:
        """Another chunk of the file is read."""
        self._n_ended_chars = 0

    def begin_code(self, *, may_be_field: bool) -> None:
        """A code begins, perhaps inside another one."""
        if may_be_field and not self._n_codes:
            self._placeholder = []
        self._n_codes += 1

    def end_code(self) -> None:
        """A code ends."""
        self._n_codes -= 1
        if self._placeholder is not None:
            text, self._placeholder = "".join(self._placeholder), None
            if is_field(text):
                self.add(text)

    def nest(self) -> None:
        """An element begins: in a code it means that the code is no field."""
        if self._n_codes:
            self._placeholder = None

    def add(self, text: str) -> None:
        """Text of the segment or of a code.

        Raises:
            DataError: the segment is too long.
        """
        if self._placeholder is not None:
            is_short = len(self._placeholder) < _MAX_PIECES
            self._placeholder = [*self._placeholder, text] if is_short else None
        if self._parts is None or self._n_codes:
            return
        self._n_chars += len(text)
        if self._n_chars > MAX_CHARS:
            raise DataError(
                f"{self._events.where}: a <{self._tag}> must have at most {MAX_CHARS} characters, "
                "but has more."
            )
        self._parts.append(text)

    def add_entity(self, name: str) -> None:
        """An entity that the file does not define: HTML's names are known."""
        self._placeholder = None
        if self._parts is None or self._n_codes:
            return
        character = html5.get(f"{name};")
        self._is_complete = self._is_complete and character is not None
        self.add(character or " ")


def units_in(
    path: str | Path, events: XmlEvents, segment: Segment, units: list[Unit]
) -> Iterator[Unit]:
    """The units of a file, as they end.

    Args:
        path: of the file.
        events: whose handler collects the units.
        segment: collects their texts.
        units: where the handler puts those that have ended.

    Raises:
        DataError: the file is missing or damaged, or the handler refuses it.
    """
    for chunk, is_final in chain(((chunk, False) for chunk in read_xml(path)), [(b"", True)]):
        segment.begin_chunk()
        events.feed(chunk, is_final=is_final)
        yield from units
        units.clear()


def require_target(declared: Iterable[str], target_lang: str) -> None:
    """Refuse a file that is translated into other languages only.

    Args:
        declared: the languages that it names; "" counts as none.
        target_lang: the wanted language; "" = any.

    Raises:
        DataError: it is; names them.
    """
    found = [*dict.fromkeys(filter(None, declared))]
    if target_lang and found and all(rank_of(each, target_lang) is None for each in found):
        raise DataError(
            f"The file must be translated into {target_lang}, but says that it is translated into "
            f"{' and '.join(each[:MAX_NAME_CHARS] for each in found[:_MOST_SHOWN])}."
        )


def rank_of(language: str, wanted: str) -> int | None:
    """How well a language fits the wanted one: 0 the same, 1 a region of it, 2 its parent."""
    found, tag = (re.sub("[_@]", "-", code).casefold() for code in (language, wanted))
    if found == tag:
        return 0
    if found.startswith(f"{tag}-"):
        return 1
    return 2 if found == tag.partition("-")[0] else None
