"""Translate a file of a request."""

import asyncio
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.datastructures import UploadFile
from starlette.responses import Response

from heed.documents.segment import SIGNS_AN_ELEMENT
from heed.errors import DataError
from heed.serve.refusal import Refusal
from heed.serve.request import AUTO, Answer, Direction, Request
from heed.serve.service import IsWanted, Service
from heed.serve.shapes.directions import translate_or_keep
from heed.serve.work.deadline import require_wanted
from heed.translate.glossary.glossary import Glossary
from heed.translate.result import Translation, join_parts

if TYPE_CHECKING:
    from heed.documents.files import Document

MAX_NAME_BYTES = 100
"""Of the stem of a file's name: with what is added, it stays below the 255 of file systems."""

ALIGNED_CHARS = 5000
"""In a longer segment the places of its markup are estimated: an alignment of all its tokens with
each other could take gigabytes."""

MOST_ELEMENTS = 200_000
"""Marks, links, cells, strings and the like in a file. Each takes up to 75 µs and 1.5 kB."""

_UNSAFE = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, kw_only=True)
class TranslatedFile:
    """A translated file.

    Attributes:
        name: its name, with the target language before its ending, such as `report.de.txt`.
        content: its bytes.
        n_chars: number of characters of translated text.
    """

    name: str
    content: bytes
    n_chars: int


@dataclass(frozen=True, kw_only=True)
class FileOrder:
    """Options for the translation of a file.

    Attributes:
        source: language code, or `AUTO`.
        target: language code.
        glossary: terms and their translations; None = none.
        most_chars: limit of the client's key; 0 = no own limit.
    """

    source: str
    target: str
    most_chars: int = 0
    glossary: Glossary | None = None


async def translate_file(service: Service, file: UploadFile, order: FileOrder) -> TranslatedFile:
    """Translate the text of a file, and keep the rest unchanged.

    Raises:
        Refusal: it cannot be read, is too long, or its direction is not served.
    """
    from heed.documents.files import open_document

    name = safe_name(file.filename or "")
    data = await file.read()

    limit = min(service.settings.limits.chars, order.most_chars or service.settings.limits.chars)

    def read(is_wanted: IsWanted) -> "Document":
        try:
            return open_document(name, data, order.target, _Allowance(limit, is_wanted))
        except DataError as error:
            raise Refusal(400, str(error), code="wrong_file", field="file") from None

    document = await service.read_file(read, len(data))
    texts = [segment.text for segment in document.segments]
    n_chars = sum(map(len, texts))
    if n_chars > limit:
        raise _too_large(f"Invalid request: request ({n_chars}) exceeds text limit ({limit})")
    answers = await _translated(service, document, texts, order)
    content = await asyncio.to_thread(document.join, [_joined(answer) for answer in answers])
    return TranslatedFile(name=named_for(name, order.target), content=content, n_chars=n_chars)


class _Allowance:
    """Stops the reading of a file that is too large, or for which no client waits any more.

    Args:
        most_chars: limit of characters to translate.
        is_wanted: whether a client waits.
    """

    def __init__(self, most_chars: int, is_wanted: IsWanted) -> None:
        self._most_chars = most_chars
        self._is_wanted = is_wanted
        self._n_chars = self._n_elements = 0

    def __call__(self, n_chars: int, n_elements: int) -> None:
        """Count what was just read.

        Raises:
            Refusal: it is too much (413), or no client waits (504).
        """
        self._n_chars += n_chars
        self._n_elements += n_elements
        if self._n_chars > self._most_chars:
            limit = self._most_chars
            raise _too_large(
                f"Invalid request: request (more than {limit}) exceeds text limit ({limit})"
            )
        if self._n_elements > MOST_ELEMENTS:
            raise _too_large(
                f"The file has more than {MOST_ELEMENTS} marks, links, cells and other elements "
                f"({SIGNS_AN_ELEMENT} tags, fields or lines count as one). Send it in parts."
            )
        require_wanted(self._is_wanted)


def _too_large(sentence: str) -> Refusal:
    return Refusal(413, sentence, code="too_large", field="file")


async def _translated(
    service: Service, document: "Document", texts: list[str], order: FileOrder
) -> list[Answer]:
    source = order.source
    if source == AUTO:
        # One language for the whole file, because a single word in a segment says little about it.
        direction = Direction(source=AUTO, target=order.target)
        source = (await service.source_of("\n".join(texts), direction)).code
    request = Request(
        texts=texts,
        source=source,
        target=order.target,
        split="nonewlines",
        alignment=any(segment.needs_alignment for segment in document.segments),
        glossary=order.glossary,
    )
    return await translate_or_keep(service, request)


def _joined(answer: Answer) -> Translation:
    """The translation of a file's segment, which the service may have split further."""
    parts = [one.translation for one in answer.segments]
    if sum(len(one.source) for one in answer.segments) > ALIGNED_CHARS:
        parts = [replace(part, alignment=None) for part in parts]
    whole = join_parts(parts) if parts else Translation(text=answer.text)
    return replace(whole, text=answer.text)


def safe_name(name: str) -> str:
    """A name without folders, and without characters that are special in a shell or a header."""
    base = _UNSAFE.sub("_", name.replace("\\", "/").rpartition("/")[2]).strip(".")
    stem, dot, ending = base.rpartition(".")
    return f"{_cut(stem)}{dot}{_cut(ending)}"


def _cut(name: str) -> str:
    """The beginning of a name, in whole characters."""
    return name.encode()[:MAX_NAME_BYTES].decode(errors="ignore")


def named_for(name: str, target: str) -> str:
    """`report.txt` in German is `report.de.txt`."""
    stem, dot, ending = name.rpartition(".")
    return f"{stem}.{target}{dot}{ending}"


def attachment(name: str, content: bytes) -> Response:
    """A file to download. Browsers must not display it, because it may contain scripts."""
    ascii_name = name.encode("ascii", "replace").decode().replace("?", "_")
    return Response(
        content,
        media_type="application/octet-stream",
        headers={
            "Content-Disposition": (
                f"attachment; filename=\"{ascii_name}\"; filename*=UTF-8''{quote(name)}"
            ),
            "X-Content-Type-Options": "nosniff",
        },
    )
