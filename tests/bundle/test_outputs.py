"""An output is never a file that is read, nor a folder that holds something else."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from heed.bundle.outputs import require_not_read, require_replaceable
from heed.disk.folders import write_directory
from heed.errors import RunError, UsageError


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


def test_a_new_and_an_empty_folder_are_fine_for_a_model(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty", "deep/new"):
        found = require_replaceable(str(tmp_path / name), [str(tmp_path / "run")], is_forced=False)
        assert found == tmp_path / name


def put_file(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")


def put_folder(folder: Path) -> None:
    (folder / "thesis").mkdir()


def put_link(folder: Path) -> None:
    (folder / "README.md").symlink_to("elsewhere")


def put_own_names_without_a_manifest(folder: Path) -> None:
    (folder / "README.md").write_text("mine")
    (folder / "config.json").write_text("{}")


def put_another_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"name": "an app"}')


def put_files_of_no_model(folder: Path) -> None:
    write_directory(folder, {"README.md": b"of a checkpoint"})


@pytest.mark.parametrize("is_forced", [False, True])
@pytest.mark.parametrize(
    ("put", "named"),
    [
        (put_file, "notes.txt"),
        (put_folder, "thesis"),
        (put_link, "README.md"),
        (put_own_names_without_a_manifest, "README.md"),
        (put_another_manifest, "manifest.json"),
        (put_files_of_no_model, "README.md"),
    ],
)
def test_a_folder_with_anything_else_is_refused_also_with_force(
    tmp_path: Path, put: Callable[[Path], None], named: str, is_forced: bool
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    put(folder)
    words = (
        rf"folder must be a new folder, but holds {named}, which is not part of a heed model\. Use"
    )
    with pytest.raises(RunError, match=words):
        require_replaceable(str(folder), [], is_forced=is_forced)


def test_a_model_is_replaced_only_with_force_and_a_link_to_it_stays(tmp_path: Path) -> None:
    model = tmp_path / "model"
    write_directory(model, {"config.json": b"{}", "README.md": b"card"})
    (tmp_path / "link").symlink_to("model")
    for name in ("model", "link"):
        words = f"{name} holds a model already. Replace it with --force, or use another --out."
        with pytest.raises(RunError, match=words):
            require_replaceable(str(tmp_path / name), [], is_forced=False)
        assert require_replaceable(str(tmp_path / name), [], is_forced=True) == model


@pytest.mark.parametrize("name", ["model", "link"])
def test_the_input_folder_is_refused_as_such(tmp_path: Path, name: str) -> None:
    write_directory(tmp_path / "model", {"config.json": b"{}"})
    (tmp_path / "link").symlink_to("model")
    with pytest.raises(UsageError, match=rf"{name} is the input folder, which is read\. Use"):
        require_replaceable(str(tmp_path / name), [str(tmp_path / "model")], is_forced=True)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for name in ("file/below", "file/deep/below"):
        with pytest.raises(RunError, match=rf"cannot write .*{name}: Not a directory"):
            require_replaceable(str(tmp_path / name), [], is_forced=False)


@pytest.mark.parametrize("name", ["proj", "proj/run", "link", "proj/run/../../proj"])
def test_a_folder_that_holds_what_is_read_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "proj" / "run").mkdir(parents=True)
    (tmp_path / "link").symlink_to("proj")
    with pytest.raises(
        UsageError, match=r"holds .*run/file, which this command reads\. Use another --out\."
    ):
        require_replaceable(
            str(tmp_path / name), [str(tmp_path / "proj" / "run" / "file")], is_forced=True
        )


def test_files_broken_links_checkpoints_and_the_current_folder_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "broken").symlink_to("gone")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for name, words in (
        ("file", r"file must be a folder, but is not\. Use another --out\."),
        ("broken", r"broken is a link to .*gone, which is missing\. Use another --out\."),
        ("checkpoints/best", r"best lies among the checkpoints of a run\. Use another --out\."),
        ("here", r"here is the current folder, which cannot be replaced\. Use another"),
    ):
        with pytest.raises((RunError, UsageError), match=words):
            require_replaceable(str(tmp_path / name), [], is_forced=True)
