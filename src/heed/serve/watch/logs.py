"""The server's log: lines or JSON on standard error, without what clients sent.

The message of an unexpected exception may quote a text, so only its kind and its places are shown.
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
"""The logger that has a line for each request."""


class Lines(logging.Formatter):
    """Records as plain lines or as JSON.

    Args:
        is_json: an object a line.
    """

    def __init__(self, *, is_json: bool) -> None:
        super().__init__()
        self._is_json = is_json

    def format(self, record: logging.LogRecord) -> str:
        """One record; fields that were given as `extra={"fields": …}` come last."""
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
    """Kind and places of an exception, innermost last; not its message."""
    if not record.exc_info or record.exc_info[1] is None:
        return []
    error = record.exc_info[1]
    frames = traceback.extract_tb(error.__traceback__)
    return [
        *(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames),
        type(error).__name__,
    ]


def set_up(settings: Log) -> None:
    """Send the records of heed, and the errors of what it is made of, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(is_json=settings.format == "json"))
    level = settings.level.upper()
    # Remarks of the others at lower levels tell what heed's lines tell, or what clients sent.
    others = "uvicorn.error", "python_multipart"
    for name, least in (("heed.serve", level), *((name, "ERROR") for name in others)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(least)
        logger.propagate = False
    if not settings.requests:
        logging.getLogger(REQUESTS).setLevel("CRITICAL")


def sayer(settings: Log, say: Callable[[str], None]) -> Callable[[str], None]:
    """How remarks to a person are printed: as they are, or as lines of a JSON log."""
    if settings.format == "plain":
        return say
    return lambda line: logging.getLogger("heed.serve").info(line.strip())
