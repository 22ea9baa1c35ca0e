"""Translators whose answers are quick to compute: from a table by history, or written by hand."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from tests.decode.conftest import HashModel

from heed.decode.options import DecodeOptions
from heed.model.interface import ArrayNextTokens
from heed.text.vocab import Vocab, train_vocab
from heed.translate.translator import Translator


class AnySource(HashModel):
    """A `HashModel` to which all sources are one."""

    def start(self, src: np.ndarray, **arguments: Any) -> Any:
        return super().start(np.zeros_like(src), **arguments)


class Written:
    """Probabilities of the next word written by hand, by the words so far; `</s>` otherwise.

    Args:
        vocab: with a piece for each word.
        table: words so far → word → probability.
    """

    length_limit: int | None = None

    def __init__(self, vocab: Vocab, table: Mapping[str, Mapping[str, float]]) -> None:
        self.vocab, self.table = vocab, table

    def start(self, src: np.ndarray, *, beam_size: int = 1, required_ids: Any = None) -> Any:
        return [[] for _ in range(len(src) * beam_size)]

    def step(self, state: list[list[int]], tokens: np.ndarray) -> ArrayNextTokens:
        lines = []
        for words, token in zip(state, tokens.tolist(), strict=True):
            words.append(token)
            lines.append(self._after(words[1:]))
        return ArrayNextTokens(np.log(np.array(lines, dtype=np.float32)))

    def extend(self, state: Any, tokens: np.ndarray) -> None:
        for column in tokens.T:
            self.step(state, column)

    def select(self, state: list[list[int]], rows: np.ndarray, sources: Any = None) -> None:
        state[:] = [[*state[row]] for row in rows.tolist()]

    def teacher_forced(self, src: np.ndarray, tgt_in: np.ndarray) -> ArrayNextTokens:
        lines = [
            self._after(row[1:end]) for row in tgt_in.tolist() for end in range(1, len(row) + 1)
        ]
        return ArrayNextTokens(np.log(np.array(lines, dtype=np.float32)))

    def _after(self, words: list[int]) -> list[float]:
        chances = self.table.get(self.vocab.decode(words), {"</s>": 1.0})
        rest = 1e-9
        line = [rest] * self.vocab.size
        for word, chance in chances.items():
            token = self.vocab.eos_id if word == "</s>" else self.vocab.encode(word)[0]
            line[token] = chance
        return line


@pytest.fixture(scope="session")
def words() -> Vocab:
    """A vocabulary with a piece for each word."""
    lines = ["I walk home", "The man walks home", "A man sings", "The dog sings", "I sing"]
    return train_vocab(lines * 5, size=300, kind="word")


@pytest.fixture(scope="session")
def hash_translator(words: Vocab) -> Callable[..., Translator]:
    """`hash_translator(seed, end=…)`: a few likely words, and `</s>`, likelier by `end`."""

    def make(seed: int, *, n_words: int = 8, end: float = 1.0) -> Translator:
        table = np.full((1, 61, words.size), -30.0)
        ids = [i for i in range(words.size) if not words.is_control(i)][:n_words]
        table[..., ids] = np.random.default_rng(seed).standard_normal((1, 61, n_words)) * 2
        table[..., words.eos_id] = np.random.default_rng(seed + 1).standard_normal((1, 61)) + end
        table[..., words.pad_id] = 1.0  # likely, and never written
        options = DecodeOptions(max_length=9)
        return Translator(AnySource(table), words, words, options=options)

    return make


@pytest.fixture
def written(words: Vocab) -> Callable[..., Translator]:
    """`written({"": {"I": 0.5, …}, "I": {…}})`: a translator with these probabilities."""

    def make(table: Mapping[str, Mapping[str, float]], **options: Any) -> Translator:
        return Translator(
            Written(words, table),
            words,
            words,
            options=DecodeOptions(length_penalty=0.0, **options),
        )

    return make
