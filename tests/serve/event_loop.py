"""What must not run in the server's event loop, where it would hold up all other requests."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest


def beside_loop(run: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which fails if it is called in an event loop."""

    def called(*arguments: Any, **named: Any) -> Any:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        return run(*arguments, **named)

    return called
