"""The words of a text as ids, the most frequent first."""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import regex
from numpy.typing import NDArray

from heed.data.clean import amount
from heed.errors import DataError

MAX_LINE_WORDS = 10_000
"""A longer line is several lines, as in gensim."""

# Not `re`, whose `\w` lacks the vowel signs, accents and joiners inside words of many scripts.
_WORDS = regex.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")


@dataclass(frozen=True)
class Corpus:
    """A text in ids.

    Attributes:
        words: by id, the most frequent first.
        counts: how often each occurs, `(n_words,)`.
        ids: the words of all lines, concatenated, `(n_tokens,)`.
        ends: where each line ends in `ids`, `(n_lines,)`.
        n_read: words read, including those left out.
    """

    words: tuple[str, ...]
    counts: NDArray[np.int64]
    ids: NDArray[np.int32]
    ends: NDArray[np.int64]
    n_read: int


class _Numbers(dict[str, int]):
    """Word → its number in order of appearance."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


def read_corpus(lines: Iterable[Iterable[str]], min_count: int) -> Corpus:
    """Number the words of a text and leave out those rarer than `min_count`.

    Args:
        lines: the words of each line.
        min_count: the least number of times that a word must occur.

    Raises:
        DataError: fewer than two different words are left.
    """
    numbers, read, ends = _Numbers(), array("i"), array("q")
    for line in lines:
        start = len(read)
        read.extend(map(numbers.__getitem__, line))
        ends.extend(range(start + MAX_LINE_WORDS, len(read), MAX_LINE_WORDS))
        ends.append(len(read))
    appeared = np.frombuffer(read, np.int32) if read else np.empty(0, np.int32)
    counts = np.bincount(appeared, minlength=len(numbers))
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] >= min_count]
    if len(order) < 2:
        raise DataError(
            f"the text must have at least two words that occur {amount(min_count, 'time')}, but "
            f"has {len(order)} among {amount(len(appeared), 'word')}. Give more text, or a "
            "smaller --min-count."
        )
    ids = np.full(len(numbers), -1, np.int32)
    ids[order] = np.arange(len(order), dtype=np.int32)
    known = ids[appeared] if len(appeared) else appeared
    n_kept = np.append(0, np.cumsum(known >= 0))
    every = list(numbers)
    return Corpus(
        words=tuple(every[number] for number in order),
        counts=counts[order],
        ids=known[known >= 0],
        ends=n_kept[np.frombuffer(ends, np.int64)],
        n_read=len(appeared),
    )


def split_words(
    lines: Iterable[str], *, lowercase: bool = False, split_punctuation: bool = False
) -> Iterator[list[str]]:
    """The words of each line, split at blanks.

    Args:
        lines: the text.
        lowercase: `The` and `the` are one word.
        split_punctuation: punctuation marks are words, except inside a word (`don't`).
    """
    for line in lines:
        text = line.lower() if lowercase else line
        yield _WORDS.findall(text) if split_punctuation else text.split()
