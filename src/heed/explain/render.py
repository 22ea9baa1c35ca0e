"""Attention weights as colored blocks on a terminal.

A row is a target piece, a column a source piece; a brighter block is a larger weight.
"""

import shutil
import unicodedata
from collections.abc import Callable, Mapping, Sequence

Palette = Callable[[float, int], str]
"""A function from a weight from 0 to 1 and a width in columns to a cell of that width."""

# Five colors from dark to light, blue to yellow; the order is visible to the color-blind.
COLOR_STOPS = ((24, 20, 60), (52, 62, 138), (30, 130, 142), (90, 192, 104), (250, 226, 50))
SHADES = " ░▒▓█"


def truecolor(weight: float, width: int) -> str:
    """A block in one of 16 million colors."""
    red, green, blue = _color(weight)
    return f"\x1b[48;2;{red};{green};{blue}m{' ' * width}\x1b[0m"


def ansi256(weight: float, width: int) -> str:
    """A block in the nearest color of the 6 × 6 × 6 cube that most terminals have."""
    red, green, blue = (round(channel / 255 * 5) for channel in _color(weight))
    return f"\x1b[48;5;{16 + 36 * red + 6 * green + blue}m{' ' * width}\x1b[0m"


def shades(weight: float, width: int) -> str:
    """A block of gray without any color code."""
    return SHADES[min(len(SHADES) - 1, round(_clipped(weight) * (len(SHADES) - 1)))] * width


def digits(weight: float, width: int) -> str:
    """Tenths as a digit, `.` below one twentieth: plain ASCII."""
    tenths = min(9, round(_clipped(weight) * 10))
    return (str(tenths) if tenths else ".").rjust(width)


def choose_palette(
    environ: Mapping[str, str], *, is_terminal: bool, encoding: str | None = "utf-8"
) -> Palette:
    """The most detailed palette that the terminal can show.

    Args:
        environ: environment variables; `NO_COLOR`, `COLORTERM` and `TERM` are used.
        is_terminal: whether a terminal reads the output.
        encoding: encoding of the output.

    Source: https://no-color.org.
    """
    if not is_terminal or environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        try:
            SHADES.encode(encoding or "ascii")
        except (UnicodeEncodeError, LookupError):
            return digits
        return shades
    return truecolor if environ.get("COLORTERM") in ("truecolor", "24bit") else ansi256


def heatmap(
    weights: Sequence[Sequence[float]],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    palette: Palette,
    max_width: int | None = None,
) -> list[str]:
    """Draw a matrix of weights as lines of text.

    Args:
        weights: from 0 to 1, `(n_rows, n_columns)`.
        rows: a label for each row.
        columns: a label for each column, written above it; cut when the line would be too long.
        palette: draws one cell.
        max_width: columns of the terminal; None asks the terminal.

    Returns:
        A line of labels, then one line per row. No line is wider than `max_width`, unless there are
        more columns than fit beside the labels of rows.
    """
    width = max_width or shutil.get_terminal_size().columns
    margin = min(max((width_of(label) for label in rows), default=0), width // 3)
    room = (width - margin - 1) // max(1, len(columns)) - 1
    gap = " " if room > 0 else ""
    room = max(1, room)
    cell = min(room, max((width_of(label) for label in columns), default=1))
    cell = max(cell, min(2, room))
    head = f"{' ' * margin} {gap.join(_fitted(label, cell) for label in columns)}"
    lines = [head.rstrip()]
    for label, row in zip(rows, weights, strict=True):
        cells = gap.join(palette(weight, cell) for weight in row)
        lines.append(f"{_fitted(label, margin, to_right=True)} {cells}")
    return lines


def bar(probability: float, label: str) -> str:
    """A line with a probability, its label, and a bar of one block per twentieth."""
    padded = label + " " * max(0, 16 - width_of(label))
    return f"{probability:8.4f}  {padded} {'█' * round(20 * probability)}".rstrip()


def width_of(text: str) -> int:
    """The terminal columns of a text: wide characters take two, combining marks none."""
    return sum(_character_width(character) for character in text)


def without_controls(text: str) -> str:
    """The text with `?` for each control character, which could move the cursor."""
    return "".join("?" if unicodedata.category(c) == "Cc" else c for c in text)


def _character_width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _fitted(label: str, width: int, *, to_right: bool = False) -> str:
    """`label` in exactly `width` columns; a longer one is cut at its end."""
    label = without_controls(label)
    if width_of(label) > width:
        kept = ""
        for character in label:
            if width_of(kept + character) > width - 1:
                break
            kept += character
        label = f"{kept}…" if width > 1 else kept
    blanks = " " * (width - width_of(label))
    return blanks + label if to_right else label + blanks


def _clipped(weight: float) -> float:
    return min(1.0, max(0.0, weight))


def _color(weight: float) -> tuple[int, int, int]:
    """Interpolate between the color stops."""
    place = _clipped(weight) * (len(COLOR_STOPS) - 1)
    left = min(int(place), len(COLOR_STOPS) - 2)
    share = place - left
    red, green, blue = (
        round(a + share * (b - a))
        for a, b in zip(COLOR_STOPS[left], COLOR_STOPS[left + 1], strict=True)
    )
    return red, green, blue
