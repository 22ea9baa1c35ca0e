"""Finds a model: the names of the files of a model folder, and the model of a run folder."""

import difflib
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from heed.disk.folders import CARD, MANIFEST, verify_directory
from heed.errors import FormatError, in_shell

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
AVERAGE = "average.safetensors"
"""In a checkpoint, the averaged weights, which are used to translate."""
INT8 = "model.int8.safetensors"
"""The weights rounded to int8, as `heed.engine` multiplies them; beside the others or alone."""
SHORTLIST = "shortlist.safetensors"
"""The shortlist: see `heed.engine.shortlist`."""
ALIGNMENT_HEADS = "alignment.json"
"""The heads that are read as an alignment: see `heed.bundle.alignment`."""
DOUBTS = "doubts.json"
"""The learned judgment of translations: see `heed.bundle.doubts`."""
DOUBT_WORDS = "doubts.safetensors"
"""The arrays about pieces that belong to it."""
LEXICON = "lexicon.safetensors"
"""Word translations that rank hypotheses anew: see `heed.bundle.lexicon`."""
KNOWN_WORDS = "words.dat"
"""The words of the sources a model learned from: see `heed.text.known`."""
FOREIGN = "foreign.safetensors"
"""The pieces of other target languages: see `heed.data.foreign`."""
MEMORY = "memory.safetensors"
"""The pairs that a model learned from, if they help it: see `heed.text.memory`."""
ALIGNMENT = 64
"""Bytes of a cache line; all int8 arrays except learned positions are multiples of it."""
JOINT_VOCAB = "spm.model"
SRC_VOCAB = "source.spm"
TGT_VOCAB = "target.spm"
MODEL_FILES = (
    CONFIG,
    WEIGHTS,
    INT8,
    SHORTLIST,
    ALIGNMENT_HEADS,
    DOUBTS,
    DOUBT_WORDS,
    LEXICON,
    KNOWN_WORDS,
    FOREIGN,
    MEMORY,
    JOINT_VOCAB,
    SRC_VOCAB,
    TGT_VOCAB,
    CARD,
)
"""All files of a model folder except its manifest."""
CHECKPOINTS = "checkpoints"
BEST = "best"
STEP = re.compile(r"step-(\d{6,12})")
_FOREIGN = re.compile(r".*\.(pt|pth|bin|ckpt|pkl|pickle|npz|h5|tar|zip)", re.IGNORECASE)


def find_model_folder(path: str | os.PathLike[str]) -> Path:
    """The folder to read a model from: `path` itself, or a checkpoint of the run it holds.

    A finished run has its model at the top. An unfinished one has `checkpoints/best`; before its
    first validation, the newest checkpoint that is whole.

    Raises:
        FormatError: there is none; says what is there instead.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise FormatError(_no_folder(folder))
    if (folder / CONFIG).is_file() and (folder / MANIFEST).is_file():
        return folder
    problems = []
    for candidate in checkpoints_of(folder):
        try:
            if CONFIG in verify_directory(candidate).files:
                return candidate
        except FormatError as error:
            problems.append(str(error))
    if problems:
        raise FormatError(f"{folder} has no checkpoint that can be used. {problems[0]}")
    if (folder / CONFIG).is_file():
        again = f"heed quantize {in_shell(folder)}"
        way_out = f" To check its files and to write {MANIFEST} again: {again}"
        raise FormatError(
            f"{folder} has no {MANIFEST}: it was not completely written, or not by heed."
            f"{way_out if lacks_manifest(folder) else ''}"
        )
    raise FormatError(_no_config(folder))


def step_folders(run: str | os.PathLike[str]) -> list[tuple[int, Path]]:
    """The numbered checkpoints of a run as (step, folder), newest first, complete or not."""
    folder = Path(run) / CHECKPOINTS
    if not folder.is_dir():
        return []
    named = ((STEP.fullmatch(entry.name), entry) for entry in folder.iterdir())
    return sorted(((int(match[1]), entry) for match, entry in named if match), reverse=True)


def lacks_manifest(folder: Path) -> bool:
    """Whether a folder has the files of a model, but not their list."""
    has_model = all((folder / name).is_file() for name in (CONFIG, WEIGHTS))
    return has_model and not (folder / MANIFEST).exists()


def checkpoints_of(folder: Path) -> Iterator[Path]:
    """Checkpoints that can replace the run's model, best first."""
    run = folder.parent if folder.name == CHECKPOINTS else folder
    best = run / CHECKPOINTS / BEST
    if best.is_dir():
        yield best
    yield from (path for _, path in step_folders(run))


def _no_folder(folder: Path) -> str:
    if folder.is_file():
        if _FOREIGN.fullmatch(folder.name):
            return _pickle_words(folder)
        return f"{folder} is a file; a model is a folder with {CONFIG}."
    near = difflib.get_close_matches(folder.name, models_beside(folder), n=1)
    hint = f"; did you mean {folder.parent / near[0]}?" if near else "."
    return f"there is no model folder {folder}{hint}"


def models_beside(path: Path) -> list[str]:
    """The names of the models and runs in the folder of a path that may not exist."""
    try:
        entries = [*path.parent.iterdir()]
    except OSError:
        return []
    return [each.name for each in entries if _is_file(each / CONFIG) or _is_run(each)]


def _is_run(folder: Path) -> bool:
    """Whether a folder has checkpoints, as a run has whose model is not written yet."""
    with suppress(PermissionError):
        return (folder / CHECKPOINTS).is_dir()
    return False


def _no_config(folder: Path) -> str:
    entries = sorted(folder.iterdir())
    below = [folder / BEST, *entries, *(e / BEST for e in entries), folder.parent]
    for candidate in below:
        if _is_file(candidate / CONFIG):
            return f"model folder {folder} has no {CONFIG}; did you mean {candidate}?"
    for entry in entries:
        if _FOREIGN.fullmatch(entry.name):
            return _pickle_words(entry)
    return f"model folder {folder} has no {CONFIG}, so it holds no model."


def _is_file(path: Path) -> bool:
    """Whether a path is a file; one in a folder that this user cannot read counts as none."""
    with suppress(PermissionError):
        return path.is_file()
    return False


def _pickle_words(path: Path) -> str:
    return (
        f"{path} was not opened: files of this kind can run a program when they are opened. heed "
        f"reads folders with {CONFIG} and {WEIGHTS} only."
    )


def has_float_weights(folder: Path) -> bool:
    """Whether a model folder holds weights besides the int8 ones."""
    return any((folder / name).is_file() for name in (WEIGHTS, AVERAGE))
