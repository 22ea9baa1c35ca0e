# ruff: noqa: T201 (a script speaks to its terminal)
r"""heed's recurrent family beside JoeyNMT's: tokens/s in training and in greedy translation.

    python benchmarks/rnn_speed.py --src train.en --tgt train.de --dev-src val.en \
        --dev-tgt val.de --test-src test.en --threads 1
    python benchmarks/rnn_speed.py --src train.en --tgt train.de --dev-src val.en \
        --dev-tgt val.de --test-src test.en --test-tgt test.de --width 256 --converge OUT

Both sides train the same sizes on the same pieces with Adam, dropout 0.2, label smoothing 0.1 and
as many tokens a batch, then translate the test set greedily with what they learned, in turn. Time
is that of the process, so that other programs do not count. The first call installs JoeyNMT from
PyPI into a virtualenv of its own (`--peers`, kept).

`--converge` asks how good JoeyNMT's becomes instead: it trains by the `STAGES`, one after another,
after its own recurrent recipe; the last stage's best model of the development set is scored with a
beam of 5. `--share 0.01` does it in a hundredth of the updates, to try it. heed's are in
`families.py`.
"""

import argparse
import dataclasses
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import peers
import speed

KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "LSTM, dot": ("lstm", "dot", {"attention": "luong", "input_feeding": False}),
    "GRU, additive": ("gru", "additive", {"attention": "bahdanau", "input_feeding": True}),
}
"""Cell and attention in heed, and the decoder in JoeyNMT.

JoeyNMT attends after its cell. The last context reaches the next step by input feeding, which takes
the place of the context that heed's additive attention gives to the cell; heed's dot attention has
neither. JoeyNMT's "luong" has a matrix in its score, which heed's "dot" has not.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage:
    """A part of JoeyNMT's training to its end.

    Attributes:
        updates: how many.
        validations: spread evenly over them; the last one is at the end.
        batch_tokens: of a batch, padding included.
        dropout: everywhere.
        fall: factor of the rate from one epoch to the next; the first has 0.001.
    """

    updates: int
    validations: int
    batch_tokens: int
    dropout: float
    fall: float

    def scaled(self, share: float) -> "Stage":
        """The same in a share of the updates: each validation has as many before it."""
        every = max(1, round(share * self.updates / self.validations))
        return dataclasses.replace(self, updates=every * self.validations)


STAGES = (
    Stage(updates=480, validations=2, batch_tokens=2048, dropout=0.3, fall=0.8),
    Stage(updates=6860, validations=14, batch_tokens=512, dropout=0.2, fall=0.75),
)
"""Two epochs of Multi30k in large batches, then six and a half in small ones, which teach it
faster."""
WARMUP, EVERY = 10, 5
DROPOUT = 0.2
LOGGED = re.compile(r"Step: +(\d+), .*Tokens per Sec: +(\d+)")
RUNNER = """
import runpy, time
time.time = time.process_time
runpy.run_module("joeynmt", run_name="__main__", alter_sys=True)
"""
"""JoeyNMT, whose log has the seconds of its process in place of those of the clock."""
CONVERGER = """
import random, runpy
from joeynmt import datasets

def by_length(sampler):
    pairs = sampler.sampler.data_source
    order, batches, batch = list(sampler.sampler), [], []
    for start in range(0, len(order), 5000):
        pool = order[start : start + 5000]
        sizes = {i: max(len(side) for side in pairs[i][1:]) + 1 for i in pool}
        for i in sorted(pool, key=sizes.get):
            if batch and sizes[i] * (len(batch) + 1) > sampler.batch_size:
                batches.append(batch)
                batch = []
            batch.append(i)
    batches.append(batch)
    random.shuffle(batches)
    return iter(batches)

datasets.TokenBatchSampler.__iter__ = by_length
runpy.run_module("joeynmt", run_name="__main__", alter_sys=True)
"""
"""JoeyNMT with batches of similar length, which it does not make: else half of what it computes is
padding."""
TOOK = re.compile(r"Generation took ([\d.]+)\[sec\]")


def corpus_of(settings: speed.Settings) -> dict[str, str]:
    """The files by the names that `peers` has for them."""
    return {key: settings[key] for key in ("src", "tgt", "dev_src", "dev_tgt", "test_src")}


def measure_heed(settings: speed.Settings) -> speed.Numbers:
    """Train for some steps and translate; preparing the corpus and loading are not counted."""
    from heed.data.corpus import Corpus
    from heed.data.lines import read_lines
    from heed.data.readers import ParallelFiles
    from heed.train.recipe.asked import Asked
    from heed.train.run.run import run_training
    from heed.translate.translator import load

    cell, attention, _ = KINDS[settings["kind"]]
    model = {"family": "rnn", "d_model": settings["width"], "cell": cell, "attention": attention}
    layers = {"n_encoder_layers": settings["layers"], "n_decoder_layers": settings["layers"]}
    training = {
        "max_steps": WARMUP + settings["steps"],
        "batch_tokens": settings["batch_tokens"],
        "first_batch_tokens": None,
        "optimizer": "adam",
        "label_smoothing": 0.1,
        "validations": 1,
        "validation_sentences": 0,
        "threads": settings["threads"],
        "device": "cpu",
        "seed": 1,
    }
    files = corpus_of(settings)
    train, dev = (
        (ParallelFiles(files=(files[f"{prefix}src"], files[f"{prefix}tgt"])),)
        for prefix in ("", "dev_")
    )
    seen: list[tuple[float, int]] = []

    def note(event: dict[str, Any]) -> None:
        if event["kind"] == "step":
            seen.append((time.process_time(), event["n_tgt_tokens"]))

    asked = Asked({"model": {**model, **layers, "dropout": DROPOUT}, "training": training})
    out = Path(tempfile.mkdtemp(dir=settings["folder"])) / "run"
    run_training(asked, Corpus(train=train, dev=dev), out, report=note)
    n_tokens = sum(count for _, count in seen[WARMUP:])
    training_s = seen[-1][0] - seen[WARMUP - 1][0]

    translator = load(out, device="cpu", threads=settings["threads"])
    lines = list(read_lines(files["test_src"]))
    search = {"beam_size": 1, "max_length": settings["max_length"]}
    list(translator.translate_stream(lines[:8], **search))
    started_at = time.process_time()
    found = list(translator.translate_stream(lines, **search))
    translating_s = time.process_time() - started_at
    return {
        "tgt_tokens_per_s": n_tokens / training_s,
        "output_tokens_per_s": sum(len(each.token_scores) for each in found) / translating_s,
        "sentences_per_s": len(lines) / translating_s,
    }


def joeynmt_config(settings: speed.Settings, task: peers.Task) -> dict[str, Any]:
    """JoeyNMT's Transformer config with a recurrent network, Adam at the same rate."""
    cell, _, decoder = KINDS[settings["kind"]]
    width, n_steps = settings["width"], WARMUP + settings["steps"]
    stack = {
        "type": "recurrent",
        "rnn_type": cell,
        "num_layers": settings["layers"],
        "dropout": DROPOUT,
        "embeddings": {"embedding_dim": width, "scale": True, "dropout": DROPOUT},
    }
    config = peers.joeynmt_config(task)
    config["testing"]["max_output_length"] = settings["max_length"]
    config["training"] |= {
        "batch_size": settings["batch_tokens"],
        "updates": n_steps,
        "validation_freq": n_steps,
        "logging_freq": EVERY,
    }
    config["model"] |= {
        "encoder": {**stack, "hidden_size": width // 2, "bidirectional": True},
        "decoder": {**stack, "hidden_size": width, "hidden_dropout": DROPOUT, **decoder},
    }
    config["model"]["decoder"]["init_hidden"] = "bridge"
    return config


def measure_joeynmt(settings: speed.Settings, task: peers.Task) -> speed.Numbers:
    """Train and translate by its own commands; its log has the rate and the time."""
    config = joeynmt_config(settings, task)
    path = peers.write_json(task.run / "config.yaml", config)
    log = run([task.python, "-c", RUNNER, "train", path, "--skip-test"], settings)
    rates = [int(rate) for step, rate in LOGGED.findall(log) if int(step) > WARMUP]
    (saved,) = set(task.model.glob("[0-9]*.ckpt"))
    config["testing"]["load_model"] = str(saved)
    path = peers.write_json(task.run / "translate.yaml", config)
    with (task.data / "test.src").open() as lines:
        log = run([task.python, "-c", RUNNER, "translate", path], settings, lines)
    (took,) = TOOK.findall(log)
    pieces = [line.split() for line in log.splitlines() if not re.match(r"\d{4}-\d\d-", line)]
    n_lines = len((task.data / "test.src").read_text("utf-8").splitlines())
    written = pieces[-n_lines:]
    return {
        "tgt_tokens_per_s": statistics.harmonic_mean(rates),
        "output_tokens_per_s": sum(len(line) + 1 for line in written) / float(took),
        "sentences_per_s": n_lines / float(took),
    }


def converging_config(
    settings: speed.Settings, task: peers.Task, stage: Stage, start: Path | None = None
) -> dict[str, Any]:
    """After `configs/iwslt_envi_luong.yaml` of its repository, in heed's sizes.

    Its bidirectional LSTM, Luong attention, input feeding, initial weights and gradient norm. Adam
    from 0.001 in the place of its SGD; label smoothing, since the corpus is small; one vocabulary.
    Its plateau schedule does not run with torch 2.13, nor end in a time that can be told before, so
    the rate falls each epoch.

    Args:
        settings: of this script.
        task: where it trains, and on what.
        stage: the part of the training.
        start: checkpoint whose weights and moments it goes on from; None = from nothing.
    """
    sizes = {"kind": "LSTM, dot", "steps": 0, "batch_tokens": stage.batch_tokens}
    config = joeynmt_config({**settings, **sizes}, task)
    config["data"]["dev"] = str(task.data / "dev")
    config["testing"]["eval_metrics"] = ["bleu"]
    every = stage.updates // stage.validations
    config["training"] |= {
        # The schedule takes a step before the first epoch.
        "learning_rate": 0.001 / stage.fall,
        "scheduling": "exponential",
        "decrease_factor": stage.fall,
        "learning_rate_min": 0.0,
        "clip_grad_norm": 5.0,
        "updates": stage.updates,
        "validation_freq": every,
        "logging_freq": max(1, every // 5),
        "keep_best_ckpts": 2,
        "early_stopping_metric": "bleu",
    }
    if start is not None:
        resets = ("reset_scheduler", "reset_iter_state", "reset_best_ckpt")
        config["training"] |= {"load_model": str(start), **dict.fromkeys(resets, True)}
    uniform = {"initializer": "uniform", "embed_initializer": "uniform"}
    ranges = dict.fromkeys(("init_weight", "embed_init_weight", "bias_init_weight"), 0.1)
    config["model"] |= {**uniform, "bias_initializer": "uniform", **ranges}
    for stack in (config["model"]["encoder"], config["model"]["decoder"]):
        stack["dropout"] = stage.dropout
        stack["embeddings"] |= {"scale": False, "dropout": stage.dropout}
    config["model"]["decoder"] |= {"input_feeding": True, "hidden_dropout": stage.dropout}
    return config


def converge(
    settings: speed.Settings, task: peers.Task, stages: Sequence[Stage] = STAGES
) -> dict[str, Any]:
    """Train JoeyNMT stage by stage, translate with its best model, and score with sacreBLEU."""
    from sacrebleu.metrics import BLEU, CHRF

    from heed.data.lines import read_lines

    start: Path | None = None
    validations: list[list[str]] = []
    began = time.monotonic()
    for number, stage in enumerate(stages, 1):
        part = dataclasses.replace(task, run=task.run / str(number))
        config = converging_config(settings, part, stage, start)
        path = peers.write_json(part.run / "config.yaml", config)
        log = run([task.python, "-c", CONVERGER, "train", path, "--skip-test"], settings)
        (part.run / "train.log").write_text(log, "utf-8")
        validations.append((part.model / "validations.txt").read_text("utf-8").splitlines())
        start = (part.model / "latest.ckpt").resolve()
    seconds = time.monotonic() - began
    best = (part.model / "best.ckpt").resolve()
    config["testing"]["load_model"] = str(best)
    path = peers.write_json(task.run / "translate.yaml", config)
    with (task.data / "test.src").open() as lines:
        log = run([task.python, "-c", CONVERGER, "translate", path], settings, lines)
    references = list(read_lines(settings["test_tgt"]))
    found = [line for line in log.splitlines() if not re.match(r"\d{4}-\d\d-", line)]
    texts = peers.text_of(found[-len(references) :], task.data)
    (task.run / "test.hyp").write_text("".join(f"{text}\n" for text in texts), "utf-8")
    bleu, chrf = (metric.corpus_score(texts, [references]) for metric in (BLEU(), CHRF()))
    return {
        "bleu": bleu.score,
        "chrf2": chrf.score,
        "bleu lower-cased": BLEU(lowercase=True).corpus_score(texts, [references]).score,
        "seconds": seconds,
        "step": int(best.stem),
        "validations": validations,
    }


def run(command: peers.Command, settings: speed.Settings, stdin: Any = None) -> str:
    """What a command of JoeyNMT says on both streams."""
    threads = {"OMP_NUM_THREADS": str(settings["threads"]), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        command,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **threads},
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        sys.exit(f"JoeyNMT failed:\n{done.stdout[-2000:]}")
    return done.stdout


def table(results: dict[str, dict[str, list[speed.Numbers]]]) -> str:
    """Markdown: medians, and the ratio of each turn from the lowest to the highest."""
    rows = ["| | heed | JoeyNMT | ratio |", "|---|--:|--:|--:|"]
    words = {"tgt_tokens_per_s": "training", "output_tokens_per_s": "greedy translation"}
    for (kind, sides), (key, what) in itertools.product(results.items(), words.items()):
        ours, theirs = ([one[key] for one in sides[side]] for side in ("heed", "JoeyNMT"))
        ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
        rows.append(
            f"| {kind}, {what} | {statistics.median(ours):,.0f} | {statistics.median(theirs):,.0f} "
            f"| {statistics.median(ratios):.2f} ({min(ratios):.2f} – {max(ratios):.2f}) |"
        )
    return "\n".join(rows)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    whole = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for flag in ("--src", "--tgt", "--dev-src", "--dev-tgt", "--test-src"):
        whole.add_argument(flag, required=True, metavar="FILE")
    whole.add_argument("--width", type=int, default=512, help="of embeddings and states")
    whole.add_argument("--layers", type=int, default=1, help="of the encoder and of the decoder")
    whole.add_argument("--batch-tokens", type=int, default=2048, metavar="N")
    whole.add_argument("--steps", type=int, default=60, metavar="N")
    whole.add_argument("--max-length", type=int, default=50, help="of a translation, in pieces")
    whole.add_argument("--threads", type=int, default=1)
    whole.add_argument("--repeat", type=int, default=2)
    whole.add_argument("--peers", type=Path, default=Path("peers"), help="where they are installed")
    whole.add_argument("--converge", type=Path, metavar="DIR", help="how good JoeyNMT's becomes")
    whole.add_argument("--test-tgt", metavar="FILE", help="for --converge")
    whole.add_argument(
        "--share", type=float, default=1.0, help="of --converge's updates, to try it"
    )
    whole.add_argument("--json", action="store_true", help="every single number, as JSON")
    return whole


def task_of(settings: speed.Settings, run: Path, *, python: Path, beam_size: int) -> peers.Task:
    """A training of JoeyNMT on the pieces that lie in `settings["folder"]`."""
    return peers.Task(
        corpus=corpus_of(settings),
        data=Path(settings["folder"]),
        run=run,
        python=python,
        time_s=0.0,
        seed=1,
        preset=None,
        threads=settings["threads"],
        beam_size=beam_size,
    )


def compare(settings: speed.Settings, python: Path) -> dict[str, dict[str, list[speed.Numbers]]]:
    """Measure both sides in turn; a measurement of heed is a process of its own."""
    sides = ("heed", "JoeyNMT")
    results: dict[str, dict[str, list[speed.Numbers]]] = {
        kind: {side: [] for side in sides} for kind in KINDS
    }
    for turn, kind, side in itertools.product(range(settings["repeat"]), KINDS, sides):
        if side == "heed":
            found = speed.in_own_process("heed", {**settings, "kind": kind}, script=__file__)
        else:
            run_in = Path(tempfile.mkdtemp(dir=settings["folder"]))
            task = task_of(settings, run_in, python=python, beam_size=1)
            found = measure_joeynmt({**settings, "kind": kind}, task)
        turns = f"{turn + 1} of {settings['repeat']}"
        print(f"{kind}, {side}, {turns}: {json.dumps(found)}", file=sys.stderr)
        results[kind][side].append(found)
    return results


def main(arguments: list[str]) -> None:
    """Install, prepare, measure, print."""
    if arguments[:1] == [speed.CHILD]:
        print(json.dumps(measure_heed(json.loads(arguments[2]))))
        return
    settings: speed.Settings = vars(parser().parse_args(arguments))
    python = peers.install(peers.JOEYNMT, settings.pop("peers").absolute())
    settings |= {k: os.path.abspath(v) for k, v in corpus_of(settings).items()}
    out: Path | None = settings.pop("converge")
    with tempfile.TemporaryDirectory(prefix="heed-rnn-speed-") as folder:
        settings["folder"] = folder
        peers.write_pieces(corpus_of(settings), Path(folder))
        if out is not None:
            task = task_of(settings, out.absolute(), python=python, beam_size=5)
            stages = [stage.scaled(settings["share"]) for stage in STAGES]
            print(json.dumps(converge(settings, task, stages), indent=2))
            return
        results = compare(settings, python)
    print(json.dumps(results, indent=2) if settings["json"] else table(results))


if __name__ == "__main__":
    main(sys.argv[1:])
