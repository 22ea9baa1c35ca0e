"""Files that are ZIP archives of XML: .docx, .pptx, .xlsx, .odt, .odp, .ods and .epub.

Parts that hold text are translated; all others are copied. Nothing is unpacked to the disk, so the
name of a part is never used as a path. Custom entities are never expanded.
"""

import io
import re
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from heed.documents.assembly import Content
from heed.documents.encoding import Encoding, read
from heed.documents.markup import parse_markup
from heed.documents.runs import split_runs
from heed.documents.segment import OnRead, Segment, ignore, require_one_each
from heed.documents.workbook import (
    PARTS,
    has_text,
    literals_of_formulas,
    names_of_columns,
    split_workbook_part,
)
from heed.errors import DataError
from heed.translate.result import Translation

MAX_PARTS = 10_000
MAX_UNPACKED_BYTES = 256 << 20
MAX_RATIO = 200
"""Largest ratio of unpacked to packed bytes; real documents stay below 50."""
_SMALL_BYTES = 1 << 20
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_IS_ENCRYPTED = 1
# EPUB 3.3, section 4.2.6.3.2.
_ENCRYPTED_PARTS = "META-INF/encryption.xml"
_REFERENCE = re.compile(r"<(?:\w+:)?CipherReference\s[^<>]*?\bURI\s*=\s*[\"']([^\"'<>]*)")

# Elements of OpenDocument without translatable text.
_ODF_IGNORED = [
    "office:scripts",
    "office:settings",
    "office:font-face-decls",
    "office:automatic-styles",
    "office:styles",
    "number:text",
    "dc:creator",  # of comments and tracked changes
    "dc:date",
    "meta:creator-initials",
    "text:tracked-changes",
    "text:sequence-decls",
    "text:variable-decls",
]
_ODF_SPLITTING = [
    "text:p",
    "text:h",
    "text:tab",
    "text:line-break",
    "text:index-title-template",
    "table:table-cell",
    "svg:title",
    "svg:desc",
]
# They stand among the words of a paragraph, and have paragraphs of their own.
_ODF_NESTED = ["text:note", "office:annotation", "draw:frame", "draw:custom-shape", "draw:g"]
_ODF_BLANKS = ["text:s"]
_NCX_IGNORED = ["docAuthor", "ncx:docAuthor"]
_NCX_SPLITTING = ["text", "ncx:text"]


def _split_odf(text: str) -> Content:
    return parse_markup(
        text,
        kind="xml",
        ignore_tags=_ODF_IGNORED,
        splitting_tags=_ODF_SPLITTING,
        blank_tags=_ODF_BLANKS,
        nested_tags=_ODF_NESTED,
        outline_detection=False,
        has_namespaces=True,
    )


def _split_page(text: str) -> Content:
    """The texts of a page of a book, or of the table of contents for older readers (NCX)."""
    return parse_markup(text, ignore_tags=_NCX_IGNORED, splitting_tags=_NCX_SPLITTING)


def _office(archive: zipfile.ZipFile, on_read: OnRead) -> Callable[[str], Content]:
    return lambda text: split_runs(text, on_read)


@dataclass(frozen=True, slots=True)
class ArchiveFormat:
    """A format.

    Attributes:
        parts: the names of the parts that may hold text.
        splitter: returns the function that splits such a part; receives the archive, and what may
            stop its reading.
        has_text: whether such a part holds text. The others are copied.
    """

    parts: re.Pattern[str]
    splitter: Callable[[zipfile.ZipFile, OnRead], Callable[[str], Content]]
    has_text: Callable[[bytes], bool] = lambda _: True


def _workbook(workbook: zipfile.ZipFile, on_read: OnRead) -> Callable[[str], Content]:
    kept = names_of_columns(workbook, on_read) | literals_of_formulas(workbook, on_read)
    return lambda text: split_workbook_part(text, kept, on_read)


def _always(
    split: Callable[[str], Content],
) -> Callable[[zipfile.ZipFile, OnRead], Callable[[str], Content]]:
    return lambda archive, on_read: split


ARCHIVE_FORMATS: dict[str, ArchiveFormat] = {
    "docx": ArchiveFormat(
        # Some editors number every part, as in `document2.xml`.
        re.compile(
            r"word/(?:(?:document|header|footer|footnotes|endnotes|comments)\d*"
            r"|diagrams/(?:data|drawing)\d+)\.xml"
        ),
        _office,
    ),
    "pptx": ArchiveFormat(
        re.compile(
            r"ppt/(?:slides/slide|notesSlides/notesSlide|diagrams/data|diagrams/drawing)\d+\.xml"
        ),
        _office,
    ),
    "xlsx": ArchiveFormat(PARTS, _workbook, has_text),
    # Headers and footers of pages are among the styles.
    "odt": ArchiveFormat(re.compile(r"(?:content|styles)\.xml"), _always(_split_odf)),
    "odp": ArchiveFormat(re.compile(r"content\.xml"), _always(_split_odf)),
    "ods": ArchiveFormat(re.compile(r"content\.xml"), _always(_split_odf)),
    "epub": ArchiveFormat(re.compile(r".+\.(?:xhtml|html|htm|ncx)", re.I), _always(_split_page)),
}
"""The formats by the endings of their files."""


@dataclass(slots=True)
class Archive:
    """An archive, split into segments.

    Attributes:
        segments: those of all parts.
        parts: in order, the entry of each part, and its bytes or its split text.
    """

    segments: list[Segment] = field(default_factory=list)
    parts: list[tuple[zipfile.ZipInfo, "bytes | _TextPart"]] = field(default_factory=list)

    def join(self, translations: Sequence[Translation]) -> bytes:
        """The archive with each segment replaced by its translation.

        Raises:
            UsageError: there are not as many translations as segments.
        """
        require_one_each(self.segments, translations)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for info, part in self.parts:
                data = part if isinstance(part, bytes) else part.join(translations)
                copied = zipfile.ZipInfo(info.filename, info.date_time)
                copied.compress_type = info.compress_type
                copied.external_attr = info.external_attr
                archive.writestr(copied, data)
        return packed.getvalue()


@dataclass(frozen=True, slots=True)
class _TextPart:
    """A part that holds text; `first` is the number of its first segment."""

    content: Content
    first: int
    encoding: Encoding

    def join(self, translations: Sequence[Translation]) -> bytes:
        own = translations[self.first : self.first + len(self.content.segments)]
        return self.encoding.encode(self.content.join(own))


def open_archive(name: str, data: bytes, ending: str, on_read: OnRead = ignore) -> Archive:
    """Split the text of an archive into segments.

    Args:
        name: the file's name, for errors.
        data: its bytes.
        ending: one of `ARCHIVE_FORMATS`.
        on_read: may stop this before each part.

    Raises:
        DataError: it is damaged or encrypted, holds no text part, or is too large unpacked.
    """
    form = ARCHIVE_FORMATS[ending]
    archive = Archive()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            infos = packed.infolist()
            _require_sane(name, infos, len(data))
            _require_readable(name, packed, form)
            split = form.splitter(packed, on_read)
            for info in infos:
                part = packed.read(info)
                if not form.parts.fullmatch(info.filename) or not form.has_text(part):
                    archive.parts.append((info, part))
                    continue
                part_ending = info.filename.rpartition(".")[2].lower()
                # Pages of books are XML, whatever their names end in.
                part_ending = "xhtml" if part_ending in ("html", "htm") else part_ending
                part_name = f"{info.filename} of {name}"
                content, encoding = read(part_name, part, split, part_ending, on_read)
                first = len(archive.segments)
                archive.parts.append((info, _TextPart(content, first, encoding)))
                archive.segments += content.segments
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError) as error:
        raise DataError(f"{name} is damaged, or is not a .{ending} file: {error}.") from None
    except (ValueError, OSError, zlib.error) as error:
        raise DataError(f"{name} is damaged: {error}.") from None
    if not any(form.parts.fullmatch(info.filename) for info, _ in archive.parts):
        raise DataError(f"{name} has no part with text, so it is not a .{ending} file.")
    return archive


def _require_readable(name: str, archive: zipfile.ZipFile, form: ArchiveFormat) -> None:
    """Refuse a book whose pages are encrypted; publishers encrypt fonts, too, which are copied."""
    if _ENCRYPTED_PARTS not in archive.namelist():
        return
    found = _REFERENCE.findall(archive.read(_ENCRYPTED_PARTS).decode(errors="replace"))
    if page := next(filter(form.parts.fullmatch, map(unquote, found)), None):
        raise DataError(f"{name} is protected against copying (DRM): {page} is encrypted.")


def _require_sane(name: str, infos: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse an archive that is suspiciously large when unpacked, or cannot be copied."""
    if len(infos) > MAX_PARTS:
        raise DataError(f"{name} must have at most {MAX_PARTS:,} parts, but has {len(infos):,}.")
    unpacked = sum(info.file_size for info in infos)
    if unpacked > MAX_UNPACKED_BYTES or (unpacked > _SMALL_BYTES and unpacked > MAX_RATIO * size):
        raise DataError(
            f"{name} must unpack to at most {MAX_UNPACKED_BYTES:,} bytes and {MAX_RATIO} times "
            f"its own size ({size:,}), but unpacks to {unpacked:,}."
        )
    if any(info.flag_bits & _IS_ENCRYPTED for info in infos):
        raise DataError(f"{name} is encrypted. Save it without a password.")
    # The formats allow no other compression, and the errors of the others' libraries differ.
    if other := next((info for info in infos if info.compress_type not in _COMPRESSIONS), None):
        raise DataError(
            f"{name} must be compressed with Deflate or not at all, but {other.filename} has "
            f"compression {other.compress_type}. Save the file again in its usual program."
        )
    if len({info.filename for info in infos}) < len(infos):
        raise DataError(f"{name} is damaged: two of its parts have the same name.")
