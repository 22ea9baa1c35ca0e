"""A corpus that changes while it is read is not taken for the one whose facts were noted."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from heed.data.corpus import Corpus, DataConfig, TextConfig
from heed.data.labeled import prepare_labeled
from heed.data.prepare import prepare
from heed.data.prepared import Prepared
from heed.data.readers import ParallelFiles
from heed.data.running_text import prepare_text
from heed.errors import DataError
from heed.text.vocab import TokenizerConfig

CHARS = TokenizerConfig(kind="char")
ROWS = "".join(f"sentence number {number}\tSatz Nummer {number}\n" for number in range(60))
LABELED = "".join(f"{'ab'[number % 2]}\tSatz Nummer {number}\n" for number in range(60))
Report = Callable[[dict[str, Any]], None]


def of_pairs(path: Path, out: Path, report: Report) -> Prepared:
    corpus = Corpus(train=(ParallelFiles(files=(str(path),)),))
    return prepare(corpus, out, config=DataConfig(), tokenizer=CHARS, seed=1, report=report)


def of_text(path: Path, out: Path, report: Report) -> Prepared:
    corpus = Corpus(text=(str(path),))
    return prepare_text(corpus, out, config=TextConfig(), tokenizer=CHARS, report=report)


def of_labels(path: Path, out: Path, report: Report) -> Prepared:
    corpus = Corpus(labeled=(str(path),))
    return prepare_labeled(corpus, out, config=TextConfig(), tokenizer=CHARS, seed=1, report=report)


def grow(path: Path) -> None:
    with path.open("a") as file:
        file.write("one more\tnoch einer\n")


def end_in_half_a_row(path: Path) -> None:
    with path.open("a") as file:
        file.write("half a ro")


def be_replaced(path: Path) -> None:
    """By a file of the same size, as `rsync` does."""
    path.with_name("other").write_text(ROWS.replace("7", "8"))
    os.replace(path.with_name("other"), path)


def vanish(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(
    ("read", "change", "at"),
    [
        (of_pairs, grow, "learning the vocabulary"),
        (of_pairs, be_replaced, "learning the vocabulary"),
        (of_pairs, vanish, "learning the vocabulary"),
        (of_pairs, end_in_half_a_row, "corpus.tsv: source"),  # a row with a single column
        (of_text, grow, "learning the vocabulary"),
        (of_labels, grow, "learning the vocabulary"),
    ],
)
def test_a_file_that_changes_while_it_is_read_is_refused_and_then_read_anew(
    tmp_path: Path, read: Callable[..., Prepared], change: Callable[[Path], None], at: str
) -> None:
    path, changes = tmp_path / "corpus.tsv", [partial(change, tmp_path / "corpus.tsv")]
    rows = LABELED if read is of_labels else ROWS
    path.write_text(rows)

    def report(event: dict[str, Any]) -> None:
        if at in str(event) and changes:
            changes.pop()()

    with pytest.raises(DataError, match=r"corpus\.tsv was changed while it was read\. Wait until"):
        read(path, tmp_path / "data", report)
    assert not changes
    path.write_text(rows + rows[: rows.index("\n") + 1])
    read(path, tmp_path / "data", report)
    read(path, tmp_path / "data", report)  # the facts are those of what was read


def test_an_error_that_no_change_explains_stays(tmp_path: Path) -> None:
    path = tmp_path / "corpus.tsv"
    path.write_text(ROWS + "half a ro")
    with pytest.raises(DataError, match="line 61: must have 2 columns"):
        of_pairs(path, tmp_path / "data", lambda event: None)
