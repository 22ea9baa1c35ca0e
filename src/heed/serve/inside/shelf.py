"""`Shelf`: the last things that were made for clients, for the requests that read their parts."""

import secrets
from collections import OrderedDict
from typing import Generic, TypeVar

from heed.serve.refusal import Refusal

Thing = TypeVar("Thing")


def new_id() -> str:
    """An id that cannot be guessed."""
    return secrets.token_urlsafe(9)


class Shelf(Generic[Thing]):
    """Keeps the last things by their ids. All methods are called in the event loop.

    Args:
        what: a thing is called in errors.
        path: that makes one.
        is_allowed: whether clients may look into models.
        n_kept: things in memory.
    """

    def __init__(self, what: str, path: str, *, is_allowed: bool, n_kept: int) -> None:
        self._what, self._path = what, path
        self._is_allowed = is_allowed
        self._n_kept = n_kept
        self._things: OrderedDict[str, Thing] = OrderedDict()

    def put(self, id: str, thing: Thing) -> None:
        """Keep a thing under an id of `new_id`; the one used least recently may go."""
        self._things[id] = thing
        while len(self._things) > self._n_kept:
            self._things.popitem(last=False)

    def get(self, id: str) -> Thing:
        """A thing that was kept before.

        Raises:
            Refusal: it is not kept any more, or looking into models is not allowed here.
        """
        self.require_allowed()
        if id not in self._things:
            raise Refusal(
                404,
                f"This {self._what} is not kept any more; ask for it again with POST {self._path}.",
                code=f"no_such_{self._what}",
            )
        self._things.move_to_end(id)
        return self._things[id]

    def require_allowed(self) -> None:
        """Refuse clients where looking into models is not allowed.

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
