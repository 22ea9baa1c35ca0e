"""A JSON-lines file that grows: each object once, whatever its writer does."""

import json
import os
from pathlib import Path

import pytest

from heed.disk import growing
from heed.disk.files import append_json_line, cut_json_lines
from heed.disk.growing import GrowingLines


def test_each_object_is_given_once_as_the_file_grows(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = GrowingLines(path)
    assert lines.read() == (False, [])
    append_json_line(path, {"step": 1})
    assert lines.read() == (True, [{"step": 1}])
    assert lines.read() == (False, [])
    append_json_line(path, {"step": 2})
    append_json_line(path, {"step": 3})
    assert lines.read() == (False, [{"step": 2}, {"step": 3}])


def test_a_half_written_line_is_waited_for_at_every_byte(tmp_path: Path) -> None:
    path, event = tmp_path / "log", {"text": "größer ▁ 城"}
    whole = json.dumps(event, ensure_ascii=False).encode() + b"\n"
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        lines = GrowingLines(path)
        assert lines.read()[1] == []
        with open(path, "ab") as file:
            file.write(whole[cut:])
        assert lines.read() == (False, [event])
        assert lines.n_unreadable == 0


def test_a_log_that_is_cut_for_a_resumed_run_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = GrowingLines(path)
    for step in range(5):
        append_json_line(path, {"step": step})
    lines.read()
    cut_json_lines(path, lambda event: event["step"] < 3)
    append_json_line(path, {"step": 30})
    assert lines.read() == (True, [{"step": 0}, {"step": 1}, {"step": 2}, {"step": 30}])


def test_a_file_that_goes_away_voids_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append_json_line(path, {"step": 1})
    lines = GrowingLines(path)
    lines.read()
    path.unlink()
    assert lines.read() == (True, [])
    assert lines.read() == (False, [])


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[1, 2]",
        b'"text"',
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"a": 1, "a": 2}',
        b"\xff\xfe",
        b'{"a": ' + b"[" * 100_000,
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": "' + b"x" * growing.MAX_LINE_BYTES + b'"}',
    ],
    ids=str,
)
def test_damaged_and_huge_lines_are_counted_and_passed_over(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(b'{"a": 1}\n' + line + b'\n{"b": 2}\n')
    lines = GrowingLines(path)
    assert lines.read() == (True, [{"a": 1}, {"b": 2}])
    assert lines.n_unreadable == 1


def test_a_huge_line_that_comes_in_parts_is_not_kept_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = GrowingLines(path)
    part = b"x" * (growing.MAX_LINE_BYTES // 2 + 10)
    for _ in range(5):
        with open(path, "ab") as file:
            file.write(part)
        lines.read()
        assert len(lines._waiting) <= growing.MAX_LINE_BYTES
    with open(path, "ab") as file:
        file.write(b'\n{"b": 2}\n')
    assert lines.read() == (False, [{"b": 2}])
    assert lines.n_unreadable == 1


def test_a_large_log_comes_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "MAX_READ_BYTES", 25)
    path = tmp_path / "log"
    for step in range(10):
        append_json_line(path, {"step": step})
    lines, found = GrowingLines(path), []
    for _ in range(10):
        found += lines.read()[1]
    assert found == [{"step": step} for step in range(10)]


def test_links_pipes_and_folders_are_not_opened(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    append_json_line(secret, {"password": 1})
    (tmp_path / "link").symlink_to(secret)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("link", "pipe", "folder"):
        assert GrowingLines(tmp_path / name).read() == (False, [])
