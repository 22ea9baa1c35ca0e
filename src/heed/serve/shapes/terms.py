"""The terms of a glossary, in the tables that DeepL's API takes: tab- or comma-separated."""

import csv
import io
import re
from collections.abc import Mapping

from heed.serve.refusal import Refusal

FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Control characters and line separators: no term has any."""


def read_terms(entries: str, entries_format: str, *, max_terms: int) -> dict[str, str]:
    """Term → translation.

    Args:
        entries: the table, a term and its translation a line.
        entries_format: `tsv` or `csv`.
        max_terms: most that are taken.

    Raises:
        Refusal: names the line that cannot be read.
    """
    if entries_format == "csv":
        rows = _read_csv(entries)
    else:
        # Not splitlines: it also splits at characters that a term must not have at all.
        rows = [line.removesuffix("\r").split("\t") for line in entries.split("\n")]
    found: dict[str, str] = {}
    for number, row in enumerate(rows, start=1):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) < 2:
            raise _wrong(number, "has no translation")
        term, translation = row[0].strip(), row[1].strip()
        if not term or not translation:
            raise _wrong(number, "has an empty term")
        if FORBIDDEN.search(term + translation):
            raise _wrong(number, "has a control character")
        if term in found:
            raise _wrong(number, "has a term that an earlier line has")
        if len(found) == max_terms:
            raise Refusal(
                413,
                f"A glossary must have at most {max_terms} entries.",
                code="too_large",
                field="entries",
            )
        found[term] = translation
    if not found:
        raise Refusal(400, "The glossary has no entries.", code="wrong_value", field="entries")
    return found


def spelled_terms(terms: Mapping[str, str]) -> str:
    """The terms as tab-separated lines."""
    return "\n".join(f"{term}\t{translation}" for term, translation in terms.items())


def _read_csv(entries: str) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO(entries, newline=""), strict=True))
    except csv.Error as error:
        raise Refusal(
            400, f"The entries are not valid CSV: {error}.", code="wrong_value", field="entries"
        ) from None


def _wrong(number: int, what: str) -> Refusal:
    return Refusal(400, f"Entry {number} {what}.", code="wrong_value", field="entries")
