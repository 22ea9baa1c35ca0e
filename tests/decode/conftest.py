"""Small models to search: one whose answers can be worked out by hand, one with real arithmetic."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from heed.decode.constraints import Choice, Constraints
from heed.decode.options import DecodeOptions
from heed.model.decodable import TorchDecodable
from heed.model.interface import ArrayNextTokens


@dataclass
class HashState:
    kinds: np.ndarray
    hashes: np.ndarray
    beam_size: int


class HashModel:
    """Log-probs from a table of logits, by the source's first id and a hash of all tokens so far.

    The answer depends on the whole history, so a row selected wrongly shows; and on nothing else,
    so results can be compared exactly.

    Args:
        table: logits, `(n_kinds, n_hashes, vocab_size)`.
    """

    length_limit: int | None = None

    def __init__(self, table: np.ndarray) -> None:
        self.table = np.array(table, dtype=np.float32)
        self.rows_computed = 0

    def start(
        self, src: np.ndarray, *, beam_size: int = 1, required_ids: np.ndarray | None = None
    ) -> HashState:
        return HashState(src[:, 0], np.zeros(len(src) * beam_size, dtype=np.int64), beam_size)

    def step(self, state: HashState, tokens: np.ndarray) -> ArrayNextTokens:
        self.rows_computed += len(tokens)
        state.hashes = (state.hashes * 31 + tokens * 7 + 1) % self.table.shape[1]
        return ArrayNextTokens(
            log_softmax(self.table[state.kinds.repeat(state.beam_size), state.hashes])
        )

    def extend(self, state: HashState, tokens: np.ndarray) -> None:
        for column in tokens.T:
            self.step(state, column)

    def select(self, state: HashState, rows: np.ndarray, sources: np.ndarray | None = None) -> None:
        if sources is None:
            sources = np.arange(len(state.kinds))
        assert (rows // state.beam_size == sources.repeat(state.beam_size)).all()
        state.hashes, state.kinds = state.hashes[rows], state.kinds[sources]

    def teacher_forced(self, src: np.ndarray, tgt_in: np.ndarray) -> ArrayNextTokens:
        state = self.start(src)
        steps = [self.step(state, tokens).all_log_probs() for tokens in tgt_in.T]
        return ArrayNextTokens(np.stack(steps, axis=1).reshape(tgt_in.size, -1))

    def log_probs_after(self, kind: int, tokens: list[int]) -> list[float]:
        """One row at a time, for the slow but plain searches of the tests."""
        state = HashState(np.array([kind]), np.zeros(1, dtype=np.int64), 1)
        for token in tokens:
            following = self.step(state, np.array([token]))
        return following.all_log_probs()[0].tolist()


def log_softmax(logits: np.ndarray) -> np.ndarray:
    exact = logits.astype(np.float64)
    exact -= exact.max(axis=-1, keepdims=True)
    return (exact - np.log(np.exp(exact).sum(axis=-1, keepdims=True))).astype(np.float32)


class GRUModel(nn.Module):
    """A random recurrent translator, to stand behind `TorchDecodable`."""

    config = SimpleNamespace(length_limit=None)

    def __init__(self, vocab_size: int, *, d_model: int = 16, pad_id: int = 0) -> None:
        super().__init__()
        self.pad_id = pad_id
        self.embed = nn.Embedding(vocab_size, d_model)
        self.encode = nn.Linear(d_model, d_model)
        self.cell = nn.GRUCell(d_model, d_model)
        self.project = nn.Linear(d_model, vocab_size)
        with torch.no_grad():
            self.project.weight *= 8  # clear preferences, as a trained model has

    def start(self, src: Tensor, *, beam_size: int = 1) -> dict[str, Tensor]:
        is_word = (src != self.pad_id)[:, :, None]
        memory = self.encode((self.embed(src) * is_word).sum(dim=1)).tanh()
        return {"hidden": memory.repeat_interleave(beam_size, dim=0)}

    def step(self, state: dict[str, Tensor], tokens: Tensor) -> Tensor:
        state["hidden"] = self.cell(self.embed(tokens), state["hidden"])
        return self.project(state["hidden"])

    def select(self, state: dict[str, Tensor], rows: Tensor, sources: Tensor | None = None) -> None:
        state["hidden"] = state["hidden"][rows]

    def teacher_forced(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        state = self.start(src)
        return torch.stack([self.step(state, tokens) for tokens in tgt_in.unbind(1)], dim=1)


def random_hash_model(
    seed: int, *, vocab_size: int, n_kinds: int = 1, n_hashes: int = 997, sharpness: float = 2.0
) -> HashModel:
    table = np.random.default_rng(seed).standard_normal((n_kinds, n_hashes, vocab_size))
    return HashModel(table * sharpness)


def random_gru_model(seed: int, *, vocab_size: int) -> TorchDecodable:
    torch.manual_seed(seed)
    return TorchDecodable(GRUModel(vocab_size).eval(), torch.device("cpu"))


def all_complete(
    model: HashModel, *, kind: int, bos_id: int, eos_id: int, limit: int
) -> Iterator[tuple[list[int], float]]:
    """Every complete answer of at most `limit` tokens with its log-prob, ids without `<eos>`."""
    vocab_size = model.table.shape[-1]
    words = [word for word in range(vocab_size) if word != eos_id]
    for length in range(limit):
        for ids in product(words, repeat=length):
            sequence = [bos_id, *ids, eos_id]
            parts = [
                model.log_probs_after(kind, sequence[: place + 1])[sequence[place + 1]]
                for place in range(len(sequence) - 1)
            ]
            yield list(ids), math.fsum(parts)


def plain_beam(
    model: HashModel,
    *,
    kind: int,
    beam_size: int,
    bos_id: int,
    eos_id: int,
    limit: int,
    penalty: Callable[..., Any],
) -> list[tuple[list[int], float]]:
    """A beam search of one source in plain lists; stops when `beam_size` hypotheses have ended."""
    live: Any
    live, ended, cut = [([], 0.0)], [], []
    for length in range(1, limit + 1):
        candidates = []
        for slot, (ids, total) in enumerate(live):
            for token, log_prob in enumerate(model.log_probs_after(kind, [bos_id, *ids])):
                candidates.append((-(total + log_prob), slot, token))
        candidates.sort()
        for total, slot, token in candidates[:beam_size]:
            if token == eos_id:
                ended.append((live[slot][0], -total / penalty(length)))
        going = [found for found in candidates if found[2] != eos_id][:beam_size]
        live = [([*live[slot][0], token], -total) for total, slot, token in going]
        if len(ended) >= beam_size:
            break
    else:
        cut = [(ids, total / penalty(limit)) for ids, total in live]
    return sorted(ended, key=lambda a: -a[1]) + sorted(cut, key=lambda a: -a[1])


def make_choice(
    log_probs: list[float] | np.ndarray,
    tokens: list[int] | tuple[()] = (),
    *,
    prefix: list[int] | tuple[()] = (),
    forbidden: list[int] | tuple[()] = (),
    **options: object,
) -> Choice:
    """What rows of these log-probs may choose from, each after `tokens`; `<eos>` is 1."""
    rows = np.atleast_2d(np.array(log_probs, dtype=np.float32))
    constraints = Constraints.of(
        DecodeOptions(**options), eos_id=1, forbidden=forbidden, prefixes=[prefix] * len(rows)
    )
    so_far = np.array([[*tokens]] * len(rows), dtype=np.int64)
    return constraints.apply(ArrayNextTokens(rows), so_far, np.arange(len(rows)))


@pytest.fixture(scope="session")
def fakes() -> SimpleNamespace:
    return SimpleNamespace(
        HashModel=HashModel,
        choice=make_choice,
        hash_model=random_hash_model,
        gru_model=random_gru_model,
        all_complete=all_complete,
        plain_beam=plain_beam,
    )
