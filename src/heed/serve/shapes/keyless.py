"""`Keyless`: limits on the bodies that are read before a key is known.

LibreTranslate's, DeepL's and Google's APIs have a parameter for the key in the body. In a form
with a file it usually comes last. So such bodies are read before the client is known.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import Message, Receive

from heed.serve.access.gate import no_key
from heed.serve.refusal import Refusal

MOST_FILES = 8
"""Longer files that a process reads at the same time."""


class Keyless:
    """Counts the long bodies that are being read before a key is known.

    Args:
        most_bytes: longest body; a few files may be longer.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._n_files = 0

    @contextmanager
    def counted(self, receive: Receive, announced: str, *, has_file: bool) -> Iterator[Receive]:
        """A function that receives the same body.

        Args:
            receive: receives the next part of the body.
            announced: the header Content-Length; "" = there is none.
            has_file: whether the body has a file.

        Raises:
            Refusal: the body is too long without a key in a header (401), or too many such files
                are being read (503).
        """
        n_read, is_counted = 0, False

        def require_room(n_bytes: int, *, is_late: bool) -> None:
            nonlocal is_counted
            if n_bytes <= self._most_bytes or is_counted:
                return
            if not has_file:
                raise _too_long(self._most_bytes, is_late=is_late)
            if self._n_files >= MOST_FILES:
                raise _too_many(is_late=is_late)
            self._n_files += 1
            is_counted = True

        async def receive_counted() -> Message:
            nonlocal n_read
            message = await receive()
            n_read += len(message.get("body", b""))
            require_room(n_read, is_late=True)
            return message

        try:
            # What is not a number is refused by the HTTP parser.
            require_room(int(announced[:18]) if announced.isdecimal() else 0, is_late=False)
            yield receive_counted
        finally:
            self._n_files -= is_counted


def _too_long(limit: int, *, is_late: bool) -> Refusal:
    sentence = (
        f"Invalid API key: a body of more than {limit} bytes needs the key in a header, such as "
        "Authorization: Bearer KEY."
    )
    return no_key(sentence, _closing(is_late=is_late))


def _too_many(*, is_late: bool) -> Refusal:
    sentence = (
        "Too many files without a key in a header are being sent. Send the key as "
        "Authorization: Bearer KEY, or try again."
    )
    return Refusal(503, sentence, code="overloaded", headers=_closing(is_late=is_late))


def _closing(*, is_late: bool) -> dict[str, str]:
    """The header that ends a connection after a part of a body."""
    return {"Connection": "close"} if is_late else {}
