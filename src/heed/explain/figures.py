"""`Plot`, the figure of `plots.py`, and its parts: axes, labels of any script, colors."""

import io
import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike, NDArray

from heed.errors import DataError
from heed.explain.fonts import families_for
from heed.explain.render import COLOR_STOPS

WEIGHTS = LinearSegmentedColormap.from_list(
    "heed", [tuple(channel / 255 for channel in stop) for stop in COLOR_STOPS]
)
"""From zero to the largest value, as on the terminal; the order is visible to the color-blind."""
SIGNED = "RdBu_r"
"""From negative (blue) through 0 (white) to positive (red)."""
CYCLE = ("#3b6fb6", "#d9822b", "#3a9b6f", "#b04a8b", "#7a6a53", "#5a5fcf", "#a33b3b", "#2f8f9d")
HALO = withStroke(linewidth=2, foreground="white")
"""The outline of words over points."""
INK, QUIET = "#24272e", "#8a8f98"
MOST_LABELS = 80
"""Tick labels of one axis; with more, only every second, third … is written."""


class Plot(Figure):
    """A figure that notebooks display without pyplot."""

    def draw(self, renderer: Any) -> None:
        """Draw it without a warning for each missing glyph: `fonts.py` has named them."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font")
            super().draw(renderer)

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=144)
        return file.getvalue()


def new_plot(width: float, height: float, title: str) -> tuple[Plot, Any]:
    """A plot and its axes.

    Args:
        width: inches; at most 24.
        height: inches; at most 24.
        title: text above it; may be empty.
    """
    plot = Plot(figsize=(min(width, 24), min(height, 24)), layout="constrained")
    axes = plot.subplots()
    add_title(plot, title)
    hide_frame(axes)
    return plot, axes


def add_title(plot: Plot, title: str) -> None:
    """Write a title above a plot, unless it is empty."""
    if shown := plain(title):
        plot.suptitle(shown, fontsize=10, color=INK, parse_math=False, family=families_for([shown]))


def hide_frame(axes: Any) -> None:
    """Hide the frame and the ticks of axes."""
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0, labelsize=8, labelcolor=INK)


def add_colorbar(plot: Plot, image: Any, axes: Any, label: str) -> None:
    """Show the number for each color of `image`."""
    bar = plot.colorbar(image, ax=axes, shrink=0.7, aspect=30)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=7, labelcolor=INK)
    bar.set_label(label, color=QUIET, fontsize=8)


def colors_of(values: NDArray[Any]) -> dict[str, Any]:
    """Color settings: signed numbers around 0, others from zero to the largest."""
    most = float(np.abs(values).max(initial=0)) or 1.0
    if values.min(initial=0) < 0:
        return {"cmap": SIGNED, "vmin": -most, "vmax": most}
    return {"cmap": WEIGHTS, "vmin": 0, "vmax": most}


def label_axes(axes: Any, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Write labels of rows at the left and of columns above."""
    label_ticks(axes, "y", rows)
    label_ticks(axes, "x", columns, rotation=90)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")


def label_ticks(axes: Any, axis: str, labels: Sequence[str], *, rotation: int = 0) -> None:
    """Write labels of one axis, `x` or `y`; if there are many, only every second, third … one."""
    every = math.ceil(len(labels) / MOST_LABELS) or 1
    shown = [plain(label) for label in labels[::every]]
    settings: dict[str, Any] = {"family": families_for(shown), "parse_math": False}
    if rotation:
        settings |= {"rotation": rotation, "ha": "right" if rotation == 45 else "center"}
    places = range(0, len(labels), every)
    (axes.set_xticks if axis == "x" else axes.set_yticks)(places, shown, **settings)


def write(axes: Any, x: float, y: float, text: str, **settings: Any) -> Any:
    """Write a text, not a formula, at a position of the axes; returns matplotlib's `Text`."""
    shown = plain(text)
    settings = {"color": INK, **settings}
    return axes.text(x, y, shown, family=families_for([shown]), parse_math=False, **settings)


def plain(text: str) -> str:
    """`text` without line breaks and other control characters, which would move other labels."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def cycle() -> Iterator[str]:
    """Colors of series; after the last color, again the first."""
    while True:
        yield from CYCLE


def two_dimensional(values: ArrayLike) -> NDArray[np.float32]:
    """Convert to an array with rows and columns.

    Raises:
        DataError: it does not have two dimensions.
    """
    array = np.asarray(values, np.float32)
    if array.ndim != 2 or not array.size:
        raise DataError(f"a plot needs rows and columns, but the array is {array.shape}.")
    return array


def fitting(values: ArrayLike, n_rows: int, n_columns: int | None) -> NDArray[np.float32]:
    """Convert to an array with as many rows and columns as there are labels; None = any number.

    Raises:
        DataError: it has another shape.
    """
    array = two_dimensional(values)
    wanted = (n_rows, array.shape[1] if n_columns is None else n_columns)
    if array.shape != wanted:
        raise DataError(f"the array must be {wanted} as the labels are, but is {array.shape}.")
    return array
