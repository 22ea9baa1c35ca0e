"""Whole runs on small real files: finished, paused, killed, refused."""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from heed.bundle.bundle import load_bundle
from heed.data.corpus import Corpus
from heed.disk.files import read_json_lines
from heed.disk.folders import Manifest, read_manifest, verify_directory
from heed.engine.packed import save_rounded
from heed.errors import ConfigError, DataError, HeedError, RunError
from heed.machine import threads
from heed.train.run import artifacts as keeper
from heed.train.run import run as run_module
from heed.train.run import setup
from heed.train.run.checkpoint import load_newest
from heed.train.run.run import Outcome
from heed.train.step.control import Request, ask
from heed.train.step.progress import Progress
from heed.train.step.validate import Validation
from heed.translate.lines import MIN_SOURCE_TOKENS
from heed.translate.translator import load

Run = Callable[..., tuple[Outcome, list[dict[str, Any]]]]


def digest(out: Path) -> str:
    return hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()


def test_a_finished_run_folder_is_a_model_folder(small_run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    outcome, _ = small_run(out)
    assert outcome.is_finished
    assert not outcome.was_finished
    assert outcome.progress.step == 12
    names = {entry.name for entry in out.iterdir()}
    expected = {"config.json", "model.safetensors", "spm.model", "README.md", "recipe.toml"}
    assert expected | {"metrics.jsonl", "checkpoints", "data"} <= names
    bundle = load_bundle(out)
    assert (bundle.source_lang, bundle.target_lang) == ("de", "xx")
    # Longer than any sentence of this corpus, since below it cutting would lose more.
    assert load(out).reader.max_source_tokens == MIN_SOURCE_TOKENS
    assert isinstance(load(out)("ein hund"), str)


def test_a_model_card_lists_a_score_of_zero(
    small_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    monkeypatch.setattr(keeper, "best_validation", lambda out: {"bleu": 0.0, "chrf": 3.4})
    _, events = small_run(out)
    assert (events[-1]["kind"], events[-1]["bleu"]) == ("end", 0.0)
    assert "| BLEU on development sentences | 0 |" in (out / "README.md").read_text("utf-8")


def test_a_checkpoint_of_a_run_in_bfloat16_holds_float32(small_run: Run, tmp_path: Path) -> None:
    """Only products are computed in it. NumPy, which writes checkpoints, has no such type."""
    small_run(tmp_path / "run", stop_at=2, precision="bfloat16", ema_decay=0.9)
    found = load_newest(tmp_path / "run")
    assert found
    for tensors in (found.model, found.optimizer, found.average):
        assert {tensor.dtype for tensor in tensors.values()} == {torch.float32}


def test_sizes_that_follow_from_the_vocabulary_may_be_given_if_they_are_right(
    small_run: Run, tmp_path: Path
) -> None:
    wrong = {"model": {"src_vocab_size": 9000, "tgt_vocab_size": 500}}
    with pytest.raises(
        ConfigError, match=r"^2 settings .*\n.*src_vocab_size .* but is set to 9000"
    ):
        small_run(tmp_path / "run", settings=wrong)
    assert not (tmp_path / "run" / "checkpoints").exists()
    small_run(tmp_path / "run", max_steps=1)  # other settings: nothing was learned with the wrong
    shape = load_bundle(tmp_path / "run").config.to_dict()
    outcome, _ = small_run(tmp_path / "again", max_steps=1, settings={"model": shape})
    assert outcome.is_finished


def test_int8_weights_of_an_earlier_model_do_not_stay(small_run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    small_run(out, max_steps=4)
    save_rounded(load_bundle(out))
    assert "model.int8.safetensors" in read_manifest(out).files
    _, events = small_run(out, max_steps=8)
    assert not (out / "model.int8.safetensors").exists()
    notes = [event["text"] for event in events if event["kind"] == "note"]
    assert (
        f"the int8 weights of the earlier model were removed: run heed quantize {out} again"
        in notes
    )
    _, events = small_run(out, max_steps=9)
    assert not any("int8" in event.get("text", "") for event in events)


def test_the_same_call_again_says_that_it_is_finished(small_run: Run, tmp_path: Path) -> None:
    small_run(tmp_path / "run")
    before = digest(tmp_path / "run")
    assert small_run(tmp_path / "run")[0].was_finished
    assert digest(tmp_path / "run") == before


def test_a_finished_run_removes_what_a_kill_left_among_its_checkpoints(
    small_run: Run, tmp_path: Path
) -> None:
    checkpoints = tmp_path / "run" / "checkpoints"
    small_run(tmp_path / "run")
    kept = sorted(checkpoints.iterdir())
    for name in ("step-000005.tmp-abcd1234", "best.tmp-abcd1234"):
        (checkpoints / name).mkdir()
        (checkpoints / name / "model.safetensors").touch()
    assert small_run(tmp_path / "run")[0].was_finished
    assert sorted(checkpoints.iterdir()) == kept


def test_paused_and_continued_equals_undisturbed(small_run: Run, tmp_path: Path) -> None:
    small_run(tmp_path / "whole", ema_decay=0.9)
    paused, _ = small_run(tmp_path / "parts", stop_at=4, ema_decay=0.9)
    assert not paused.is_finished
    assert paused.progress.step == 4
    assert isinstance(load(tmp_path / "parts")("ein hund"), str)  # usable before it is finished
    assert small_run(tmp_path / "parts", ema_decay=0.9)[0].is_finished
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")


def test_metrics_hold_each_validation_once_after_a_pause(small_run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    small_run(out, stop_at=7)
    small_run(out)
    events = list(read_json_lines(out / "metrics.jsonl"))
    assert [e["step"] for e in events if e["kind"] == "validation"] == [5, 10, 12]
    assert events[-1]["kind"] == "end"


def validated(out: Path) -> list[int]:
    events = read_json_lines(out / "metrics.jsonl")
    return [event["step"] for event in events if event["kind"] == "validation"]


def test_a_run_given_more_steps_validates_as_often_as_a_longer_one(
    small_run: Run, tmp_path: Path
) -> None:
    out, spread = tmp_path / "run", {"validate_every": None, "validations": 4}
    small_run(out, max_steps=8, **spread)
    assert validated(out) == [2, 4, 6, 8]

    def die_at_ten(event: dict[str, Any]) -> None:
        if event["kind"] == "step" and event["step"] == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # before there is a checkpoint of the longer run
        small_run(out, max_steps=16, on=die_at_ten, **spread)
    small_run(out, max_steps=16, stop_at=9, **spread)
    small_run(out, max_steps=16, stop_at=13, **spread)
    small_run(out, max_steps=16, **spread)
    assert validated(out) == [2, 4, 6, 8, 12, 16]


def test_validations_are_counted_anew_only_for_another_budget() -> None:
    """A validation that took long lets the time given look longer, so the share may fall."""
    config = SimpleNamespace(validate_every=None, validations=10, time_s=60.0, max_steps=None)
    for before, made in ((60.0, 2), (30.0, 1), (None, 1)):
        progress = SimpleNamespace(validations=2, time_s=before, max_steps=None)
        trainer: Any = SimpleNamespace(config=config, progress=progress, share=0.19)
        setup._recount_validations(trainer)
        assert progress.validations == made


@pytest.mark.parametrize("later", [4.0, 2.0], ids=["worse", "better than at the checkpoint"])
def test_a_best_model_newer_than_the_checkpoint_stays_with_its_numbers(
    small_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: float
) -> None:
    """After a kill, a run limited by time validates at other steps than it would have."""
    out, every = tmp_path / "run", {"validate_every": 2, "checkpoint_every": 3, "max_steps": 6}
    losses = {2: 3.0, 4: 1.25, 6: 4.0}

    def validate(trainer: Any, *_: Any) -> Validation:
        loss = losses[trainer.progress.step]
        return Validation(loss=loss, bleu=None, chrf=None, n_translated=0, seconds=0.0, samples=[])

    def die_at_five(event: dict[str, Any]) -> None:
        if event["kind"] == "step" and event["step"] == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "validate_trainer", validate)
    with pytest.raises(KeyboardInterrupt):
        small_run(out, on=die_at_five, metric="loss", **every)
    best = digest(out / "checkpoints" / "best")
    losses |= {4: 5.0, 6: later}
    outcome, events = small_run(out, metric="loss", **every)
    assert digest(out) == best
    assert not any(event["is_best"] for event in events if event["kind"] == "validation")
    assert events[-1]["loss"] == 1.25
    assert outcome.validation and outcome.validation["step"] == 4
    (line,) = [line for line in (out / "README.md").read_text().splitlines() if "loss" in line]
    assert "| 1.25 |" in line


@pytest.mark.parametrize("is_removed", [False, True])
@pytest.mark.parametrize("stop_at", [7, 12])
def test_a_best_model_that_is_lost_is_written_again(
    small_run: Run, tmp_path: Path, stop_at: int, is_removed: bool
) -> None:
    out = tmp_path / "run"
    small_run(out, stop_at=stop_at)
    best = out / "checkpoints" / "best"
    if is_removed:
        shutil.rmtree(best)
    else:
        (best / "model.safetensors").write_bytes(b"damaged")
    if stop_at == 12:  # as after a kill before the model was written
        (out / "manifest.json").unlink()
    outcome, events = small_run(out)
    assert outcome.is_finished
    assert isinstance(load(out)("ein hund"), str)
    notes = [event["text"] for event in events if event["kind"] == "note"]
    assert any(f"{best} is lost: " in note for note in notes)
    assert verify_directory(best)


def test_the_best_model_of_a_removed_recipe_does_not_stay(small_run: Run, tmp_path: Path) -> None:
    """Its score may be one of another kind."""
    out, every = tmp_path / "run", {"validate_every": 2, "max_steps": 4}

    def die_at_three(event: dict[str, Any]) -> None:
        if event["kind"] == "step" and event["step"] == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small_run(out, on=die_at_three, metric="chrf", first_embeddings="random", **every)
    assert [path.name for path in (out / "checkpoints").iterdir()] == ["best"]
    (out / "recipe.toml").unlink()
    outcome, _ = small_run(out, metric="loss", first_embeddings="random", **every)
    assert outcome.validation and outcome.validation["step"] == 4


@pytest.mark.parametrize("request_", [Request.SAVE, Request.STOP])
def test_a_control_file_saves_or_stops_after_the_step(
    small_run: Run, tmp_path: Path, request_: Request
) -> None:
    out = tmp_path / "run"

    def at_step_four(event: dict[str, Any]) -> None:
        if event["kind"] == "step" and event["step"] == 4:
            ask(out, request_)

    outcome, events = small_run(out, on=at_step_four)
    checkpoints = [e["step"] for e in events if e["kind"] == "checkpoint"]
    logged = list(read_json_lines(out / "metrics.jsonl"))
    if request_ == Request.SAVE:
        assert (outcome.is_finished, checkpoints) == (True, [4, 12])
        assert "asked to save by control.json" in [e.get("text") for e in logged]
    else:
        assert (outcome.is_finished, checkpoints) == (False, [4])
        assert (logged[-1]["kind"], logged[-1]["step"]) == ("pause", 4)
    small_run(out)
    small_run(tmp_path / "whole")
    assert digest(out) == digest(tmp_path / "whole")


def test_a_request_to_an_earlier_sitting_is_forgotten(small_run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    small_run(out, stop_at=4)
    ask(out, Request.STOP)
    assert small_run(out)[0].is_finished


def test_a_request_during_the_preparation_stops_after_the_first_step(
    small_run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "run"

    def at_reading(event: dict[str, Any]) -> None:
        if event["kind"] == "prepared":
            ask(out, Request.STOP)

    outcome, _ = small_run(out, on=at_reading)
    assert (outcome.is_finished, outcome.progress.step) == (False, 1)


def test_subword_regularization_segments_anew_and_stays_exact(
    small_run: Run, tmp_path: Path
) -> None:
    for name, alpha in (("first", 0.2), ("second", 0.2), ("plain", 0.0)):
        settings = {"tokenizer": {"kind": "unigram", "subword_alpha": alpha}}
        small_run(tmp_path / name, settings=settings)
    assert digest(tmp_path / "first") == digest(tmp_path / "second")
    assert digest(tmp_path / "plain") != digest(tmp_path / "first")


def test_average_of_checkpoints_is_tried_at_the_end(small_run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    small_run(out, average_checkpoints=2, keep_checkpoints=4, checkpoint_every=3)
    events = [e for e in read_json_lines(out / "metrics.jsonl") if e["kind"] == "average"]
    assert [event["checkpoints"] for event in events] == [2]
    assert len(list((out / "checkpoints").glob("step-*"))) == 4


def test_a_changed_setting_is_refused_by_name(small_run: Run, tmp_path: Path) -> None:
    """Fault R10."""
    out = tmp_path / "run"
    small_run(out, stop_at=4)
    with pytest.raises(RunError, match=r"started with training\.learning_rate = the default.*0\.5"):
        small_run(out, learning_rate=0.5)
    longer, _ = small_run(out, max_steps=14)
    assert longer.progress.step == 14


@pytest.mark.parametrize(
    ("key", "old", "new"),
    [
        ("model.d_model", "d_model = 16", "d_model = 32"),
        ("model.dropout", "dropout = 0.", "dropout = 0.1"),
        ("training.learning_rate", "learning_rate = 0.0", "learning_rate = 0.1"),
    ],
)
def test_an_edited_recipe_is_refused_by_the_name_of_the_setting(
    small_run: Run, tmp_path: Path, key: str, old: str, new: str
) -> None:
    """Fault R10, also where the setting was not asked for by hand."""
    out = tmp_path / "run"
    small_run(out, stop_at=4)
    recipe = (out / "recipe.toml").read_text()
    assert f"\n{old}" in recipe
    (out / "recipe.toml").write_text(recipe.replace(f"\n{old}", f"\n{new}", 1))
    words = rf"run/recipe\.toml: {key} was \S+ when the run began, but is now \S+\. A run contin"
    with pytest.raises(RunError, match=words):
        small_run(out)
    (out / "recipe.toml").write_text(recipe.replace("max_steps = 12", "max_steps = 6"))
    (out / "asked.json").unlink()
    assert small_run(out, stop_at=5, max_steps=7)[0].progress.step == 5, "what may change may"


def test_a_run_of_heed_0_1_goes_on(small_run: Run, tmp_path: Path) -> None:
    """It has no resolved.toml, no checksums in its report and no step in its manifest."""
    out = tmp_path / "run"
    small_run(out, stop_at=4)
    (out / "resolved.toml").unlink()
    report = json.loads((out / "data" / "report.json").read_text())
    del report["checksums"]
    (out / "data" / "report.json").write_text(json.dumps(report))
    assert small_run(out)[0].is_finished
    files = read_manifest(out).files
    (out / "manifest.json").write_bytes(Manifest(files=files, metadata={}).to_bytes())
    assert small_run(out)[0].was_finished


def test_a_changed_corpus_is_refused(small_run: Run, small_corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "run"
    small_run(out, stop_at=4)
    Path(small_corpus.train[0].files[0]).write_text("anders\n" * 60, encoding="utf-8")
    with pytest.raises(RunError, match="was prepared from other data or settings"):
        small_run(out)


def test_an_unknown_setting_is_refused_before_anything_is_written(
    small_run: Run, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="learning_rate"):
        small_run(tmp_path / "run", learnin_rate=0.5)
    with pytest.raises(ConfigError, match="preset must be one of tiny, small, base, big"):
        small_run(tmp_path / "run", settings={"preset": "huge"})
    assert not (tmp_path / "run").exists()


def test_a_damaged_newest_checkpoint_is_passed_over_in_words(
    small_run: Run, tmp_path: Path
) -> None:
    """Fault R6."""
    out = tmp_path / "run"
    small_run(tmp_path / "whole", checkpoint_every=3)
    small_run(out, stop_at=7, checkpoint_every=3)
    newest = sorted((out / "checkpoints").glob("step-*"))[-1] / "model.safetensors"
    data = bytearray(newest.read_bytes())
    data[-1] ^= 1
    newest.write_bytes(data)
    _, events = small_run(out, checkpoint_every=3)
    notes = [event["text"] for event in events if event["kind"] == "note"]
    assert any("is damaged and was skipped" in note for note in notes)
    assert digest(out) == digest(tmp_path / "whole")


def test_a_run_whose_log_a_power_cut_has_damaged_goes_on(small_run: Run, tmp_path: Path) -> None:
    """Fault R3: a finished run, and one that continues."""
    out = tmp_path / "run"
    for limit, is_changed in ((2, True), (2, False), (4, True)):
        log = out / "metrics.jsonl"
        if log.exists():
            first, _, *lines = log.read_bytes().splitlines()
            log.write_bytes(b"\n".join([first, bytes(100), *lines, b""]))
        outcome, events = small_run(out, max_steps=limit)
        assert (outcome.is_finished, outcome.was_finished) == (True, not is_changed)
        told = [event.get("text", "") for event in events if event["kind"] == "note"]
        assert (f"{log}: 1 damaged line removed" in told) == (limit == 4 or not is_changed)
        assert list(read_json_lines(log))


def test_a_checkpoint_of_a_newer_heed_is_refused_in_words(
    small_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        newer = {**asdict(Progress(step=2)), "moons": 3}
        patch.setattr(keeper, "asdict", lambda _: newer)
        small_run(out, stop_at=2, validations=0)
    with pytest.raises(RunError, match=r"step-000002 was saved by a newer heed: .* know moons"):
        small_run(out, validations=0)


def die(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_a_run_that_lost_its_recipe_goes_on_by_the_copy_and_refuses_other_settings(
    small_run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    small_run(out, stop_at=6)
    whole = (out / "recipe.toml").read_bytes()
    (out / "recipe.toml").unlink()
    with pytest.raises(RunError, match="was started with model.n_heads = 2, but this command sets"):
        small_run(out, settings={"model": {"n_heads": 1}})
    small_run(out)
    assert (out / "recipe.toml").read_bytes() == whole
    for name in ("recipe.toml", "resolved.toml"):
        (out / name).unlink()
    with pytest.raises(RunError, match="has checkpoints, but recipe.toml, which holds"):
        small_run(out)


def test_a_run_that_is_beyond_its_new_limit_says_so(small_run: Run, tmp_path: Path) -> None:
    small_run(tmp_path / "run")
    limits = small_run(tmp_path / "run", max_steps=10)[0].limits
    assert limits == "step 12, beyond its limit of 10 steps (--max-steps)"


def test_a_lost_list_of_words_is_noticed(small_run: Run, tmp_path: Path) -> None:
    out, slots = tmp_path / "run", {"tokenizer": {"slots": True}}
    small_run(out, stop_at=2, settings=slots)
    (out / "data" / "words.dat").unlink()
    with pytest.raises(HeedError, match=r"words\.dat"):
        small_run(out, settings=slots)


def spoil(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    "harm",
    [
        lambda out: (out / "manifest.json").unlink(),
        lambda out: (out / "config.json").unlink(),
        lambda out: spoil(out / "model.safetensors"),
    ],
)
def test_a_finished_run_without_a_whole_model_writes_it_again(
    small_run: Run, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    """L5: the last write was killed, or a disk has changed a bit since."""
    out, settings = tmp_path / "run", {"average_checkpoints": 3, "checkpoint_every": 3}
    small_run(out, **settings)
    before = digest(out)
    harm(out)
    outcome, events = small_run(out, **settings)
    assert (outcome.is_finished, outcome.was_finished) == (True, False)
    notes = [event["text"] for event in events if event["kind"] == "note"]
    assert notes[0] == f"{out} does not hold the whole model of step 12: writing it now"
    assert digest(out) == before
    verify_directory(out)
    assert small_run(out, **settings)[0].was_finished


def test_a_run_killed_while_it_learns_doubts_is_not_finished(
    small_run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    small_run(out, max_steps=8)
    for settings in ({}, {"decoding": {"beam_size": 2}}):  # the second time, it ended before
        with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(keeper, "calibrate_after_training", die)
            small_run(out, settings=settings)
        before = digest(out)
        outcome, events = small_run(out, settings=settings)
        assert (outcome.is_finished, outcome.was_finished) == (True, False)
        words = "holds the model of step 12, but the run was killed before its end: writing it now"
        assert next(e["text"] for e in events if e["kind"] == "note") == f"{out} {words}"
        last = list(read_json_lines(out / "metrics.jsonl"))[-1]
        assert (last["kind"], last["step"]) == ("end", 12)
        assert digest(out) == before
        assert small_run(out, settings=settings)[0].was_finished
    (out / "metrics.jsonl").unlink()
    assert small_run(out, settings=settings)[0].was_finished


def test_a_run_killed_while_its_heads_are_chosen_is_not_finished(
    small_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    chosen: list[Path] = []
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(keeper, "calibrate_after_training", lambda *given: [])
        small_run(out, at_end=die)
    outcome, events = small_run(out, at_end=chosen.append)
    assert (outcome.was_finished, chosen, events[-1]["kind"]) == (False, [out], "end")
    outcome, _ = small_run(out, at_end=chosen.append)
    assert (outcome.was_finished, chosen) == (True, [out])


def test_a_finished_run_takes_over_other_decoding_settings(small_run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    small_run(out)
    before = digest(out)
    settings = {"decoding": {"beam_size": 2, "suppress": [5]}}
    outcome, events = small_run(out, settings=settings)
    assert (outcome.is_finished, outcome.was_finished) == (True, False)
    notes = [event["text"] for event in events if event["kind"] == "note"]
    assert notes[0] == f"{out} holds a model with other decoding settings: writing it now"
    assert "step" not in [event["kind"] for event in events]
    options = load(out).options
    assert (options.beam_size, options.suppress) == (2, (5,))
    assert small_run(out, settings=settings)[0].was_finished
    assert not small_run(out, settings={"decoding": {"beam_size": 5, "suppress": []}})[
        0
    ].was_finished
    assert digest(out) == before


def test_a_continued_run_that_was_killed_before_the_last_write_replaces_the_older_model(
    small_run: Run, tmp_path: Path
) -> None:
    settings = {"metric": "loss"}  # in so few steps it is the last model that is the best by loss
    for name in ("whole", "killed"):
        small_run(tmp_path / name, **settings)
    older = digest(tmp_path / "killed")
    small_run(tmp_path / "whole", **settings, max_steps=16)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(keeper, "count_parameters", die)
        small_run(tmp_path / "killed", **settings, max_steps=16)
    assert digest(tmp_path / "killed") == older
    again, _ = small_run(tmp_path / "killed", **settings, max_steps=16)
    assert not again.was_finished
    assert digest(tmp_path / "killed") == digest(tmp_path / "whole") != older


def test_a_limit_below_what_is_done_ends_the_run_without_another_step(
    small_run: Run, tmp_path: Path
) -> None:
    small_run(tmp_path / "run", stop_at=4)
    outcome, events = small_run(tmp_path / "run", max_steps=2)
    assert (outcome.is_finished, outcome.progress.step) == (True, 4)
    assert "step" not in [event["kind"] for event in events]
    assert isinstance(load(tmp_path / "run")("ein hund"), str)
    again, _ = small_run(tmp_path / "run", max_steps=2)
    assert again.was_finished
    assert again.limits == "step 4, beyond its limit of 2 steps (--max-steps)"


@pytest.mark.parametrize(
    ("first", "limits"),
    [
        ({"max_steps": 3}, "its limit of 3 steps (--max-steps)"),
        ({"max_steps": 1}, "its limit of 1 step (--max-steps)"),
        ({"max_steps": None, "time_s": 1}, "its limit of 1s (--time)"),
        (
            {"max_steps": 30, "validate_every": 1, "patience": 1, "learning_rate": 1e-9},
            "1 validation without a better score (training.patience)",
        ),
    ],
)
def test_a_finished_run_tells_the_limit_that_ended_it(
    small_run: Run, tmp_path: Path, first: dict[str, Any], limits: str
) -> None:
    small_run(tmp_path / "run", **first)
    outcome, _ = small_run(tmp_path / "run", **first)
    assert outcome.was_finished
    assert outcome.limits == limits


def test_a_model_without_checkpoints_is_said_to_be_replaced(small_run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = f"{out} holds the model of step 2, but no checkpoint to continue from: training starts"

    def is_said(events: list[dict[str, Any]]) -> bool:
        notes = [event["text"] for event in events if event["kind"] == "note"]
        return any(text.startswith(words) for text in notes)

    assert not is_said(small_run(out, max_steps=1)[1])
    assert not is_said(small_run(out, max_steps=2)[1])
    shutil.rmtree(out / "checkpoints")
    outcome, events = small_run(out, max_steps=2)
    assert is_said(events)
    assert outcome.progress.step == 2
    assert not outcome.was_finished


def test_links_and_an_edited_card_in_a_run_folder_harm_nothing(
    small_run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    small_run(out, stop_at=4)
    (tmp_path / "victim").write_bytes(b"mine")
    for name in ("run.lock", "asked.json.tmp-00000000", "model.safetensors", "manifest.json"):
        (out / name).unlink(missing_ok=True)
        (out / name).symlink_to("../victim")
    (out / "README.md").write_bytes(b"license: mine\n")
    small_run(out)
    small_run(out, max_steps=14)
    assert (tmp_path / "victim").read_bytes() == b"mine"
    assert (out / "README.md").read_bytes() == b"license: mine\n"
    assert not [path for path in out.rglob("*") if path.is_symlink()]


PROGRAM = """
import json, sys
from pathlib import Path
from heed.data.corpus import Corpus
from heed.data.readers import ParallelFiles
from heed.train.recipe.asked import Asked
from heed.train.run.run import run_training
files, out, asked = json.loads(sys.argv[1])
part = ParallelFiles(files=tuple(files), source_lang="de", target_lang="xx")
run_training(Asked(asked), Corpus(train=(part,)), Path(out), report=lambda event: None)
"""


def test_nothing_is_longer_than_the_positions_that_a_model_learns(
    small_run: Run, small_corpus: Corpus, tmp_path: Path
) -> None:
    pair = small_corpus.train[0]
    dev = tmp_path / "dev.de", tmp_path / "dev.xx"
    dev[0].write_text("rot hund\nein haus\n" + "ein " * 9 + "\n", encoding="utf-8")
    dev[1].write_text("tor dnuh\nnie suah\n" + "nie " * 9 + "\n", encoding="utf-8")
    corpus = replace(small_corpus, dev=(replace(pair, files=(str(dev[0]), str(dev[1]))),))
    settings = {"model": {"positions": "learned", "max_positions": 7}, "data": {"max_length": 5}}
    outcome, _ = small_run(tmp_path / "run", corpus=corpus, settings=settings)
    assert outcome.is_finished
    for dtype in ("float32", "int8"):
        translator = load(tmp_path / "run", dtype=dtype)
        for beam_size in (1, 3):
            options = {"beam_size": beam_size, "min_length": 9, "max_length": 20}
            (cut, _) = translator.translate(["rot hund", "ein " * 9], alignment=True, **options)
            assert (cut.status, len(cut.tokens)) == ("max_length", 6)
        scored = translator.score(["ein " * n for n in (5, 6, 7)], ["nie " * 5] * 3)
        assert [one.status for one in scored] == ["ok", "too_long", "too_long"]
        assert translator.next_word("rot", "tor " * 5)
        with pytest.raises(DataError, match="prefix must have at most 5 tokens"):
            translator.next_word("rot", "tor " * 6)
    settings["data"]["max_length"] = 6
    with pytest.raises(
        ConfigError,
        match=r"max_positions must be at least data.max_length \+ 2 .*, which is 8, but is 7",
    ):
        small_run(tmp_path / "few", settings=settings)


@pytest.mark.slow
def test_killed_at_ten_random_moments_ends_with_identical_weights(
    small: dict[str, Any], small_corpus: Corpus, tmp_path: Path
) -> None:
    """Fault R1: SIGKILL of a process that began with nothing, wherever it may be."""
    training = {"max_steps": 60, "batch_tokens": 64, "checkpoint_every": 4}
    training |= {"validate_every": 13, "validation_sentences": 2}

    def start(out: Path) -> subprocess.Popen[bytes]:
        asked = {**small, "training": training}
        arguments = json.dumps([list(small_corpus.train[0].files), str(out), asked])
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, arguments], env={**os.environ, "OMP_NUM_THREADS": "1"}
        )

    started_at = time.monotonic()
    assert start(tmp_path / "whole").wait() == 0
    duration_s = time.monotonic() - started_at
    chooser = random.Random(1)
    for _ in range(10):
        process = start(tmp_path / "killed")
        time.sleep(chooser.uniform(0.2, 0.9) * duration_s)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert start(tmp_path / "killed").wait() == 0
    assert digest(tmp_path / "killed") == digest(tmp_path / "whole")


def test_more_threads_than_cores_are_lowered_with_a_remark(
    tmp_path: Path, small_run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "count_cores", lambda: 1)
    _, events = small_run(tmp_path / "run", stop_at=1, threads=999)
    notes = [event["text"] for event in events if event["kind"] == "note"]
    assert notes == [
        "training.threads: 999 threads are more than the 1 core of this machine; 1 will be used."
    ]
    assert next(e for e in events if e["kind"] == "start")["environment"]["threads"] == 1
