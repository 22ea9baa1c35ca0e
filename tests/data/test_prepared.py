"""A damaged folder of a prepared corpus says what to do, and that works."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from heed.data.corpus import Corpus, DataConfig
from heed.data.prepare import prepare
from heed.data.readers import ParallelFiles
from heed.disk.folders import remove_directory
from heed.errors import FormatError
from heed.text.vocab import TokenizerConfig

CHARS = TokenizerConfig(kind="char", vocab_size=400, character_coverage=1.0, slots=True)
FILES = ("report.json", "spm.model", "words.dat", "dev.tsv", "train.bin")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:3])


def remove(path: Path) -> None:
    path.unlink()


def become_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def become_a_pipe(path: Path) -> None:
    """A reader of it would wait forever."""
    path.unlink()
    os.mkfifo(path)


def link_to_itself(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


@pytest.mark.parametrize("damage", [cut, remove, become_a_folder, become_a_pipe, link_to_itself])
@pytest.mark.timeout(60)
def test_each_damaged_file_is_named_with_a_remedy_that_works(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    for side, words in (("en", "sentence number {} here"), ("de", "Satz Nummer {}, hier")):
        text = "".join(f"{words.format(number)}\n" for number in range(60))
        (tmp_path / f"train.{side}").write_text(text)
    names = str(tmp_path / "train.en"), str(tmp_path / "train.de")
    corpus, data = Corpus(train=(ParallelFiles(files=names),)), tmp_path / "data"

    def run() -> dict[str, bytes]:
        prepare(corpus, data, config=DataConfig(), tokenizer=CHARS, seed=1)
        return {path.name: path.read_bytes() for path in data.iterdir()}

    whole = run()
    for name in sorted(whole.keys() & set(FILES)):
        if damage is become_a_pipe and name == "spm.model":
            continue  # read by another room, like the file of any model
        damage(data / name)
        if name == "report.json" and not (data / name).exists():
            assert run() == whole  # it marks completion
            continue
        with pytest.raises(FormatError) as refused:
            run()
        assert str(refused.value).startswith(f"{data / name} ")
        remedies = f"Remove {data} to prepare the corpus again.", "Delete its folder and run the "
        assert sum(str(refused.value).count(remedy) for remedy in remedies) == 1
        remove_directory(data)
        assert run() == whole
