"""benchmarks/attention.py on short sequences: every number is there, and exponents are slopes."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "benchmarks" / "attention.py"
LENGTHS = [16, 32, 48]


@pytest.fixture
def attention(scripts: dict[str, ModuleType]) -> ModuleType:
    return scripts["attention"]


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_an_exponent_is_that_of_the_longest(attention: ModuleType, power: float) -> None:
    lengths = [64, 128, 256, 512, 1024]
    values = [1e9, *(3 * n**power for n in lengths[1:])]  # the first is overhead
    assert attention.exponent(lengths, values) == pytest.approx(power)


def test_the_table_has_a_dash_where_nothing_was_measured(attention: ModuleType) -> None:
    found = {"full": [0.001, 0.004, 0.9], "kept": [0.002, 0.008]}
    assert attention.table([1000, 2000, 4000], found, "ms", 1e3).splitlines() == [
        "| ms | 1,000 | 2,000 | 4,000 | exponent |",
        "|---|--:|--:|--:|--:|",
        "| full | 1.0 | 4.0 | 900 | 4.91 |",
        "| kept | 2.0 | 8.0 | – | 2.00 |",
    ]


@pytest.mark.parametrize("is_causal", [False, True])
def test_each_variant_is_timed_forward_and_with_gradients(
    attention: ModuleType, is_causal: bool
) -> None:
    found = attention.measure_times({"lengths": LENGTHS, "rounds": 1, "causal": is_causal})
    assert list(found) == ["forward", "forward and backward"]
    for seconds in found.values():
        assert list(seconds) == list(attention.KINDS)
        assert all(len(values) == 3 and min(values) > 0 for values in seconds.values())


def test_weights_are_kept_up_to_a_length_only(attention: ModuleType) -> None:
    assert attention.lengths_of("full, weights kept", [4096, 8192]) == [4096]
    assert attention.lengths_of("full", [4096, 8192]) == [4096, 8192]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_time_and_memory_are_measured_in_processes_of_their_own() -> None:
    lengths = ["--lengths", "16", "256", "--rounds", "1", "--json"]
    done = subprocess.run([sys.executable, str(SCRIPT), *lengths], capture_output=True, check=True)
    found = json.loads(done.stdout)
    for mode in ("forward", "forward and backward"):
        for values in found["mb"][mode].values():
            assert 0 <= values[0] <= values[1]
        assert found["mb"][mode]["full, weights kept"][1] > 1  # 4 heads of 256 x 256 floats
    assert set(found["seconds"]) == set(found["mb"])
