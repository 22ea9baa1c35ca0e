"""`heed train - < corpus.tsv`: standard input is a corpus, as long as it stays the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CORPUS = b"".join(b"sentence number %d here\tSatz Nummer %d, hier\n" % (n, n) for n in range(60))
LANGUAGES = ("--source-lang", "en", "--target-lang", "de")
SMALL = (
    "tokenizer.kind=char",
    "model.d_model=16",
    "model.n_heads=2",
    "model.d_ff=32",
    "model.n_encoder_layers=1",
    "model.n_decoder_layers=1",
    "training.validation_sentences=2",
    "training.validations=1",
    "decoding.max_length=8",
)


@pytest.fixture
def train(call: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    def run(stdin: bytes, *, out: str = "run", steps: str = "3") -> tuple[int, str, str]:
        folder = str(tmp_path / out)
        flags = ("--vocab-size", "330", "--max-steps", steps, "--threads", "1", "-q")
        return call("train", "-", *LANGUAGES, "--out", folder, *flags, *SMALL, stdin=stdin)

    return run


def test_a_table_from_stdin_trains_a_model(train: Callable[..., Any], tmp_path: Path) -> None:
    assert train(CORPUS) == (0, "", "")
    assert (tmp_path / "run" / "data" / "stdin.tsv").read_bytes() == CORPUS
    assert (tmp_path / "run" / "model.safetensors").exists()


def test_the_same_input_goes_on_and_another_is_refused(
    train: Callable[..., Any], tmp_path: Path
) -> None:
    assert train(CORPUS)[0] == 0
    assert train(CORPUS, steps="5") == (0, "", "")
    code, _, err = train(CORPUS + b"one more\tnoch einer\n", steps="7")
    assert code == 1
    assert "train file 1.1 was standard input, " in err
    assert f"but is standard input, {len(CORPUS) + 20} bytes" in err
    assert "Use another --out" in err
    assert (tmp_path / "run" / "data" / "stdin.tsv").read_bytes() == CORPUS


def test_input_that_was_no_corpus_may_be_mended(train: Callable[..., Any]) -> None:
    code, _, err = train(b"no tab\n")
    assert code == 1
    assert "stdin.tsv line 1: must have a column for each of two languages" in err
    assert train(CORPUS) == (0, "", "")


def test_no_input_is_told_in_words(train: Callable[..., Any]) -> None:
    code, _, err = train(b"")
    assert (code, err) == (
        1,
        "heed: standard input must contain sentence pairs, but is empty. Try: < corpus.tsv\n",
    )


@pytest.mark.parametrize("side", ["src", "tgt"])
@pytest.mark.parametrize("part", ["", "dev-"])
def test_stdin_is_no_side_of_a_pair(call: Callable[..., Any], side: str, part: str) -> None:
    files = {"src": "train.en", "tgt": "train.de", side: "-"}
    flags = [f"--{part}src", files["src"], f"--{part}tgt", files["tgt"]]
    code, _, err = call("train", "corpus.tsv", *flags, "--out", "run")
    assert code == 2
    assert f"--{part}src and --{part}tgt must be files, but one is standard input (-)" in err


def test_stdin_is_read_once(call: Callable[..., Any]) -> None:
    code, _, err = call("train", "-", "-", "--out", "run")
    assert (code, err) == (2, "heed: Standard input (-) can be read once, but is given twice.\n")
