"""The compiled library: `engine/*.cpp`, as `hatch_build.py` compiles it."""

import ctypes
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from heed.errors import HeedError

LIBRARY = Path(
    os.environ.get("HEED_LIBRARY") or Path(__file__).parents[1] / "engine" / "libheed.so"
)
"""The environment variable names another build, such as that of `make soak`."""


@cache
def function(name: str, arguments: Sequence[Any]) -> Any:
    """A library function that returns null or an error; None if the library lacks it.

    Args:
        name: the function's name.
        arguments: the `ctypes` types of its arguments, as a tuple.
    """
    try:
        found = getattr(ctypes.CDLL(str(LIBRARY)), name)
    except (OSError, AttributeError):
        return None
    found.restype, found.argtypes = ctypes.c_char_p, list(arguments)
    return found


def check(error: bytes | None) -> None:
    """Raise the error that a library function returned, if there is one.

    Raises:
        HeedError: there is an error.
    """
    if error:
        raise HeedError(f"engine: {words_of(error)}.")


def words_of(error: bytes) -> str:
    """An error of the library as text."""
    # A long message is cut at a byte, which may be inside a character.
    return error.decode(errors="replace")
