"""`Trace`: every named tensor of one translation, recorded from the modules that translate.

`Translator.trace` makes one, or a `BatchTrace` of several sentences. The names are those of
`heed.model.trace`, also in files and on the page. `tracer.py` computes traces; `heed.explain`
interprets the numbers.
"""

import json
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from heed.disk.files import read_bytes, write_atomically
from heed.disk.tensors import decode_with_metadata, encode_tensors
from heed.errors import FormatError, UsageError
from heed.model.interface import Floats
from heed.model.stages import BOTH
from heed.translate import notebook
from heed.translate.result import Match
from heed.translate.stepwise import Rows

FORMAT = "heed trace 1"
BATCH_FORMAT = "heed batch trace 1"
BATCH = "batch"
"""The axis of the sentences of a batch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """One named tensor of a computation.

    Attributes:
        name: as in `heed.model.trace`: `decoder.0.cross_attention.weights`.
        shape: without the batch, if it is of one sentence.
        axes: a name for each axis: `head`, `tgt`, `src`, `d_model`, …; of a batch, `batch` first.
        kind: the kind of its module and its own name: `attention.weights`.
        operation: the operation that makes it, in a few words.
        formula: the same as a formula.
        inputs: names of the tensors and weights it was computed from.
    """

    name: str
    shape: tuple[int, ...]
    axes: tuple[str, ...]
    kind: str
    operation: str
    formula: str
    inputs: tuple[str, ...]


class UnknownTensor(UsageError, KeyError):
    """No tensor has this name. A KeyError too, because `in` and `get` of a mapping need one.

    Args:
        name: the name.
        known: those of all tensors; the nearest is found when the message is read.
    """

    def __init__(self, name: object, known: Sequence[str]) -> None:
        super().__init__(name, known)
        self.name, self.known = name, known

    def __str__(self) -> str:
        near = get_close_matches(str(self.name), self.known, n=1, cutoff=0.0)
        hint = f"; did you mean {near[0]}?" if near else ", nor any other."
        return f"There is no tensor named {self.name}{hint}"


@dataclass(frozen=True, kw_only=True)
class NamedTensors(Mapping[str, Floats]):
    """Tensors by name, in the order of the computation.

    Attributes:
        nodes: a description of each tensor.
        tensors: their values by name.
    """

    nodes: list[Node]
    tensors: dict[str, Floats] = field(repr=False)

    def __getitem__(self, name: str) -> Floats:
        try:
            return self.tensors[name]
        except KeyError:
            raise UnknownTensor(name, [*self.tensors]) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def named(self, ending: str) -> dict[str, Floats]:
        """The tensors with this ending, such as all `cross_attention.weights`, in order."""
        return {name: tensor for name, tensor in self.items() if name.endswith(ending)}

    def node(self, name: str) -> Node:
        """The description of the tensor of this name.

        Raises:
            UnknownTensor: there is none; names the nearest.
        """
        for node in self.nodes:
            if node.name == name:
                return node
        raise UnknownTensor(name, [node.name for node in self.nodes])

    @property
    def size_bytes(self) -> int:
        """Memory of all its tensors."""
        return sum(array.nbytes for array in self.values())

    def _table(self) -> str:
        """The tensors for a notebook."""
        rows = [
            (
                node.name,
                " × ".join(f"{axis} {n}" for axis, n in zip(node.axes, node.shape, strict=True)),
                node.operation,
                node.formula,
            )
            for node in self.nodes
        ]
        return notebook.table(["name", "shape", "operation", "formula"], rows)


@dataclass(frozen=True, kw_only=True)
class Trace(NamedTensors):
    """All named tensors of one source and one target, in the order of the computation.

    `trace["decoder.0.cross_attention.weights"]` is an array without the batch, here
    `(n_heads, tgt_len, src_len)`.

    Attributes:
        source: the text; of a language model, the prompt.
        translation: its translation, given or found; of a language model, the continuation.
        source_tokens: the pieces that the encoder reads, `<eos>` last; a protected span in place of
            its slot.
        target_tokens: the pieces that the decoder reads, `<bos>` first.
        expected_tokens: the piece after each of these.
        steps: of a search, if requested: the tensors of each step, with rows as their first axis,
            `(rows, …)`; those of the encoder are in the first step.
        rows: of the same steps, the hypothesis that each row continues.
        expected_ids: of `expected_tokens`: their columns in `log_probs`.
        source_ids: of `source_tokens`.
        target_ids: of `target_tokens`.
        n_prompt: of a language model, how many of `expected_tokens` are the prompt's.
        labels: of a classifier, the probability of each label.
        n_src_padding: how many of the last `source_tokens` are padding, in a batch.
        n_tgt_padding: how many of the last `target_tokens` are, and of `expected_tokens`.
        match: the remembered pair that guided the search for the translation; None = no pair did,
            or the translation was given. The tensors are those of the model alone.
    """

    source: str
    translation: str
    source_tokens: list[str]
    target_tokens: list[str]
    expected_tokens: list[str]
    steps: list[dict[str, Floats]] = field(default_factory=list, repr=False)
    rows: list[Rows] = field(default_factory=list, repr=False)
    expected_ids: list[int] = field(default_factory=list, repr=False)
    source_ids: list[int] = field(default_factory=list, repr=False)
    target_ids: list[int] = field(default_factory=list, repr=False)
    n_prompt: int = 0
    labels: dict[str, float] = field(default_factory=dict)
    n_src_padding: int = 0
    n_tgt_padding: int = 0
    match: Match | None = None

    @property
    def size_bytes(self) -> int:
        """Memory of all its tensors, including those of the steps."""
        return sum(array.nbytes for part in (self, *self.steps) for array in part.values())

    def kv_table(self, layer: int, step: int) -> tuple[Floats, Floats]:
        """The keys and values of the target in a decoder layer when it reads token `step`.

        Args:
            layer: decoder layer, from 0.
            step: number of the target token; 0 is `<bos>`. The table has a row for it and for each
                before it. In a decoder-only model the source's rows come first.

        Returns:
            Keys `(n_heads, n_rows, d_k)` and values `(n_heads, n_rows, d_v)`.

        Raises:
            UsageError: there is no such layer or step, or it keeps no keys and values.
        """
        module = f"decoder.{layer}.self_attention"
        key, value = self.get(f"{module}.rotated_key", self.get(f"{module}.key")), f"{module}.value"
        if key is None or value not in self:
            raise UsageError(f"There is no table of keys and values of decoder layer {layer}.")
        if step not in range(len(self.target_tokens)):
            raise UsageError(f"step must be below {len(self.target_tokens)}, but is {step}.")
        n_rows = key.shape[1] - len(self.target_tokens) + step + 1
        return key[:, :n_rows], self[value][:, :n_rows]

    def __repr__(self) -> str:
        lengths = f"{len(self.source_tokens)} source and {len(self.target_tokens)} target tokens"
        texts = f"{reprlib.repr(self.source)} → {reprlib.repr(self.translation)}"
        return f"<Trace {texts}: {lengths}, {len(self)} tensors>"

    def _repr_html_(self) -> str:
        head = f"{notebook.isolated(self.source)} → {notebook.isolated(self.translation)}"
        summary = f"{len(self.nodes)} tensors, {len(self.steps)} steps of a search"
        return f"<p>{head}</p><details><summary>{summary}</summary>{self._table()}</details>"

    def without_padding(self) -> "Trace":
        """The same without padding: equal to a trace of the sentence alone, up to rounding."""
        if not (self.n_src_padding or self.n_tgt_padding):
            return self
        n_read = len(self.source_tokens)
        n_src, n_tgt = n_read - self.n_src_padding, len(self.target_tokens) - self.n_tgt_padding
        src, tgt = [*range(n_src)], [*range(n_tgt)]
        kept = {"src": src, "tgt": tgt, BOTH: [*src, *(n_read + place for place in tgt)]}
        tensors = {node.name: _cut(self[node.name], node.axes, kept) for node in self.nodes}
        return replace(
            self,
            nodes=[replace(node, shape=tensors[node.name].shape) for node in self.nodes],
            tensors=tensors,
            source_tokens=self.source_tokens[:n_src],
            target_tokens=self.target_tokens[:n_tgt],
            expected_tokens=self.expected_tokens[:n_tgt],
            expected_ids=self.expected_ids[:n_tgt],
            source_ids=self.source_ids[:n_src],
            target_ids=self.target_ids[:n_tgt],
            n_src_padding=0,
            n_tgt_padding=0,
        )

    def save(self, path: str | Path) -> None:
        """Write a safetensors file: the tensors, and the rest as JSON in its metadata.

        A tensor of step 3 is named `step-3.NAME` there.
        """
        steps = {
            f"step-{number}.{name}": tensor
            for number, step in enumerate(self.steps)
            for name, tensor in step.items()
        }
        about = {
            **_texts_of(self),
            "nodes": [asdict(node) for node in self.nodes],
            "rows": [asdict(step) for step in self.rows],
        }
        _write(path, FORMAT, self.tensors | steps, about)


@dataclass(frozen=True, kw_only=True)
class BatchTrace(NamedTensors):
    """All named tensors of several sentences that were read together, padded to the longest.

    `batch["decoder.0.cross_attention.weights"]` is an array whose first axis is the sentence, here
    `(batch, n_heads, tgt_len, src_len)`. No position reads padding: such weights are exactly 0. The
    rows of padding itself are computed too, as in any batch, but never read.

    Attributes:
        sentences: a trace of each, with the same padding: `<pad>` follows their tokens, and their
            tensors are those of the batch without its first axis.
    """

    sentences: list[Trace]

    def __repr__(self) -> str:
        widest = self.sentences[0]
        n_src, n_tgt = len(widest.source_tokens), len(widest.target_tokens)
        lengths = f"{n_src} source and {n_tgt} target tokens with padding"
        return f"<BatchTrace of {len(self.sentences)} sentences: {lengths}, {len(self)} tensors>"

    def _repr_html_(self) -> str:
        pairs = [(each.source, each.translation) for each in self.sentences]
        summary = f"{len(self.nodes)} tensors of {len(pairs)} sentences"
        texts = notebook.table(["source", "translation"], pairs)
        return f"{texts}<details><summary>{summary}</summary>{self._table()}</details>"

    def save(self, path: str | Path) -> None:
        """Write a safetensors file: the tensors, and the rest as JSON in its metadata."""
        about = {
            "sentences": [_texts_of(each) for each in self.sentences],
            "nodes": [asdict(node) for node in self.nodes],
        }
        _write(path, BATCH_FORMAT, self.tensors, about)


def batch_of(
    texts: Sequence[Mapping[str, Any]], nodes: list[Node], tensors: dict[str, Floats]
) -> BatchTrace:
    """A trace of several sentences.

    Args:
        texts: of each sentence, the fields of its `Trace` besides tensors.
        nodes: a description of each tensor, `batch` the first axis.
        tensors: by name, `(batch, …)`.
    """
    of_one = [replace(node, shape=node.shape[1:], axes=node.axes[1:]) for node in nodes]
    sentences = [
        Trace(**about, nodes=of_one, tensors={name: tensor[i] for name, tensor in tensors.items()})
        for i, about in enumerate(texts)
    ]
    return BatchTrace(sentences=sentences, nodes=nodes, tensors=tensors)


def _cut(tensor: Floats, axes: Sequence[str], kept: Mapping[str, list[int]]) -> Floats:
    """A tensor with only the given indices of the named axes."""
    for number, axis in enumerate(axes):
        if axis in kept:
            tensor = tensor.take(kept[axis], axis=number)
    return tensor


def _texts_of(trace: Trace) -> dict[str, Any]:
    """The fields of a trace that are texts, numbers or lists of them."""
    others = ["nodes", "tensors", "steps", "rows"]
    if not (trace.n_src_padding or trace.n_tgt_padding):
        others += ["n_src_padding", "n_tgt_padding"]
    names = (each.name for each in fields(trace) if each.name not in [*others, "match"])
    match = {} if trace.match is None else {"match": asdict(trace.match)}
    return {name: getattr(trace, name) for name in names} | match


def _write(
    path: str | Path, format: str, tensors: Mapping[str, Floats], about: Mapping[str, Any]
) -> None:
    metadata = {"format": format, "trace": json.dumps(about, ensure_ascii=False)}
    data = encode_tensors(tensors, metadata=metadata, must_be_finite=False)
    write_atomically(path, data, follow_links=True)


def read_trace(path: str | Path) -> Trace | BatchTrace:
    """Read a file of `Trace.save` or `BatchTrace.save`.

    Raises:
        FormatError: the file is missing, damaged, or not a trace.
    """
    content = read_bytes(Path(path))
    tensors, metadata = decode_with_metadata(content, path)
    readers: dict[str, Callable[..., Trace | BatchTrace]] = {FORMAT: _trace, BATCH_FORMAT: _batch}
    read = readers.get(metadata.get("format", ""))
    if read is None:
        raise FormatError(
            f"{path} is not a trace written by heed; Translator.trace(…).save(path) writes one."
        )
    try:
        return read(tensors, json.loads(metadata["trace"]))
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise FormatError(
            f"{path} is damaged: its description does not match: {error!r}."
        ) from None


def _trace(found: Mapping[str, Floats], about: dict[str, Any]) -> Trace:
    """A trace of the tensors and the description in a file."""
    tensors: dict[str, Floats] = {}
    steps: dict[int, dict[str, Floats]] = {}
    for name, tensor in found.items():
        step, _, rest = name.partition(".")
        if step.startswith("step-"):
            steps.setdefault(int(step.removeprefix("step-")), {})[rest] = tensor
        else:
            tensors[name] = tensor
    about = _with_match(about)
    nodes = [_node(values) for values in about.pop("nodes")]
    rows = [Rows(**values) for values in about.pop("rows")]
    # A file has its tensors in alphabetical order.
    ordered = {node.name: tensors[node.name] for node in nodes}
    return Trace(
        **about,
        nodes=nodes,
        tensors=ordered,
        steps=[steps[number] for number in sorted(steps)],
        rows=rows,
    )


def _batch(found: Mapping[str, Floats], about: dict[str, Any]) -> BatchTrace:
    """A trace of several sentences of the tensors and the description in a file."""
    nodes = [_node(values) for values in about["nodes"]]
    return batch_of(
        [*map(_with_match, about["sentences"])],
        nodes,
        {node.name: found[node.name] for node in nodes},
    )


def _with_match(about: dict[str, Any]) -> dict[str, Any]:
    """The description of a trace, with its remembered pair, if it has one, read from JSON."""
    return about | ({"match": Match(**about["match"])} if "match" in about else {})


def _node(values: dict[str, Any]) -> Node:
    """A node from JSON; lists become tuples again."""
    lists = {name: tuple(values[name]) for name in ("shape", "axes", "inputs")}
    return Node(**(values | lists))
