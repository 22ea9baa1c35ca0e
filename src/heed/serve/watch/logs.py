"""The server's log: lines or JSON on standard error, without data from clients.

The message of an unexpected exception may quote a text, so only its type and locations are logged.
"""

import json
import logging
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

from heed.serve.settings import Log

REQUESTS = "heed.serve.requests"
"""The logger for one line per request."""


class Lines(logging.Formatter):
    """Formats records as plain lines or as JSON.

    Args:
        is_json: one object per line.
    """

    def __init__(self, *, is_json: bool) -> None:
        super().__init__()
        self._is_json = is_json

    def format(self, record: logging.LogRecord) -> str:
        """Format one record; fields given as `extra={"fields": …}` come last."""
        given: dict[str, Any] = getattr(record, "fields", {})
        seconds = time.gmtime(record.created)
        moment = f"{time.strftime('%Y-%m-%dT%H:%M:%S', seconds)}.{int(record.msecs):03d}Z"
        where = _places(record)
        level = record.levelname.lower()
        if self._is_json:
            known = {"time": moment, "level": level, "message": record.getMessage(), **given}
            return json.dumps({**known, "where": where} if where else known, ensure_ascii=False)
        shown = " ".join(f"{name}={value}" for name, value in given.items())
        message = " ".join(part for part in (record.getMessage(), shown) if part)
        lines = [f"{moment} {level} {message}", *(f"  {place}" for place in where)]
        return "\n".join(lines)


def _places(record: logging.LogRecord) -> list[str]:
    """Type and locations of an exception, innermost last; not its message."""
    if not record.exc_info or record.exc_info[1] is None:
        return []
    error = record.exc_info[1]
    frames = traceback.extract_tb(error.__traceback__)
    return [
        *(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames),
        type(error).__name__,
    ]


def set_up(settings: Log) -> None:
    """Send heed's records, and the errors of its libraries, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(is_json=settings.format == "json"))
    level = settings.level.upper()
    # Lower levels of other libraries repeat heed's lines, or contain data from clients.
    others = "uvicorn.error", "python_multipart"
    for name, least in (("heed.serve", level), *((name, "ERROR") for name in others)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(least)
        logger.propagate = False
    if not settings.requests:
        logging.getLogger(REQUESTS).setLevel("CRITICAL")


def sayer(settings: Log, say: Callable[[str], None]) -> Callable[[str], None]:
    """A function that prints remarks: unchanged, or as lines of a JSON log."""
    if settings.format == "plain":
        return say
    return lambda line: logging.getLogger("heed.serve").info(line.strip())
