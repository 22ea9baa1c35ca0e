"""Checkpoints: bit for bit as they were, whole or passed over, never one too few."""

import itertools
import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from heed.disk.folders import verify_directory, write_directory
from heed.errors import FormatError, RunError
from heed.train.run import checkpoint
from heed.train.run.checkpoint import Checkpoint, average_checkpoints, load, load_newest, save

Fork = Callable[..., int]
WasKilled = Callable[[int], bool]


def save_step(run: Path, step: int, *, keep: int = 2, average: bool = False) -> Path:
    """A checkpoint whose numbers all follow from its step."""
    generator = torch.Generator().manual_seed(step)
    weight = torch.randn(4, 8, generator=generator)
    return save(
        run,
        step,
        model={"w": weight, "b": torch.full((8,), float(step))},
        optimizer={"adam.exp_avg.w": weight * 2, "adam.step.w": torch.tensor(float(step))},
        progress={"step": step, "best": 0.1 * step, "text": "ü"},
        average={"w": weight / 3, "b": torch.zeros(8)} if average else None,
        extra={"config.json": b"{}\n"},
        keep=keep,
    )


def assert_is_step(found: Checkpoint | None, step: int) -> None:
    assert found is not None
    generator = torch.Generator().manual_seed(step)
    weight = torch.randn(4, 8, generator=generator)
    assert found.step == found.progress["step"] == step
    assert torch.equal(found.model["w"], weight)
    assert torch.equal(found.optimizer["adam.exp_avg.w"], weight * 2)
    assert found.progress["best"] == 0.1 * step


def steps(run: Path) -> list[str]:
    return sorted(os.listdir(run / "checkpoints"))


def test_a_new_run_has_no_checkpoint(tmp_path: Path) -> None:
    assert load_newest(tmp_path) is None


def test_a_checkpoint_comes_back_bit_for_bit(tmp_path: Path) -> None:
    folder = save_step(tmp_path, 500)
    assert folder == tmp_path / "checkpoints" / "step-000500"
    found = load_newest(tmp_path)
    assert_is_step(found, 500)
    assert found is not None
    assert (found.path, found.average, found.warnings) == (folder, {}, ())
    assert set(os.listdir(folder)) == {
        "config.json",
        "manifest.json",
        "model.safetensors",
        "optimizer.safetensors",
        "progress.json",
    }


def test_an_average_comes_back_too(tmp_path: Path) -> None:
    found = load(save_step(tmp_path, 3, average=True))
    assert torch.equal(found.average["w"], found.model["w"] / 3)


def test_saving_the_same_state_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = save_step(tmp_path / "a", 1), save_step(tmp_path / "b", 1)
    for name in os.listdir(first):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_the_newest_are_kept_and_never_fewer_than_two(tmp_path: Path) -> None:
    for step in (100, 200, 300, 400):
        save_step(tmp_path, step, keep=1)
    assert steps(tmp_path) == ["step-000300", "step-000400"]
    for step in (500, 600):
        save_step(tmp_path, step, keep=3)
    assert steps(tmp_path) == ["step-000400", "step-000500", "step-000600"]


def test_step_numbers_may_outgrow_their_zeros(tmp_path: Path) -> None:
    for step in (999_998, 999_999, 1_000_000):
        save_step(tmp_path, step)
    assert steps(tmp_path) == ["step-1000000", "step-999999"]
    assert_is_step(load_newest(tmp_path), 1_000_000)


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    write_directory(tmp_path / "checkpoints" / "best", {"a": b"a"})
    for step in (1, 2, 3):
        save_step(tmp_path, step)
    assert steps(tmp_path) == ["best", "step-000002", "step-000003"]


def test_a_damaged_old_one_does_not_count_as_kept(tmp_path: Path) -> None:
    for step in (1, 2):
        save_step(tmp_path, step)
    (tmp_path / "checkpoints" / "step-000002" / "model.safetensors").write_bytes(b"damaged")
    save_step(tmp_path, 3)
    assert steps(tmp_path) == ["step-000001", "step-000003"]


def test_a_future_that_was_given_up_is_removed(tmp_path: Path) -> None:
    for step in (1, 5, 9):
        save_step(tmp_path, step, keep=3)
    save_step(tmp_path, 6, keep=3)
    assert steps(tmp_path) == ["step-000001", "step-000005", "step-000006"]


def test_the_older_ones_stay_when_the_new_one_reads_back_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in (1, 2):
        save_step(tmp_path, step)

    def damage(folder: Path) -> None:
        (folder / "model.safetensors").write_bytes(b"damaged")
        verify_directory(folder)

    monkeypatch.setattr(checkpoint, "verify_directory", damage)
    with pytest.raises(RunError, match="was written, but could not be verified: .*cut short"):
        save_step(tmp_path, 3)
    monkeypatch.undo()
    assert_is_step(load_newest(tmp_path), 2)


MUTATIONS: list[Callable[[Path], object]] = [
    lambda folder: (folder / "manifest.json").unlink(),
    lambda folder: (folder / "model.safetensors").unlink(),
    lambda folder: (folder / "optimizer.safetensors").write_bytes(b""),
    lambda folder: os.truncate(folder / "progress.json", 5),
    lambda folder: os.truncate(folder / "manifest.json", 50),
    lambda folder: [path.unlink() for path in folder.iterdir()],
    *[
        lambda folder, name=name, place=place: flip(folder / name, place)
        for name in ("manifest.json", "model.safetensors", "optimizer.safetensors", "progress.json")
        for place in range(8)
    ],
]


def flip(path: Path, seed: int) -> None:
    data = bytearray(path.read_bytes())
    data[random.Random(seed).randrange(len(data))] ^= 1 << seed
    path.write_bytes(data)


@pytest.mark.parametrize("mutate", MUTATIONS)
def test_a_damaged_newest_is_passed_over_with_a_warning_that_names_both(
    tmp_path: Path, mutate: Callable[[Path], object]
) -> None:
    older, newer = save_step(tmp_path, 1), save_step(tmp_path, 2)
    mutate(newer)
    found = load_newest(tmp_path)
    assert_is_step(found, 1)
    assert found is not None
    (warning,) = found.warnings
    assert warning.startswith(f"{newer} is damaged and was skipped: ")
    assert warning.endswith(f" Continuing from {older}.")


def test_a_run_whose_checkpoints_are_all_damaged_is_not_begun_anew(tmp_path: Path) -> None:
    for step in (1, 2):
        flip(save_step(tmp_path, step) / "model.safetensors", 0)
    words = "no checkpoint of .* can be used. .*step-000002 is damaged .* To start over, remove"
    with pytest.raises(RunError, match=words):
        load_newest(tmp_path)


def test_a_folder_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    write_directory(tmp_path / "x", {"progress.json": b"{}"})
    with pytest.raises(FormatError, match=r"x has no model.safetensors, so it is not a checkpoint"):
        load(tmp_path / "x")
    names = ("model.safetensors", "optimizer.safetensors", "progress.json")
    for metadata in ({}, {"step": True}):
        write_directory(tmp_path / "x", dict.fromkeys(names, b"{}"), metadata)
        with pytest.raises(FormatError, match=r"x does not record its step"):
            load(tmp_path / "x")


def test_what_is_not_finite_is_not_saved(tmp_path: Path) -> None:
    save_step(tmp_path, 1)
    for bad in ("model", "optimizer"):
        tensors: dict[str, Any] = {
            "model": {"w": torch.zeros(1)},
            "optimizer": {"m": torch.zeros(1)},
        }
        tensors[bad] = {"bad": torch.tensor([float("nan")])}
        with pytest.raises(RunError, match="bad holds a number that is not finite"):
            save(tmp_path, 2, **tensors, progress={})
    assert steps(tmp_path) == ["step-000001"]


def test_what_a_killed_save_left_is_swept_up(tmp_path: Path) -> None:
    save_step(tmp_path, 1)
    (tmp_path / "checkpoints" / "step-000002.tmp-abcd1234").mkdir()
    (tmp_path / "checkpoints" / "best.tmp-abcd1234").touch()
    save_step(tmp_path, 2)
    assert steps(tmp_path) == ["step-000001", "step-000002"]


def test_a_kill_at_any_point_of_a_save_leaves_a_whole_checkpoint(
    tmp_path: Path, fork: Fork, was_killed: WasKilled
) -> None:
    """Going on from what is found after the kill ends in the same bytes as no kill at all."""
    start, undisturbed = tmp_path / "start", tmp_path / "undisturbed"
    for step in (1, 2):
        save_step(start, step, average=True)
    shutil.copytree(start, undisturbed)
    for step in (3, 4):
        save_step(undisturbed, step, average=True)
    found_steps = set()
    run = tmp_path / "run"
    for fault in itertools.count(1):
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(start, run)
        if not was_killed(fork(lambda: save_step(run, 3, average=True), fault)):
            break
        found = load_newest(run)
        assert found is not None
        assert found.warnings == ()
        assert_is_step(found, found.step)
        found_steps.add(found.step)
        for step in range(found.step + 1, 5):
            save_step(run, step, average=True)
        assert contents(run) == contents(undisturbed)
    assert fault > 20, "a save of six files has many points"
    assert found_steps == {2, 3}


def contents(run: Path) -> dict[str, bytes]:
    checkpoints = run / "checkpoints"
    whole = (p for p in checkpoints.rglob("*") if p.is_file() and ".tmp-" not in str(p))
    return {str(path.relative_to(checkpoints)): path.read_bytes() for path in whole}


def test_an_average_is_the_mean_of_the_weights(tmp_path: Path) -> None:
    folders = [save_step(tmp_path, step, keep=3) for step in (1, 2, 6)]
    average = average_checkpoints(folders)
    assert torch.equal(average["b"], torch.full((8,), 3.0))
    mean = torch.stack([load(folder).model["w"] for folder in folders]).double().mean(0)
    # Both are sums of three numbers in float64, rounded once to float32.
    torch.testing.assert_close(average["w"], mean.float(), rtol=1e-7, atol=0)
    assert average["w"].dtype == torch.float32


def test_only_equal_models_have_an_average(tmp_path: Path) -> None:
    folder = save_step(tmp_path, 1)
    other = save(tmp_path / "b", 2, model={"w": torch.ones(2)}, optimizer={}, progress={})
    with pytest.raises(FormatError, match=re.escape(f"{other}/model.safetensors lacks b")):
        average_checkpoints([folder, other])
    write_directory(tmp_path / "x", {"a": b""})
    with pytest.raises(FormatError, match=r"x has no model.safetensors"):
        average_checkpoints([tmp_path / "x"])
