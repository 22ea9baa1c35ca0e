"""A run whose own files are damaged says what to do, and that works."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heed.errors import HeedError

Run = Callable[..., Any]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:50])


def become_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("name", "damage", "words"),
    [
        ("recipe.toml", cut, "{at}.* Remove {at} to continue: {out}/resolved.toml holds the"),
        ("resolved.toml", cut, "{at}.* Remove {at} to continue: {out}/recipe.toml holds the"),
        ("asked.json", cut, "{at} is not valid JSON: .* Remove it, and repeat the command with"),
        ("asked.json", become_a_folder, "{at} cannot be read: .* Remove it, and repeat the"),
        ("metrics.jsonl", become_a_folder, "{at} must be a file, but is not. Remove it and run"),
        ("run.lock", become_a_folder, "cannot write {at}: the path exists and is not a file."),
    ],
)
def test_a_damaged_file_of_a_run_is_named_and_without_it_the_run_continues(
    tmp_path: Path, small_run: Run, name: str, damage: Callable[[Path], None], words: str
) -> None:
    out = tmp_path / "run"
    small_run(out, stop_at=2)
    path = out / name
    damage(path)
    with pytest.raises(HeedError, match=rf"(?s)^{words.format(at=path, out=out)}"):
        small_run(out, stop_at=3)
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert small_run(out, stop_at=3)[0].progress.step == 3


def test_a_recipe_without_its_copy_is_not_to_be_removed(tmp_path: Path, small_run: Run) -> None:
    out = tmp_path / "run"
    small_run(out, stop_at=2)
    (out / "resolved.toml").unlink()
    cut(out / "recipe.toml")
    with pytest.raises(HeedError, match=r"recipe\.toml") as refused:
        small_run(out, stop_at=3)
    assert "Remove" not in str(refused.value)
