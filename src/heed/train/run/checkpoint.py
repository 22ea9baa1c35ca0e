"""Checkpoints: save the state of training, resume at the very next batch, average several.

Each is a folder `checkpoints/step-000500` that is complete or absent (`disk/folders.py`).
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from heed.bundle.find import AVERAGE, BEST, CHECKPOINTS, WEIGHTS, step_folders
from heed.disk.files import parse_json, to_json
from heed.disk.folders import (
    read_directory,
    remove_directory,
    remove_temporaries,
    verify_directory,
    write_directory,
)
from heed.disk.tensors import decode_tensors, encode_tensors
from heed.errors import FormatError, RunError
from heed.train.step.averages import to_arrays, to_tensors

OPTIMIZER = "optimizer.safetensors"
PROGRESS = "progress.json"
OWN_CHECKPOINTS = ("step-*", BEST)
"""The names of the folders in `checkpoints/`; `*` stands for any characters."""
MIN_KEPT = 2
"""A disk may damage the newest checkpoint, so one is never enough."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A checkpoint, as read.

    Attributes:
        path: its folder.
        step: optimizer steps made when it was saved.
        model: the trained weights, not averaged.
        optimizer: the optimizer's tensors.
        average: the exponential average of the weights; empty when there is none.
        progress: of the loop, as JSON values.
        warnings: a sentence for each newer checkpoint that is damaged.
    """

    path: Path
    step: int
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    average: dict[str, Tensor] = field(default_factory=dict)
    progress: dict[str, Any]
    warnings: tuple[str, ...] = ()


def save(
    run: str | os.PathLike[str],
    step: int,
    *,
    model: Mapping[str, Tensor],
    optimizer: Mapping[str, Tensor],
    progress: Mapping[str, Any],
    average: Mapping[str, Tensor] | None = None,
    extra: Mapping[str, bytes] | None = None,
    environment: Mapping[str, Any] | None = None,
    keep: int = MIN_KEPT,
) -> Path:
    """Write `checkpoints/step-…` of a run, then remove what is no longer needed.

    Older checkpoints are removed only after this one has been read back. The caller holds the run's
    lock.

    Args:
        run: the run folder.
        step: optimizer steps made so far.
        model: weights; a tied one under one name.
        optimizer: the optimizer's tensors.
        progress: JSON values.
        average: averaged weights, under the same names as `model`.
        extra: further files, such as `bundle.description_files`, which make it a model folder.
        environment: versions and hardware that the exact bits depend on, for the manifest only.
        keep: number of checkpoints to keep, at least two.

    Raises:
        RunError: the disk is full or read-only, permission is denied, or a number is not finite.
            Older checkpoints are untouched.
    """
    folder = Path(run) / CHECKPOINTS / f"step-{step:06d}"
    files = {
        **(extra or {}),
        WEIGHTS: encode_tensors(to_arrays(model)),
        OPTIMIZER: encode_tensors(to_arrays(optimizer)),
        **({AVERAGE: encode_tensors(to_arrays(average))} if average else {}),
        PROGRESS: to_json(dict(progress)),
    }
    if folder.parent.is_dir():
        remove_temporaries(folder.parent, OWN_CHECKPOINTS)
    write_directory(folder, files, {"step": step, "environment": dict(environment or {})})
    try:
        verify_directory(folder)
    except FormatError as error:
        raise RunError(f"a checkpoint was written, but could not be verified: {error}") from error
    _prune(run, step, max(keep, MIN_KEPT))
    return folder


def load_newest(run: str | os.PathLike[str]) -> Checkpoint | None:
    """The newest checkpoint that is whole, or None when the run has none yet.

    Raises:
        RunError: there are checkpoints, but every one is damaged.
    """
    problems: list[str] = []
    for _, folder in step_folders(run):
        try:
            checkpoint = load(folder)
        except FormatError as error:
            problems.append(f"{folder} is damaged and was skipped: {error}")
            continue
        warnings = tuple(f"{problem} Continuing from {folder}." for problem in problems)
        return Checkpoint(**{**vars(checkpoint), "warnings": warnings})
    if problems:
        raise RunError(
            f"no checkpoint of {run} can be used. {problems[0]} To start over, remove "
            f"{Path(run) / CHECKPOINTS} or choose another run folder."
        )
    return None


def load(folder: str | os.PathLike[str]) -> Checkpoint:
    """Read one checkpoint and compare every byte with its manifest.

    Raises:
        FormatError: something is missing or damaged.
    """
    path = Path(folder)
    manifest, files = read_directory(path, (WEIGHTS, OPTIMIZER, AVERAGE, PROGRESS))
    for name in (WEIGHTS, OPTIMIZER, PROGRESS):
        if name not in files:
            raise FormatError(f"{path} has no {name}, so it is not a checkpoint.")
    step = manifest.metadata.get("step")
    if type(step) is not int:
        raise FormatError(f"{path} does not record its step.")

    def tensors(name: str) -> dict[str, Tensor]:
        return to_tensors(decode_tensors(files[name], path / name)) if name in files else {}

    return Checkpoint(
        path=path,
        step=step,
        model=tensors(WEIGHTS),
        optimizer=tensors(OPTIMIZER),
        average=tensors(AVERAGE),
        progress=parse_json(files[PROGRESS], path / PROGRESS),
    )


def average_checkpoints(folders: Sequence[str | os.PathLike[str]]) -> dict[str, Tensor]:
    """The mean of the weights of several checkpoints or model folders, each summed in float64.

    Source: Vaswani et al. 2017, section 6.1.

    Raises:
        FormatError: one is damaged, or their tensors differ in name or shape.
    """
    assert folders, "no folders to average"
    sums: dict[str, NDArray[np.float64]] = {}
    dtypes: dict[str, np.dtype[Any]] = {}
    for folder in folders:
        path = Path(folder) / WEIGHTS
        _, files = read_directory(folder, (WEIGHTS,))
        if WEIGHTS not in files:
            raise FormatError(f"{folder} has no {WEIGHTS}.")
        shapes = {name: tuple(tensor.shape) for name, tensor in sums.items()} or None
        weights = decode_tensors(files[WEIGHTS], path, expected=shapes)
        for name, tensor in weights.items():
            dtypes.setdefault(name, tensor.dtype)
            if name in sums:
                sums[name] += tensor
            else:
                sums[name] = tensor.astype(np.float64)
    means = {name: total / len(folders) for name, total in sums.items()}
    return to_tensors({name: mean.astype(dtypes[name]) for name, mean in means.items()})


def _prune(run: str | os.PathLike[str], step: int, keep: int) -> None:
    """Remove all but the newest `keep` whole checkpoints up to `step`.

    Those beyond `step` were abandoned when the run rolled back.
    """
    n_kept = 0
    for other, folder in step_folders(run):
        if other <= step and n_kept < keep and (other == step or _is_whole(folder)):
            n_kept += 1
        else:
            remove_directory(folder)


def _is_whole(folder: Path) -> bool:
    try:
        verify_directory(folder)
    except FormatError:
        return False
    return True
