"""Show a training run on the terminal: one live line, and permanent lines.

All output goes to standard error; without a terminal, only permanent lines are written. A run goes
on if they cannot be written, as after its terminal was closed.
`train/step/events.py` formats the live line.
"""

import os
import shutil
import sys
import time
from typing import Any, TextIO

from heed.cli.terminal import discard, visible
from heed.data.clean import amount, as_table
from heed.train.step.events import Event, LiveLine, duration, interval

LINE_EVERY_S = 10.0
"""Seconds between lines of progress during preparation, without a terminal."""

SHOWN = {
    "bits": "bits a character",
    "accuracy": "accuracy",
    "f1": "F1",
    "bleu": "BLEU",
    "chrf": "chrF",
}
"""Maps a score to its spelling."""


class Display:
    """Show the events of a run.

    Args:
        metric: the development score to show.
        stream: the output.
        n_samples: sample translations shown at each validation.
    """

    def __init__(self, metric: str, *, stream: TextIO | None = None, n_samples: int = 1) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.is_terminal = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        self.n_samples = n_samples
        self.live = LiveLine(metric)
        self._phase = ""
        self._shown_at = 0.0

    def __call__(self, event: Event) -> None:
        """Show one event."""
        self.live(event)
        show = {
            "prepare": self._prepare,
            "prepared": self._prepared,
            "start": self._start,
            "note": self._note,
            "alarm": self._alarm,
            "mend": self._note,
            "validation": self._validation,
            "average": self._average,
            "end": self._end,
        }.get(event["kind"])
        if show:
            show(event)
        if self.is_terminal and self.live.text and event["kind"] != "end":
            self._write(f"{self._blank()}{visible(self.live.text)[: self._width()]}")

    def line(self, text: str) -> None:
        """Write a permanent line, above the live one."""
        clear = self._blank() if self.is_terminal else ""
        self._write(f"{clear}{visible(text)}\n")

    def close(self) -> None:
        """End the live line."""
        if self.is_terminal:
            self._write(self._blank())

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except OSError:
            discard(self.stream)

    def _width(self) -> int:
        """The columns of this terminal but one; standard output may go elsewhere."""
        try:
            own = os.get_terminal_size(self.stream.fileno())
        except OSError:
            own = os.terminal_size((80, 24))
        return shutil.get_terminal_size(own).columns - 1

    def _blank(self) -> str:
        """Clear the line of the cursor without an escape code."""
        return f"\r{' ' * self._width()}\r"

    def _prepare(self, event: Event) -> None:
        """Show progress: a live line; without a terminal, a line for each phase and every 10 s."""
        of = f" of {event['of']:,}" if event["of"] else ""
        done = f": {event['done']:,}{of} {event['unit']}" if event["done"] else " …"
        self.live.text = f"{event['phase']}{done}"
        is_new, now = event["phase"] != self._phase, time.monotonic()
        if not self.is_terminal and (is_new or now >= self._shown_at + LINE_EVERY_S):
            self.line(self.live.text)
            self._phase, self._shown_at = event["phase"], now

    def _prepared(self, event: Event) -> None:
        report = event["report"]
        self.line(as_table(report["pairs"]))
        for name in ("dev", "test"):
            if report[f"{name}_pairs"]["dropped"]:
                self.line(as_table(report[f"{name}_pairs"], unit=f"{name} pair"))
        for language, found in report["mono"].items():
            self.line(as_table(found, unit="line", of=f" of {language}"))

    def _start(self, event: Event) -> None:
        self.live.text = ""
        model = event["model"]
        # The target vocabulary of a classifier is its labels.
        side = "src" if "labels" in event["data"] else "tgt"
        n_threads = event["environment"]["threads"]
        n_processes = event["environment"]["processes"]
        self.line(
            f"{', '.join(_counted(name, count) for name, count in event['text'].items())}; "
            f"{event['parameters'] / 1e6:.1f} million parameters "
            f"({event['summary']}, {model[f'{side}_vocab_size']:,} pieces), "
            f"{amount(n_threads, 'thread')}"
            f"{f' in each of {n_processes} processes' if n_processes > 1 else ''}"
        )

    def _note(self, event: Event) -> None:
        self.line(event["text"])

    def _alarm(self, event: Event) -> None:
        self.line(f"! {event['text']}")
        self.line(f"  → {event['remedy']}")

    def _validation(self, event: Event) -> None:
        best = "  (best)" * event["is_best"]
        self.line(f"step {event['step']}  {_scores(event)}{best}{_expected(event)}")
        for sample in event["samples"][: self.n_samples]:
            for name in ("src", "ref", "hyp"):
                self.line(f"    {name}  {sample[name]}")

    def _average(self, event: Event) -> None:
        chosen = "  (best)" if event["is_best"] else ""
        self.line(
            f"average of {amount(event['checkpoints'], 'checkpoint')}  {_scores(event)}{chosen}"
        )

    def _end(self, event: Event) -> None:
        self.line(f"finished at step {event['step']}, after {duration(event['elapsed_s'])}")


def _counted(name: str, count: int) -> str:
    """An amount of training data: `1 training pair`, `1 for development`."""
    is_noun = name.startswith("training ")
    return amount(count, name.removesuffix("s")) if is_noun else f"{count:,} {name}"


def _scores(event: dict[str, Any]) -> str:
    loss = event["loss"]
    found = [f"dev loss {loss:.3f}" if loss is not None else "dev loss is NaN"]
    shown = {key: name for key, name in SHOWN.items() if event.get(key) is not None}
    found += [f"{name} {event[key]:.2f}" for key, name in shown.items()]
    return "  ".join(found)


def _expected(event: dict[str, Any]) -> str:
    scores = [
        f"{SHOWN.get(key, 'dev loss')} {interval(expected, 2 if key == 'loss' else 0)}"
        for key, expected in event.get("forecast", {}).items()
    ]
    return f"  expect {', '.join(scores)} at the end" if scores else ""
