"""A small untrained model whose traces are looked at."""

from pathlib import Path
from typing import Any

import pytest
import torch

from heed.bundle.bundle import Bundle, save_bundle
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.text.vocab import train_vocab
from heed.train.step.averages import to_arrays
from heed.translate.translator import Translator, load

LINES = ["A dog runs.", "Two men ride a bike in the snow.", "Snow.", "Don't run, men!"]


def make_translator(folder: Path, **changes: Any) -> Translator:
    torch.manual_seed(4)
    vocab = train_vocab(LINES * 9, size=320)
    config = ModelConfig(
        src_vocab_size=vocab.size,
        tgt_vocab_size=vocab.size,
        d_model=16,
        n_heads=2,
        d_ff=24,
        n_encoder_layers=2,
        n_decoder_layers=2,
        **changes,
    )
    bundle = Bundle(
        config=config,
        weights=to_arrays(build_model(config).state_dict()),
        src_vocab=vocab,
        tgt_vocab=vocab,
        source_lang="en",
        target_lang="de",
        decoding={"beam_size": 2, "max_length": 12},
    )
    save_bundle(folder, bundle)
    return load(folder, threads=1)


@pytest.fixture(scope="package")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return make_translator(tmp_path_factory.mktemp("attention") / "model")


@pytest.fixture(scope="package")
def of_same_layer(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    """Its decoder layers read the encoder layers of the same height."""
    return make_translator(tmp_path_factory.mktemp("same") / "model", cross_from="same")
