"""The log has lines or JSON, and no message of an exception, which may quote a text."""

import json
import logging
import sys

import pytest

from heed.serve.settings import Log
from heed.serve.watch.logs import REQUESTS, Lines, sayer, set_up


def record(message: str, **fields: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": "heed.serve", "levelname": "INFO", "msg": message})
    made.fields = fields
    made.created, made.msecs = 0.25, 250
    return made


def test_plain_lines_have_time_level_message_and_fields() -> None:
    line = Lines(is_json=False).format(record("request", status=200, ms=1.5))
    assert line == "1970-01-01T00:00:00.250Z info request status=200 ms=1.5"


def test_json_lines_have_the_same() -> None:
    line = Lines(is_json=True).format(record("request", status=200))
    assert json.loads(line) == {
        "time": "1970-01-01T00:00:00.250Z",
        "level": "info",
        "message": "request",
        "status": 200,
    }


@pytest.mark.parametrize("is_json", [True, False])
def test_an_exception_is_told_by_kind_and_place(is_json: bool) -> None:
    made = record("failed")
    try:
        raise ValueError("a secret text")
    except ValueError:
        made.exc_info = sys.exc_info()
    line = Lines(is_json=is_json).format(made)
    assert "ValueError" in line and "test_an_exception_is_told_by_kind_and_place" in line
    assert "secret" not in line


def test_levels_and_request_lines_are_as_set() -> None:
    before = [(name, logging.getLogger(name).level) for name in ("heed.serve", REQUESTS)]
    set_up(Log(level="warning", requests=False))
    assert not logging.getLogger("heed.serve").isEnabledFor(logging.INFO)
    assert not logging.getLogger(REQUESTS).isEnabledFor(logging.ERROR)
    # What it warns of is in the header of a client.
    assert not logging.getLogger("python_multipart.multipart").isEnabledFor(logging.WARNING)
    for name, level in before:
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.handlers, logger.propagate = [], True
    for name in ("uvicorn.error", "python_multipart"):
        logging.getLogger(name).handlers = []


def test_remarks_become_lines_of_a_json_log(caplog: pytest.LogCaptureFixture) -> None:
    said: list[str] = []
    sayer(Log(), said.append)("heed: ready.")
    assert said == ["heed: ready."]
    with caplog.at_level("INFO", logger="heed.serve"):
        sayer(Log(format="json"), said.append)("  heed: ready.")
    assert caplog.messages == ["heed: ready."] and len(said) == 1
