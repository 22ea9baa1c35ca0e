"""benchmarks/survival.py on a small random model; nothing is trained and no peer installed."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.random_bundle import bundle

from heed.bundle.bundle import save_bundle
from heed.evaluate.survival import Row, Trial
from heed.text.vocab import train_vocab


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "src").write_text("A man is riding.\nTwo dogs run.\n", encoding="utf-8")
    (tmp_path / "tgt").write_text("Ein Mann reitet gerade.\nZwei Hunde rennen.\n", encoding="utf-8")
    return ["--test-src", str(tmp_path / "src"), "--test-tgt", str(tmp_path / "tgt")]


def test_finished_runs_stand_side_by_side(
    scripts: dict[str, Any],
    files: list[str],
    config_of: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = tmp_path / "model"
    save_bundle(model, bundle(train_vocab(["Two dogs run."] * 9, size=300), config_of))
    flags = [*files, "--out", str(tmp_path / "out"), "--cases", "", "--beam", "1"]
    scripts["survival"].main([*flags, "--run", f"one={model}", "--run", f"two={model}"])
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "| | lines | one | two |"
    assert printed[2].startswith("| unchanged | 2 | ")
    for line in printed[2:]:
        if line.startswith("|"):
            _, _, _, first, second, _ = line.split("|")
            assert first == second
    assert any(line.startswith("other quotes and dashes: left out") for line in printed)
    kept = json.loads((tmp_path / "out" / "survival.json").read_text("utf-8"))
    assert kept["one"]["survival"][0]["key"] == "clean"
    assert kept["one"] == kept["two"]


def test_a_peers_lines_are_shared_out_to_the_trials(scripts: dict[str, Any]) -> None:
    trials = [
        Trial(key="clean", label="", sources=["a", "b"]),
        Trial(key="upper", label="", reason="none"),
        Trial(key="typo", label="", sources=["c"]),
    ]
    answers = scripts["survival"].split(["A", "B", "C"], trials)
    assert [[answer.text for answer in each] for each in answers] == [["A", "B"], [], ["C"]]


def test_a_cell_has_the_score_its_share_and_what_is_kept(scripts: dict[str, Any]) -> None:
    cell = scripts["survival"].cell
    assert cell(Row(key="", label="", bleu=30.0)) == "30.00"
    assert cell(Row(key="", label="", bleu=30.0, clean_bleu=40.0)) == "30.00 (75.0%)"
    assert cell(Row(key="", label="", kept=0.5)) == "kept 50.0%"
