"""Predictions of each layer as if it were the last: logit lens, and the nearest embeddings.

A layer's output replaces that of the last layer, so the model itself computes the rest: its final
norm and its output matrix.
"""

import re
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from heed.errors import UsageError
from heed.explain.causes.effects import array
from heed.explain.causes.pair import Pair
from heed.explain.causes.parts import layers_of
from heed.model.interface import Floats
from heed.model.trace import editing, recording
from heed.text.vocab import Vocab
from heed.translate.arguments import require_whole

EMBEDDINGS = ("embed_src.tokens.weight", "embed.tokens.weight")
"""Names of the table of source pieces; the first one that a model has is used."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The prediction of one layer.

    Attributes:
        layer: its name.
        pieces: at each position, the most probable or nearest pieces, best first.
        values: their probabilities or cosines, `(length, k)`.
        own: the probability or cosine of the right piece: the expected target token, or the source
            token itself, `(length,)`.
    """

    layer: str
    pieces: list[list[str]]
    values: Floats
    own: Floats


@torch.no_grad()
def logit_lens(pair: Pair, *, k: int = 5) -> list[Reading]:
    """The most probable next pieces after each decoder layer; the last layer's are the model's own.

    The layers after it are bypassed: its states go into the final norm and the output matrix.

    Args:
        pair: the sentence.
        k: number of pieces.

    Returns:
        One reading per decoder layer, first to last.

    Raises:
        UsageError: the model has no stack of decoder layers, or `k` is not a whole number from 1.

    Source: nostalgebraist 2020, "interpreting GPT: the logit lens".
    """
    require_whole(k, "k", 1)
    names, outputs = _outputs(pair, "decoder")
    with editing(pair.network, {f"{names[-1]}.out": lambda _: outputs}):
        log_probs = pair.log_probs(len(names))
    expected = pair.of_expected(log_probs)
    return _readings(pair.tgt_vocab, names, log_probs.exp(), expected.exp(), k)


@torch.no_grad()
def nearest_embeddings(pair: Pair, *, k: int = 5) -> list[Reading]:
    """The pieces whose embeddings have the directions nearest to each encoder layer's output.

    Training does not make the encoder's output an embedding. If a position is still nearest to its
    own piece, its layers have added little to it. If both languages share a table, pieces of the
    target language can be near.

    Args:
        pair: the sentence.
        k: number of pieces.

    Returns:
        One reading per encoder layer, first to last; `values` are cosines.

    Raises:
        UsageError: the model has no stack of encoder layers, or `k` is not a whole number from 1.
    """
    require_whole(k, "k", 1)
    names, outputs = _outputs(pair, "encoder")
    with (
        editing(pair.network, {f"{names[-1]}.out": lambda _: outputs}),
        recording(pair.network, *(name for name in pair.shapes if name.startswith("memory"))) as it,
    ):
        pair.log_probs(len(names))
    states = [*it.values()][-1]
    weights = dict(pair.network.named_parameters())
    table = next(weights[name] for name in EMBEDDINGS if name in weights)
    cosines = F.normalize(states, dim=-1) @ F.normalize(table, dim=-1).mT
    own = cosines.gather(-1, pair.rows(pair.src_ids, len(names))[..., None])[..., 0]
    return _readings(pair.tracer.src_vocab, names, cosines, own, k)


def _outputs(pair: Pair, side: str) -> tuple[list[str], Tensor]:
    """The layers of a stack, and the output of each, `(n_layers, length, d_model)`."""
    names = [name for name in layers_of(pair) if re.fullmatch(rf"{side}\.\d+", name)]
    if not names:
        raise UsageError(f"This model has no stack of {side} layers.")
    with recording(pair.network, *(f"{name}.out" for name in names)) as caught:
        pair.log_probs()
    return names, torch.cat([caught[f"{name}.out"] for name in names])


def _readings(vocab: Vocab, names: list[str], values: Tensor, own: Tensor, k: int) -> list[Reading]:
    """Make the readings of layers.

    Args:
        vocab: names the pieces.
        names: the names of the layers.
        values: a number for each piece, `(n_layers, length, vocab_size)`.
        own: the numbers of the right pieces, `(n_layers, length)`.
        k: number of pieces.
    """
    best, ids = values.topk(min(k, values.size(-1)), dim=-1)
    return [
        Reading(
            layer=name,
            pieces=[vocab.pieces(row) for row in ids[layer].tolist()],
            values=array(best[layer]),
            own=array(own[layer]),
        )
        for layer, name in enumerate(names)
    ]
