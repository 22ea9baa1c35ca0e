"""Initializes the tables of a model with given directions instead of random ones."""

from collections.abc import Mapping

import torch
from torch import Tensor

from heed.model.config import AnyConfig
from heed.model.families import plan
from heed.model.plan import Weight


def own_tables(config: AnyConfig) -> list[Weight]:
    """The embeddings, and the output layer unless it is one of them."""
    return [w for w in plan(config) if w.role in ("table", "output") and w.tied_to is None]


def own_target_rows(config: AnyConfig) -> int:
    """Rows of the target's own table; 0 = the source's table serves both sides."""
    has_own = any(weight.side == "tgt" for weight in own_tables(config))
    return config.tgt_vocab_size if has_own else 0


def with_rows(
    weights: Mapping[str, Tensor], config: AnyConfig, src: Tensor, tgt: Tensor
) -> dict[str, Tensor]:
    """Weights whose tables have these directions; the others stay as they are.

    Args:
        weights: those of a fresh model, by name.
        config: its shape.
        src: rows of length 1 or 0, `(src_vocab_size, d_model)`.
        tgt: the same for the target's own table, `(own_target_rows, d_model)`.

    Returns:
        The weights; rows have the length of random ones, and a row of zeros keeps the old row.
    """
    rows_of = {"src": src, "tgt": tgt}
    found = dict(weights)
    for weight in own_tables(config):
        old, table = found[weight.name], rows_of[weight.side]
        length = old.norm(dim=1).mean()
        found[weight.name] = torch.where(table.any(dim=1, keepdim=True), table * length, old)
    return found
