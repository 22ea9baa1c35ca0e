"""Fault R3: the power goes at any moment, and what was not synced is lost, torn or kept.

Not a kill, after which the system still writes what it was given: that is `run/test_checkpoint.py`.
Everything that a save does to the disk is noted with what a sync has made sure of; then disks are
made with every subset of the rest, and read. Rivals do the same: SQLite's test of crashes.
"""

import itertools
import math
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from heed.disk import folders
from heed.disk.files import write_atomically
from heed.disk.folders import read_directory, update_directory, write_directory
from heed.train.run.checkpoint import load_newest, save

Visible = tuple[tuple[str, bytes | None], ...]

MAX_OPEN = 12
"""Changes whose every subset is tried; of more, those of the latest."""


@dataclass
class Change:
    """One thing done to the disk: all of it is kept or none.

    `names` maps (folder's inode, name) → inode, or None where the name is gone; `data` is what a
    file's inode holds. It is safe after a sync, which came before the change of number `synced_by`.
    """

    names: dict[tuple[int, str], int | None] = field(default_factory=dict)
    data: dict[int, bytes] = field(default_factory=dict)
    synced_by: float = math.inf

    @property
    def is_synced(self) -> bool:
        return self.synced_by < math.inf

    def is_of(self, inode: int) -> bool:
        return inode in self.data or any(folder == inode for folder, _ in self.names)


class Recorder:
    """Notes what is done to the disk below a folder, while doing it."""

    def __init__(self) -> None:
        self.changes: list[Change] = []

    def name(self, path: Any, inode: int | None) -> tuple[tuple[int, str], int | None]:
        path = Path(path)
        return (path.parent.stat().st_ino, path.name), inode

    def named(self, *entries: tuple[tuple[int, str], int | None]) -> None:
        self.changes.append(Change(names=dict(entries)))

    def synced(self, inode: int) -> None:
        """What was done to this file or folder so far is safe from here on."""
        now = len(self.changes)
        for change in self.changes:
            if change.is_of(inode):
                change.synced_by = min(change.synced_by, now)


@contextmanager
def recording() -> Iterator[Recorder]:
    found = Recorder()
    mkdir, replace, fsync, unlink = os.mkdir, os.replace, os.fsync, os.unlink
    rmtree, exchange = shutil.rmtree, folders._exchange

    def make(path: Any, *arguments: Any, **options: Any) -> None:
        mkdir(path, *arguments, **options)
        found.named(found.name(path, os.stat(path).st_ino))

    def rename(old: Any, new: Any) -> None:
        inode = os.stat(old).st_ino
        replace(old, new)
        found.named(found.name(old, None), found.name(new, inode))

    def swap(new: Path, old: Path) -> None:
        found.named(
            found.name(new, old.stat().st_ino),
            found.name(old, new.stat().st_ino),
        )
        exchange(new, old)

    def remove(path: Any, **options: Any) -> None:
        if "dir_fd" not in options:
            found.named(found.name(path, None))
        unlink(path, **options)

    def remove_all(path: Any, **options: Any) -> None:
        if Path(path).is_dir():
            for child in Path(path).iterdir():
                found.named(found.name(child, None))
            found.named(found.name(path, None))
        rmtree(path, **options)

    def sync(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        inode = path.stat().st_ino
        if path.is_file():
            whole = path.read_bytes()
            # Until here the file may have a name or none, and hold nothing, half of it or all.
            found.named(found.name(path, inode))
            found.changes += [Change(data={inode: whole[: len(whole) // 2]})]
            found.changes += [Change(data={inode: whole})]
        fsync(descriptor)
        found.synced(inode)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "mkdir", make)
        patch.setattr(os, "replace", rename)
        patch.setattr(os, "fsync", sync)
        patch.setattr(os, "unlink", remove)
        patch.setattr(shutil, "rmtree", remove_all)
        patch.setattr(folders, "_exchange", swap)
        yield found


def snapshot(root: Path) -> tuple[dict[tuple[int, str], int | None], dict[int, bytes]]:
    """Names and contents that are on the disk for sure."""
    names: dict[tuple[int, str], int | None] = {}
    data = {}
    for path in root.rglob("*"):
        inode = path.stat().st_ino
        names[path.parent.stat().st_ino, path.name] = inode
        if path.is_file():
            data[inode] = path.read_bytes()
    return names, data


def after_power_cuts(root: Path, work: Callable[[], object]) -> Iterator[tuple[bool, Visible]]:
    """Do `work`, and yield what may be on the disk if the power goes, at every moment of it.

    Yields:
        Whether all of `work` was done, its syncs too; and the tree without what has a temporary
        name: path → content, None for a folder. Each tree comes once.
    """
    names, data = snapshot(root)
    root_inode = root.stat().st_ino
    with recording() as found:
        work()
    seen = set()
    for moment in range(len(found.changes) + 1):
        done = found.changes[:moment]
        open_ones = [change for change in done if change.synced_by >= moment][-MAX_OPEN:]
        for kept in itertools.product((False, True), repeat=len(open_ones)):
            lost = [c for c, is_kept in zip(open_ones, kept, strict=True) if not is_kept]
            now_names, now_data = dict(names), dict(data)
            for change in done:
                if not any(change is one for one in lost):
                    now_names.update(change.names)
                    now_data.update(change.data)
            # Once all is done, only what was never synced can be lost.
            is_done = moment == len(found.changes) and all(not one.is_synced for one in lost)
            tree = (is_done, tuple(sorted(visible(root_inode, now_names, now_data))))
            if tree not in seen:
                seen.add(tree)
                yield tree


def visible(
    folder: int, names: dict[tuple[int, str], int | None], data: dict[int, bytes], path: str = ""
) -> Iterator[tuple[str, bytes | None]]:
    folders_of = {parent for parent, _ in names}
    for (parent, name), inode in names.items():
        if parent == folder and inode is not None and ".tmp-" not in name:
            is_folder = inode in folders_of and inode not in data
            yield f"{path}{name}", None if is_folder else data.get(inode, b"")
            if is_folder:
                yield from visible(inode, names, data, f"{path}{name}/")


def save_step(run: Path, step: int) -> None:
    weights = {"w": torch.full((4, 8), float(step))}
    moments = {"m": torch.full((8,), float(step))}
    progress, config = {"step": step}, {"config.json": b"{}"}
    save(run, step, model=weights, optimizer=moments, progress=progress, extra=config)


def lay_out(tree: Visible, root: Path) -> Path:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for path, content in tree:
        if content is None:
            (root / path).mkdir(exist_ok=True)
        else:
            (root / path).write_bytes(content)
    return root


pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux's /proc")


def test_after_any_power_cut_in_a_save_the_newest_whole_checkpoint_is_found(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    for step in (1, 2):
        save_step(run, step)
    n_trees, found_steps = 0, set()
    for is_done, tree in after_power_cuts(run, lambda: save_step(run, 3)):
        found = load_newest(lay_out(tree, tmp_path / "disk"))
        assert found is not None
        assert found.progress["step"] == found.step
        assert set(found.model["w"].flatten().tolist()) == {float(found.step)}
        assert set(found.optimizer["m"].tolist()) == {float(found.step)}
        found_steps.add(found.step)
        n_trees += 1
        assert found.step == 3 or not is_done
    assert found_steps == {2, 3}
    assert n_trees > 3


def test_after_any_power_cut_a_replaced_folder_is_the_old_one_or_the_new(tmp_path: Path) -> None:
    root = tmp_path / "run"
    root.mkdir()
    old, new = {"a": b"old" * 9, "b": b"old"}, {"a": b"new" * 9, "c": b"new"}
    write_directory(root / "best", old)
    found = []
    for _, tree in after_power_cuts(root, lambda: write_directory(root / "best", new)):
        _, contents = read_directory(lay_out(tree, tmp_path / "disk") / "best")
        found.append(contents)
    assert old in found
    assert new in found
    assert all(contents in (old, new) for contents in found)


def test_after_any_power_cut_an_updated_folder_is_the_old_one_or_the_new(tmp_path: Path) -> None:
    root = tmp_path / "run"
    root.mkdir()
    old, new = {"a": b"old" * 9, "b": b"old"}, {"a": b"new" * 9, "b": b"old", "c": b"new"}
    update_directory(root / "model", old)
    found = []
    for is_done, tree in after_power_cuts(root, lambda: update_directory(root / "model", new)):
        _, contents = read_directory(lay_out(tree, tmp_path / "disk") / "model")
        assert contents == new or not is_done
        found.append(contents)
    assert old in found
    assert new in found
    assert all(contents in (old, new) for contents in found)


def test_after_any_power_cut_a_file_is_the_old_one_or_the_new(tmp_path: Path) -> None:
    root = tmp_path / "run"
    root.mkdir()
    write_atomically(root / "recipe.toml", b"old recipe")
    found = {
        dict(tree)["recipe.toml"]
        for _, tree in after_power_cuts(
            root, lambda: write_atomically(root / "recipe.toml", b"the new recipe")
        )
    }
    assert found == {b"old recipe", b"the new recipe"}


def test_a_save_that_forgot_to_sync_would_be_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test that cannot fail proves nothing."""
    root = tmp_path / "run"
    root.mkdir()
    monkeypatch.setattr(folders, "sync_directory", lambda path: None)
    trees = after_power_cuts(root, lambda: write_directory(root / "best", {"a": b"a", "b": b"b"}))
    torn = [dict(tree) for _, tree in trees if "best" in dict(tree)]
    assert any("best/manifest.json" not in tree for tree in torn)
