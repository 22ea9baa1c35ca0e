"""Refuses arguments of a wrong type, with the name of the argument and its value."""

import math
import reprlib
from numbers import Integral, Real

from heed.errors import UsageError


def require_text(**arguments: object) -> None:
    """Refuse values that are not strings; each is given by its name.

    Raises:
        UsageError: names the argument and its value.
    """
    for name, value in arguments.items():
        if not isinstance(value, str):
            raise UsageError(f"{name} must be a string, but is {reprlib.repr(value)}.")


def require_flag(value: object, name: str) -> None:
    """Refuse a value that is neither True nor False nor None.

    Raises:
        UsageError: names the argument and its value.
    """
    if value is not None and not isinstance(value, bool):
        raise UsageError(f"{name} must be True or False, but is {reprlib.repr(value)}.")


def require_callable(value: object, name: str) -> None:
    """Refuse a value that is neither a function nor None.

    Raises:
        UsageError: names the argument and its value.
    """
    if value is not None and not callable(value):
        raise UsageError(f"{name} must be a function, but is {reprlib.repr(value)}.")


def require_whole(value: object, name: str, least: int) -> None:
    """Refuse a value that is not a whole number from `least`.

    Raises:
        UsageError: names the argument and its value.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise UsageError(
            f"{name} must be a whole number from {least}, but is {reprlib.repr(value)}."
        )


def require_number(value: object, name: str) -> None:
    """Refuse a value that is not a finite number.

    Raises:
        UsageError: names the argument and its value.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise UsageError(f"{name} must be a finite number, but is {reprlib.repr(value)}.")
