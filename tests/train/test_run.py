"""Whole runs on small real files: finished, paused, killed, refused."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from heed.bundle import load_bundle
from heed.data.prepare import Corpus
from heed.data.readers import Part
from heed.errors import ConfigError, RunError
from heed.files import read_json_lines
from heed.lines import MIN_SOURCE_TOKENS
from heed.train.checkpoint import load_newest
from heed.train.run import Outcome, run_training
from heed.translate import load

WORDS = ("ein", "zwei", "drei", "vier", "rot", "blau", "hund", "haus", "baum", "maus")
SMALL = {
    "tokenizer": {"kind": "word", "vocab_size": 330},
    "model": {
        "d_model": 16,
        "n_heads": 2,
        "d_ff": 32,
        "n_encoder_layers": 1,
        "n_decoder_layers": 1,
    },
}


def backwards(line: str) -> str:
    return " ".join(word[::-1] for word in line.split())


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Some seventy sentences; each word is translated by spelling it backwards."""
    chooser = random.Random(0)
    sentences = sorted(
        {" ".join(chooser.choices(WORDS, k=chooser.randint(1, 5))) for _ in range(80)}
    )
    src, tgt = tmp_path / "train.de", tmp_path / "train.xx"
    src.write_text("".join(f"{line}\n" for line in sentences), encoding="utf-8")
    tgt.write_text("".join(f"{backwards(line)}\n" for line in sentences), encoding="utf-8")
    return Corpus(train=(Part(files=(str(src), str(tgt)), source_lang="de", target_lang="xx"),))


def asked(**training: Any) -> dict[str, Any]:
    defaults = {"max_steps": 12, "batch_tokens": 64, "validate_every": 5, "validation_sentences": 2}
    return {**SMALL, "training": {**defaults, **training}}


def train(corpus: Corpus, out: Path, stop_at: int | None = None, **training: Any) -> Outcome:
    steps: list[int] = []
    return run_training(
        asked(**training),
        corpus,
        out,
        report=lambda event: steps.append(event["step"]) if event["kind"] == "step" else None,
        should_stop=lambda: stop_at is not None and steps[-1:] == [stop_at],
    )


def digest(out: Path) -> str:
    return hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()


def test_a_finished_run_folder_is_a_model_folder(corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "run"
    outcome = train(corpus, out)
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


def test_a_checkpoint_of_a_run_in_bfloat16_holds_float32(corpus: Corpus, tmp_path: Path) -> None:
    """Only products are computed in it. NumPy, which writes checkpoints, has no such type."""
    train(corpus, tmp_path, stop_at=2, precision="bfloat16", ema_decay=0.9)
    found = load_newest(tmp_path)
    assert found
    for tensors in (found.model, found.optimizer, found.average):
        assert {tensor.dtype for tensor in tensors.values()} == {torch.float32}


def test_the_same_call_again_says_that_it_is_finished(corpus: Corpus, tmp_path: Path) -> None:
    train(corpus, tmp_path / "run")
    before = digest(tmp_path / "run")
    assert train(corpus, tmp_path / "run").was_finished
    assert digest(tmp_path / "run") == before


def test_paused_and_continued_equals_undisturbed(corpus: Corpus, tmp_path: Path) -> None:
    train(corpus, tmp_path / "whole", ema_decay=0.9)
    paused = train(corpus, tmp_path / "parts", stop_at=4, ema_decay=0.9)
    assert not paused.is_finished
    assert paused.progress.step == 4
    assert isinstance(load(tmp_path / "parts")("ein hund"), str)  # usable before it is finished
    assert train(corpus, tmp_path / "parts", ema_decay=0.9).is_finished
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")


def test_metrics_hold_each_validation_once_after_a_pause(corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(corpus, out, stop_at=7)
    train(corpus, out)
    events = list(read_json_lines(out / "metrics.jsonl"))
    assert [e["step"] for e in events if e["kind"] == "validation"] == [5, 10, 12]
    assert events[-1]["kind"] == "end"


def test_subword_regularisation_segments_anew_and_stays_exact(
    corpus: Corpus, tmp_path: Path
) -> None:
    settings = {"tokenizer": {"kind": "unigram", "vocab_size": 330, "subword_alpha": 0.2}}
    for name in ("first", "second"):
        run_training({**asked(), **settings}, corpus, tmp_path / name, report=lambda event: None)
    assert digest(tmp_path / "first") == digest(tmp_path / "second")
    plain = {"tokenizer": {"kind": "unigram", "vocab_size": 330}}
    run_training({**asked(), **plain}, corpus, tmp_path / "plain", report=lambda event: None)
    assert digest(tmp_path / "plain") != digest(tmp_path / "first")


def test_average_of_checkpoints_is_tried_at_the_end(corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(corpus, out, average_checkpoints=3, checkpoint_every=3)
    events = [e for e in read_json_lines(out / "metrics.jsonl") if e["kind"] == "average"]
    assert len(events) == 1


def test_a_changed_setting_is_refused_by_name(corpus: Corpus, tmp_path: Path) -> None:
    """RELIABILITY R10."""
    out = tmp_path / "run"
    train(corpus, out, stop_at=4)
    with pytest.raises(RunError, match=r"started with training\.learning_rate = the default.*0\.5"):
        train(corpus, out, learning_rate=0.5)
    longer = train(corpus, out, max_steps=14)
    assert longer.progress.step == 14


def test_a_changed_corpus_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(corpus, out, stop_at=4)
    Path(corpus.train[0].files[0]).write_text("anders\n" * 60, encoding="utf-8")
    with pytest.raises(RunError, match="was prepared from something else"):
        train(corpus, out)


def test_an_unknown_setting_is_refused_before_anything_is_written(
    corpus: Corpus, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="learning_rate"):
        train(corpus, tmp_path / "run", learnin_rate=0.5)
    with pytest.raises(ConfigError, match="preset must be one of tiny, small, base, big"):
        run_training({"preset": "huge"}, corpus, tmp_path / "run", report=lambda event: None)
    assert not (tmp_path / "run").exists()


def test_a_damaged_newest_checkpoint_is_passed_over_in_words(
    corpus: Corpus, tmp_path: Path
) -> None:
    """RELIABILITY R6."""
    out = tmp_path / "run"
    train(corpus, tmp_path / "whole", checkpoint_every=3)
    train(corpus, out, stop_at=7, checkpoint_every=3)
    newest = sorted((out / "checkpoints").glob("step-*"))[-1] / "model.safetensors"
    data = bytearray(newest.read_bytes())
    data[-1] ^= 1
    newest.write_bytes(data)
    notes: list[str] = []
    run_training(
        asked(checkpoint_every=3),
        corpus,
        out,
        report=lambda event: notes.append(event["text"]) if event["kind"] == "note" else None,
    )
    assert any("is damaged and passed over" in note for note in notes)
    assert digest(out) == digest(tmp_path / "whole")


PROGRAM = """
import json, sys
from pathlib import Path
from heed.data.prepare import Corpus
from heed.data.readers import Part
from heed.train.run import run_training
files, out, asked = json.loads(sys.argv[1])
part = Part(files=tuple(files), source_lang="de", target_lang="xx")
run_training(asked, Corpus(train=(part,)), Path(out), report=lambda event: None)
"""


def start(corpus: Corpus, out: Path) -> subprocess.Popen[bytes]:
    settings = asked(max_steps=60, checkpoint_every=4, validate_every=13)
    arguments = json.dumps([list(corpus.train[0].files), str(out), settings])
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, arguments], env={**os.environ, "OMP_NUM_THREADS": "1"}
    )


@pytest.mark.slow
def test_killed_at_ten_random_moments_ends_with_identical_weights(
    corpus: Corpus, tmp_path: Path
) -> None:
    """RELIABILITY R1: SIGKILL of a real process, wherever it may be."""
    started_at = time.monotonic()
    assert start(corpus, tmp_path / "whole").wait() == 0
    duration_s = time.monotonic() - started_at
    chooser = random.Random(1)
    for _ in range(10):
        process = start(corpus, tmp_path / "killed")
        time.sleep(chooser.uniform(0.2, 0.9) * duration_s)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert start(corpus, tmp_path / "killed").wait() == 0
    assert digest(tmp_path / "killed") == digest(tmp_path / "whole")
