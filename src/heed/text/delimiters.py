"""The delimiter of the cells of a .csv."""

import re
from collections.abc import Iterable, Sequence

CSV_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}
"""Signs and their names; programs write `;` where numbers have a comma."""

N_FIRST = 20
"""Lines by which the sign is found."""

_DECLARED = re.compile(r'"?sep=([^\w\s"]|\t)"?', re.IGNORECASE)
_QUOTED = re.compile(r'(?:(?<=[,;\t\n])|\A)"[^"]*+(?:""[^"]*+)*+"?')


def table_delimiter(lines: Sequence[str]) -> tuple[str, int]:
    """The delimiter of a table, and the number of lines before its first row.

    A first line such as `sep=;`, as Excel writes and reads, declares the sign.

    Args:
        lines: the first `N_FIRST`.
    """
    if lines and (declared := _DECLARED.fullmatch(lines[0])):
        return declared[1], 1
    return csv_delimiter(lines), 0


def csv_delimiter(lines: Iterable[str]) -> str:
    """The first candidate that all lines have equally often; else a comma.

    Quoted cells do not count, nor a delimiter before a blank, which is part of a sentence.

    Args:
        lines: the first `N_FIRST` of a table.
    """
    lines = [line for line in _QUOTED.sub("", "\n".join(lines)).split("\n") if line]
    for sign in CSV_DELIMITERS:
        counts = {len(re.findall(rf"{sign}(?! )", line)) for line in lines}
        if len(counts) == 1 and 0 not in counts:
            return sign
    return ","
