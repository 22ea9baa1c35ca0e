"""The signals that end a server: the first one lets it drain, another one ends it at once."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

REPEATED_S = 0.05
"""Seconds after a signal in which another one counts as the same."""


@contextmanager
def ignoring_hang_ups() -> Iterator[None]:
    """Ignore SIGHUP while there is no handler yet: models that still load are the newest anyway."""
    if sys.platform == "win32":
        yield
        return
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
