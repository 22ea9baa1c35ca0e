"""Results as HTML for notebooks: tables, every text escaped, no script."""

from collections.abc import Iterable, Sequence
from html import escape

CELL = "padding:2px 8px;text-align:left;white-space:pre"
# Translucent, so that it suits light and dark notebooks.
TINT = "rgba(38,128,142,{:.3f})"
MOST_ROWS = 500
"""Of one table; the rest is counted."""


def isolated(text: str) -> str:
    """`text` as HTML, isolated so that its direction does not affect the text after it."""
    return f"<bdi>{escape(text)}</bdi>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts.

    Args:
        head: of the columns.
        rows: of texts, which are escaped.
    """
    every = list(rows)
    body = "".join(_row(map(isolated, row)) for row in every[:MOST_ROWS])
    names = "".join(f'<th style="{CELL}">{escape(name)}</th>' for name in head)
    rest = f"<p>… and {len(every) - MOST_ROWS} more</p>" if len(every) > MOST_ROWS else ""
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>{rest}"


def matrix(weights: Sequence[Sequence[float]], rows: Sequence[str], columns: Sequence[str]) -> str:
    """A matrix of weights from 0 to 1 as tinted cells with their numbers.

    Args:
        weights: `(n_rows, n_columns)`.
        rows: a label for each row.
        columns: a label for each column.
    """
    names = "".join(f'<th style="{CELL}">{isolated(column)}</th>' for column in columns)
    body = "".join(
        f'<tr><th style="{CELL}">{isolated(label)}</th>'
        + "".join(_weight(weight) for weight in row)
        + "</tr>"
        for label, row in zip(rows, weights, strict=True)
    )
    return f"<table><thead><tr><th></th>{names}</tr></thead><tbody>{body}</tbody></table>"


def _row(cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f'<td style="{CELL}">{cell}</td>' for cell in cells) + "</tr>"


def _weight(weight: float) -> str:
    tint = TINT.format(min(1.0, max(0.0, weight)))
    return f'<td style="{CELL};background:{tint}">{weight:.2f}</td>'
