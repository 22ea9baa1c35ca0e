r"""Lines come whole and in order, whatever is in them; only `\n` ends one."""

import bz2
import gzip
import io
import lzma
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from heed.data import lines
from heed.data.lines import read_chunks, read_lines, require_file, shown_name, suffix_of
from heed.errors import DataError, MissingExtraError, in_shell

PACKERS = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}
# Everything that some program, somewhere, takes for the end of a line; and other trouble.
ODD = "\u2028 \u2029 \u0085 \x0b \x0c \x1c \x1d \x1e \0 \t \ufeff \ufffe \u202e é́́ 👩‍👩‍👧 ﷽"


@pytest.fixture(params=PACKERS)
def packed(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Any]:
    def pack(data: st.DataObject) -> Path:
        path = tmp_path / f"text{request.param}"
        path.write_bytes(PACKERS[request.param](data))
        return path

    return pack


def test_only_a_newline_ends_a_line(packed: Callable[..., Any]) -> None:
    text = [f"L1 {ODD}", "", "a\rb", "L4"]
    assert list(read_lines(packed("\n".join(text).encode()))) == text


no_newline = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))


@given(text=st.lists(no_newline))
def test_n_lines_in_are_n_lines_out(
    tmp_path_factory: pytest.TempPathFactory, text: list[str]
) -> None:
    path = tmp_path_factory.mktemp("lines") / "text"
    path.write_bytes(b"".join(line.encode() + b"\n" for line in text))
    expected = [line.removesuffix("\r") for line in text]
    if expected:
        expected[0] = expected[0].removeprefix("\ufeff")
    assert list(read_lines(path)) == expected


def test_a_last_line_needs_no_newline_and_an_empty_file_has_no_line(
    packed: Callable[..., Any],
) -> None:
    assert list(read_lines(packed(b"a\nb"))) == ["a", "b"]
    assert list(read_lines(packed(b"a\nb\n"))) == ["a", "b"]
    assert list(read_lines(packed(b""))) == []
    assert list(read_lines(packed(b"\n"))) == [""]


def test_windows_line_ends_and_a_byte_order_mark_are_dropped(packed: Callable[..., Any]) -> None:
    assert list(read_lines(packed(b"\xef\xbb\xbfa\r\nb\r\r\n"))) == ["a", "b\r"]


def test_a_file_with_the_line_ends_of_old_macs_is_refused(packed: Callable[..., Any]) -> None:
    path = packed(b"a\rb\rc\r")
    with pytest.raises(DataError, match=r"but has carriage returns, as on old Macs\. Convert it"):
        list(read_lines(path))
    assert list(read_lines(packed(b"a\rb\r"))) == ["a\rb"]
    assert list(read_lines(packed(b"a\rb\rc\n"))) == ["a\rb\rc"]


def test_lines_are_whole_wherever_a_block_of_bytes_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = ["", "öä", "\u2028", "日本", "a" * 9, "x\ry"]
    (tmp_path / "text").write_bytes("\r\n".join(text).encode())
    for size in range(1, 20):
        monkeypatch.setattr(lines, "_CHUNK_BYTES", size)
        assert list(read_lines(tmp_path / "text")) == text


def test_a_wrong_byte_is_named_by_its_line_in_the_file_and_not_in_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "_CHUNK_BYTES", 4)
    (tmp_path / "text").write_bytes("eins\nzwei\ndrei\nfünf\n".encode("latin1"))
    with pytest.raises(DataError, match=r"line 4: must be UTF-8, but byte 2 of the line is 0xFC"):
        list(read_lines(tmp_path / "text"))


def test_stdin_is_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a\nb\n")))
    assert list(read_lines("-")) == ["a", "b"]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a\n\xff\n")))
    with pytest.raises(DataError, match="^standard input line 2: .* iconv -f ENCODING -t utf-8, "):
        list(read_lines("-"))


class Terminal(io.RawIOBase):
    """Says once that it is at its end, as a terminal does after Ctrl-D."""

    def __init__(self, *reads: Any) -> None:
        self.reads = [*reads, b""]

    def readable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        read = self.reads.pop(0)
        buffer[: len(read)] = read
        return len(read)


@pytest.mark.parametrize("reads", [(), (b"a\n", b"b\n"), (b"a\n", b"b")])
def test_the_end_of_a_terminal_is_read_once(
    monkeypatch: pytest.MonkeyPatch, reads: tuple[bytes, bytes]
) -> None:
    terminal = Terminal(*reads)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BufferedReader(terminal)))
    assert list(read_lines("-")) == b"".join(reads).decode().split()
    assert terminal.reads == []


def test_bytes_that_are_not_utf8_are_named_by_line_and_place(packed: Callable[..., Any]) -> None:
    path = packed("gut\nschön\n".encode("latin1"))
    with pytest.raises(
        DataError,
        match=r"line 2: must be UTF-8, but byte 4 of the line is 0xF6. Convert the file: .*"
        r"iconv -f ENCODING -t utf-8.*, where ENCODING is what it was saved in, such as cp1252",
    ):
        list(read_lines(path))


@pytest.mark.parametrize("size", [4, 1 << 16])
@pytest.mark.parametrize("before", ["schön\n", "gut\nschön\nDank\n", "schön und "])
def test_a_file_of_two_encodings_is_not_to_be_converted_as_a_whole(
    packed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, before: str, size: int
) -> None:
    """That would write the letters that are UTF-8 already as two characters each."""
    monkeypatch.setattr(lines, "_CHUNK_BYTES", size)
    path = packed(before.encode() + "blöd\n".encode("latin1"))
    with pytest.raises(DataError, match=r"must be UTF-8, but byte .* is 0xF6\.") as error:
        list(read_lines(path))
    assert "iconv" not in str(error.value)
    command = str(error.value).partition("only the lines that this lists: ")[2]
    if shutil.which(command.split()[0]) is None:
        pytest.skip(f"{command.split()[0]} is not installed")
    listed = subprocess.run(
        ["bash", "-c", command], env={**os.environ, "LC_ALL": "C.UTF-8"}, stdout=subprocess.PIPE
    ).stdout
    number = before.count("\n") + 1
    assert listed == f"{number}:{before.split(chr(10))[-1]}".encode() + b"bl\xf6d\n"


@pytest.mark.parametrize(
    ("encoding", "advised"),
    [
        ("utf-16", "utf-16"),
        ("utf-32", "utf-32"),
        ("utf-16-le", "utf-16le"),
        ("utf-16-be", "utf-16be"),
        ("utf-32-le", "utf-32le"),
        ("utf-32-be", "utf-32be"),
    ],
)
def test_utf16_and_utf32_are_refused_with_the_command_that_converts_them(
    tmp_path: Path, encoding: str, advised: str
) -> None:
    path = tmp_path / "text"
    path.write_bytes("Good morning, everybody!\nHow are you?\n".encode(encoding))
    with pytest.raises(DataError) as error:
        list(read_lines(path))
    assert str(error.value) == (
        f"{path} must be UTF-8, but its first bytes are {advised.upper()}. "
        f"Convert the file: iconv -f {advised} -t utf-8 < {path} > {path}.utf-8"
    )


@pytest.mark.parametrize(
    ("content", "named", "copy"),
    [
        ("Grüße\nan die\nWelt\n".encode("utf-16"), "text.de", "text.utf-8.de"),
        ("Grüße\nan die\nWelt\n".encode("utf-16"), "text.de.gz", "text.utf-8.de"),
        ("Grüße\ran die\rWelt\r".encode(), "text.de", "text.lf.de"),
        ("Grüße\ran die\rWelt\r".encode(), "text.de.gz", "text.lf.de"),
    ],
)
def test_the_command_of_a_message_writes_a_copy_that_is_read(
    tmp_path: Path, content: bytes, named: str, copy: str
) -> None:
    """The copy is text, also of a compressed file, and its name tells the same language."""
    path = tmp_path / named
    path.write_bytes(gzip.compress(content) if named.endswith(".gz") else content)
    with pytest.raises(DataError) as error:
        list(read_lines(path))
    command = re.split("Convert (?:it|the file): ", str(error.value))[1]
    if shutil.which("iconv") is None:
        pytest.skip("iconv is not installed")
    subprocess.run(["bash", "-c", command], check=True)
    assert list(read_lines(tmp_path / copy)) == ["Grüße", "an die", "Welt"]


def test_a_packed_file_is_named_as_one(tmp_path: Path) -> None:
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("text", "Hello\n")
    packed = {
        "bzip2": bz2.compress(b"Hello\n"),
        "zip": zipped.getvalue(),
        "gzip": gzip.compress(b"Hello\n"),
        "xz": lzma.compress(b"Hello\n"),
    }
    for name, content in packed.items():
        path = tmp_path / "text.txt"
        path.write_bytes(content)
        with pytest.raises(
            DataError, match=rf"text\.txt must be text, but is packed with {name}\."
        ):
            list(read_lines(path))
    path.write_bytes(b"BZh is a word\n")
    assert list(read_lines(path)) == ["BZh is a word"]


def test_a_missing_file_is_named_where_its_folder_cannot_be_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> list[str]:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr("os.listdir", refuse)
    with pytest.raises(DataError, match=r"train\.enn does not exist\.$"):
        require_file(tmp_path / "train.enn")


def test_a_line_of_nul_characters_is_text(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"\0" * 100 + b"\na\0b\0")
    assert list(read_lines(tmp_path / "text")) == ["\0" * 100, "a\0b\0"]


@pytest.mark.parametrize("bad", [b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xff"])
def test_overlong_surrogate_and_out_of_range_bytes_are_refused(tmp_path: Path, bad: bytes) -> None:
    (tmp_path / "text").write_bytes(bad)
    with pytest.raises(DataError, match="line 1: must be UTF-8"):
        list(read_lines(tmp_path / "text"))


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_cut_archive_is_damaged_and_not_just_short(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    data = PACKERS[suffix](b"".join(b"line %d\n" % n for n in range(50_000)))
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(DataError, match=r"is damaged after line \d+: .* Copy or download it again"):
        list(read_lines(path))
    path.write_bytes(PACKERS[suffix](b"one\n")[:3] + b"\xff" * 40)
    for read in (read_lines, read_chunks):
        with pytest.raises(DataError, match=r"is damaged: .* Copy or download it again"):
            list(read(path))


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_the_lines_before_the_cut_of_an_archive_are_counted(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    draw = random.Random(1)
    data = b"".join(b"%d %d\n" % (n, draw.getrandbits(99)) for n in range(40_000))
    path.write_bytes(PACKERS[suffix](data)[:-500])
    found: list[str] = []
    with pytest.raises(DataError) as error:
        found.extend(read_lines(path))
    n_lines = int(re.findall(r"is damaged after line (\d+): ", str(error.value))[0])
    assert [int(line.split()[0]) for line in found] == list(range(n_lines))
    assert n_lines > (30_000 if suffix != ".zst" else 20_000)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_plain_text_with_the_name_of_an_archive_is_to_be_renamed(
    tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"text.en{suffix}"
    path.write_text("Zwölf Männer fahren Rad.\n" * 400, encoding="utf-8")
    for read in (read_lines, read_chunks):
        with pytest.raises(DataError) as error:
            list(read(path))
        assert str(error.value) == (
            f"{path} is not compressed, though its name ends in {suffix}. Rename it: mv {path} "
            f"{tmp_path / 'text.en'}"
        )


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_archives_put_end_to_end_are_read_to_the_end(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(PACKERS[suffix](b"a\n") + PACKERS[suffix](b"") + PACKERS[suffix](b"b\n"))
    assert list(read_lines(path)) == ["a", "b"]
    assert b"".join(read_chunks(path)) == b"a\nb\n"


def test_zst_without_its_package_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text.zst").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match=r"reading \.zst files needs .* 'heed\[train\]'"):
        list(read_lines(tmp_path / "text.zst"))


def test_a_line_without_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 10)
    (tmp_path / "text").write_bytes(b"ten bytes!\neleven byte")
    with pytest.raises(DataError, match=r"line 2: a line must have at most 10 bytes, but has more"):
        list(read_lines(tmp_path / "text"))


@pytest.mark.parametrize("suffix", PACKERS)
def test_one_huge_line_is_refused_in_seconds_and_little_memory(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(PACKERS[suffix](b"a" * (20 << 20)))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="line 1: a line must have at most 16777216 bytes"):
            list(read_lines(path))
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.reliability
def test_a_small_zst_with_one_line_of_1500_mb_is_refused_in_seconds(tmp_path: Path) -> None:
    path = tmp_path / "line.zst"
    with zstandard.ZstdCompressor().stream_writer(open(path, "wb")) as file:
        for _ in range(1500):
            file.write(b"a" * 1_000_000)
    assert path.stat().st_size < 1 << 20
    begin = time.monotonic()
    with pytest.raises(DataError, match="line 1: a line must have at most 16777216 bytes"):
        list(read_lines(path))
    assert time.monotonic() - begin < 5


def test_unpacking_repetitive_text_takes_time_in_proportion_to_its_size(tmp_path: Path) -> None:
    """A quadratic cost would make the second file sixteen times as slow as the first."""
    seconds = []
    for n_lines in (200_000, 800_000):
        path = tmp_path / f"{n_lines}.zst"
        path.write_bytes(zstandard.compress(b"Hello world, this is a line\n" * n_lines))
        begin = time.process_time()
        assert sum(map(len, read_chunks(path))) == 28 * n_lines
        seconds.append(time.process_time() - begin)
    assert seconds[1] < 0.5 + 8 * seconds[0]


@pytest.mark.parametrize("suffix", [".xz", ".zst"])
def test_one_step_of_unpacking_holds_little_whatever_the_file_unpacks_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(lines, "_PACKED_BYTES", 8)
    path = tmp_path / f"text{suffix}"
    path.write_bytes(PACKERS[suffix](b"Hello world\n" * 1_000_000))
    tracemalloc.start()
    try:
        assert sum(map(len, read_chunks(path))) == 12_000_000
        assert tracemalloc.get_traced_memory()[1] < 12 << 20  # xz: a window of 8
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("suffix", [".xz", ".zst"])
def test_an_archive_without_a_byte_is_damaged(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    path.touch()
    with pytest.raises(DataError, match="is damaged: it ends in the middle"):
        list(read_lines(path))


def test_padding_between_xz_streams_does_not_end_the_file(tmp_path: Path) -> None:
    path = tmp_path / "text.xz"
    path.write_bytes(lzma.compress(b"a\n") + bytes(1000) + lzma.compress(b"b\n") + bytes(4))
    assert list(read_lines(path)) == ["a", "b"]


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_bytes_behind_an_archive_that_are_no_archive_are_damage(
    tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(PACKERS[suffix](b"a\n") + b"garbage")
    with pytest.raises(DataError, match="is damaged after line 1: "):
        list(read_lines(path))


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_an_archive_with_the_suffix_of_another_is_named_by_its_format(
    tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"text{suffix}"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.tsv", "a\tb\n")
    refusal = rf"text\{suffix} is packed with {{}}, though its name ends in \{suffix}\. Unpack it"
    with pytest.raises(DataError, match=refusal.format("zip")):
        list(read_lines(path))
    other, name = (".gz", "gzip") if suffix != ".gz" else (".xz", "xz")
    path.write_bytes(PACKERS[other](b"a\n"))
    with pytest.raises(DataError, match=refusal.format(name)):
        list(read_lines(path))


def test_an_archive_that_needs_a_huge_window_is_refused(tmp_path: Path) -> None:
    window = zstandard.ZstdCompressionParameters(window_log=28, compression_level=1)
    zst = zstandard.ZstdCompressor(compression_params=window).compressobj()
    (tmp_path / "a.zst").write_bytes(zst.compress(b"a\n") + zst.flush())
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 28}]
    (tmp_path / "a.xz").write_bytes(lzma.compress(b"a\n", filters=filters))
    for name in ("a.zst", "a.xz"):
        with pytest.raises(
            DataError,
            match=rf"{name} needs more than 128 MiB of memory to be unpacked\. Pack it again .*: "
            r"xz -9 or zstd -19, without --long\.",
        ):
            list(read_lines(tmp_path / name))


def test_a_missing_file_suggests_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "train.en").touch()
    (tmp_path / "trian.eng").mkdir()  # a folder is no text
    with pytest.raises(DataError, match=r"trian\.en does not exist\. Did you mean .*train\.en\?"):
        list(read_lines(tmp_path / "trian.en"))
    with pytest.raises(DataError, match=r"does not exist\.$"):
        require_file(tmp_path / "quite another name")
    with pytest.raises(DataError, match=r"does not exist: there is no folder .*nowhere"):
        require_file(tmp_path / "nowhere" / "train.en")
    for target in ("gone", "link"):
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").symlink_to(target)
        with pytest.raises(DataError, match=rf"link is a link to {target}, which does not exist\."):
            require_file(tmp_path / "link")


def test_a_folder_or_a_forbidden_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match="must be a file, but is a folder"):
        require_file(tmp_path)
    (tmp_path / "secret").touch()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(DataError, match=r"secret cannot be read: permission denied. Try: chmod"):
        require_file(tmp_path / "secret")


def test_a_command_in_a_message_has_unusual_names_in_quotes(tmp_path: Path) -> None:
    """Without them a shell would read two files, or wait for the other quote."""
    odd = tmp_path / "Anna's text.en"
    for path, content, command in (
        (odd, "Zwölf".encode("utf-16"), ["iconv", "-f", "utf-16", "-t", "utf-8", "<", str(odd)]),
        (odd, b"a\xff\n", ["iconv", "-f", "ENCODING", "-t", "utf-8", "<", str(odd)]),
        (odd, b"a\r" * 20, ["tr", "\\r", "\\n", "<", str(odd)]),
        (odd.with_suffix(".gz"), b"a\n" * 20, ["mv", str(odd.with_suffix(".gz"))]),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError) as error:
            list(read_lines(path))
        message = str(error.value)
        words = shlex.split(message[message.index(f"{command[0]} ") :].replace(",", " ,"))
        assert words[: len(command)] == command


@pytest.mark.parametrize("name", [b"t\xe9 1.txt", b"it's \\ t\xe9", b"a\nb", b"\xc2\xa0 x"])
def test_bash_reads_the_bytes_of_a_name_in_a_command(name: bytes) -> None:
    """Messages are text: a byte that is not UTF-8 would arrive as an escape, another name."""
    if (bash := shutil.which("bash")) is None:
        pytest.skip("bash is not installed")
    command = f"printf %s {in_shell(os.fsdecode(name))}"
    assert command.isprintable()
    assert subprocess.run([bash, "-c", command], capture_output=True, check=True).stdout == name


def test_the_suffix_of_a_name_leaves_compression_out() -> None:
    names = ["a.tsv", "a.TSV.gz", "a.b.tmx.xz", "train.en", "train.en.gz", "a"]
    assert [suffix_of(name) for name in names] == [".tsv", ".tsv", ".tmx", ".en", ".en", ""]


def test_standard_input_has_a_name() -> None:
    assert shown_name("-") == "standard input"
    assert shown_name("a.txt") == "a.txt"
