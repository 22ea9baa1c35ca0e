"""A model shared out to two processes learns what one would, and each holds half of it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from heed.data.corpus import Corpus
from heed.disk.tensors import decode_tensors
from heed.errors import ConfigError, RunError
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.train.parallel.distributed import Group
from heed.train.parallel.shard import collected, fill, idle_batches, rows_of, shard, whole
from heed.train.recipe.asked import merge
from heed.train.run.run import Outcome
from heed.train.step.fit_memory import in_parts

Events = list[dict[str, Any]]
Run = Callable[..., tuple[Outcome, Events]]

OPTIMIZERS = ["adamw", pytest.param("muon", marks=pytest.mark.reliability)]
"""CI has time for one; `make learn` runs both."""

PATIENCE_S = 600  # a busy machine is no bug
DEEP = {
    "model": {"n_encoder_layers": 2},
    # The recipe's share depends on the length of the run, which is prolonged.
    "data": {"disturb": 0.0},
}
EXACT = {
    "batch_tokens": 64,
    "first_batch_tokens": 64,
    "ema_decay": 0.9,
    "clip_norm": 0.5,
    "weight_decay": 0.1,
    # Not a schedule that knows how long the run will be: it is prolonged.
    "schedule": "inverse_sqrt",
    "validate_every": 100,
    "validation_sentences": 2,
    "threads": 1,
    "precision": "float32",  # rounded factors differ more than other orders of sums
}

TRAINING = """
import json, sys
from pathlib import Path
from heed.data.corpus import Corpus
from heed.data.readers import ParallelFiles
from heed.train.recipe.asked import Asked
from heed.train.run.run import run_training

src, tgt, out, asked = sys.argv[1:]
part = ParallelFiles(files=(src, tgt), source_lang="de", target_lang="xx")
losses = {}
run_training(
    Asked(json.loads(asked)),
    Corpus(train=(part,)),
    Path(out),
    report=lambda event: losses.update({event["step"]: event["nll"]})
    if event["kind"] == "step"
    else None,
)
if losses:
    Path(f"{out}.json").write_text(json.dumps(losses))
"""

HOLDING = """
import sys
import torch
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.train.step.config import TrainConfig
from heed.train.parallel.distributed import join_group
from heed.train.step.optimizer import Optimizer
from heed.train.parallel.shard import rows_of, shard

def count(tensors):
    return sum(rows_of(tensor)[0].numel() for tensor in tensors)

config = ModelConfig(src_vocab_size=101, tgt_vocab_size=101, d_model=32, d_ff=64, n_heads=2,
                     n_encoder_layers=2, n_decoder_layers=2)
with join_group("cpu") as group:
    model = build_model(config)
    n_whole = sum(p.numel() for p in model.parameters())
    shard(model, group)
    optimizer = Optimizer(model, TrainConfig(optimizer=sys.argv[1]))
    ids = torch.arange(5, 11).view(2, 3)
    for _ in range(2):
        model.logits(model(ids, ids)).square().sum().backward()
        gradients = [p.grad for p in model.parameters()]
        n_gradients = count(gradients)
        del gradients
        optimizer.step(1.0)
    moments = [v for s in optimizer.adam.moments.values() for v in s.values() if v.dim()]
    n_moments = count(moments) / 2
    if optimizer.muon:
        n_moments += count(optimizer.muon.momenta.values())
    for n in (count(model.parameters()), n_gradients, n_moments):
        sys.stdout.write(f"held {n / n_whole:.3f}\\n")
"""


FORKING = """
import sys
import torch.distributed.fsdp, torch.distributed.run
import heed.train.run.run, heed.train.tasks.translation
torch.distributed.run.main(sys.argv[1:])
"""
"""torchrun whose workers are forked from it, so that they need not import torch again."""


def torchrun(folder: Path, script: str, *arguments: str) -> str:
    """Two processes run a script; what they say."""
    (folder / "script.py").write_text(script)
    command = [sys.executable, "-c", FORKING, "--nproc-per-node", "2"]
    command += ["--run-path", "--start-method", "fork"]
    done = subprocess.run(
        [*command, str(folder / "script.py"), *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def sharded_run(
    tmp_path: Path, small: dict[str, Any], small_corpus: Corpus
) -> Callable[..., dict[int, float]]:
    """`sharded_run(out, model={}, **training)`: two processes train; the loss of each step."""

    def run(out: Path, model: dict[str, Any] | None = None, **training: Any) -> dict[int, float]:
        settings = {**DEEP, "model": DEEP["model"] | (model or {})}
        asked = merge(small, {**settings, "training": {**EXACT, "shard": True, **training}})
        torchrun(tmp_path, TRAINING, *small_corpus.train[0].files, str(out), json.dumps(asked))
        losses = json.loads(Path(f"{out}.json").read_text())
        return {int(step): loss for step, loss in losses.items()}

    return run


def losses_of(events: Events) -> dict[int, float]:
    return {event["step"]: event["nll"] for event in events if event["kind"] == "step"}


def tensors_of(out: Path, step: int) -> dict[str, torch.Tensor]:
    """All that a checkpoint holds."""
    found = {}
    for path in (out / "checkpoints" / f"step-{step:06d}").glob("*.safetensors"):
        for name, tensor in decode_tensors(path.read_bytes(), path).items():
            found[f"{path.stem} {name}"] = torch.tensor(tensor)
    return found


# One process


def test_one_process_cannot_share_a_model_out(tmp_path: Path, small_run: Run) -> None:
    with pytest.raises(ConfigError, match="only one is running. Start more with torchrun"):
        small_run(tmp_path / "run", shard=True)


def test_an_old_torch_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.distributed.fsdp import FSDPModule  # brings the compiler, over a second

    monkeypatch.delattr(FSDPModule, "set_force_sum_reduction_for_comms")
    sizes: dict[str, Any] = {
        "src_vocab_size": 9,
        "tgt_vocab_size": 9,
        "d_model": 8,
        "d_ff": 8,
        "n_heads": 2,
    }
    with pytest.raises(ConfigError, match="needs a newer torch, such as 2.13, but this is"):
        shard(build_model(ModelConfig(**sizes)), Group(size=2))


def test_layers_that_share_weights_are_not_shared_out() -> None:
    sizes: dict[str, Any] = {"d_model": 8, "d_ff": 8, "n_heads": 2, "share_layers": "all"}
    model = build_model(ModelConfig(src_vocab_size=9, tgt_vocab_size=9, **sizes))
    with pytest.raises(ConfigError, match="with model.share_layers = all the layers share"):
        shard(model, Group(size=2))


def test_a_step_that_others_wait_in_is_not_made_again_in_parts() -> None:
    def compute(n_parts: int) -> None:
        raise MemoryError

    with pytest.raises(RunError, match="with training.shard a step cannot be repeated"):
        in_parts(compute, undo=lambda: None, max_parts=8, can_repeat=False)


def test_of_a_plain_tensor_the_rows_and_the_whole_are_its_own() -> None:
    tensor = torch.arange(12.0).view(6, 2)
    rows, places = rows_of(tensor, 2, 5)
    assert torch.equal(rows, tensor[2:5])
    assert places == slice(0, 3)
    assert whole(tensor) is tensor
    assert collected(tensor) is tensor
    fill(tensor, torch.ones(6, 2))
    assert torch.equal(rows, torch.ones(3, 2))


def test_a_process_with_fewer_batches_computes_nothing_instead() -> None:
    class Busier(Group):
        def most(self, value: float) -> float:
            return 5

    idle = idle_batches({"pad_id": 0, "bos_id": 1, "eos_id": 2}, 3, Busier(size=2))
    assert [batch.tgt_out.tolist() for batch in idle] == [[[0]], [[0]]]
    assert not any(batch.n_src_tokens or batch.n_tgt_tokens for batch in idle)


# Two processes


@pytest.mark.slow
@pytest.mark.timeout(4 * PATIENCE_S)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_run_shared_out_and_whole_by_turns_equals_one_process(
    tmp_path: Path,
    small_run: Run,
    sharded_run: Callable[..., dict[int, float]],
    optimizer: str,
) -> None:
    """Fault D5. Epochs have an odd number of batches: the last step has one for two."""
    asked = {**EXACT, "optimizer": optimizer}
    _, events = small_run(
        tmp_path / "one", settings=DEEP, **{**asked, "max_steps": 21, "accumulate": 2}
    )
    assert any(event["batches"] % 2 for event in events if event["kind"] == "epoch")
    turns = tmp_path / "turns"
    losses = sharded_run(turns, optimizer=optimizer, max_steps=7)
    _, alone = small_run(turns, settings=DEEP, **asked, max_steps=14, shard=False)
    losses.update(losses_of(alone))
    losses.update(sharded_run(turns, optimizer=optimizer, max_steps=21))
    assert losses == pytest.approx(losses_of(events), abs=1e-6, rel=0)
    mine, other = tensors_of(turns, 21), tensors_of(tmp_path / "one", 21)
    assert mine.keys() == other.keys()
    for name, tensor in mine.items():
        if "project_in.bias" in name:
            continue  # a bias of keys has no gradient but rounding, which Adam makes large
        torch.testing.assert_close(tensor, other[name], rtol=0, atol=2e-6, msg=name)


@pytest.mark.slow
@pytest.mark.timeout(4 * PATIENCE_S)
def test_a_run_shared_out_goes_on_bit_by_bit(
    tmp_path: Path, sharded_run: Callable[..., dict[int, float]]
) -> None:
    for last_step in (6, 12):
        sharded_run(tmp_path / "resumed", max_steps=last_step)
    sharded_run(tmp_path / "straight", max_steps=12)
    other = tensors_of(tmp_path / "straight", 12)
    for name, tensor in tensors_of(tmp_path / "resumed", 12).items():
        assert torch.equal(tensor, other[name]), name


@pytest.mark.slow
@pytest.mark.timeout(4 * PATIENCE_S)
@pytest.mark.parametrize("attention", ["linear", "favor"])
def test_attention_by_sums_is_shared_out_as_any_other(
    tmp_path: Path,
    small_run: Run,
    sharded_run: Callable[..., dict[int, float]],
    attention: str,
) -> None:
    """Two runs of three steps beside one process; the directions of FAVOR+ are never trained."""
    model = {"attention": attention, **({"n_features": 12} if attention == "favor" else {})}
    settings = {**DEEP, "model": DEEP["model"] | model}
    _, events = small_run(
        tmp_path / "one", settings=settings, **{**EXACT, "max_steps": 6, "accumulate": 2}
    )
    losses = sharded_run(tmp_path / "turns", model, max_steps=3)
    losses.update(sharded_run(tmp_path / "turns", model, max_steps=6))
    assert losses == pytest.approx(losses_of(events), abs=1e-5, rel=0)
    first, last = (tensors_of(tmp_path / "turns", step) for step in (3, 6))
    fixed = [name for name in last if "directions" in name]
    assert bool(fixed) == (attention == "favor")
    assert all(torch.equal(first[name], last[name]) for name in fixed)


@pytest.mark.slow
@pytest.mark.timeout(PATIENCE_S)
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_each_process_holds_half_of_weights_gradients_and_moments(
    tmp_path: Path, optimizer: str
) -> None:
    """Muon has one moment of a matrix, Adam two: both are counted once."""
    said = torchrun(tmp_path, HOLDING, optimizer)
    shares = [float(line.split()[1]) for line in said.splitlines() if line.startswith("held")]
    assert shares == pytest.approx([0.5] * 6, abs=0.02)
