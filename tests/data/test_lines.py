r"""Lines come whole and in order, whatever is in them; only `\n` ends one."""

import gzip
import io
import lzma
import os
import sys
from types import SimpleNamespace

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from heed.data import lines
from heed.data.lines import read_chunks, read_lines, require_file, suffix_of
from heed.errors import DataError, MissingExtraError

PACKERS = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}
# Everything that some program, somewhere, takes for the end of a line; and other trouble.
ODD = "\u2028 \u2029 \u0085 \x0b \x0c \x1c \x1d \x1e \0 \t \ufeff \ufffe \u202e é́́ 👩‍👩‍👧 ﷽"


@pytest.fixture(params=PACKERS)
def packed(request, tmp_path):
    def pack(data):
        path = tmp_path / f"text{request.param}"
        path.write_bytes(PACKERS[request.param](data))
        return path

    return pack


def test_only_a_newline_ends_a_line(packed):
    text = [f"L1 {ODD}", "", "a\rb", "L4"]
    assert list(read_lines(packed("\n".join(text).encode()))) == text


no_newline = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))


@given(text=st.lists(no_newline))
def test_n_lines_in_are_n_lines_out(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("lines") / "text"
    path.write_bytes(b"".join(line.encode() + b"\n" for line in text))
    expected = [line.removesuffix("\r") for line in text]
    if expected:
        expected[0] = expected[0].removeprefix("\ufeff")
    assert list(read_lines(path)) == expected


def test_a_last_line_needs_no_newline_and_an_empty_file_has_no_line(packed):
    assert list(read_lines(packed(b"a\nb"))) == ["a", "b"]
    assert list(read_lines(packed(b"a\nb\n"))) == ["a", "b"]
    assert list(read_lines(packed(b""))) == []
    assert list(read_lines(packed(b"\n"))) == [""]


def test_windows_line_ends_and_a_byte_order_mark_are_dropped(packed):
    assert list(read_lines(packed(b"\xef\xbb\xbfa\r\nb\r\r\n"))) == ["a", "b\r"]


def test_lines_are_whole_wherever_a_block_of_bytes_ends(tmp_path, monkeypatch):
    text = ["", "öä", "\u2028", "日本", "a" * 9, "x\ry"]
    (tmp_path / "text").write_bytes("\r\n".join(text).encode())
    for size in range(1, 20):
        monkeypatch.setattr(lines, "_CHUNK_BYTES", size)
        assert list(read_lines(tmp_path / "text")) == text


def test_a_wrong_byte_is_named_by_its_line_in_the_file_and_not_in_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "_CHUNK_BYTES", 4)
    (tmp_path / "text").write_bytes("eins\nzwei\ndrei\nfünf\n".encode("latin1"))
    with pytest.raises(DataError, match=r"line 4: must be UTF-8, but byte 2 of the line is 0xFC"):
        list(read_lines(tmp_path / "text"))


def test_stdin_is_a_dash(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a\nb\n")))
    assert list(read_lines("-")) == ["a", "b"]


class Terminal(io.RawIOBase):
    """Says once that it is at its end, as a terminal does after Ctrl-D."""

    def __init__(self, *reads):
        self.reads = [*reads, b""]

    def readable(self):
        return True

    def readinto(self, buffer):
        read = self.reads.pop(0)
        buffer[: len(read)] = read
        return len(read)


@pytest.mark.parametrize("reads", [(), (b"a\n", b"b\n"), (b"a\n", b"b")])
def test_the_end_of_a_terminal_is_read_once(monkeypatch, reads):
    terminal = Terminal(*reads)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BufferedReader(terminal)))
    assert list(read_lines("-")) == b"".join(reads).decode().split()
    assert terminal.reads == []


def test_bytes_that_are_not_utf8_are_named_by_line_and_place(packed):
    path = packed("gut\nschön\n".encode("latin1"))
    with pytest.raises(
        DataError, match=r"line 2: must be UTF-8, but byte 4 of the line is 0xF6. Convert .* iconv"
    ):
        list(read_lines(path))


@pytest.mark.parametrize("bad", [b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xff"])
def test_overlong_surrogate_and_out_of_range_bytes_are_refused(tmp_path, bad):
    (tmp_path / "text").write_bytes(bad)
    with pytest.raises(DataError, match="line 1: must be UTF-8"):
        list(read_lines(tmp_path / "text"))


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_cut_archive_is_damaged_and_not_just_short(tmp_path, suffix):
    path = tmp_path / f"text{suffix}"
    data = PACKERS[suffix](b"".join(b"line %d\n" % n for n in range(50_000)))
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(DataError, match=r"is damaged after line \d+: .* Copy or download it again"):
        list(read_lines(path))
    path.write_bytes(b"this is no archive")
    with pytest.raises(DataError, match=r"is damaged after line 0: "):
        list(read_lines(path))
    with pytest.raises(DataError, match=r"is damaged: "):
        list(read_chunks(path))


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_archives_put_end_to_end_are_read_to_the_end(tmp_path, suffix):
    path = tmp_path / f"text{suffix}"
    path.write_bytes(PACKERS[suffix](b"a\n") + PACKERS[suffix](b"") + PACKERS[suffix](b"b\n"))
    assert list(read_lines(path)) == ["a", "b"]
    assert b"".join(read_chunks(path)) == b"a\nb\n"


def test_zst_without_its_package_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "text.zst").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match=r"reading \.zst files needs .* 'heed\[train\]'"):
        list(read_lines(tmp_path / "text.zst"))


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 10)
    (tmp_path / "text").write_bytes(b"ten bytes!\neleven byte")
    with pytest.raises(DataError, match=r"line 2: a line must have at most 10 bytes, but has more"):
        list(read_lines(tmp_path / "text"))


def test_a_missing_file_suggests_the_nearest_name(tmp_path):
    (tmp_path / "train.en").touch()
    with pytest.raises(DataError, match=r"trian\.en does not exist\. Did you mean .*train\.en\?"):
        list(read_lines(tmp_path / "trian.en"))
    with pytest.raises(DataError, match=r"does not exist\.$"):
        require_file(tmp_path / "quite another name")
    with pytest.raises(DataError, match=r"does not exist: there is no folder .*nowhere"):
        require_file(tmp_path / "nowhere" / "train.en")


def test_a_folder_or_a_forbidden_file_is_refused(tmp_path, monkeypatch):
    with pytest.raises(DataError, match="must be a file, but is a folder"):
        require_file(tmp_path)
    (tmp_path / "secret").touch()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(DataError, match=r"secret cannot be read: this user may not. Try: chmod"):
        require_file(tmp_path / "secret")


def test_the_suffix_of_a_name_leaves_compression_out():
    names = ["a.tsv", "a.TSV.gz", "a.b.tmx.xz", "train.en", "train.en.gz", "a"]
    assert [suffix_of(name) for name in names] == [".tsv", ".tsv", ".tmx", ".en", ".en", ""]
