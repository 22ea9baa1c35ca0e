"""The layer for documents is chosen by the words that documents link."""

from random import Random

import numpy as np

from heed.explain.attention.competition import best_layer, links_by_layer
from heed.translate.result import Translation

WORDS = {"dog": "a", "cat": "b", "sees": "c", "finds": "d", "big": "e", "red": "f", "house": "g"}
N_WORDS = len(WORDS)


def test_a_time_or_a_field_is_one_word_of_the_links_and_of_the_reference() -> None:
    random = Random(1)
    rows = [random.sample([*WORDS], N_WORDS) for _ in range(60)]
    sources = [f"12:30 {' '.join(row)}" for row in rows]
    targets = [" ".join(WORDS[word] for word in row) for row in rows]
    right = np.eye(N_WORDS + 1, dtype=np.float32)[1:]
    # Right only if the time were three words, and so each word two places further on.
    wrong = np.roll(right, 2, axis=1)
    found = [
        links_by_layer(
            source,
            Translation(text=target, tokens=target.split(), source_tokens=source.split()),
            [right, wrong],
        )
        for source, target in zip(sources, targets, strict=True)
    ]
    assert best_layer(sources, targets, found) == 0
