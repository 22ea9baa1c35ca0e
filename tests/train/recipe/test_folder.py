"""A run writes into a new folder or into a run, and never over a file of a person."""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heed.data.corpus import Corpus
from heed.data.readers import ParallelFiles
from heed.errors import RunError, UsageError
from heed.train.recipe.folder import require_outside, require_run_folder

Run = Callable[..., Any]
Contents = dict[str, bytes | str | None]


def contents(folder: Path) -> Contents:
    """Path → bytes of a file, target of a link, None of a folder."""
    return {
        str(path.relative_to(folder)): os.readlink(path)
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in folder.rglob("*")
    }


FOREIGN: Mapping[str, dict[str, str]] = {
    "notes.txt": {"notes.txt": "mine"},
    "thesis": {"thesis/1.txt": "mine"},
    "data": {"data/pairs.tsv": "a\tb\n", "data/dev.tsv": "c\td\n"},
    "README.md": {"README.md": "mine"},
    "foo.tmp-12345678": {"foo.tmp-12345678": "mine"},
    "metrics.jsonl": {"metrics.jsonl": "{}\n"},
    "checkpoints": {"checkpoints/step-000500/weights": "mine"},
    "asked.json": {"asked.json": '{"question": "mine"}'},
    "data/report": {"data/report.json": '{"sales": 3}'},
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_folder_that_is_no_run_is_refused_and_left_as_it_is(
    tmp_path: Path, small_run: Run, name: str
) -> None:
    out = tmp_path / "out"
    for path, text in FOREIGN[name].items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_text(text)
    before = contents(out)
    words = rf"out must be a new folder or a run of heed to continue, but holds {name[:4]}"
    with pytest.raises(RunError, match=words):
        small_run(out)
    assert contents(out) == before


def test_a_file_or_a_broken_link_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to("gone")
    for name in ("file", "link"):
        with pytest.raises(RunError, match=rf"{name} must be a folder, but is not\."):
            require_run_folder(tmp_path / name)


def test_the_corpus_in_a_folder_called_data_stays(
    tmp_path: Path, small_corpus: Corpus, small_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `cd p; heed train data/pairs.tsv --out .`."""
    (tmp_path / "p" / "data").mkdir(parents=True)
    for file in small_corpus.train[0].files:
        shutil.move(file, tmp_path / "p" / "data")
    files = tuple(str(Path("data") / Path(file).name) for file in small_corpus.train[0].files)
    corpus = Corpus(train=(replace(small_corpus.train[0], files=files),))
    monkeypatch.chdir(tmp_path / "p")
    before = contents(tmp_path)
    with pytest.raises(RunError, match="but holds data"):
        small_run(Path("."), corpus=corpus)
    assert contents(tmp_path) == before
    assert small_run(Path("run"), corpus=corpus, max_steps=1)[0].is_finished
    assert before.items() <= contents(tmp_path).items()


@pytest.mark.parametrize("left", [["run.lock"], ["run.lock", "asked.json.tmp-12345678"], []])
def test_what_a_run_leaves_that_was_killed_at_once_is_gone_on_with(
    tmp_path: Path, small_run: Run, left: list[str]
) -> None:
    (tmp_path / "run").mkdir()
    for name in left:
        (tmp_path / "run" / name).touch()
    assert small_run(tmp_path / "run", max_steps=1)[0].is_finished
    assert not list((tmp_path / "run").glob("*.tmp-*"))


@pytest.mark.parametrize("name", ["asked.json", "data/report.json"])
def test_a_run_without_one_of_its_files_is_known_by_the_other(
    tmp_path: Path, small_run: Run, name: str
) -> None:
    small_run(tmp_path / "run", stop_at=2)
    (tmp_path / "run" / name).unlink()
    require_run_folder(tmp_path / "run")


def test_files_of_a_person_in_a_run_stay(
    tmp_path: Path, small_corpus: Corpus, small_run: Run
) -> None:
    out = tmp_path / "run"
    small_run(out, stop_at=2)
    shutil.rmtree(out / "data")  # so that all is prepared anew
    mine = ["notes.tmp-12345678", "data/pairs.tsv", "data/a.tmp-12345678", "checkpoints/my.txt"]
    for name in mine:
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text("mine")
    assert small_run(out)[0].is_finished
    assert {name: (out / name).read_text() for name in mine} == dict.fromkeys(mine, "mine")


@pytest.mark.parametrize(
    "name", ["data/test.tsv", "checkpoints/best/x.tsv", "metrics.jsonl", "link/mono.de.bin"]
)
def test_a_corpus_among_the_files_of_its_run_is_refused(
    tmp_path: Path, small_run: Run, name: str
) -> None:
    out = tmp_path / "run"
    small_run(out, stop_at=1)
    (tmp_path / "run" / "link").symlink_to("data")
    file = out / name
    file.parent.mkdir(exist_ok=True, parents=True)
    file.touch()
    before = contents(out)
    words = rf"{name} is a file that heed writes in .*run itself\. Copy it to another place and"
    with pytest.raises(UsageError, match=words):
        small_run(out, corpus=Corpus(train=(ParallelFiles(files=(str(file),)),)))
    assert contents(out) == before


def test_a_corpus_elsewhere_in_the_folder_of_its_run_is_fine(tmp_path: Path) -> None:
    for name in ("corpus/train.bin", "a.tsv", "data/pairs.tsv", "data/sub/dev.tsv"):
        require_outside(tmp_path, ["-", str(tmp_path / name)])
    require_outside(tmp_path / "run", [str(tmp_path / "data" / "dev.tsv")])


def test_a_link_to_itself_is_no_file_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    require_outside(tmp_path / "loop" / "run", [str(tmp_path / "loop")])
