"""Runs on a terminal: a headline, and a line for each curve with a sparkline."""

from collections.abc import Sequence

from heed.explain.training.columns import Columns
from heed.explain.training.headline import headline
from heed.explain.training.recipes import differing
from heed.explain.training.run import TrainingRun

BARS = "▁▂▃▄▅▆▇█"
ASCII_BARS = "_.-=*#"
WIDTH = 40
"""Width of a sparkline in characters."""

CURVES: tuple[tuple[str, str, str, int], ...] = (
    ("validations", "bleu", "BLEU", 2),
    ("validations", "chrf", "chrF", 2),
    ("validations", "accuracy", "accuracy", 2),
    ("validations", "f1", "F1", 2),
    ("validations", "loss", "dev loss", 3),
    ("validations", "bits", "bits a character", 3),
    ("steps", "loss", "train loss", 3),
    ("steps", "learning_rate", "learning rate", 6),
    ("steps", "gradient_norm", "gradient norm", 3),
    ("steps", "tokens_per_s", "tokens/s", 0),
    ("steps", "memory_mb", "memory, MB", 0),
)
"""Table, column, name and digits of each line."""

N_EVENTS = 8
"""Number of latest events of a run that are shown."""


def table(runs: Sequence[TrainingRun], *, is_ascii: bool = False) -> list[str]:
    """Runs as lines of text, with the settings in which they differ.

    Args:
        runs: at least one.
        is_ascii: draw with ASCII characters only.
    """
    lines: list[str] = []
    for run in runs:
        lines += [*([""] if lines else []), *_one(run, ASCII_BARS if is_ascii else BARS)]
    if len(runs) > 1:
        lines += ["", *_differences(runs)]
    return lines


def sparkline(values: Sequence[float | None], bars: str = BARS, width: int = WIDTH) -> str:
    """Values as bars between the lowest and the highest; a blank for a missing value.

    Args:
        values: in order.
        bars: from the lowest to the highest.
        width: characters at most; each one is the mean of an equal part of the values.
    """
    cells = _cells(values, width)
    there = [value for value in cells if value is not None]
    if not there:
        return ""
    low, high = min(there), max(there)
    top = len(bars) - 1

    def bar(value: float | None) -> str:
        if value is None:
            return " "
        # Halve first: the difference of two huge numbers may be infinite.
        span = high / 2 - low / 2
        return bars[round((value / 2 - low / 2) / span * top) if span > 0 else top // 2]

    return "".join(map(bar, cells))


def _cells(values: Sequence[float | None], width: int) -> list[float | None]:
    if len(values) <= width:
        return list(values)
    cells: list[float | None] = []
    for place in range(width):
        share = values[place * len(values) // width : (place + 1) * len(values) // width]
        there = [value / len(share) for value in share if value is not None]
        cells.append(sum(there) * len(share) / len(there) if there else None)
    return cells


def _one(run: TrainingRun, bars: str) -> list[str]:
    history = run.history
    tables: dict[str, Columns] = {"steps": history.steps, "validations": history.validations}
    rows = []
    for where, column, name, digits in CURVES:
        values = tables[where].column(column)
        there = [value for value in values if value is not None]
        if there:
            ends = f"{there[0]:.{digits}f} → {there[-1]:.{digits}f}"
            if bars == ASCII_BARS:
                ends = ends.replace("→", "->")
            rows.append((name, sparkline(values, bars), ends))
    widest = max((len(name) for name, _, _ in rows), default=0)
    lines = [_one_line(f"{run.name}: {headline(run)}")]
    lines += [
        f"  {name:<{widest}}  {drawn:<{WIDTH}}  {ends}".rstrip() for name, drawn, ends in rows
    ]
    for mark in list(history.marks)[-N_EVENTS:]:
        lines.append(f"  step {mark.step:>6,}  {_one_line(mark.text)}")
        if mark.remedy:
            lines.append(f"  {'':>11}  To do: {_one_line(mark.remedy)}")
    if run.n_unreadable:
        lines.append(f"  {run.n_unreadable:,} damaged lines of the log were skipped.")
    return lines


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _differences(runs: Sequence[TrainingRun]) -> list[str]:
    found = differing([run.settings for run in runs])
    if not found:
        return ["The settings of these runs are the same."]
    rows = [["", *(run.name for run in runs)]]
    for name, values in found.items():
        rows.append([name, *("–" if value is None else str(value) for value in values)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
