"""How far a command is that prints its results at the end, if that takes a while."""

import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from heed.cli.command import Session

if TYPE_CHECKING:
    from heed.cli.progress import Display

Item = TypeVar("Item")

SILENT_S = 3.0
"""Seconds without a sign of progress: most calls are shorter."""

EVERY_S = 0.1
"""Seconds between two signs of the same phase."""


class Waiting:
    """Shows progress on one live line; without a terminal, on a line every ten seconds.

    Args:
        session: nothing is shown if it is quiet.
    """

    def __init__(self, session: Session) -> None:
        self._is_quiet = session.is_quiet
        self._begins_at = self._due_at = time.monotonic() + SILENT_S
        self._phase = ""
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
        due_at = self._due_at if phase == self._phase else self._begins_at
        if self._is_quiet or time.monotonic() < due_at:
            return
        from heed.cli.progress import Display

        self._display = self._display or Display("")
        event = {"kind": "prepare", "phase": phase, "done": n_done, "of": of, "unit": unit}
        self._display(event)
        self._phase, self._due_at = phase, time.monotonic() + EVERY_S

    def counted(self, items: Iterable[Item], phase: str, *, of: int, unit: str) -> Iterator[Item]:
        """The items; how many there were so far is shown."""
        self(phase, 0, of, unit)
        for n_done, item in enumerate(items, start=1):
            self(phase, n_done, of, unit)
            yield item
