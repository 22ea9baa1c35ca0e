"""Regular expressions of the user: checked when given, and bounded in time when used."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING

from heed.errors import ConfigError

if TYPE_CHECKING:
    import regex

LONGEST_S = 1.0
"""Time that an expression may take for one text."""

_PROBE_S = 0.2
# An expression is slow on texts that almost match.
_PROBES = tuple(
    sign * 60 + end for sign in ("a", "A", "0", " ", "ab ", "-", "a1") for end in ("", "!\n")
)


class TimeLimit:
    """A limit on the time that expressions take for several texts together.

    Args:
        seconds: of the threads that search the texts.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._left_s = seconds

    @contextmanager
    def counted(self) -> Iterator[float]:
        """A block whose seconds count.

        Yields:
            The remaining seconds.

        Raises:
            ConfigError: none remain, before the block or after it.
        """
        self._require_left()
        begun = time.thread_time()
        try:
            yield self._left_s
        finally:
            self._left_s -= time.thread_time() - begun
            self._require_left()

    def _require_left(self) -> None:
        if self._left_s <= 0:
            raise ConfigError(
                f"the protected patterns take more than {self._seconds:g} s for all texts. Avoid "
                "nested repeats, such as (x+)+, or give fewer texts at once."
            ) from None


@lru_cache(maxsize=256)
def compiled(expression: str) -> "regex.Pattern[str]":
    """The expression, checked.

    Raises:
        ConfigError: it is invalid, matches an empty text, or takes too long.
    """
    # Few users have expressions, and loading the library takes as long as loading all of `text`.
    import regex

    try:
        # The library would keep each expression a second time.
        found = regex.compile(expression, cache_pattern=False)
    except (regex.error, OverflowError, RecursionError) as error:
        raise ConfigError(
            f"the protected pattern {expression!r} is not a valid regular expression: {error}."
        ) from error
    try:
        if found.fullmatch("", timeout=_PROBE_S):
            raise ConfigError(
                f"the protected pattern {expression!r} matches an empty text. Write one that "
                "needs a character, such as x+ instead of x*."
            )
        for text in _PROBES:
            found.search(text, timeout=_PROBE_S)
    except TimeoutError as error:
        raise _too_slow(expression) from error
    return found


def find_matches(
    expression: str, text: str, limit: TimeLimit | None = None
) -> list[tuple[int, int]]:
    """The matches of an expression in a text, in order.

    Args:
        expression: of the user.
        text: to search.
        limit: on the time for several texts together; None = there is only that for each text.

    Raises:
        ConfigError: it takes too long.
    """
    with nullcontext(LONGEST_S) if limit is None else limit.counted() as left_s:
        try:
            found = compiled(expression).finditer(text, timeout=min(LONGEST_S, left_s))
            return [match.span() for match in found if match[0]]
        except TimeoutError as error:
            raise _too_slow(expression) from error


def _too_slow(expression: str) -> ConfigError:
    return ConfigError(
        f"the protected pattern {expression!r} takes too long for some texts. Avoid nested "
        "repeats, such as (x+)+."
    )
