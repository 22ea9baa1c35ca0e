"""`heed quantize`: a folder of a quarter of the size, and what it costs."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def own(model, tmp_path) -> Path:
    """A copy of the model that may be written into."""
    return Path(shutil.copytree(model, tmp_path / "own"))


def test_int8_goes_beside_the_weights_and_is_used_from_then_on(call, own):
    code, out, _ = call("quantize", str(own))
    assert code == 0
    assert "MB of int8 instead of" in out
    assert "rounding error of a weight matrix" in out
    assert (own / "model.int8.safetensors").exists()
    small = (own / "model.int8.safetensors").stat().st_size
    assert small < (own / "model.safetensors").stat().st_size / 2
    by_default = call("translate", "-m", str(own), "A man is riding a bike.")
    assert by_default[0] == 0
    assert by_default == call(
        "translate", "-m", str(own), "--dtype", "int8", "A man is riding a bike."
    )


def test_a_folder_of_its_own_translates(call, own, tmp_path):
    small = tmp_path / "small"
    assert call("quantize", str(own), "--out", str(small), "--layers")[0] == 0
    assert not (small / "model.safetensors").exists()
    assert not (own / "model.int8.safetensors").exists()
    assert call("translate", "-m", str(small), "A man.")[0] == 0
    code, _, err = call("translate", "-m", str(small), "--dtype", "float32", "A man.")
    assert code == 1
    assert "holds int8 weights only" in err


def test_the_cost_is_told_with_its_interval(call, own, tmp_path):
    for name, lines in (
        ("src", ["A man.", "Two dogs play."]),
        ("ref", ["Ein Mann.", "Zwei Hunde."]),
    ):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = ("--src", str(tmp_path / "src"), "--ref", str(tmp_path / "ref"))
    code, out, err = call("quantize", str(own), *files)
    assert code == 0
    assert "Translating 2 lines with float32" in err
    assert "difference, second minus first" in out
    assert out.count("chrF2") == 3


def test_one_file_without_the_other_is_a_mistake(call, own):
    code, _, err = call("quantize", str(own), "--src", "x")
    assert code == 2
    assert "Give --src and --ref together, or neither." in err
