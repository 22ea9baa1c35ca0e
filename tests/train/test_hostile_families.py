"""What every family and task does with odd text and with damaged models: an answer or words.

Not here: the Transformer's own folders (`tests/translate/test_load.py`) and lost power
(`test_power_loss.py`); fault R2 of a whole run of the Transformer is in `test_reliability.py`.
"""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heed
from heed.data.corpus import Corpus
from heed.disk.folders import read_directory, write_directory
from heed.errors import ConfigError, HeedError
from heed.train.recipe.asked import Asked
from heed.train.run.run import run_training
from heed.translate.classifier import load_classifier
from heed.translate.language_model import load_language_model
from heed.translate.masked import load_masked

RNN = {"family": "rnn", "d_model": 16}
TINY = {"d_model": 16, "n_heads": 2, "d_ff": 32}
MODELS: dict[str, dict[str, Any]] = {
    "rnn, no attention": {**RNN, "attention": "none", "cell": "tanh"},
    "rnn, dot": {**RNN, "attention": "dot"},
    "rnn, additive": {**RNN, "attention": "additive", "cell": "gru"},
    "conv": {**TINY, "family": "conv", "kernel_size": 3},
    "decoder": {**TINY, "family": "decoder", "n_layers": 1},
    "lm": {**TINY, "n_layers": 1},
    "mlm": {**TINY, "n_layers": 1},
    "classify": {**TINY, "n_layers": 1},
}
TASKS = ("lm", "mlm", "classify")
LINES = ["", " ", "hund", "ein hund rot", "\u200b\ufeff", "日" * 50, "ein hund rot " * 400]


def settings(kind: str, **training: Any) -> Asked:
    task = {"task": kind, "text": {"context": 32}} if kind in TASKS else {}
    usual = {"max_steps": 3, "batch_tokens": 256, "threads": 1, "validation_sentences": 2}
    return Asked(
        {
            **task,
            "tokenizer": {"kind": "word", "vocab_size": 330},
            "model": {"dropout": 0.0, **MODELS[kind]},
            "training": {**usual, **training},
        }
    )


def corpus_of(kind: str, folder: Path, pairs: Corpus) -> Corpus:
    if kind not in TASKS:
        return pairs
    text = (folder / "small.de").read_text(encoding="utf-8").splitlines()
    if kind == "classify":
        text = [f"{'odd' if len(line) % 2 else 'even'}\t{line}" for line in text]
    (folder / "text").write_text("\n".join(text * 5) + "\n", encoding="utf-8")
    path = (str(folder / "text"),)
    return Corpus(labeled=path) if kind == "classify" else Corpus(text=path)


def quiet(kind: str, corpus: Corpus, out: Path, **training: Any) -> Path:
    run_training(settings(kind, **training), corpus, out, report=lambda event: None)
    return out


@pytest.fixture(scope="module", params=MODELS)
def trained(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, write_corpus: Any
) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("hostile")
    corpus = corpus_of(request.param, folder, write_corpus(folder))
    return request.param, quiet(request.param, corpus, folder / "run")


def use(kind: str, folder: Path, lines: list[str]) -> list[Any]:
    """What the command of a model gives for each line."""
    if kind == "lm":
        return load_language_model(folder).generate(lines, length=4)
    if kind == "mlm":
        model = load_masked(folder)
        return [model.fill(f"{line} <mask>", 2) for line in lines]
    if kind == "classify":
        return list(load_classifier(folder)(lines))
    return [str(each) for each in heed.load(folder).translate(lines, beam_size=2, max_length=5)]


def test_odd_lines_are_answered_one_by_one_and_together(trained: tuple[str, Path]) -> None:
    kind, run = trained
    lines = LINES[:5] if kind == "mlm" else LINES
    together = use(kind, run, lines)
    assert len(together) == len(lines)
    for line, found in zip(lines, together, strict=True):
        (alone,) = use(kind, run, [line])
        if kind == "mlm":
            assert [each.word for each in alone[0]] == [each.word for each in found[0]]
        elif kind == "classify":
            assert alone.label == found.label
        else:
            assert alone == found


def rewritten(run: Path, folder: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """A copy of a model whose manifest agrees with what was changed, as an enemy's would."""
    files = dict(read_directory(run)[1])
    change(files)
    write_directory(folder, files)
    return folder


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_are_refused(
    trained: tuple[str, Path], tmp_path: Path, number: float
) -> None:
    kind, run = trained

    def spoil(files: dict[str, bytes]) -> None:
        files["model.safetensors"] = files["model.safetensors"][:-4] + np.float32(number).tobytes()

    folder = rewritten(run, tmp_path / "spoiled", spoil)
    with pytest.raises(HeedError, match="NaN|not finite|no number|not numbers|nan"):
        use(kind, folder, ["ein hund"])


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_file_cut_short_or_with_a_flipped_bit_is_named(
    trained: tuple[str, Path], tmp_path: Path, name: str
) -> None:
    kind, run = trained
    data = (run / name).read_bytes()
    for number, damaged in enumerate(
        (data[:-1], data[: len(data) // 2], b"", data[:9] + bytes([data[9] ^ 1]) + data[10:])
    ):
        folder = tmp_path / str(number)
        shutil.copytree(run, folder, ignore=shutil.ignore_patterns("checkpoints", "data"))
        (folder / name).write_bytes(damaged)
        with pytest.raises(HeedError, match=name):
            use(kind, folder, ["ein hund"])


def test_a_config_that_cannot_be_is_refused(trained: tuple[str, Path], tmp_path: Path) -> None:
    kind, run = trained
    odd: dict[str, Any] = {
        "d_model": (0, 7, 2**40, "wide"),
        "family": ("poem", 3, None),
        "src_vocab_size": (1, 2**31),
        "colour": ("red",),  # codespell:ignore colour
    }
    for key, values in odd.items():
        for number, value in enumerate(values):

            def change(files: dict[str, bytes], key: str = key, value: Any = value) -> None:
                config = json.loads(files["config.json"])
                config["model"][key] = value
                files["config.json"] = json.dumps(config).encode()

            folder = rewritten(run, tmp_path / f"{key}-{number}", change)
            with pytest.raises(HeedError):
                use(kind, folder, ["ein hund"])


def digest(run: Path) -> str:
    return hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest()


@pytest.mark.slow
@pytest.mark.reliability
@pytest.mark.parametrize("kind", TASKS)
def test_a_run_killed_while_it_writes_goes_on_to_the_same_bits(
    kind: str,
    tmp_path: Path,
    small_corpus: Corpus,
    fork: Callable[..., int],
    was_killed: Callable[[int], bool],
) -> None:
    """Fault R2 for other tasks: at some early, middle and late write."""
    corpus = corpus_of(kind, tmp_path, small_corpus)
    expected = digest(quiet(kind, corpus, tmp_path / "whole", checkpoint_every=1))
    n_kills = 0
    for fault in (3, 20, 60):
        out = tmp_path / f"killed-{fault}"
        n_kills += was_killed(
            fork(lambda out=out: quiet(kind, corpus, out, checkpoint_every=1), fault)
        )
        assert digest(quiet(kind, corpus, out, checkpoint_every=1)) == expected
    assert n_kills == 3


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"family": "rnn", "d_model": 15}, "d_model must be even for a bidirectional encoder"),
        ({"family": "rnn", "cell": "elman"}, "cell must be one of tanh, lstm, gru"),
        ({"family": "conv", "kernel_size": 4}, "kernel_size must be odd"),
        ({"family": "decoder", "n_layers": 0}, "n_layers must be"),
    ],
)
def test_an_impossible_shape_is_refused_before_training(
    tmp_path: Path, small_corpus: Corpus, setting: dict[str, Any], words: str
) -> None:
    asked = Asked({"model": setting, "training": {"max_steps": 1}})
    with pytest.raises(ConfigError, match=words):
        run_training(asked, small_corpus, tmp_path / "run", report=lambda event: None)
