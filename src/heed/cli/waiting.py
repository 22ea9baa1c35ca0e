"""How far a command is that prints its results at the end, if that takes a while."""

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from heed.cli.command import Session

if TYPE_CHECKING:
    from heed.cli.progress import Display

SILENT_S = 3.0
"""Seconds without a sign of progress: most calls are shorter."""

EVERY_S = 0.1
"""Seconds between two signs."""


class Waiting:
    """Shows progress on one live line; without a terminal, on a line every ten seconds.

    Args:
        session: nothing is shown if it is quiet.
    """

    def __init__(self, session: Session) -> None:
        self._is_quiet = session.is_quiet
        self._due_at = time.monotonic() + SILENT_S
        self._display: Display | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._display:
            self._display.close()

    def __call__(self, phase: str, n_done: int, of: int, unit: str) -> None:
        """Show what is being done, and how much of it is done."""
        if self._is_quiet or time.monotonic() < self._due_at:
            return
        from heed.cli.progress import Display

        self._display = self._display or Display("")
        event = {"kind": "prepare", "phase": phase, "done": n_done, "of": of, "unit": unit}
        self._display(event)
        self._due_at = time.monotonic() + EVERY_S
