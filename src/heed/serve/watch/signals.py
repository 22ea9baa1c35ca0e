"""The signals that end a server: the first one lets it drain, another one ends it at once."""

import signal

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

REPEATED_S = 0.05
"""Seconds after a signal in which another one counts as the same."""
