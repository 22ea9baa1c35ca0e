"""Plots of arrays and labels with matplotlib: each function returns a `Plot`, a `Figure`.

A notebook displays it, `plot.savefig("name.svg")` writes it. `render.py` draws on a terminal.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from heed.errors import DataError, MissingExtraError

try:
    from heed.explain.figures import (
        CYCLE,
        HALO,
        INK,
        QUIET,
        WEIGHTS,
        Plot,
        add_colorbar,
        add_title,
        colors_of,
        cycle,
        fitting,
        hide_frame,
        label_axes,
        label_ticks,
        new_plot,
        plain,
        two_dimensional,
        write,
    )
except ModuleNotFoundError as error:
    raise MissingExtraError("A plot", "plot") from error

if TYPE_CHECKING:
    from matplotlib.transforms import Bbox

    from heed.translate.trace import Trace

_TRIED = 20
"""Of a map of embeddings, so many points are tried for each label."""


class Branch(NamedTuple):
    """A hypothesis of a search, for `beam_tree`.

    Attributes:
        parent: index of the parent branch, lower than its own; -1 at the root.
        label: its piece.
        score: text under the piece.
        state: `kept`, `pruned` or `finished`.
    """

    parent: int
    label: str
    score: float
    state: str = "kept"


def attention_map(
    weights: ArrayLike, rows: Sequence[str], columns: Sequence[str], *, title: str = ""
) -> Plot:
    """One attention map: a row for each query, a column for each key.

    Args:
        weights: from 0 to 1, `(q_len, k_len)`.
        rows: the tokens that attend.
        columns: the tokens that they attend to.
        title: text above it.
    """
    values = fitting(weights, len(rows), len(columns))
    width, height = 2.2 + 0.3 * len(columns), 1.6 + 0.28 * len(rows)
    plot, axes = new_plot(width, height, title)
    image = axes.imshow(values, cmap=WEIGHTS, vmin=0, vmax=1, aspect="auto")
    label_axes(axes, rows, columns)
    axes.set_xlabel("keys", color=QUIET)
    axes.set_ylabel("queries", color=QUIET)
    add_colorbar(plot, image, axes, "weight")
    return plot


def attention_of(trace: "Trace", name: str, *, head: int | None = None) -> Plot:
    """The attention map of one tensor of a trace.

    Args:
        trace: from `Translator.trace`.
        name: of a tensor `(n_heads, q_len, k_len)`, such as `decoder.0.cross_attention.weights`.
        head: index of the head; None = the mean of all.

    Raises:
        DataError: the trace has no such tensor, or the tensor has no such head.
    """
    if name not in trace or trace[name].ndim != 3:
        raise DataError(f"{name} must be a tensor of attention in the trace, but is not.")
    weights = trace[name]
    if head is not None and head not in range(len(weights)):
        raise DataError(f"head must be from 0 to {len(weights) - 1}, but is {head}.")
    source, target = trace.source_tokens, trace.target_tokens
    tokens = {"src": source, "tgt": target, "src+tgt": [*source, *target]}
    rows, columns = (tokens[axis] for axis in trace.node(name).axes[-2:])
    shown = weights.mean(axis=0) if head is None else weights[head]
    what = "mean of the heads" if head is None else f"head {head}"
    return attention_map(shown, rows, columns, title=f"{name}, {what}")


def attention_grid(
    weights: ArrayLike, rows: Sequence[str], columns: Sequence[str], *, title: str = ""
) -> Plot:
    """The maps of all heads of all layers, small, in a grid.

    Args:
        weights: from 0 to 1, `(n_layers, n_heads, q_len, k_len)`.
        rows: the tokens that attend.
        columns: the tokens that they attend to.
        title: text above it.
    """
    values = np.asarray(weights, np.float32)
    if values.ndim != 4:
        raise DataError(
            f"weights must be (n_layers, n_heads, q_len, k_len), but are {values.shape}."
        )
    n_layers, n_heads = values.shape[:2]
    plot = Plot(figsize=(0.6 + 1.5 * n_heads, 0.8 + 1.5 * n_layers), layout="constrained")
    add_title(plot, title)
    grid: Any = plot.subplots(n_layers, n_heads, squeeze=False)
    image = None
    for layer, head in np.ndindex(n_layers, n_heads):
        axes = grid[layer][head]
        each = fitting(values[layer, head], len(rows), len(columns))
        image = axes.imshow(each, cmap=WEIGHTS, vmin=0, vmax=1, aspect="auto")
        axes.set(xticks=[], yticks=[])
        hide_frame(axes)
        if head == 0:
            axes.set_ylabel(f"layer {layer}", color=QUIET, fontsize=8)
        if layer == 0:
            axes.set_title(f"head {head}", color=QUIET, fontsize=8)
    if image is not None:
        add_colorbar(plot, image, grid, "weight")
    return plot


def alignment(
    weights: ArrayLike,
    source: Sequence[str],
    target: Sequence[str],
    links: Iterable[tuple[int, int]] = (),
    *,
    title: str = "",
) -> Plot:
    """Source above, target below, and a line for each pair with a strength given by its weight.

    Args:
        weights: from 0 to 1, `(n_target_tokens, n_source_tokens)`.
        source: tokens.
        target: tokens.
        links: pairs `(source, target)` of a hard alignment, drawn in another color.
        title: text above it.
    """
    values = fitting(weights, len(target), len(source))
    n = max(len(source), len(target), 2)
    plot, axes = new_plot(1 + 0.75 * n, 2.6, title)
    tops = np.linspace(0, 1, len(source) + 2)[1:-1]
    bottoms = np.linspace(0, 1, len(target) + 2)[1:-1]
    for j, i in np.ndindex(values.shape):
        if (weight := float(values[j, i])) > 0.02:
            xs = [tops[i], bottoms[j]]
            axes.plot(xs, [1, 0], color=CYCLE[0], lw=0.4 + 4 * weight, alpha=min(1, weight))
    for i, j in links:
        axes.plot([tops[i], bottoms[j]], [1, 0], color=CYCLE[1], lw=1.2)
    for places, labels, y, side in (
        (tops, source, 1.06, "bottom"),
        (bottoms, target, -0.06, "top"),
    ):
        for x, label in zip(places, labels, strict=True):
            write(axes, x, y, label, ha="center", va=side, fontsize=9)
    axes.set(xlim=(0, 1), ylim=(-0.35, 1.35))
    axes.axis("off")
    return plot


def position_heatmap(
    values: ArrayLike,
    *,
    first: int = 0,
    trained_len: int | None = None,
    labels: tuple[str, str] = ("position", "dimension"),
    title: str = "",
) -> Plot:
    """A table of positions: a row for each position, a column for each dimension.

    Args:
        values: `(n_rows, width)`.
        first: the position of the first row.
        trained_len: number of positions in training; a line marks their end.
        labels: what a row is, and what a column is.
        title: text above it.
    """
    table = two_dimensional(values)
    plot, axes = new_plot(6, 5.4, title)
    n_rows, width = table.shape
    extent = (-0.5, width - 0.5, first + n_rows - 0.5, first - 0.5)
    image = axes.imshow(table, aspect="auto", extent=extent, **colors_of(table))
    axes.set_ylabel(labels[0], color=QUIET)
    axes.set_xlabel(labels[1], color=QUIET)
    if trained_len is not None and first < trained_len < first + n_rows:
        axes.axhline(trained_len - 0.5, color=INK, lw=1.2, ls=(0, (4, 3)))
        axes.annotate(
            "longer than any training sentence",
            (width - 0.7, trained_len),
            ha="right",
            va="top",
            fontsize=8,
            color=INK,
            bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 2},
        )
    add_colorbar(plot, image, axes, "value")
    return plot


def similarity_matrix(
    values: ArrayLike,
    labels: Sequence[str] | None = None,
    *,
    first: int = 0,
    axis_label: str = "",
    value_label: str = "product",
    title: str = "",
) -> Plot:
    """A square matrix of products or cosines.

    Args:
        values: `(n, n)`.
        labels: of rows and columns; None = numbers.
        first: the number of the first row and column, without labels.
        axis_label: what a row is, and a column.
        value_label: what a value is.
        title: text above it.
    """
    matrix = two_dimensional(values)
    plot, axes = new_plot(5.6, 5, title)
    ends = [first - 0.5, first + len(matrix) - 0.5]
    extent = None if labels is not None else (*ends, *reversed(ends))
    image = axes.imshow(matrix, extent=extent, **colors_of(matrix))
    axes.set_xlabel(axis_label, color=QUIET)
    axes.set_ylabel(axis_label, color=QUIET)
    if labels is not None:
        label_axes(axes, labels, labels)
    add_colorbar(plot, image, axes, value_label)
    return plot


def embedding_map(
    points: ArrayLike,
    labels: Sequence[str],
    groups: Sequence[str] | None = None,
    *,
    n_labels: int = 60,
    title: str = "",
) -> Plot:
    """Points in the plane, with labels for the first ones; none overlaps an earlier one.

    Args:
        points: `(n_points, 2)`.
        labels: a word for each.
        groups: the name of each point's group, which decides its color; None = one group.
        n_labels: maximum number of labels, from the first point on.
        title: text above it.
    """
    places = two_dimensional(points)
    names = list(groups) if groups is not None else [""] * len(labels)
    plot, axes = new_plot(7, 6, title)
    size = 10 if len(labels) < 2000 else 4
    for color, group in zip(cycle(), dict.fromkeys(names), strict=False):
        of_group = [i for i, name in enumerate(names) if name == group]
        marks = {"s": size, "alpha": 0.6, "color": color, "linewidths": 0}
        axes.scatter(places[of_group, 0], places[of_group, 1], label=group, **marks)
    axes.axhline(0, color="#d8dade", lw=0.6, zorder=0)
    axes.axvline(0, color="#d8dade", lw=0.6, zorder=0)
    axes.set_xlabel("first principal component", color=QUIET)
    axes.set_ylabel("second principal component", color=QUIET)
    if len(set(names)) > 1:
        axes.legend(frameon=False, fontsize=8, labelcolor=INK)
    plot.draw_without_rendering()  # the sizes of labels depend on that of the axes
    boxes: list[Bbox] = []
    for (x, y), label in zip(places[: _TRIED * n_labels], labels, strict=False):
        if len(boxes) == n_labels:
            break
        text = write(axes, x, y, f" {label}", fontsize=7, va="center", path_effects=[HALO])
        box = text.get_window_extent()
        if box.count_overlaps(boxes):
            text.remove()
        else:
            boxes.append(box)
    return plot


def training_curves(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    x_label: str = "step",
    y_label: str = "loss",
    is_log: bool = False,
    title: str = "",
) -> Plot:
    """Curves over steps, one for each run or measure.

    Args:
        curves: maps a name to (steps, values), each `(n_points,)`.
        x_label: label of the axis of steps.
        y_label: label of the axis of values.
        is_log: use a logarithmic axis for values.
        title: text above it.
    """
    plot, axes = new_plot(7, 4, title)
    for color, (name, (steps, values)) in zip(cycle(), curves.items(), strict=False):
        axes.plot(np.asarray(steps), np.asarray(values), color=color, lw=1.6, label=plain(name))
    if is_log:
        axes.set_yscale("log")
    axes.grid(color="#e6e8eb", lw=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel(x_label, color=QUIET)
    axes.set_ylabel(y_label, color=QUIET)
    if curves:
        axes.legend(frameon=False, fontsize=8, labelcolor=INK)
    return plot


def gradient_norms(norms: ArrayLike, layers: Sequence[str], *, title: str = "") -> Plot:
    """The length of the gradient of each layer, on a logarithmic scale.

    Args:
        norms: `(n_layers,)`, or `(n_steps, n_layers)` for several steps: the median and the range
            from the 10th to the 90th percentile are drawn.
        layers: their names.
        title: text above it.
    """
    values = np.atleast_2d(np.asarray(norms, np.float64))
    values = fitting(values, len(values), len(layers)).astype(np.float64)
    plot, axes = new_plot(2 + 0.5 * len(layers), 3.8, title)
    places = np.arange(len(layers))
    low, middle, high = np.percentile(values, (10, 50, 90), axis=0)
    axes.bar(places, middle, color=CYCLE[0], width=0.62)
    if len(values) > 1:
        axes.errorbar(places, middle, (middle - low, high - middle), fmt="none", ecolor=INK, lw=1)
    axes.set_yscale("log")
    axes.set_ylabel("norm of the gradient", color=QUIET)
    label_ticks(axes, "x", layers, rotation=45)
    return plot


def neuron_activity(values: ArrayLike, tokens: Sequence[str], *, title: str = "") -> Plot:
    """The features of a feed-forward network for each token, the most active first.

    Args:
        values: `(n_tokens, n_features)`.
        tokens: their pieces.
        title: text above it.
    """
    activity = fitting(values, len(tokens), None)
    order = np.argsort(-np.abs(activity).max(axis=0), kind="stable")[:64]
    plot, axes = new_plot(8, 1.6 + 0.26 * len(tokens), title)
    image = axes.imshow(activity[:, order], aspect="auto", **colors_of(activity))
    label_ticks(axes, "y", tokens)
    label_ticks(axes, "x", [str(feature) for feature in order], rotation=90)
    axes.set_xlabel("feature", color=QUIET)
    add_colorbar(plot, image, axes, "activity")
    return plot


def beam_tree(branches: Sequence[Branch], *, title: str = "") -> Plot:
    """The tree of a search: a column for each step, a line from each branch to its parent.

    Args:
        branches: parents before their children.
        title: text above it.
    """
    depths: list[int] = []
    for i, branch in enumerate(branches):
        if not -1 <= branch.parent < i:
            raise DataError(
                f"the parent of branch {i} must come before it, but is {branch.parent}."
            )
        depths.append(0 if branch.parent < 0 else depths[branch.parent] + 1)
    heights = _heights(branches)
    n_steps, n_rows = max(depths, default=0) + 1, max(heights, default=0) + 1
    plot, axes = new_plot(1 + 1.15 * n_steps, 1 + 0.42 * n_rows, title)
    for i, branch in enumerate(branches):
        is_pruned = branch.state == "pruned"
        color = {"pruned": "#b9bec6", "finished": CYCLE[2]}.get(branch.state, CYCLE[0])
        if branch.parent >= 0:
            xs = [depths[branch.parent] + 0.42, depths[i] - 0.42]
            style = (0, (2, 2)) if is_pruned else "-"
            axes.plot(xs, [heights[branch.parent], heights[i]], color=color, ls=style, lw=1.2)
        ink = QUIET if is_pruned else INK
        where = depths[i], heights[i]
        write(axes, *where, branch.label, ha="center", va="bottom", fontsize=9, color=ink)
        axes.text(*where, f"{branch.score:.2f}", ha="center", va="top", fontsize=6.5, color=QUIET)
    axes.set(xlim=(-0.6, n_steps - 0.4), ylim=(n_rows - 0.4, -0.6))
    axes.axis("off")
    return plot


def _heights(branches: Sequence[Branch]) -> list[float]:
    """Heights of leaves one below the other; a parent is in the middle of its children."""
    children: list[list[int]] = [[] for _ in branches]
    for i, branch in enumerate(branches):
        if branch.parent >= 0:
            children[branch.parent].append(i)
    heights = [0.0] * len(branches)
    pending = [(i, False) for i in reversed(range(len(branches))) if branches[i].parent < 0]
    n_leaves = 0
    while pending:
        i, is_done = pending.pop()
        if not children[i]:
            heights[i] = n_leaves
            n_leaves += 1
        elif is_done:
            heights[i] = (heights[children[i][0]] + heights[children[i][-1]]) / 2
        else:
            pending += [(i, True), *((child, False) for child in reversed(children[i]))]
    return heights
