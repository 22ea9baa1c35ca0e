"""The plain loss against torch's own, and the fused output layer and loss against both."""

import pytest
import torch
import torch.nn.functional as F

from heed.train.step.loss import CHUNK, output_cross_entropy, smoothed_cross_entropy


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
