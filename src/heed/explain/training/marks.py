"""The events of a run that are worth a mark on its curves, in words."""

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
        epoch: passes through the corpus, in part; None = unknown.
        seconds: that the run had taken; None = unknown.
        text: what happened, in a sentence.
        remedy: what to do about it; empty = nothing.
    """

    kind: str
    step: int
    epoch: float | None
    seconds: float | None
    text: str
    remedy: str = ""


SCORES = {"bleu": "BLEU", "chrf": "chrF", "accuracy": "accuracy", "f1": "F1"}
"""Scores that are better when larger, by their names in the log, and as they are written."""


def main_score(event: Event) -> tuple[str, float] | None:
    """The first of `SCORES` that a validation has, by its name in the log; None = none."""
    for name in SCORES:
        value = number(event, name)
        if value is not None:
            return name, value
    return None


def score_in_words(event: Event) -> str:
    """`BLEU 34.1`, or `loss 2.31` of what is not translated."""
    found = main_score(event)
    if found:
        return f"{SCORES[found[0]]} {found[1]:.1f}"
    loss = number(event, "loss")
    return "a loss that is not finite" if loss is None else f"loss {loss:.2f}"


def best_in_words(event: Event, metric: str) -> str:
    """`chrF 52.0, BLEU 34.1`: the score that chose the best model, and the main one."""
    found, chosen = main_score(event), number(event, metric)
    words = score_in_words(event)
    if chosen is None or found is None or found[0] == metric:
        return words
    return f"{SCORES.get(metric, metric)} {chosen:.{1 if metric in SCORES else 2}f}, {words}"


def _best(event: Event, metric: str) -> str:
    is_best = event.get("is_best") is True
    return f"The best so far: {best_in_words(event, metric)}." if is_best else ""


def _skipped(event: Event) -> str:
    is_so = event.get("is_skipped") is True
    return "A loss or gradient was not finite: nothing was learned in this step." if is_so else ""


def _end(event: Event) -> str:
    seconds = number(event, "elapsed_s")
    return f"Finished after {time_in_words(seconds)}." if seconds is not None else "Finished."


def _average(event: Event) -> str:
    kept = "kept" if event.get("is_best") is True else "not kept"
    return f"The average of the last checkpoints has {score_in_words(event)}; it was {kept}."


WORDS: dict[str, tuple[str, Callable[[Event], str]]] = {
    "alarm": ("alarm", lambda event: _sentence(text(event, "text"))),
    "average": ("average", _average),
    "checkpoint": ("checkpoint", lambda _: "A checkpoint was saved."),
    "end": ("end", _end),
    "mend": ("mend", lambda event: _sentence(text(event, "text"))),
    "note": ("note", lambda event: _sentence(text(event, "text"))),
    "pause": ("pause", lambda _: "Stopped and saved."),
    "step": ("skipped", _skipped),
}
"""Kind of an event → kind of its mark, and its words; none = no mark. Validations have more."""


def mark_of(event: Event, metric: str) -> tuple[str, str, str] | None:
    """Kind, text and remedy of the mark of an event, as training wrote it; None = it needs none.

    Args:
        event: of the log.
        metric: by which the best model is chosen.
    """
    if event.get("kind") == "validation":
        kind, said = "best", _best(event, metric)
    else:
        kind, words = WORDS.get(text(event, "kind"), ("", lambda _: ""))
        said = words(event)
    return (kind, said, text(event, "remedy")) if said else None


def _sentence(words: str) -> str:
    """With a capital at the beginning and a stop at the end."""
    if not words:
        return ""
    return f"{words[0].upper()}{words[1:]}{'' if words.endswith(('.', '!', '?', '…')) else '.'}"
