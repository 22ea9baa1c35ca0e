"""The refusal that a client gets for an error, and the log entry."""

import logging
import traceback
from pathlib import Path

from heed.errors import ConfigError, DataError, UsageError
from heed.serve.refusal import Refusal

log = logging.getLogger(__name__)

CLIENT_ERRORS = (ConfigError, DataError, UsageError)
"""Errors caused by the request."""


def refusal_of(error: Exception) -> Refusal:
    """The refusal for an error; errors of the server are logged.

    The message of an unexpected error may contain a user's text, so only its location is logged.
    """
    if isinstance(error, Refusal):
        return error
    if isinstance(error, CLIENT_ERRORS):
        return Refusal(400, str(error), code="bad_request")
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = ", ".join(f"{frame.filename}:{frame.lineno}" for frame in place)
    log.error("a translation failed: %s in %s", type(error).__name__, where)
    log.debug("its traceback", exc_info=error)
    return Refusal(500, "The server could not do this because of an internal error.", code="error")


def refusal_of_model(error: Exception, name: str, folder: Path) -> Refusal:
    """The refusal for an error of loading a model, whose folder may have been removed.

    Args:
        error: the error.
        name: name of the model.
        folder: folder of the model.
    """
    if folder.is_dir():
        return refusal_of(error)
    sentence = f"The folder of the model {name!r} is gone, so its weights cannot be read."
    return Refusal(400, sentence, code="no_such_model", field="model")
