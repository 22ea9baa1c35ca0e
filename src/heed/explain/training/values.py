"""Read values from an untrusted log: a number or None, or text that can be displayed."""

import math
from collections.abc import Mapping
from typing import Any

MAX_CHARS = 2000
"""Longer texts are cut."""


def number(values: Mapping[str, Any], key: str) -> float | None:
    """A finite number, or None if the value is missing or invalid."""
    value = values.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        value = float(value)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def count(values: Mapping[str, Any], key: str) -> int | None:
    """A whole number that JavaScript can represent, or None."""
    value = number(values, key)
    return int(value) if value is not None and 0 <= value < 2**53 else None


def text(values: Mapping[str, Any], key: str) -> str:
    """A text; empty if there is none. Lone surrogates, which no file can hold, become `?`."""
    value = values.get(key)
    if not isinstance(value, str):
        return ""
    cut = value if len(value) <= MAX_CHARS else f"{value[:MAX_CHARS]}…"
    return cut.encode("utf-8", "replace").decode()


def record(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    """An object; empty if there is none."""
    value = values.get(key)
    return value if isinstance(value, dict) else {}


def time_in_words(seconds: float) -> str:
    """A duration in words: `40 seconds`, `3 minutes`, `2 hours and 10 minutes`, `3 days`."""
    if seconds < 59.5:
        return _counted(round(seconds), "second")
    minutes = round(seconds / 60)
    if minutes < 60:
        return _counted(minutes, "minute")
    hours, rest = divmod(minutes, 60)
    if hours >= 48:
        return _counted(round(hours / 24), "day")
    rest = rest if hours < 10 else 0
    return _counted(hours, "hour") + (f" and {_counted(rest, 'minute')}" if rest else "")


def _counted(n: int, unit: str) -> str:
    return f"{n:,} {unit}" if n == 1 else f"{n:,} {unit}s"
