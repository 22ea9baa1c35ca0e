"""`TrainingRun`: a run folder, read during training, after its end, or as a copy.

It reads `metrics.jsonl`, `recipe.toml` and the names of checkpoints, never a tensor. Its text for
people is in `headline.py`, its JSON in `report.py`.
"""

import time
from pathlib import Path
from typing import Any, Literal

from heed.bundle.find import step_folders
from heed.disk.files import is_locked
from heed.disk.growing import GrowingLines
from heed.explain.training.history import History
from heed.explain.training.recipes import read_settings
from heed.explain.training.values import number, text
from heed.train.step.events import METRICS_FILE

State = Literal["empty", "preparing", "training", "paused", "interrupted", "finished"]


class TrainingRun:
    """A run folder. `refresh` reads new data.

    Attributes:
        folder: the run folder; it may not exist yet.
        name: the run's name.
        settings: of its recipe, by their dotted names; empty until there is one.
        history: the contents of its log so far.
        generation: changes when all data read before is invalid.

    Args:
        folder: the run folder.
        name: None = the name of the folder.
    """

    def __init__(self, folder: Path, name: str | None = None) -> None:
        self.folder = folder
        self.name = name or name_of(folder)
        self.settings: dict[str, Any] = {}
        self.history = History()
        self.generation = 0
        self._log = GrowingLines(folder / METRICS_FILE)
        self._is_held = False
        self._changed_at = 0.0

    def refresh(self) -> bool:
        """Read new data; return whether there is any."""
        # Check the lock first: the process that released it has written all its data before.
        was_held, self._is_held = self._is_held, is_locked(self.folder)
        is_anew, events = self._log.read()
        if is_anew:
            self.history = History()
            self.generation += 1
        if is_anew or not self.settings or any(event.get("kind") == "start" for event in events):
            self.settings = read_settings(self.folder)
            self.history.learning_rate = number(self.settings, "training.learning_rate")
            self.history.metric = text(self.settings, "training.metric")
        for event in events:
            self.history.take(event)
        if events:
            self._changed_at = self._modified_at()
        return is_anew or bool(events) or was_held != self._is_held

    @property
    def state(self) -> State:
        """The state of the run; `interrupted` = its process ended without saving."""
        if self.history.last == "end":
            return "finished"
        if self._is_held:
            return "training" if self.history.start else "preparing"
        if not self.history.start:
            return "empty"
        return "paused" if self.history.last == "pause" else "interrupted"

    @property
    def is_held(self) -> bool:
        """Whether a process works in the folder."""
        return self._is_held

    @property
    def left_s(self) -> float | None:
        """Seconds until the end; None = unknown, or the run is not in progress."""
        left_s = number(self.history.latest_step, "left_s")
        if left_s is None or self.state != "training":
            return None
        return max(0.0, left_s - max(0.0, time.time() - self._changed_at))

    @property
    def saved_step(self) -> int | None:
        """The step of the newest checkpoint in the folder; None = no checkpoint."""
        try:
            return next((step for step, _ in step_folders(self.folder)), None)
        except OSError:
            return None

    @property
    def n_unreadable(self) -> int:
        """The number of damaged lines in the log."""
        return self._log.n_unreadable

    def _modified_at(self) -> float:
        try:
            return (self.folder / METRICS_FILE).stat().st_mtime
        except OSError:
            return time.time()


def name_of(folder: Path) -> str:
    """The name of a folder, as valid Unicode."""
    return folder.resolve().name.encode("utf-8", "replace").decode() or "run"
