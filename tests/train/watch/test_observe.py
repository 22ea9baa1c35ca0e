"""What a run tells of itself: forecasts, alarms once over all sittings, and never at much cost."""

import io
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from heed.cli.progress import Display
from heed.data.corpus import Corpus
from heed.data.prepared import open_prepared
from heed.data.readers import ParallelFiles
from heed.disk.files import read_json_lines
from heed.train.step.events import EventLog, LiveLine, finite, tensorboard
from heed.train.step.progress import training_seconds
from heed.train.step.validate import DevSet
from heed.train.watch import observe, probe
from heed.train.watch.checks import NO_EFFECT, UNCORRELATED
from heed.train.watch.evidence import Evidence
from heed.translate.translator import load

Run = Callable[..., Any]


def of_kind(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["kind"] == kind]


def logged(out: Path, kind: str) -> list[dict[str, Any]]:
    return of_kind(list(read_json_lines(out / "metrics.jsonl")), kind)


def test_validations_tell_speed_memory_and_from_the_third_on_what_to_expect(
    tmp_path: Path, small_run: Run
) -> None:
    _, events = small_run(tmp_path / "run", max_steps=25, validate_every=5)
    found = of_kind(events, "validation")
    assert [sorted(event["forecast"]) for event in found] == [
        [],
        [],
        ["bleu", "chrf"],
        ["bleu", "chrf"],
        [],  # the last one is no forecast
    ]
    expected = found[3]["forecast"]["chrf"]
    assert 0 <= expected["low"] < expected["middle"] < expected["high"] <= 100
    for event in found:
        assert event["tokens_per_s"] > 0
        assert event["memory_mb"] > 50
        assert event["watch"]["train_loss"] > 0
        assert event["watch"]["movement"] > 0
    assert found[0]["watch"]["probe"]["leak"] == 0.0
    steps = of_kind(events, "step")
    assert all(event["memory_mb"] > 50 and event["seconds"] > 0 for event in steps)
    assert steps[9]["left_s"] > steps[-1]["left_s"] == 0.0
    (line,) = logged(tmp_path / "run", "step")  # one of twenty steps
    assert line["tokens_per_s"] > 0
    assert 0 <= of_kind(events, "epoch")[0]["pad_share"] < 1
    assert logged(tmp_path / "run", "validation") == found


def test_a_run_in_two_sittings_expects_and_warns_as_in_one(
    tmp_path: Path, small_run: Run, small_corpus: Corpus
) -> None:
    settings = {"max_steps": 25, "validate_every": 5, "checkpoint_every": 5}
    # A dev set out of the training data is an alarm that comes at once, and must not come twice.
    part = ParallelFiles(files=small_corpus.train[0].files, source_lang="de", target_lang="xx")
    lines = [Path(name).read_text().splitlines(keepends=True)[:20] for name in part.files]
    files = []
    for name, kept in zip(("dev.de", "dev.xx"), lines, strict=True):
        (tmp_path / name).write_text("".join(kept))
        files.append(str(tmp_path / name))
    dev = (ParallelFiles(files=(files[0], files[1]), source_lang="de", target_lang="xx"),)
    object.__setattr__(small_corpus, "dev", dev)

    _, whole = small_run(tmp_path / "whole", **settings)
    _, first = small_run(tmp_path / "parts", stop_at=17, **settings)
    _, second = small_run(tmp_path / "parts", **settings)
    (alarm,) = of_kind(whole, "alarm")
    assert alarm["name"] == "bad-dev-set"
    assert "training pairs share a sentence with the 20 dev pairs" in alarm["text"]
    assert of_kind(first, "alarm") == [alarm]
    assert of_kind(second, "alarm") == []
    assert len(logged(tmp_path / "parts", "alarm")) == 1
    both = of_kind(first, "validation") + of_kind(second, "validation")
    assert [event["forecast"] for event in both] == [
        event["forecast"] for event in of_kind(whole, "validation")
    ]


def test_what_changes_the_last_bits_is_told_when_a_run_goes_on(
    tmp_path: Path, small_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault R11."""
    small_run(tmp_path / "run", stop_at=4)
    _, events = small_run(tmp_path / "run", stop_at=6)
    assert not any("bit for bit" in event["text"] for event in of_kind(events, "note"))
    monkeypatch.setattr(torch, "__version__", "9.9.9")
    _, events = small_run(tmp_path / "run")
    notes = [event["text"] for event in of_kind(events, "note")]
    assert any("is 9.9.9: the run continues, but not bit for bit" in note for note in notes)


def test_questions_stop_where_they_would_take_more_than_a_hundredth(
    tmp_path: Path, small_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = probe.probe

    def slow(*arguments: Any) -> probe.Probe:
        time.sleep(0.1)
        return ask(*arguments)

    monkeypatch.setattr(observe, "probe", slow)
    _, events = small_run(tmp_path / "run", max_steps=30, validate_every=3)
    asked = [event["watch"]["probe"] is not None for event in of_kind(events, "validation")]
    assert asked == [True] + [False] * 9


def test_the_display_says_alarms_mends_and_what_to_expect() -> None:
    stream = io.StringIO()
    display = Display("chrf", stream=stream)
    alarm = {"kind": "alarm", "step": 3, "name": "mask-leak", "text": "a leak", "remedy": "mend it"}
    expected = {"low": 37.2, "middle": 38.5, "high": 39.8}
    validation = {
        "kind": "validation",
        "step": 8,
        "loss": None,
        "bleu": 12.34,
        "chrf": None,
        "is_best": False,
        "forecast": {"bleu": expected},
        "samples": [],
    }
    for event in (alarm, {"kind": "mend", "step": 4, "text": "back to step 2"}, validation):
        display(event)
    assert stream.getvalue().splitlines() == [
        "! a leak",
        "  → mend it",
        "back to step 2",
        "step 8  dev loss is NaN  BLEU 12.34  expect BLEU 37–40 at the end",
    ]


def test_the_live_line_tells_expectation_and_memory() -> None:
    line = LiveLine("bleu")
    expected = {"low": 37.2, "middle": 38.5, "high": 39.8}
    line({"kind": "validation", "is_best": True, "bleu": 30.0, "forecast": {"bleu": expected}})
    line({"kind": "epoch", "pad_share": 0.011, "steps": 16, "batch": 0, "batches": 32})
    step = {"kind": "step", "step": 8, "epoch": 0, "share": 0.5, "left_s": 62.0, "seconds": 0.02}
    line({**step, "nll": float("nan"), "n_tgt_tokens": 40, "memory_mb": 512})
    assert line.text == (
        "step 8  epoch 0.0  50%  1m left  2000 tok/s  dev bleu 30.00 (best)  expect 37–40  "
        "pad 1.1%  512 MB"
    )
    line({"kind": "epoch", "pad_share": 0.011, "steps": 16, "batch": 24, "batches": 32})
    for number in (20, 21):  # after a pause within an epoch
        line({**step, "epoch": 3, "step": number, "nll": 1.0, "n_tgt_tokens": 40})
    assert "  epoch 3.8  " in line.text


def test_the_live_line_of_the_next_run_has_none_of_the_figures_of_the_last() -> None:
    line = LiveLine("bleu")
    expected = {"low": 37.2, "middle": 38.5, "high": 39.8}
    step = {"kind": "step", "step": 8, "epoch": 0, "share": 0.5, "left_s": 62.0, "seconds": 0.02}
    line({**step, "nll": 1.0, "n_tgt_tokens": 40})
    line({"kind": "validation", "is_best": True, "bleu": 30.0, "forecast": {"bleu": expected}})
    line({"kind": "start"})
    line({**step, "step": 1, "nll": 7.0, "n_tgt_tokens": 20})
    assert line.text == "step 1  epoch 0.0  50%  1m left  1000 tok/s  loss 7.000"


def test_the_curves_of_a_run_have_no_points_of_its_teachers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = []

    class Writer:
        def __init__(self, folder: str) -> None:
            assert folder == str(tmp_path / "tensorboard")

        def add_scalar(self, name: str, value: float, step: int) -> None:
            points.append((name, value, step))

    fake: Any = SimpleNamespace(SummaryWriter=Writer)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", fake)
    report = tensorboard(tmp_path)
    report({"kind": "step", "step": 1, "nll": 2.0, "teacher": 1})
    report({"kind": "note", "text": "the model that learns from them"})
    report({"kind": "step", "step": 1, "nll": 4.0, "is_skipped": False})
    assert points == [("step/nll", 4.0, 1)]


def test_damaged_lines_of_a_log_are_removed_and_an_incomplete_one_stays(tmp_path: Path) -> None:
    log, path = EventLog(tmp_path), tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n\0\r\0\n{"st{"step": 3}\n[4]\n{"step": 5}\n{"st')
    assert log.mend() == 3
    assert path.read_bytes() == b'{"step": 1}\n{"step": 5}\n{"st'
    assert log.mend() == 0


def test_a_log_of_skipped_steps_holds_no_number_that_json_lacks(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    counts = {"n_src_tokens": 5, "n_tgt_tokens": 10, "seconds": 0.5}
    step = {"kind": "step", **counts, "is_skipped": False}
    log({**step, "step": 1, "nll": 3.0})
    log({**step, "step": 2, "nll": float("nan"), "is_skipped": True})
    log({**step, "step": 3, "nll": float("inf"), "is_skipped": True})
    assert [event["nll"] for event in logged(tmp_path, "step")] == [3.0, None]
    assert logged(tmp_path, "step")[0]["tokens_per_s"] == 10.0  # of two steps, one of which learned
    assert finite({"a": {"b": float("nan"), "c": 1}}) == {"a": {"b": None, "c": 1}}


def test_slow_steps_are_logged_more_often(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    step = {"kind": "step", "n_src_tokens": 5, "n_tgt_tokens": 10, "is_skipped": False}
    for number in range(1, 8):
        log({**step, "step": number, "nll": float(number), "seconds": 4.0})
    lines = logged(tmp_path, "step")
    assert [(line["step"], line["nll"], line["seconds"]) for line in lines] == [
        (3, 2.0, 12.0),
        (6, 5.0, 12.0),
    ]


def test_the_time_set_aside_is_what_was_measured() -> None:
    assert training_seconds(None, 5.0) == float("inf")
    assert training_seconds(1000.0, None) == 978.5
    assert training_seconds(1000.0, None, 5.0) == 892.5
    assert training_seconds(1000.0, 12.0) == training_seconds(1000.0, 12.0, 5.0) == 988.0
    assert training_seconds(20.0, 15.0) == 10.0  # half the time is for training, come what may


def unequal_scripts(folder: Path, n_pairs: int, *, is_shuffled: bool = False) -> Corpus:
    """Sentences of words, and their translations of about twice as many signs: as en and zh."""
    chooser = random.Random(3)
    words = [f"w{number}" for number in range(30)]
    src = [chooser.choices(words, k=chooser.randint(2, 6)) for _ in range(n_pairs)]
    tgt = [[f"{half}{word}" for word in line for half in "ab"] for line in src]
    for line in tgt:
        del line[: chooser.randint(0, 2)]
    if is_shuffled:
        chooser.shuffle(tgt)
    paths = (folder / "u.en", folder / "u.zh")
    for path, lines in zip(paths, (src, tgt), strict=True):
        path.write_text("".join(f"{' '.join(line)}\n" for line in lines), encoding="utf-8")
    files = (str(paths[0]), str(paths[1]))
    return Corpus(train=(ParallelFiles(files=files, source_lang="en", target_lang="zh"),))


BOTH = {"data": {"both_directions": True}, "tokenizer": {"vocab_size": 500}}


@pytest.mark.parametrize(("is_shuffled", "expected"), [(False, (0.7, 1.0)), (True, (-0.3, 0.3))])
def test_lengths_are_compared_within_each_direction(
    tmp_path: Path,
    small_run: Run,
    monkeypatch: pytest.MonkeyPatch,
    is_shuffled: bool,
    expected: tuple[float, float],
) -> None:
    found: list[Evidence] = []
    monkeypatch.setattr(observe, "diagnose", lambda evidence: found.append(evidence) or [])
    corpus = unequal_scripts(tmp_path, 300, is_shuffled=is_shuffled)
    dev = {**BOTH, "data": {**BOTH["data"], "dev_size": 60}}
    small_run(tmp_path / "run", corpus=corpus, settings=dev, max_steps=1)
    lowest, highest = expected
    for correlation in (found[0].train_length_correlation, found[0].dev_length_correlation):
        assert correlation is not None
        assert lowest < correlation < highest
    data = open_prepared(corpus, tmp_path / "run" / "data").train
    in_one_cloud = float(np.corrcoef(data.src_lengths, data.tgt_lengths)[0, 1])
    assert in_one_cloud < UNCORRELATED  # which would accuse both


def test_a_few_steps_on_aligned_text_of_both_directions_give_no_alarm(
    tmp_path: Path, small_run: Run
) -> None:
    corpus = unequal_scripts(tmp_path, 200)
    _, events = small_run(tmp_path / "run", corpus=corpus, settings=BOTH, validate_every=12)
    assert of_kind(events, "alarm") == []


@pytest.mark.parametrize("n_pairs", [2, 3])
def test_a_corpus_of_one_or_two_training_pairs_gives_no_alarm(
    tmp_path: Path, small_run: Run, n_pairs: int
) -> None:
    corpus = unequal_scripts(tmp_path, n_pairs)
    _, events = small_run(tmp_path / "run", corpus=corpus, validate_every=12)
    assert of_kind(events, "alarm") == []
    (validation,) = of_kind(events, "validation")
    assert validation["watch"]["probe"]["source_effect"] > NO_EFFECT  # another source was found


def test_pairs_are_probed_with_slots_as_they_are_translated(slots_model: Path) -> None:
    translator = load(slots_model)
    vocab, slots = translator.src_vocab, translator.src_vocab.slots
    assert slots is not None and vocab.hash == translator.tgt_vocab.hash
    texts = ["{name} and the file 12 .", "{name} und die Datei 12 ."]

    class Stored:
        def src(self, index: int) -> np.ndarray[Any, Any]:
            return np.array(vocab.encode(texts[0]))

        def tgt(self, index: int) -> np.ndarray[Any, Any]:
            return np.array(vocab.encode(texts[1]))

    dev = DevSet(src=["open https://a.b/c ."], tgt=["https://a.b/c öffnen ."])
    found = probe.choose_pairs(Stored(), 1, [dev], translator.reader)
    for pairs, n_slots in ((found.train, 2), (found.dev, 1)):
        ((src, tgt),) = pairs
        assert len([id for id in src if id in slots.ids]) == n_slots
        assert {id for id in src if id in slots.ids} == {id for id in tgt if id in slots.ids}
        assert src[-1] == vocab.eos_id


class OnePair:
    """A training set of one pair that no slot is in."""

    def __init__(self, src: list[int], tgt: list[int]) -> None:
        self.rows = np.array(src), np.array(tgt)
        self.src_lengths, self.tgt_lengths = np.array([len(src) + 1]), np.array([len(tgt) + 1])

    def src(self, index: int) -> np.ndarray[Any, Any]:
        return self.rows[0]

    def tgt(self, index: int) -> np.ndarray[Any, Any]:
        return self.rows[1]


def test_more_languages_than_pairs_to_probe_leave_some_and_none_at_all_no_probe(
    slots_model: Path,
) -> None:
    reader = load(slots_model).reader
    train = OnePair(reader.src_vocab.encode("the file"), reader.tgt_vocab.encode("die Datei"))
    sets = [DevSet(src=[f"file {n}"], tgt=[f"Datei {n}"]) for n in range(65)]
    found = observe.observed_pairs(train, sets, reader, n_dev_in_train=0).probed
    assert found and len(found.dev) == probe.N_PAIRS
    assert observe.observed_pairs(train, [], reader, n_dev_in_train=0).probed is None
