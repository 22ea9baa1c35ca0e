"""benchmarks/families.py: the table takes the middle seed, and a finished run is not run again."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def record(case: str, seed: int, bleu: float) -> dict[str, Any]:
    """What one run leaves, with a given BLEU."""
    scores = {
        name: {"value": value, "low": value - 1, "high": value + 1}
        for name, value in (("bleu", bleu), ("chrf", 2 * bleu))
    }
    return {
        "case": case,
        "seed": seed,
        "parameters": 2_350_000,
        "train_tokens_per_s": 1000.0 + seed,
        "translate_tokens_per_s": 500.0,
        "memory_mb": 700.0,
        "scores": scores,
        "by_length": [{"label": "0-10", "n": 5, "bleu": bleu, "chrf": 1.0}],
    }


def test_a_row_has_the_median_seed_and_the_range(scripts: dict[str, ModuleType]) -> None:
    runs = [record("conv", seed, bleu) for seed, bleu in ((1, 30.0), (2, 36.0), (3, 33.0))]
    lines = scripts["families"].table([*runs, record("transformer", 1, 40.0)]).splitlines()
    assert lines[2].startswith("| transformer | 1 | 2.35 million | 40.00 [39.00, 41.00] |")
    assert lines[3] == (
        "| conv | 3 | 2.35 million | 33.00 [32.00, 34.00] | 30.00 – 36.00 | 66.00 [65.00, 67.00] "
        "| 1,002 | 500 | 700 | 33.0 |"
    )


def test_what_is_finished_is_kept(
    scripts: dict[str, ModuleType], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "rnn-no-attention-1"
    folder.mkdir()
    kept = record("rnn, no attention", 1, 20.0)
    (folder / "families.json").write_text(json.dumps(kept), encoding="utf-8")
    cases = ("--seeds", "1", "--cases", "rnn, no attention")
    scripts["families"].main(["--out", str(tmp_path), *cases])
    assert "rnn, no attention, seed 1: BLEU 20.00" in capsys.readouterr().out
    scripts["families"].main(["--out", str(tmp_path), "--table"])
    assert "| rnn, no attention | 1 |" in capsys.readouterr().out
