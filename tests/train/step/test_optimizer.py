"""Updates against torch's optimizers, singular values, and a state that survives a trip."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.transformer import Transformer
from heed.train.step.config import TrainConfig
from heed.train.step.optimizer import Optimizer, matrix_blocks, orthogonalize

CONFIG = ModelConfig(
    src_vocab_size=20,
    tgt_vocab_size=20,
    d_model=8,
    n_heads=2,
    d_ff=16,
    n_encoder_layers=1,
    n_decoder_layers=1,
    activation="swiglu",
)


def small_model() -> Transformer:
    torch.manual_seed(0)
    return build_model(CONFIG)


def give_gradients(model: Transformer, seed: int) -> None:
    torch.manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)


def with_singular_values(shape: tuple[int, int], values: torch.Tensor) -> torch.Tensor:
    left, _, right = torch.linalg.svd(torch.randn(*shape), full_matrices=False)
    return left @ torch.diag(values) @ right


@pytest.mark.parametrize("shape", [(16, 16), (8, 32), (32, 8)])
def test_singular_values_from_a_hundredth_upwards_become_nearly_one(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    values = 7 * torch.logspace(0, -1.7, min(shape))
    singular = torch.linalg.svdvals(orthogonalize(with_singular_values(shape, values)[None])[0])
    # The worst deviation of these polynomials is 0.27; the norm is about 1.5 times the largest.
    assert singular.max() < 1.28
    assert singular.min() > 0.72


def test_weak_directions_stay_weak_in_their_order() -> None:
    torch.manual_seed(0)
    values = torch.tensor([1.0, 1e-3, 1e-4])
    singular = torch.linalg.svdvals(orthogonalize(with_singular_values((3, 3), values)[None])[0])
    # All polynomials together multiply a tiny value by 8.09 * 3.64 * 2.66 = 78.3.
    torch.testing.assert_close(singular[1:], 78.3 * values[1:], rtol=0.05, atol=0)


def test_orthogonalizing_keeps_the_singular_vectors() -> None:
    torch.manual_seed(0)
    matrix = torch.randn(6, 6)
    left, _, right = torch.linalg.svd(matrix)
    rotated = left.T @ orthogonalize(matrix[None])[0] @ right.T
    assert (rotated - torch.diag(rotated.diagonal())).abs().max() < 1e-4


def test_fused_matrices_are_taken_apart() -> None:
    blocks = matrix_blocks(small_model())
    shapes = {(name, end - start) for name, _, start, end in blocks}
    assert ("encoder.0.self_attention.project_in.weight", 8) in shapes
    assert ("encoder.0.feed_forward.expand.weight", 16) in shapes
    assert not any("tokens" in name or name.startswith("output") for name, _ in shapes)
    # 3 attentions of 4 matrices, 2 gated feed-forward networks of 3.
    assert len(blocks) == 3 * 4 + 2 * 3


def test_adamw_equals_torch() -> None:
    ours, theirs = small_model(), small_model()
    config = TrainConfig(optimizer="adamw", learning_rate=0.01, weight_decay=0.1, clip_norm=0)
    optimizer = Optimizer(ours, config)
    matrices = [p for n, p in theirs.named_parameters() if p.ndim == 2 and "tokens" not in n]
    rest = [p for n, p in theirs.named_parameters() if p.ndim != 2 or "tokens" in n]
    reference = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
        lr=0.005,
        betas=(0.9, 0.98),
        eps=1e-9,
    )
    for seed in range(3):
        give_gradients(ours, seed)
        give_gradients(theirs, seed)
        optimizer.step(0.5)
        reference.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-7)


def test_muon_moves_every_matrix_by_the_learning_rate() -> None:
    model = small_model()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    config = TrainConfig(optimizer="muon", matrix_learning_rate=0.1, clip_norm=0)
    optimizer = Optimizer(model, config)
    give_gradients(model, 1)
    optimizer.step(1.0)
    for name, parameter, start, end in matrix_blocks(model):
        update = (before[name] - parameter.detach())[start:end]
        scale = 0.1 * max(1.0, update.size(0) / update.size(1)) ** 0.5
        singular = torch.linalg.svdvals(update)
        assert singular.max() < 1.28 * scale
        assert singular.mean() > 0.6 * scale


def test_muon_may_rest_and_then_goes_as_far_as_it_would_have_gone() -> None:
    model = small_model()
    (name, matrix, *_), start = matrix_blocks(model)[-1], model.embed_src.tokens.weight
    before, embedding = matrix.detach().clone(), start.detach().clone()
    rate = {"matrix_learning_rate": 0.1, "clip_norm": 0.0}
    optimizer = Optimizer(model, TrainConfig(optimizer="muon", matrix_every=3, **rate))
    for number in (3, 4):
        give_gradients(model, number)
        optimizer.step(1.0, number)
        assert torch.equal(matrix, before), name
        assert not torch.equal(start, embedding)
        embedding = start.detach().clone()
    give_gradients(model, 5)
    optimizer.step(1.0, 5)
    singular = torch.linalg.svdvals(before - matrix.detach())
    scale = 3 * 0.1 * max(1.0, matrix.size(0) / matrix.size(1)) ** 0.5
    assert 0.6 * scale < singular.mean() < 1.28 * scale


def test_beside_muon_matrices_decay_by_their_rate_and_nothing_else_does() -> None:
    plain, decayed = small_model(), small_model()
    matrices = {name for name, *_ in matrix_blocks(plain)}
    before = {name: p.detach().clone() for name, p in plain.named_parameters()}
    for model, decay in ((plain, 0.0), (decayed, 0.3)):
        give_gradients(model, 1)
        config = TrainConfig(optimizer="muon", matrix_learning_rate=0.1, weight_decay=decay)
        Optimizer(model, config).step(0.5)
    for (name, one), other in zip(plain.named_parameters(), decayed.parameters(), strict=True):
        share = 0.5 * 0.1 * 0.3 if name in matrices else 0.0
        torch.testing.assert_close(other, one - share * before[name], rtol=1e-5, atol=1e-7)


def a_model_with_dead_features(config: TrainConfig) -> tuple[Transformer, Optimizer]:
    """Two of 16 features of the encoder's layer fire nowhere, all others at most positions."""
    torch.manual_seed(0)
    model = build_model(replace(CONFIG, activation="relu", dropout=0.0))
    with torch.no_grad():
        for layer in (*model.encoder, *model.decoder):
            layer.feed_forward.expand.bias.fill_(1.0)
        model.encoder[0].feed_forward.expand.bias[[3, 5]] = -5.0
    return model, Optimizer(model, config)


def read_a_batch(model: Transformer) -> None:
    src = torch.randint(4, 20, (8, 12), generator=torch.Generator().manual_seed(1))
    model(src, src).square().mean().backward()


@pytest.mark.parametrize("kind", ["muon", "adamw"])
def test_the_bias_of_a_dead_feature_rises_by_the_rate(kind: str) -> None:
    rate: dict[str, Any] = {"optimizer": kind, "learning_rate": 0.01}
    plain, rested = a_model_with_dead_features(TrainConfig(**rate))
    revived, optimizer = a_model_with_dead_features(TrainConfig(**rate, revive_features=True))
    for model, own in ((plain, rested), (revived, optimizer)):
        read_a_batch(model)
        own.step(0.5)
    changed = {
        name: (other - one).detach()
        for (name, one), other in zip(plain.named_parameters(), revived.parameters(), strict=True)
    }
    bias = changed.pop("encoder.0.feed_forward.expand.bias")
    assert not any(change.any() for change in changed.values())
    expected = torch.zeros(16)
    expected[[3, 5]] = 0.005
    torch.testing.assert_close(bias, expected, rtol=1e-3, atol=1e-9)


def test_a_dead_feature_fires_and_learns_again() -> None:
    config = TrainConfig(learning_rate=0.05, matrix_learning_rate=0.0, revive_features=True)
    model, optimizer = a_model_with_dead_features(config)
    bias = model.encoder[0].feed_forward.expand.bias
    gradients = []
    for _ in range(150):
        read_a_batch(model)
        gradients.append(bias.grad.clone())
        optimizer.step(1.0)
    has_fired = torch.stack(gradients)[:, [3, 5]] != 0
    assert not has_fired[:20].any()
    assert has_fired[-50:].float().mean() > 0.3


def test_clipping_scales_to_the_global_norm() -> None:
    model = small_model()
    optimizer = Optimizer(model, TrainConfig(clip_norm=0.5))
    give_gradients(model, 1)
    before = optimizer.clip()
    after = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).norm()
    assert before > 1
    assert after.item() == pytest.approx(0.5, rel=1e-4)


@pytest.mark.parametrize("kind", ["muon", "adamw", "adam"])
def test_state_saved_and_loaded_goes_on_bit_for_bit(kind: str) -> None:
    config = TrainConfig(optimizer=kind, matrix_every=3)
    undisturbed, interrupted = small_model(), small_model()
    first, second = Optimizer(undisturbed, config), Optimizer(interrupted, config)
    for seed in range(2):
        for model, optimizer in ((undisturbed, first), (interrupted, second)):
            give_gradients(model, seed)
            optimizer.step(1.0, seed)
    saved = {name: tensor.clone() for name, tensor in second.state().items()}
    resumed = Optimizer(interrupted, config)
    resumed.load_state(saved)
    for model, optimizer in ((undisturbed, first), (interrupted, resumed)):
        give_gradients(model, 9)
        optimizer.step(1.0, 2)
    for mine, other in zip(undisturbed.parameters(), interrupted.parameters(), strict=True):
        assert torch.equal(mine, other)
