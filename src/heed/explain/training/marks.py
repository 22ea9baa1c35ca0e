"""Marks on a run's curves: its important events, in words."""

from collections.abc import Callable
from dataclasses import dataclass

from heed.explain.training.values import number, text, time_in_words
from heed.train.step.events import Event


@dataclass(frozen=True, kw_only=True)
class Mark:
    """An event of a run.

    Attributes:
        kind: `alarm`, `average`, `best`, `checkpoint`, `end`, `mend`, `note`, `pause`, `resumed`
            or `skipped`.
        step: optimizer steps made.
        epoch: passes through the corpus, as a fraction; None = unknown.
        seconds: time that the run had taken; None = unknown.
        text: what happened, in a sentence.
        remedy: advice; empty = none.
    """

    kind: str
    step: int
    epoch: float | None
    seconds: float | None
    text: str
    remedy: str = ""


SCORES = {"bleu": "BLEU", "chrf": "chrF", "accuracy": "accuracy", "f1": "F1"}
"""Scores that are better when larger: maps a name in the log to its spelling."""


def main_score(event: Event) -> tuple[str, float] | None:
    """The first of `SCORES` that a validation has, by its name in the log; None = none."""
    for name in SCORES:
        value = number(event, name)
        if value is not None:
            return name, value
    return None


def score_in_words(event: Event) -> str:
    """`BLEU 34.1`, or `loss 2.31` for a task without such a score."""
    found = main_score(event)
    if found:
        return _spelled(*found)
    loss = number(event, "loss")
    return "a loss that is not finite" if loss is None else _spelled("loss", loss)


def _spelled(name: str, value: float) -> str:
    return f"{SCORES[name]} {value:.1f}" if name in SCORES else f"{name} {value:.2f}"


def best_in_words(event: Event, metric: str) -> str:
    """`chrF 52.0, BLEU 34.1`: the score that chose the best model, and the main one."""
    found, chosen = main_score(event), number(event, metric)
    words = score_in_words(event)
    if chosen is None or found is None or found[0] == metric:
        return words
    return f"{_spelled(metric, chosen)}, {words}"


def _best(event: Event, metric: str) -> str:
    is_best = event.get("is_best") is True
    return f"The best so far: {best_in_words(event, metric)}." if is_best else ""


def _skipped(event: Event, _: str) -> str:
    is_so = event.get("is_skipped") is True
    return "A loss or gradient was not finite: nothing was learned in this step." if is_so else ""


def _end(event: Event, _: str) -> str:
    seconds = number(event, "elapsed_s")
    return f"Finished after {time_in_words(seconds)}." if seconds is not None else "Finished."


def _average(event: Event, _: str) -> str:
    kept = "kept" if event.get("is_best") is True else "not kept"
    return f"The average of the last checkpoints has {score_in_words(event)}; it was {kept}."


def _told(event: Event, _: str) -> str:
    return _sentence(text(event, "text"))


WORDS: dict[str, tuple[str, Callable[[Event, str], str]]] = {
    "alarm": ("alarm", _told),
    "average": ("average", _average),
    "checkpoint": ("checkpoint", lambda *_: "A checkpoint was saved."),
    "end": ("end", _end),
    "mend": ("mend", _told),
    "note": ("note", _told),
    "pause": ("pause", lambda *_: "Stopped and saved."),
    "step": ("skipped", _skipped),
    "validation": ("best", _best),
}
"""Maps the kind of an event to the kind of its mark, and to a function from the event and the
metric that chooses the best model to words. Other events have no mark."""


def mark_of(event: Event, metric: str) -> tuple[str, str, str] | None:
    """Kind, text and remedy of an event's mark, as training logged it; None = it has no mark.

    Args:
        event: an event of the log.
        metric: the metric that chooses the best model.
    """
    kind, words = WORDS.get(text(event, "kind"), ("", lambda *_: ""))
    said = words(event, metric)
    return (kind, said, text(event, "remedy")) if said else None


def _sentence(words: str) -> str:
    """Words with a capital at the beginning and a period at the end."""
    if not words:
        return ""
    return f"{words[0].upper()}{words[1:]}{'' if words.endswith(('.', '!', '?', '…')) else '.'}"
