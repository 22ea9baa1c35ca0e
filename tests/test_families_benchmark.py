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


def test_sizes_of_a_corpus_are_its_first_pairs(
    scripts: dict[str, ModuleType],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for side in ("src", "tgt"):
        lines = "".join(f"{side} {n}\n" for n in range(5))
        (tmp_path / side).write_text(lines, encoding="utf-8")
    asked: list[tuple[str, str]] = []

    def run(case: str, seed: int, options: Any) -> dict[str, Any]:
        src, tgt = (Path(path).read_text("utf-8") for path in (options.src, options.tgt))
        n_pairs = src.count("\n")
        assert tgt == "".join(f"tgt {n}\n" for n in range(n_pairs))
        assert options.limit[:2] == ("--max-steps", "7")
        asked.append((case, options.out))
        return record(case, seed, 10.0 * n_pairs + seed)

    monkeypatch.setattr(scripts["families"], "run", run)
    files = [part for name in scripts["families"].FILES for part in (f"--{name}", "none")]
    files[1], files[3] = str(tmp_path / "src"), str(tmp_path / "tgt")
    settings = ("--out", str(tmp_path / "out"), "--pairs", "1,3", "--seeds", "1,3", "--steps", "7")
    scripts["data_sizes"].main([*settings, *files])
    assert len(asked) == 2 * 2 * len(scripts["data_sizes"].CASES)
    assert {out for _, out in asked} == {str(tmp_path / "out" / n) for n in ("1", "3")}
    assert "| conv | 12.00 | 24.00 | 32.00 | 64.00 |" in capsys.readouterr().out
