"""What fits into memory is measured before the first step; no way of fitting changes gradients."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from heed.data.batch import Batch, collate
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.transformer import Transformer
from heed.train.step import loop
from heed.train.step.fit_memory import bytes_kept, needed_parts, positions_that_fit
from heed.train.step.loss import output_cross_entropy

Run = Callable[..., tuple[Any, list[dict[str, Any]]]]


class Sentences:
    """Eight of five ids each."""

    def src(self, index: int) -> "np.ndarray[Any, Any]":
        return np.arange(5, 10)

    tgt = src


def batch_of(n_rows: int) -> Batch:
    """Six positions a row on each side."""
    return collate(Sentences(), list(range(n_rows)), pad_id=0, bos_id=2, eos_id=3)


def make_model(*, is_recomputing: bool, **settings: Any) -> Transformer:
    torch.manual_seed(1)
    config = ModelConfig(
        src_vocab_size=16,
        tgt_vocab_size=16,
        d_model=16,
        n_heads=2,
        d_ff=64,
        dropout=0.2,
        attention_dropout=0.1,
        activation_dropout=0.1,
        **settings,
    )
    model = build_model(config)
    model.is_recomputing = is_recomputing
    return model


def loss_of(model: Transformer, batch: Batch) -> Tensor:
    states = model(batch.src, batch.tgt_in, batch.src_mask)
    loss, _ = output_cross_entropy(
        states.flatten(0, 1), model.output.weight, batch.tgt_out.flatten(), smoothing=0.1
    )
    return loss


@pytest.mark.parametrize("settings", [{}, {"positions": "rotary", "cross_from": "same"}], ids=str)
def test_recomputing_gives_the_same_gradients_with_the_same_dropout(
    settings: dict[str, Any],
) -> None:
    found = []
    for is_recomputing in (False, True):
        model = make_model(is_recomputing=is_recomputing, **settings)
        torch.manual_seed(2)
        loss_of(model, batch_of(3)).backward()
        found.append(([p.grad for p in model.parameters()], torch.rand(1)))
    (plain, after), (recomputed, after_too) = found
    for one, other in zip(plain, recomputed, strict=True):
        assert one is not None
        assert other is not None
        torch.testing.assert_close(other, one, atol=1e-6, rtol=1e-6)
    assert torch.equal(after, after_too), "whoever draws next draws the same"


def test_recomputing_keeps_a_small_part_for_the_way_back() -> None:
    kept, kept_recomputing = (
        bytes_kept(lambda model=model: loss_of(model, batch_of(64)))
        for model in (make_model(is_recomputing=is_so) for is_so in (False, True))
    )
    assert kept_recomputing < kept / 5


def test_recomputing_is_for_training_only() -> None:
    model = make_model(is_recomputing=True)
    batch = batch_of(2)
    with torch.no_grad():
        expected = model.eval()(batch.src, batch.tgt_in)
    torch.testing.assert_close(model(batch.src, batch.tgt_in), expected)


def test_what_is_kept_is_counted_once() -> None:
    weight = torch.ones(1000, requires_grad=True)
    x = torch.ones(1000)
    assert bytes_kept(lambda: weight * x) == 4000  # the other factor
    assert bytes_kept(lambda: weight * x + weight * x.view(10, 100).flatten()) == 4000
    assert bytes_kept(lambda: weight + x) == 0


def test_what_fits_is_told_in_positions() -> None:
    weight = torch.ones(1, requires_grad=True)

    def compute(part: Batch) -> Tensor:
        return weight * torch.ones(len(part.src), 1000)  # 4000 bytes a row of 12 positions

    def fit(spare_bytes: float, weights_bytes: int = 0) -> int:
        return positions_that_fit(
            compute,
            batch_of(4),
            most=1200,
            spare_bytes=spare_bytes,
            weights_bytes=weights_bytes,
            peak=2.0,
        )

    assert fit(80_000) == 120
    assert fit(120_000, weights_bytes=10_000) == 120
    assert fit(800_000) == 0, "all that will come fits"
    assert fit(float("inf")) == 0
    assert fit(0) == 1, "a row at a time is the least"


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("shapes differ")], ids=repr)
def test_no_memory_for_the_measurement_itself_is_left_to_the_first_step(error: Exception) -> None:
    def compute(part: Batch) -> Tensor:
        raise error

    sizes: dict[str, Any] = {"most": 1200, "spare_bytes": 1e9, "weights_bytes": 0}
    if isinstance(error, MemoryError):
        assert positions_that_fit(compute, batch_of(2), **sizes) == 0
    else:
        with pytest.raises(RuntimeError, match="shapes differ"):
            positions_that_fit(compute, batch_of(2), **sizes)


def test_a_batch_is_cut_into_as_few_parts_as_fit() -> None:
    assert [needed_parts(batch_of(8), at_once) for at_once in (0, 96, 95, 48, 1)] == [
        1,
        1,
        2,
        2,
        96,
    ]


def test_a_run_with_little_memory_learns_the_same_in_parts_and_goes_on_with_as_many(
    tmp_path: Path, small_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"model": {"dropout": 0.0}, "data": {"disturb": 0.0}}
    whole, events = small_run(tmp_path / "whole", settings=settings, max_steps=4)
    monkeypatch.setattr(loop, "spare_memory", lambda device: 300_000.0)
    paused, first = small_run(tmp_path / "parts", settings=settings, max_steps=4, stop_at=2)
    monkeypatch.setattr(loop, "spare_memory", lambda device: 0.0)
    ended, rest = small_run(tmp_path / "parts", settings=settings, max_steps=4)
    assert paused.progress.at_once == ended.progress.at_once > 1
    assert ended.progress.tgt_tokens == whole.progress.tgt_tokens
    assert ended.progress.splits == 4
    steps, in_parts = (
        [event for event in seen if event["kind"] == "step"] for seen in (events, [*first, *rest])
    )
    assert all(event["n_parts"] > 1 for event in in_parts)
    # Sums in another order: float32 leaves 1e-7 of each, and optimizers enlarge it a little.
    for one, other in zip(steps, in_parts, strict=True):
        assert other["nll"] == pytest.approx(one["nll"], rel=1e-5)
