"""Compiled or not: a run learns the same, or says why it cannot."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from heed.errors import ConfigError
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.train.parallel.distributed import Group
from heed.train.parallel.shard import idle_batches
from heed.train.run.checkpoint import load_newest
from heed.train.step.config import TrainConfig
from heed.train.step.forward import as_config_error, losses

Run = Callable[..., tuple[Any, list[dict[str, Any]]]]

DEEP: dict[str, Any] = {"n_encoder_layers": 2, "n_decoder_layers": 2, "dropout": 0.0}


def curve(events: list[dict[str, Any]]) -> list[float]:
    return [event["nll"] for event in events if event["kind"] == "step"]


def test_a_batch_without_pairs_has_no_loss_and_reaches_every_layer() -> None:
    class Behind(Group):
        """One pass behind the others."""

        def most(self, value: float) -> float:
            return value + 1

    model = build_model(ModelConfig(src_vocab_size=8, tgt_vocab_size=8, d_model=8, n_heads=2))
    special_ids = {"pad_id": 0, "bos_id": 2, "eos_id": 3}
    (nothing,) = idle_batches(special_ids, 0, Behind())
    loss, nll = losses(
        model,
        nothing,
        pad_id=0,
        smoothing=0.1,
        device=torch.device("cpu"),
        dtype=torch.float32,
    )
    loss.backward()
    assert (loss, nll) == (0, 0)
    assert all(p.grad is not None for p in model.encoder.parameters()), "all layers took part"


def test_what_is_compiled_cannot_be_shared_out() -> None:
    with pytest.raises(ConfigError, match="training.compile and training.shard cannot go together"):
        TrainConfig(compile=True, shard=True)


def test_the_compilers_trouble_is_told_with_a_way_out() -> None:
    class Trouble(RuntimeError):
        __module__ = "torch._inductor.exc"

    with (
        pytest.raises(ConfigError, match="here: No working C.. compiler. It needs .*compile=false"),
        as_config_error(),
    ):
        raise Trouble("No working C++ compiler.\nSet TORCHDYNAMO_VERBOSE=1")


def test_other_trouble_is_not_the_compilers() -> None:
    with pytest.raises(RuntimeError, match="shapes differ"), as_config_error():
        raise RuntimeError("shapes differ")


needs_compiler = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")),
    reason="torch's compiler needs a C++ compiler on a CPU",
)


def compiling(test: Any) -> Any:
    """A minute of work, much of it g++'s; what torch's compiler warns of is its own affair."""
    for mark in (
        pytest.mark.slow,
        pytest.mark.timeout(1800),
        pytest.mark.filterwarnings("ignore"),
    ):
        test = mark(test)
    return test


@compiling
@needs_compiler
@pytest.mark.parametrize(
    "attention",
    [{}, {"attention": "linear"}, {"attention": "favor", "n_features": 12}],
    ids=["softmax", "linear", "favor"],
)
def test_a_compiled_run_learns_as_another(
    tmp_path: Path, small_run: Run, attention: dict[str, Any]
) -> None:
    asked = {"settings": {"model": DEEP | attention}, "max_steps": 6}
    expected = curve(small_run(tmp_path / "eager", **asked)[1])
    first = curve(small_run(tmp_path / "run", **asked, compile=True, stop_at=3)[1])
    names = load_newest(tmp_path / "run").model.keys()
    assert names == load_newest(tmp_path / "eager").model.keys()
    rest = curve(small_run(tmp_path / "run", **asked)[1])  # goes on without
    assert [*first, *rest] == pytest.approx(expected, rel=1e-5)


@compiling
@needs_compiler
def test_compiled_layers_drop_as_many_numbers_and_can_recompute(
    tmp_path: Path, small_run: Run
) -> None:
    """Which ones is another draw: so the loss is near, not equal."""
    settings = {"model": {**DEEP, "dropout": 0.2}}
    asked = {"settings": settings, "max_steps": 4}
    expected = curve(small_run(tmp_path / "eager", **asked)[1])
    found = curve(small_run(tmp_path / "run", **asked, compile=True, recompute=True)[1])
    assert found == pytest.approx(expected, rel=0.05)
    assert found != expected


@compiling
def test_no_compiler_at_all_is_an_error_in_words(
    tmp_path: Path, small_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch._inductor.config

    monkeypatch.setattr(torch._inductor.config.cpp, "cxx", (str(tmp_path / "no-compiler"),))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    settings = {"model": {**DEEP, "d_ff": 24}}  # compiled nowhere else
    with pytest.raises(
        ConfigError, match="cannot compile the model here: .*[Cc]ompiler.*. It needs"
    ):
        small_run(tmp_path / "run", settings=settings, compile=True)
