"""A run folder, read: growing, resumed, killed, finished, hostile."""

import json
import shutil
from pathlib import Path

import pytest
from tests.explain.training.made import epoch, start, step, validation, write

from heed.disk.files import cut_json_lines, lock
from heed.explain.training.headline import headline
from heed.explain.training.report import Cursor, cursor_of, news, status, whole
from heed.explain.training.run import TrainingRun

RECIPE = 'task = "translate"\n[training]\nlearning_rate = 0.002\nmax_steps = 100\n'


def read(folder: Path) -> TrainingRun:
    run = TrainingRun(folder)
    run.refresh()
    return run


def test_curves_hold_what_the_log_says(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", [start(), epoch(0, 0), step(20, 4.0), step(40, 3.0)], RECIPE)
    write(folder, [validation(40, 10.0)])
    history = read(folder).history
    assert history.steps.as_dict() == {
        "step": [20, 40],
        "epoch": [0.4, 0.8],
        "seconds": [10.0, 20.0],
        "loss": [4.0, 3.0],
        "learning_rate": [0.001, 0.001],
        "gradient_norm": [1.5, 1.5],
        "tokens_per_s": [1000.0, 1000.0],
        "memory_mb": [512.0, 512.0],
        "left_s": [40.0, 30.0],
    }
    (row,) = history.validations.rows
    found = dict(zip(history.validations.names, row, strict=True))
    assert (found["bleu_low"], found["bleu"], found["bleu_high"]) == (9.0, 10.0, 11.5)
    assert (found["loss"], found["train_loss"], found["epoch"]) == (2.5, 1.9, 0.8)


def test_epochs_are_exact_across_a_resumed_run(tmp_path: Path) -> None:
    """A sitting that goes on at batch 30 of 50, with 1 batch a step."""
    folder = write(tmp_path / "run", [start(), epoch(0, 0), step(20)])
    write(folder, [start(30), epoch(0, 30, batch=30), step(40), epoch(1, 50), step(60)])
    history = read(folder).history
    assert history.steps.column("epoch") == pytest.approx([0.4, 0.8, 1.2])
    assert [mark.kind for mark in history.marks] == ["resumed"]


def test_logs_that_do_not_say_where_an_epoch_begins_are_read_nearly_right(tmp_path: Path) -> None:
    old = {"kind": "epoch", "epoch": 1, "batches": 50, "steps": 50}
    folder = write(tmp_path / "run", [start(), epoch(0, 0), step(40), old, step(60)])
    assert read(folder).history.steps.column("epoch") == pytest.approx([0.8, 1.4])


def test_states_from_an_empty_folder_to_the_end(tmp_path: Path) -> None:
    run = TrainingRun(tmp_path / "run")
    assert not run.refresh() and run.state == "empty"
    (tmp_path / "run").mkdir()
    with lock(tmp_path / "run"):
        assert run.refresh() and run.state == "preparing"
        write(run.folder, [start(), epoch(0, 0), step(20)])
        assert run.refresh() and run.state == "training"
        assert not run.refresh()
    assert run.refresh() and run.state == "interrupted"
    with lock(tmp_path / "run"):
        write(run.folder, [start(20), {"kind": "pause", "step": 25}])
    assert run.refresh() and run.state == "paused"
    with lock(tmp_path / "run"):
        write(run.folder, [start(25)])
        run.refresh()
        assert run.state == "training"
        write(run.folder, [{"kind": "end", "step": 100, "elapsed_s": 50.0}])
        run.refresh()
        assert run.state == "finished"
    run.refresh()
    assert (run.state, status(run)["share"]) == ("finished", 1.0)


def test_the_best_is_named_by_the_score_that_chose_it(tmp_path: Path) -> None:
    run = TrainingRun(tmp_path / "run")
    run.folder.mkdir()
    (run.folder / "recipe.toml").write_text('[training]\nmetric = "chrf"\n')
    write(
        run.folder,
        [
            start(),
            epoch(0, 0),
            validation(30, 20.2, chrf=43.8),
            validation(60, 19.4, chrf=44.7),
            validation(90, 19.9, chrf=44.1, is_best=False),
            {"kind": "end", "step": 100, "elapsed_s": 50.0},
        ],
    )
    run.refresh()
    assert [mark.text for mark in run.history.marks if mark.kind == "best"] == [
        "The best so far: chrF 43.8, BLEU 20.2.",
        "The best so far: chrF 44.7, BLEU 19.4.",
    ]
    assert status(run)["best"] == {"step": 60, "score": 19.4, "words": "chrF 44.7, BLEU 19.4"}
    assert headline(run) == "Finished after 50 seconds: chrF 44.7, BLEU 19.4."


def test_headlines_are_sentences_for_an_owner(tmp_path: Path) -> None:
    run = TrainingRun(tmp_path / "run")
    assert headline(run) == (
        "There is no folder run: it was moved or removed, or does not exist yet."
    )
    forecast = {"bleu": {"low": 35.1, "middle": 36.8, "high": 39.2}}
    run.folder.mkdir()
    with lock(run.folder):
        run.refresh()
        assert headline(run).startswith("Preparing")
        for teacher in ("teacher-1", "teacher-2"):
            (run.folder / "teachers" / teacher).mkdir(parents=True)
        assert headline(run) == "Teacher 2 is at work: teachers/teacher-2 shows its training."
        (run.folder / "data").mkdir()  # its own corpus
        assert headline(run).startswith("Preparing")
    run.refresh()
    assert headline(run) == "Stopped after teacher 2 began. Repeat the command to continue."
    shutil.rmtree(run.folder / "teachers")
    assert headline(run) == "Nothing has been trained here yet."
    with lock(run.folder):
        write(run.folder, [start(), epoch(0, 0), step(20, left_s=300.0)])
        run.refresh()
        assert headline(run) == "No score yet, about 5 minutes left."
        write(run.folder, [validation(30, 34.1, forecast=forecast), step(40, left_s=170.0)])
        run.refresh()
        assert headline(run) == "BLEU 34.1, about 3 minutes left, ends near 37 (35 to 39)."
    run.refresh()
    assert headline(run) == (
        "Ended at step 40 without saving: BLEU 34.1. Repeat the command to start again."
    )
    (run.folder / "checkpoints" / "step-000030").mkdir(parents=True)
    assert headline(run).endswith("Repeat the command to continue from step 30.")
    write(run.folder, [{"kind": "pause", "step": 40}])
    run.refresh()
    assert headline(run) == (
        "Stopped and saved at step 40: BLEU 34.1. Repeat the command to continue from there."
    )
    write(run.folder, [{"kind": "end", "step": 40, "elapsed_s": 4000.0}])
    run.refresh()
    assert headline(run) == "Finished after 1 hour and 7 minutes: BLEU 34.1."


def test_events_are_marks_with_their_place_and_their_remedy(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "run",
        [
            start(),
            epoch(0, 0),
            step(10, None, is_skipped=True),
            validation(20, 5.0),
            {"kind": "checkpoint", "step": 20},
            {"kind": "alarm", "step": 20, "text": "the rate is high", "remedy": "halve it"},
            {"kind": "mend", "step": 25, "text": "back to step 20"},
            {"kind": "note", "step": 25, "text": "a remark"},
        ],
    )
    run = read(folder)
    kinds = [mark.kind for mark in run.history.marks]
    assert kinds == ["skipped", "best", "checkpoint", "alarm", "mend", "note"]
    (alarm,) = run.history.alarms
    assert (alarm.text, alarm.remedy) == ("The rate is high.", "halve it")
    assert (alarm.step, alarm.epoch, alarm.seconds) == (20, 0.4, 10.0)


def test_news_since_a_cursor_complete_what_was_read(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", [start(), epoch(0, 0), step(20), validation(20, 5.0, "a")])
    run = read(folder)
    before, cursor = whole(run), cursor_of(run)
    write(folder, [step(40), {"kind": "checkpoint", "step": 40}, validation(40, 6.0, "b", "c")])
    run.refresh()
    new = news(run, cursor)
    assert new is not None
    after = whole(run)
    for part in ("steps", "validations"):
        joined = {name: before[part][name] + new[part][name] for name in before[part]}
        assert joined == after[part]
    assert before["marks"] + new["marks"] == after["marks"]
    assert new["samples"] == after["samples"]
    nothing = news(run, cursor_of(run))
    assert nothing is not None
    assert nothing["steps"]["step"] == nothing["marks"] == []


def test_after_the_log_was_cut_all_that_was_read_is_void(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", [start(), epoch(0, 0), step(20), step(40)])
    run = read(folder)
    cursor = cursor_of(run)
    cut_json_lines(folder / "metrics.jsonl", lambda event: event["step"] <= 20)
    run.refresh()
    assert news(run, cursor) is None
    assert run.history.steps.column("step") == [20]
    stranger = Cursor(generation=99, n_halvings=0, n_steps=0, n_validations=0, n_marks=0)
    assert news(run, stranger) is None


HOSTILE = [
    {"kind": "start", "step": "x", "text": [1], "environment": 5, "parameters": 1e300},
    {"kind": "start", "environment": {"cpu": "<script>alert(1)</script>", "threads": []}},
    {"kind": "epoch", "epoch": -5, "batches": 0, "steps": 0, "batch": 1e308},
    {"kind": "epoch", "epoch": 10**200, "steps": -1, "batches": -1},
    {"kind": "step", "step": 10**30, "elapsed_s": 10**400, "nll": True, "left_s": "soon"},
    {"kind": "step", "step": 2, "elapsed_s": -1e308, "nll": 1e308, "rate_factor": 1e308},
    {"kind": "step", "step": 3, "elapsed_s": 1e308, "nll": -1e308, "gradient_norm": [1]},
    {"kind": "validation", "step": 3, "samples": "none", "intervals": [], "forecast": 3},
    {"kind": "validation", "bleu": "<b>", "samples": [None, 5, {"src": 1}, {"hyp": "\ud800x"}]},
    {"kind": "validation", "bleu": 1e300, "intervals": {"bleu": ["a", None]}, "watch": 7},
    {"kind": "validation", "forecast": {"bleu": {"low": "a"}}, "signatures": {"bleu": {}}},
    {"kind": "validation", "samples": [{"src": "a" * 3000, "hyp": "b c " * 1000}] * 100},
    {"kind": "validation", "samples": [{"src": "a" * 3000, "hyp": "b d " * 1000}] * 100},
    {"kind": "alarm", "text": None, "remedy": {}},
    {"kind": "alarm", "text": "x" * 10**5, "remedy": "\udfff"},
    {"kind": ["end"]},
    {"kind": "__class__"},
    {},
]


def test_a_hostile_log_is_read_and_its_report_is_plain_json(tmp_path: Path) -> None:
    recipe = "a = nan\nb = inf\n[training]\nlearning_rate = 'x'\n[[c]]\nd = 1979-05-27\n"
    folder = write(tmp_path / "<img src=x>", HOSTILE, recipe)
    with open(folder / "metrics.jsonl", "ab") as file:
        file.write(b"\x00\xff{]\n" + b"x" * (2 << 20) + b"\n{")
    run = read(folder)
    sent = json.dumps(whole(run), ensure_ascii=False, allow_nan=False).encode("utf-8")
    assert len(sent) < 1_000_000
    assert run.n_unreadable == 2
    assert isinstance(headline(run), str)


def test_a_recipe_that_is_no_recipe_leaves_the_settings_empty(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", [start()])
    for content in (b"\xff", b"a = [", b"a = " + b"[" * 10_000, b"x" * (64 << 20)):
        (folder / "recipe.toml").write_bytes(content)
        assert read(folder).settings == {}
    (folder / "recipe.toml").unlink()
    (folder / "recipe.toml").symlink_to("/etc/passwd")
    assert read(folder).settings == {}


def test_a_million_steps_stay_a_few_thousand_points(tmp_path: Path) -> None:
    run = read(write(tmp_path / "run", [start(), epoch(0, 0, batches=10**6)]))
    for number in range(20, 200_020, 20):
        run.history.take(step(number, loss=number % 40 / 20))
    rows = run.history.steps
    assert (len(rows.rows), rows.stride, rows.n_halvings) == (2500, 4, 2)
    assert rows.column("step")[:2] == [80, 160]
    assert set(rows.column("loss")) == {0.5}
    assert news(run, cursor_of(run)) is not None
