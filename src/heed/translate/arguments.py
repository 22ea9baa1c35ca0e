"""Refuses arguments of a wrong type, with the name of the argument and its value."""

import inspect
import math
import reprlib
from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import TypeVar

from heed.errors import UsageError

Text = TypeVar("Text")


def require_text(**arguments: object) -> None:
    """Refuse values that are not strings; each is given by its name.

    Raises:
        UsageError: names the argument and its value.
    """
    for name, value in arguments.items():
        if not isinstance(value, str):
            raise UsageError(f"{name} must be a string, but is {reprlib.repr(value)}.")


def require_language(value: object) -> None:
    """Refuse a `target_lang` that is neither a string nor None.

    Raises:
        UsageError: names the argument and its value.
    """
    if value is not None:
        require_text(target_lang=value)


def texts_of(
    values: Iterable[Text],
    name: str,
    *,
    kinds: tuple[type, ...] = (str,),
    wanted: str = "a list of strings",
) -> Iterator[Text]:
    """The items of a list of texts, each checked when it is read.

    Args:
        values: the texts. A single string is refused: it would be read as its characters.
        name: their name in errors.
        kinds: the allowed types.
        wanted: the allowed types in words, for errors.

    Raises:
        UsageError: they are something else.
    """
    try:
        items = None if isinstance(values, str | bytes) else iter(values)
    except TypeError:  # also for an array without an axis, though it is an Iterable
        items = None
    if items is None:
        hint = " For one text give a list of one." if isinstance(values, str) else ""
        raise UsageError(f"{name} must be {wanted}, but is {reprlib.repr(values)}.{hint}")
    for number, value in enumerate(items, start=1):
        if not isinstance(value, kinds):
            raise UsageError(
                f"{name} must be {wanted}, but item {number} is {reprlib.repr(value)}."
            )
        yield value


def require_flag(value: object, name: str) -> None:
    """Refuse a value that is neither True nor False nor None.

    Raises:
        UsageError: names the argument and its value.
    """
    if value is not None and not isinstance(value, bool):
        raise UsageError(f"{name} must be True or False, but is {reprlib.repr(value)}.")


def require_callable(value: object, name: str, *given: object) -> None:
    """Refuse a value that is neither a function nor None.

    Args:
        value: the value.
        name: its name in errors.
        given: examples of the arguments with which it will be called.

    Raises:
        UsageError: names the argument and its value.
    """
    if value is None:
        return
    if not callable(value):
        raise UsageError(f"{name} must be a function, but is {reprlib.repr(value)}.")
    try:
        inspect.signature(value).bind(*given)
    except ValueError:  # a function of C, whose arguments are not known
        return
    except TypeError:
        wanted = ("no argument", "one argument")[len(given)]
        raise UsageError(
            f"{name} must be a function of {wanted}, but is {reprlib.repr(value)}, which has "
            f"the arguments {inspect.signature(value)}."
        ) from None


def require_whole(value: object, name: str, least: int | None = None) -> None:
    """Refuse a value that is not a whole number, from `least` if that is given.

    Raises:
        UsageError: names the argument and its value.
    """
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    is_enough = least is None or (isinstance(value, Integral) and int(value) >= least)
    if not (is_whole and is_enough):
        start = "" if least is None else f" from {least}"
        raise UsageError(f"{name} must be a whole number{start}, but is {reprlib.repr(value)}.")


def require_number(value: object, name: str) -> None:
    """Refuse a value that is not a finite number.

    Raises:
        UsageError: names the argument and its value.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise UsageError(f"{name} must be a finite number, but is {reprlib.repr(value)}.")
