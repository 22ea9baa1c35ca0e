"""A run whose own files are damaged says what to do, and that works."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heed.errors import HeedError, RunError
from heed.train.recipe.asked import Asked
from heed.train.recipe.settings import require_same_asked

Run = Callable[..., Any]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:50])


def become_a_folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def become_a_file(path: Path) -> None:
    shutil.rmtree(path)
    path.touch()


def become_a_link(path: Path) -> None:
    shutil.rmtree(path)
    path.symlink_to("gone")


@pytest.mark.parametrize(
    ("name", "damage", "words"),
    [
        ("recipe.toml", cut, "{at}.* Remove {at} to continue: {out}/resolved.toml holds the"),
        ("resolved.toml", cut, "{at}.* Remove {at} to continue: {out}/recipe.toml holds the"),
        ("asked.json", cut, "{at} is not valid JSON: .* Remove it, and repeat the command with"),
        ("asked.json", become_a_folder, "{at} cannot be read: .* Remove it, and repeat the"),
        ("metrics.jsonl", become_a_folder, "{at} must be a file, but is not. Remove it and run"),
        ("run.lock", become_a_folder, "{at} must be a file, but is not. Remove it and run"),
        ("README.md", become_a_folder, "{at} must be a file, but is not. Remove it and run"),
        ("alignment.json", become_a_folder, "{at} must be a file, but is not. Remove it and run"),
        ("model.safetensors.next", become_a_folder, "{at} must be a file, but is not. Remove it"),
        ("data", become_a_file, "{at} must be a folder, but is not. Remove it and run again."),
        ("checkpoints", become_a_link, "{at} must be a folder, but is not. Remove it and run"),
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


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": {"n_heads": 1}}, "model.n_heads = 2, but this command sets 1."),
        ({"training": {"validate_every": 7}}, "training.validate_every = 5, but .* sets 7."),
        ({"preset": "small"}, "model.d_ff = 32, but this command sets 1024."),
        ({"preset": "tiny", "model": {"d_ff": 32}}, "model.d_model = 16, but .* sets 128."),
        ({"model": {"window": 2}}, "model.window = the default, but this command sets 2."),
        ({"model": {"window": "none", "n_heads": 2}, "training": {"max_steps": 7}}, ""),
    ],
)
def test_without_what_was_asked_other_settings_than_those_of_the_recipe_are_refused(
    tmp_path: Path, small_run: Run, settings: dict[str, Any], words: str
) -> None:
    out = tmp_path / "run"
    small_run(out, stop_at=1)
    (out / "asked.json").unlink()
    if words:
        with pytest.raises(RunError, match=f"^{out} was started with {words} Use the same"):
            require_same_asked(out, Asked(settings))
        assert not (out / "asked.json").exists()
    else:
        require_same_asked(out, Asked(settings))
        assert (out / "asked.json").exists()
