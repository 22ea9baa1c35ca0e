"""`run_aside`: process long texts outside the event loop."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Found = TypeVar("Found")
Arguments = ParamSpec("Arguments")

SHORT_CHARS = 4000
"""Processing this many characters takes about a millisecond, so a thread is not worth it."""


async def run_aside(
    n_chars: int,
    function: Callable[Arguments, Found],
    *arguments: Arguments.args,
    **named: Arguments.kwargs,
) -> Found:
    """Call a function; in a thread, if it reads many characters."""
    if n_chars <= SHORT_CHARS:
        return function(*arguments, **named)
    return await asyncio.to_thread(function, *arguments, **named)
