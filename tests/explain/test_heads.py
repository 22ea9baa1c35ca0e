"""How far heads differ in what they read (claim 61)."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from heed.data.batch import Batch
from heed.explain.heads import distances_by_sublayer, head_distances
from heed.model.transformer import Transformer


def test_distances_equal_the_formula_written_out() -> None:
    """Claim 61. Lin 1991: mean of the two Kullback–Leibler divergences from the middle."""
    draw = np.random.default_rng(1)
    weights = draw.dirichlet(np.ones(4), size=(2, 3, 5))
    found = head_distances(torch.tensor(weights)).numpy()
    for i in range(3):
        for j in range(3):
            total = 0.0
            for p, q in zip(
                weights[:, i].reshape(-1, 4), weights[:, j].reshape(-1, 4), strict=True
            ):
                middle = (p + q) / 2
                total += (p * np.log2(p / middle) + q * np.log2(q / middle)).sum() / 2
            assert found[i, j] == pytest.approx(total / 10)


def test_equal_heads_are_at_0_and_heads_without_a_common_position_at_1() -> None:
    one, other = [[1.0, 0.0, 0.0]], [[0.0, 0.25, 0.75]]
    found = head_distances(torch.tensor([[one, other, one]]))
    torch.testing.assert_close(found, torch.tensor([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]]).double())


def test_a_row_that_reads_nothing_adds_nothing_of_its_own() -> None:
    weights = torch.zeros(1, 2, 1, 3)
    assert head_distances(weights).tolist() == [[0, 0], [0, 0]]


def test_every_attention_sublayer_is_measured(tiny: Callable[..., Transformer]) -> None:
    model = tiny(norm="pre").eval()
    src, tgt = torch.tensor([[4, 5, 6, 3]]), torch.tensor([[2, 7, 8]])
    batch = Batch(
        src=src,
        tgt_in=tgt,
        tgt_out=tgt,
        src_mask=None,
        n_src_tokens=4,
        n_tgt_tokens=3,
        indices=np.arange(1),
    )
    found = distances_by_sublayer(model, [batch, batch])
    kinds = ("encoder.{}.self_attention", "decoder.{}.self_attention", "decoder.{}.cross_attention")
    assert found.keys() == {kind.format(i) for kind in kinds for i in (0, 1)}
    for distances in found.values():
        assert distances.shape == (2, 2)
        assert distances.diagonal().tolist() == [0, 0]
        assert 0 < distances[0, 1].item() < 1
    # Heads that begin alike read alike: claim 62.
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "project_in" in name:
                blocks = parameter.view(3, 2, -1)
                blocks[:, 1] = blocks[:, 0]
    for distances in distances_by_sublayer(model, [batch]).values():
        assert distances.abs().max() < 1e-6
