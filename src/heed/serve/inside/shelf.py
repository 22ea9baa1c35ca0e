"""`Shelf`: the latest results made for clients, kept for requests that read their parts."""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from heed.serve.refusal import Refusal

Thing = TypeVar("Thing")

MOST_BYTES = 1 << 30
"""Limit for all of them, a gigabyte; the latest may exceed it. A trace of 500 tokens takes 0.8."""


def new_id() -> str:
    """An id that cannot be guessed."""
    return secrets.token_urlsafe(9)


class Shelf(Generic[Thing]):
    """Keeps the latest results by their ids. All methods may be called from any thread.

    Args:
        what: word for a result in errors.
        path: path of the request that makes one.
        is_allowed: whether clients may inspect models.
        n_kept: number of results in memory.
        is_outdated: whether a result is to be dropped.
    """

    def __init__(
        self,
        what: str,
        path: str,
        *,
        is_allowed: bool,
        n_kept: int,
        is_outdated: Callable[[Thing], bool] = lambda _: False,
    ) -> None:
        self._what, self._path = what, path
        self._is_allowed = is_allowed
        self._n_kept = n_kept
        self._is_outdated = is_outdated
        self._things: OrderedDict[str, Thing] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._lock = threading.Lock()

    def put(self, id: str, thing: Thing, *, size_bytes: int = 0) -> None:
        """Keep a result; drop the least recently used ones if there are too many or too large ones.

        Args:
            id: from `new_id`.
            thing: the result; it is kept, unless it is outdated.
            size_bytes: its memory.
        """
        with self._lock:
            self._things[id] = thing
            self._sizes[id] = size_bytes
            while len(self._things) > self._n_kept or self._is_full():
                self._drop(next(iter(self._things)))
        self.drop_outdated()  # this one may have become so while it was made

    def drop_outdated(self) -> None:
        """Drop the results that are outdated by now."""
        with self._lock:
            for id in [id for id, thing in self._things.items() if self._is_outdated(thing)]:
                self._drop(id)

    def _drop(self, id: str) -> None:
        del self._things[id]
        del self._sizes[id]

    def _is_full(self) -> bool:
        return len(self._things) > 1 and sum(self._sizes.values()) > MOST_BYTES

    def get(self, id: str) -> Thing:
        """An earlier result.

        Raises:
            Refusal: it is no longer kept, or inspection is not allowed here.
        """
        self.require_allowed()
        with self._lock:
            if id in self._things:
                self._things.move_to_end(id)
                return self._things[id]
        raise Refusal(
            404,
            f"This {self._what} is no longer kept; request it again with POST {self._path}.",
            code=f"no_such_{self._what}",
        )

    def require_allowed(self) -> None:
        """Refuse clients if inspection is not allowed.

        Raises:
            Refusal: it is not (403).
        """
        if not self._is_allowed:
            raise Refusal(
                403,
                "This server does not show the inside of its models. Its owner can allow it with "
                "the setting inside.enabled.",
                code="inside_disabled",
            )
