"""The file of a glossary: bytes to rows."""

import csv
import io
import reprlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from heed.disk.files import read_bytes
from heed.errors import DataError, UsageError
from heed.text.delimiters import N_FIRST, table_delimiter
from heed.text.normalize import BLANKS

FORMATS = ("tsv", "csv")
_MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def decoded(path: Path) -> str:
    """The text of a file: UTF-8, or UTF-16 with a byte order mark, as spreadsheets save it.

    Raises:
        DataError: it has another encoding; names the line.
    """
    data = read_bytes(path)
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8-sig")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path} line {line}: the glossary must be UTF-8, but byte 0x{data[error.start]:02x} "
            "does not fit. Save the file as UTF-8."
        ) from None


def rows_of(text: str, format: str = "tsv") -> Iterator[tuple[int, str, str, str]]:
    """Line number, source term, target and case rule of each entry; empty lines are left out.

    Args:
        text: of the glossary.
        format: `tsv`, with tabs between the columns, or `csv`, with commas, semicolons or tabs,
            and quotes where needed.

    Raises:
        DataError: names the line that is not an entry.
        UsageError: there is no such format.
    """
    if format not in FORMATS:
        raise UsageError(f"format must be one of {', '.join(FORMATS)}, but is {format!r}.")
    text = text.removeprefix("\ufeff")
    for line, columns in _tsv_rows(text) if format == "tsv" else _csv_rows(text):
        if not any(column.strip(BLANKS) for column in columns):
            continue
        if len(columns) < 2:
            separator = "a tab" if format == "tsv" else "a comma"
            raise DataError(
                f"Line {line} of the glossary must have a source term, {separator} and a target "
                f"term, but is {reprlib.repr(columns[0])}."
            )
        yield line, columns[0], columns[1], columns[2].strip(BLANKS) if columns[2:] else ""


def _tsv_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    for line, row in enumerate(text.splitlines(), start=1):
        yield line, row.split("\t")


def _csv_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    delimiter, n_before = table_delimiter(text.splitlines()[:N_FIRST])
    lines = islice(io.StringIO(text, newline=""), n_before, None)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        line = n_before + reader.line_num + 1
        try:
            columns = next(reader, None)
        except csv.Error as error:
            raise DataError(f"Line {line} of the glossary is not valid CSV: {error}.") from None
        if columns is None:
            return
        yield line, columns
