"""A language of word for word, for tests of what is learned from pairs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from heed.data.store import Store
from heed.text.vocab import Vocab, train_vocab
from heed.translate.doubts.calibrate import Pairs, Sources
from heed.translate.result import Translation

WORDS = {
    **{"dog": "Hund", "cat": "Katze", "house": "Haus", "tree": "Baum", "road": "Weg"},
    **{"river": "Fluss", "child": "Kind", "woman": "Frau", "horse": "Pferd", "bridge": "Steg"},
    **{"apple": "Apfel", "garden": "Garten", "stone": "Stein", "bird": "Vogel", "window": "Tor"},
}
ENGLISH, GERMAN = [*WORDS], [*WORDS.values()]


def pairs(n: int, seed: int = 1) -> Pairs:
    """Sentences of five to eleven words, every word translated."""
    random = np.random.default_rng(seed)
    drawn = [random.choice(15, random.integers(5, 12), replace=False) for _ in range(n)]
    return [(" ".join(ENGLISH[w] for w in row), " ".join(GERMAN[w] for w in row)) for row in drawn]


def vocab() -> Vocab:
    """All words of both languages."""
    return train_vocab([text for pair in pairs(60) for text in pair], size=400, kind="word")


def store(folder: Path, vocab: Vocab, n: int = 1200) -> Store:
    """Training pairs as ids."""
    path = folder / "train.bin"
    with Store.create(path, vocab.hash, vocab.hash) as writer:
        for src, tgt in pairs(n, seed=2):
            writer.add(vocab.encode(src), vocab.encode(tgt))
    return Store.open(path, vocab.hash, vocab.hash)


def spelled(vocab: Vocab, src: str, tgt: str, log_prob: float = -0.5) -> Translation:
    """A translation with its pieces, each of this probability."""
    ids = vocab.encode(tgt)
    return Translation(
        text=tgt,
        tokens=vocab.pieces(ids),
        token_scores=[log_prob] * (len(ids) + 1),
        source_tokens=vocab.pieces(vocab.encode(src)),
    )


def translated(text: str) -> str:
    """The right translation of a sentence; other words stay as they are."""
    return " ".join(WORDS.get(word, word) for word in text.split())


def sources(vocab: Vocab, *, is_always_right: bool = False) -> Sources:
    """A translator that translates two of three sentences, or all, sure of itself then."""

    def translate(texts: Sequence[str], places: Sequence[int]) -> list[Translation]:
        assert len(texts) == len(places)
        rights = [is_always_right or n % 3 > 0 for n in range(len(texts))]
        return [
            spelled(vocab, text, translated(text), -0.2)
            if right
            else spelled(vocab, text, "Hund", -3.0)
            for text, right in zip(texts, rights, strict=True)
        ]

    def score(given: Pairs, places: Sequence[int]) -> list[Translation]:
        assert len(given) == len(places)
        return [spelled(vocab, *pair) for pair in given]

    def read(given: Pairs, places: Sequence[int]) -> list[Translation]:
        return [replace(each, token_scores=[]) for each in score(given, places)]

    return Sources(
        translate=translate,
        score=score,
        read=read,
        src_vocab=vocab,
        tgt_vocab=vocab,
        target_lang="de",
    )
