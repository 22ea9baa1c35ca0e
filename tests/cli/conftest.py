"""A tiny saved model and the real program, for the tests of this room."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from heed.bundle.bundle import Bundle, save_bundle
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.text.vocab import train_vocab

SENTENCES = [
    "A man is riding a bike.",
    "Ein Mann fährt Fahrrad.",
    "Two dogs play in the snow.",
    "Zwei Hunde spielen im Schnee.",
    "纽约是一座城市",
    "New York is a city",
]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model folder; its weights are random, so its translations mean nothing."""
    import torch

    torch.manual_seed(1)
    vocab = train_vocab(SENTENCES * 5, size=330, languages=("de", "zh"))
    config = ModelConfig(
        src_vocab_size=vocab.size,
        tgt_vocab_size=vocab.size,
        d_model=16,
        n_heads=2,
        d_ff=16,
        n_encoder_layers=1,
        n_decoder_layers=1,
    )
    folder = tmp_path_factory.mktemp("models") / "tiny"
    bundle = Bundle(
        config=config,
        weights={name: w.numpy() for name, w in build_model(config).state_dict().items()},
        src_vocab=vocab,
        tgt_vocab=vocab,
        source_lang="en",
        target_lang="de",
        decoding={"max_length": 8, "beam_size": 2},
    )
    save_bundle(folder, bundle)
    return str(folder)


Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(scope="session")
def heed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """`heed("translate", "-m", model, stdin=b"...")`: the real program in a process of its own."""
    home = tmp_path_factory.mktemp("home")

    def run(
        *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None, **options: object
    ) -> "subprocess.CompletedProcess[bytes]":
        own = {k: v for k, v in os.environ.items() if not k.startswith("HEED_")}
        return subprocess.run(
            [sys.executable, "-m", "heed", *arguments],
            input=stdin,
            capture_output=True,
            env={**own, "OMP_NUM_THREADS": "1", "HEED_HOME": str(home), **(env or {})},
            timeout=100,
            **options,
        )

    return run
