"""Files of parallel text as streams of pairs: plain text, TSV, CSV and TMX, compressed or not.

Not here: judgement (`clean.py`) and spelling (`text/normalize.py`): text comes as it stands. Memory
stays small whatever the size of a file (four bytes a line and side). Read on in `clean.py`.
"""

import csv
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heed.data.lines import MAX_LINE_BYTES, read_lines, suffix_of
from heed.data.tmx import read_units
from heed.errors import ConfigError, DataError
from heed.text.languages import require_language

_TABLE_DELIMITERS = {".tsv": "\t", ".tab": "\t", ".csv": ","}
BILINGUAL = (*_TABLE_DELIMITERS, ".tmx")
"""What names of files end in that hold both languages."""

# RFC 4180. The csv module also takes `a, "b"` as cells, with the blank and the quotes as text.
_CSV_CELL = r"""(?:"[^"]*+(?:""[^"]*+)*+"|[^",\n]*+)"""
_CSV_ROW = re.compile(rf"{_CSV_CELL}(?:,{_CSV_CELL})*+\n")

_NAMES = (("source", "src"), ("target", "tgt"))


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its translation.

    Attributes:
        src: the sentence.
        tgt: its translation.
        line: where it stands in its file, from 1 (in TMX the line its unit ends on).
        origin: the file, as the user named it.
        source_lang: code such as `en`; "" where nobody said.
        target_lang: the same for the translation.
        fault: why not all of it could be read, in a word; "" if all could.
    """

    src: str
    tgt: str
    line: int = 0
    origin: str = ""
    source_lang: str = ""
    target_lang: str = ""
    fault: str = ""


@dataclass(frozen=True, kw_only=True)
class Part:
    """Some files of a corpus, all from one language into one other.

    Attributes:
        files: two names for parallel plain text (source, target); one for `.tsv`, `.csv`, `.tmx`;
            each may also end in `.gz`, `.xz` or `.zst`.
        source_lang: code such as `en`; needed for TMX, finds the column in tables with a header.
        target_lang: the same for the target.

    Raises:
        ConfigError: a language code is none.
    """

    files: tuple[str, ...]
    source_lang: str = ""
    target_lang: str = ""

    def __post_init__(self) -> None:
        for code in (self.source_lang, self.target_lang):
            if code:
                require_language(code)


def read_part(part: Part) -> Iterator[Pair]:
    """The pairs of one part of a corpus, read by what the names of its files end in.

    Raises:
        DataError: a file is missing, damaged, or not what its name says.
        ConfigError: one name where two are needed, or a TMX file without languages.
    """
    path = part.files[0]
    languages = {"source_lang": part.source_lang, "target_lang": part.target_lang}
    if len(part.files) == 2:
        return read_parallel(*part.files, **languages)
    if suffix_of(path) in _TABLE_DELIMITERS:
        return read_table(path, **languages)
    if suffix_of(path) != ".tmx":
        raise ConfigError(
            f"{path} must end in .tsv, .csv or .tmx to hold both languages. "
            "Give plain text as two files, --src and --tgt."
        )
    if not part.source_lang or not part.target_lang:
        raise ConfigError(
            f"{path} may hold many languages: say which, with --source-lang and --target-lang."
        )
    return read_tmx(path, **languages)


def read_parallel(
    src_path: str | Path, tgt_path: str | Path, *, source_lang: str = "", target_lang: str = ""
) -> Iterator[Pair]:
    """Pair line n of one file with line n of the other.

    Raises:
        DataError: as `read_lines`; or one file has more lines: says how many both have, and about
            where they part, judging by the lengths of the lines.
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
    if len(src_lengths) != len(tgt_lengths):
        line = _parting_line(np.asarray(src_lengths), np.asarray(tgt_lengths))
        raise DataError(
            f"{src_path} and {tgt_path} must have equally many lines, but have {len(src_lengths)} "
            f"and {len(tgt_lengths)}. By their lengths they part near line {line}: look there for "
            "a line too many or too few."
        )


def _parting_line(src_lengths: NDArray[np.int32], tgt_lengths: NDArray[np.int32]) -> int:
    """The line, from 1, up to which lines match in length, and from which they match if shifted.

    If the target has k lines more, it is the cut i for which pairing the first i lines as they are,
    and the rest k lines later, disagrees least. Linear time: two running sums.
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


def read_table(path: str | Path, *, source_lang: str = "", target_lang: str = "") -> Iterator[Pair]:
    """Pairs from a table: `.tsv` (tabs, quotes mean nothing) or `.csv` (commas, RFC 4180 quotes).

    If the first row names the columns (`en`, `de`; or `source`, `target`), it is a header and they
    are found by name. Else they are the first two columns whose first row holds a letter, so that
    Tatoeba's "id, sentence, id, sentence" is understood.

    Raises:
        DataError: as `read_lines`; or a row has another number of columns than the first.
    """
    delimiter = _TABLE_DELIMITERS.get(suffix_of(path), "\t")
    columns: tuple[int, int] | None = None
    n_columns, origin = 0, str(path)
    for number, row in _rows(path, delimiter):
        if columns is None:
            n_columns = len(row)
            if header := _named_columns(row, source_lang, target_lang):
                columns = header
                continue
            columns = _spoken_columns(row, path)
        if len(row) != n_columns and any(row):
            raise DataError(
                f"{path} line {number}: must have {n_columns} columns like the first line, but has "
                f"{len(row)}."
            )
        src, tgt = (row[column] if any(row) else "" for column in columns)
        yield Pair(src, tgt, number, origin, source_lang, target_lang)


def _rows(path: str | Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    if delimiter == "\t":
        for number, line in enumerate(read_lines(path), start=1):
            yield number, line.split("\t")
        return
    record: list[str] = []  # the lines of the row being read

    def lines() -> Iterator[str]:
        n_chars = 0
        for line in read_lines(path):
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
    number = 1
    while True:
        # The limit holds for the whole process, so it is set for this row only.
        usual_limit = csv.field_size_limit(MAX_LINE_BYTES)
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(f"{path} line {number}: not valid CSV: {error}.") from error
        finally:
            csv.field_size_limit(usual_limit)
        text = "".join(record)
        if '"' in text and not _CSV_ROW.fullmatch(text):
            raise DataError(
                f"{path} line {number}: not valid CSV: a quote stands inside a cell that does not "
                "begin with one. Begin quoted cells right after the comma, and write a quote "
                'inside them twice (""); or save the table as .tsv, where quotes mean nothing.'
            )
        yield number, row
        number += len(record)
        record.clear()


def _named_columns(row: list[str], source_lang: str, target_lang: str) -> tuple[int, int] | None:
    names = [cell.strip().casefold() for cell in row]

    def column(language: str, generic: tuple[str, ...]) -> int | None:
        wanted = (*generic, (language or generic[0]).casefold())
        return next((number for number, name in enumerate(names) if name in wanted), None)

    src, tgt = (column(*names) for names in zip((source_lang, target_lang), _NAMES, strict=True))
    return None if src is None or tgt is None else (src, tgt)


def _spoken_columns(row: list[str], path: str | Path) -> tuple[int, int]:
    spoken = [column for column, cell in enumerate(row) if any(map(str.isalpha, cell))]
    columns = spoken if len(spoken) >= 2 else list(range(len(row)))
    if len(columns) < 2:
        raise DataError(
            f"{path} line 1: must have a column for each of two languages, but has {len(row)}."
        )
    return columns[0], columns[1]


def read_tmx(path: str | Path, source_lang: str, target_lang: str) -> Iterator[Pair]:
    """Pairs from a translation memory (TMX 1.1 to 1.4b); `en` finds `en-US` if there is no `en`.

    Inline codes (`<bpt>`, `<ph>` and their like) are left out, the text around them is kept. A unit
    that has only one of the two languages gives a pair with an empty side. HTML's entities, such as
    `&nbsp;`, become their characters; a pair with another one that only an external DTD defines has
    a blank there and the fault `unknown_entity`.

    Raises:
        DataError: the file is missing, damaged or no TMX; or lacks a language: says what it has.
    """
    for src, tgt, line, is_complete in read_units(path, source_lang, target_lang):
        fault = "" if is_complete else "unknown_entity"
        yield Pair(src, tgt, line, str(path), source_lang, target_lang, fault)
