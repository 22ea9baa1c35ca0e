"""Files of word vectors: the text format of word2vec, and GloVe's, which lacks the first line.

word2vec: `n_words size`, then a line for each word: the word, a blank, and its numbers with blanks
between them. gensim, fastText and others write and read it.
"""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from heed.data.lines import STDIN, is_compressed, open_bytes, read_lines
from heed.disk.files import atomic_writer
from heed.errors import DataError, RunError, UsageError
from heed.vectors.table import Floats, WordVectors

_HEADER = re.compile(r"([0-9]{1,18}) ([0-9]{1,18})")
_HEAD_BYTES = 64


def read_vectors(path: str | Path) -> WordVectors:
    """Read a file in the format of word2vec or GloVe; its suffix decides the decompression.

    A GloVe file may hold words with blanks (glove.840B does).

    Raises:
        DataError: the file is missing, damaged or not text; a line is not a word with as many
            finite numbers as the others; the number of words differs from the first line; or a
            word occurs twice, or there is none. Names the line.
    """
    lines = _numbered(path)
    first = next(lines, None)
    if first is None:
        raise DataError(f"{path} must hold word vectors, but is empty.")
    number, line = first
    header = _HEADER.fullmatch(line)
    n_words, size = (int(header[1]), int(header[2])) if header else (-1, len(line.split(" ")) - 1)
    if size < 1:
        raise DataError(
            f"{path} line {number} must be a word and its numbers, or their counts, but is "
            f"{line[:60]!r}."
        )
    words: dict[str, int] = {}
    rows: list[Floats] = []
    for number, line in lines if header else chain([first], lines):
        word, row = _parsed(line, size, path, number)
        if word in words:
            raise DataError(
                f"{path} line {number}: each word must stand once, but {word!r} is also in line "
                f"{words[word]}."
            )
        words[word] = number
        rows.append(row)
    if header and len(rows) != n_words:
        what_to_do = (
            "Was it cut off?" if len(rows) < n_words else "Correct the number in the first line."
        )
        raise DataError(
            f"{path} must hold {n_words} words by its first line, but holds {len(rows)}. "
            f"{what_to_do}"
        )
    if not rows:
        raise DataError(f"{path} must hold word vectors, but holds no word.")
    return WordVectors(tuple(words), np.stack(rows), str(path))


def write_vectors(path: str | Path, vectors: WordVectors) -> None:
    """Write the text format of word2vec; reading it restores each number exactly.

    Raises:
        RunError: the disk is full or read-only, or permission is denied; an older file is kept.
    """
    n_words, size = vectors.matrix.shape
    with atomic_writer(path, follow_links=True) as file:
        file.write(f"{n_words} {size}\n".encode())
        for word, row in zip(vectors.words, vectors.matrix.tolist(), strict=True):
            # Nine digits tell any two numbers of float32 apart.
            numbers = " ".join(map("%.9g".__mod__, row))
            file.write(f"{word} {numbers}\n".encode("utf-8", "replace"))


def require_replaceable(path: str, *, is_forced: bool) -> None:
    """Refuse to overwrite a file that does not hold word vectors.

    Args:
        path: the output file.
        is_forced: existing word vectors may be replaced.

    Raises:
        UsageError: the name is that of a compressed file, or of standard output.
        RunError: the path is something else, or holds word vectors and `is_forced` is False.
    """
    target = Path(path)
    if path == STDIN:
        raise UsageError(
            "--out must be a file, because vectors cannot be written to standard output (-)."
        )
    if is_compressed(target):
        raise UsageError(f"--out must be a file that is not compressed, but is {path}.")
    if target.is_dir():
        raise RunError(f"{path} must be a file, but is a folder. Use another --out.")
    if not target.exists():
        return
    with open_bytes(target) as file:
        head = file.read(_HEAD_BYTES)
    if not re.match(_HEADER.pattern.encode() + rb"\r?\n", head):
        raise RunError(f"{path} is not a file of word vectors. Use another --out.")
    if not is_forced:
        raise RunError(
            f"{path} holds word vectors already. Replace them with --force, or use another --out."
        )


def _numbered(path: str | Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, stripped, with their line numbers."""
    for number, line in enumerate(read_lines(path), start=1):
        if line := line.rstrip(" \t"):
            yield number, line


def _parsed(line: str, size: int, path: str | Path, number: int) -> tuple[str, Floats]:
    fields = line.split(" ")
    word, numbers = " ".join(fields[:-size]), fields[-size:]
    n_numbers = len(fields) - 1
    # More fields may belong to a word with blanks, unless they are numbers.
    if n_numbers < size or (n_numbers > size and any(map(_is_number, fields[1:-size]))):
        raise DataError(
            f"{path} line {number} must be a word and {size} numbers, but has {n_numbers}."
        )
    # Other blanks, such as U+00A0, are words in files of GloVe and fastText.
    if not word.strip(" \t"):
        raise DataError(f"{path} line {number} must begin with a word, but begins with a blank.")
    try:
        with np.errstate(over="ignore"):
            row = np.array(numbers, dtype=np.float64).astype(np.float32)
    except ValueError:
        wrong = next(field for field in numbers if not _is_number(field))
        raise DataError(
            f"{path} line {number} must be a word and {size} numbers, but {wrong[:40]!r} is not a "
            "number."
        ) from None
    if not np.isfinite(row).all():
        raise DataError(
            f"{path} line {number}: the vector of {word!r} must be finite, but has a number that "
            "is NaN, infinite or too large."
        )
    return word, row


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
