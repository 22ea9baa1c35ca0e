"""What translations are judged by is stored with the model, and damage is seen."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.random_bundle import bundle

from heed.bundle.alignment import AlignmentHeads, save_alignment_heads
from heed.bundle.bundle import load_bundle, save_bundle
from heed.bundle.doubts import Fit, Judgment, save_judgment
from heed.bundle.find import DOUBT_WORDS, DOUBTS
from heed.errors import ConfigError, FormatError
from heed.text.vocab import train_vocab

WORDS = {
    "links.src": np.array([1, 2], np.int32),
    "links.tgt": np.array([2, 0], np.int32),
    "links.strict": np.array([1, 0], np.uint8),
    "src.values": np.zeros((3, 7), np.float32),
    "tgt.values": np.ones((3, 7), np.float32),
}
JUDGMENT = Judgment(
    fits={
        "left_out.given": Fit(weights=(0.5, -1.0), bias=2.0, threshold=1.5),
        "added.given": Fit(weights=(0.5, -1.0, 2.0, 0.0), bias=2.0, knots=((0.1, 0.2),)),
    },
    confidence=Fit(weights=(1.0, 1.0), bias=0.0),
    low_confidence=0.1,
    low_score=-3.5,
    right=50.0,
    scripts=("latin",),
    error=0.02,
    n_pairs=500,
    words=WORDS,
)


@pytest.fixture
def folder(tmp_path: Path, config_of: Callable[..., Any]) -> Path:
    vocab = train_vocab(["a dog", "ein Hund"] * 5, size=300)
    save_bundle(tmp_path / "model", bundle(vocab, config_of))
    return tmp_path / "model"


def test_a_judgment_comes_back_as_it_was(folder: Path) -> None:
    assert load_bundle(folder).judgment is None
    save_alignment_heads(folder, AlignmentHeads(layer=0))
    save_judgment(folder, JUDGMENT)
    read = load_bundle(folder)
    assert read.alignment_heads == AlignmentHeads(layer=0)
    assert read.judgment is not None
    assert replace(read.judgment, words={}) == replace(JUDGMENT, words={})
    for name, array in WORDS.items():
        assert (read.judgment.words[name] == array).all()
    # It goes wherever the model goes.
    save_bundle(folder.parent / "copy", read)
    copied = load_bundle(folder.parent / "copy").judgment
    assert copied is not None and copied.to_files() == JUDGMENT.to_files()


def test_a_newer_judgment_replaces_the_older(folder: Path) -> None:
    save_judgment(folder, JUDGMENT)
    save_judgment(folder, Judgment(n_pairs=100))
    read = load_bundle(folder).judgment
    assert read == Judgment(n_pairs=100)


@pytest.mark.parametrize(
    "changes",
    [
        {"links.src": np.array([1, 3], np.int32)},
        {"links.src": np.array([1, -1], np.int32)},
        {"links.tgt": np.array([1], np.int32)},
        {"tgt.values": np.ones((3, 7), np.float64)},
    ],
)
def test_words_that_do_not_fit_together_are_refused(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    files = replace(JUDGMENT, words=WORDS | changes).to_files()
    with pytest.raises(FormatError, match=r"doubts\.safetensors is not in heed's format for"):
        Judgment.from_files(files, tmp_path)


def test_something_else_is_refused(tmp_path: Path) -> None:
    files = JUDGMENT.to_files()
    for wrong in (b"{}", files[DOUBTS].replace(b'"low_score"', b'"other"')):
        with pytest.raises(FormatError, match=r"doubts\.json is not in heed's format for doubts"):
            Judgment.from_files({**files, DOUBTS: wrong}, tmp_path)


def test_knots_without_weights_are_refused(tmp_path: Path) -> None:
    fits = {"added.given": Fit(weights=(0.5, -1.0, 2.0), bias=2.0, knots=((0.1, 0.2),))}
    files = replace(JUDGMENT, fits=fits).to_files()
    with pytest.raises(FormatError, match=r"doubts\.json is not in heed's format for doubts"):
        Judgment.from_files(files, tmp_path)


def test_damage_is_seen(folder: Path) -> None:
    save_judgment(folder, JUDGMENT)
    data = (folder / DOUBT_WORDS).read_bytes()
    (folder / DOUBT_WORDS).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(FormatError):
        load_bundle(folder)


def test_a_run_that_has_not_ended_is_refused(folder: Path) -> None:
    checkpoints = folder.parent / "run" / "checkpoints"
    checkpoints.mkdir(parents=True)
    folder.rename(checkpoints / "best")
    with pytest.raises(ConfigError, match="a run that has not ended"):
        save_judgment(folder.parent / "run", JUDGMENT)
