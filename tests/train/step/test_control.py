"""Requests in the run folder: read once, and only if they are one."""

from pathlib import Path

import pytest

from heed.train.step.control import CONTROL_FILE, ControlFile, Request, Requests, ask


@pytest.mark.parametrize("request_", [Request.SAVE, Request.STOP])
def test_a_request_is_taken_once(tmp_path: Path, request_: Request) -> None:
    control = ControlFile(tmp_path)
    assert control.take() == Request.NONE
    ask(tmp_path, request_)
    assert [control.take(), control.take()] == [request_, Request.NONE]
    assert not (tmp_path / CONTROL_FILE).exists()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "stop",
        '["stop"]',
        '{"request": "run a program"}',
        '{"request": {"stop": 1}}',
        '{"request": "stop"}' + " " * 1000,
    ],
)
def test_what_is_no_request_is_removed_and_does_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / CONTROL_FILE).write_text(content)
    assert ControlFile(tmp_path).take() == Request.NONE
    assert not (tmp_path / CONTROL_FILE).exists()


def test_a_folder_in_the_place_of_a_request_does_nothing(tmp_path: Path) -> None:
    (tmp_path / CONTROL_FILE).mkdir()
    assert ControlFile(tmp_path).take() == Request.NONE


def test_a_request_seen_in_the_middle_of_work_is_still_there_after_it(tmp_path: Path) -> None:
    requests = Requests(lambda: False, ControlFile(tmp_path).take)
    assert not requests.is_stop()
    ask(tmp_path, Request.SAVE)
    assert not requests.is_stop()
    assert not (tmp_path / CONTROL_FILE).exists()
    assert [requests.take(), requests.take()] == [Request.SAVE, Request.NONE]
    for request in (Request.SAVE, Request.STOP):
        ask(tmp_path, request)
        requests.is_stop()
    assert requests.is_stop()
    assert [requests.take(), requests.take()] == [Request.STOP, Request.NONE]


def test_a_signal_is_a_request_to_stop(tmp_path: Path) -> None:
    received: list[int] = []
    requests = Requests(lambda: bool(received), ControlFile(tmp_path).take)
    assert (requests.is_stop(), requests.take()) == (False, Request.NONE)
    received.append(15)
    assert (requests.is_stop(), requests.take()) == (True, Request.STOP)
