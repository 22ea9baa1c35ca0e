"""`heed vectors`: what it prints, writes and refuses."""

import gzip
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heed.vectors.formats import read_vectors
from heed.vectors.pieces import model_vectors

Call = Callable[..., tuple[int, str, str]]
PEOPLE = "5 3\nking 1 0 .1\nqueen 2 2 .1\nman 0 0 1\nwoman 0 1 1\nboy 0 .1 3\n"


@pytest.fixture
def people(tmp_path: Path) -> str:
    (tmp_path / "people.vec").write_text(PEOPLE)
    return str(tmp_path / "people.vec")


@pytest.fixture
def text(tmp_path: Path) -> str:
    random = np.random.default_rng(1)
    groups = (["Cat", "dog", "cow"], ["saw", "axe", "file"])
    lines = [" ".join(random.choice(group, 5)) for group in groups * 60]
    (tmp_path / "text.txt").write_text("".join(f"{line}.\n" for line in lines))
    return str(tmp_path / "text.txt")


def test_the_next_step_can_be_pasted_into_a_shell(call: Call, tmp_path: Path) -> None:
    text, out = tmp_path / "text.txt", tmp_path / "my vectors"
    text.write_text("$PATH $PATH $HOME\n")
    flags = ("--size", "2", "--sample", "0", "--threads", "1", "--min-count", "1")
    _, _, err = call("vectors", "train", "--text", str(text), "--out", str(out), *flags)
    assert "3 words in 1 line; 2 different ones occur 1 time or more\n" in err
    assert shlex.split(err.splitlines()[-1]) == ["heed", "vectors", "nearest", str(out), "$HOME"]


def test_an_analogy_is_printed_with_cosines(call: Call, people: str) -> None:
    """Claim 27."""
    assert call("vectors", "analogy", people, "king", "man", "woman", "--count", "1") == (
        0, "  0.9677  queen\n", ""
    )  # fmt: skip
    _, out, _ = call("vectors", "analogy", people, "king", "man", "woman", "--json")
    assert [one["word"] for one in json.loads(out)] == ["queen", "boy"]
    assert json.loads(out)[0]["cosine"] == pytest.approx(0.9677, abs=1e-4)


def test_neighbors_are_printed_with_cosines(call: Call, people: str) -> None:
    code, out, _ = call("vectors", "nearest", people, "man", "-k", "2")
    assert (code, [line.split()[1] for line in out.splitlines()]) == (0, ["boy", "woman"])


def test_what_is_learned_is_written_and_read(call: Call, text: str, tmp_path: Path) -> None:
    out, again = tmp_path / "v.vec", tmp_path / "again.vec"
    flags = ("--size", "8", "--epochs", "20", "--sample", "0", "--lowercase", "--split-punctuation")
    code, printed, err = call("vectors", "train", "--text", text, "--out", str(out), *flags)
    assert (code, printed) == (0, "")
    assert "720 words in 120 lines; 7 different ones occur 5 times or more" in err
    assert f"7 vectors of 8 numbers: {out}" in err
    code, found, _ = call("vectors", "nearest", str(out), "cat", "-k", "2")
    assert {line.split()[1] for line in found.splitlines()} == {"dog", "cow"}
    with gzip.open(tmp_path / "text.txt.gz", "wb") as file:
        file.write(Path(text).read_bytes())
    packed = str(tmp_path / "text.txt.gz")
    assert call("vectors", "train", "-q", "--text", packed, "--out", str(again), *flags)[2] == ""
    assert again.read_bytes() == out.read_bytes()
    assert read_vectors(out).matrix.shape == (7, 8)


@pytest.mark.parametrize("kind", ["cbow", "counts"])
def test_other_kinds_are_learned(call: Call, kind: str, text: str, tmp_path: Path) -> None:
    out = str(tmp_path / "v.vec")
    flags = ["--kind", kind, "--size", "4"]
    if kind == "cbow":
        flags += ["--epochs", "40", "--learning-rate", "0.1"]
    assert call("vectors", "train", "--text", text, "--out", out, *flags)[0] == 0
    _, found, _ = call("vectors", "nearest", out, "dog", "-k", "2")
    assert {line.split()[1].rstrip(".") for line in found.splitlines()} <= {"Cat", "cow", "dog"}


def test_several_files_are_one_text(call: Call, text: str, tmp_path: Path) -> None:
    out = str(tmp_path / "v.vec")
    _, _, err = call("vectors", "train", "--text", text, "--text", text, "--out", out)
    assert "1,200 words in 240 lines" in err


def test_the_embeddings_of_a_model_have_neighbors(call: Call, model: str) -> None:
    """Claim 27: a Transformer's own embeddings."""
    words = model_vectors(model).words[-3:]
    for side in ("source", "target"):
        code, out, _ = call("vectors", "nearest", model, words[0], "--side", side, "-k", "3")
        assert (code, len(out.splitlines())) == (0, 3)
    code, out, _ = call("vectors", "analogy", model, *words, "-k", "1")
    assert (code, len(out.splitlines())) == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nearest", "{people}", "kin"), "has no vector of 'kin'; did you mean 'king'?"),
        (("nearest", "{people}", "king", "--side", "target"), "--side is for a model"),
        (("nearest", "{folder}/peple.vec", "king"), "does not exist. Did you mean"),
        (("analogy", "{people}", "king", "man"), "missing argument 'C'"),
        (("train", "--out", "{folder}/v.vec"), "Give text to learn from: --text FILE"),
        (("train", "--text", "{text}"), "missing option '--out'"),
        (("train", "--text", "{text}", "--out", "{text}"), "is not a file of word vectors"),
        (("train", "--text", "{people}", "--out", "{people}", "--force"), "are the same file"),
        (("train", "--text", "{text}", "--out", "{people}"), "holds word vectors already"),
        (("train", "--text", "{text}", "--out", "{folder}/v.gz"), "that is not compressed"),
        (("train", "--text", "{text}", "--out", "-"), "cannot be written to standard output (-)"),
        (("train", "--text", "{folder}/no", "--out", "{folder}/v.vec"), "does not exist"),
        (("train", "--text", "-", "--text", "-", "--out", "v.vec"), "is given twice"),
        (("train", "--text", "{text}", "--out", "v.vec", "--min-count", "0"),
         "--min-count must be a whole number from 1"),
        (("train", "--text", "{text}", "--out", "v.vec", "--min-count", "1000"),
         "at least two words that occur 1,000 times"),
        (("train", "--text", "{text}", "--out", "v.vec", "--learning-rate", "nan"),
         "--learning-rate must be a number above 0"),
        (("train", "--text", "{text}", "--out", "v.vec", "--kind", "counts", "--epochs", "3"),
         "--epochs has no effect with --kind counts: leave it out."),
        (("train", "--text", "{text}", "--out", "v.vec", "--kind", "counts", "--threads", "1"),
         "--threads has no effect with --kind counts: leave it out."),
        (("train", "--text", "{text}", "--out", "{text}/v.vec"), "cannot write {text}/v.vec: Not"),
        (("train", "--text", "{text}", "--out", ""), "'--out': the name is empty."),
        ((), "missing command. See heed vectors --help."),
    ],
)  # fmt: skip
def test_mistakes_are_named(
    call: Call, people: str, text: str, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    names = {"people": people, "text": text, "folder": str(tmp_path)}
    code, out, err = call("vectors", *(argument.format(**names) for argument in arguments))
    assert code in (1, 2)
    assert out == ""
    assert words.format(**names) in err.splitlines()[-1]
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_text_comes_from_standard_input_too(call: Call, text: str, tmp_path: Path) -> None:
    code, _, err = call(
        "vectors", "train", "--text", "-", "--out", str(tmp_path / "v.vec"),
        stdin=Path(text).read_bytes(),
    )  # fmt: skip
    assert code == 0, err


def test_without_the_engine_it_says_that_it_is_slow(
    call: Call, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heed.vectors import native

    monkeypatch.setattr(native, "is_compiled", lambda: False)
    out = str(tmp_path / "v.vec")
    flags: tuple[Any, ...] = ("--size", "4", "--epochs", "1")
    _, _, err = call("vectors", "train", "--text", text, "--out", out, *flags)
    assert "the engine is not compiled here, so NumPy is used, which is slow" in err
