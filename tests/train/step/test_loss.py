"""The plain loss against torch's own, and the fused output layer and loss against both."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F

from heed.errors import HeedError
from heed.machine.cpu import has_compiled_bfloat16
from heed.model.fast import tiles
from heed.model.fast.products import rounded_products
from heed.train.step.loss import (
    CHUNK,
    LEAST_SAMPLED,
    output_cross_entropy,
    smoothed_cross_entropy,
)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("n_tokens", [1, 7, CHUNK, CHUNK + 3])
def test_loss_and_gradients_equal_torch_cross_entropy(smoothing: float, n_tokens: int) -> None:
    torch.manual_seed(0)
    states = torch.randn(n_tokens, 8, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(11, 8, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(0, 11, (n_tokens,))

    loss, nll = output_cross_entropy(states, weight, targets, smoothing=smoothing)
    grads = torch.autograd.grad(3.0 * loss, (states, weight))
    logits = states @ weight.t()
    expected = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
    expected_grads = torch.autograd.grad(3.0 * expected, (states, weight))

    # float64 leaves only rounding in the order of summation.
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
    plain = F.cross_entropy(logits, targets, reduction="sum").item()
    assert nll.item() == pytest.approx(plain, rel=1e-12)
    for grad, expected_grad in zip(grads, expected_grads, strict=True):
        torch.testing.assert_close(grad, expected_grad, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kernels", ["amx", "avx512"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize(
    ("n_tokens", "vocab_size", "width"), [(64, 4, 32), (65, 33, 64), (500, 1000, 128), (97, 64, 32)]
)
def test_tiles_equal_the_formula_with_rounded_factors(
    kernels: str,
    smoothing: float,
    n_threads: int,
    n_tokens: int,
    vocab_size: int,
    width: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not has_compiled_bfloat16(kernels):
        pytest.skip(f"this processor lacks {kernels} with bfloat16, or heed is not compiled")
    monkeypatch.setattr(tiles, "probabilities", partial(tiles.probabilities, kernels=kernels))
    torch.manual_seed(3)
    states = torch.randn(n_tokens, width).bfloat16().float().requires_grad_()
    weight = (torch.randn(vocab_size, width) / 8).bfloat16().float().requires_grad_()
    targets = torch.randint(0, vocab_size, (n_tokens,))
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        with rounded_products():
            assert tiles.fit(states, weight)
            loss, nll = output_cross_entropy(states, weight, targets, smoothing=smoothing)
        grads = torch.autograd.grad(loss, (states, weight))
    finally:
        torch.set_num_threads(before)
    exact = [each.detach().double().requires_grad_() for each in (states, weight)]
    expected, plain = output_cross_entropy(*exact, targets, smoothing=smoothing)
    # The given factors are exact in bfloat16; the probabilities are rounded.
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert nll.item() == pytest.approx(plain.item(), rel=1e-5)
    for grad, wanted in zip(grads, torch.autograd.grad(expected, exact), strict=True):
        assert (grad - wanted).norm() < 3e-3 * wanted.norm()


@pytest.mark.parametrize("kernels", ["amx", "avx512"])
@pytest.mark.parametrize("logit", [-87.5, -89.0, -93.5, -200.0])
def test_rows_that_fill_a_tile_take_no_part_even_if_all_logits_are_low(
    kernels: str, logit: float
) -> None:
    """They have logits of zero, which e^x cannot take relative to such a total."""
    if not has_compiled_bfloat16(kernels):
        pytest.skip(f"this processor lacks {kernels} with bfloat16, or heed is not compiled")
    states, weight = torch.zeros(70, 32), torch.ones(64, 32)
    states[-1, 0] = logit
    found = tiles.probabilities(states, weight, torch.zeros(70, dtype=torch.int64), kernels=kernels)
    assert torch.equal(found.of_weight, found.of_weight[:1].expand(64, -1))
    assert found.of_weight[0, 0].item() == pytest.approx(logit / 64, rel=1e-2)


@pytest.mark.parametrize("kernels", ["amx", "avx512"])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_small_probabilities_that_are_sampled_are_right_on_average(
    kernels: str, n_threads: int
) -> None:
    if not has_compiled_bfloat16(kernels):
        pytest.skip(f"this processor lacks {kernels} with bfloat16, or heed is not compiled")
    torch.manual_seed(4)
    states, weight = torch.randn(97, 32), torch.randn(LEAST_SAMPLED + 5, 32) / 8
    states[:, 0], weight[:64, 0] = 1, 3  # most of the probability in the first 64 columns
    targets = torch.randint(0, len(weight), (97,))
    find = partial(tiles.probabilities, states, weight, targets, kernels=kernels)
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        exact, found = find(), [find(seed=1 + seed) for seed in range(200)]
        again = find(seed=1)
    finally:
        torch.set_num_threads(before)
    for one, other in zip(found[0], again, strict=True):
        assert torch.equal(one, other)
    for each in found:
        assert torch.equal(each.totals, exact.totals)
        assert torch.equal(each.true, exact.true)
        # No block of these is so small that it could be left out.
        assert torch.equal(each.of_weight[:64], exact.of_weight[:64])
    for name in ("of_states", "of_weight"):
        wanted = getattr(exact, name)
        sampled = torch.stack([getattr(each, name) for each in found])
        error = (sampled - wanted).flatten(1).norm(dim=1).mean()
        assert 0.01 * wanted.norm() < error < 0.5 * wanted.norm()
        # The mean of N draws without a bias is off by the root of N less than one of them.
        assert (sampled.mean(dim=0) - wanted).norm() < 1.3 * error / len(found) ** 0.5


def test_the_loss_samples_only_large_vocabularies_and_as_the_random_state_says() -> None:
    states = torch.randn(64, 32, requires_grad=True)
    targets = torch.randint(0, LEAST_SAMPLED - 1, (64,))
    for size, is_sampled in ((LEAST_SAMPLED - 1, False), (LEAST_SAMPLED, True)):
        weight = torch.randn(size, 32, requires_grad=True)
        if not tiles.fit(states, weight):
            pytest.skip("this processor has no tiles of bfloat16, or heed is not compiled")
        grads = []
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            with rounded_products():
                loss, _ = output_cross_entropy(states, weight / 8, targets)
            grads.append(torch.autograd.grad(loss, states)[0])
        assert torch.equal(grads[0], grads[1])
        assert torch.equal(grads[0], grads[2]) is not is_sampled


def test_tiles_refuse_a_target_that_is_not_in_the_vocabulary() -> None:
    states, weight = torch.zeros(64, 32), torch.zeros(7, 32)
    if not tiles.fit(states, weight):
        pytest.skip("this processor has no tiles of bfloat16, or heed is not compiled")
    with pytest.raises(HeedError, match="a target id is not in the vocabulary"):
        tiles.probabilities(states, weight, torch.full((64,), 7))


def test_tiles_are_for_wide_rows_of_float32_only() -> None:
    states, weight = torch.zeros(64, 32), torch.zeros(7, 32)
    assert not tiles.fit(states.double(), weight.double())
    assert not tiles.fit(torch.zeros(64, 33), torch.zeros(7, 33))
    assert not tiles.fit(torch.zeros(3, 32), weight)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
def test_the_plain_loss_equals_torch_cross_entropy(smoothing: float) -> None:
    torch.manual_seed(2)
    logits, targets = torch.randn(9, 7, dtype=torch.float64), torch.randint(0, 7, (9,))
    expected = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
    assert smoothed_cross_entropy(logits, targets, smoothing).item() == pytest.approx(
        expected.item(), rel=1e-12
    )


def test_validation_gives_the_same_loss_without_gradients() -> None:
    torch.manual_seed(1)
    states, weight = torch.randn(9, 4), torch.randn(6, 4)
    targets = torch.randint(0, 6, (9,))
    trained = output_cross_entropy(states, weight, targets, smoothing=0.1)
    with torch.no_grad():
        validated = output_cross_entropy(states, weight, targets, smoothing=0.1)
    for one, other in zip(trained, validated, strict=True):
        assert one.item() == pytest.approx(other.item(), rel=1e-5)


def test_de_nada_with_a_vocabulary_of_four_words() -> None:
    """Claims 18 and 105: cross-entropy against the one-hot rows of "De nada END"."""
    vocabulary = ["Bueno", "Nada", "De", "END"]
    targets = torch.tensor([vocabulary.index(word) for word in ("De", "Nada", "END")])
    probabilities = torch.tensor(
        [[0.1, 0.1, 0.7, 0.1], [0.25, 0.25, 0.25, 0.25], [0.0625, 0.0625, 0.375, 0.5]]
    )
    # With an identity output matrix, decoder states are the logits themselves.
    loss, _ = output_cross_entropy(probabilities.log(), torch.eye(4), targets)
    by_hand = -(torch.tensor(0.7).log() + torch.tensor(0.25).log() + torch.tensor(0.5).log())
    assert loss.item() == pytest.approx(by_hand.item(), rel=1e-6)
