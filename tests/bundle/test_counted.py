"""What was counted in the training text is stored with the vocabularies, and damage is seen."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.random_bundle import bundle

from heed.bundle.bundle import load_bundle, save_bundle
from heed.bundle.counted import counted_files, read_counted
from heed.bundle.find import FOREIGN
from heed.disk.tensors import decode_tensors, encode_tensors
from heed.errors import FormatError
from heed.text.vocab import Vocab, train_vocab


@pytest.fixture
def vocab() -> Vocab:
    return train_vocab(["a dog", "ein Hund"] * 5, size=310, languages=("de", "fr"))


def test_foreign_pieces_go_where_the_model_goes(
    tmp_path: Path, vocab: Vocab, config_of: Callable[..., Any]
) -> None:
    model = replace(
        bundle(vocab, config_of), source_lang="en", target_lang="de", target_langs=("de", "fr")
    )
    save_bundle(tmp_path / "without", model)
    assert load_bundle(tmp_path / "without").tgt_vocab.foreign == {}
    vocab.foreign = {vocab.language_id("de"): (270, 271), vocab.language_id("fr"): ()}
    save_bundle(tmp_path / "model", model)
    read = load_bundle(tmp_path / "model")
    assert read.tgt_vocab.foreign == vocab.foreign
    save_bundle(tmp_path / "copy", read)
    assert load_bundle(tmp_path / "copy").tgt_vocab.foreign == vocab.foreign


@pytest.mark.parametrize(
    "changed",
    [
        {"tags": np.array([9, 5], np.int32)},
        {"tags": np.array([1.0, 2.0], np.float32)},
        {"tags": np.array([5], np.int32)},
        {"is_foreign": np.zeros((2, 7), np.uint8)},
        {"is_foreign": np.zeros((2, 274), np.int32)},
        {"more": np.zeros(1, np.uint8)},
    ],
    ids=lambda changed: " ".join(changed),
)
def test_the_pieces_of_another_model_or_damaged_ones_are_refused(
    vocab: Vocab, changed: dict[str, Any]
) -> None:
    vocab.foreign = {vocab.language_id("de"): (270,), vocab.language_id("fr"): (271,)}
    files = counted_files(vocab, vocab)
    arrays = decode_tensors(files[FOREIGN], Path(FOREIGN)) | changed
    with pytest.raises(FormatError, match=r"foreign\.safetensors does not hold"):
        read_counted({FOREIGN: encode_tensors(arrays)}, vocab, vocab, Path("model"))
