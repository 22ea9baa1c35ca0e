"""A folder of parallel text: what belongs together, and what nobody may learn from."""

from pathlib import Path

import pytest

from heed.data.folder import read_folder
from heed.errors import ConfigError, DataError


def folder_with(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).write_text("", "utf-8")
    return folder


def names(parts: tuple) -> list[tuple[str, ...]]:  # type: ignore[type-arg]
    return [tuple(Path(file).name for file in part.files) for part in parts]


def test_plain_files_are_paired_by_language_and_tables_stand_alone(tmp_path: Path) -> None:
    folder = folder_with(
        tmp_path, "b.tmx", "law.de.gz", "law.en.gz", "a.tsv.xz", "news.en", "news.de", "README.md"
    )
    found = read_folder(folder, source_lang="en", target_lang="de")
    assert names(found.train) == [
        ("a.tsv.xz",),
        ("b.tmx",),
        ("law.en.gz", "law.de.gz"),
        ("news.en", "news.de"),
    ]
    assert {(part.source_lang, part.target_lang) for part in found.train} == {("en", "de")}
    assert found.unused == ("README.md",)


def test_dev_and_test_sets_are_not_learned_from(tmp_path: Path) -> None:
    folder = folder_with(
        tmp_path, "train.en", "train.de", "val.en", "val.de", "dev2.tsv", "test_2016.en"
    )
    folder_with(folder, "test_2016.de", "Test.csv", "contest.tsv")
    found = read_folder(folder, source_lang="de", target_lang="en")
    assert names(found.train) == [("contest.tsv",), ("train.de", "train.en")]
    assert names(found.dev) == [("dev2.tsv",), ("val.de", "val.en")]
    assert names(found.test) == [("Test.csv",), ("test_2016.de", "test_2016.en")]


def test_a_file_without_its_other_half_and_folders_inside_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "more.tmx").mkdir()
    folder = folder_with(tmp_path, "a.en", "a.fr", "b.tsv")
    found = read_folder(folder, source_lang="en", target_lang="de")
    assert names(found.train) == [("b.tsv",)]
    assert found.unused == ("a.en", "a.fr")
    assert str(found) == "to learn from: b.tsv; not used: a.en, a.fr"


def test_of_a_file_and_its_compressed_copy_one_is_read(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "law.en", "law.de", "law.en.gz", "law.de.gz")
    folder_with(folder, "dev.tsv", "dev.tsv.zst", "news.en.gz", "news.de")
    found = read_folder(folder, source_lang="en", target_lang="de")
    assert names(found.train) == [("law.en", "law.de"), ("news.en.gz", "news.de")]
    assert names(found.dev) == [("dev.tsv",)]
    assert found.unused == ("dev.tsv.zst", "law.de.gz", "law.en.gz")


def test_hidden_files_are_left_alone(tmp_path: Path) -> None:
    """macOS puts a hidden file beside each file of an archive."""
    folder = folder_with(tmp_path, "a.en", "a.de", "._a.en", "._a.de", "._b.tmx")
    found = read_folder(folder, source_lang="en", target_lang="de")
    assert names(found.train) == [("a.en", "a.de")]
    assert found.unused == ()


def test_the_order_in_which_a_disk_lists_files_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault D1."""
    folder_with(tmp_path, "law.en", "law.de", "news.en", "news.de", "dev.en", "dev.de", "more.tsv")
    listed = sorted(tmp_path.iterdir())
    found = []
    for order in (listed, listed[::-1]):
        monkeypatch.setattr(Path, "iterdir", lambda _, order=order: iter(order))
        found.append(read_folder(tmp_path, source_lang="en", target_lang="de"))
    assert found[0] == found[1]


def test_a_folder_needs_both_languages(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder: say which languages"):
        read_folder(tmp_path, source_lang="en", target_lang="")


def test_a_folder_of_nothing_says_what_it_looked_for(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "test.en", "test.de")
    with pytest.raises(DataError, match=r"no two files such as train\.en and train\.de"):
        read_folder(folder, source_lang="en", target_lang="de")
