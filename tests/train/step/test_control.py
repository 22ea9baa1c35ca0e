"""Requests in the run folder: read once, and only if they are one."""

from pathlib import Path

import pytest

from heed.train.step.control import CONTROL_FILE, ControlFile, Request, ask


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
