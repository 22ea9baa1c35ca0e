import gzip
import io
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.cli import streams
from heed.cli.streams import (
    LineWriter,
    PipeInput,
    decode_lines,
    open_input,
    open_output,
)
from heed.data.lines import shown_name
from heed.errors import DataError, UsageError
from heed.translate.lines import Line, buffers


def lines_of(data: bytes, **options: Any) -> list[str] | None:
    return list(decode_lines(io.BytesIO(data), "x.txt", **options))


@given(st.lists(st.text().filter(lambda text: "\n" not in text and not text.endswith("\r"))))
def test_as_many_lines_come_out_as_went_in(texts: list[str]) -> None:
    data = "".join(f"{text}\n" for text in texts).encode("utf-8", "surrogatepass")
    try:
        assert lines_of(data) == texts
    except DataError:
        assert any(0xD800 <= ord(c) <= 0xDFFF for text in texts for c in text)


@given(st.binary())
def test_any_bytes_give_one_line_for_each_line_break(data: bytes) -> None:
    expected = data.count(b"\n") + (not data.endswith(b"\n") and data != b"")
    assert len(lines_of(data, on_invalid=lambda number: None)) == expected


def test_only_line_feeds_end_lines() -> None:
    odd = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\rh\x00i"
    assert lines_of(f"{odd}\r\nlast".encode()) == [odd, "last"]


def test_one_carriage_return_is_dropped_and_no_more() -> None:
    assert lines_of(b"a\r\r\nb\r") == ["a\r", "b"]


def test_the_line_ends_of_old_macs_are_refused() -> None:
    with pytest.raises(DataError, match=r"Convert it: tr '\\r' '\\n' < x\.txt > x\.lf\.txt$"):
        lines_of(b"a\rb\rc\r")
    with pytest.raises(DataError, match=r"^standard input must .* tr '\\r' '\\n'$"):
        list(decode_lines(io.BytesIO(b"a\rb\rc"), shown_name("-")))
    assert lines_of(b"a\rb\rc\n") == ["a\rb\rc"]


def test_invalid_bytes_are_an_error_that_names_the_line() -> None:
    with pytest.raises(
        DataError, match=r"x\.txt line 2: must be UTF-8, but byte 3 .* 0xFF.* < x\.txt > x\.utf-8\."
    ):
        lines_of(b"good\nab\xff\n")


@pytest.mark.parametrize("encoding", ["utf-16le", "utf-16be", "utf-32le"])
def test_wide_characters_without_a_mark_are_refused(encoding: str) -> None:
    text = "Two dogs run.\nA man sleeps under a tree.\n"
    with pytest.raises(DataError, match=rf"in must be UTF-8, but .* iconv -f {encoding} -t utf-8"):
        list(decode_lines(io.BytesIO(text.encode(encoding)), "in"))
    name = shown_name("-")
    with pytest.raises(DataError, match=rf"^standard input must .* -f {encoding} -t utf-8$"):
        list(decode_lines(io.BytesIO(text.encode(encoding)), name))
    with pytest.raises(DataError, match="packed with gzip"):
        list(decode_lines(io.BytesIO(gzip.compress(text.encode())), "in"))
    assert list(decode_lines(io.BytesIO(f"{text}\0\n".encode()), "in"))[2] == "\0"


def test_invalid_bytes_can_be_replaced_and_are_told() -> None:
    told: list[Any] = []
    assert lines_of(b"good\nab\xff\n", on_invalid=told.append) == ["good", "ab\ufffd"]
    assert told == [2]


def test_an_endless_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_LINE_BYTES", 10)
    with pytest.raises(DataError, match=r"x\.txt line 2 is longer than 0 MiB: is this text\?"):
        lines_of(b"short\n" + b"x" * 20)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.txt does not exist\."):
        open_input(str(tmp_path / "nowhere.txt"))


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(DataError, match="cannot be written: Is a directory"),
        open_output(str(tmp_path)),
    ):
        pass


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_an_output_with_the_name_of_a_packed_file_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    with pytest.raises(UsageError, match="the output is not compressed"), open_output(str(path)):
        pass
    assert not path.exists()


def test_written_lines_can_be_read_back(tmp_path: Path) -> None:
    path = str(tmp_path / "out")
    with open_output(path) as writer:
        for line in ("ünï", "", "a\u2028b", "\udc80"):
            writer.write(line)
    with open_input(path) as stream:
        assert list(decode_lines(stream, path)) == ["ünï", "", "a\u2028b", "?"]


def test_an_older_file_is_kept_when_nothing_is_written_before_an_error(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old\n")
    with pytest.raises(ValueError), open_output(str(path)):
        raise ValueError
    assert path.read_text() == "old\n"
    with open_output(str(path)):
        pass
    assert path.read_text() == ""


def test_no_file_is_left_when_nothing_is_written_before_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError), open_output(str(tmp_path / "out")):
        raise ValueError
    assert list(tmp_path.iterdir()) == []


def test_lines_before_an_error_are_kept_and_other_names_of_the_file_stay(tmp_path: Path) -> None:
    path, other = tmp_path / "out", tmp_path / "other"
    path.write_text("an older file that is longer\n")
    other.hardlink_to(path)
    with pytest.raises(ValueError), open_output(str(path)) as writer:
        writer.write("new")
        raise ValueError
    assert path.read_text() == other.read_text() == "new\n"


def test_a_named_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with open_output(path) as writer:
        writer.write("line")
    assert os.read(reader, 100) == b"line\n"
    os.close(reader)


@pytest.mark.parametrize("n_lines", [1, 100_000])
def test_a_full_disk_names_the_file(n_lines: int) -> None:
    with (
        pytest.raises(DataError, match=r"^/dev/full cannot be written: No space left on device\.$"),
        open_output("/dev/full") as writer,
    ):
        for _ in range(n_lines):
            writer.write("line")


def test_a_line_break_inside_a_line_is_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError):
        LineWriter(io.BytesIO()).write("a\nb")


def test_a_watched_stream_is_flushed_line_by_line() -> None:
    class Stream(io.BytesIO):
        flushes = 0

        def flush(self) -> None:
            self.flushes += 1

    stream = Stream()
    LineWriter(stream, is_live=True).write("a")
    assert stream.flushes == 1


@pytest.fixture
def pipe() -> Iterator[tuple[PipeInput, Any]]:
    """An input that reads from a pipe, and the end to write to."""
    reading, writing = os.pipe()
    with open(reading, "rb") as reader, open(writing, "wb", buffering=0) as writer:
        yield PipeInput(reader), writer


def test_a_pipe_has_paused_when_its_next_line_is_not_there(pipe: tuple[PipeInput, Any]) -> None:
    source, writer = pipe
    assert source.has_paused()
    writer.write(b"a\nb\npart")
    assert not source.has_paused()
    assert [source.readline(99), source.readline(99)] == [b"a\n", b"b\n"]
    assert source.has_paused()
    writer.write(b"ial\n")
    assert not source.has_paused()
    writer.close()
    assert [source.readline(99), source.readline(99)] == [b"partial\n", b""]
    assert not source.has_paused()


def test_lines_that_are_there_fill_their_portions(pipe: tuple[PipeInput, Any]) -> None:
    source, writer = pipe
    writer.write(b"a\n" * 5000)
    writer.close()
    lines = (Line(text) for text in decode_lines(source, "x"))
    found = buffers(lines, max_lines=2048, max_chars=1 << 20, has_paused=source.has_paused)
    assert [len(portion) for portion in found] == [2048, 2048, 904]


def test_a_trickle_of_bytes_is_a_pause(
    pipe: tuple[PipeInput, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_LINE_BYTES", 1 << 30)
    source, writer = pipe
    seconds = iter(range(1000))
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds) / 100)
    reads = []

    def read_one(fd: int, size: int) -> bytes:
        reads.append(fd)
        return b"x"

    monkeypatch.setattr(os, "read", read_one)
    writer.write(b"there")
    assert source.has_paused()
    assert len(reads) == pytest.approx(streams.PATIENCE_S * 100, abs=1)


@given(st.binary(max_size=60), st.integers(1, 9))
def test_a_pipe_gives_the_lines_that_a_file_gives(data: bytes, limit: int) -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as reader:
        os.write(writing, data)
        os.close(writing)
        source, expected = PipeInput(reader), io.BytesIO(data)
        while line := expected.readline(limit):
            assert source.readline(limit) == line
        assert source.readline(limit) == b""


def test_only_a_plain_pipe_is_watched_for_pauses(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(b"")
    for name in (str(path), __file__):
        with open_input(name) as source:
            assert not isinstance(source, PipeInput)
    os.mkfifo(tmp_path / "fifo")
    keep_open = os.open(tmp_path / "fifo", os.O_RDWR)
    with open_input(str(tmp_path / "fifo")) as source:
        assert isinstance(source, PipeInput)
    os.close(keep_open)


def test_only_what_was_written_is_flushed() -> None:
    class Stream(io.BytesIO):
        flushes = 0

        def flush(self) -> None:
            self.flushes += 1

    stream = Stream()
    writer = LineWriter(stream)
    writer.flush()
    writer.write("a")
    writer.write("b")
    assert stream.flushes == 0
    writer.flush()
    writer.flush()
    assert stream.flushes == 1
