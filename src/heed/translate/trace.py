"""`Trace`: every named tensor of one translation, caught from the modules that translate.

`Translator.trace` makes one. The names are those of `heed.model.trace`, in files and on the page
too; what can be concluded from the numbers is in `heed.explain`. Needs torch.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from heed.decode.batching import padded
from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.decode.state import Hypothesis
from heed.disk.files import read_bytes, write_atomically
from heed.disk.tensors import decode_tensors, encode_tensors, read_metadata
from heed.errors import FormatError, UsageError
from heed.model.ancestry import Ancestry
from heed.model.interface import Decodable, Floats
from heed.model.network import TorchNetwork
from heed.model.stages import Stages
from heed.model.trace import listening, see
from heed.text.normalize import normalize
from heed.text.vocab import Vocab
from heed.translate import notebook
from heed.translate.inspect import never_written
from heed.translate.load import Traceable
from heed.translate.stepwise import Rows, Stepwise, array

FORMAT = "heed trace 1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """One named tensor of a computation.

    Attributes:
        name: as in `heed.model.trace`: `decoder.0.cross_attention.weights`.
        shape: without the batch.
        axes: a name for each axis: `head`, `tgt`, `src`, `d_model`, …
        kind: the kind of its module and its own name: `attention.weights`.
        operation: what makes it, in a few words.
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


@dataclass(frozen=True, kw_only=True)
class Trace(Mapping[str, Floats]):
    """All named tensors of one source and one target, in the order of the computation.

    `trace["decoder.0.cross_attention.weights"]` is an array without the batch, here
    `(n_heads, tgt_len, src_len)`.

    Attributes:
        source: the text; of a language model, the prompt.
        translation: its translation, given or found; of a language model, the continuation.
        source_tokens: the pieces that the encoder reads, `<eos>` last.
        target_tokens: the pieces that the decoder reads, `<bos>` first.
        expected_tokens: the piece after each of these.
        nodes: what each tensor is.
        tensors: their values by name.
        steps: of a search, if asked for: the tensors of each step, which have an axis of rows in
            front, `(rows, …)`; those of the encoder are in the first.
        rows: of the same steps, which hypothesis each row continues.
        expected_ids: of `expected_tokens`: the columns of `log_probs` that they have.
        n_prompt: of a language model, how many of `expected_tokens` the prompt gave.
        labels: of a classifier, the probability of each label.
    """

    source: str
    translation: str
    source_tokens: list[str]
    target_tokens: list[str]
    expected_tokens: list[str]
    nodes: list[Node]
    tensors: dict[str, Floats] = field(repr=False)
    steps: list[dict[str, Floats]] = field(default_factory=list, repr=False)
    rows: list[Rows] = field(default_factory=list, repr=False)
    expected_ids: list[int] = field(default_factory=list, repr=False)
    n_prompt: int = 0
    labels: dict[str, float] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Floats:
        return self.tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def named(self, ending: str) -> dict[str, Floats]:
        """The tensors whose name ends so, such as all `cross_attention.weights`, in order."""
        return {name: tensor for name, tensor in self.items() if name.endswith(ending)}

    @property
    def size_bytes(self) -> int:
        """Memory of all its tensors, those of the steps too."""
        return sum(array.nbytes for part in (self, *self.steps) for array in part.values())

    def node(self, name: str) -> Node:
        """What the tensor of this name is.

        Raises:
            KeyError: there is none.
        """
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)

    def kv_table(self, layer: int, step: int) -> tuple[Floats, Floats]:
        """The keys and values that a decoder layer has of the target when it reads token `step`.

        Args:
            layer: decoder layer, from 0.
            step: which target token, from 0, `<bos>`; the table has a row for it and for each
                before it. A decoder-only model has the source's rows in front.

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

    def _repr_html_(self) -> str:
        rows = [
            (
                node.name,
                " × ".join(f"{axis} {n}" for axis, n in zip(node.axes, node.shape, strict=True)),
                node.operation,
                node.formula,
            )
            for node in self.nodes
        ]
        head = f"{notebook.isolated(self.source)} → {notebook.isolated(self.translation)}"
        nodes = notebook.table(["name", "shape", "operation", "formula"], rows)
        summary = f"{len(rows)} tensors, {len(self.steps)} steps of a search"
        return f"<p>{head}</p><details><summary>{summary}</summary>{nodes}</details>"

    def save(self, path: str | Path) -> None:
        """Write a safetensors file: the tensors, and all else as JSON in its metadata.

        A tensor of step 3 is named `step-3.NAME` there.
        """
        steps = {
            f"step-{number}.{name}": tensor
            for number, step in enumerate(self.steps)
            for name, tensor in step.items()
        }
        about = {
            "source": self.source,
            "translation": self.translation,
            "source_tokens": self.source_tokens,
            "target_tokens": self.target_tokens,
            "expected_tokens": self.expected_tokens,
            "nodes": [asdict(node) for node in self.nodes],
            "rows": [asdict(step) for step in self.rows],
            "expected_ids": self.expected_ids,
            "n_prompt": self.n_prompt,
            "labels": self.labels,
        }
        metadata = {"format": FORMAT, "trace": json.dumps(about, ensure_ascii=False)}
        content = encode_tensors(self.tensors | steps, metadata=metadata, must_be_finite=False)
        write_atomically(path, content)


def read_trace(path: str | Path) -> Trace:
    """Read what `Trace.save` wrote.

    Raises:
        FormatError: the file is missing, damaged, or no trace.
    """
    content = read_bytes(Path(path))
    metadata = read_metadata(content, path)
    if metadata.get("format") != FORMAT:
        raise FormatError(f"{path} is no trace of heed; Translator.trace(…).save(path) writes one.")
    tensors = decode_tensors(content, path, must_be_finite=False)
    try:
        return _trace(tensors, json.loads(metadata["trace"]))
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path} is damaged: its description does not fit: {error!r}.") from None


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
    nodes = [_node(values) for values in about.pop("nodes")]
    rows = [Rows(**values) for values in about.pop("rows")]
    # A file has its tensors in the order of the alphabet.
    ordered = {node.name: tensors[node.name] for node in nodes}
    return Trace(
        **about,
        nodes=nodes,
        tensors=ordered,
        steps=[steps[number] for number in sorted(steps)],
        rows=rows,
    )


@dataclass(frozen=True)
class Tracer:
    """Makes traces with one model.

    Attributes:
        model: in torch, in evaluation mode.
        src_vocab: pieces of the source side.
        tgt_vocab: pieces of the target side.
        has_source: False for a language model.
    """

    model: Traceable
    src_vocab: Vocab
    tgt_vocab: Vocab
    has_source: bool = True

    @cached_property
    def stages(self) -> Stages:
        """What the model's tensors are."""
        return Stages(self.model.network.config, has_source=self.has_source)

    def forced(
        self, source: str, src_ids: list[int], translation: str, tgt_ids: list[int]
    ) -> Trace:
        """Trace a given translation: all target positions in one pass.

        Args:
            source: the text.
            src_ids: its ids, `<eos>` last.
            translation: the text of the target.
            tgt_ids: its ids, without `<bos>` and `<eos>`.
        """
        tgt_in = [self.tgt_vocab.bos_id, *tgt_ids]
        tgt_out = [*tgt_ids, self.tgt_vocab.eos_id]
        nodes, tensors = self.caught(src_ids, tgt_in)
        return Trace(
            source=source,
            translation=translation,
            source_tokens=self.src_vocab.pieces(src_ids),
            target_tokens=self.tgt_vocab.pieces(tgt_in),
            expected_tokens=self.tgt_vocab.pieces(tgt_out),
            expected_ids=tgt_out,
            nodes=nodes,
            tensors=tensors,
        )

    def read(self, source: str, src_ids: list[int]) -> Trace:
        """Trace a model that only reads.

        Args:
            source: the text.
            src_ids: its ids, `<eos>` last.
        """
        nodes, tensors = self.caught(src_ids, [])
        return Trace(
            source=source,
            translation="",
            source_tokens=self.src_vocab.pieces(src_ids),
            target_tokens=[],
            expected_tokens=[],
            nodes=nodes,
            tensors=tensors,
        )

    def continued(self, prompt: str, continuation: str, ids: list[int], n_prompt: int) -> Trace:
        """Trace a text that a language model reads.

        Args:
            prompt: its beginning.
            continuation: the rest.
            ids: of both.
            n_prompt: how many of them the prompt gave.
        """
        tgt_in = [self.tgt_vocab.bos_id, *ids[:-1]]
        nodes, tensors = self.caught([], tgt_in)
        return Trace(
            source=prompt,
            translation=continuation,
            source_tokens=[],
            target_tokens=self.tgt_vocab.pieces(tgt_in),
            expected_tokens=self.tgt_vocab.pieces(ids),
            expected_ids=ids,
            nodes=nodes,
            tensors=tensors,
            n_prompt=n_prompt,
        )

    def searched(
        self,
        source: str,
        src_ids: list[int],
        options: DecodeOptions,
        *,
        steps: bool = False,
        searches: Decodable | None = None,
    ) -> Trace:
        """Search for a translation and trace the best one.

        Args:
            source: the text.
            src_ids: its ids, `<eos>` last.
            options: of the search.
            steps: search in torch, and keep the tensors of every step too.
            searches: the same model where it searches faster, without `steps`; None = torch.
        """
        stepwise = Stepwise(self.model, self.stages)
        searching = stepwise if steps else searches
        best = self.best(src_ids, options, model=searching)
        text = normalize(self.tgt_vocab.decode(best.ids))
        found = self.forced(source, src_ids, text, best.ids)
        return replace(found, steps=stepwise.steps, rows=stepwise.rows)

    def caught(self, src_ids: list[int], tgt_in: list[int]) -> tuple[list[Node], dict[str, Floats]]:
        """All tensors of one pass.

        Args:
            src_ids: of the source.
            tgt_in: ids of the target, `<bos>` first.

        Returns:
            What each tensor is, and their values, in the order of the computation.
        """
        network = self.model.network
        src, forced = (torch.tensor([ids], dtype=torch.long) for ids in (src_ids, tgt_in))

        def run() -> None:
            logits = network.teacher_forced(src, forced)
            see(network, "log_probs", logits.log_softmax(dim=-1))

        return caught(network, self.stages, run)

    def best(
        self, src_ids: list[int], options: DecodeOptions, *, model: Decodable | None = None
    ) -> Hypothesis:
        """Search for the best translation.

        Args:
            src_ids: of the source, `<eos>` last.
            options: of the search.
            model: that searches; None = the one that is traced.
        """
        vocab = self.tgt_vocab
        ((best, *_),) = decode(
            model or self.model,
            padded([src_ids], self.src_vocab.pad_id),
            options,
            bos_id=vocab.bos_id,
            eos_id=vocab.eos_id,
            pad_id=vocab.pad_id,
            forbidden=never_written(vocab),
        )
        return best


def caught(
    network: TorchNetwork, stages: Stages, run: Callable[[], Any]
) -> tuple[list[Node], dict[str, Floats]]:
    """Every named tensor that `network` computes while `run` runs, of the first row of the batch.

    Args:
        network: in evaluation mode.
        stages: what its tensors are.
        run: computes something with it.

    Returns:
        What each tensor is, and their values, in the order of the computation.
    """
    ancestry = Ancestry(network)
    nodes: dict[str, Node] = {}
    tensors: dict[str, Floats] = {}

    def hear(name: str, tensor: Tensor) -> None:
        if not tensor.numel():  # the source of a language model
            return
        stage = stages.of(name)
        value = array(tensor[0])
        nodes[name] = Node(
            name=name,
            shape=value.shape,
            axes=stage.axes,
            kind=stage.kind,
            operation=stage.operation,
            formula=stage.formula,
            inputs=ancestry.add(name, tensor),
        )
        tensors[name] = value

    # The graph says what follows from what; the tensors that gradients would need are not kept.
    unsaved = saved_tensors_hooks(lambda tensor: None, lambda nothing: nothing)
    with torch.inference_mode(False), torch.enable_grad(), unsaved, listening(network, hear):
        run()
    return list(nodes.values()), tensors


def _node(values: dict[str, Any]) -> Node:
    """A node from JSON, whose lists were tuples."""
    lists = {name: tuple(values[name]) for name in ("shape", "axes", "inputs")}
    return Node(**(values | lists))
