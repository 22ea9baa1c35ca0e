"""Files of parallel text as streams of pairs: plain text, TSV, CSV, TMX, XLIFF and gettext.

Text is not changed; `clean.py` drops bad pairs and `text/normalize.py` normalizes text. Memory is
bounded for files of any size (four bytes for each line and side).
"""

import csv
import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, dropwhile, islice, zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heed.data.columns import SAMPLE_ROWS, Columns, choose_columns
from heed.data.lines import MAX_LINE_BYTES, STDIN, read_lines, suffix_of
from heed.data.named_languages import languages_asked
from heed.data.po import read_messages
from heed.data.tmx import read_units
from heed.data.xliff import read_segments
from heed.data.xml_segments import Unit
from heed.errors import ConfigError, DataError
from heed.text.delimiters import CSV_DELIMITERS, N_FIRST, table_delimiter
from heed.text.languages import require_language

TABLES = (".tsv", ".tab", ".csv")
"""Suffixes of tables."""
XLIFF = (".xlf", ".xliff", ".sdlxliff", ".mqxliff")
BILINGUAL = (*TABLES, ".tmx", *XLIFF, ".po")
"""Suffixes of files that hold both languages."""
WORKBOOKS = (".xlsx", ".xls", ".ods")
MOST_EMPTY = 1_000_000
"""Most empty lines before the first row of a table; reading them takes a second."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its translation.

    Attributes:
        src: the sentence.
        tgt: its translation.
        line: its line in the file, from 1 (in TMX and XLIFF the line its unit ends on).
        origin: the file, as the user named it.
        source_lang: code such as `en`; "" if unknown.
        target_lang: the same for the translation.
        fault: why a part of it could not be read, in a word; "" if all could.
    """

    src: str
    tgt: str
    line: int = 0
    origin: str = ""
    source_lang: str = ""
    target_lang: str = ""
    fault: str = ""


def with_text(pairs: Iterable[Pair]) -> list[Pair]:
    """The pairs both sides of which have text."""
    return [pair for pair in pairs if pair.src.strip() and pair.tgt.strip()]


@dataclass(frozen=True, kw_only=True)
class ParallelFiles:
    """Some files of a corpus, all for the same direction.

    Attributes:
        files: two names for parallel plain text (source, target); one for a file of `BILINGUAL`;
            each may also end in `.gz`, `.xz` or `.zst`.
        source_lang: code such as `en`; needed for TMX and XLIFF, finds the column in tables with a
            header.
        target_lang: the same for the target.
        columns: the columns of source and target in a table: numbers from 1 or names in the first
            row; empty = they are found.

    Raises:
        ConfigError: a language code is not valid.
    """

    files: tuple[str, ...]
    source_lang: str = ""
    target_lang: str = ""
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for code in (self.source_lang, self.target_lang):
            if code:
                require_language(code)


def read_part(part: ParallelFiles) -> Iterator[Pair]:
    """The pairs of one part of a corpus, read by the suffixes of its files.

    Raises:
        DataError: a file is missing, damaged, or not of the format of its suffix.
        ConfigError: one name where two are needed, or a TMX or XLIFF file without languages.
    """
    path = part.files[0]
    languages = {"source_lang": part.source_lang, "target_lang": part.target_lang}
    if len(part.files) == 2:
        return read_parallel(*part.files, **languages)
    if is_table(part):
        return read_table(path, **languages, columns=part.columns)
    suffix = suffix_of(path)
    if suffix in WORKBOOKS:
        raise ConfigError(f"{path} is a workbook: save its sheet as .csv, in UTF-8, and give that.")
    if suffix not in BILINGUAL:
        raise ConfigError(
            f"{path} must end in .tsv, .csv, .tmx, .xliff or .po to hold both languages. "
            "Give plain text as two files, --src and --tgt."
        )
    if suffix == ".po":
        return read_po(path, **languages)
    if not part.source_lang or not part.target_lang:
        raise ConfigError(languages_asked(path, **languages))
    return read_tmx(path, **languages) if suffix == ".tmx" else read_xliff(path, **languages)


def read_parallel(
    src_path: str | Path, tgt_path: str | Path, *, source_lang: str = "", target_lang: str = ""
) -> Iterator[Pair]:
    """Pair line n of one file with line n of the other.

    Raises:
        DataError: as `read_lines`; or one file has more lines: tells both numbers, and the probable
            line of the first difference, by the lengths of the lines.
    """
    src_lengths, tgt_lengths = array("i"), array("i")
    origin = str(src_path)
    for number, (src, tgt) in enumerate(
        zip_longest(read_lines(src_path), read_lines(tgt_path)), start=1
    ):
        if src is not None:
            src_lengths.append(len(src))
        if tgt is not None:
            tgt_lengths.append(len(tgt))
        if src is not None and tgt is not None:
            yield Pair(src, tgt, number, origin, source_lang, target_lang)
    counts = len(src_lengths), len(tgt_lengths)
    if counts[0] != counts[1]:
        if 0 in counts:
            empty, other = (src_path, tgt_path) if counts[0] == 0 else (tgt_path, src_path)
            raise DataError(
                f"{empty} has no lines, but {other} has {max(counts)}: they must have equally many."
            )
        line = _parting_line(np.asarray(src_lengths), np.asarray(tgt_lengths))
        raise DataError(
            f"{src_path} and {tgt_path} must have equally many lines, but have {counts[0]} "
            f"and {counts[1]}. Judging by line lengths, they diverge near line {line}: "
            "look there for an extra or missing line."
        )


def _parting_line(src_lengths: NDArray[np.int32], tgt_lengths: NDArray[np.int32]) -> int:
    """The line, from 1, up to which lines match in length, and after which they match if shifted.

    If the target has k lines more, it is the cut i with the smallest differences in length, if the
    first i lines are paired as they are and the rest k lines later. Linear time: two running sums.
    """
    if len(src_lengths) > len(tgt_lengths):
        return _parting_line(tgt_lengths, src_lengths)
    n_lines, shift = len(src_lengths), len(tgt_lengths) - len(src_lengths)
    if n_lines == 0:
        return 1
    src, tgt = np.log1p(src_lengths), np.log1p(tgt_lengths)
    usual = src.mean() - tgt.mean()
    straight = np.abs(src - tgt[:n_lines] - usual)
    shifted = np.abs(src - tgt[shift:] - usual)
    before = np.concatenate(([0.0], np.cumsum(straight)))
    after = np.concatenate((np.cumsum(shifted[::-1])[::-1], [0.0]))
    return int(np.argmin(before + after)) + 1


def read_table(
    path: str | Path,
    *,
    source_lang: str = "",
    target_lang: str = "",
    columns: tuple[str, ...] = (),
) -> Iterator[Pair]:
    """Pairs from a table: `.tsv` (tabs, quotes mean nothing) or `.csv` (RFC 4180 quotes).

    The delimiter of a `.csv`, a comma, `;` or a tab, is detected, unless a first line such as
    `sep=;` says which sign it is, as Excel writes and reads. `columns` names the columns of
    the sentences. Else, if the first row names them (`en`, `de`; `English`, `German`; or `source`,
    `target`), it is a header. Else they are the only two that hold text: in Tatoeba's "id,
    sentence, id, sentence" the second and the fourth.

    Raises:
        DataError: as `read_lines`; or a row has another number of columns than the first; or it is
            unclear which columns hold the sentences; or it begins with very many empty lines.
        ConfigError: a requested column is missing.
    """
    rows = _rows(path)
    first = _first(rows, path)
    if not first:
        return
    chosen, origin = _columns(first, path, source_lang, target_lang, columns), str(path)
    n_columns = len(first[0][1])
    for number, row in chain(first[chosen.has_header :], rows):
        if len(row) != n_columns and any(row):
            raise DataError(
                f"{path} line {number}: must have {n_columns} columns like the first line, but has "
                f"{len(row)}."
            )
        src, tgt = (row[column] if any(row) else "" for column in (chosen.src, chosen.tgt))
        yield Pair(src, tgt, number, origin, source_lang, target_lang)


def is_table(part: ParallelFiles) -> bool:
    """Whether both languages are columns of one file; standard input is such a table."""
    path = part.files[0]
    return len(part.files) == 1 and (path == STDIN or suffix_of(path) in TABLES)


def is_catalog(part: ParallelFiles) -> bool:
    """Whether it is a catalog of gettext."""
    return len(part.files) == 1 and suffix_of(part.files[0]) == ".po"


def needs_languages(part: ParallelFiles) -> bool:
    """Whether it is read only if both languages are known."""
    return len(part.files) == 1 and not is_table(part) and not is_catalog(part)


def table_columns(part: ParallelFiles) -> Columns | None:
    """The columns that `read_part` takes from a table; None for other files and an empty table.

    Raises:
        DataError: as `read_table`.
        ConfigError: as `read_table`.
    """
    path = part.files[0]
    if not is_table(part):
        return None
    first = _first(_rows(path), path)
    if not first:
        return None
    return _columns(first, path, part.source_lang, part.target_lang, part.columns)


def _first(rows: Iterator[tuple[int, list[str]]], path: str | Path) -> list[tuple[int, list[str]]]:
    """The first rows of a table, without empty ones before them.

    Raises:
        DataError: these are more than `MOST_EMPTY`.
    """
    rest = dropwhile(lambda row: row[0] <= MOST_EMPTY and not any(row[1]), rows)
    first = list(islice(rest, SAMPLE_ROWS))
    if first and not any(first[0][1]):
        raise DataError(
            f"{path} begins with more than {MOST_EMPTY:,} empty lines. Remove them, or give "
            "another file."
        )
    return first


def _columns(
    rows: list[tuple[int, list[str]]],
    path: str | Path,
    source_lang: str,
    target_lang: str,
    asked: tuple[str, ...],
) -> Columns:
    cells = [row for _, row in rows]
    return choose_columns(
        cells, str(path), source_lang=source_lang, target_lang=target_lang, asked=asked
    )


def _rows(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    if suffix_of(path) != ".csv":
        for number, line in enumerate(read_lines(path), start=1):
            yield number, line.split("\t")
        return
    delimiter, n_before = table_delimiter([*islice(read_lines(path), N_FIRST)])
    # The csv module also takes `a, "b"` as cells, with the blank and the quotes as text.
    sign = re.escape(delimiter)
    cell = rf"""(?:"[^"]*+(?:""[^"]*+)*+"|[^"{sign}\n]*+)"""
    valid_row = re.compile(rf"{cell}(?:{sign}{cell})*+\n")
    record: list[str] = []  # the lines of the row being read

    def lines() -> Iterator[str]:
        n_chars = 0
        for line in islice(read_lines(path), n_before, None):
            n_chars = (n_chars if record else 0) + len(line) + 1
            if n_chars > MAX_LINE_BYTES:
                raise DataError(
                    f"{path} line {number}: a row must have at most {MAX_LINE_BYTES} characters, "
                    "but has more. Is a quote left open?"
                )
            # The csv module takes a lone carriage return for a line break.
            record.append(line.replace("\r", " ") + "\n")
            yield record[-1]

    reader = csv.reader(lines(), delimiter=delimiter, strict=True)
    number = 1 + n_before
    while True:
        # The limit applies to the whole process, so it is set for this row only.
        usual_limit = csv.field_size_limit(MAX_LINE_BYTES)
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            why = f"{error}."
            if "unexpected end" in why:
                why = (
                    "a quote that opens in this row is never closed. Close it; or save the table "
                    "as .tsv, where quotes mean nothing."
                )
            raise DataError(f"{path} line {number}: not valid CSV: {why}") from error
        finally:
            csv.field_size_limit(usual_limit)
        text = "".join(record)
        if '"' in text and not valid_row.fullmatch(text):
            raise DataError(
                f"{path} line {number}: not valid CSV: a quote stands inside a cell that does not "
                "begin with one. Begin quoted cells right after the "
                f"{CSV_DELIMITERS.get(delimiter, delimiter)}, "
                'and write a quote inside them twice (""); or save the table as .tsv, where quotes '
                "mean nothing."
            )
        yield number, row
        number += len(record)
        record.clear()


def read_tmx(path: str | Path, source_lang: str, target_lang: str) -> Iterator[Pair]:
    """Pairs from a translation memory (TMX 1.1 to 1.4b); `en` finds `en-US` if there is no `en`.

    Inline codes (`<bpt>`, `<ph>` and their like) are left out, the text around them is kept. A unit
    that has only one of the two languages gives a pair with an empty side. HTML's entities, such as
    `&nbsp;`, become their characters. An entity that only an external DTD defines becomes a blank,
    and the pair has the fault `unknown_entity`.

    Raises:
        DataError: the file is missing, damaged or not TMX; or lacks a language: lists those it has.
    """
    return _pairs_of(read_units(path, source_lang, target_lang), path, source_lang, target_lang)


def read_xliff(path: str | Path, source_lang: str, target_lang: str) -> Iterator[Pair]:
    """Pairs from a file of XLIFF 1.2 or 2, in either direction; inline codes as in `read_tmx`.

    Segments without a translation, or whose state says that nobody has translated them, are left
    out.

    Raises:
        DataError: the file is missing, damaged or not XLIFF; or is in other languages: lists them.
    """
    return _pairs_of(read_segments(path, source_lang, target_lang), path, source_lang, target_lang)


def _pairs_of(
    units: Iterable[Unit], path: str | Path, source_lang: str, target_lang: str
) -> Iterator[Pair]:
    for src, tgt, line, is_complete in units:
        fault = "" if is_complete else "unknown_entity"
        yield Pair(src, tgt, line, str(path), source_lang, target_lang, fault)


def read_po(path: str | Path, *, source_lang: str = "", target_lang: str = "") -> Iterator[Pair]:
    """Pairs from a catalog of gettext, in either direction if its header names the language.

    Fuzzy and obsolete messages are left out.

    Raises:
        DataError: the file is missing, damaged or not a catalog; or its header names another
            language.
    """
    for src, tgt, line in read_messages(path, source_lang, target_lang):
        yield Pair(src, tgt, line, str(path), source_lang, target_lang)
