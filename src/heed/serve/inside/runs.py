"""`Runs`: the training runs that a server shows, and the requests that it forwards to them.

Clients refer to runs by names that are made when the server starts, never by folders.
"""

import asyncio
import hmac
import secrets
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from heed.errors import RunError
from heed.serve.refusal import Refusal
from heed.serve.watch.condition import Condition
from heed.train.step.control import Request, ask

if TYPE_CHECKING:
    from heed.explain.training.report import Cursor
    from heed.explain.training.run import TrainingRun

Found = TypeVar("Found")

TOKEN_HEADER = "X-Heed-Token"


@dataclass(frozen=True)
class _Shown:
    """A run, which only one thread reads at a time."""

    run: "TrainingRun"
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Runs:
    """Reads runs for clients. All methods are called in the event loop.

    Attributes:
        condition: state of the process; streams end when it drains.

    Args:
        folders: run folders; they may be empty or not exist yet.
        token: clients with it may save and stop runs; empty = no client may.
        is_allowed: whether clients may see runs.
        condition: state of the process.
    """

    def __init__(
        self, folders: Sequence[str], *, token: str, is_allowed: bool, condition: Condition
    ) -> None:
        self.condition = condition
        self._shown = _shown(folders) if folders else {}
        self._token = token
        self._is_allowed = is_allowed
        # Cursors from another process would refer to other rows.
        self._instance = secrets.token_hex(4)

    @property
    def is_controllable(self) -> bool:
        """Whether a client with the right token may save and stop runs."""
        return bool(self._token)

    async def statuses(self) -> list[dict[str, Any]]:
        """The status of each run, with a cursor.

        Raises:
            Refusal: clients may not see runs (403).
        """
        from heed.explain.training.report import status

        self._require_allowed()
        return [
            await self._read(name, lambda run: {**status(run), "cursor": self._spelled(run)})
            for name in self._shown
        ]

    async def whole(self, name: str) -> dict[str, Any]:
        """A whole run, and the cursor for `news`.

        Raises:
            Refusal: there is no such run (404), or clients may not see runs (403).
        """
        from heed.explain.training.report import whole

        return await self._read(name, lambda run: {**whole(run), "cursor": self._spelled(run)})

    async def news(self, name: str, cursor: str) -> tuple[dict[str, Any] | None, bool]:
        """The changes since a cursor, and whether a process still works on the run.

        Returns:
            The changes, or None if the earlier data is invalid; and whether the run is alive.

        Raises:
            Refusal: as in `whole`.
        """
        from heed.explain.training.report import news

        since = self._parsed(cursor)

        def read(run: "TrainingRun") -> tuple[dict[str, Any] | None, bool]:
            found = news(run, since) if since else None
            return found and {**found, "cursor": self._spelled(run)}, run.is_held

        return await self._read(name, read)

    async def control(self, name: str, request: Request, token: str) -> None:
        """Forward a request to the training process.

        Raises:
            Refusal: the token is wrong (403), there is no such run (404), it is not training
                (409), or its folder cannot be written (503).
        """
        run = self._named(name).run
        if not self._token or not hmac.compare_digest(token.encode(), self._token.encode()):
            raise Refusal(
                403,
                "Saving and stopping need the token of this server. Open the address that was "
                "printed when it was started.",
                code="wrong_token",
            )
        if await self._read(name, lambda run: run.state) != "training":
            raise Refusal(409, f"{name} is not training.", code="not_training")
        try:
            await asyncio.to_thread(ask, run.folder, request)
        except RunError as error:
            sentence = f"The request cannot be written into the run folder: {error}"
            raise Refusal(503, sentence, code="not_writable") from error

    async def _read(self, name: str, read: Callable[["TrainingRun"], Found]) -> Found:
        """Refresh a run and apply a function to it, in a thread."""
        shown = self._named(name)

        def refreshed() -> Found:
            shown.run.refresh()
            return read(shown.run)

        async with shown.lock:
            return await asyncio.to_thread(refreshed)

    def _named(self, name: str) -> _Shown:
        self._require_allowed()
        if name not in self._shown:
            raise Refusal(404, "There is no run of this name.", code="no_such_run")
        return self._shown[name]

    def _require_allowed(self) -> None:
        if not self._is_allowed:
            raise Refusal(
                403,
                "This server does not show training runs. Its owner can allow it with the setting "
                "inside.enabled.",
                code="inside_disabled",
            )

    def _spelled(self, run: "TrainingRun") -> str:
        from heed.explain.training.report import cursor_of

        return "-".join([self._instance, *map(str, astuple(cursor_of(run)))])

    def _parsed(self, cursor: str) -> "Cursor | None":
        """A parsed cursor; None if it is not from this process."""
        from heed.explain.training.report import Cursor

        instance, *numbers = cursor.split("-")
        is_ours = instance == self._instance and all(n.isascii() and n.isdigit() for n in numbers)
        if not is_ours or len(numbers) != 5 or len(cursor) > 100:
            return None
        generation, n_halvings, n_steps, n_validations, n_marks = map(int, numbers)
        return Cursor(
            generation=generation,
            n_halvings=n_halvings,
            n_steps=n_steps,
            n_validations=n_validations,
            n_marks=n_marks,
        )


def _shown(folders: Sequence[str]) -> dict[str, _Shown]:
    from heed.explain.training.run import TrainingRun

    return {name: _Shown(TrainingRun(folder, name)) for name, folder in named(folders)}


def named(folders: Sequence[str]) -> list[tuple[str, Path]]:
    """Folders with their own names; a repeated name gets a number."""
    from heed.explain.training.run import name_of

    found: dict[str, Path] = {}
    for folder in map(Path, folders):
        name = first = name_of(folder)
        number = 1
        while name in found:
            number += 1
            name = f"{first} ({number})"
        found[name] = folder
    return list(found.items())
