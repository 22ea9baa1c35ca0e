"""A corpus of seventy sentences and the settings of a model that learns it in a second.

Not for what a model understands: that is `tests/learn/`. Read on in `heed/train/run.py`.
"""

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from heed.data.corpus import Corpus
from heed.data.readers import Part
from heed.train.recipe import merge
from heed.train.run import Outcome, run_training

WORDS = ("ein", "zwei", "drei", "vier", "rot", "blau", "hund", "haus", "baum", "maus")
SMALL = {
    "tokenizer": {"kind": "word", "vocab_size": 330},
    "model": {
        "d_model": 16,
        "n_heads": 2,
        "d_ff": 32,
        "n_encoder_layers": 1,
        "n_decoder_layers": 1,
    },
}
TRAINING = {"max_steps": 12, "batch_tokens": 64, "validate_every": 5, "validation_sentences": 2}

Events = list[dict[str, Any]]
Run = Callable[..., tuple[Outcome, Events]]


@pytest.fixture(scope="session")
def small() -> dict[str, Any]:
    """The settings of that model, by section."""
    return SMALL


@pytest.fixture(scope="session")
def write_corpus() -> Callable[[Path], Corpus]:
    """`write_corpus(folder)`: each word is translated by spelling it backwards."""

    def write(folder: Path) -> Corpus:
        chooser = random.Random(0)
        lines = sorted(
            {" ".join(chooser.choices(WORDS, k=chooser.randint(1, 5))) for _ in range(80)}
        )
        backwards = [" ".join(word[::-1] for word in line.split()) for line in lines]
        src, tgt = folder / "small.de", folder / "small.xx"
        src.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        tgt.write_text("".join(f"{line}\n" for line in backwards), encoding="utf-8")
        return Corpus(train=(Part(files=(str(src), str(tgt)), source_lang="de", target_lang="xx"),))

    return write


@pytest.fixture
def small_corpus(write_corpus: Callable[[Path], Corpus], tmp_path: Path) -> Corpus:
    """Seventy sentences in a folder of this test."""
    return write_corpus(tmp_path)


@pytest.fixture
def small_run(small_corpus: Corpus) -> Run:
    """`small_run(out, stop_at=None, on=None, **training)`: train, or go on; what happened.

    `on` hears every event as it comes. `settings`, by section, are laid over the usual ones; a
    `parent` brings its own instead.
    """

    def run(
        out: Path,
        *,
        stop_at: int | None = None,
        on: Callable[[dict[str, Any]], None] | None = None,
        corpus: Corpus = small_corpus,
        settings: Mapping[str, Any] = {},
        **training: Any,
    ) -> tuple[Outcome, Events]:
        events: Events = []

        def report(event: dict[str, Any]) -> None:
            events.append(event)
            if on:
                on(event)

        def should_stop() -> bool:
            steps = [event["step"] for event in events if event["kind"] == "step"]
            return stop_at is not None and steps[-1:] == [stop_at]

        usual = {} if training.get("parent") else SMALL
        asked = merge({**usual, "training": TRAINING}, {**settings, "training": training})
        outcome = run_training(asked, corpus, out, report=report, should_stop=should_stop)
        return outcome, events

    return run
