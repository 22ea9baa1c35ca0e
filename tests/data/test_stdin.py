"""Standard input as a corpus: kept whole, told apart, refused in words when it is empty."""

import gzip
import io
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from heed.data.stdin import keep_stdin
from heed.errors import DataError


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    def give(data: Any, *, is_terminal: bool = False) -> None:
        stdin = SimpleNamespace(buffer=io.BytesIO(data), isatty=lambda: is_terminal)
        monkeypatch.setattr("sys.stdin", stdin)

    return give


def test_what_comes_in_is_kept_byte_for_byte(given: Callable[..., Any], tmp_path: Path) -> None:
    data = "a\tb\r\n\u2028\t\n".encode() + b"\xff\x00"
    given(data)
    facts = keep_stdin(tmp_path / "data" / "stdin.tsv", is_kept=False)
    assert (tmp_path / "data" / "stdin.tsv").read_bytes() == data
    assert facts.startswith(f"standard input, {len(data)} bytes, checksum ")


def test_what_is_kept_already_is_compared_and_not_written(
    given: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "stdin.tsv"
    given(b"one\teins\n")
    before = keep_stdin(path, is_kept=False)
    given(b"one\teins\n")
    assert keep_stdin(path, is_kept=True) == before
    given(b"two\tzwei\n")
    assert keep_stdin(path, is_kept=True) != before
    assert path.read_bytes() == b"one\teins\n"


def test_memory_stays_small_whatever_the_size(given: Callable[..., Any], tmp_path: Path) -> None:
    given(b"a\tb\n" * (1 << 21))
    tracemalloc.start()
    keep_stdin(tmp_path / "stdin.tsv", is_kept=False)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 1 << 20  # of the 8 MiB that passed through


def test_a_terminal_is_told_what_to_do(given: Callable[..., Any], tmp_path: Path) -> None:
    given(b"", is_terminal=True)
    with pytest.raises(DataError, match=r"but is a terminal\. Try: < corpus\.tsv"):
        keep_stdin(tmp_path / "stdin.tsv", is_kept=False)
    (tmp_path / "stdin.tsv").write_bytes(b"one\teins\n")
    with pytest.raises(DataError, match=r"continue with its earlier content: < .*stdin\.tsv"):
        keep_stdin(tmp_path / "stdin.tsv", is_kept=True)


def test_packed_input_is_refused_by_its_own_name(given: Callable[..., Any], tmp_path: Path) -> None:
    given(gzip.compress(b"a\tb\n"))
    with pytest.raises(
        DataError, match=r"^standard input must be text, .* packed with gzip\. .*: gzip -dc$"
    ):
        keep_stdin(tmp_path / "stdin.tsv", is_kept=False)
    assert list(tmp_path.iterdir()) == []


def test_closed_and_empty_input_leave_no_file(
    given: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(b"")
    with pytest.raises(DataError, match="must contain sentence pairs, but is empty"):
        keep_stdin(tmp_path / "stdin.tsv", is_kept=False)
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(DataError, match="must contain sentence pairs, but is closed"):
        keep_stdin(tmp_path / "stdin.tsv", is_kept=False)
    assert list(tmp_path.iterdir()) == []
