"""Tensors of a trace as text and as files."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heed.errors import UsageError
from heed.explain.tensors import described, labels, listed, token_probabilities, write_tensor
from heed.translate.trace import Node, Trace


class Pieces:
    """In the place of a vocabulary."""

    def pieces(self, ids: list[int]) -> list[str]:
        """Letters."""
        return ["abcd"[id_] for id_ in ids]


def node(name: str, array: np.ndarray, axes: str, *inputs: str) -> Node:
    return Node(
        name=name,
        shape=array.shape,
        axes=tuple(axes.split()),
        kind="attention.weights",
        operation="softmax",
        formula="A = softmax(S)",
        inputs=inputs,
    )


@pytest.fixture
def trace() -> Trace:
    weights = np.array([[[0.5, 0.5], [0.25, 0.75]]], dtype=np.float32)
    log_probs = np.log(np.array([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1]], dtype=np.float32))
    return Trace(
        source="x",
        translation="y",
        source_tokens=["▁x", "</s>"],
        target_tokens=["<s>", "b"],
        expected_tokens=["b", "a"],
        expected_ids=[1, 0],
        nodes=[
            node("cross.weights", weights, "head tgt src", "cross.scores"),
            node("log_probs", log_probs, "tgt piece"),
        ],
        tensors={"cross.weights": weights, "log_probs": log_probs},
    )


def test_every_tensor_has_a_line_with_its_axes(trace: Trace) -> None:
    assert listed(trace) == [
        "cross.weights  head 1 × tgt 2 × src 2  A = softmax(S)",
        "log_probs      tgt 2 × piece 4         A = softmax(S)",
    ]


def test_places_of_a_side_are_its_tokens(trace: Trace) -> None:
    assert labels(trace, "src", 2) == ["▁x", "</s>"]
    assert labels(trace, "src+tgt", 4) == ["▁x", "</s>", "<s>", "b"]
    assert labels(trace, "d_k", 3) == ["0", "1", "2"]


def test_outputs_of_a_classifier_are_its_labels_after_special_pieces(trace: Trace) -> None:
    classified = replace(trace, labels={"bad": 0.4, "good": 0.6})
    assert labels(classified, "label", 4) == ["0", "1", "bad", "good"]


def test_a_tensor_is_written_out_with_what_it_is_made_of(trace: Trace) -> None:
    assert described(trace, "cross.weights") == [
        "cross.weights  head 1 × tgt 2 × src 2",
        "softmax: A = softmax(S)",
        "from cross.scores",
        "[[[0.5  0.5 ]",
        "  [0.25 0.75]]]",
    ]
    assert described(trace, "log_probs")[2] == "from nothing that has a name"


def test_a_table_says_where_each_row_is(trace: Trace, tmp_path: Path) -> None:
    write_tensor(trace, "cross.weights", tmp_path / "w.csv")
    with open(tmp_path / "w.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows == [
        ["head", "head label", "tgt", "tgt label", "▁x", "</s>"],
        ["0", "0", "0", "<s>", "0.5", "0.5"],
        ["0", "0", "1", "b", "0.25", "0.75"],
    ]


def test_an_array_is_read_as_it_was(trace: Trace, tmp_path: Path) -> None:
    write_tensor(trace, "log_probs", tmp_path / "l.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "l.npy"), trace["log_probs"])


def test_other_names_and_endings_are_refused_in_words(trace: Trace, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no tensor cross.weight; did you mean cross\.weights\?"):
        described(trace, "cross.weight")
    with pytest.raises(UsageError, match="no tensor Q; heed inspect --steps lists the names"):
        described(trace, "Q")
    with pytest.raises(UsageError, match=r"w\.txt must end with \.csv or \.npy"):
        write_tensor(trace, "log_probs", tmp_path / "w.txt")


def test_probabilities_are_those_of_the_tokens_written(trace: Trace) -> None:
    first, second = token_probabilities(trace, Pieces())
    assert (first.token, first.rank, first.best) == ("b", 3, "d")
    assert first.probability == pytest.approx(0.2)
    assert first.best_probability == pytest.approx(0.4)
    assert (second.token, second.rank, second.best) == ("a", 1, "a")
