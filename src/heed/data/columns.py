"""Finds the columns of a table that hold the sentences: as given, by the header, or by content."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from heed.errors import ConfigError, DataError
from heed.text.languages import named_language

SAMPLE_ROWS = 20
"""Rows at the beginning of a table by which the columns are chosen."""

LEAST_ROWS = 5
"""Fewest rows after the first one by which a header is told from a pair."""

_NAME = re.compile(r"[^\W\d][\w \-]{,30}")  # a column's name, not a sentence with its full stop
_NAMES = (("source", "src"), ("target", "tgt"))
# One word of ASCII with a digit in it: news-1, 2024-05-01, tatoeba.org/1276, 1e-5.
_LABEL = re.compile(r"(?=[^\s]*\d)[!-~]+")
_LICENSE = re.compile(r"CC[ -](BY|0)\b")  # the third column of Anki's files from Tatoeba


@dataclass(frozen=True)
class Columns:
    """The two columns of a table.

    Attributes:
        src: number of the source's column, from 0.
        tgt: number of the target's.
        has_header: whether the first row names the columns.
        names: of both columns for messages, from the header or the first text.
        unread_header: the cells of a first row that is read as a pair, but looks like a header;
            else empty.
    """

    src: int
    tgt: int
    has_header: bool
    names: tuple[str, str]
    unread_header: tuple[str, ...] = ()

    def __str__(self) -> str:
        src, tgt = self.names
        text = f"source = column {self.src + 1} ({src}), target = column {self.tgt + 1} ({tgt})"
        if not self.unread_header:
            return text
        names = shlex.quote(",".join(self.unread_header))
        return f"{text}; the first line is a pair. If it names the columns, add --columns {names}"


def choose_columns(
    rows: Sequence[list[str]],
    path: str,
    *,
    source_lang: str,
    target_lang: str,
    asked: tuple[str, ...] = (),
) -> Columns:
    """Choose the columns of source and target by the first rows of a table.

    Args:
        rows: at least one.
        path: the table, for messages.
        source_lang: code that may be a column's name.
        target_lang: the same for the target.
        asked: numbers from 1, or names in the first row; empty = find them.

    Raises:
        DataError: there are fewer than two columns, which hold the sentences is unclear, or the
            first row names other languages.
        ConfigError: a requested column is missing.
    """
    first = rows[0]
    if len(first) < 2:
        raise DataError(
            f"{path} line 1: must have a column for each of two languages, but has {len(first)}."
        )
    named = _named(first, source_lang, target_lang)
    if asked:
        places = tuple(_asked(column, first, path) for column in asked)
        is_by_name = not all(map(str.isdecimal, asked))
        has_header = bool(named) or is_by_name or _names_languages(first, places)
    elif named:
        places, has_header = named, True
    else:
        places = _found(rows, path)
        if has_header := _names_languages(first, places):
            _require_languages(first, places, path, (source_lang, target_lang))
    names = tuple(first[place] if has_header else clipped(first[place]) for place in places)
    unread = () if has_header else _unread_header(rows, places)
    return Columns(places[0], places[1], has_header, (names[0], names[1]), unread)


def _named(row: list[str], source_lang: str, target_lang: str) -> tuple[int, int] | None:
    """The columns whose names are the languages; or else `source`, `src`, `target` or `tgt`."""
    names = [cell.strip().casefold() for cell in row]

    def column(language: str, generic: tuple[str, ...]) -> int | None:
        wanted = (*generic, language.casefold()) if language else generic
        known = named_language(language)
        found = [number for number, name in enumerate(names) if name in wanted]
        if known and not found:
            found = [number for number, name in enumerate(names) if named_language(name) == known]
        return found[0] if found else None

    languages = source_lang, target_lang
    # Beside columns of both languages, `source` is where a row comes from.
    for generic in (((), ()), _NAMES):
        src, tgt = map(column, languages, generic)
        if src is not None and tgt is not None:
            return src, tgt
    return None


def _names_languages(row: list[str], places: Sequence[int]) -> bool:
    """Whether the cells name two languages: a header, unlike German and Deutsch in a dictionary."""
    found = {named_language(row[place]) for place in places}
    return len(found) == 2 and None not in found


def _unread_header(rows: Sequence[list[str]], places: Sequence[int]) -> tuple[str, ...]:
    """The cells of a first row that may be a header: names, much shorter than the sentences."""
    cells = tuple(rows[0][place].strip() for place in places)
    others = [row for row in rows[1:] if len(row) == len(rows[0])]
    if len(others) < LEAST_ROWS or not all(map(_NAME.fullmatch, cells)):
        return ()
    longer = [
        all(2 * len(cell) <= len(row[place]) for cell, place in zip(cells, places, strict=True))
        for row in others
    ]
    return cells if 4 * sum(longer) >= 3 * len(longer) else ()


def _require_languages(
    row: list[str], places: Sequence[int], path: str, wanted: tuple[str, str]
) -> None:
    """Refuse a header that names other languages than those wanted; "" = any language."""
    sides = list(zip(("source", "target"), wanted, (row[place] for place in places), strict=True))
    if all(named_language(code) == named_language(cell) for _, code, cell in sides if code):
        return
    needed = " and ".join(f"the {side} must be {code}" for side, code, _ in sides if code)
    raise DataError(
        f"{path}: {needed}, but its first line names the columns "
        f"{' and '.join(cell.strip() for _, _, cell in sides)}. Set --source-lang and "
        "--target-lang to languages that it names, or choose its columns, for example: "
        f"--columns {','.join(str(place + 1) for place in places)}"
    )


def _asked(column: str, first: list[str], path: str) -> int:
    names = [cell.strip() for cell in first]
    if column in names:
        return names.index(column)
    if column.isdecimal() and 1 <= int(column) <= len(first):
        return int(column) - 1
    raise ConfigError(
        f"{path}: --columns must be numbers from 1 to {len(first)} or names in the first line, but "
        f"one is {column!r}. The first line is: {_shown(first)}."
    )


def _found(rows: Sequence[list[str]], path: str) -> tuple[int, int]:
    """The only two columns, or the only two that hold text."""
    first = rows[0]
    if len(first) == 2:
        return 0, 1
    whole = [row for row in rows if len(row) == len(first)]
    spoken = [place for place in range(len(first)) if _is_text([row[place] for row in whole])]
    if len(spoken) != 2:
        named = [place for place in spoken if named_language(first[place])]
        example = next((two for two in (named, spoken) if len(two) > 1), [0, 1])[:2]
        raise DataError(
            f"{path}: which two of its {len(first)} columns hold the sentences? {len(spoken)} may. "
            f"Say which, for example: --columns {','.join(str(place + 1) for place in example)} "
            f"(numbers, or names in the first line). The first line is: {_shown(first)}."
        )
    return spoken[0], spoken[1]


def _is_text(cells: list[str]) -> bool:
    """Whether at least half of a column's cells have letters, and not all are labels or licenses.

    Numbers, dates, addresses and names such as `news-1` are labels; so is one word in all cells.
    """
    cells = [cell.strip() for cell in cells if cell.strip()]
    if 2 * sum(any(map(str.isalpha, cell)) for cell in cells) < max(1, len(cells)):
        return False
    is_one_word = len(cells) > 1 and len(set(cells)) == 1 and len(cells[0].split()) == 1
    return not is_one_word and not all(
        _LABEL.fullmatch(cell) or _LICENSE.match(cell) for cell in cells
    )


def _shown(row: list[str]) -> str:
    return ", ".join(f"{number} {clipped(cell)}" for number, cell in enumerate(row[:8], start=1))


def clipped(text: str, length: int = 30) -> str:
    """The beginning of a text in quotes, with … if it is longer."""
    text = " ".join(text.split())
    return f'"{text}"' if len(text) <= length else f'"{text[:length]}…"'
