"""Which program computes a model, and what it needs for that."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import heed.opening as opening
from heed.bundle import Bundle, load_bundle, save_bundle, save_int8
from heed.engine.network import Network
from heed.engine.packed import to_arrays
from heed.engine.runtime import Engine
from heed.errors import ConfigError, FormatError
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.decodable import TorchDecodable
from heed.opening import open_model
from heed.text.vocab import train_vocab
from heed.translate import load

LINES = ["A dog runs.", "Two men ride a bike in the snow.", "Snow."]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    torch.manual_seed(2)
    vocab = train_vocab(LINES * 9, size=320)
    config = ModelConfig(
        src_vocab_size=vocab.size,
        tgt_vocab_size=vocab.size,
        d_model=32,
        n_heads=4,
        d_ff=48,
        n_encoder_layers=2,
        n_decoder_layers=1,
    )
    weights = {name: w.numpy() for name, w in build_model(config).state_dict().items()}
    bundle = Bundle(config=config, weights=weights, src_vocab=vocab, tgt_vocab=vocab)
    folder = tmp_path_factory.mktemp("models") / "float"
    save_bundle(folder, bundle)
    return folder


@pytest.fixture
def rounded(saved: Path, tmp_path: Path) -> Path:
    """A folder with int8 weights only."""
    bundle = load_bundle(saved)
    network = Network.of(bundle.config, bundle.weights, is_quantized=True)
    return save_int8(bundle, to_arrays(network), tmp_path / "int8")


def test_a_cpu_computes_with_the_engine_and_other_numbers_with_torch(saved: Path) -> None:
    for dtype in ("auto", "float32", "int8"):
        assert isinstance(open_model(saved, device="cpu", dtype=dtype)[1], Engine)
    assert isinstance(open_model(saved, device="cpu", dtype="bfloat16")[1], TorchDecodable)


def test_the_engine_translates_as_torch_does(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = load(saved, device="cpu").translate(LINES, beam_size=3, max_length=9, alignment=True)
    monkeypatch.setattr(opening, "is_compiled", lambda: False)
    theirs = load(saved, device="cpu").translate(LINES, beam_size=3, max_length=9, alignment=True)
    for one, other in zip(ours, theirs, strict=True):
        assert (one.text, one.tokens) == (other.text, other.tokens)
        assert one.score == pytest.approx(other.score, abs=1e-4)
        assert one.alignment is not None
        assert other.alignment is not None
        np.testing.assert_allclose(one.alignment, other.alignment, atol=1e-5)


def test_uncompiled_and_without_torch_numpy_computes(
    saved: Path, rounded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = load(rounded, device="cpu").translate(LINES, max_length=9)
    monkeypatch.setenv("HEED_KERNELS", "numpy")
    plain = load(rounded, device="cpu").translate(LINES, max_length=9)
    assert compiled == plain
    monkeypatch.setattr(opening, "is_compiled", lambda: False)
    monkeypatch.setattr(opening, "find_spec", lambda name: None)
    assert isinstance(open_model(saved)[1], Engine)


def test_the_same_int8_comes_from_a_file_as_from_rounding_now(saved: Path, rounded: Path) -> None:
    now = load(saved, device="cpu", dtype="int8").translate(LINES, max_length=9)
    assert load(rounded, device="cpu").translate(LINES, max_length=9) == now


def test_int8_beside_the_weights_is_used_unless_other_numbers_are_asked_for(
    saved: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "both"
    bundle = load_bundle(saved)
    save_bundle(folder, bundle)
    bundle = load_bundle(folder)
    network = Network.of(bundle.config, bundle.weights, is_quantized=True)
    assert save_int8(bundle, to_arrays(network)) == folder
    assert open_model(folder, device="cpu")[0].int8
    assert not open_model(folder, device="cpu", dtype="float32")[0].int8
    # New weights make the old int8 invalid: it is no longer listed.
    save_bundle(folder, bundle)
    assert not open_model(folder, device="cpu")[0].int8


def test_a_folder_of_int8_alone_gives_nothing_else(rounded: Path) -> None:
    for dtype in ("float32", "bfloat16"):
        with pytest.raises(FormatError, match="holds int8 weights only"):
            open_model(rounded, device="cpu", dtype=dtype)
    with pytest.raises(FormatError, match="holds int8 weights only"):
        load_bundle(rounded)


def test_a_damaged_int8_file_is_noticed(rounded: Path) -> None:
    file = rounded / "model.int8.safetensors"
    data = bytearray(file.read_bytes())
    for place in np.random.default_rng(1).integers(0, len(data), 50):
        data[place] ^= 4
        file.write_bytes(data)
        with pytest.raises(FormatError, match="damaged"):
            load_bundle(rounded, is_quantized=True)
        data[place] ^= 4
    file.write_bytes(data[:-1])
    with pytest.raises(FormatError, match=r"model\.int8\.safetensors"):
        load_bundle(rounded, is_quantized=True)


def test_a_checkpoint_is_not_written_into(saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints" / "best"
    save_bundle(folder, load_bundle(saved))
    with pytest.raises(ConfigError, match="a checkpoint of a run that has not ended"):
        save_int8(load_bundle(folder), {})


def test_wrong_wishes_are_refused(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="dtype must be one of auto, float32, int8"):
        open_model(saved, dtype="int4")
    with pytest.raises(ConfigError, match="device must be auto, cpu, cuda"):
        open_model(saved, device="gpu")
    with pytest.raises(ConfigError, match="int8 is for a CPU"):
        open_model(saved, device="cuda", dtype="int8")
    with pytest.raises(ConfigError, match="threads must be at least 1"):
        open_model(saved, device="cpu", threads=0)
    monkeypatch.setenv("HEED_KERNELS", "abacus")
    if opening.is_compiled():
        with pytest.raises(ConfigError, match="this processor has no abacus"):
            open_model(saved, device="cpu")


def test_the_search_may_be_given_threads(saved: Path) -> None:
    one = load(saved, device="cpu", threads=1).translate(LINES, max_length=9)
    assert load(saved, device="cpu", threads=2).translate(LINES, max_length=9) == one


def test_translating_on_a_cpu_leaves_torch_alone(saved: Path) -> None:
    program = (
        "import sys, heed; "
        f"print(heed.load({str(saved)!r}, device='cpu')('A dog runs.', max_length=5)); "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
