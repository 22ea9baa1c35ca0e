"""What is traced is the model that answers, be it float32 or int8."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.translate.test_trace import LINES, SIZES

from heed.bundle.bundle import Bundle, load_bundle, save_bundle
from heed.engine.packed import save_rounded
from heed.engine.runtime import Engine
from heed.errors import UsageError
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.text.vocab import train_vocab
from heed.train.step.averages import to_arrays
from heed.translate.translator import Translator, load
from heed.translate.twin import Twin, traceable


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A float32 model, wide enough for rounding to average out."""
    torch.manual_seed(3)
    vocab = train_vocab(LINES * 9, size=320)
    sizes = SIZES | {"d_model": 64, "n_heads": 4, "d_ff": 96}
    config = ModelConfig(src_vocab_size=vocab.size, tgt_vocab_size=vocab.size, **sizes)
    bundle = Bundle(
        config=config,
        weights=to_arrays(build_model(config).state_dict()),
        src_vocab=vocab,
        tgt_vocab=vocab,
        decoding={"beam_size": 2, "max_length": 12},
    )
    path = tmp_path_factory.mktemp("twin") / "model"
    save_bundle(path, bundle)
    return path


@pytest.fixture(scope="module")
def rounded(folder: Path) -> Path:
    """The same model in int8 alone, as `heed quantize --out` writes it."""
    path, _ = save_rounded(load_bundle(folder), folder.parent / "int8")
    assert not (path / "model.safetensors").exists()
    return path


def errors(translator: Translator) -> Any:
    """Traced log-probs less those of the model that answers, `(tgt_len, n_pieces)`."""
    assert isinstance(translator.model, Engine)
    trace = translator.trace(LINES[1], LINES[0])
    vocab = translator.tgt_vocab
    src, tgt = (vocab.encode(line) for line in (LINES[1], LINES[0]))
    asked = np.array([[*src, vocab.eos_id]]), np.array([[vocab.bos_id, *tgt]])
    return trace["log_probs"] - translator.model.teacher_forced(*asked).all_log_probs()


def test_a_float_model_is_traced_to_within_rounding(folder: Path) -> None:
    assert np.abs(errors(load(folder, threads=1))).max() < 2e-5


def test_an_int8_model_is_traced_to_within_the_bound_of_int8(folder: Path, rounded: Path) -> None:
    """The bound of `tests/engine/test_equal.py`: 0.05 in the mean. The twin has the rounded
    weights; only the engine rounds what it multiplies with them too.
    """
    for translator in (load(rounded, threads=1), load(folder, dtype="int8", threads=1)):
        assert translator.twin is not None
        assert translator.twin.is_rounded
        assert np.abs(errors(translator)).mean() < 0.05
        assert translator.trace(LINES[1]).translation == translator(LINES[1])


def test_the_twin_of_an_int8_model_has_the_numbers_that_its_int8_stand_for(
    folder: Path, rounded: Path
) -> None:
    exact, found = (
        load(path, threads=1).traced.network.get_parameter("decoder.1.feed_forward.expand.weight")
        for path in (folder, rounded)
    )
    unit = exact.abs().amax(dim=1, keepdim=True) / 63
    torch.testing.assert_close(found, torch.round(exact / unit) * unit)


def test_threads_that_ask_at_once_get_one_twin(folder: Path) -> None:
    twin = Twin(folder)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: twin.model, range(4)))
    assert all(model is found[0] for model in found)


def test_without_a_folder_there_is_no_twin() -> None:
    with pytest.raises(UsageError, match="loaded from a folder can be traced or edited"):
        traceable(None)
