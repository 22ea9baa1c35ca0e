"""`Trace`: every named tensor of one translation, caught from the modules that translate.

`Translator.trace` makes one. The names are those of `heed.model.trace`, in files and on the page
too; what can be concluded from the numbers is in `heed.explain`. Needs torch.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heed.decode.batching import padded
from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.decode.state import Hypothesis
from heed.disk.files import read_bytes, write_atomically
from heed.disk.tensors import decode_tensors, encode_tensors, read_metadata
from heed.errors import FormatError
from heed.model.ancestry import Ancestry
from heed.model.interface import Decodable, Floats, Ids, NextTokens, State
from heed.model.network import TorchNetwork
from heed.model.stages import stage_of
from heed.model.trace import listening, see
from heed.text.normalize import normalize
from heed.text.vocab import Vocab
from heed.translate.load import Traceable
from heed.translate.search import never_written

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
        source: the text.
        translation: its translation, given or found.
        source_tokens: the pieces that the encoder reads, `<eos>` last.
        target_tokens: the pieces that the decoder reads, `<bos>` first.
        expected_tokens: the piece after each of these.
        nodes: what each tensor is.
        tensors: their values by name.
        steps: of a search, if asked for: the tensors of each step, which have an axis of rows in
            front, `(rows, …)`; those of the encoder are in the first.
    """

    source: str
    translation: str
    source_tokens: list[str]
    target_tokens: list[str]
    expected_tokens: list[str]
    nodes: list[Node]
    tensors: dict[str, Floats] = field(repr=False)
    steps: list[dict[str, Floats]] = field(default_factory=list, repr=False)

    def __getitem__(self, name: str) -> Floats:
        return self.tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def named(self, ending: str) -> dict[str, Floats]:
        """The tensors whose name ends so, such as all `cross_attention.weights`, in order."""
        return {name: tensor for name, tensor in self.items() if name.endswith(ending)}

    def node(self, name: str) -> Node:
        """What the tensor of this name is.

        Raises:
            KeyError: there is none.
        """
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)

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
    tensors: dict[str, Floats] = {}
    steps: dict[int, dict[str, Floats]] = {}
    for name, tensor in decode_tensors(content, path, must_be_finite=False).items():
        step, _, rest = name.partition(".")
        if step.startswith("step-"):
            steps.setdefault(int(step.removeprefix("step-")), {})[rest] = tensor
        else:
            tensors[name] = tensor
    about = json.loads(metadata["trace"])
    nodes = [_node(values) for values in about.pop("nodes")]
    # A file has its tensors in the order of the alphabet.
    ordered = {node.name: tensors[node.name] for node in nodes}
    return Trace(
        **about, nodes=nodes, tensors=ordered, steps=[steps[number] for number in sorted(steps)]
    )


@dataclass(frozen=True)
class Tracer:
    """Makes traces with one model.

    Attributes:
        model: in torch, in evaluation mode.
        src_vocab: pieces of the source side.
        tgt_vocab: pieces of the target side.
    """

    model: Traceable
    src_vocab: Vocab
    tgt_vocab: Vocab

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
        src, forced = torch.tensor([src_ids]), torch.tensor([tgt_in])
        network = self.model.network

        def run() -> None:
            logits = network.teacher_forced(src, forced)
            see(network, "log_probs", logits.log_softmax(dim=-1))

        nodes, tensors = caught(network, run)
        return Trace(
            source=source,
            translation=translation,
            source_tokens=self.src_vocab.pieces(src_ids),
            target_tokens=self.tgt_vocab.pieces(tgt_in),
            expected_tokens=self.tgt_vocab.pieces([*tgt_ids, self.tgt_vocab.eos_id]),
            nodes=nodes,
            tensors=tensors,
        )

    def searched(
        self, source: str, src_ids: list[int], options: DecodeOptions, *, steps: bool
    ) -> Trace:
        """Search for a translation and trace the best one.

        Args:
            source: the text.
            src_ids: its ids, `<eos>` last.
            options: of the search.
            steps: keep the tensors of every step of the search too.
        """
        stepwise = Stepwise(self.model)
        best = self._best(stepwise if steps else self.model, src_ids, options)
        text = normalize(self.tgt_vocab.decode(best.ids))
        found = self.forced(source, src_ids, text, best.ids)
        return replace(found, steps=stepwise.steps) if steps else found

    def _best(self, model: Decodable, src_ids: list[int], options: DecodeOptions) -> Hypothesis:
        vocab = self.tgt_vocab
        ((best, *_),) = decode(
            model,
            padded([src_ids], self.src_vocab.pad_id),
            options,
            bos_id=vocab.bos_id,
            eos_id=vocab.eos_id,
            pad_id=vocab.pad_id,
            forbidden=never_written(vocab),
        )
        return best


def caught(network: TorchNetwork, run: Callable[[], Any]) -> tuple[list[Node], dict[str, Floats]]:
    """Every named tensor that `network` computes while `run` runs, of the first row of the batch.

    Args:
        network: in evaluation mode.
        run: computes something with it.

    Returns:
        What each tensor is, and their values, in the order of the computation.
    """
    ancestry = Ancestry(network)
    nodes: dict[str, Node] = {}
    tensors: dict[str, Floats] = {}

    def hear(name: str, tensor: Tensor) -> None:
        stage = stage_of(name)
        value = _array(tensor[0])
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

    with torch.inference_mode(False), torch.enable_grad(), listening(network, hear):
        run()
    return list(nodes.values()), tensors


class Stepwise:
    """A model that keeps the tensors of each step of one search.

    Args:
        model: that searches.

    Attributes:
        steps: by step, the tensors with an axis of rows in front, `(rows, …)`.
    """

    def __init__(self, model: Traceable) -> None:
        self._model = model
        self.steps: list[dict[str, Floats]] = []
        self._n_stepped = 0

    def start(self, src: Ids, *, beam_size: int = 1, required_ids: Ids | None = None) -> State:
        """Read the sources; see `Decodable.start`."""
        with self._kept({}):
            return self._model.start(src, beam_size=beam_size, required_ids=required_ids)

    def step(self, state: State, tokens: Ids) -> NextTokens:
        """Advance every row by one token; see `Decodable.step`."""
        # The encoder's tensors belong to the first step.
        is_first = len(self.steps) == 1 and self._n_stepped == 0
        self._n_stepped += 1
        with self._kept(self.steps.pop() if is_first else {}):
            return self._model.step(state, tokens)

    def extend(self, state: State, tokens: Ids) -> None:
        """Advance every row by several tokens; see `Decodable.extend`."""
        self._model.extend(state, tokens)

    def select(self, state: State, rows: Ids, sources: Ids | None = None) -> None:
        """Keep, repeat or reorder rows; see `Decodable.select`."""
        self._model.select(state, rows, sources)

    def teacher_forced(self, src: Ids, tgt_in: Ids) -> NextTokens:
        """Score given targets; see `Decodable.teacher_forced`."""
        return self._model.teacher_forced(src, tgt_in)

    @contextmanager
    def _kept(self, step: dict[str, Floats]) -> Iterator[None]:
        """Add what is computed inside the block to `step`, which becomes the last one."""

        def hear(name: str, tensor: Tensor) -> None:
            step[name] = _array(tensor)

        with listening(self._model.network, hear):
            yield
        self.steps.append(step)


def _array(tensor: Tensor) -> Floats:
    """A copy in NumPy, float32."""
    array: Floats = tensor.detach().to("cpu", torch.float32, copy=True).numpy()
    return array


def _node(values: dict[str, Any]) -> Node:
    """A node from JSON, whose lists were tuples."""
    lists = {name: tuple(values[name]) for name in ("shape", "axes", "inputs")}
    return Node(**(values | lists))
