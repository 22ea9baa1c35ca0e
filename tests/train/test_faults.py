"""Faults put into real small trainings are named; healthy trainings are left in peace.

The quick ones run always; all faults and ten healthy runs, on toy tasks and on the built-in corpus,
with the slow tests. A fault is named rightly when it is the first alarm and the only one. As a
table: `pytest -m slow -s tests/train/test_faults.py`.
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

from heed.data import batch
from heed.data.corpus import Corpus
from heed.data.readers import ParallelFiles
from heed.demo import grammar, toy
from heed.model.attention import MultiHeadAttention
from heed.model.transformer import Transformer
from heed.train.recipe import snapshot
from heed.train.recipe.asked import Asked
from heed.train.run import run, setup
from heed.train.step.optimizer import Optimizer
from heed.train.step.trainer import Trainer
from heed.train.tasks.table import TASKS
from heed.train.tasks.task import Task
from heed.train.watch import observe

Settings = dict[str, Any]
Sentences = list[tuple[str, str]]


def sentences(task: str, n_pairs: int, seed: int) -> Sentences:
    """Different pairs of a toy task, or of the built-in corpus (`zh-en`)."""
    if task in toy.TASKS:
        made = toy.pairs(task, 3 * n_pairs + 100, seed=seed, max_length=8)
        return list(islice({pair.src: pair.tgt for pair in made}.items(), n_pairs))
    train, unseen = grammar.compositional_split(*task.split("-"), seed=seed)
    chosen = train[: n_pairs - 100] + unseen[:100]  # dev comes last
    return [(pair.src, pair.tgt) for pair in chosen]


def part(folder: Path, name: str, pairs: Sentences, *, target_lang: str = "de") -> ParallelFiles:
    paths = []
    for lang, lines in (
        ("en", [src for src, _ in pairs]),
        (target_lang, [tgt for _, tgt in pairs]),
    ):
        paths.append(folder / f"{name}-{target_lang}.{lang}")
        paths[-1].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = (str(paths[0]), str(paths[1]))
    return ParallelFiles(files=files, source_lang="en", target_lang=target_lang)


def shuffled(pairs: Sentences) -> Sentences:
    """Each source with the target of another."""
    tgt = [tgt for _, tgt in pairs]
    random.Random(0).shuffle(tgt)
    return [(src, other) for (src, _), other in zip(pairs, tgt, strict=True)]


def corpus_of(
    folder: Path,
    task: str,
    n_pairs: int,
    seed: int,
    *,
    also: str = "",
    is_train_shuffled: bool = False,
    is_dev_shuffled: bool = False,
    is_dev_seen: bool = False,
) -> Corpus:
    """A hundred dev pairs and `n_pairs` to learn from; `also`: as many into another language."""
    train, dev = [], []
    for name, target_lang in ((task, "de"), (also, "fr")):
        if name:
            pairs = sentences(name, n_pairs + 100, seed)
            learned, kept = pairs[:-100], pairs[-100:]
            kept = learned[:100] if is_dev_seen else kept
            learned = shuffled(learned) if is_train_shuffled else learned
            kept = shuffled(kept) if is_dev_shuffled else kept
            train.append(part(folder, "train", learned, target_lang=target_lang))
            dev.append(part(folder, "dev", kept, target_lang=target_lang))
    return Corpus(train=tuple(train), dev=tuple(dev))


def alarms(
    folder: Path,
    task: str = "sort",
    *,
    n_pairs: int = 3000,
    seed: int = 1,
    preset: str | None = None,
    model: Settings | None = None,
    tokenizer: Settings | None = None,
    corpus: Settings | None = None,
    also: str = "",
    report: Callable[[dict[str, Any]], None] = lambda event: None,
    **training: Any,
) -> list[str]:
    """Names of the alarms of one small training."""
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
    sizes = {"d_model": 32, "n_heads": 2, "d_ff": 64, "n_encoder_layers": 1, "n_decoder_layers": 1}
    own = {**sizes, "norm": "pre", "dropout": 0.1, **(model or {})}
    found: list[str] = []

    def hear(event: dict[str, Any]) -> None:
        report(event)
        if event["kind"] == "alarm":
            found.append(event["name"])

    asked = {
        "data": {"disturb": 0.0},
        "tokenizer": {"slots": False, **(tokenizer or {"kind": "word", "vocab_size": 330})},
        "training": {**settings, **training},
        **({"preset": preset} if preset else {"model": own}),
    }
    run.run_training(
        Asked(asked),
        corpus_of(folder, task, n_pairs, seed, also=also, **(corpus or {})),
        folder / "run",
        report=hear,
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


@contextmanager
def patched_task(task: Task) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TASKS, "translate", task)
        yield


def labels_unshifted() -> AbstractContextManager[None]:
    def collate(*arguments: Any, **special_ids: int) -> batch.Batch:
        made = batch.collate(*arguments, **special_ids)
        return replace(made, tgt_in=made.tgt_out)

    return patched_task(replace(TASKS["translate"], collate=collate))


def no_causal_mask() -> AbstractContextManager[None]:
    attend_heads = MultiHeadAttention.attend_heads

    def see_all(self: MultiHeadAttention, *heads: Any, mask: Any = None, **_: Any) -> torch.Tensor:
        return attend_heads(self, *heads, mask=mask, is_causal=False)

    return patched(MultiHeadAttention, "attend_heads", see_all)


def memory_zeroed() -> AbstractContextManager[None]:
    encode = Transformer.encode

    def forget(self: Transformer, *arguments: Any) -> list[torch.Tensor]:
        return [memory * 0 for memory in encode(self, *arguments)]

    return patched(Transformer, "encode", forget)


def with_model(change: Callable[[Transformer], None]) -> AbstractContextManager[None]:
    """Trainings whose fresh model was changed."""
    resume = setup.resume

    def begin(trainer: Trainer, out: Path, *more: Any) -> tuple[bool, list[str]]:
        found = resume(trainer, out, *more)
        with torch.no_grad():
            change(trainer.model)
        return found

    return patched(run, "resume", begin)


def bias_on_one_word(model: Transformer) -> None:
    bias = torch.zeros(model.output.out_features)
    bias[9] = 50.0
    model.output.bias = nn.Parameter(bias, requires_grad=False)


def kill_relu(model: Transformer) -> None:
    for name, parameter in model.named_parameters():
        if name.endswith("feed_forward.expand.bias"):
            parameter.fill_(-100.0)


def spread_evenly(model: Transformer) -> None:
    """Cross-attention whose queries are lost: every source word is read alike."""
    for layer in model.decoder:
        attention = layer.cross_attention
        attention.attend_heads = lambda query, *heads, of=attention, **masks: (
            MultiHeadAttention.attend_heads(of, 0 * query, *heads, **masks)
        )


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


Fault = tuple[str, Callable[[], AbstractContextManager[None]], Settings]
REVERSE = {"task": "reverse"}
FAULTS: dict[str, Fault] = {
    "labels unshifted": ("labels-not-shifted", labels_unshifted, {}),
    "causal mask removed": ("mask-leak", no_causal_mask, {}),
    "memory zeroed": ("source-ignored", memory_zeroed, {}),
    "cross-attention evened": ("source-ignored", lambda: with_model(spread_evenly), REVERSE),
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
    "dev targets shuffled": ("bad-dev-set", nothing, {"corpus": {"is_dev_shuffled": True}}),
    "dev taken from training": ("bad-dev-set", nothing, {"corpus": {"is_dev_seen": True}}),
    "training targets shuffled": (
        "misaligned-training",
        nothing,
        {"corpus": {"is_train_shuffled": True}},
    ),
    "NaN gradient at step 60": ("non-finite", lambda: nan_gradient([60]), {}),
    "thirty pairs": (
        "over-fitting",
        nothing,
        {
            "n_pairs": 30,
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
WHOLE = {"max_steps": 200, "validations": 4}
"""Long enough for every fault, and for a second alarm to follow wrongly."""


@pytest.fixture
def validates_in_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults are put into the code of torch's model, which validations then have to run too."""
    monkeypatch.setattr(snapshot, "is_compiled", lambda: False)


@pytest.mark.usefixtures("validates_in_torch")
@pytest.mark.parametrize("fault", ["labels unshifted", "memory zeroed", "dev targets shuffled"])
def test_a_fault_is_named_within_sixty_steps(tmp_path: Path, fault: str) -> None:
    name, injected, settings = FAULTS[fault]
    with injected():
        assert alarms(tmp_path, n_pairs=1500, **{**QUICK, **settings}) == [name]


def test_a_healthy_training_of_a_hundred_steps_is_left_in_peace(tmp_path: Path) -> None:
    assert alarms(tmp_path, n_pairs=1500, max_steps=100, validations=4) == []


@pytest.mark.slow
@pytest.mark.reliability
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("validates_in_torch")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_first_and_alone(tmp_path: Path, fault: str) -> None:
    name, injected, settings = FAULTS[fault]
    with injected():
        found = alarms(tmp_path, **{**WHOLE, **settings})
    print(f"{fault:28} {', '.join(found) or 'nothing'}")
    assert found == [name]


TWO_LAYERS = {"d_model": 64, "d_ff": 128, "n_heads": 4, "n_encoder_layers": 2} | {
    "n_decoder_layers": 2
}
BPE = {"kind": "bpe", "vocab_size": 1200}
TINY = {"preset": "tiny", "max_steps": 120}
HEALTHY: dict[str, Settings] = {
    "reverse": {"task": "reverse"},
    "reverse, rotary": {"task": "reverse", "seed": 2, "model": {"positions": "rotary"}},
    "reverse, AdamW": {"task": "reverse", "seed": 3, "optimizer": "adamw", "learning_rate": 2e-3},
    "reverse, dropout 0.4": {"task": "reverse", "seed": 8, "model": {"dropout": 0.4}},
    "sort": {"seed": 4},
    "sort, two layers": {"seed": 5, "model": TWO_LAYERS},
    "sort, post-norm, GELU": {"seed": 6, "model": {"norm": "post", "activation": "gelu"}},
    "sort, 800 pairs": {"seed": 7, "n_pairs": 800, "max_steps": 200},
    "sort, cosine, accumulated": {"seed": 9, "schedule": "cosine", "accumulate": 2},
    "en-es": {"task": "en-es", "n_pairs": 2000, "model": TWO_LAYERS, "tokenizer": BPE},
    "zh-en": {"task": "zh-en", "n_pairs": 2000, "model": TWO_LAYERS, "tokenizer": BPE},
    "en-fr, average": {"task": "en-fr", "n_pairs": 2000, "tokenizer": BPE, "ema_decay": 0.99},
    "en to es and fr": {"task": "en-es", "also": "en-fr", "n_pairs": 2000, "tokenizer": BPE},
    "fr-en, preset tiny": {"task": "fr-en", "n_pairs": 2000, "tokenizer": BPE, **TINY},
}
IN_CI = ("reverse", "reverse, AdamW", "sort, 800 pairs", "sort, cosine, accumulated", "zh-en")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.reliability] * (n in IN_CI)) for n in HEALTHY],
)
def test_a_healthy_training_gives_no_alarm(tmp_path: Path, name: str) -> None:
    found = alarms(tmp_path, **HEALTHY[name])
    print(f"{name:28} {', '.join(found) or 'nothing'}")
    assert found == []
