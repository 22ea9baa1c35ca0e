"""Find run folders among the folders of a command, and print their training on a terminal."""

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from heed.cli.models import find_model
from heed.cli.terminal import echo, visible
from heed.errors import HeedError, UsageError

if TYPE_CHECKING:
    from heed.explain.training.run import TrainingRun


def is_run(folder: str) -> bool:
    """Whether a folder holds a run, even an unfinished one."""
    from heed.train.recipe.files import ASKED_FILE
    from heed.train.step.events import METRICS_FILE

    return any((Path(folder) / name).is_file() for name in (METRICS_FILE, ASKED_FILE))


def held_if_run(folder: Path) -> AbstractContextManager[None]:
    """Lock a run folder, so that no training writes there at the same time; others stay unlocked.

    Raises:
        RunError: another process trains there.
    """
    from heed.disk.files import lock

    return lock(folder) if is_run(str(folder)) else nullcontext()


def why_not_served(folder: str) -> str:
    """The reason for which a server cannot translate with the model in a folder; "" if it can."""
    from heed.serve.work.directions import read_routes

    try:
        read_routes([folder])
    except HeedError as error:
        return str(error)
    return ""


def read_runs(folders: Sequence[str]) -> "list[TrainingRun]":
    """Read the current state of runs."""
    from heed.explain.training.run import TrainingRun

    runs = [TrainingRun(Path(folder)) for folder in folders]
    for run in runs:
        run.refresh()
    return runs


def print_training(folders: tuple[str, ...]) -> None:
    """Print the state of runs, with sparklines.

    Raises:
        UsageError: a folder holds no run.
    """
    from heed.explain.training.table import BARS, table

    found = [str(find_model(name)) for name in folders or (None,)]
    for folder in found:
        if not is_run(folder):
            raise UsageError(f"{folder} is not a run folder.")
    try:
        BARS.encode(sys.stdout.encoding or "ascii")
        is_ascii = False
    except (UnicodeEncodeError, LookupError):
        is_ascii = True
    for line in table(read_runs(found), is_ascii=is_ascii):
        echo(visible(line))
