"""A folder with a manifest: whole or not at all, and no bit of it changes unnoticed."""

import ctypes
import errno
import itertools
import json
import os
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from heed.disk import files, folders
from heed.errors import FormatError, RunError

Fork = Callable[..., int]
WasKilled = Callable[[int], bool]
OLD = {"a.bin": b"old a", "b.json": b"{}"}
NEW = {"a.bin": b"new a", "b.json": b'{"new": true}', "c.bin": bytes(1000)}


def read(path: Path) -> dict[str, bytes]:
    return folders.read_directory(path)[1]


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "folder"
    folders.write_directory(path, NEW, {"step": 3})
    manifest, contents = folders.read_directory(path)
    assert contents == NEW
    assert manifest.metadata == {"step": 3}
    assert folders.verify_directory(path) == manifest
    assert sorted(os.listdir(path)) == [*sorted(NEW), "manifest.json"]
    assert os.listdir(path.parent) == ["folder"]


def test_only_the_names_asked_for_are_read(tmp_path: Path) -> None:
    folders.write_directory(tmp_path / "folder", NEW)
    (tmp_path / "folder" / "c.bin").write_bytes(b"damaged, but not asked for")
    _, contents = folders.read_directory(tmp_path / "folder", ("b.json", "other"))
    assert contents == {"b.json": NEW["b.json"]}


def test_a_kill_at_any_point_leaves_no_folder_or_a_whole_one(
    tmp_path: Path, fork: Fork, was_killed: WasKilled
) -> None:
    path = tmp_path / "folder"
    n_before = 0
    for fault in itertools.count(1):
        shutil.rmtree(path, ignore_errors=True)
        if not was_killed(fork(lambda: folders.write_directory(path, NEW), fault)):
            break
        if path.exists():
            assert read(path) == NEW
        else:
            n_before += 1
    assert n_before >= 3 * len(NEW), "most points lie before the folder has its name"
    folders.remove_temporaries(tmp_path, ["folder"])
    assert os.listdir(tmp_path) == ["folder"]


def test_only_temporaries_of_the_names_given_are_removed(tmp_path: Path) -> None:
    mine = [
        "notes.tmp-12345678",
        "train.bin.tmp-1234567",
        "train.bin.tmp-12345678.txt",
        "train.bin",
    ]
    own = [
        "train.bin.tmp-12345678",
        "mono.de.bin.tmp-0a0b0c0d",
        "train.bin.tmp-12345678.tmp-90abcdef",
    ]
    for name in [*mine, *own]:
        (tmp_path / name).touch()
    (tmp_path / "step-000001.tmp-12345678").mkdir()
    (tmp_path / "notes.tmp-87654321").mkdir()
    folders.remove_temporaries(tmp_path, ["train.bin", "mono.*.bin", "step-*"])
    assert sorted(os.listdir(tmp_path)) == sorted([*mine, "notes.tmp-87654321"])


def test_a_kill_at_any_point_of_replacing_leaves_the_old_folder_or_the_new(
    tmp_path: Path, fork: Fork, was_killed: WasKilled
) -> None:
    path = tmp_path / "folder"
    found = []
    for fault in itertools.count(1):
        folders.write_directory(path, OLD)
        died = was_killed(fork(lambda: folders.write_directory(path, NEW), fault))
        found.append(read(path))
        assert found[-1] in (OLD, NEW)
        if not died:
            break
    assert found[0] == OLD
    assert found[-1] == NEW


def test_where_folders_cannot_swap_they_are_replaced_in_two_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(ctypes, "CDLL")
    folders.write_directory(tmp_path / "folder", OLD)
    folders.write_directory(tmp_path / "folder", NEW)
    assert read(tmp_path / "folder") == NEW
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.parametrize("can_swap", [True, False])
@pytest.mark.timeout(30)
def test_what_is_no_folder_is_replaced_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_swap: bool
) -> None:
    if not can_swap:
        monkeypatch.delattr(ctypes, "CDLL")
    run, path = tmp_path / "run", tmp_path / "run" / "folder"
    run.mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "stays").touch()
    makers: list[Callable[[], object]] = [
        path.touch,
        lambda: os.mkfifo(path),  # a reader of it would wait forever
        lambda: path.symlink_to(path.name),
        lambda: path.symlink_to(tmp_path / "other"),
    ]
    for make in makers:
        make()
        folders.write_directory(path, NEW)
        assert read(path) == NEW
        assert not path.is_symlink()
        assert os.listdir(run) == ["folder"]
        folders.remove_directory(path)
        make()
        folders.remove_directory(path)
        assert os.listdir(run) == []
    assert os.listdir(tmp_path / "other") == ["stays"]


def test_a_kill_at_any_point_of_an_update_leaves_the_old_folder_or_the_new(
    tmp_path: Path, fork: Fork, was_killed: WasKilled
) -> None:
    path = tmp_path / "folder"
    found = []
    for fault in itertools.count(1):
        shutil.rmtree(path, ignore_errors=True)
        folders.update_directory(path, OLD)
        (path / "other").write_bytes(b"stays")
        died = was_killed(fork(lambda: folders.update_directory(path, NEW), fault))
        found.append(read(path))
        folders.verify_directory(path)
        folders.update_directory(path, NEW)
        assert read(path) == NEW
        assert sorted(os.listdir(path)) == [*sorted(NEW), "manifest.json", "other"]
        assert (path / "b.json").read_bytes() == NEW["b.json"]
        if not died:
            break
    assert all(contents in (OLD, NEW) for contents in found)
    assert found[0] == OLD
    assert found[-2] == NEW, "the last points lie after the manifest was replaced"


def test_an_update_lists_other_files_as_they_are_and_writes_no_byte_twice(tmp_path: Path) -> None:
    before = folders.write_directory(tmp_path / "folder", OLD, {"step": 3})
    files_before = {name: (tmp_path / "folder" / name).stat().st_ino for name in OLD}
    added = {"b.json": OLD["b.json"], "c.bin": b"added"}
    folders.update_directory(tmp_path / "folder", added, {"step": 3}, others=before.files)
    assert read(tmp_path / "folder") == OLD | added
    assert files_before == {name: (tmp_path / "folder" / name).stat().st_ino for name in OLD}


def test_a_link_in_a_folder_is_replaced_and_what_it_points_to_stays(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"mine")
    folders.write_directory(tmp_path / "folder", OLD)
    for name in ("c.bin", "a.bin.next", "manifest.json.next"):
        (tmp_path / "folder" / name).symlink_to("../victim")
    folders.update_directory(tmp_path / "folder", NEW)
    assert (tmp_path / "victim").read_bytes() == b"mine"
    assert read(tmp_path / "folder") == NEW
    assert not any(entry.is_symlink() for entry in (tmp_path / "folder").iterdir())


def test_a_card_is_written_but_may_be_edited_removed_or_listed_by_an_old_manifest(
    tmp_path: Path,
) -> None:
    path = tmp_path / "folder"
    manifest = folders.write_directory(path, {**OLD, "README.md": b"card"})
    assert (path / "README.md").read_bytes() == b"card"
    assert manifest.files.keys() == OLD.keys()
    entries = {**manifest.files, "README.md": folders.Entry.of(b"card")}
    old = folders.Manifest(files=entries, metadata={})
    (path / "manifest.json").write_bytes(old.to_bytes())
    (path / "README.md").write_bytes(b"card, and a license")
    assert read(path) == OLD
    assert folders.verify_directory(path) == old
    (path / "README.md").unlink()
    folders.verify_directory(path)


def test_a_kill_at_any_point_of_removing_leaves_all_or_nothing(
    tmp_path: Path, fork: Fork, was_killed: WasKilled
) -> None:
    path = tmp_path / "folder"
    for fault in itertools.count(1):
        folders.write_directory(path, OLD)
        died = was_killed(fork(lambda: folders.remove_directory(path), fault))
        assert not path.exists() or read(path) == OLD
        if not died:
            break
    assert not path.exists()


def test_a_folder_that_a_network_disk_keeps_for_a_reader_has_lost_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS renames a file that is read to `.nfs…`, so that its folder cannot be removed yet."""
    path = tmp_path / "step-000001"
    folders.write_directory(path, OLD)

    def keep(*_: object, **__: object) -> None:
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))

    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", keep)
        folders.remove_directory(path)
    (left,) = tmp_path.iterdir()
    assert folders.is_temporary(left.name, (path.name,))
    folders.remove_temporaries(tmp_path, ("step-*",))
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("n_renamed", [0, 1])
def test_without_an_exchange_of_names_an_interruption_leaves_the_old_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_renamed: int
) -> None:
    """Network file systems cannot exchange two names in one step."""
    path = tmp_path / "folder"
    folders.write_directory(path, OLD)
    rename, left = os.replace, n_renamed

    def interrupted(source: Path, target: Path) -> None:
        nonlocal left
        if left == 0:
            left -= 1
            raise KeyboardInterrupt
        left -= 1
        rename(source, target)

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: None)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", interrupted)
        folders.write_directory(path, NEW)
    assert read(path) == OLD
    assert os.listdir(tmp_path) == ["folder"]
    folders.write_directory(path, NEW)
    assert read(path) == NEW
    assert os.listdir(tmp_path) == ["folder"]


def test_removing_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot write .*nothing"):
        folders.remove_directory(tmp_path / "nothing")


def test_everything_is_synced_before_the_folder_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = []

    def fsync(descriptor: int) -> None:
        events.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)

    def replace(old: Path, new: Path) -> None:
        events.append("rename")
        os.rename(old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    folders.write_directory(tmp_path / "folder", OLD)
    *written, temporary, rename, parent = events
    assert written == ["a.bin", "b.json", "manifest.json"], "the manifest comes last"
    assert temporary.startswith("folder.tmp-")
    assert (rename, parent) == ("rename", tmp_path.name)


def test_any_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    folders.write_directory(path, NEW, {"note": "ünïcode", "x": 1.5})
    chosen = random.Random(1)
    for _ in range(100):
        name = chosen.choice([*NEW, "manifest.json"])
        bit = chosen.randrange(8 * (path / name).stat().st_size)
        flip(path / name, bit)
        with pytest.raises(FormatError, match=name.replace(".", r"\.")):
            folders.verify_directory(path)
        with pytest.raises(FormatError):
            folders.read_directory(path)
        flip(path / name, bit)
    folders.verify_directory(path)


def test_every_bit_of_the_manifest_counts(tmp_path: Path) -> None:
    data = bytearray(folders.write_directory(tmp_path / "folder", {}, {"step": 1}).to_bytes())
    for bit in range(8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        with pytest.raises(FormatError, match="the manifest"):
            folders.Manifest.from_bytes(bytes(data), Path("the manifest"))
        data[bit // 8] ^= 1 << bit % 8


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def test_what_is_wrong_with_a_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "folder"

    def spoil(action: Callable[[Path], object]) -> None:
        folders.write_directory(path, OLD)
        action(path / "a.bin")

    spoil(lambda file: file.write_bytes(b"ol"))
    with pytest.raises(FormatError, match=r"a\.bin is cut short: 2 bytes instead of 5"):
        folders.verify_directory(path)
    spoil(lambda file: file.write_bytes(b"old a and more"))
    with pytest.raises(FormatError, match=r"a\.bin is too long: 14 bytes instead of 5"):
        folders.read_directory(path)
    spoil(lambda file: file.write_bytes(b"0ld a"))
    with pytest.raises(FormatError, match=r"a\.bin is damaged: its checksum does not match"):
        folders.verify_directory(path)
    spoil(Path.unlink)
    with pytest.raises(FormatError, match=r"a\.bin is missing"):
        folders.verify_directory(path)
    spoil(lambda file: (file.unlink(), file.mkdir()))
    with pytest.raises(FormatError, match=r"a\.bin is not a regular file"):
        folders.verify_directory(path)
    spoil(lambda file: (file.parent / "manifest.json").unlink())
    with pytest.raises(
        FormatError, match=r"manifest\.json is missing: .* was not completely written"
    ):
        folders.verify_directory(path)


def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders.write_directory(tmp_path / "folder", OLD)

    def broken(_: Path) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(folders, "crc32", broken)
    with pytest.raises(FormatError, match=r"a\.bin cannot be read: Input/output error"):
        folders.verify_directory(tmp_path / "folder")


def test_a_change_with_the_same_checksum_is_found(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    # Two strings of eight bytes with the CRC-32 of "plumless" and "buckeroo": a famous pair.
    folders.write_directory(path, {"a": b"plumless"})
    (path / "a").write_bytes(b"buckeroo")
    folders.read_directory(path)
    with pytest.raises(FormatError, match=r"a was changed: its SHA-256 does not match"):
        folders.verify_directory(path)


def test_foreign_manifests_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    folders.write_directory(path, OLD)
    location = path / "manifest.json"

    def change(**changes: object) -> None:
        folders.write_directory(path, OLD)
        location.write_bytes(files.to_json({**json.loads(location.read_bytes()), **changes}))

    change(manifest_version=9)
    with pytest.raises(FormatError, match="manifest version 9; this heed reads 1"):
        folders.read_manifest(path)
    change(files=["a.bin"])
    with pytest.raises(FormatError, match=r"it is not a manifest\. Take a fresh copy"):
        folders.read_manifest(path)
    for name in ("../secret", "/etc/passwd", "a/b", "", ".hidden"):
        change(files={name: {"size": 0, "crc32": "00000000", "sha256": ""}})
        with pytest.raises(FormatError, match="which is not a plain file name"):
            folders.read_manifest(path)
    for version in (True, 1.0, "1"):
        change(manifest_version=version)
        with pytest.raises(FormatError, match=f"manifest version {version}; this heed reads 1"):
            folders.read_manifest(path)
    change(metadata=[["step", 4]])
    with pytest.raises(FormatError, match=r"its metadata is not a JSON object\. Take a fresh"):
        folders.read_manifest(path)
    change(metadata={"step": 4})
    with pytest.raises(FormatError, match=r"its own checksum does not match\. Take a fresh copy"):
        folders.read_manifest(path)
    location.write_bytes(location.read_bytes()[:50])
    with pytest.raises(FormatError, match=r"not valid JSON: .*\. Take a fresh copy of its folder"):
        folders.read_manifest(path)


@pytest.mark.parametrize(
    "wrong", [{"size": "5"}, {"size": True}, {"size": 5.0}, {"crc32": 7}, {"sha256": None}]
)
def test_a_manifest_with_values_of_another_type_is_refused_in_words(
    tmp_path: Path, wrong: dict[str, object]
) -> None:
    entry = {"size": 5, "crc32": "00000000", "sha256": "", **wrong}
    manifest = folders.Manifest(files={"a.bin": folders.Entry(**entry)}, metadata={})
    with pytest.raises(FormatError, match=r"of a\.bin, size must be a whole number and crc32 and"):
        folders.Manifest.from_bytes(manifest.to_bytes(), tmp_path)


@pytest.mark.parametrize("limit", [0, 10, 500, 999])
def test_a_disk_that_fills_up_in_an_update_leaves_the_old_folder_and_nothing_else(
    tmp_path: Path, fork: Fork, was_killed: WasKilled, limit: int
) -> None:
    path = tmp_path / "folder"
    folders.update_directory(path, OLD)
    new = {"a.bin": b"new a", "b.json": bytes(1000)}

    def write() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        with pytest.raises(RunError, match="File too large. It needs .* Raise that limit"):
            folders.update_directory(path, new)

    assert not was_killed(fork(write))
    assert read(path) == OLD
    assert sorted(os.listdir(path)) == ["a.bin", "b.json", "manifest.json"]
    folders.update_directory(path, new)
    assert read(path) == new


@pytest.mark.parametrize("limit", [0, 10, 500, 999])
def test_a_disk_that_fills_up_leaves_the_old_folder_and_no_other(
    tmp_path: Path, fork: Fork, was_killed: WasKilled, limit: int
) -> None:
    path = tmp_path / "folder"
    folders.write_directory(path, OLD)

    def write() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        words = rf"cannot write {path}: File too large. It needs \d{{4}} bytes, more than"
        with pytest.raises(RunError, match=words):
            folders.write_directory(path, NEW)

    assert not was_killed(fork(write))
    assert read(path) == OLD
    assert os.listdir(tmp_path) == ["folder"]


FULL = """
import os, sys
from pathlib import Path
from heed.errors import RunError
from heed.disk.folders import verify_directory, write_directory
disk = Path(sys.argv[1])
write_directory(disk / "old", {"a": bytes(40_000)})
n_refused = 0
for size in range(20_000, 220_000, 10_000):
    try:
        write_directory(disk / "new", {"a": bytes(size // 2), "b": bytes(size // 2)})
    except RunError as error:
        assert "No space left on device" in str(error) and "bytes are free" in str(error), error
        n_refused += 1
        assert not (disk / "new").exists()
    else:
        verify_directory(disk / "new")
        __import__("shutil").rmtree(disk / "new")
    verify_directory(disk / "old")
    assert not list(disk.glob("*.tmp-*"))
assert 0 < n_refused < 20, n_refused
"""


def test_a_really_full_disk_at_every_size(tmp_path: Path) -> None:
    mount = f"mount -t tmpfs -o size=160k none {tmp_path}"
    command = ["unshare", "-rm", "sh", "-c"]
    try:
        subprocess.run([*command, mount], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs unshare -rm with leave to mount a tmpfs")
    done = subprocess.run(
        [*command, f'{mount} && exec "$@"', "sh", sys.executable, "-c", FULL, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
