"""`Stepwise`: a model that records the tensors and rows of every step of a search."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from heed.model.interface import Floats, Ids, NextTokens, State
from heed.model.stages import Stages
from heed.model.trace import listening
from heed.translate.load import Traceable

MOST_BYTES = 1 << 30
"""Of the tensors of all steps: a gigabyte."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rows:
    """The rows of one step of a search; each continues a hypothesis by one token.

    Attributes:
        parents: for each row, the row of the previous step that it continues; in the first step,
            its own index.
        prefixes: ids of each row; the last one was read in this step.
    """

    parents: list[int]
    prefixes: list[list[int]]


class Stepwise:
    """A model that records the tensors of each step of one search of one source.

    Args:
        model: the model to search with.
        stages: descriptions of its tensors.

    Attributes:
        steps: by step, the tensors with rows as their first axis, `(rows, …)`; a tensor that all
            rows share, such as keys of the source, has one row. In a long search the last steps are
            missing: those beyond a gigabyte.
        rows: of every step.
    """

    def __init__(self, model: Traceable, stages: Stages) -> None:
        self._model = model
        self._stages = stages
        self._size = 0
        self._read: dict[str, Floats] = {}
        self._parents: Ids = np.arange(0)
        self._prefixes: list[list[int]] = []
        self.steps: list[dict[str, Floats]] = []
        self.rows: list[Rows] = []

    @property
    def length_limit(self) -> int | None:
        """Most tokens of a side; see `Decodable.length_limit`."""
        return self._model.length_limit

    def start(self, src: Ids, *, beam_size: int = 1, required_ids: Ids | None = None) -> State:
        """Read the sources; see `Decodable.start`."""
        n_rows = len(src) * beam_size
        self._parents, self._prefixes = np.arange(n_rows), [[] for _ in range(n_rows)]
        with self._kept(self._read):
            return self._model.start(src, beam_size=beam_size, required_ids=required_ids)

    def step(self, state: State, tokens: Ids) -> NextTokens:
        """Advance every row by one token; see `Decodable.step`."""
        self._prefixes = _longer(self._prefixes, tokens[:, None])
        self.rows.append(Rows(parents=self._parents.tolist(), prefixes=self._prefixes))
        self._parents = np.arange(len(tokens))
        if self._size > MOST_BYTES:
            return self._model.step(state, tokens)
        # The encoder's tensors belong to the first step.
        step = self._read if not self.steps else {}
        with self._kept(step):
            found = self._model.step(state, tokens)
        self.steps.append(step)
        return found

    def extend(self, state: State, tokens: Ids) -> None:
        """Advance every row by several tokens; see `Decodable.extend`."""
        self._prefixes = _longer(self._prefixes, tokens)
        self._model.extend(state, tokens)

    def select(self, state: State, rows: Ids, sources: Ids | None = None) -> None:
        """Keep, repeat or reorder rows; see `Decodable.select`."""
        self._parents = self._parents[rows]
        self._prefixes = [self._prefixes[row] for row in rows.tolist()]
        self._model.select(state, rows, sources)

    def teacher_forced(self, src: Ids, tgt_in: Ids) -> NextTokens:
        """Score given targets; see `Decodable.teacher_forced`."""
        return self._model.teacher_forced(src, tgt_in)

    @contextmanager
    def _kept(self, step: dict[str, Floats]) -> Iterator[None]:
        """Add the tensors computed inside the block to `step`."""

        def hear(name: str, tensor: Tensor) -> None:
            value = step[name] = array(self._with_rows(name, tensor))
            self._size += value.nbytes

        with listening(self._model.network, hear):
            yield

    def _with_rows(self, name: str, tensor: Tensor) -> Tensor:
        """The tensor with rows as its first axis, even if all rows of a source are one."""
        axes, n_rows = self._stages.of(name).axes, len(self._prefixes)
        is_together = "tgt" in axes and len(tensor) == 1 < n_rows and tensor.dim() > len(axes)
        return tensor.transpose(0, 1 + axes.index("tgt")) if is_together else tensor


def array(tensor: Tensor) -> Floats:
    """A copy in NumPy, float32."""
    found: Floats = tensor.detach().to("cpu", torch.float32, copy=True).numpy()
    return found


def _longer(prefixes: list[list[int]], tokens: Ids) -> list[list[int]]:
    """Each prefix with more tokens, `(rows, n_tokens)`."""
    return [[*ids, *more] for ids, more in zip(prefixes, tokens.tolist(), strict=True)]
