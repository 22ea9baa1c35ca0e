"""Files of word vectors: word2vec's and GloVe's, whole and broken."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.errors import DataError, HeedError, RunError, UsageError
from heed.vectors.formats import read_vectors, require_replaceable, write_vectors
from heed.vectors.table import WordVectors


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_what_is_written_comes_back_to_the_bit(tmp_path: Path) -> None:
    matrix = np.random.default_rng(1).normal(size=(4, 7)).astype(np.float32)
    limits = np.finfo(np.float32)
    matrix[0, :4] = np.array([0, limits.max, limits.tiny, -1e-45], np.float32)
    write_vectors(tmp_path / "v.vec", WordVectors(("king", "城市", "été", "1"), matrix))
    found = read_vectors(tmp_path / "v.vec")
    assert found.words == ("king", "城市", "été", "1")
    assert np.array_equal(found.matrix, matrix)
    assert (tmp_path / "v.vec").read_text("utf-8").startswith("4 7\nking 0 3.40282347e+38")


def test_the_table_of_the_seed_is_read_to_the_bit(tmp_path: Path) -> None:
    """Claim 15: its eight words, of which these are three."""
    text = "3 4\nNew 0.48 -1.2 -0.44 2.21\nYork 0.56 -0.35 -1.09 -0.43\ncity 0.65 -0.6 -0.87 0.59\n"
    found = read_vectors(write(tmp_path / "v.vec", text))
    new = np.array([0.48, -1.20, -0.44, 2.21], np.float32)
    assert np.array_equal(found.matrix[found.rows["New"]], new)
    assert found.matrix.shape == (3, 4)


def test_a_file_as_gensim_writes_it_is_read(tmp_path: Path) -> None:
    """Claim 25. gensim: a first line of counts, then each word and the numbers as NumPy spells
    them."""
    matrix = np.random.default_rng(1).normal(size=(2, 3)).astype(np.float32)
    rows = [f"{w} {' '.join(str(x) for x in row)}" for w, row in zip("ab", matrix, strict=True)]
    found = read_vectors(write(tmp_path / "g.txt", "2 3\n" + "\n".join(rows) + "\n"))
    assert found.words == ("a", "b")
    assert np.array_equal(found.matrix, matrix)


@pytest.mark.parametrize("end", ["\n", "\r\n", " \n", "\n\n"])
def test_a_file_of_glove_has_no_first_line(tmp_path: Path, end: str) -> None:
    """Claim 25."""
    text = end.join(["the 0.5 -1", "at name@x.org 2 3", ". . 1e-3 4", "2000 5 6", ""])
    found = read_vectors(write(tmp_path / "glove.txt", text))
    assert found.words == ("the", "at name@x.org", ". .", "2000")
    np.testing.assert_allclose(found.matrix, [[0.5, -1], [2, 3], [1e-3, 4], [5, 6]])


@pytest.mark.parametrize("word", ["\u00a0", "\x85", "\u3000"])
def test_a_word_may_be_an_unusual_blank(tmp_path: Path, word: str) -> None:
    """fastText's and GloVe's files have such words."""
    found = read_vectors(write(tmp_path / "v.vec", f"the 1 2\n{word} 3 4\n"))
    assert found.words == ("the", word)


def test_compressed_files_are_read(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "v.txt.gz", "wt") as file:
        file.write("2 1\na 1\nb 2\n")
    assert read_vectors(tmp_path / "v.txt.gz").matrix.tolist() == [[1], [2]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must hold word vectors, but is empty"),
        ("\n \n", "must hold word vectors, but is empty"),
        ("word\n", "line 1 must be a word and its numbers, or their counts, but is 'word'"),
        ("2 0\na\nb\n", "line 1 must be a word and its numbers"),
        ("0 3\n", "holds no word"),
        ("2 2\na 1 2\nb 1\n", "line 3 must be a word and 2 numbers, but has 1"),
        ("a 1 2\nb 1 2 3\n", "line 2 must be a word and 2 numbers, but has 3"),
        ("a 1 2\n\nb 1 two\n", "line 3 must be a word and 2 numbers, but 'two' is not a number"),
        ("a 1 2\nb 1 nan\n", "line 2: the vector of 'b' must be finite"),
        ("a 1 2\nb inf 1\n", "line 2: the vector of 'b' must be finite"),
        ("a 1 2\nb 1e39 1\n", "line 2: the vector of 'b' must be finite"),
        ("a 1 2\nb 1 2\na 1 3\n", "line 3: each word must stand once, but 'a' is also in line 1"),
        ("3 2\na 1 2\nb 1 2\n", "must hold 3 words by its first line, but holds 2. Was it cut"),
        (
            "1 2\na 1 2\nb 1 2\n",
            "must hold 1 words by its first line, but holds 2. Correct the number in the first",
        ),
        ("999999999999999999 999999999999999999\na 1\n", "line 2 must be a word and 999999"),
        ("2 2\n 1 2\nb 1 2\n", "line 2 must begin with a word, but begins with a blank"),
    ],
)
def test_a_broken_file_is_refused_by_its_line(tmp_path: Path, text: str, words: str) -> None:
    path = write(tmp_path / "v.vec", text)
    with pytest.raises(DataError, match=words) as found:
        read_vectors(path)
    assert str(path) in str(found.value)


def test_a_missing_and_a_binary_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        read_vectors(tmp_path / "none.vec")
    (tmp_path / "v.bin").write_bytes(b"2 2\na \x00\x00\x80\x3f\xff\xff")
    with pytest.raises(DataError, match="must be UTF-8"):
        read_vectors(tmp_path / "v.bin")


PARTS = st.sampled_from(["king", "0.5", "-1", "nan", "1e99", " ", " ", "\n", "\n", "2 3\n", "é"])


@given(st.one_of(st.lists(PARTS).map("".join), st.text()))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / "any.vec").write_bytes(text.encode("utf-8", "replace"))
    try:
        found = read_vectors(folder / "any.vec")
    except HeedError as error:
        assert "any.vec" in str(error)
        return
    assert len(found.words) == len(found.matrix) == len(set(found.words)) > 0
    assert np.isfinite(found.matrix).all()
    write_vectors(folder / "again.vec", found)
    again = read_vectors(folder / "again.vec")
    assert again.words == found.words
    assert np.array_equal(again.matrix, found.matrix)


def test_only_word_vectors_are_replaced_and_only_by_force(tmp_path: Path) -> None:
    require_replaceable(str(tmp_path / "new.vec"), is_forced=False)
    vectors = write(tmp_path / "v.vec", "1 1\na 1\n")
    with pytest.raises(RunError, match="holds word vectors already. Replace them with --force"):
        require_replaceable(str(vectors), is_forced=False)
    require_replaceable(str(vectors), is_forced=True)
    foreign = write(tmp_path / "diary.txt", "1 1 was a good day\n")
    with pytest.raises(RunError, match="is not a file of word vectors"):
        require_replaceable(str(foreign), is_forced=True)
    with pytest.raises(RunError, match="must be a file, but is a folder"):
        require_replaceable(str(tmp_path), is_forced=True)
    for path, words in (("v.vec.gz", "that is not compressed"), ("-", "standard output")):
        with pytest.raises(UsageError, match=f"--out must be a file.* {words}"):
            require_replaceable(path, is_forced=True)
