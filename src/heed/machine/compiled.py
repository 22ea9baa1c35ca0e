"""Where the compiled library lies: `engine/*.cpp`, as `hatch_build.py` compiles it."""

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
"""The variable names another build, such as that of `make soak`."""


@cache
def function(name: str, arguments: Sequence[Any]) -> Any:
    """A function that returns null or an error; None where it is not compiled or older.

    Args:
        name: of the function.
        arguments: their types, of `ctypes`; a tuple.
    """
    try:
        found = getattr(ctypes.CDLL(str(LIBRARY)), name)
    except (OSError, AttributeError):
        return None
    found.restype, found.argtypes = ctypes.c_char_p, list(arguments)
    return found


def check(error: bytes | None) -> None:
    """Raise what a function of the library answers.

    Raises:
        HeedError: there is an error.
    """
    if error:
        raise HeedError(f"engine: {words_of(error)}.")


def words_of(error: bytes) -> str:
    """An error of the library as text."""
    # Cut at some byte if they are many.
    return error.decode(errors="replace")
