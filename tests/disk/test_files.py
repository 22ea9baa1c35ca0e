"""One file: whole or not at all, whatever happens in between."""

import errno
import fcntl
import mmap
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.disk import files
from heed.errors import DataError, FormatError, RunError

Fork = Callable[..., int]
WasKilled = Callable[[int], bool]


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folders" / "file"
    files.write_atomically(path, b"abc")
    assert files.read_bytes(path) == b"abc"
    assert os.listdir(path.parent) == ["file"]


def test_a_kill_at_any_point_leaves_the_old_file_or_the_new(
    tmp_path: Path, fork: Fork, was_killed: WasKilled
) -> None:
    path = tmp_path / "file"
    seen = set()
    for fault in range(1, 100):
        files.write_atomically(path, b"old")
        died = was_killed(fork(lambda: files.write_atomically(path, b"new content"), fault))
        seen.add(path.read_bytes())
        assert seen <= {b"old", b"new content"}
        if not died:
            break
    assert fault > 6, "the save must have several fault points"
    assert seen == {b"old", b"new content"}


def test_an_exception_while_streaming_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "file"
    files.write_atomically(path, b"old")
    with pytest.raises(DataError), files.atomic_writer(path) as file:
        file.write(b"half")
        raise DataError("line 3 is bad")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_reading_error_while_streaming_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), files.atomic_writer(tmp_path / "out") as file:
        file.write(Path("/nowhere/input").read_bytes())


def test_every_byte_is_synced_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut only synced data is there, and renames may come in any order."""
    events = []

    def fsync(descriptor: int) -> None:
        events.append(("sync", Path(os.readlink(f"/proc/self/fd/{descriptor}"))))

    def replace(old: Path, new: Path) -> None:
        events.append(("rename", old))
        os.rename(old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    files.write_atomically(tmp_path / "file", b"data")
    temporary = events[0][1]
    assert events == [("sync", temporary), ("rename", temporary), ("sync", tmp_path)]


def test_a_full_disk_says_what_was_needed_and_what_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    files.write_atomically(path, b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    words = rf"cannot write {path}: No space left on device. It needs 5 bytes, \d+ bytes are free"
    with pytest.raises(RunError, match=words):
        files.write_atomically(path, b"newer")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_too_large_for_the_system_is_refused_by_name(
    tmp_path: Path, fork: Fork, was_killed: WasKilled
) -> None:
    """The same road as a full disk, walked for real: the limit makes a write stop half-way."""

    def write() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        words = "cannot write .*: File too large. It needs 5000 bytes, more than a file may have"
        with pytest.raises(RunError, match=words):
            files.write_atomically(tmp_path / "file", b"x" * 5000)

    assert not was_killed(fork(write))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("error", [errno.EACCES, errno.EROFS, errno.EPERM])
def test_a_forbidden_folder_says_to_choose_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def refuse(_: int) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(RunError, match="Choose a writable folder"):
        files.write_atomically(tmp_path / "file", b"new")


def test_a_broken_disk_is_an_error_and_never_a_silent_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(RunError, match="Input/output error"):
        files.write_atomically(tmp_path / "file", b"new")


def test_a_file_where_a_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RunError, match=f"cannot write {tmp_path}/file"):
        files.write_atomically(tmp_path / "file" / "below", b"new")


def test_a_check_that_a_path_can_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    for path in (tmp_path / "new", tmp_path / "deep" / "new", tmp_path / "old"):
        files.require_writable(path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("old", "old")]
    for path in (tmp_path / "old" / "new", tmp_path / ("x" * 300)):
        with pytest.raises(RunError, match=f"cannot write {path}: "):
            files.require_writable(path)


def test_nothing_but_a_file_is_replaced(tmp_path: Path) -> None:
    for place in (tmp_path, Path("/dev/null")):
        with pytest.raises(RunError, match="the path exists and is not a file"):
            files.write_atomically(place, b"new")
        with pytest.raises(RunError, match=f"cannot write {place}: the path exists and is not a"):
            files.require_writable_file(place)


def test_the_check_of_a_file_follows_a_link(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "elsewhere").symlink_to("file/new")
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(RunError, match=f"cannot write {tmp_path}/link: the path exists and is"):
        files.require_writable_file(tmp_path / "link")
    with pytest.raises(RunError, match=f"cannot write {tmp_path}/file/new: Not a directory"):
        files.require_writable_file(tmp_path / "elsewhere")
    files.require_writable_file(tmp_path / "file")


def test_a_disk_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lustre has them only if it is mounted so."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(RunError, match=r"is on a disk without locks \(Function not implemented\)"),
        files.lock(tmp_path),
    ):
        pass
    assert not files.is_locked(tmp_path)


def test_a_file_that_a_user_named_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("file")
    for mode in (0o600, 0o664):
        (tmp_path / "file").chmod(mode)
        files.write_atomically(tmp_path / "link", b"new", follow_links=True)
        assert (tmp_path / "file").stat().st_mode & 0o777 == mode


def test_a_symbolic_link_is_replaced_unless_it_is_to_be_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("target")
    with files.atomic_writer(tmp_path / "link", follow_links=True) as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"
    files.write_atomically(tmp_path / "link", b"newer")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "link").read_bytes() == b"newer"
    assert (tmp_path / "target").read_bytes() == b"new"


def test_a_log_and_a_lock_replace_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"mine")
    for name in ("metrics.jsonl", "run.lock"):
        (tmp_path / name).symlink_to("victim")
    files.append_json_line(tmp_path / "metrics.jsonl", {"step": 1})
    assert list(files.read_json_lines(tmp_path / "metrics.jsonl")) == [{"step": 1}]
    with files.lock(tmp_path):
        assert (tmp_path / "run.lock").read_text() == f"{os.getpid()}\n"
    assert (tmp_path / "victim").read_bytes() == b"mine"


def test_a_folder_that_cannot_be_synced_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", fsync)
    files.write_atomically(tmp_path / "file", b"new")


def test_crc32_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    data = bytes(range(256)) * 5000
    (tmp_path / "file").write_bytes(data)
    assert files.crc32(tmp_path / "file") == files.crc32(data)
    assert files.crc32(b"123456789") == 0xCBF43926  # the check value of CRC-32/ISO-HDLC


def test_a_mapped_file_is_what_it_was_when_another_takes_its_place(tmp_path: Path) -> None:
    path = tmp_path / "file"
    files.write_atomically(path, b"old")
    mapped = files.map_bytes(path)
    assert isinstance(mapped, mmap.mmap)
    files.write_atomically(path, b"newer")
    assert bytes(mapped) == b"old"
    with pytest.raises(TypeError, match="readonly"):
        mapped[0] = 1


def test_what_cannot_be_mapped_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.touch()
    assert files.map_bytes(path) == b""
    path.write_bytes(b"some")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENODEV, "No such device")

    monkeypatch.setattr(mmap, "mmap", refuse)
    assert files.map_bytes(path) == b"some"
    with pytest.raises(FormatError, match="none is missing"):
        files.map_bytes(tmp_path / "none")


def test_reading_refuses_what_is_missing_too_large_or_no_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="nothing is missing"):
        files.read_bytes(tmp_path / "nothing")
    with pytest.raises(FormatError, match="file has 5 bytes; the limit is 4"):
        files.read_bytes(tmp_path / "file", max_bytes=4)
    with pytest.raises(FormatError, match="pipe cannot be read: it is not a regular file"):
        files.read_bytes(tmp_path / "pipe")
    with pytest.raises(FormatError, match="cannot be read"):
        files.read_bytes(tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.floats(-1e300, 1e300),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=3))
@settings(max_examples=50)
def test_json_comes_back_unchanged(value: dict[str, object]) -> None:
    assert files.parse_json(files.to_json(value), "x") == value
    assert files.to_json(value, indent=None).count(b"\n") == 1


def test_a_lone_surrogate_survives_json() -> None:
    assert files.parse_json(files.to_json({"name": "\udc80"}), "x") == {"name": "\udc80"}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "x is not valid JSON: Expecting value"),
        (b"{", "x is not valid JSON"),
        (b"[1]", "x must hold a JSON object, but holds list"),
        (b'{"a": 1, "a": 2}', "the key 'a' is repeated"),
        (b'{"a": NaN}', "NaN is not a valid JSON number"),
        (b'{"a": -Infinity}', "-Infinity is not a valid JSON number"),
        (b'{"a": 1e400}', "1e400 is too large for a number"),
        (b'{"a": ' + b"1" * 5000 + b"}", "x is not valid JSON"),
        (b'{"a": ' * 100_000, "nested too deeply"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": "\xff"}', "x is not valid JSON: 'utf-8' codec"),
    ],
)
def test_bad_json_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        files.parse_json(data, "x")


def test_nan_is_not_written() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.to_json({"a": float("nan")})


def test_json_lines_come_back_without_a_torn_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    files.append_json_line(path, {"step": 1, "text": "a\u2028b\nc"})
    with open(path, "ab") as file:
        file.write(b'{"step": 2, "te')
    assert [line["step"] for line in files.read_json_lines(path)] == [1]
    files.append_json_line(path, {"step": 3})
    assert [line["step"] for line in files.read_json_lines(path)] == [1, 3]


def test_a_log_that_is_one_torn_line_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * (files.CHUNK_BYTES + 7))
    files.append_json_line(path, {"step": 1})
    assert path.read_bytes() == b'{"step": 1}\n'


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b'{"a": 1}\nnonsense\n{"a": 2}\n')
    with pytest.raises(FormatError, match="log line 2 is not valid JSON"):
        list(files.read_json_lines(path))


def test_a_log_can_be_cut_back_to_a_step(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for step in range(5):
        files.append_json_line(path, {"step": step})
    before = path.read_bytes()
    files.append_json_line(path, {"step": 5})
    files.cut_json_lines(path, lambda line: line["step"] < 5)
    assert path.read_bytes() == before


def test_a_log_and_a_lock_on_a_full_disk_are_errors(
    tmp_path: Path, fork: Fork, was_killed: WasKilled
) -> None:
    def write() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        with pytest.raises(
            RunError, match=f"cannot write {tmp_path}/log: File too large. It needs"
        ):
            files.append_json_line(tmp_path / "log", {"step": 1})
        with (
            pytest.raises(RunError, match=f"cannot write {tmp_path}/run.lock: File too large"),
            files.lock(tmp_path),
        ):
            pass

    assert not was_killed(fork(write))


def test_a_second_process_is_told_who_holds_the_lock(tmp_path: Path) -> None:
    code = "import sys; from heed.disk.files import lock\nwith lock(sys.argv[1]): print('got it')"

    def second() -> str:
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    with files.lock(tmp_path):
        words = f"another process (pid {os.getpid()}) is training in {tmp_path}"
        assert words in second()
        with pytest.raises(RunError, match="another process .pid"), files.lock(tmp_path):
            pass
    assert second() == "got it\n"


def test_an_error_under_the_lock_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="mine"), files.lock(tmp_path):
        raise OSError("mine")


def test_importing_is_light() -> None:
    code = (
        "import sys, heed.disk.files, heed.disk.folders, heed.config, heed.machine.device\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_looking_whether_a_folder_is_locked_neither_locks_nor_writes(tmp_path: Path) -> None:
    assert not files.is_locked(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with files.lock(tmp_path):
        assert files.is_locked(tmp_path)
    assert not files.is_locked(tmp_path)
    with files.lock(tmp_path):
        pass


def test_a_lock_is_taken_although_somebody_looks_at_it_just_then(tmp_path: Path) -> None:
    import threading

    with files.lock(tmp_path):
        pass
    with open(tmp_path / "run.lock", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        timer = threading.Timer(0.01, fcntl.flock, (file.fileno(), fcntl.LOCK_UN))
        timer.start()
        with files.lock(tmp_path):
            assert files.is_locked(tmp_path)
        timer.join()
