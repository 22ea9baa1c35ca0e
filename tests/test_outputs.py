"""An output is never a file that is read, by whatever name it goes."""

import os
from pathlib import Path

import pytest

from heed.errors import UsageError
from heed.outputs import require_not_read


def test_another_file_a_new_file_and_a_device_are_fine(tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("a\n")
    (tmp_path / "out.txt").write_text("b\n")
    for output in (tmp_path / "out.txt", tmp_path / "new.txt", "/dev/null"):
        require_not_read(output, [str(source), str(tmp_path / "missing"), "/dev/null"])


@pytest.mark.parametrize("name", ["in.txt", "hard.txt", "soft.txt", "folder/../in.txt"])
def test_a_file_that_is_read_is_refused_under_every_name(tmp_path: Path, name: str) -> None:
    source = tmp_path / "in.txt"
    source.write_text("a\n")
    (tmp_path / "folder").mkdir()
    os.link(source, tmp_path / "hard.txt")
    os.symlink(source, tmp_path / "soft.txt")
    with pytest.raises(UsageError, match=r"and .*in\.txt are the same file: .* another file\."):
        require_not_read(str(tmp_path / name), [str(source)])


def test_a_redirected_stream_is_the_file_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "in.txt"
    source.write_text("a\n")
    with open(source) as file:
        monkeypatch.setattr("sys.stdin", file)
        with pytest.raises(UsageError, match=r"in\.txt and standard input are the same file"):
            require_not_read(str(source), ["-"])
        monkeypatch.setattr("sys.stdout", file)
        with pytest.raises(UsageError, match=r"standard output and standard input are the same"):
            require_not_read("-", ["-"])
