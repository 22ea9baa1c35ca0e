"""benchmarks/scale.py on tiny corpora: made up the same every time, and every number is there."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "benchmarks" / "scale.py"


@pytest.fixture
def scale(scripts: dict[str, ModuleType]) -> ModuleType:
    return scripts["scale"]


def test_a_corpus_is_the_same_every_time_and_repeats_few_pairs(
    scale: ModuleType, tmp_path: Path
) -> None:
    pairs = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        scale.write_corpus({"pairs": 1000, "seed": 1, "folder": str(folder)})
        sides = (
            (folder / f"train.{side}").read_text("utf-8").splitlines() for side in scale.SYLLABLES
        )
        pairs.append(list(zip(*sides, strict=True)))
    assert pairs[0] == pairs[1]
    assert len(pairs[0]) == 1000
    assert 950 < len(set(pairs[0])) < 1000
    assert all(len(src.split()) == len(tgt.split()) > 1 for src, tgt in pairs[0])


def test_the_table_has_a_row_for_each_size(scale: ModuleType) -> None:
    found = dict.fromkeys(scale.MEANINGS, 1234.5)
    header, rule, *rows = scale.table([found, found]).splitlines()
    assert header.count("|") == rule.count("|") == rows[0].count("|")
    assert rows[0].startswith("| 1,234 | 1,234 | 1,234.5 |")
    assert len(rows) == 2


def test_the_parent_stays_light_so_that_a_childs_peak_memory_is_its_own(scale: ModuleType) -> None:
    program = f"import runpy, sys; runpy.run_path({str(SCRIPT)!r}); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, cwd=SCRIPT.parent
    )
    assert not {"torch", "numpy", "heed"} & set(done.stdout.decode().split())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_number_is_measured(scale: ModuleType) -> None:
    command = [sys.executable, str(SCRIPT), "--pairs", "3000", "--json"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=550)
    (found,) = json.loads(done.stdout)
    assert set(found) == set(scale.MEANINGS)
    assert all(value > 0 for value in found.values())
