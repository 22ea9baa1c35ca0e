"""A real small run on the built-in corpus with short pieces: does it write words that are none?

What it measures on Multi30k is in `docs/results.md`.
"""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from heed.data.corpus import Corpus
from heed.data.readers import ParallelFiles
from heed.demo.grammar import compositional_split
from heed.train.recipe.asked import Asked
from heed.train.run.run import run_training
from heed.translate.translator import load

SETTINGS: dict[str, Any] = {
    # So few pieces that most words are cut, also frequent ones.
    "tokenizer": {"kind": "bpe", "vocab_size": 420},
    "model": {
        "d_model": 64,
        "n_heads": 4,
        "d_ff": 128,
        "n_encoder_layers": 2,
        "n_decoder_layers": 2,
        "dropout": 0.1,
        "norm": "pre",
    },
    "training": {
        "max_steps": 500,
        "batch_tokens": 1024,
        "matrix_learning_rate": 0.02,
        "warmup_steps": 30,
        "validations": 1,
        "validation_sentences": 0,
        "threads": 1,
    },
}

# Half a minute on an idle core.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def shuffled(pieces: list[list[str]], random: random.Random) -> Iterator[str]:
    """Sentences of the same lengths from the same pieces, in any order."""
    drawn = [piece for sentence in pieces for piece in sentence]
    random.shuffle(drawn)
    for sentence in pieces:
        yield "".join(drawn.pop() for _ in sentence).replace("▁", " ")


def test_a_model_of_subwords_writes_few_words_that_do_not_exist(
    scripts: dict[str, ModuleType],
    parallel_files: Callable[..., ParallelFiles],
    tmp_path: Path,
) -> None:
    """Claim 19: 1.2 % of its words are new, such as "efrayé"; of pieces in any order, 82 %."""
    new_words = scripts["new_words"].new_words
    seen, unseen = compositional_split("en", "fr", 1)
    train, dev = (
        parallel_files(tmp_path, name, pairs, "en", "fr")
        for name, pairs in (("train", seen), ("dev", unseen[:40]))
    )
    corpus = Corpus(train=(train,), dev=(dev,))
    outcome = run_training(Asked(SETTINGS), corpus, tmp_path / "run", report=lambda event: None)
    assert outcome.is_finished
    translator = load(tmp_path / "run", threads=1)
    asked = random.Random(0).sample(unseen[40:], 300)
    found = translator.translate([pair.src for pair in asked], beam_size=1)
    pieces = [each.tokens for each in found]
    known = [pair.tgt for pair in seen]
    n_words = sum(len(each.text.split()) for each in found)
    assert sum(map(len, pieces)) > 1.5 * n_words
    _, share = new_words([each.text for each in found], known)
    _, by_chance = new_words(shuffled(pieces, random.Random(0)), known)
    assert share < 0.03
    assert by_chance > 0.6
