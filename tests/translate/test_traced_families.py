"""Every tensor of every family, with every option, has a stage with the axes that it has."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.model.conftest import choices

from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.model.decodable import TorchDecodable
from heed.model.families import FAMILIES
from heed.model.network import TorchNetwork
from heed.model.one_stack.config import EncoderConfig
from heed.model.one_stack.patches import build_patch_encoder
from heed.model.stages import BOTH, Stages
from heed.model.trace import see
from heed.translate.stepwise import Stepwise
from heed.translate.trace import Node, Trace
from heed.translate.tracer import caught

SRC, TGT_IN = [5, 6, 7, 3], [2, 8, 9, 5, 4]
OPTIONS: list[dict[str, Any]] = [
    *({"positions": kind} for kind in choices("positions")),
    *({"attention": kind} for kind in choices("attention")),
    *({"norm": kind} for kind in choices("norm")),
    *({"activation": kind, "bias": False} for kind in choices("activation")),
    {"mask": "after"},
    {"window": 1},
    {"residual": False},
    {"residual": False, "norm": "pre"},
    {"feed_forward": False, "output_projection": False},
    {"share_layers": "all"},
    {"d_k": 6, "d_v": 10},
    {"tied": "none", "scale_embedding": False, "normalize_positions": True},
]
TWO_STACKS: list[dict[str, Any]] = [
    *({"decoder_self": kind} for kind in choices("decoder_self")),
    {"decoder_self": "average", "average_feed_forward": False, "bias": False},
    {"decoder_attention": "merged"},
    {"decoder_attention": "merged", "positions": "alibi"},
    {"decoder_attention": "merged", "positions": "shaw"},
    {"cross_from": "same"},
]
CONVOLUTIONS = [options for options in OPTIONS if not {"window", "positions"} & options.keys()]
MODELS: list[dict[str, Any]] = [
    *OPTIONS,
    *TWO_STACKS,
    *({"family": "conv", **options} for options in CONVOLUTIONS),
    *({"family": "decoder", **options} for options in OPTIONS),
    *({"family": "decoder", "prefix": "causal", **options} for options in OPTIONS[:1]),
    *({"family": "encoder", **options} for options in OPTIONS),
    {"family": "encoder", "pooling": "mean", "tied": "none"},
    {"family": "bag", "n_gram_rows": 97},
    *(
        {"family": "rnn", "attention": attention, "cell": cell, "residual": cell == "lstm"}
        for attention in ("none", "dot", "additive")
        for cell in ("tanh", "lstm", "gru")
    ),
]
each_model = pytest.mark.parametrize(
    "changes", MODELS, ids=lambda changes: "-".join(f"{k}={v}" for k, v in changes.items())
)
Tiny = Callable[..., Any]


def seen(
    network: TorchNetwork, stages: Stages, src: list[int], tgt_in: list[int]
) -> tuple[list[Node], dict[str, Any]]:
    """What one pass computes."""
    ids = [torch.tensor([row], dtype=torch.long) for row in (src, tgt_in)]
    network.requires_grad_()

    def run() -> None:
        logits = network.teacher_forced(*ids)
        see(network, "log_probs", logits.log_softmax(dim=-1))

    return caught(network, stages, run)


def lengths(config: Any, n_src: int, n_tgt: int) -> dict[str, int]:
    """The length of each axis, from the config alone."""
    found = {"src": n_src, "tgt": n_tgt, BOTH: n_src + n_tgt, "d_model": config.d_model}
    found |= {"2·d_model": 2 * config.d_model, "piece": config.tgt_vocab_size, "text": 1}
    found |= {"label": config.tgt_vocab_size, "head": 1}
    if config.family not in ("rnn", "bag"):
        found |= {"head": config.n_heads, "d_k": config.key_width, "d_v": config.value_width}
        found |= {"heads·d_v": config.n_heads * config.value_width}
        found |= {"d_ff": config.d_ff, "2·d_ff": 2 * config.d_ff}
    if config.family == "rnn":
        found["width"] = config.d_model // (1 + config.bidirectional)
        found["layer·d_model"] = config.n_decoder_layers * config.d_model
    return found


def require_described(network: TorchNetwork, nodes: list[Node], sizes: dict[str, int]) -> None:
    buffers = {name for name, _ in network.named_buffers()}
    known = {node.name for node in nodes} | {weight.name for weight in network.plan} | buffers
    for node in nodes:
        assert node.shape == tuple(sizes[axis] for axis in node.axes), node
        # Penalties of distances depend on no tensor.
        is_constant = node.kind == "attention.bias" and "m_h" in node.formula
        assert bool(node.inputs) != is_constant, node
        assert known.issuperset(node.inputs), node
        assert node.operation
        assert node.formula


@each_model
def test_axes_have_the_lengths_that_they_name_and_every_tensor_has_inputs(
    changes: dict[str, Any], tiny: Tiny
) -> None:
    network = tiny(**changes)
    tgt_in = [] if changes.get("family") in ("encoder", "bag") else TGT_IN
    nodes, tensors = seen(network, Stages(network.config), SRC, tgt_in)
    require_described(network, nodes, lengths(network.config, len(SRC), len(tgt_in)))
    assert nodes[-1].name == "log_probs"
    assert [*tensors] == [node.name for node in nodes]


@each_model
def test_a_trace_has_the_logits_that_the_model_computes_by_itself(
    changes: dict[str, Any], tiny: Tiny
) -> None:
    """Fused kernels, windows in blocks and linear time beside what shows every step."""
    network = tiny(**changes)
    tgt_in = [] if changes.get("family") in ("encoder", "bag") else TGT_IN
    _, tensors = seen(network, Stages(network.config), SRC, tgt_in)
    with torch.no_grad():
        unseen = network.teacher_forced(torch.tensor([SRC]), torch.tensor([tgt_in]).long())
    np.testing.assert_allclose(tensors["logits"], unseen[0], atol=2e-5)


@each_model
def test_every_weight_is_an_input_of_some_tensor(changes: dict[str, Any], tiny: Tiny) -> None:
    network = tiny(**changes)
    tgt_in = [] if changes.get("family") in ("encoder", "bag") else TGT_IN
    nodes, _ = seen(network, Stages(network.config), SRC, tgt_in)
    used = {name for node in nodes for name in node.inputs}
    stored = {weight.tied_to or weight.name for weight in network.plan}
    assert stored <= used | {weight.name for weight in network.plan if weight.tied_to}


@each_model
def test_a_search_has_the_same_stages_with_rows_in_front(
    changes: dict[str, Any], tiny: Tiny
) -> None:
    if changes.get("family") in ("encoder", "bag"):
        return  # they write nothing
    network = tiny(**changes)
    model = Stepwise(TorchDecodable(network, torch.device("cpu")), Stages(network.config))
    options = DecodeOptions(beam_size=3, max_length=4)
    ((best, *_),) = decode(model, np.array([SRC]), options, bos_id=2, eos_id=3, pad_id=0)
    plain = TorchDecodable(network, torch.device("cpu"))
    ((alone, *_),) = decode(plain, np.array([SRC]), options, bos_id=2, eos_id=3, pad_id=0)
    assert best.ids == alone.ids
    nodes, forced = seen(network, Stages(network.config), SRC, [2, *best.ids])
    sizes = lengths(network.config, len(SRC), 1)
    axes = {node.name: node.axes for node in nodes}
    for number, (step, rows) in enumerate(zip(model.steps, model.rows, strict=True)):
        for name, tensor in step.items():
            stage = Stages(network.config).of(name)
            assert len(tensor) in (1, 3)
            if name in axes:
                assert stage.axes == axes[name]
        assert step["logits"].shape == (3, sizes["piece"])
        assert step["states"].shape == (3, 1, sizes["d_model"])
        if number:
            before = model.rows[number - 1].prefixes
            assert [ids[:-1] for ids in rows.prefixes] == [before[row] for row in rows.parents]
        # The row of the hypothesis that won computes what one pass over all of it computes.
        if number <= len(best.ids):
            row = rows.prefixes.index([2, *best.ids][: number + 1])
            np.testing.assert_allclose(step["logits"][row], forced["logits"][number], atol=2e-5)
            if "decoder.0.cross_attention.weights" in step:
                weights = step["decoder.0.cross_attention.weights"][row, :, 0]
                whole = forced["decoder.0.cross_attention.weights"][:, number]
                np.testing.assert_allclose(weights, whole, atol=1e-5)


def test_a_language_model_has_a_target_only(tiny: Tiny) -> None:
    network = tiny(family="decoder")
    nodes, _ = seen(network, Stages(network.config, has_source=False), [], TGT_IN)
    require_described(network, nodes, lengths(network.config, 0, len(TGT_IN)))
    assert not any("src" in axis for node in nodes for axis in node.axes)


def test_the_table_of_one_stack_has_the_source_in_front(tiny: Tiny) -> None:
    """Claim 96."""
    network = tiny(family="decoder", positions="rotary")
    nodes, tensors = seen(network, Stages(network.config), SRC, TGT_IN)
    trace = Trace(
        source="",
        translation="",
        source_tokens=["x"] * len(SRC),
        target_tokens=["y"] * len(TGT_IN),
        expected_tokens=[],
        nodes=nodes,
        tensors=tensors,
    )
    state = network.start(torch.tensor([SRC]))
    for step, token in enumerate(TGT_IN):
        network.step(state, torch.tensor([token]))
        keys, values = trace.kv_table(1, step)
        stored = state.caches[1]
        n_rows = len(SRC) + step + 1
        assert keys.shape[1] == values.shape[1] == stored.length == n_rows


def test_patches_are_projected_where_tokens_have_a_table() -> None:
    torch.manual_seed(0)
    config = EncoderConfig(
        src_vocab_size=9, tgt_vocab_size=9, d_model=8, n_heads=2, d_ff=12, n_layers=1,
        tied="none", pooling="mean", scale_embedding=False,
    )  # fmt: skip
    network = build_patch_encoder(config, patch_width=4).eval()
    stages = Stages(config, has_table=False)
    images = torch.randn(1, 3, 4)
    nodes, _ = caught(network, stages, lambda: network(images, images[:, :0]))
    require_described(network, nodes, lengths(config, 3, 0))
    (tokens,) = (node for node in nodes if node.name == "embed.tokens")
    assert tokens.formula == "(X W + b)"
    assert set(tokens.inputs) == {"embed.tokens.weight", "embed.tokens.bias"}


def test_formulas_are_those_of_the_options(tiny: Tiny) -> None:
    def formula(name: str, **changes: Any) -> str:
        return Stages(tiny(**changes).config).of(name).formula

    attention, network = "encoder.0.self_attention", "decoder.1.feed_forward"
    assert formula(f"{attention}.scores") == "S = Q Kᵀ / √d_k"
    assert formula(f"{attention}.scores", attention="unscaled") == "S = Q Kᵀ"
    shaw = {"positions": "shaw"}
    assert formula(f"{attention}.bias", **shaw) == "B = Q (a^K)ᵀ / √d_k"
    assert formula(f"{attention}.bias", **shaw, attention="unscaled") == "B = Q (a^K)ᵀ"
    assert formula(f"{attention}.query") == "Q = X W^Q + b^Q"
    assert formula(f"{attention}.query", bias=False) == "Q = X W^Q"
    assert formula(f"{network}.activated") == "F = max(0, X W_1 + b_1)"
    assert formula(f"{network}.activated", activation="swiglu") == "F = Swish(G) ⊙ U"
    assert formula("encoder.0.around_self.out", norm="pre") == "X + Sublayer(LayerNorm(X))"
    assert formula("memory.1", cross_from="same") == "M = X"
    with pytest.raises(KeyError):
        formula("decoder.0.nothing")
    assert {changes.get("family", "transformer") for changes in MODELS} == FAMILIES.keys()
