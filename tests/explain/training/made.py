"""Logs of made-up runs."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from heed.disk.files import append_json_line

SENTENCES = [("Two dogs.", "Zwei Hunde."), ("A man.", "Ein Mann.")]


def start(step: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "kind": "start",
        "step": step,
        "parameters": 1000,
        "text": {"training pairs": 500},
        "summary": "1 + 1 layers",
        "time_s": None,
        "max_steps": 100,
        "environment": {"threads": 2, "cpu": "a processor"},
        **more,
    }


def epoch(number: int, step: int, batch: int = 0, batches: int = 50) -> dict[str, Any]:
    return {
        "kind": "epoch",
        "step": step,
        "epoch": number,
        "batch": batch,
        "batches": batches,
        "steps": batches,
    }


def step(number: int, loss: float | None = 2.0, **more: Any) -> dict[str, Any]:
    return {
        "kind": "step",
        "step": number,
        "epoch": 0,
        "share": number / 100,
        "elapsed_s": number / 2,
        "left_s": (100 - number) / 2,
        "rate_factor": 0.5,
        "nll": loss,
        "gradient_norm": 1.5,
        "tokens_per_s": 1000.0,
        "memory_mb": 512,
        "is_skipped": False,
        **more,
    }


def validation(number: int, bleu: float, *hyps: str, **more: Any) -> dict[str, Any]:
    return {
        "kind": "validation",
        "step": number,
        "elapsed_s": number / 2,
        "is_best": True,
        "loss": 3.0 - bleu / 20,
        "bleu": bleu,
        "chrf": bleu + 20,
        "intervals": {"bleu": [bleu - 1, bleu + 1.5], "chrf": [bleu + 19, bleu + 21]},
        "signatures": {"bleu": "nrefs:1|case:mixed"},
        "samples": [
            {"src": src, "ref": ref, "hyp": hyp, "chrf": 50.0}
            for (src, ref), hyp in zip(SENTENCES, hyps, strict=False)
        ],
        "watch": {"train_loss": 1.9},
        **more,
    }


def write(run: Path, events: Iterable[dict[str, Any]], recipe: str = "") -> Path:
    """Append events to the log of a run folder; write its recipe, if one is given."""
    run.mkdir(parents=True, exist_ok=True)
    if recipe:
        (run / "recipe.toml").write_text(recipe)
    for event in events:
        append_json_line(run / "metrics.jsonl", event)
    return run
