"""Runs on a terminal."""

from pathlib import Path

from tests.explain.training.made import epoch, start, step, validation, write

from heed.explain.training.recipes import differing
from heed.explain.training.run import TrainingRun
from heed.explain.training.table import sparkline, table


def test_a_sparkline_goes_from_the_lowest_to_the_highest() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([7.0, None, 0.0]) == "█ ▁"
    assert sparkline([2.0, 2.0]) == "▄▄"
    assert sparkline([1e308, -1e308]) == "█▁"
    assert sparkline([]) == sparkline([None]) == ""
    assert sparkline(list(range(400))) == sparkline(list(range(40)))
    assert sparkline([0.0, None] * 40) == "▄" * 40


def test_one_run_is_a_headline_curves_and_the_latest_events(tmp_path: Path) -> None:
    folder = write(tmp_path / "one", [start(), epoch(0, 0), step(20, 4.0), step(40, 3.0)])
    alarm = {"kind": "alarm", "step": 40, "text": "it overfits", "remedy": "more text"}
    write(folder, [validation(40, 12.5), alarm, {"kind": "pause", "step": 40}])
    run = TrainingRun(folder)
    run.refresh()
    lines = table([run])
    assert lines[0] == (
        "one: Stopped and saved at step 40: BLEU 12.5. Repeat the command to continue from there."
    )
    assert any("train loss" in line and "█▁" in line and "4.000 → 3.000" in line for line in lines)
    assert "  step     40  It overfits." in lines
    assert lines[lines.index("  step     40  It overfits.") + 1].strip() == "To do: more text"
    assert all(line.isascii() for line in table([run], is_ascii=True))


def test_two_runs_end_with_the_settings_in_which_they_differ(tmp_path: Path) -> None:
    runs = []
    for name, rate in (("one", 0.1), ("two", 0.2)):
        recipe = f"[training]\nlearning_rate = {rate}\nseed = 1\n"
        runs.append(TrainingRun(write(tmp_path / name, [start()], recipe)))
        runs[-1].refresh()
    assert table(runs)[-1].split() == ["training.learning_rate", "0.1", "0.2"]
    assert table([runs[0], runs[0]])[-1] == "The settings of these runs are the same."
    assert differing([{"a": 1}, {"b": 2}]) == {"a": [1, None], "b": [None, 2]}
