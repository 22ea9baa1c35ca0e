"""Word translations are stored with the model, and damage is seen."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.random_bundle import bundle

from heed.bundle.alignment import AlignmentHeads, save_alignment_heads
from heed.bundle.bundle import load_bundle, save_bundle
from heed.bundle.find import LEXICON
from heed.bundle.lexicon import Lexicon, Links, Weights, save_lexicon
from heed.disk.tensors import decode_tensors, encode_tensors
from heed.errors import FormatError
from heed.text.vocab import train_vocab

SIZES = 5, 7
LINKED = Lexicon(
    pieces=Links(
        np.array([1, 4, 2], np.int32),
        np.array([0, 6, 7], np.int32),
        np.array([0.5, 1.0, 0.25], np.float32),
    ),
    words=Links(
        np.array([1, 0], np.int32), np.array([0, 1], np.int32), np.array([0.5, 0.75], np.float32)
    ),
    src_words=("the", "猫"),
    tgt_words=("größe",),
    weights=Weights(pieces=0.0625, words=0.125, per_token=-0.03125),
)


def same(one: Lexicon, other: Lexicon) -> bool:
    links = zip((*one.pieces, *one.words), (*other.pieces, *other.words), strict=True)
    return all(np.array_equal(*pair) for pair in links) and (
        (one.src_words, one.tgt_words, one.weights)
        == (other.src_words, other.tgt_words, other.weights)
    )


def test_a_lexicon_comes_back_as_it_was_and_goes_where_the_model_goes(
    tmp_path: Path, config_of: Callable[..., Any]
) -> None:
    vocab = train_vocab(["a dog", "ein Hund"] * 5, size=300)
    folder = tmp_path / "model"
    save_bundle(folder, bundle(vocab, config_of))
    assert load_bundle(folder).lexicon is None
    save_alignment_heads(folder, AlignmentHeads(layer=0))
    save_lexicon(folder, LINKED)
    read = load_bundle(folder)
    assert read.lexicon is not None and same(read.lexicon, LINKED)
    assert read.alignment_heads == AlignmentHeads(layer=0)
    save_bundle(tmp_path / "copy", read)
    copied = load_bundle(tmp_path / "copy").lexicon
    assert copied is not None and same(copied, LINKED)
    save_lexicon(folder, replace(LINKED, weights=Weights(0.5, 0.0, 0.0)))
    newer = load_bundle(folder).lexicon
    assert newer is not None and newer.weights == (0.5, 0.0, 0.0)


def test_a_lexicon_may_be_empty() -> None:
    no = np.zeros(0, np.int32)
    nothing = Links(no, no, no.astype(np.float32))
    empty = replace(LINKED, pieces=nothing, words=nothing, src_words=(), tgt_words=())
    found = Lexicon.from_files({LEXICON: empty.to_bytes()}, SIZES, Path("model"))
    assert found is not None and same(found, empty)


@pytest.mark.parametrize(
    "changed",
    [
        {"pieces.src": np.array([1, 5, 2], np.int32)},
        {"pieces.src": np.array([1, -1, 2], np.int32)},
        {"pieces.tgt": np.array([0, 6, 8], np.int32)},
        {"pieces.tgt": np.array([0, 6], np.int32)},
        {"pieces.tgt": np.array([0.0, 6.0, 7.0], np.float32)},
        {"pieces.chances": np.array([0.5, 1.5, 0.25], np.float32)},
        {"pieces.chances": np.array([0.5, 0.0, 0.25], np.float32)},
        {"pieces.src": np.array([[1, 4, 2]], np.int32)},
        {"words.src": np.array([1, 2], np.int32)},
        {"words.tgt": np.array([0, 2], np.int32)},
        {"words.sources": np.frombuffer(b"\xff\n\xff", np.uint8)},
        {"words.sources": np.array([1.0], np.float32)},
        {"words.targets": np.zeros(0, np.uint8)},
        {"weights": np.array([0.5, 0.5], np.float32)},
        {"more": np.zeros(3, np.float32)},
    ],
    ids=lambda changed: " ".join(changed),
)
def test_a_lexicon_of_another_model_or_a_damaged_one_is_refused(changed: dict[str, Any]) -> None:
    arrays = decode_tensors(LINKED.to_bytes(), Path(LEXICON)) | changed
    with pytest.raises(FormatError, match=r"lexicon\.safetensors does not hold"):
        Lexicon.from_files({LEXICON: encode_tensors(arrays)}, SIZES, Path("model"))
    whole = Lexicon.from_files({LEXICON: LINKED.to_bytes()}, SIZES, Path("model"))
    assert whole is not None and same(whole, LINKED)
