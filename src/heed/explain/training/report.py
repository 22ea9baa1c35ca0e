"""Runs as JSON values: a whole run, or the changes since a cursor."""

from dataclasses import asdict, dataclass
from typing import Any

from heed.explain.training.headline import headline
from heed.explain.training.history import forecast_of
from heed.explain.training.marks import SCORES, best_in_words
from heed.explain.training.run import TrainingRun
from heed.explain.training.values import count, number, record, text
from heed.train.step.events import Event


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """The position of a reader in a run.

    Attributes:
        generation: generation of the log.
        n_halvings: halvings of the curves; each one invalidates the rows read before.
        n_steps: rows of the steps.
        n_validations: rows of the validations.
        n_marks: number of events.
    """

    generation: int
    n_halvings: int
    n_steps: int
    n_validations: int
    n_marks: int


def cursor_of(run: TrainingRun) -> Cursor:
    """The cursor of a reader who has read everything."""
    history = run.history
    return Cursor(
        generation=run.generation,
        n_halvings=history.steps.n_halvings + history.validations.n_halvings,
        n_steps=len(history.steps.rows),
        n_validations=len(history.validations.rows),
        n_marks=history.n_marks,
    )


def status(run: TrainingRun) -> dict[str, Any]:
    """The state of a run: its headline and its current figures; None = unknown."""
    history = run.history
    step, validation, start = history.latest_step, history.latest_validation, history.start
    best = history.best_validation
    metric = next((name for name in SCORES if number(validation, name) is not None), "loss")
    return {
        "name": run.name,
        "state": run.state,
        "headline": headline(run),
        "step": history.step,
        "epoch": history.epochs,
        "seconds": history.seconds,
        "share": 1.0 if run.state == "finished" else number(step, "share"),
        "left_s": run.left_s,
        "loss": history.smoothed_loss,
        "tokens_per_s": number(step, "tokens_per_s"),
        "memory_mb": number(step, "memory_mb"),
        "metric": metric,
        "score": number(validation, metric),
        "best": _best(best, metric, history.metric) if best else None,
        "forecast_of": forecast_of(validation),
        "signatures": {
            name: text(record(validation, "signatures"), name)
            for name in SCORES
            if name in record(validation, "signatures")
        },
        "saved_step": run.saved_step or None,
        "n_alarms": len(history.alarms),
        "n_unreadable": run.n_unreadable,
        "limits": {"seconds": number(start, "time_s"), "steps": number(start, "max_steps")},
    }


def _best(event: Event, metric: str, chosen_by: str) -> dict[str, Any]:
    """The best validation: its step, its main score, and the score that chose it, in words."""
    return {
        "step": count(event, "step"),
        "score": number(event, metric),
        "words": best_in_words(event, chosen_by),
    }


def whole(run: TrainingRun) -> dict[str, Any]:
    """The whole run: status, curves, events, samples, settings, facts."""
    history = run.history
    return {
        "status": status(run),
        "steps": history.steps.as_dict(),
        "steps_per_row": history.steps.stride,
        "validations": history.validations.as_dict(),
        "marks": [asdict(mark) for mark in history.marks],
        "samples": history.samples.as_dict(),
        "settings": run.settings,
        "facts": _facts(run),
    }


def news(run: TrainingRun, since: Cursor) -> dict[str, Any] | None:
    """The changes after a cursor; None if the earlier data is invalid and `whole` must be read."""
    now, history = cursor_of(run), run.history
    if (since.generation, since.n_halvings) != (now.generation, now.n_halvings):
        return None
    n_new = now.n_marks - since.n_marks
    changes: dict[str, Any] = {
        "status": status(run),
        "steps": history.steps.as_dict(since.n_steps),
        "validations": history.validations.as_dict(since.n_validations),
        "marks": [asdict(mark) for mark in list(history.marks)[-n_new:]] if n_new > 0 else [],
    }
    if now.n_validations > since.n_validations:
        changes["samples"] = history.samples.as_dict()
    return changes


def _facts(run: TrainingRun) -> dict[str, Any]:
    """Facts about the run for display."""
    start = run.history.start
    environment, counts = record(start, "environment"), record(start, "text")
    return {
        "parameters": count(start, "parameters"),
        "model": text(start, "summary"),
        "corpus": {key[:80]: count(counts, key) for key in list(counts)[:8]},
        "threads": count(environment, "threads"),
        "processes": count(environment, "processes"),
        "task": str(run.settings.get("task", "")),
    }
