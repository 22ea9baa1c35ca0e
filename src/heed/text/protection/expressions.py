"""Regular expressions of the user: checked when given, and bounded in time when used."""

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


@lru_cache(maxsize=256)
def compiled(expression: str) -> "regex.Pattern[str]":
    """The expression, checked.

    Raises:
        ConfigError: it is invalid, matches an empty text, or takes too long.
    """
    # Few users have expressions, and loading the library takes as long as loading all of `text`.
    import regex

    try:
        found = regex.compile(expression)
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


def find_matches(expression: str, text: str) -> list[tuple[int, int]]:
    """The matches of an expression in a text, in order.

    Raises:
        ConfigError: it takes too long.
    """
    pattern = compiled(expression)
    try:
        return [match.span() for match in pattern.finditer(text, timeout=LONGEST_S) if match[0]]
    except TimeoutError as error:
        raise _too_slow(expression) from error


def _too_slow(expression: str) -> ConfigError:
    return ConfigError(
        f"the protected pattern {expression!r} takes too long for some texts. Avoid nested "
        "repeats, such as (x+)+."
    )
