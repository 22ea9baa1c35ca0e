"""Elements and text of an XML file as events, within limits that no real file of pairs exceeds."""

from typing import Protocol
from xml.parsers import expat

from heed.errors import DataError

MAX_NAME_CHARS = 40
"""Of an element or a language in a message."""

# Expat keeps what is below in memory; before version 2.6 it also reads a tag, comment or entity
# again from its beginning with every chunk.
_MAX_TOKEN_BYTES = 1 << 20
_MAX_DOCTYPE_BYTES = 1 << 20
_MAX_DEPTH = 1000
_MAX_NAMES = 10_000  # of elements and attributes

_TRUNCATED = "The file ends too early: copy it again, or export it again."
_MALFORMED = "Correct it there, or export the file again."


class Handler(Protocol):
    """What is told about a file, in its order."""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""

    def end(self, tag: str) -> None:
        """An element ends."""

    def characters(self, text: str) -> None:
        """Text of an element, in pieces."""

    def entity(self, name: str) -> None:
        """An entity that is not defined in the file; "" = its text is in another file."""


class XmlEvents:
    """Reads a file in chunks, and tells a handler about its elements.

    Args:
        path: names the file in messages.
        kind: what it should be, such as `a TMX file`, for messages.
        handler: is told.
    """

    def __init__(self, path: str, kind: str, handler: Handler) -> None:
        self._path, self._kind, self._handler = path, kind, handler
        self._depth = 0
        self._n_fed_bytes = 0
        self._doctype_start: int | None = None  # while its declarations are read
        self._parser = expat.ParserCreate("utf-8")
        self._parser.buffer_text = True
        self._parser.specified_attributes = True
        self._parser.StartDoctypeDeclHandler = self._start_doctype
        self._parser.EndDoctypeDeclHandler = self._end_doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = handler.characters
        self._parser.SkippedEntityHandler = self._skipped_entity
        self._parser.ExternalEntityRefHandler = self._external_entity

    @property
    def line(self) -> int:
        """The line that is being read, from 1."""
        return self._parser.CurrentLineNumber

    @property
    def where(self) -> str:
        """The place that is being read, for messages."""
        return f"{self._path} line {self.line}"

    def feed(self, chunk: bytes, *, is_final: bool = False) -> None:
        """Read a chunk of UTF-8.

        Raises:
            DataError: it is not well-formed, or exceeds a limit.
        """
        try:
            self._parser.Parse(chunk, is_final)
        except expat.ExpatError as error:
            raise DataError(
                f"{self._path} line {error.lineno}: not well-formed XML: "
                f"{expat.ErrorString(error.code)}. "
                f"{_TRUNCATED if is_final else _MALFORMED}"
            ) from error
        self._n_fed_bytes += len(chunk)
        self._check_limits()

    def require_root(self, tag: str, wanted: str) -> None:
        """Refuse a file that begins with another element than that of its format.

        Raises:
            DataError: it does; names both.
        """
        if tag != wanted:
            raise DataError(
                f"{self.where}: must begin with <{wanted}>, but begins with "
                f"<{tag[:MAX_NAME_CHARS]}>."
            )

    def _check_limits(self) -> None:
        """Refuse input for which the parser would need more memory than for any real file."""
        n_pending = self._n_fed_bytes - self._parser.CurrentByteIndex
        if n_pending > _MAX_TOKEN_BYTES:
            raise self._refused(
                f"a tag, comment or declaration must have at most {_MAX_TOKEN_BYTES} bytes, but "
                "has more"
            )
        start = self._doctype_start
        if start is not None and self._n_fed_bytes - start > _MAX_DOCTYPE_BYTES:
            raise self._refused(
                f"<!DOCTYPE> must have at most {_MAX_DOCTYPE_BYTES} bytes, but has more"
            )
        if len(self._parser.intern) > _MAX_NAMES:
            raise self._refused(
                f"elements and attributes must have at most {_MAX_NAMES} different names, but have "
                "more"
            )

    def _refused(self, reason: str) -> DataError:
        return DataError(f"{self.where}: {reason}. Is this {self._kind}?")

    def _start_doctype(self, *_: object) -> None:
        self._doctype_start = max(0, self._parser.CurrentByteIndex)

    def _end_doctype(self) -> None:
        self._doctype_start = None

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._refused(
                f"elements must be nested at most {_MAX_DEPTH} deep, but are deeper"
            )
        self._handler.start(tag, attributes)

    def _end(self, tag: str) -> None:
        self._depth -= 1
        self._handler.end(tag)

    def _skipped_entity(self, name: str, is_parameter: bool) -> None:
        if not is_parameter:
            self._handler.entity(name)

    def _external_entity(self, *_: object) -> int:
        """An entity whose text is in another file, which is never opened."""
        self._handler.entity("")
        return 1
