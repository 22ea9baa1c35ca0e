"""Tensors of a trace as text: a list of all, one in full, one as a file, and probabilities."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from heed.disk.files import write_atomically
from heed.errors import UsageError
from heed.explain.render import width_of
from heed.model.stages import BOTH
from heed.text.vocab import Vocab
from heed.translate.trace import BatchTrace, NamedTensors, Node, Trace

FORMATS = (".csv", ".npy")


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenProbability:
    """The probability of a token of a translation.

    Attributes:
        token: the piece.
        probability: p(token | the source and all tokens before it).
        rank: 1 if no other piece was more probable there.
        best: the most probable piece.
        best_probability: its probability.
    """

    token: str
    probability: float
    rank: int
    best: str
    best_probability: float


def listed(trace: NamedTensors) -> list[str]:
    """A line for each tensor: its name, its axes with their lengths, and its formula."""
    rows = [(node.name, shape_of(trace, node.name), node.formula) for node in trace.nodes]
    widths = [max((width_of(row[column]) for row in rows), default=0) for column in (0, 1)]
    return [
        f"{name:<{widths[0]}}  {shape + ' ' * (widths[1] - width_of(shape))}  {formula}"
        for name, shape, formula in rows
    ]


def shape_of(trace: NamedTensors, name: str) -> str:
    """The axes of a tensor with their lengths: `head 8 × tgt 7 × src 9`.

    Raises:
        UsageError: there is no such tensor.
    """
    node = node_of(trace, name)
    return " × ".join(
        f"{axis} {length}" for axis, length in zip(node.axes, node.shape, strict=True)
    )


def node_of(trace: NamedTensors, name: str) -> Node:
    """The description of a tensor.

    Raises:
        UsageError: there is no such tensor.
    """
    if name in trace:
        return trace.node(name)
    near = get_close_matches(name, trace, n=1)
    hint = f"did you mean {near[0]}?" if near else "heed inspect --steps lists the names."
    raise UsageError(f"This model has no tensor {name}; {hint}")


def labels(trace: NamedTensors, axis: str, length: int) -> list[str]:
    """The labels along an axis: tokens, labels of a classifier, or numbers from 0."""
    if not isinstance(trace, Trace):  # in a batch each sentence has its own tokens
        return [str(place) for place in range(length)]
    if axis == "label":  # its first outputs are special pieces
        n_special = length - len(trace.labels)
        return [*(str(place) for place in range(n_special)), *trace.labels]
    sides = {
        "src": trace.source_tokens,
        "tgt": trace.target_tokens,
        BOTH: trace.source_tokens + trace.target_tokens,
    }
    tokens = sides.get(axis, [])
    return list(tokens) if len(tokens) == length else [str(place) for place in range(length)]


def described(trace: NamedTensors, name: str) -> list[str]:
    """One tensor in readable form: its description and its numbers; only the corners of large ones.

    Raises:
        UsageError: there is no such tensor.
    """
    node = node_of(trace, name)
    with np.printoptions(precision=4, suppress=True, threshold=400, edgeitems=4, linewidth=100):
        numbers = str(trace[name])
    return [
        f"{name}  {shape_of(trace, name)}",
        f"{node.operation}: {node.formula}",
        f"from {', '.join(node.inputs) or 'nothing that has a name'}",
        *numbers.splitlines(),
    ]


def require_format(path: str | Path) -> None:
    """Refuse a file that `write_tensor` would not write.

    Raises:
        UsageError: names the endings that it can have.
    """
    if Path(path).suffix not in FORMATS:
        raise UsageError(f"{path} must end with {' or '.join(FORMATS)}.")


def write_tensor(trace: NamedTensors, name: str, path: str | Path) -> None:
    """Write one tensor as `.npy`, or as `.csv` with a line for each row of its last axis.

    In the table, the first columns give the position of the row: a number and a label for each
    axis. The label is a token if the axis has tokens, a label if it has those of a classifier, and
    in a batch the sentence.

    Raises:
        UsageError: there is no such tensor, or the file has another ending.
    """
    require_format(path)
    node, path = node_of(trace, name), Path(path)
    if path.suffix == ".npy":
        buffer = io.BytesIO()
        np.save(buffer, trace[name], allow_pickle=False)
        write_atomically(path, buffer.getvalue(), follow_links=True)
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    *outer, last = zip(node.axes, node.shape, strict=True)
    heads = (name for axis, _ in outer for name in (axis, f"{axis} label"))
    writer.writerow([*heads, *labels(trace, *last)])
    if isinstance(trace, BatchTrace):
        for place, sentence in enumerate(trace.sentences):
            writer.writerows([place, sentence.source, *row] for row in _rows(sentence, name))
    else:
        writer.writerows(_rows(trace, name))
    write_atomically(path, text.getvalue().encode(), follow_links=True)


def _rows(trace: NamedTensors, name: str) -> Iterator[list[Any]]:
    """The rows of a tensor, each after the numbers and labels of its position."""
    node = trace.node(name)
    outer = [*zip(node.axes, node.shape, strict=True)][:-1]
    names = [labels(trace, axis, length) for axis, length in outer]
    for places in product(*(range(length) for _, length in outer)):
        where = (
            part for place, at in zip(places, names, strict=True) for part in (place, at[place])
        )
        yield [*where, *trace[name][places].tolist()]


def token_probabilities(trace: Trace, vocab: Vocab) -> list[TokenProbability]:
    """The model's probability of each target token, in the order of the text.

    Args:
        trace: trace of a model that generates text; padding in a batch is left out.
        vocab: target vocabulary.
    """
    trace = trace.without_padding()
    found = []
    for token, id_, row in zip(
        trace.expected_tokens, trace.expected_ids, trace["log_probs"], strict=True
    ):
        best = int(row.argmax())
        found.append(
            TokenProbability(
                token=token,
                probability=float(np.exp(row[id_])),
                rank=1 + int((row > row[id_]).sum()),
                best=vocab.pieces([best])[0],
                best_probability=float(np.exp(row[best])),
            )
        )
    return found
