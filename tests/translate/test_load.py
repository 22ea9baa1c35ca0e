"""Which program computes a model, and what it needs for that."""

import copy
import json
import mmap
import pickle
import subprocess
import sys
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import heed.translate.load as opening
from heed.bundle.bundle import Bundle, load_bundle, save_bundle, save_int8
from heed.disk.files import to_json
from heed.disk.folders import read_directory, write_directory
from heed.disk.tensors import encode_tensors
from heed.engine.library import is_compiled
from heed.engine.packed import save_rounded
from heed.engine.runtime import Engine
from heed.errors import ConfigError, FormatError, HeedError
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.decodable import TorchDecodable
from heed.text.vocab import train_vocab
from heed.translate.glossary.glossary import Glossary
from heed.translate.load import open_model, stored_decoding
from heed.translate.translator import load

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
    return save_rounded(load_bundle(saved), tmp_path / "int8")[0]


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
    assert save_rounded(bundle)[0] == folder
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
            load_bundle(rounded, prefer_int8=True)
        data[place] ^= 4
    file.write_bytes(data[:-1])
    with pytest.raises(FormatError, match=r"model\.int8\.safetensors"):
        load_bundle(rounded, prefer_int8=True)


def test_int8_weights_lie_in_the_file(rounded: Path) -> None:
    """Where a line of the cache begins; who opens the model again shares them."""
    bundle = load_bundle(rounded, prefer_int8=True)
    assert bundle.int8 is not None
    for array in bundle.int8.values():
        assert isinstance(array.base, mmap.mmap)
        assert array.ctypes.data % 64 == 0
        assert not array.flags.writeable


def test_an_open_model_outlives_its_folder(rounded: Path, saved: Path) -> None:
    translator = load(rounded, device="cpu")
    before = translator.translate(LINES, max_length=9)
    save_bundle(rounded, load_bundle(saved))
    assert not (rounded / "model.int8.safetensors").exists()
    assert translator.translate(LINES, max_length=9) == before


@pytest.mark.parametrize("runtime", ["engine", "torch"])
def test_a_translator_goes_to_other_processes(
    slots_model: Path, rounded: Path, runtime: str
) -> None:
    """With what it has looked for so far, and with a glossary; for pools, and for `deepcopy`."""
    for folder in (slots_model, *([rounded] if runtime == "engine" else [])):
        translator = load(folder, device="cpu", threads=1, runtime=runtime)
        lines = ["{name} and the file 12 .", "Zzyzx runs in the snow .", *LINES]
        wish = partial(
            translator.translate,
            glossary=Glossary.of({"dog": "Hund"}),
            beam_size=2,
            max_length=9,
        )
        expected = wish(lines)
        assert copy.deepcopy(translator)(lines[0]) == translator(lines[0])
        with get_context("spawn").Pool(1) as pool:
            assert pool.map(wish, [lines]) == [expected]
        assert translator.trace(lines[0]).nodes
        again = pickle.loads(pickle.dumps(translator))
        assert again.trace(lines[0]).nodes == translator.trace(lines[0]).nodes


def test_an_int8_file_of_nothing_is_refused(rounded: Path) -> None:
    files = read_directory(rounded)[1]
    for data, words in ((encode_tensors({}), "lacks "), (b"", "is cut short")):
        write_directory(rounded, files | {"model.int8.safetensors": data})
        with pytest.raises(FormatError, match=words):
            open_model(rounded, device="cpu")


VALUES: Any = st.sampled_from(
    [-1, 0, 1, 3, 10**4, 2**31, 2**63, 1e-9, 1e308, True, None, "x", [], {}]
)


def _damaged(data: bytes, draw: st.DataObject) -> bytes:
    """Bytes changed, gone or come."""
    # The header is what a reader trusts: half of all damage goes there.
    places = st.integers(0, 400) | st.integers(0, len(data) - 1)
    for place in draw.draw(st.lists(places, min_size=1, max_size=3)):
        byte = bytes([draw.draw(st.integers(0, 255))])
        change = draw.draw(st.sampled_from(["change", "cut", "drop", "add"]))
        rest = {"change": data[place + 1 :], "cut": b"", "drop": data[place + 1 :]}
        data = data[:place] + (byte if change in ("change", "add") else b"")
        data += rest.get(change, data[place:])
    return data


def _with_odd_value(data: bytes, draw: st.DataObject) -> bytes:
    """A config in which one value is another."""
    config = json.loads(data)
    part = draw.draw(st.sampled_from([config, config["model"], config["decoding"]]))
    keys = sorted(part) or ["beam_size"]
    part[draw.draw(st.sampled_from(keys))] = draw.draw(VALUES)
    return to_json(config)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(draw=st.data())
def test_a_hostile_model_is_refused_in_words_or_translates(
    rounded: Path, tmp_path: Path, draw: st.DataObject
) -> None:
    """The manifest agrees with what was changed, as that of somebody who means harm would."""
    files = read_directory(rounded)[1]
    name, change = draw.draw(
        st.sampled_from(
            [
                ("model.int8.safetensors", _damaged),
                ("config.json", _damaged),
                ("config.json", _with_odd_value),
            ]
        )
    )
    folder = tmp_path / "hostile"
    write_directory(folder, files | {name: change(files[name], draw)})
    try:
        text = load(folder, device="cpu", threads=1)(LINES[0], max_length=5)
    except HeedError as error:
        assert str(error)
    else:
        assert isinstance(text, str)


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
    for threads in (0, -1, "2", True, 1.5):
        with pytest.raises(ConfigError, match=rf"threads must be .* from 1, but is {threads!r}\."):
            open_model(saved, device="cpu", threads=threads)
    monkeypatch.setenv("HEED_KERNELS", "abacus")
    if is_compiled():
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


def _with_decoding(saved: Path, folder: Path, **decoding: Any) -> Path:
    """The model with other settings of decoding in its folder."""
    _, files = read_directory(saved)
    config = json.loads(files["config.json"])
    write_directory(folder, {**files, "config.json": to_json({**config, "decoding": decoding})})
    return folder


@pytest.mark.parametrize(
    ("decoding", "words"),
    [
        ({"max_length": 100_000}, "decoding.max_length must be a whole number from 1 to 4096, but"),
        ({"max_length_factor": 21}, "decoding.max_length_factor must be at most 20.0 where it is"),
        ({"beam_size": 1000}, "decoding.beam_size must be at most 64 where it is stored with a m"),
        ({"max_source_tokens": 1}, "max_source_tokens must be a whole number from 16 to 4096, but"),
        ({"max_source_tokens": True}, "max_source_tokens must be .*, but is True"),
        ({"max_source_tokens": 10**9}, "max_source_tokens must be .*, but is 1000000000"),
        ({"max_source_tokens": None}, "max_source_tokens must be .*, but is None"),
        ({"beem_size": 1}, "beem_size is not a decoding option; did you mean beam_size"),
    ],
)
def test_a_folder_that_asks_for_too_much_is_refused(
    saved: Path, tmp_path: Path, decoding: dict[str, Any], words: str
) -> None:
    folder = _with_decoding(saved, tmp_path / "model", **decoding)
    with pytest.raises(FormatError, match=rf"model/config\.json: .*{words}"):
        load(folder, device="cpu")


def test_what_a_folder_may_ask_for_ends_soon(saved: Path, tmp_path: Path) -> None:
    most = {"max_length": 4096, "min_length": 4095, "max_length_factor": 20}
    most |= {"max_length_offset": 256, "beam_size": 4, "max_source_tokens": 16}
    (found,) = load(_with_decoding(saved, tmp_path / "model", **most)).translate(["Snow"])
    assert len(found.tokens) <= 20 * len([*found.source_tokens, "<eos>"]) + 256


def test_ids_that_are_not_in_the_vocabulary_cannot_be_suppressed(
    saved: Path, tmp_path: Path
) -> None:
    folder = _with_decoding(saved, tmp_path / "model", suppress=[999_999])
    for dtype in ("float32", "bfloat16"):  # heed's engine and torch
        with pytest.raises(ConfigError, match="suppress must hold ids below .* but holds 999999"):
            load(folder, device="cpu", dtype=dtype)("Snow.")


def test_a_table_of_positions_may_end_before_the_least_longest_source(
    saved: Path,
) -> None:
    bundle = replace(load_bundle(saved), decoding={"max_source_tokens": 8})
    with pytest.raises(FormatError, match="max_source_tokens must be a whole number from 16 to"):
        stored_decoding(bundle)
    shape: Any = bundle.config
    config = replace(shape, positions="learned", max_positions=10)
    assert stored_decoding(replace(bundle, config=config))[1] == 8
