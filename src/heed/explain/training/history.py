"""`History`: the log of a run, event by event, as curves, marks and samples."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from heed.explain.training.columns import Columns
from heed.explain.training.marks import Mark, mark_of
from heed.explain.training.samples import Samples
from heed.explain.training.values import count, number, record, text
from heed.train.step.events import Event

PLACES = ("step", "epoch", "seconds")
STEPS = (
    *PLACES,
    *("loss", "learning_rate", "gradient_norm", "tokens_per_s", "memory_mb", "left_s"),
)
"""Columns of one in twenty optimizer steps. The loss is in nats per target token."""

VALIDATIONS = (
    *PLACES,
    *("loss", "train_loss", "bits", "bleu", "bleu_low", "bleu_high", "chrf", "chrf_low"),
    *("chrf_high", "accuracy", "f1", "forecast_low", "forecast_middle", "forecast_high"),
)
"""Columns of validations. The loss is that of the development set."""

FORECASTS = ("bleu", "chrf", "loss")
"""Scores that are forecast; the first one in the log is used."""

MAX_MARKS = 2000
SMOOTHING = 0.9
"""Weight of the earlier values in the smoothed loss."""


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """A pass through the corpus.

    Attributes:
        number: number of passes before it.
        step: step at which it began, or continued after a pause.
        done: share of the pass that was done at `step`.
        steps: number of steps in the whole pass.
    """

    number: int = 0
    step: int = 0
    done: float = 0.0
    steps: float = 1.0

    def at(self, step: int) -> float:
        """Passes through the corpus at a step, as a fraction."""
        return self.number + min(1.0, self.done + (step - self.step) / self.steps)


@dataclass
class History:
    """The contents of a log so far.

    Attributes:
        learning_rate: peak rate of the recipe, which the log's factors multiply; None = unknown.
        metric: metric of the recipe that chooses the best model; "" = unknown.
        steps: the columns `STEPS`.
        validations: the columns `VALIDATIONS`.
        marks: the latest events, oldest first.
        n_marks: number of events so far, including dropped ones.
        alarms: the events that are alarms.
        samples: sample translations.
        start: the start event of the latest session: corpus, model, environment, limits.
        latest_step: the latest step in the log; empty before the first.
        latest_validation: empty before the first.
        best_validation: empty before the first.
        smoothed_loss: smoothed training loss; None before the first step.
        step: number of optimizer steps so far.
        seconds: time taken so far, over all sessions.
        epoch: the current pass through the corpus.
        last: the last event that is `start`, `pause` or `end`; empty before the first.
    """

    learning_rate: float | None = None
    metric: str = ""
    steps: Columns = field(default_factory=lambda: Columns(STEPS, places=(*PLACES, "left_s")))
    validations: Columns = field(default_factory=lambda: Columns(VALIDATIONS, places=PLACES))
    marks: deque[Mark] = field(default_factory=lambda: deque(maxlen=MAX_MARKS))
    n_marks: int = 0
    alarms: list[Mark] = field(default_factory=list)
    samples: Samples = field(default_factory=Samples)
    start: Event = field(default_factory=dict)
    latest_step: Event = field(default_factory=dict)
    latest_validation: Event = field(default_factory=dict)
    best_validation: Event = field(default_factory=dict)
    smoothed_loss: float | None = None
    step: int = 0
    seconds: float | None = None
    epoch: Epoch | None = None
    last: str = ""

    @property
    def epochs(self) -> float | None:
        """Passes through the corpus so far, as a fraction; None before the first."""
        return self.epoch.at(self.step) if self.epoch else None

    def take(self, event: Event) -> None:
        """Add an event; events must come in the order of the log."""
        kind = text(event, "kind")
        self.step = count(event, "step") or self.step
        seconds = number(event, "elapsed_s")
        self.seconds = self.seconds if seconds is None else seconds
        if kind == "start":
            if self.start:
                self._mark("resumed", "Resumed.")
            self.start = event
        elif kind == "epoch":
            self._begin_epoch(event)
        elif kind == "step":
            self._take_step(event)
        elif kind == "validation":
            self._take_validation(event)
        if found := mark_of(event, self.metric):
            self._mark(*found)
        if kind in ("start", "pause", "end"):
            self.last = kind

    def _mark(self, kind: str, words: str, remedy: str = "") -> None:
        mark = Mark(
            kind=kind,
            step=self.step,
            epoch=self.epochs,
            seconds=self.seconds,
            text=words,
            remedy=remedy,
        )
        self.marks.append(mark)
        self.n_marks += 1
        if kind == "alarm" and len(self.alarms) < MAX_MARKS:
            self.alarms.append(mark)

    def _begin_epoch(self, event: Event) -> None:
        done = (number(event, "batch") or 0.0) / (number(event, "batches") or 1.0)
        # Logs of heed 0.1 lack the first step of an epoch; the last logged step is close to it.
        self.epoch = Epoch(
            number=count(event, "epoch") or 0,
            step=self.step,
            done=max(0.0, min(1.0, done)),
            steps=max(1.0, number(event, "steps") or 1.0),
        )

    def _places(self) -> dict[str, float | None]:
        return {"step": self.step, "epoch": self.epochs, "seconds": self.seconds}

    def _take_step(self, event: Event) -> None:
        self.latest_step, loss = event, number(event, "nll")
        if loss is not None:
            before = loss if self.smoothed_loss is None else self.smoothed_loss
            self.smoothed_loss = SMOOTHING * before + (1 - SMOOTHING) * loss
        factor, rate = number(event, "rate_factor"), self.learning_rate
        self.steps.append(
            {
                **{name: number(event, name) for name in STEPS},
                **self._places(),
                "loss": loss,
                "learning_rate": None if factor is None or rate is None else factor * rate,
            }
        )

    def _take_validation(self, event: Event) -> None:
        self.latest_validation = event
        if event.get("is_best") is True or not self.best_validation:
            self.best_validation = event
        values = {
            **{name: number(event, name) for name in VALIDATIONS},
            **self._places(),
            "train_loss": number(record(event, "watch"), "train_loss"),
        }
        forecast = record(record(event, "forecast"), forecast_of(event))
        for name in ("low", "middle", "high"):
            values[f"forecast_{name}"] = number(forecast, name)
        for name in ("bleu", "chrf"):
            values[f"{name}_low"], values[f"{name}_high"] = _ends(event, name)
        self.validations.append(values)
        self.samples.add(event, step=self.step, epoch=self.epochs)


def forecast_of(validation: Event) -> str:
    """The score that a validation forecasts; empty = none."""
    return next((name for name in FORECASTS if name in record(validation, "forecast")), "")


def _ends(validation: Event, score: str) -> tuple[float | None, float | None]:
    """The ends of a score's 95 % interval."""
    given: Any = record(validation, "intervals").get(score)
    if not isinstance(given, list) or len(given) != 2:
        return None, None
    return number({"low": given[0]}, "low"), number({"high": given[1]}, "high")
