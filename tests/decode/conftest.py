"""Small models to search: one whose answers can be worked out by hand, one with real arithmetic."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn


@dataclass
class HashState:
    kinds: Tensor
    hashes: Tensor
    beam_size: int


class HashModel:
    """Logits from a table, looked up by the source's first id and a hash of all tokens so far.

    The answer depends on the whole history, so a row selected wrongly shows; and on nothing else,
    so results can be compared exactly.

    Args:
        table: logits, `(n_kinds, n_hashes, vocab_size)`.
    """

    def __init__(self, table: Tensor) -> None:
        self.table = table
        self.rows_computed = 0

    def start(self, src: Tensor, *, beam_size: int = 1) -> HashState:
        return HashState(src[:, 0], torch.zeros(len(src) * beam_size, dtype=torch.long), beam_size)

    def step(self, state: HashState, tokens: Tensor) -> Tensor:
        self.rows_computed += len(tokens)
        state.hashes = (state.hashes * 31 + tokens * 7 + 1) % self.table.size(1)
        return self.table[state.kinds.repeat_interleave(state.beam_size), state.hashes]

    def select(self, state: HashState, rows: Tensor, sources: Tensor | None = None) -> None:
        if sources is None:
            sources = torch.arange(len(state.kinds))
        assert torch.equal(rows // state.beam_size, sources.repeat_interleave(state.beam_size))
        state.hashes, state.kinds = state.hashes[rows], state.kinds[sources]

    def forced(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        state = self.start(src)
        return torch.stack([self.step(state, tokens) for tokens in tgt_in.unbind(1)], dim=1)

    def log_probs_after(self, kind: int, tokens: list[int]) -> list[float]:
        """One row at a time, for the slow but plain searches of the tests."""
        state = HashState(torch.tensor([kind]), torch.zeros(1, dtype=torch.long), 1)
        for token in tokens:
            logits = self.step(state, torch.tensor([token]))
        return logits[0].log_softmax(-1).tolist()


class GRUModel(nn.Module):
    """A random recurrent translator behind the same four methods."""

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

    def forced(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        state = self.start(src)
        return torch.stack([self.step(state, tokens) for tokens in tgt_in.unbind(1)], dim=1)


def random_hash_model(
    seed: int, *, vocab_size: int, n_kinds: int = 1, n_hashes: int = 997, sharpness: float = 2.0
) -> HashModel:
    generator = torch.Generator().manual_seed(seed)
    return HashModel(torch.randn(n_kinds, n_hashes, vocab_size, generator=generator) * sharpness)


def random_gru_model(seed: int, *, vocab_size: int) -> GRUModel:
    torch.manual_seed(seed)
    return GRUModel(vocab_size).eval()


def all_complete(
    model: HashModel, *, kind: int, bos_id: int, eos_id: int, limit: int
) -> Iterator[tuple[list[int], float]]:
    """Every complete answer of at most `limit` tokens with its log-prob, ids without `<eos>`."""
    vocab_size = model.table.size(-1)
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
    model: HashModel, *, kind: int, beam_size: int, bos_id: int, eos_id: int, limit: int, penalty
) -> list[tuple[list[int], float]]:
    """A beam search of one source in plain lists; stops when `beam_size` hypotheses have ended."""
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


@pytest.fixture(scope="session")
def fakes() -> SimpleNamespace:
    return SimpleNamespace(
        HashModel=HashModel,
        hash_model=random_hash_model,
        gru_model=random_gru_model,
        all_complete=all_complete,
        plain_beam=plain_beam,
    )
