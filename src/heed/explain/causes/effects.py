"""The effects of a change of a model: another translation, other probabilities.

`parts.py` lists the possible changes; `importance` switches off every part in turn.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heed.errors import UsageError
from heed.explain.causes.pair import Pair
from heed.explain.causes.parts import (
    Cause,
    Feature,
    Head,
    Layer,
    Sublayer,
    features_of,
    heads_of,
    layers_of,
    require_causes,
    sublayers_of,
)
from heed.model.interface import Floats
from heed.model.trace import Edit, editing, recording
from heed.translate.arguments import require_whole
from heed.translate.translator import Translator


@dataclass(frozen=True, kw_only=True)
class Effect:
    """The effect of a change.

    Attributes:
        source_tokens: the pieces that the encoder reads.
        tokens: the pieces of the original translation, `<eos>` last.
        before: log-prob of each of them, `(tgt_len,)`.
        after: the same in the changed model, `(tgt_len,)`.
        likeliest: the most probable piece of the changed model at each position.
        likeliest_log_probs: their log-probs, `(tgt_len,)`.
        translation: the original translation.
        new_translation: the translation of the changed model.
    """

    source_tokens: list[str]
    tokens: list[str]
    before: Floats
    after: Floats
    likeliest: list[str]
    likeliest_log_probs: Floats
    translation: str
    new_translation: str

    @property
    def lost(self) -> float:
        """The decrease of the log-prob of the whole original translation, in nats."""
        return float((self.before - self.after).sum(dtype=float))


def effect(
    translator: Translator,
    source: str,
    causes: Sequence[Cause],
    translation: str | None = None,
    *,
    target_lang: str | None = None,
    **options: Any,
) -> Effect:
    """Change a model, translate again, and compare.

    Args:
        translator: a translator loaded from a folder.
        source: a line.
        causes: the changes, all applied together; at the same tensor, in this order.
        translation: the text whose probabilities are compared; None = the model's own translation.
        target_lang: one of the model's target languages.
        **options: fields of `DecodeOptions`.

    Raises:
        DataError: the source or the translation is too long to be read in one piece.
        UsageError: the model lacks a part to change, or an argument has a wrong type.
    """
    require_causes(causes)
    pair = Pair.of(translator, source, translation, target_lang=target_lang, **options)
    return effect_on(pair, causes)


@torch.no_grad()
def effect_on(pair: Pair, causes: Sequence[Cause]) -> Effect:
    """The same, for a pair that is already encoded."""
    before = pair.token_log_probs()[0]
    with changed(pair, causes):
        log_probs = pair.log_probs()
    with changed(pair, causes):
        found = pair.search()
    values, ids = log_probs[0].max(dim=-1)
    return Effect(
        source_tokens=pair.source_tokens,
        tokens=pair.expected_tokens,
        before=array(before),
        after=array(pair.of_expected(log_probs)[0]),
        likeliest=pair.tgt_vocab.pieces(ids.tolist()),
        likeliest_log_probs=array(values),
        translation=pair.translation,
        new_translation=pair.text_of(found),
    )


@torch.no_grad()
def attention_under(pair: Pair, causes: Sequence[Cause], attention: str) -> Floats:
    """The weights of an attention in the changed model, over the original translation.

    Args:
        pair: the sentence.
        causes: the changes, all applied together; none = the unchanged model.
        attention: a sublayer, such as `decoder.0.cross_attention`.

    Returns:
        Its weights, `(n_heads, q_len, k_len)`.

    Raises:
        UsageError: the model has no such part or no such attention.
    """
    name = f"{attention}.weights"
    if name not in pair.shapes:
        raise UsageError(f"The model has no attention {attention} with weights; trace() lists all.")
    with changed(pair, causes), recording(pair.network, name) as found:
        pair.log_probs()
    return array(found[name][0])


@contextmanager
def changed(pair: Pair, causes: Sequence[Cause]) -> Iterator[None]:
    """Change the model of a pair, for one pass or one search inside the block."""
    require_causes(causes)
    with ExitStack() as stack:
        for cause in causes:
            stack.enter_context(editing(pair.network, cause.edits(pair)))
        yield


@torch.no_grad()
def log_probs_under(pair: Pair, causes: Sequence[Cause]) -> Floats:
    """Log-probs of the translation's tokens under each change separately.

    Each changed model is one row of the batch: as exact as one at a time, and much faster.

    Args:
        pair: the sentence.
        causes: changes.

    Returns:
        `(n_causes, tgt_len)`.
    """
    require_causes(causes)
    found = [torch.empty(0, len(pair.tgt_out_ids))]
    for first in range(0, len(causes), pair.n_rows_at_once):
        portion = causes[first : first + pair.n_rows_at_once]
        by_name: dict[str, dict[int, Edit]] = {}
        for row, cause in enumerate(portion):
            for name, edit in cause.edits(pair).items():
                by_name.setdefault(name, {})[row] = edit
        edits = {name: _in_rows(of_rows) for name, of_rows in by_name.items()}
        with editing(pair.network, edits):
            found.append(pair.token_log_probs(len(portion)).cpu().float())
    return array(torch.cat(found))


def _in_rows(edits: Mapping[int, Edit]) -> Edit:
    """An edit that applies a different edit to each of some rows of the batch."""

    def changed_rows(tensor: Tensor) -> Tensor:
        new = tensor.clone()
        for row, edit in edits.items():
            new[row : row + 1] = edit(tensor[row : row + 1])
        return new

    return changed_rows


@dataclass(frozen=True, kw_only=True)
class Importance:
    """How much log-prob the translation loses without each part, in nats; exact.

    Attributes:
        tokens: the pieces of the translation, `<eos>` last.
        heads: for each attention, the loss without each head, `(n_heads, tgt_len)`.
        sublayers: for each sublayer, the loss without it, `(tgt_len,)`.
        layers: for each layer, the loss if it is bypassed, `(tgt_len,)`.
        features: the strongest features, and the loss without each, `(tgt_len,)`.
    """

    tokens: list[str]
    heads: dict[str, Floats]
    sublayers: dict[str, Floats]
    layers: dict[str, Floats]
    features: list[tuple[Feature, Floats]]


def importance(pair: Pair, *, n_features: int = 0) -> Importance:
    """Switch off every head, every sublayer, every layer, and the strongest features, in turn.

    Args:
        pair: the sentence.
        n_features: number of features; they are chosen by `first_order`.

    Raises:
        UsageError: `n_features` is not a whole number from 0.

    Source: Michel et al. 2019, "Are Sixteen Heads Really Better than One?", section 3.2.
    """
    require_whole(n_features, "n_features", 0)
    heads = [
        Head(attention=name, head=head)
        for name, n_heads in heads_of(pair).items()
        for head in range(n_heads)
    ]
    sublayers = [Sublayer(name=name) for name in sublayers_of(pair)]
    layers = [Layer(name=name) for name in layers_of(pair)]
    features = _strongest(first_order(pair), n_features) if n_features else []
    causes: list[Cause] = [*heads, *sublayers, *layers, *features]
    with torch.no_grad():
        before = array(pair.token_log_probs()[0])
    rows = iter(before - log_probs_under(pair, causes))
    by_head = list(zip(heads, rows, strict=False))
    return Importance(
        tokens=pair.expected_tokens,
        heads={
            name: np.stack([lost for head, lost in by_head if head.attention == name])
            for name in heads_of(pair)
        },
        sublayers={each.name: next(rows) for each in sublayers},
        layers={each.name: next(rows) for each in layers},
        features=[(each, next(rows)) for each in features],
    )


def first_order(pair: Pair) -> dict[str, Floats]:
    """The log-prob that is lost without each feature, to first order: Σ a · ∂ log p / ∂a.

    It takes one pass for all features; switching them off takes one pass each.

    Returns:
        For each feed-forward network, `(d_ff,)`.

    Source: Molchanov et al. 2017, "Pruning Convolutional Neural Networks for Resource Efficient
        Inference", section 2.2.
    """
    gates = {
        name: torch.ones(width, requires_grad=True) for name, width in features_of(pair).items()
    }
    if not gates:
        return {}
    edits: dict[str, Edit] = {
        f"{name}.activated": lambda x, gate=gate: x * gate.to(x)  # type: ignore[misc]
        for name, gate in gates.items()
    }
    with torch.inference_mode(False), torch.enable_grad(), editing(pair.network, edits):
        total = pair.token_log_probs().sum()
    found = torch.autograd.grad(total, list(gates.values()))
    return {name: array(gradient) for name, gradient in zip(gates, found, strict=True)}


def _strongest(strengths: dict[str, Floats], count: int) -> list[Feature]:
    """The features of the largest strengths, either sign, largest first."""
    all_of_them = [
        (-abs(float(strength)), name, feature)
        for name, values in strengths.items()
        for feature, strength in enumerate(values)
    ]
    return [Feature(feed_forward=name, feature=i) for _, name, i in sorted(all_of_them)[:count]]


def array(tensor: Tensor) -> Floats:
    """Convert to NumPy, in float32."""
    found: Floats = tensor.detach().float().cpu().numpy()
    return found
