"""Heads and features: what each matters, and a model without some of them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from heed.bundle.bundle import Bundle
from heed.compress.importance import (
    Sublayer,
    ablation,
    by_reader,
    difference_of_losses,
    gated,
    importance,
    sequence_losses,
    sublayers,
)
from heed.compress.prune import (
    most_important,
    opened,
    prunable,
    pruned,
    require_same_as_gated,
)
from heed.data.batch import Batch
from heed.decode.batching import padded
from heed.errors import ConfigError
from heed.model.build import build_model
from heed.model.families import config_from
from heed.text.vocab import Vocab, train_vocab

SHAPE: dict[str, Any] = {"d_model": 12, "n_heads": 4, "d_ff": 10, "dropout": 0.0}
BOTH = {**SHAPE, "n_encoder_layers": 1, "n_decoder_layers": 2}
ONE = {**SHAPE, "n_layers": 2}
FAMILIES: dict[str, dict[str, Any]] = {
    "transformer": {"norm": "pre", **BOTH},
    "post-norm, no bias": {"norm": "post", "bias": False, **BOTH},
    "swiglu, rotary, odd widths": {
        **{"activation": "swiglu", "positions": "rotary", "d_k": 4, "d_v": 5, "tied": "none"},
        **BOTH,
    },
    "cosine": {"attention": "cosine", **BOTH},
    "vectors of distances, window": {"positions": "shaw", "window": 2, **BOTH},
    "averages": {"decoder_self": "average", **BOTH},
    "SSRU": {"decoder_self": "ssru", **BOTH},
    "merged": {"decoder_attention": "merged", **BOTH},
    "layers that share": {"share_layers": "all", **BOTH},
    "linear": {"attention": "linear", **BOTH},
    "favor": {"attention": "favor", "n_features": 5, **BOTH},
    "conv": {"family": "conv", **BOTH},
    "decoder": {"family": "decoder", **ONE},
    "encoder": {"family": "encoder", **ONE},
}
LINES = ["a man rides a bike", "two dogs play in the snow", "a city", "snow"]


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return train_vocab(LINES * 9, size=290)


@pytest.fixture(scope="module")
def bundle_of(vocab: Vocab) -> Callable[..., Bundle]:
    """`bundle_of(family="conv", …)`: a model with random weights, biases among them."""

    def make(**settings: Any) -> Bundle:
        sizes = {"src_vocab_size": vocab.size, "tgt_vocab_size": vocab.size}
        config = config_from({**sizes, **settings})
        torch.manual_seed(1)
        model = build_model(config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        weights = {name: weight.numpy() for name, weight in model.state_dict().items()}
        return Bundle(config=config, weights=weights, src_vocab=vocab, tgt_vocab=vocab)

    return make


@pytest.fixture(scope="module")
def batch(vocab: Vocab) -> Batch:
    """Two sequences; the second is padded on both sides."""
    rows = [vocab.encode(line) for line in LINES[:2]]
    rows[1] = rows[1][: len(rows[0]) - 3]
    src = torch.tensor(padded([[*ids, vocab.eos_id] for ids in rows], vocab.pad_id))
    tgt_out = torch.tensor(padded([[*ids[::-1], vocab.eos_id] for ids in rows], vocab.pad_id))
    tgt_in = tgt_out.roll(1, dims=1)
    tgt_in[:, 0] = vocab.bos_id
    return Batch(
        src=src,
        tgt_in=tgt_in,
        tgt_out=tgt_out,
        src_mask=(src != vocab.pad_id)[:, None, None],
        n_src_tokens=int((src != vocab.pad_id).sum()),
        n_tgt_tokens=int((tgt_out != vocab.pad_id).sum()),
        indices=np.arange(2),
    )


def without(bundle: Bundle, off: Mapping[str, list[int]]) -> Bundle:
    """The model with zeros in the columns of its output projections that read these units."""
    weights = dict(bundle.weights)
    for each in sublayers(bundle.config):
        matrix = weights[f"{each.readers[0]}.weight"].copy()
        width = matrix.shape[1] // each.n_units
        for unit in off.get(each.name, []):
            matrix[:, unit * width : (unit + 1) * width] = 0
        weights |= {f"{reader}.weight": matrix for reader in each.readers}
    return replace(bundle, weights=weights)


def states(bundle: Bundle, batch: Batch) -> Tensor:
    with torch.inference_mode():
        return opened(bundle)(batch.src, batch.tgt_in, batch.src_mask)


def test_every_sublayer_with_units_is_found(bundle_of: Callable[..., Bundle]) -> None:
    assert sublayers(bundle_of(**FAMILIES["conv"]).config)[:3] == [
        Sublayer("encoder.0.feed_forward", "features", 10, ("encoder.0.feed_forward.contract",)),
        Sublayer(
            "decoder.0.cross_attention", "heads", 4, ("decoder.0.cross_attention.project_out",)
        ),
        Sublayer("decoder.0.feed_forward", "features", 10, ("decoder.0.feed_forward.contract",)),
    ]
    names = [each.name for each in sublayers(bundle_of(**FAMILIES["encoder"]).config)]
    parts = ("self_attention", "feed_forward")
    assert names == [f"encoder.{i}.{part}" for i in (0, 1) for part in parts]


def test_layers_that_share_their_weights_share_their_units(
    bundle_of: Callable[..., Bundle],
) -> None:
    found = sublayers(bundle_of(**FAMILIES["layers that share"]).config)
    assert [each.name for each in found if "decoder" in each.name] == [
        f"decoder.0.{part}" for part in ("self_attention", "cross_attention", "feed_forward")
    ]
    assert found[-1].readers == tuple(f"decoder.{i}.feed_forward.contract" for i in (0, 1))


@pytest.mark.parametrize("name", FAMILIES)
def test_a_pruned_model_is_the_whole_one_with_zeros_for_what_is_gone(
    bundle_of: Callable[..., Bundle], batch: Batch, name: str
) -> None:
    """Claim 63: what is left computes what it computed before."""
    bundle = bundle_of(**FAMILIES[name])
    draw = np.random.default_rng(3)
    kept, off = {}, {}
    for each in sublayers(bundle.config):
        n_kept = 3 if each.kind == "heads" else 7
        order = draw.permutation(each.n_units)
        kept[each.name] = np.sort(order[:n_kept])
        off[each.name] = order[n_kept:].tolist()
    smaller = pruned(bundle, kept)
    shape = smaller.config.to_dict()
    assert (shape["n_heads"], shape["d_ff"]) == (3, 7)
    if name == "post-norm, no bias":
        assert not any(key.endswith("project_in.bias") for key in smaller.weights)
    expected = states(without(bundle, off), batch)
    torch.testing.assert_close(states(smaller, batch), expected, rtol=1e-4, atol=1e-5)
    require_same_as_gated(bundle, smaller, kept, batch)


@pytest.mark.parametrize("name", ["transformer", "layers that share"])
def test_importance_is_the_slope_of_the_loss_by_a_gate(
    bundle_of: Callable[..., Bundle], batch: Batch, name: str
) -> None:
    """Michel et al. 2019, equation 2, by finite differences of each sequence's loss."""
    bundle = bundle_of(**FAMILIES[name])
    model, pad_id = opened(bundle).double(), bundle.config.pad_id
    chosen = sublayers(bundle.config)
    found = importance(model, [batch], chosen, pad_id=pad_id)
    for each in chosen[:2] + chosen[-2:]:
        for unit in range(min(each.n_units, 4)):
            losses = []
            for step in (1e-4, -1e-4):
                gate = torch.ones(1, each.n_units, dtype=torch.float64)
                gate[0, unit] += step
                with gated(model, by_reader([each], [gate])):
                    # float32 logits would hide the difference.
                    x = model(batch.src, batch.tgt_in, batch.src_mask)
                logits = x @ model.output.weight.T
                nll = -logits.log_softmax(-1).gather(-1, batch.tgt_out[..., None])[..., 0]
                losses.append((nll * (batch.tgt_out != pad_id)).sum(dim=1))
            slopes = (losses[0] - losses[1]) / 2e-4
            assert found[each.name][unit] == pytest.approx(slopes.abs().mean().item(), rel=1e-3)


def test_importance_does_not_depend_on_padding_or_on_the_batch(
    bundle_of: Callable[..., Bundle], batch: Batch
) -> None:
    bundle = bundle_of(**FAMILIES["transformer"])
    model, pad_id = opened(bundle), bundle.config.pad_id
    chosen = sublayers(bundle.config)
    singles = []
    for row in range(2):
        src, tgt = batch.src[row : row + 1], batch.tgt_out[row : row + 1]
        n_src, n_tgt = int((src != pad_id).sum()), int((tgt != pad_id).sum())
        parts = {"src": src[:, :n_src], "tgt_in": batch.tgt_in[row : row + 1, :n_tgt]}
        counts = {"n_src_tokens": n_src, "n_tgt_tokens": n_tgt, "indices": np.array([row])}
        singles.append(replace(batch, **parts, tgt_out=tgt[:, :n_tgt], src_mask=None, **counts))
    together = importance(model, [batch], chosen, pad_id=pad_id)
    alone = importance(model, singles, chosen, pad_id=pad_id)
    for name, values in together.items():
        np.testing.assert_allclose(values, alone[name], rtol=1e-3, atol=1e-5)


def test_ablation_is_the_loss_with_a_unit_zeroed(
    bundle_of: Callable[..., Bundle], batch: Batch
) -> None:
    bundle = bundle_of(**FAMILIES["transformer"])
    pad_id = bundle.config.pad_id
    heads = [each for each in sublayers(bundle.config) if each.kind == "heads"]
    found = ablation(opened(bundle), [batch], heads, pad_id=pad_id)
    for each in heads:
        for unit in range(each.n_units):
            zeroed = opened(without(bundle, {each.name: [unit]}))
            nll, n_tokens = sequence_losses(zeroed, [batch], pad_id=pad_id)
            expected = nll.sum() / n_tokens.sum()
            assert found[each.name][unit] == pytest.approx(expected, rel=1e-5)


def test_a_head_that_nobody_reads_has_no_importance_and_goes_first(
    bundle_of: Callable[..., Bundle], batch: Batch
) -> None:
    bundle = bundle_of(**FAMILIES["decoder"])
    chosen = prunable(bundle.config, "heads")
    off = {each.name: [number % 4] for number, each in enumerate(chosen)}
    silent = without(bundle, off)
    scores = importance(opened(silent), [batch], chosen, pad_id=bundle.config.pad_id)
    kept = most_important(scores, 0.75)
    for each in chosen:
        assert scores[each.name][off[each.name]] == 0
        assert kept[each.name].tolist() == [i for i in range(4) if i not in off[each.name]]
    smaller = pruned(silent, kept)
    torch.testing.assert_close(states(smaller, batch), states(silent, batch))


def test_a_share_is_rounded_and_leaves_one() -> None:
    scores = {"a": np.array([3.0, 1.0, 2.0, 2.0, 0.0])}
    assert most_important(scores, 0.5)["a"].tolist() == [0, 2]
    assert most_important(scores, 0.6)["a"].tolist() == [0, 2, 3]
    assert most_important(scores, 0.01)["a"].tolist() == [0]


def test_a_difference_and_its_interval() -> None:
    before, n_tokens = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 1.0, 2.0, 4.0])
    assert difference_of_losses(before, before + 0.5 * n_tokens, n_tokens) == (0.5, 0.5, 0.5)
    value, low, high = difference_of_losses(before, 2 * before, n_tokens)
    assert value == 10 / 8
    assert 1.0 <= low < value < high <= 2.0


# --------------------------------------------------------------------------- what is refused


def test_a_family_without_heads_is_refused(bundle_of: Callable[..., Bundle]) -> None:
    config = bundle_of(family="rnn", d_model=12).config
    with pytest.raises(ConfigError, match="is for models with attention heads, of the families"):
        prunable(config, "both")


def test_heads_that_nothing_mixes_cannot_go(bundle_of: Callable[..., Bundle], batch: Batch) -> None:
    bundle = bundle_of(output_projection=False, **BOTH)
    for what in ("heads", "both"):
        with pytest.raises(ConfigError, match="an output projection mixes them, but this model is"):
            prunable(bundle.config, what)
    chosen = prunable(bundle.config, "features")
    scores = importance(opened(bundle), [batch], chosen, pad_id=bundle.config.pad_id)
    assert pruned(bundle, most_important(scores, 0.5)).config.to_dict()["d_ff"] == 5


def test_a_model_without_feed_forward_networks_has_no_features(
    bundle_of: Callable[..., Bundle],
) -> None:
    bundle = bundle_of(feed_forward=False, **BOTH)
    with pytest.raises(ConfigError, match="this model has no feed-forward features"):
        prunable(bundle.config, "features")
    assert len(prunable(bundle.config, "both")) == 5


def test_heads_of_alibi_depend_on_their_number(
    bundle_of: Callable[..., Bundle], batch: Batch
) -> None:
    """The slopes of two heads of four are not those of two heads."""
    bundle = bundle_of(positions="alibi", **BOTH)
    kept = {each.name: np.array([0, 1]) for each in prunable(bundle.config, "heads")}
    with pytest.raises(ConfigError, match="depends on all of them"):
        require_same_as_gated(bundle, pruned(bundle, kept), kept, batch)


def test_keeping_all_is_refused(bundle_of: Callable[..., Bundle]) -> None:
    bundle = bundle_of(**BOTH)
    with pytest.raises(ConfigError, match="leaves every head and feature in its place. Lower it"):
        pruned(bundle, {each.name: np.arange(each.n_units) for each in sublayers(bundle.config)})


@pytest.mark.parametrize("name", ["transformer", "decoder"])
def test_heads_that_depend_on_their_number_are_refused(
    bundle_of: Callable[..., Bundle], batch: Batch, name: str
) -> None:
    """ALiBi's slope of a head follows from its place among all."""
    bundle = bundle_of(**{**FAMILIES[name], "positions": "alibi"})
    kept = {each.name: np.array([0, 1]) for each in prunable(bundle.config, "heads")}
    with pytest.raises(ConfigError, match="depends on all of them: .* Prune its features"):
        require_same_as_gated(bundle, pruned(bundle, kept), kept, batch)
    kept = {each.name: np.array([1, 3]) for each in prunable(bundle.config, "features")}
    require_same_as_gated(bundle, pruned(bundle, kept), kept, batch)
