"""What must not matter: padding, company, the future, and whether steps were cached.

checks N4 and N5. Where tensors keep their shape the difference is exactly 0; where a kernel
sums in another order it is float64 rounding (1e-12) or float32 rounding (1e-5), as named.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from heed.model.masks import padding_mask
from heed.model.positions import POSITIONS
from heed.model.transformer import Transformer

Tiny = Callable[..., Transformer]

MODELS: dict[str, dict[str, Any]] = {
    **{f"{kind}, post-norm": {"positions": kind} for kind in POSITIONS},
    **{f"{kind}, pre-norm": {"positions": kind, "norm": "pre"} for kind in POSITIONS},
    "windowed, shaw": {"window": 2, "positions": "shaw", "max_distance": 1},
    "windowed, alibi": {"window": 2, "positions": "alibi"},
    "merged": {"decoder_attention": "merged"},
    "merged, pre-norm, same layer": {
        "decoder_attention": "merged",
        "norm": "pre",
        "cross_from": "same",
    },
    "merged, shaw, no feed-forward networks": {
        "decoder_attention": "merged",
        "positions": "shaw",
        "feed_forward": False,
    },
    "merged, alibi, cosine": {
        "decoder_attention": "merged",
        "positions": "alibi",
        "attention": "cosine",
    },
    "no feed-forward networks": {"feed_forward": False},
    "no feed-forward networks, pre-norm": {"feed_forward": False, "norm": "pre"},
    "shared layers": {"share_layers": "all"},
    "normalized rows of positions": {"normalize_positions": True},
    "same layer": {"cross_from": "same"},
    "same layer, pre-norm": {"cross_from": "same", "norm": "pre"},
    "deep encoder, shallow decoder": {"n_encoder_layers": 3, "n_decoder_layers": 1},
    "shallow encoder, deep decoder": {"n_encoder_layers": 1, "n_decoder_layers": 3},
    "odd head widths": {"n_heads": 3, "d_k": 2, "d_v": 5},
    "odd head widths, rotary": {"n_heads": 3, "d_k": 4, "d_v": 3, "positions": "rotary"},
    "untied, unequal vocabularies": {"tied": "none", "src_vocab_size": 17},
    "output tied, no bias": {"tied": "output", "bias": False, "src_vocab_size": 17},
    "swiglu, unscaled": {"activation": "swiglu", "scale_embedding": False},
    "gelu, one head": {"activation": "gelu", "n_heads": 1},
    "unscaled": {"attention": "unscaled"},
    "no norm": {"norm": "none"},
    "no residual connections": {"residual": False},
    "no residual connections, pre-norm": {"residual": False, "norm": "pre"},
    "no output projection": {"output_projection": False},
    "cosine": {"attention": "cosine"},
    "gaussian, rotary": {"attention": "gaussian", "positions": "rotary"},
    "linear": {"attention": "linear"},
    "linear, same layer, pre-norm": {"attention": "linear", "cross_from": "same", "norm": "pre"},
    "favor": {"attention": "favor"},
    "favor, rotary, odd head widths": {
        "attention": "favor",
        "positions": "rotary",
        "n_heads": 3,
        "d_k": 4,
        "d_v": 3,
        "n_features": 7,
    },
    "window of 1": {"window": 1},
    "window of 3, rotary, cosine": {"window": 3, "positions": "rotary", "attention": "cosine"},
    "average": {"decoder_self": "average", "positions": "learned"},
    "average, no FFN, pre-norm": {
        **{"decoder_self": "average", "average_feed_forward": False, "norm": "pre"},
        "cross_from": "same",
    },
    "ssru": {"decoder_self": "ssru"},
    "average, shaw": {"decoder_self": "average", "positions": "shaw"},
    "ssru, pre-norm, rotary": {"decoder_self": "ssru", "norm": "pre", "positions": "rotary"},
    "ssru, no bias": {"decoder_self": "ssru", "bias": False, "positions": "none"},
}
RECURRENT: dict[str, dict[str, Any]] = {
    f"rnn, {cell}, {attention}": {"family": "rnn", "cell": cell, "attention": attention}
    for cell in ("tanh", "lstm", "gru")
    for attention in ("none", "dot", "additive")
} | {
    "rnn, one direction": {"family": "rnn", "bidirectional": False},
    "rnn, as in the papers": {"family": "rnn", "residual": False},
}
DECODER_ONLY: dict[str, dict[str, Any]] = {
    **{f"decoder, {kind}": {"family": "decoder", "positions": kind} for kind in POSITIONS},
    "decoder, no norm": {"family": "decoder", "norm": "none", "output_projection": False},
    "decoder, windowed, alibi": {"family": "decoder", "window": 2, "positions": "alibi"},
    "decoder, shared layers": {"family": "decoder", "share_layers": "all"},
    "decoder, no feed-forward networks": {"family": "decoder", "feed_forward": False},
    "decoder, causal prefix": {"family": "decoder", "prefix": "causal"},
    "decoder, post-norm, untied": {"family": "decoder", "norm": "post", "tied": "none"},
    "decoder, linear": {"family": "decoder", "attention": "linear"},
    "decoder, favor": {"family": "decoder", "attention": "favor"},
    "decoder, favor, causal": {"family": "decoder", "attention": "favor", "prefix": "causal"},
    "decoder, window": {"family": "decoder", "window": 2},
    "decoder, window, causal prefix": {"family": "decoder", "window": 1, "prefix": "causal"},
}
CONVOLUTIONAL: dict[str, dict[str, Any]] = {
    "conv": {"family": "conv"},
    "conv, kernels of 3, pre-norm": {"family": "conv", "kernel_size": 3, "norm": "pre"},
    "conv, linear": {"family": "conv", "attention": "linear"},
    "conv, no positions, no bias": {"family": "conv", "positions": "none", "bias": False},
}
MASKED_AFTER: dict[str, dict[str, Any]] = {
    "masked after the softmax": {"mask": "after"},
    "decoder, masked after the softmax": {"family": "decoder", "mask": "after"},
    "conv, masked after the softmax": {"family": "conv", "mask": "after"},
}
"""Equal but for rounding: what is forbidden takes part in the sum of the softmax."""
EXACT = {**MODELS, **RECURRENT, **DECODER_ONLY, **CONVOLUTIONAL}
ALL = {**EXACT, **MASKED_AFTER}
each_transformer = pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS.keys())
each_exact_model = pytest.mark.parametrize("changes", EXACT.values(), ids=EXACT.keys())
each_model = pytest.mark.parametrize("changes", ALL.values(), ids=ALL.keys())

SRC = torch.tensor([[5, 6, 7, 8, 9], [9, 5, 6, 0, 0], [7, 0, 0, 0, 0], [8, 8, 8, 8, 0]])
TGT_IN = torch.tensor(
    [[2, 5, 9, 9, 6, 7], [2, 8, 4, 7, 7, 5], [2, 6, 6, 9, 4, 8], [2, 9, 5, 4, 5, 4]]
)


def states(model: Transformer, src: Tensor, tgt_in: Tensor) -> Tensor:
    return model(src, tgt_in, padding_mask(src, model.pad_id))


# ---------------------------------------------------------------------------- the future


@each_exact_model
@torch.no_grad()
def test_later_target_tokens_change_nothing_before_them(
    tiny: Tiny, changes: dict[str, Any]
) -> None:
    """Claims 80, 82: difference exactly 0."""
    model = tiny(**changes)
    before = model.teacher_forced(SRC, TGT_IN)
    for position in range(1, TGT_IN.size(1)):
        other = TGT_IN.clone()
        other[:, position:] = (other[:, position:] + 3) % 13
        after = model.teacher_forced(SRC, other)
        assert torch.equal(after[:, :position], before[:, :position])
        assert not torch.equal(after[:, position], before[:, position])


@pytest.mark.parametrize("changes", MASKED_AFTER.values(), ids=MASKED_AFTER.keys())
@torch.no_grad()
def test_masked_after_the_softmax_what_is_forbidden_changes_rounding_only(
    tiny: Tiny, changes: dict[str, Any]
) -> None:
    """Claim 78. Tolerance: float64."""
    model, mask = tiny(**changes).double(), padding_mask(SRC, 0)
    before, other = model(SRC, TGT_IN, mask), TGT_IN.clone()
    other[:, 3:] = (other[:, 3:] + 3) % 13
    after = model(torch.where(SRC != 0, SRC, torch.full_like(SRC, 11)), other, mask)
    assert (after[:, :3] - before[:, :3]).abs().max() <= 1e-12


@each_model
@torch.no_grad()
def test_the_order_of_a_batch_changes_nothing(tiny: Tiny, changes: dict[str, Any]) -> None:
    model, order = tiny(**changes).double(), torch.tensor([2, 0, 3, 1])
    found = states(model, SRC[order], TGT_IN[order])
    assert (found - states(model, SRC, TGT_IN)[order]).abs().max() <= 1e-12


@torch.no_grad()
def test_one_parallel_pass_equals_six_separate_passes(tiny: Tiny) -> None:
    """Claims 83, 108. Tolerance: float64."""
    model = tiny().double()
    parallel = states(model, SRC, TGT_IN)
    for length in range(1, 7):
        alone = states(model, SRC, TGT_IN[:, :length])
        assert (alone[:, -1] - parallel[:, length - 1]).abs().max() <= 1e-12


# ---------------------------------------------------------------------------- padding


GARBAGE = torch.where(SRC != 0, SRC, torch.full_like(SRC, 11))


@each_exact_model
@torch.no_grad()
def test_what_stands_under_the_padding_mask_changes_nothing(
    tiny: Tiny, changes: dict[str, Any]
) -> None:
    """Claim 80: difference exactly 0."""
    model, mask = tiny(**changes), padding_mask(SRC, 0)
    assert torch.equal(model(SRC, TGT_IN, mask), model(GARBAGE, TGT_IN, mask))


@each_transformer
@torch.no_grad()
def test_what_stands_under_the_padding_mask_changes_no_memory(
    tiny: Tiny, changes: dict[str, Any]
) -> None:
    """Claim 81: difference exactly 0 at the kept positions."""
    model, mask, is_real = tiny(**changes), padding_mask(SRC, 0), SRC != 0
    for memory, other in zip(model.encode(SRC, mask), model.encode(GARBAGE, mask), strict=True):
        assert torch.equal(memory[is_real], other[is_real])


@each_model
@torch.no_grad()
def test_padding_and_company_change_nothing(tiny: Tiny, changes: dict[str, Any]) -> None:
    """Claim 80: alone and bare, or padded in a batch. Tolerance: float64."""
    model = tiny(**changes).double()
    together = states(model, SRC, TGT_IN)
    longer = torch.cat([SRC, torch.zeros(4, 7, dtype=torch.long)], dim=1)
    padded_tgt = torch.cat([TGT_IN, torch.zeros(4, 3, dtype=torch.long)], dim=1)
    assert (states(model, longer, padded_tgt)[:, :6] - together).abs().max() <= 1e-12
    for row in range(4):
        bare = SRC[row : row + 1, : int((SRC[row] != 0).sum())]
        alone = states(model, bare, TGT_IN[row : row + 1])
        assert (alone - together[row]).abs().max() <= 1e-12


def rounding(logits: Tensor) -> float:
    """How far float32 sums in another order may be away; logits are large without norms."""
    return max(1e-5, 3e-6 * float(logits.abs().max()))


@torch.no_grad()
def test_padding_in_float32_stays_within_rounding(tiny: Tiny) -> None:
    """Tolerance: float32 sums in another order."""
    model = tiny()
    together = model.teacher_forced(SRC, TGT_IN)
    for row in range(4):
        bare = SRC[row : row + 1, : int((SRC[row] != 0).sum())]
        assert (
            model.teacher_forced(bare, TGT_IN[row : row + 1]) - together[row]
        ).abs().max() <= 1e-5


@each_model
@torch.no_grad()
def test_a_source_without_tokens_is_read_as_nothing(tiny: Tiny, changes: dict[str, Any]) -> None:
    """Claim 134: alone (length 0) or as a row of padding; never NaN."""
    model = tiny(**changes)
    empty = torch.zeros(1, 0, dtype=torch.long)
    alone = model.teacher_forced(empty, TGT_IN[:1])
    beside = model.teacher_forced(
        torch.cat([SRC, torch.zeros(1, 5, dtype=torch.long)]), TGT_IN[[0, 1, 2, 3, 0]]
    )
    assert alone.isfinite().all()
    assert (beside[4] - alone[0]).abs().max() <= 1e-5
    state = model.start(empty, beam_size=2)
    for position in range(3):
        logits = model.step(state, TGT_IN[[0, 0], position])
        assert (logits - alone[0, position]).abs().max() <= 1e-5


def test_a_source_without_tokens_does_not_spoil_training(tiny: Tiny) -> None:
    """Claim 134: gradients stay finite too."""
    model = tiny()
    src = torch.cat([SRC, torch.zeros(1, 5, dtype=torch.long)])
    (model.teacher_forced(src, TGT_IN[[0, 1, 2, 3, 0]]) ** 2).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


# ---------------------------------------------------------------------------- the cache


@each_model
@torch.no_grad()
def test_stepping_with_a_cache_equals_one_forced_pass(tiny: Tiny, changes: dict[str, Any]) -> None:
    """Claims 96, 108. Tolerance: float32 sums in another order; same best token."""
    model = tiny(**changes)
    forced = model.teacher_forced(SRC, TGT_IN)
    state = model.start(SRC)
    for position in range(TGT_IN.size(1)):
        logits = model.step(state, TGT_IN[:, position])
        assert (logits - forced[:, position]).abs().max() <= rounding(forced)
        assert torch.equal(logits.argmax(dim=-1), forced[:, position].argmax(dim=-1))


@each_model
@torch.no_grad()
def test_rows_may_be_repeated_and_reordered_as_a_beam_does(
    tiny: Tiny, changes: dict[str, Any]
) -> None:
    """Claim 96: three beams a source, reordered at random within their source."""
    model, n_sources, beam_size = tiny(**changes), 4, 3
    torch.manual_seed(7)
    state = model.start(SRC, beam_size=beam_size)
    prefixes = torch.full((n_sources * beam_size, 1), 2)
    sources = torch.arange(n_sources).repeat_interleave(beam_size)
    for _ in range(6):
        logits = model.step(state, prefixes[:, -1])
        expected = model.teacher_forced(SRC[sources], prefixes)[:, -1]
        assert (logits - expected).abs().max() <= rounding(expected)
        rows = sources * beam_size + torch.randint(beam_size, (n_sources * beam_size,))
        model.select(state, rows)
        new_tokens = torch.randint(4, 13, (n_sources * beam_size, 1))
        prefixes = torch.cat([prefixes[rows], new_tokens], dim=1)


@each_model
@torch.no_grad()
def test_finished_sources_may_leave_and_beams_may_narrow(
    tiny: Tiny, changes: dict[str, Any]
) -> None:
    """Claim 96: what stays goes on as if nothing had left."""
    model = tiny(**changes)
    torch.manual_seed(7)
    state = model.start(SRC, beam_size=3)
    prefixes = torch.full((12, 1), 2)
    plan: list[tuple[list[int], list[int] | None]] = [
        ([0, 1, 2, 5, 4, 3, 6, 6, 6, 9, 10, 11], None),  # sources 0 1 2 3, three beams
        ([11, 9, 10, 3, 4, 3, 0, 0, 1], [3, 1, 0]),  # source 2 leaves, the others trade places
        ([0, 2, 4, 5, 6, 8], None),  # two beams
        ([5, 0], [2, 0]),  # source 1 leaves, one beam
    ]
    sources, owners = torch.arange(4), torch.arange(4).repeat_interleave(3)
    for rows, kept in [*plan, ([0, 1], None)]:
        logits = model.step(state, prefixes[:, -1])
        expected = model.teacher_forced(SRC[owners], prefixes)[:, -1]
        assert (logits - expected).abs().max() <= rounding(expected)
        index = torch.tensor(rows)
        model.select(state, index, None if kept is None else torch.tensor(kept))
        prefixes = torch.cat([prefixes[index], torch.randint(4, 13, (len(rows), 1))], dim=1)
        sources = sources if kept is None else sources[kept]
        owners = sources.repeat_interleave(len(rows) // len(sources))


@torch.no_grad()
def test_a_cache_outgrows_every_table(tiny: Tiny) -> None:
    """Claim 37: 300 steps, beyond the first rows of positions and of the cache."""
    torch.manual_seed(0)
    tgt_in = torch.randint(4, 13, (1, 300))
    for kind in ("sinusoidal", "rotary", "shaw", "alibi"):
        model = tiny(positions=kind)
        state = model.start(SRC[:1])
        stepwise = torch.stack([model.step(state, tgt_in[:, t]) for t in range(300)], dim=1)
        assert (stepwise - model.teacher_forced(SRC[:1], tgt_in)).abs().max() <= 1e-5


# ---------------------------------------------------------------------------- order

# 吃饭没, 没吃饭, 没饭吃, 饭吃没, 饭没吃: five meanings of the same three characters.
EATEN_YET = torch.tensor([[5, 6, 7], [7, 5, 6], [7, 6, 5], [6, 5, 7], [6, 7, 5]])


def ended(sentences: Tensor) -> Tensor:
    """With `<eos>` behind each, as sources have it."""
    return torch.nn.functional.pad(sentences, (0, 1), value=3)


@torch.no_grad()
def test_without_positions_the_order_of_the_source_is_not_seen(tiny: Tiny) -> None:
    """Claims 8, 9, 44, 71: one set of embeddings, one output. Tolerance: float64."""
    model = tiny(positions="none").double()
    memory = model.encode(EATEN_YET)[0]
    for row, ids in enumerate(EATEN_YET.tolist()):
        order = [EATEN_YET[0].tolist().index(token) for token in ids]
        assert (memory[row] - memory[0, order]).abs().max() <= 1e-12
    outputs = model(EATEN_YET, TGT_IN[[0] * 5])
    assert (outputs - outputs[0]).abs().max() <= 1e-12


@pytest.mark.parametrize("kind", [kind for kind in POSITIONS if kind != "none"])
@torch.no_grad()
def test_with_positions_each_order_means_something_else(tiny: Tiny, kind: str) -> None:
    """Claims 8, 9: the same rows of the embedding table, five outputs."""
    model = tiny(positions=kind).double()
    vectors = model.embed_src.tokens(EATEN_YET).sort(dim=1).values
    assert torch.equal(vectors, vectors[:1].expand_as(vectors))
    outputs = model(ended(EATEN_YET), TGT_IN[[0] * 5]).flatten(1)
    distances = torch.cdist(outputs, outputs) + torch.eye(5) * 1e9
    assert distances.min() > 1e-3


@torch.no_grad()
def test_alibi_tells_a_sentence_from_its_mirror_image_by_eos_alone(tiny: Tiny) -> None:
    """|i - j| is the same in both; every source ends with `<eos>`, which breaks the symmetry."""
    model, mirrored = tiny(positions="alibi").double(), EATEN_YET.flip(dims=[1])
    target = TGT_IN[[0] * 5]
    difference = model(EATEN_YET, target) - model(mirrored, target)
    assert difference.abs().max() <= 1e-12
    difference = model(ended(EATEN_YET), target) - model(ended(mirrored), target)
    assert difference.flatten(1).norm(dim=1).min() > 1e-3
