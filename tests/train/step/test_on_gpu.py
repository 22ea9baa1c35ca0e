"""Training and translating on a GPU, beside the same on a processor; skipped where none is."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from heed.data.batch import Batch
from heed.model.build import build_model
from heed.model.decodable import top
from heed.model.families import FAMILIES
from heed.model.fast.products import rounded_products
from heed.train.step import loss as loss_module
from heed.train.step.forward import losses
from heed.translate.translator import load

N_PIECES = 1000

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU")


def padded_batch() -> Batch:
    """24 pairs of 20 and 22 random ids; some sources and targets are shorter."""
    random = torch.Generator().manual_seed(1)
    src, tgt = (torch.randint(4, N_PIECES, (24, n), generator=random) for n in (20, 22))
    src[:8, 15:] = 0
    labels = tgt.clone()
    labels[5:10, 18:] = 0
    return Batch(
        src=src,
        tgt_in=torch.cat([torch.full((24, 1), 1), tgt[:, :-1]], dim=1),
        tgt_out=labels,
        src_mask=(src != 0)[:, None, None, :],
        n_src_tokens=int((src != 0).sum()),
        n_tgt_tokens=int((labels != 0).sum()),
        indices=np.arange(24),
    )


def learned(model: Any, device: str, dtype: torch.dtype) -> tuple[float, Tensor]:
    """The loss of the batch, and all gradients in a row."""
    model = copy.deepcopy(model).to(device)
    with rounded_products(is_on=dtype != torch.float32):
        loss, _ = losses(
            model,
            padded_batch(),
            pad_id=0,
            smoothing=0.1,
            device=torch.device(device),
            dtype=dtype,
        )
        loss.backward()
    return loss.item(), torch.cat([p.grad.flatten().cpu().double() for p in model.parameters()])


@needs_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("transformer", {}),
        ("transformer", {"positions": "rotary", "activation": "swiglu"}),
        ("decoder", {}),
        ("conv", {}),
        ("rnn", {}),
    ],
)
def test_the_loss_and_gradients_are_those_of_a_processor(
    family: str, changes: dict[str, Any], dtype: torch.dtype
) -> None:
    own = FAMILIES[family]
    sizes = {"src_vocab_size": N_PIECES, "tgt_vocab_size": N_PIECES, "dropout": 0.0}
    torch.manual_seed(0)
    model = build_model(own.config(**{**own.presets["tiny"], **sizes, **changes}))
    true_loss, truth = learned(model, "cpu", torch.float32)
    found_loss, found = learned(model, "cuda", dtype)
    # cuDNN computes recurrent layers in TF32, which has three bits more than bfloat16.
    most = 0.08 if dtype == torch.bfloat16 else 1e-3 if family == "rnn" else 1e-5
    assert found_loss == pytest.approx(true_loss, rel=1e-3 if dtype == torch.bfloat16 else 1e-5)
    assert ((found - truth).norm() / truth.norm()).item() < most


@needs_gpu
def test_many_logits_at_once_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    states, weight = torch.randn(3000, 64), torch.randn(500, 64)
    targets = torch.randint(0, 500, (3000,))

    def found() -> tuple[Tensor, ...]:
        given = [x.cuda().requires_grad_() for x in (states, weight)]
        loss, _ = loss_module.output_cross_entropy(*given, targets.cuda(), smoothing=0.1)
        return (loss.detach(), *torch.autograd.grad(loss, given))

    at_once = found()
    monkeypatch.setattr(loss_module, "ON_GPU", 1)
    for one, other in zip(at_once, found(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@needs_gpu
@pytest.mark.parametrize("width", [63, 700, 5001])
def test_the_likeliest_tokens_are_those_of_a_processor(width: int) -> None:
    scores = -torch.randint(50, (40, width), generator=torch.Generator().manual_seed(1)) / 7
    for one, other in zip(top(scores.cuda(), 6), top(scores, 6), strict=True):
        assert torch.equal(one.cpu(), other)


@needs_gpu
def test_a_run_on_a_gpu_translates_as_on_a_processor(
    tmp_path: Path, small_run: Callable[..., Any]
) -> None:
    small_run(tmp_path / "run", max_steps=40, device="cuda")
    lines = ["a b c", "c b a", "b", "a a b b c c"]
    on_gpu, on_cpu = (
        load(tmp_path / "run", device=device, dtype="float32", runtime="torch")
        for device in ("cuda", "cpu")
    )
    for beam_size in (1, 4):
        assert on_gpu(lines, beam_size=beam_size) == on_cpu(lines, beam_size=beam_size)
