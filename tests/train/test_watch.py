"""Faults put into real small trainings are named; healthy trainings are left in peace.

The quick ones run always, all twelve faults and ten healthy runs with the slow tests. A fault is
named rightly when it is the first alarm and the only one.
"""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from heed.data import batch, grammar, toy
from heed.data.prepare import Corpus
from heed.data.readers import Part
from heed.model.attention import MultiHeadAttention
from heed.model.transformer import Transformer
from heed.train import loop, observe, run
from heed.train.optimizer import Optimizer
from heed.train.probe import Probe
from heed.train.watch import CHECKS, Evidence, Reading, diagnose

Sentences = list[tuple[str, str]]

# Diagnosis, without any training

HEALTHY_PROBE = Probe(
    train_loss=3.2,
    dev_loss=3.3,
    train_gain=1.4,
    dev_gain=1.5,
    source_effect=1.7,
    leak=0.0,
    echo=0.01,
    dead_share=0.05,
    seconds=0.1,
)


def reading(step: int, train_loss: float, dev_loss: float, **facts: Any) -> Reading:
    defaults = {
        "share": step / 1000,
        "epochs": step / 200,
        "is_best": True,
        "same_share": 0.03,
        "movement": 0.006 * step**0.8,
        "n_moves": step,
        "probe": HEALTHY_PROBE,
    }
    return Reading(step=step, train_loss=train_loss, dev_loss=dev_loss, **{**defaults, **facts})


def evidence(*readings: Reading, **facts: Any) -> Evidence:
    defaults = {"blind_loss": 5.6, "train_likeness": 0.8, "dev_likeness": 0.8, "warmup_steps": 100}
    return Evidence(readings=readings, **{**defaults, **facts})


def asked(**answers: Any) -> Probe:
    return replace(HEALTHY_PROBE, **answers)


def names(found: Evidence) -> list[str]:
    return [alarm.name for alarm in diagnose(found)]


SICK = {
    "non-finite": evidence(reading(100, 4.0, 4.0), n_skipped=1, skipped={"step": 7, "pairs": (3,)}),
    "labels-not-shifted": evidence(reading(100, 0.3, 9.0, probe=asked(echo=0.98, dev_loss=9.0))),
    "mask-leak": evidence(reading(100, 1.0, 1.0, probe=asked(leak=0.4))),
    "rate-too-high": evidence(reading(300, 3.0, 3.0), reading(400, 4.0, 3.9)),
    "rate-too-low": evidence(reading(300, 8.7, 8.8, movement=0.002)),
    "misaligned-training": evidence(
        reading(300, 4.9, 5.0, probe=asked(train_gain=0.01, dev_gain=0.01)), train_likeness=0.05
    ),
    "source-ignored": evidence(
        reading(100, 5.0, 5.0, probe=asked(source_effect=1e-7, train_gain=0.0, dev_gain=0.0))
    ),
    "bad-dev-set": evidence(reading(100, 3.0, 5.0, probe=asked(dev_gain=-0.1))),
    "same-output": evidence(
        reading(100, 3.0, 9.0, same_share=1.0),
        reading(200, 2.0, 9.0, same_share=1.0, probe=asked(train_loss=8.0, dev_loss=9.0)),
    ),
    "dead-units": evidence(reading(100, 4.0, 4.0, probe=asked(dead_share=0.97))),
    "over-fitting": evidence(
        reading(200, 2.0, 2.5),
        reading(300, 1.5, 2.7, is_best=False),
        reading(400, 1.0, 2.9, is_best=False),
    ),
}


@pytest.mark.parametrize("name", CHECKS)
def test_each_cause_is_named_with_a_remedy_and_said_once(name: str) -> None:
    (alarm,) = diagnose(SICK[name])
    assert alarm.name == name
    assert alarm.text
    assert alarm.remedy
    assert alarm.numbers
    assert names(replace(SICK[name], said=frozenset({name}))) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # The loss jumps where it is judged, and may be high while the rate is still rising.
        (evidence(reading(300, 3.0, 3.0), reading(400, 3.4, 3.4)), None),
        (evidence(reading(300, 7.0, 7.0), reading(400, 6.9, 6.9)), "rate-too-high"),
        (evidence(reading(50, 9.2, 8.5), reading(100, 8.0, 7.1)), None),
        (evidence(reading(50, 5.0, 5.0, movement=30.0)), "rate-too-high"),
        # What moves little because it is being refined has learnt before.
        (evidence(reading(300, 2.0, 2.0, movement=0.01)), None),
        # A fresh model with tied embeddings repeats what it reads, but does not profit by it.
        (evidence(reading(20, 8.9, 9.0, probe=asked(echo=1.0, train_loss=9, dev_loss=9))), None),
        # Reading comes late; deaf is who learns nothing more without it.
        (evidence(reading(200, 5.1, 5.1), reading(300, 4.6, 4.7, probe=asked(train_gain=0))), None),
        (
            evidence(reading(200, 5.1, 5.1), reading(300, 5.1, 5.1, probe=asked(train_gain=0))),
            "source-ignored",
        ),
        # Known by heart: dev pairs may lag behind.
        (evidence(reading(900, 0.2, 3.0, epochs=60, probe=asked(dev_gain=0.1))), None),
        (
            evidence(
                reading(900, 0.2, 3.0, epochs=60, probe=asked(dev_gain=0.1)), dev_likeness=0.1
            ),
            "bad-dev-set",
        ),
        (evidence(reading(100, 3.0, 6.0, epochs=0.5, probe=asked(dev_loss=6.0))), "bad-dev-set"),
        (evidence(n_dev=1000, n_dev_in_train=2), None),
        (evidence(n_dev=1000, n_dev_in_train=900), "bad-dev-set"),
        # Early models say one thing to all; it is a fault when it stays.
        (evidence(reading(100, 7, 7, same_share=1.0), reading(200, 6, 6, same_share=1.0)), None),
        (
            evidence(reading(300, 5, 5, same_share=1.0), reading(400, 5, 5, same_share=1.0)),
            "same-output",
        ),
        # A dev loss that rises a little while translations improve is no harm.
        (evidence(reading(200, 2.0, 2.5), reading(300, 1.5, 2.6), reading(400, 1.2, 2.7)), None),
        (
            evidence(reading(200, 2.0, 2.5), reading(300, 1.5, 3.2), reading(400, 1.2, 3.5)),
            "over-fitting",
        ),
        # Corpora of one-word lines have no lengths to compare.
        (evidence(reading(100, 4.0, 4.0), train_likeness=None, dev_likeness=None), None),
        (evidence(reading(400, 4.0, 4.0, probe=None, same_share=None, movement=None)), None),
        (evidence(), None),
    ],
)
def test_borderline_cases(before: Evidence, after: str | None) -> None:
    assert names(before) == ([after] if after else [])


def test_a_cause_silences_what_it_brings_about() -> None:
    deaf = asked(source_effect=0.0, train_gain=0.0, dev_gain=0.0, leak=0.5, dead_share=1.0)
    ill = evidence(reading(300, 5, 5, same_share=1.0), reading(400, 5, 5, probe=deaf))
    assert names(ill) == ["mask-leak"]
    assert names(replace(ill, said=frozenset({"mask-leak"}))) == []


# Validations of finished healthy runs: step, share, training loss, dev loss. `metrics.jsonl`.
REAL = {
    "Multi30k en-de, 60 min": [
        (299, 0.09, 3.25, 2.97),
        (562, 0.20, 2.38, 2.45),
        (779, 0.29, 2.24, 2.14),
        (978, 0.39, 2.17, 2.00),
        (1176, 0.49, 1.86, 1.89),
        (1382, 0.60, 1.63, 1.81),
        (1585, 0.70, 1.54, 1.74),
        (1801, 0.80, 1.44, 1.69),
        (2015, 0.89, 1.21, 1.67),
        (2226, 1.00, 1.25, 1.65),
    ],
    "Tatoeba zh-en, 30 min": [
        (104, 0.10, 4.03, 3.98),
        (204, 0.20, 3.02, 3.06),
        (285, 0.29, 2.68, 2.69),
        (332, 0.38, 2.50, 2.56),
        (397, 0.47, 2.11, 2.42),
        (460, 0.60, 1.87, 2.31),
        (517, 0.67, 1.98, 2.22),
        (567, 0.79, 1.60, 2.14),
        (619, 0.87, 1.53, 2.11),
        (676, 0.97, 1.37, 2.08),
    ],
    "Multi30k, AdamW too slow, 7 min": [
        (51, 0.08, 9.27, 8.57),
        (97, 0.17, 8.20, 7.17),
        (141, 0.30, 6.42, 5.87),
        (197, 0.37, 5.52, 5.04),
        (251, 0.49, 4.87, 4.63),
    ],
}


@pytest.mark.parametrize("name", REAL)
def test_finished_real_runs_gave_no_alarm_at_any_validation(name: str) -> None:
    found = [
        reading(step, train, dev, share=share, probe=None, movement=0.006 * step**0.8)
        for step, share, train, dev in REAL[name]
    ]
    for n in range(1, len(found) + 1):
        assert names(evidence(*found[:n])) == []


# Faults in real trainings

Asked = dict[str, Any]


def sentences(task: str, n_pairs: int, seed: int) -> Sentences:
    """Different pairs of a toy task, or of the built-in corpus (`zh-en`)."""
    if task in toy.TASKS:
        made = toy.pairs(task, 3 * n_pairs + 100, seed=seed, max_length=8)
        return list(islice({pair.src: pair.tgt for pair in made}.items(), n_pairs))
    train, unseen = grammar.compositional_split(*task.split("-"), seed=seed)
    chosen = train[: n_pairs - 100] + unseen[:100]  # dev comes last
    return [(pair.src, pair.tgt) for pair in chosen]


def part(folder: Path, name: str, pairs: Sentences, *, is_shuffled: bool) -> Part:
    src, tgt = [src for src, _ in pairs], [tgt for _, tgt in pairs]
    if is_shuffled:
        random.Random(0).shuffle(tgt)
    for lang, lines in (("en", src), ("de", tgt)):
        text = "".join(f"{line}\n" for line in lines)
        (folder / f"{name}.{lang}").write_text(text, encoding="utf-8")
    files = (str(folder / f"{name}.en"), str(folder / f"{name}.de"))
    return Part(files=files, source_lang="en", target_lang="de")


def alarms(
    folder: Path,
    task: str = "sort",
    *,
    n_pairs: int = 3000,
    seed: int = 1,
    is_train_shuffled: bool = False,
    is_dev_shuffled: bool = False,
    is_dev_seen: bool = False,
    model: Asked | None = None,
    tokenizer: Asked | None = None,
    **training: Any,
) -> list[str]:
    """Names of the alarms of one small training."""
    pairs = sentences(task, n_pairs + 100, seed)
    train, dev = pairs[:-100], pairs[-100:]
    if is_dev_seen:
        dev = train[:100]
    corpus = Corpus(
        train=(part(folder, "train", train, is_shuffled=is_train_shuffled),),
        dev=(part(folder, "dev", dev, is_shuffled=is_dev_shuffled),),
    )
    sizes = {"d_model": 32, "n_heads": 2, "d_ff": 64, "n_encoder_layers": 1, "n_decoder_layers": 1}
    settings = {
        "max_steps": 300,
        "batch_tokens": 512,
        "first_batch_tokens": 512,
        "warmup_steps": 20,
        "validations": 6,
        "validation_sentences": 40,
        "seed": seed,
        "threads": 1,
    }
    found: list[str] = []
    run.run_training(
        {
            "tokenizer": tokenizer or {"kind": "word", "vocab_size": 330},
            "model": {**sizes, "norm": "pre", "dropout": 0.1, **(model or {})},
            "training": {**settings, **training},
        },
        corpus,
        folder / "run",
        report=lambda event: found.append(event["name"]) if event["kind"] == "alarm" else None,
    )
    return found


@pytest.fixture(autouse=True)
def _always_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of seconds leaves no time for questions, which may take a hundredth of it."""
    monkeypatch.setattr(observe, "MAX_COST", 1.0)


@contextmanager
def patched(owner: Any, name: str, value: Any) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, value)
        yield


def labels_unshifted() -> AbstractContextManager[None]:
    def collate(*arguments: Any, **special_ids: int) -> batch.Batch:
        made = batch.collate(*arguments, **special_ids)
        return replace(made, tgt_in=made.tgt_out)

    return patched(loop, "collate", collate)


def no_causal_mask() -> AbstractContextManager[None]:
    read = MultiHeadAttention.read

    def see_all(self: MultiHeadAttention, *heads: Any, mask: Any = None, **_: Any) -> torch.Tensor:
        return read(self, *heads, mask=mask, is_causal=False)

    return patched(MultiHeadAttention, "read", see_all)


def memory_zeroed() -> AbstractContextManager[None]:
    encode = Transformer.encode

    def forget(self: Transformer, *arguments: Any) -> list[torch.Tensor]:
        return [memory * 0 for memory in encode(self, *arguments)]

    return patched(Transformer, "encode", forget)


def with_model(change: Callable[[Transformer], None]) -> AbstractContextManager[None]:
    """Trainings whose fresh model was changed."""
    make_trainer = run.make_trainer

    def make(*arguments: Any) -> loop.Trainer:
        trainer = make_trainer(*arguments)
        with torch.no_grad():
            change(trainer.model)
        return trainer

    return patched(run, "make_trainer", make)


def bias_on_one_word(model: Transformer) -> None:
    bias = torch.zeros(model.output.out_features)
    bias[9] = 50.0
    model.output.bias = nn.Parameter(bias, requires_grad=False)


def kill_relu(model: Transformer) -> None:
    for name, parameter in model.named_parameters():
        if name.endswith("feed_forward.expand.bias"):
            parameter.fill_(-100.0)


def nan_gradient(at: Sequence[int]) -> AbstractContextManager[None]:
    """Gradients of the steps with these numbers, counted from 1, hold no numbers."""
    clip, calls = Optimizer.clip, iter(range(1, 10_000))

    def clip_spoilt(self: Optimizer) -> torch.Tensor:
        if next(calls) in at:
            gradient = next(iter(self.parameters.values())).grad
            assert gradient is not None
            gradient[0] = math.nan
        return clip(self)

    return patched(Optimizer, "clip", clip_spoilt)


@contextmanager
def nothing() -> Iterator[None]:
    yield


Fault = tuple[str, Callable[[], AbstractContextManager[None]], Asked]
FAULTS: dict[str, Fault] = {
    "labels unshifted": ("labels-not-shifted", labels_unshifted, {}),
    "causal mask removed": ("mask-leak", no_causal_mask, {}),
    "memory zeroed": ("source-ignored", memory_zeroed, {}),
    "rates times 100": (
        "rate-too-high",
        nothing,
        {"learning_rate": 0.1, "matrix_learning_rate": 1.0},
    ),
    "rates by 1000": (
        "rate-too-low",
        nothing,
        {"learning_rate": 1e-6, "matrix_learning_rate": 1e-5},
    ),
    "dev targets shuffled": ("bad-dev-set", nothing, {"is_dev_shuffled": True}),
    "dev taken from training": ("bad-dev-set", nothing, {"is_dev_seen": True}),
    "training targets shuffled": ("misaligned-training", nothing, {"is_train_shuffled": True}),
    "NaN gradient at step 60": ("non-finite", lambda: nan_gradient([60]), {}),
    "fifty pairs": (
        "over-fitting",
        nothing,
        {
            "n_pairs": 50,
            "batch_tokens": 128,
            "first_batch_tokens": 128,
            "model": {"d_model": 64, "d_ff": 128, "dropout": 0.0},
        },
    ),
    "bias on one word": ("same-output", lambda: with_model(bias_on_one_word), {}),
    "ReLU killed": ("dead-units", lambda: with_model(kill_relu), {}),
}
QUICK = {"max_steps": 60, "validations": 2}
"""Enough for faults that a fresh model shows."""


@pytest.mark.parametrize("fault", ["labels unshifted", "memory zeroed", "dev targets shuffled"])
def test_a_fault_is_named_within_sixty_steps(tmp_path: Path, fault: str) -> None:
    name, injected, settings = FAULTS[fault]
    with injected():
        assert alarms(tmp_path, n_pairs=1500, **{**QUICK, **settings}) == [name]


def test_a_healthy_training_of_a_hundred_steps_is_left_in_peace(tmp_path: Path) -> None:
    assert alarms(tmp_path, n_pairs=1500, max_steps=100, validations=4) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_first_and_alone(tmp_path: Path, fault: str) -> None:
    name, injected, settings = FAULTS[fault]
    with injected():
        assert alarms(tmp_path, **settings) == [name]


TWO_LAYERS = {"d_model": 64, "d_ff": 128, "n_heads": 4, "n_encoder_layers": 2} | {
    "n_decoder_layers": 2
}
BPE = {"kind": "bpe", "vocab_size": 1200}
HEALTHY: dict[str, Asked] = {
    "reverse": {"task": "reverse"},
    "reverse, rotary": {"task": "reverse", "seed": 2, "model": {"positions": "rotary"}},
    "reverse, AdamW": {"task": "reverse", "seed": 3, "optimizer": "adamw", "learning_rate": 2e-3},
    "sort": {"seed": 4},
    "sort, two layers": {"seed": 5, "model": TWO_LAYERS},
    "sort, post-norm, GELU": {"seed": 6, "model": {"norm": "post", "activation": "gelu"}},
    "sort, 800 pairs": {"seed": 7, "n_pairs": 800, "max_steps": 200},
    "en-es": {"task": "en-es", "n_pairs": 2000, "model": TWO_LAYERS, "tokenizer": BPE},
    "zh-en": {"task": "zh-en", "n_pairs": 2000, "model": TWO_LAYERS, "tokenizer": BPE},
    "en-fr, average": {"task": "en-fr", "n_pairs": 2000, "tokenizer": BPE, "ema_decay": 0.99},
}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_training_gives_no_alarm(tmp_path: Path, name: str) -> None:
    assert alarms(tmp_path, **HEALTHY[name]) == []
