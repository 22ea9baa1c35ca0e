"""Plots hold the numbers and labels they were given, and are images that a notebook shows."""

import io
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from heed.errors import DataError
from heed.explain import fonts, plots
from heed.explain.figures import Plot
from heed.explain.plots import Branch
from heed.translate.trace import Node, Trace

RANDOM = np.random.default_rng(1)
WEIGHTS = RANDOM.dirichlet(np.ones(3), size=(2, 2, 4))
ROWS, COLUMNS = ["▁a", "$x$", "<b>", "\u202eb"], ["ا", "b\n", "c"]


def each_plot() -> dict[str, Plot]:
    branches = [Branch(-1, "<bos>", 0.0), Branch(0, "▁a", -0.5), Branch(0, "$b$", -2, "pruned")]
    return {
        "attention_map": plots.attention_map(WEIGHTS[0, 0], ROWS, COLUMNS, title="$t$"),
        "attention_grid": plots.attention_grid(WEIGHTS, ROWS, COLUMNS),
        "alignment": plots.alignment(WEIGHTS[0, 0], COLUMNS, ROWS, [(0, 1)]),
        "position_heatmap": plots.position_heatmap(RANDOM.normal(size=(9, 4)), trained_len=5),
        "similarity_matrix": plots.similarity_matrix(RANDOM.normal(size=(3, 3)), COLUMNS),
        "embedding_map": plots.embedding_map(
            RANDOM.normal(size=(4, 2)), ROWS, ["source", "source", "target", "target"]
        ),
        "training_curves": plots.training_curves({"a": ([1, 2], [3.0, 1.0])}, is_log=True),
        "gradient_norms": plots.gradient_norms([[1.0, 2.0], [3.0, 4.0]], ["one", "two"]),
        "neuron_activity": plots.neuron_activity(np.abs(RANDOM.normal(size=(4, 99))), ROWS),
        "beam_tree": plots.beam_tree([*branches, Branch(1, "</s>", -0.7, "finished")]),
    }


@pytest.mark.parametrize("name", each_plot())
def test_a_plot_is_an_image_in_a_notebook_and_a_file(name: str) -> None:
    plot = each_plot()[name]
    assert plot._repr_png_().startswith(b"\x89PNG")
    svg = io.BytesIO()
    plot.savefig(svg, format="svg")
    assert b"<svg" in svg.getvalue()


def test_an_image_holds_the_numbers_it_was_given() -> None:
    axes = plots.attention_map(WEIGHTS[0, 0], ROWS, COLUMNS).axes[0]
    np.testing.assert_allclose(axes.images[0].get_array(), WEIGHTS[0, 0], atol=1e-6)
    # A label is never a formula, and control characters do not break lines.
    assert [label.get_text() for label in axes.get_yticklabels()] == ["▁a", "$x$", "<b>", "\ufffdb"]
    assert not any(label.get_parse_math() for label in axes.get_yticklabels())
    assert [label.get_text() for label in axes.get_xticklabels()] == ["ا", "b\ufffd", "c"]


def test_a_tensor_of_a_trace_has_the_tokens_as_labels() -> None:
    name = "decoder.0.cross_attention.weights"
    node = Node(
        name=name,
        shape=(2, 4, 3),
        axes=("head", "tgt", "src"),
        kind="attention.weights",
        operation="softmax",
        formula="",
        inputs=(),
    )
    trace = Trace(
        source="",
        translation="",
        source_tokens=["x", "y", "z"],
        target_tokens=["a", "b", "c", "d"],
        expected_tokens=[],
        nodes=[node],
        tensors={name: WEIGHTS[0].astype(np.float32)},
    )
    axes = plots.attention_of(trace, name).axes[0]
    np.testing.assert_allclose(axes.images[0].get_array(), WEIGHTS[0].mean(axis=0), atol=1e-6)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c", "d"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["x", "y", "z"]
    one = plots.attention_of(trace, name, head=1).axes[0]
    np.testing.assert_allclose(one.images[0].get_array(), WEIGHTS[0, 1], atol=1e-6)
    with pytest.raises(DataError, match="head must be from 0 to 1, but is 2."):
        plots.attention_of(trace, name, head=2)
    with pytest.raises(DataError, match="memory must be a tensor of attention in the trace"):
        plots.attention_of(trace, "memory")


def test_signed_numbers_have_white_at_0() -> None:
    image = plots.position_heatmap([[-3.0, 1.0]]).axes[0].images[0]
    assert (image.norm.vmin, image.norm.vmax) == (-3, 3)
    image = plots.position_heatmap([[0.0, 2.0]]).axes[0].images[0]
    assert (image.norm.vmin, image.norm.vmax) == (0, 2)


def test_the_end_of_the_training_is_marked_where_it_is_in_the_table() -> None:
    values = np.zeros((10, 4))
    inside = plots.position_heatmap(values, trained_len=6).axes[0]
    assert inside.lines[0].get_ydata() == pytest.approx([5.5, 5.5])
    assert not plots.position_heatmap(values, trained_len=10).axes[0].lines


def test_tables_of_distances_begin_at_their_first_one_and_name_their_axes() -> None:
    labels = "distance", "head"
    axes: Any = plots.position_heatmap(np.eye(5), first=-2, labels=labels).axes[0]
    assert (axes.get_ylabel(), axes.get_xlabel(), axes.get_ylim()) == (*labels, (2.5, -2.5))
    axes = plots.similarity_matrix(np.eye(5), first=-2, axis_label="distance").axes[0]
    assert {axes.get_ylabel(), axes.get_xlabel()} == {"distance"}
    assert (axes.get_xlim(), axes.get_ylim()) == ((-2.5, 2.5), (2.5, -2.5))


def test_a_title_may_hold_the_name_of_a_folder_that_is_not_utf_8() -> None:
    plot = plots.training_curves({}, title="pieces of run\udcff")
    assert plot.get_suptitle() == "pieces of run\N{REPLACEMENT CHARACTER}"
    assert plot._repr_png_().startswith(b"\x89PNG")


def test_gradients_show_the_median_of_the_steps() -> None:
    axes: Any = plots.gradient_norms([[1, 10], [2, 20], [9, 90]], ["one", "two"]).axes[0]
    assert [bar.get_height() for bar in axes.patches] == [2, 20]


def test_arrays_that_do_not_fit_their_labels_are_refused() -> None:
    with pytest.raises(DataError, match=r"must be \(2, 3\) as the labels are, but is \(4, 3\)."):
        plots.attention_map(WEIGHTS[0, 0], ["a", "b"], COLUMNS)
    with pytest.raises(DataError, match=r"a plot needs rows and columns, but the array is \(3,\)."):
        plots.similarity_matrix([1, 2, 3])
    with pytest.raises(DataError, match=r"must be \(n_layers, n_heads, q_len, k_len\), but are"):
        plots.attention_grid(WEIGHTS[0], ROWS, COLUMNS)
    with pytest.raises(DataError, match="parent of branch 0 must come before it, but is 4."):
        plots.beam_tree([Branch(4, "a", 0.0)])


def test_labels_of_a_map_do_not_overlap() -> None:
    points = [(0, 0), (0.001, 0), (1, 1), (1, 1.001), (0, 1)]
    axes = plots.embedding_map(points, ["man", "woman", "dog", "cat", "tree"], n_labels=2).axes[0]
    assert [text.get_text() for text in axes.texts] == [" man", " dog"]
    axes = plots.embedding_map(points, ["man", "woman", "dog", "cat", "tree"]).axes[0]
    assert [text.get_text() for text in axes.texts] == [" man", " dog", " tree"]


def test_characters_that_no_font_has_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {fonts.FIRST: fonts._installed()[fonts.FIRST]}
    fonts._families.cache_clear()
    monkeypatch.setattr(fonts, "_installed", lambda: installed)
    with pytest.warns(UserWarning, match="no installed font has 約 纽: install one"):
        fonts.families_for(["纽約 a"])
    fonts._families.cache_clear()


def test_without_matplotlib_a_plot_says_what_to_install() -> None:
    code = """
import sys
sys.modules["matplotlib"] = None
from heed.errors import MissingExtraError
try:
    import heed.explain.plots
except MissingExtraError as error:
    assert "A plot needs packages that are not installed: pip install 'heed[plot]'" in str(error)
else:
    sys.exit("no error")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_long_axis_writes_some_of_its_labels() -> None:
    labels = [str(i) for i in range(200)]
    axes: Any = plots.similarity_matrix(np.eye(200), labels).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == labels[::3]
