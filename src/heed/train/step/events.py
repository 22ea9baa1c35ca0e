"""The events of a run: JSON lines on disk, and one live line for a person.

An event is a dict with a `kind`: `start`, `note`, `epoch`, `step`, `validation`, `alarm` (a cause
and its remedy), `mend` (back to good weights), `checkpoint`, `average`, `pause`, `end`. Nothing
here prints; `cli/progress.py` shows the text of `LiveLine`.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heed.disk.files import append_json_line, cut_json_lines, drop_damaged_lines
from heed.errors import MissingExtraError

Event = dict[str, Any]
Report = Callable[[Event], None]

METRICS_FILE = "metrics.jsonl"
TENSORBOARD = "tensorboard"
EVERY, EVERY_S = 20, 10.0
"""Steps, or seconds of slow ones, for each line of the log."""


def fan_out(*reports: Report) -> Report:
    """One report that passes events to all of them."""

    def report(event: Event) -> None:
        for one in reports:
            one(event)

    return report


class EventLog:
    """Appends events to `metrics.jsonl`.

    Steps are thinned to one in `EVERY`, or one in `EVERY_S` seconds of slow ones, with the sums and
    means over those in between, and get `tokens_per_s` (target tokens).

    Args:
        run_dir: the run folder.
    """

    def __init__(self, run_dir: Path) -> None:
        self.path = run_dir / METRICS_FILE
        self._nll = 0.0
        self._src_tokens = 0
        self._tgt_tokens = 0
        self._seconds = 0.0

    def mend(self) -> int:
        """Remove damaged events; returns how many."""
        return drop_damaged_lines(self.path) if self.path.exists() else 0

    def forget_after(self, step: int) -> None:
        """Drop all events beyond `step`, which a resumed run repeats."""
        if self.path.exists():
            cut_json_lines(self.path, lambda event: event.get("step", 0) <= step)

    def __call__(self, event: Event) -> None:
        """Write one event."""
        event = finite(event)
        if event["kind"] == "step":
            self._seconds += event["seconds"]
            if event["nll"] is not None:
                self._nll += event["nll"] * event["n_tgt_tokens"]
                self._src_tokens += event["n_src_tokens"]
                self._tgt_tokens += event["n_tgt_tokens"]
            is_due = event["step"] % EVERY == 0 or self._seconds >= EVERY_S
            if not (is_due or event["is_skipped"]):
                return
            event = {
                **event,
                "nll": self._nll / self._tgt_tokens if self._tgt_tokens else None,
                "n_src_tokens": self._src_tokens,
                "n_tgt_tokens": self._tgt_tokens,
                "seconds": self._seconds,
                "tokens_per_s": self._tgt_tokens / max(1e-9, self._seconds),
            }
            self._nll, self._src_tokens, self._tgt_tokens, self._seconds = 0.0, 0, 0, 0.0
        append_json_line(self.path, event)


def finite(event: Event) -> Event:
    """The event with None for infinities and NaN, which JSON does not have."""
    return {key: _finite(value) for key, value in event.items()}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return finite(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


class LiveLine:
    """Turns events into the live line.

    Example: `step 1200  epoch 3.4  27%  21m left  2140 tok/s  loss 2.312  dev chrf 48.2 (best)
    expect 51–55  pad 1.1%  512 MB`, all in one line.

    Args:
        metric: the development score to show.
    """

    def __init__(self, metric: str) -> None:
        self.metric = metric
        self.text = ""
        self._start()

    def _start(self) -> None:
        """Forget the figures of the run before, such as a teacher's."""
        self._score = ""
        self._expected = ""
        self._pad = ""
        self._epoch_steps = 1
        self._epoch_step: int | None = None
        self._epoch_share = 0.0
        self._nll: float | None = None
        self._rate: float | None = None

    def __call__(self, event: Event) -> None:
        """Process one event; `text` is the line afterwards."""
        if event["kind"] == "start":
            self._start()
        elif event["kind"] == "epoch":
            self._pad = f"pad {event['pad_share']:.1%}"
            self._epoch_steps, self._epoch_step = event["steps"], None
            # A resumed run goes on in the middle of an epoch.
            self._epoch_share = event["batch"] / max(1, event["batches"])
        elif event["kind"] == "validation":
            mark = " (best)" if event["is_best"] else ""
            value = event[self.metric]
            self._score = "" if value is None else f"dev {self.metric} {value:.2f}{mark}"
            expected = event.get("forecast", {}).get(self.metric)
            n_digits = 2 if self.metric == "loss" else 0
            self._expected = f"expect {interval(expected, n_digits)}" if expected else ""
        elif event["kind"] == "step":
            self._step(event)

    def _step(self, event: Event) -> None:
        rate = event["n_tgt_tokens"] / max(1e-9, event["seconds"])
        self._rate = rate if self._rate is None else 0.95 * self._rate + 0.05 * rate
        nll = _finite(event["nll"])
        if nll is not None:
            self._nll = nll if self._nll is None else 0.98 * self._nll + 0.02 * nll
        if self._epoch_step is None:
            self._epoch_step = event["step"]
        share = self._epoch_share + (event["step"] - self._epoch_step) / self._epoch_steps
        epoch = event["epoch"] + share
        left_s = event["left_s"]
        parts = [
            f"step {event['step']}",
            f"epoch {epoch:.1f}",
            f"{event['share']:.0%}",
            f"{duration(left_s)} left" if left_s is not None else "",
            f"{self._rate:.0f} tok/s",
            f"loss {self._nll:.3f}" if self._nll is not None else "",
            self._score,
            self._expected,
            self._pad,
            f"{event['memory_mb']:.0f} MB" if "memory_mb" in event else "",
        ]
        self.text = "  ".join(part for part in parts if part)


def interval(expected: dict[str, float], n_digits: int = 0) -> str:
    """A forecast as `37–40`, or with decimals."""
    return f"{expected['low']:.{n_digits}f}–{expected['high']:.{n_digits}f}"


def duration(seconds: float) -> str:
    """`4s`, `21m`, `1h05m`: coarse enough to read at a glance."""
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f}s"
    return f"{minutes}m" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02d}m"


def exact_duration(seconds: float) -> str:
    """`30m`, `1h05m`; in seconds if they are not whole minutes."""
    seconds = round(seconds, 2)
    return f"{seconds:.10g}s" if seconds % 60 else duration(seconds)


def tensorboard(run_dir: Path) -> Report:
    """A report that writes TensorBoard scalars under `tensorboard/` in the run folder.

    The events of teachers are left out: their steps have the same numbers as those of the run.

    Raises:
        MissingExtraError: TensorBoard is not installed.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtraError("--tensorboard", "tensorboard") from error
    # Made at the first event: the run folder is checked by then, and nothing is written before.
    writer: Any = None

    def report(event: Event) -> None:
        nonlocal writer
        if event["kind"] not in ("step", "validation") or "teacher" in event:
            return
        writer = writer or SummaryWriter(str(run_dir / TENSORBOARD))
        for name, value in event.items():
            if isinstance(value, int | float) and not isinstance(value, bool) and name != "step":
                writer.add_scalar(f"{event['kind']}/{name}", value, event["step"])

    return report
