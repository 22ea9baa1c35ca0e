"""benchmarks/translate_speed.py and its parts: weights exported, work counted, tables, picture."""

import shutil
import xml.etree.ElementTree as ET
from collections import Counter
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.positions import sinusoidal_halves_table, sinusoidal_table

SHAPE = {
    "src_vocab_size": 40,
    "tgt_vocab_size": 40,
    "d_model": 16,
    "n_heads": 2,
    "d_ff": 24,
    "n_encoder_layers": 2,
    "n_decoder_layers": 1,
    "norm_eps": 1e-5,
}
Scripts = dict[str, ModuleType]
Weights = dict[str, NDArray[np.float32]]


@pytest.fixture
def weights() -> Weights:
    model = build_model(ModelConfig(**SHAPE, norm="pre"))
    generator = np.random.default_rng(1)
    return {
        name: generator.standard_normal(tuple(tensor.shape)).astype(np.float32)
        for name, tensor in model.state_dict().items()
    }


@pytest.fixture
def peaks(scripts: Scripts) -> Any:
    sets = [scripts["roofline"].step_bytes(SHAPE, is_rounded=rounded) for rounded in (True, False)]
    read_gbs = dict(zip(sets, (20.0, 10.0), strict=True))
    return scripts["machine"].Peaks(int8_gmacs=100.0, float32_gmacs=50.0, read_gbs=read_gbs)


def test_the_positions_that_peers_get_are_those_of_the_model(scripts: Scripts) -> None:
    ours = sinusoidal_halves_table(scripts["exports"].MAX_POSITIONS, 16)
    assert np.array_equal(scripts["exports"].positions(16), ours.numpy())
    found = scripts["exports"].positions(16, is_interleaved=True)
    assert np.array_equal(found, sinusoidal_table(len(found), 16).numpy())


@pytest.mark.parametrize("peer", ["pegasus", "eole"])
def test_every_number_reaches_the_peer_once_and_queries_keys_and_values_apart(
    scripts: Scripts, weights: Weights, peer: str
) -> None:
    exports = scripts["exports"]
    names = {"pegasus": exports.PEGASUS, "eole": exports.EOLE}[peer]
    found = exports.renamed(SHAPE, weights, names)
    assert found.keys() <= getattr(exports, f"{peer}_weights")(SHAPE, weights).keys()
    ours = [weights[name] for name in weights if "embed" not in name and "output" not in name]
    theirs = Counter(value for array in found.values() for value in array.ravel().tolist())
    assert theirs == Counter(value for array in ours for value in array.ravel().tolist())
    thirds = [
        found[
            f"{names['layers'].format(side='decoder')}.0.{names['cross_attention']}.{part}.weight"
        ]
        for part in (names["query"], names["key"], names["value"])
    ]
    whole = weights["decoder.0.cross_attention.project_in.weight"]
    assert np.array_equal(np.concatenate(thirds), whole)


def test_work_is_a_multiply_add_a_weight_and_row(scripts: Scripts, weights: Weights) -> None:
    batch, beam, n_tokens = 3, 4, 5
    sizes: Counter[str] = Counter()
    for name, array in weights.items():
        if array.ndim == 2 and not name.startswith("embed"):
            sizes[name.split(".")[0]] += array.size
    memory = 2 * 16 * 16  # of the decoder's; meets the source
    step = sizes["decoder"] - memory + sizes["output"]
    products = n_tokens * (batch * (sizes["encoder"] + memory) + batch * beam * step)
    pairs = batch * 2 * n_tokens**2 + batch * beam * (15 + n_tokens**2)
    found = scripts["roofline"].work(SHAPE, "3x4", n_tokens, is_rounded=True)
    assert found.macs == products + pairs * 2 * 16
    weight_bytes = sizes["encoder"] + memory + n_tokens * step
    cached = (batch * beam * 15 + batch * n_tokens**2) * 2 * 16
    assert found.bytes == weight_bytes + 2 * cached
    floats = scripts["roofline"].work(SHAPE, "3x4", n_tokens, is_rounded=False)
    assert floats.bytes == 4 * weight_bytes + 4 * cached
    assert scripts["roofline"].step_bytes(SHAPE, is_rounded=False) == 4 * step


@pytest.mark.parametrize(("system", "peak"), [("heed int8", 100.0), ("eole float32", 50.0)])
def test_who_multiplies_as_fast_as_the_machine_has_all_of_its_peak(
    scripts: Scripts, peaks: Any, system: str, peak: float
) -> None:
    roofline = scripts["roofline"]
    needed = roofline.work(SHAPE, "2x1", 24, is_rounded=roofline.is_int8(system))
    tokens_per_s = peak * 1e9 / needed.macs * 2 * 24
    found = roofline.reached(SHAPE, "2x1", 24, peaks, system, tokens_per_s)
    assert found.gmacs == pytest.approx(peak)
    assert found.peak_share == pytest.approx(1)
    speed = {"heed int8": 20.0, "eole float32": 10.0}[system]
    assert found.read_share == pytest.approx(found.gbs / speed)
    assert found.gbs * found.intensity == pytest.approx(peak)


def results(peaks: Any) -> dict[str, Any]:
    """Two rounds of three systems."""
    ours, theirs = "heed int8", "CTranslate2 int8"
    rates = {
        "1x1": {ours: [300.0, 500.0], theirs: [100.0, 250.0], "heed float32": [50.0, 70.0]},
        "32x4": {ours: [4000.0, 6000.0], theirs: [2000.0, 2000.0], "heed float32": [800.0, 1000.0]},
    }
    return {
        "size": "small",
        "threads": 1,
        "config": SHAPE,
        "peaks": {
            "int8_gmacs": peaks.int8_gmacs,
            "float32_gmacs": peaks.float32_gmacs,
            "read_gbs": {str(size): speed for size, speed in peaks.read_gbs.items()},
        },
        "rates": rates,
        "memory_mb": dict.fromkeys(rates["1x1"], 99.6),
        "same_share": {ours: 0.75, theirs: 0.5, "heed float32": 1.0},
    }


def test_the_tables_show_medians_ratios_times_and_shares(scripts: Scripts, peaks: Any) -> None:
    tokens, times, shares, words = scripts["translate_speed"].report(results(peaks)).split("\n\n")
    assert tokens.splitlines() == [
        "| tokens/s, batch x beam | 1x1 | 32x4 | memory, MB | same tokens |",
        "|---|--:|--:|--:|--:|",
        "| heed int8 | 400 | 5,000 | 100 | 75% |",
        "| CTranslate2 int8 | 175 | 2,000 | 100 | 50% |",
        "| heed float32 | 60 | 900 | 100 | 100% |",
        "| heed int8 / CTranslate2 int8 | 2.50 | 2.50 | | |",
        "| heed float32 / CTranslate2 int8 | 0.39 | 0.45 | | |",
    ]
    assert times.splitlines()[:3] == [
        "| ms a sentence | 1x1 | 32x4 |",
        "|---|--:|--:|",
        "| heed int8 | 60.0 | 4.8 |",
    ]
    assert shares.count("%") == 2 * 2 * 3
    assert words.startswith("The machine: 100.0 billion multiply-adds of int8 a second, 50.0 of")


def test_the_share_of_equal_tokens_counts_places(scripts: Scripts) -> None:
    assert scripts["translate_speed"].same_share([1, 2, 3, 4], [1, 3, 2, 4]) == 0.5


def test_the_picture_has_a_dot_for_each_shape_and_int8_system_below_the_roofs(
    scripts: Scripts, peaks: Any
) -> None:
    root = ET.fromstring(scripts["translate_speed"].picture(results(peaks)))
    dots = [element.attrib for element in root.findall(".//{*}circle")]
    assert Counter(dot["fill"] for dot in dots) == Counter(
        dict.fromkeys(scripts["curves"].COLORS[:2], 2)
    )
    texts = [element.text for element in root.findall(".//{*}text")]
    assert {"1×1", "32×4", "heed int8", "CTranslate2 int8"} <= set(texts)
    assert "heed float32" not in texts
    ceiling = next(e for e in root.findall(".//{*}path") if e.attrib.get("stroke-width") == "2")
    height = float(ceiling.attrib["d"].rpartition(" ")[2].partition("H")[0])
    assert all(float(dot["cy"]) > height for dot in dots)


def test_of_two_measurements_the_higher_counts_and_threads_add_up(scripts: Scripts) -> None:
    machine = scripts["machine"]
    a = machine.Peaks.of({"int8_gmacs": 9.0, "float32_gmacs": 3.0, "read_gbs": {"64": 1.0}})
    b = machine.Peaks.of({"int8_gmacs": 7.0, "float32_gmacs": 4.0, "read_gbs": {"64": 2.0}})
    most = machine.Peaks(int8_gmacs=9.0, float32_gmacs=4.0, read_gbs={64: 2.0})
    assert machine.higher(a, b) == most
    both = machine.Peaks(int8_gmacs=16.0, float32_gmacs=7.0, read_gbs={64: 3.0})
    assert machine.together([a, b]) == both


def test_without_a_compiler_the_machine_cannot_be_measured(
    scripts: Scripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(SystemExit, match=r"false cannot compile peak\.cpp"):
        scripts["machine"].measure(1, [64])
    monkeypatch.delenv("CXX")
    monkeypatch.setattr(scripts["machine"].shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match=r"needs a C\+\+ compiler"):
        scripts["machine"].measure(1, [64])


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("c++"), reason="needs a compiler")
def test_the_machine_is_measured(scripts: Scripts) -> None:
    found = scripts["machine"].measure(1, [100_000])
    assert found.int8_gmacs > found.float32_gmacs > 1
    assert list(found.read_gbs) == [100_000, scripts["machine"].MEMORY_BYTES]
    assert all(speed > 0.1 for speed in found.read_gbs.values())
