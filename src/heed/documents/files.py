"""Open documents: the ending of a file's name decides its format.

Each format is a module. To add one, add a line to `TEXT_FORMATS`, `BILINGUAL_FORMATS` or
`ARCHIVE_FORMATS`, and an ending to `endings.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from heed.documents.android import is_resources, split_resources
from heed.documents.archives import ARCHIVE_FORMATS, open_archive
from heed.documents.assembly import Content
from heed.documents.encoding import Encoding, read
from heed.documents.endings import SUPPORTED_FORMATS
from heed.documents.gettext import split_po
from heed.documents.json_strings import split_arb, split_json
from heed.documents.markdown import split_markdown
from heed.documents.markup import parse_markup
from heed.documents.passages import split_passage
from heed.documents.properties import split_properties, split_strings
from heed.documents.qt import split_ts
from heed.documents.resx import split_resx
from heed.documents.segment import OnRead, Segment, ignore
from heed.documents.subtitles import split_ass, split_srt, split_vtt
from heed.documents.xliff import split_xliff
from heed.errors import DataError
from heed.translate.result import Translation


def _page(text: str, _: OnRead) -> Content:
    return parse_markup(text)


def _xml(text: str, _: OnRead) -> Content:
    return split_resources(text) if is_resources(text) else parse_markup(text, kind="xml")


TEXT_FORMATS: dict[str, Callable[[str, OnRead], Content]] = {
    "txt": lambda text, _: split_passage(text),
    "html": _page,
    "htm": _page,
    "xhtml": _page,
    "xml": _xml,
    "md": split_markdown,
    "markdown": split_markdown,
    "srt": split_srt,
    "vtt": split_vtt,
    "ass": split_ass,
    "ssa": split_ass,
    "json": split_json,
    "properties": split_properties,
    "strings": split_strings,
    "resx": split_resx,
    "resw": split_resx,
}
BILINGUAL_FORMATS: dict[str, Callable[[str, str, OnRead], Content]] = {
    "po": split_po,
    "xlf": split_xliff,
    "xliff": split_xliff,
    "sdlxliff": split_xliff,
    "mqxliff": split_xliff,
    "arb": split_arb,
    "ts": split_ts,
}
"""Formats that say into which language they are translated."""


class Document(Protocol):
    """A file to translate."""

    @property
    def segments(self) -> list[Segment]:
        """The segments to translate, in order."""

    def join(self, translations: Sequence[Translation]) -> bytes:
        """The file with each segment replaced by its translation.

        Raises:
            UsageError: there are not as many translations as segments.
        """


@dataclass(frozen=True, slots=True)
class _TextFile:
    """A text file, split, and its encoding."""

    content: Content
    encoding: Encoding

    @property
    def segments(self) -> list[Segment]:
        return self.content.segments

    def join(self, translations: Sequence[Translation]) -> bytes:
        return self.encoding.encode(self.content.join(translations))


def open_document(
    name: str, data: bytes, target_lang: str = "", on_read: OnRead = ignore
) -> Document:
    """Split a file into segments.

    Args:
        name: the file's name; its ending decides the format.
        data: its bytes.
        target_lang: the language into which it will be translated; "" = unknown.
        on_read: may stop the reading, because a megabyte of tags may take ten seconds.

    Raises:
        DataError: the format is not supported; the file is malformed or wrongly encoded, or says
            that it is translated into another language.
    """
    ending = name.rpartition(".")[2].lower()
    if "." not in name or f".{ending}" not in SUPPORTED_FORMATS:
        raise DataError(
            f"{name or 'The name of the file'} must end with a supported suffix: "
            f"{', '.join(SUPPORTED_FORMATS)}."
        )
    if ending in ARCHIVE_FORMATS:
        return open_archive(name, data, ending, on_read)

    def split(text: str) -> Content:
        if bilingual := BILINGUAL_FORMATS.get(ending):
            return bilingual(text, target_lang, on_read)
        return TEXT_FORMATS[ending](text, on_read)

    return _TextFile(*read(name, data, split, ending, on_read))
