"""An observer between a run and its listeners: it adds figures to events and raises alarms.

Its state can be read back from `metrics.jsonl`, so checkpoints do not contain it. It changes no
weight. `checks.py` decides on alarms, `probe.py` queries the model.
"""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from heed.machine.memory import peak_memory_mb
from heed.model.network import TorchNetwork
from heed.train.parallel.shard import rows_of
from heed.train.step.events import Event, Report, finite
from heed.train.step.learning_rate import SCHEDULES, Moment
from heed.train.step.trainer import EpochPairs, Trainer
from heed.train.step.validate import DevSet
from heed.train.watch.checks import diagnose
from heed.train.watch.evidence import Evidence, Measurement
from heed.train.watch.forecast import forecast
from heed.train.watch.probe import Probe, ProbePairs, choose_pairs, probe
from heed.translate.lines import LineReader

MAX_COST = 0.01
"""Largest share of a run's time for probes; the first probe is always made."""

EARLY_COST = 0.3
"""Share of that time that may be used at the start: faults should be found early."""

N_COUNTED = 5000
"""Pairs whose tokens are counted: the entropy of 75,000 tokens is 0.05 nats too low."""

N_COMPARED = 20_000
"""Pairs whose lengths are compared where directions must be told apart: known to 0.01."""

EXACT = ("torch", "threads", "cpu", "products", "gpu", "processes")
"""The facts of `describe_environment` on which the bits of a run depend."""

OPTIONAL = ("dead_share", "evenness")
"""Numbers of a probe that some models and corpora do not have."""

N_TRACKED = 4096
"""Entries of each matrix whose movement is measured."""


@dataclass(frozen=True, kw_only=True)
class Observed:
    """The input of an observer, besides the events of a run.

    Attributes:
        train: the training pairs of an epoch.
        probed: pairs that the model is queried with; None = it is not queried.
        has_tags: each source begins with the tag of its target language.
        dev_length_correlation: correlation of the lengths of both sides of the dev pairs; None =
            unknown.
        n_dev: dev pairs.
        n_dev_in_train: training pairs left out because they share a sentence with those.
    """

    train: EpochPairs
    probed: ProbePairs | None = None
    has_tags: bool = False
    dev_length_correlation: float | None = None
    n_dev: int = 0
    n_dev_in_train: int = 0


def observed_pairs(
    train: EpochPairs, dev_sets: list[DevSet], reader: LineReader, *, n_dev_in_train: int
) -> Observed:
    """The input of an observer of a translator.

    Args:
        train: the training pairs.
        dev_sets: the development sentences.
        reader: turns them into ids.
        n_dev_in_train: training pairs left out because they share a sentence with those.
    """
    probed = choose_pairs(train, len(train.src_lengths), dev_sets, reader)
    return Observed(
        train=train,
        probed=probed if probed.train and probed.dev else None,
        has_tags=bool(reader.target_langs),
        dev_length_correlation=_dev_length_correlation(dev_sets, reader),
        n_dev=sum(len(dev.src) for dev in dev_sets),
        n_dev_in_train=n_dev_in_train,
    )


class Observer:
    """Receives every event of a run and passes it on with more figures.

    Steps get `memory_mb`; validations `tokens_per_s`, `memory_mb`, `forecast` and `watch`, the
    evidence; after a validation or a skipped step come the alarms.

    Args:
        report: gets the events afterwards.
        trainer: the run.
        observed: its text.
    """

    def __init__(self, report: Report, trainer: Trainer, observed: Observed) -> None:
        self.report = report
        self.trainer = trainer
        self.pairs = observed.probed
        self.epoch_tokens = int(observed.train.tgt_lengths.sum())
        self.evidence = Evidence(
            unigram_entropy=_entropy(observed.train, trainer.special_ids["eos_id"]),
            train_length_correlation=_train_length_correlation(
                observed.train, has_tags=observed.has_tags
            ),
            dev_length_correlation=observed.dev_length_correlation,
            n_dev=observed.n_dev,
            n_dev_in_train=observed.n_dev_in_train,
            has_parent=bool(trainer.config.parent),
            revives_features=trainer.config.revive_features,
            warmup_steps=trainer.config.warmup_steps,
        )
        self.points: list[Event] = []
        self._environment: Event = {}
        self._steps: list[tuple[int, float]] = []
        self._probe: Probe | None = None
        self._probe_s = self._last_probe_s = 0.0
        self._first_step = trainer.progress.step
        self._first_weights = _tracked(trainer)
        self._since = (time.monotonic(), trainer.progress.tgt_tokens)

    def recall(self, events: Iterable[Event]) -> None:
        """Read the events of an earlier start of the run, without reporting them again."""
        for event in events:
            if event["kind"] == "step":
                self._note_step(event)
            elif event["kind"] == "validation" and "watch" in event:
                self._note_validation(event)
            elif event["kind"] == "alarm":
                self._change(said=self.evidence.said | {event["name"]})
            elif event["kind"] == "mend":
                self._start_afresh()
            elif event["kind"] == "start":
                self._environment = event["environment"]

    def examine(self, model: TorchNetwork) -> None:
        """Probe the model that is being validated, if possible, and if there is enough time.

        Args:
            model: whole, in this process alone.
        """
        if self.pairs is None:
            return
        share = max(self.trainer.share, 1e-6)
        total_s = self.trainer.elapsed_s / share
        allowed_s = MAX_COST * total_s * min(1.0, EARLY_COST + share)
        self._probe, last = None, self._last_probe_s
        if self._probe_s == 0.0 or self._probe_s + last <= allowed_s:
            self._probe = probe(model, self.pairs, self.trainer.special_ids)
            self._last_probe_s = self._probe.seconds
            self._probe_s += self._probe.seconds

    def __call__(self, event: Event) -> None:
        """Process one event and pass it on."""
        event = finite(event)
        if event["kind"] == "step":
            event["memory_mb"] = round(peak_memory_mb(self.trainer.device))
            self._note_step(event)
            self.report(event)
            if event["is_skipped"]:
                self._raise_alarms(event["step"])
        elif event["kind"] == "validation" and event["step"]:  # nothing to compare at step 0
            event = finite(self._enriched(event))
            self._note_validation(event)
            self.report(event)
            self._raise_alarms(event["step"])
        else:
            self.report(event)
            if event["kind"] == "start":
                self._compare_environment(event)
                self._raise_alarms(event["step"])
            elif event["kind"] == "mend":
                self._start_afresh()

    def _compare_environment(self, event: Event) -> None:
        """Report changes of the environment since an earlier start."""
        before, now = self._environment, event["environment"]
        changed = [
            f"{key} was {before[key]} and is {now.get(key)}"
            for key in EXACT
            if key in before and before[key] != now.get(key)
        ]
        if changed:
            text = f"{', '.join(changed)}: the run continues, but not bit for bit as it would have"
            self.report({"kind": "note", "step": event["step"], "text": text})

    def _start_afresh(self) -> None:
        """Forget the figures that a rollback has made untrue; alarms and scores stay."""
        self._change(measurements=())
        self._steps.clear()
        self._first_step = self.trainer.progress.step
        self._first_weights = _tracked(self.trainer)

    def _note_step(self, event: Event) -> None:
        if event["is_skipped"]:
            self._change(
                n_skipped=self.evidence.n_skipped + 1,
                skipped={"step": event["step"], "pairs": event.get("pairs", ())},
            )
        elif event["nll"] is not None:
            self._steps.append((event["n_tgt_tokens"], event["nll"]))

    def _enriched(self, event: Event) -> Event:
        """A validation event with all figures."""
        progress, now = self.trainer.progress, time.monotonic()
        (since_s, since_tokens), self._since = self._since, (now, progress.tgt_tokens)
        seconds = now - since_s - event["seconds"]
        watch: dict[str, Any] = {
            "share": self.trainer.share,
            "epochs": progress.tgt_tokens / max(1, self.epoch_tokens),
            "train_loss": _recent_loss(self._steps),
            "movement": _movement(self._first_weights, _tracked(self.trainer)),
            "n_moves": progress.step - self._first_step,
            "probe": asdict(self._probe) if self._probe else None,
        }
        return {
            **event,
            "tokens_per_s": round((progress.tgt_tokens - since_tokens) / max(1e-9, seconds)),
            "memory_mb": round(peak_memory_mb(self.trainer.device)),
            "forecast": self._forecast(event, watch["share"]),
            "watch": watch,
        }

    def _note_validation(self, event: Event) -> None:
        watch = dict(event["watch"])
        numbers, loss = watch.pop("probe") or {}, event["loss"]
        # A probe that is not finite counts as none; the rollback is done elsewhere.
        is_finite = all(numbers[key] is not None for key in numbers if key not in OPTIONAL)
        train_loss = watch.pop("train_loss")
        measurement = Measurement(
            step=event["step"],
            dev_loss=math.inf if loss is None else loss,
            train_loss=math.inf if train_loss is None else train_loss,
            is_best=event["is_best"],
            same_share=event.get("same_share"),
            probe=Probe(**numbers) if numbers and is_finite else None,
            **watch,
        )
        self._change(measurements=(*self.evidence.measurements, measurement))
        self.points.append({**event, "share": watch["share"]})
        self._steps.clear()

    def _forecast(self, event: Event, share: float) -> dict[str, dict[str, float]]:
        """The forecast of the last score, for each metric."""
        if share >= 1.0:
            return {}
        found = {}
        events = (*self.points, {**event, "share": share})
        for metric in ("bleu", "chrf"):
            points = [(one["share"], one[metric]) for one in events if one[metric] is not None]
            expected = forecast(points, rate_factor=self._annealing)
            if expected:
                found[metric] = {key: round(value, 2) for key, value in asdict(expected).items()}
        if found or event["bleu"] is not None:
            return found
        # A task without BLEU: the mean probability of a token rises like a score.
        points = [(one["share"], 100 * math.exp(-one["loss"])) for one in events if one["loss"]]
        if expected := forecast(points, rate_factor=self._annealing):
            ends = {"low": expected.high, "middle": expected.middle, "high": expected.low}
            found["loss"] = {
                key: round(-math.log(max(value, 1e-6) / 100), 3) for key, value in ends.items()
            }
        return found

    def _annealing(self, share: float) -> float:
        """The schedule's factor at a share of the budget, its warm-up left out."""
        config = self.trainer.config
        if config.schedule in ("paper", "inverse_sqrt"):
            return 1.0  # these do not end with the budget
        now = Moment(step=1, share=share, warmup_steps=0, decay_share=config.decay_share, d_model=1)
        return SCHEDULES[config.schedule](now)

    def _raise_alarms(self, step: int) -> None:
        for alarm in diagnose(self.evidence):
            self._change(said=self.evidence.said | {alarm.name})
            self.report(finite({"kind": "alarm", "step": step, **asdict(alarm)}))

    def _change(self, **changes: Any) -> None:
        self.evidence = Evidence(**{**vars(self.evidence), **changes})


def _recent_loss(steps: Sequence[tuple[int, float]]) -> float | None:
    """Mean loss a token over the later half of these steps."""
    recent = steps[len(steps) // 2 :]
    n_tokens = sum(tokens for tokens, _ in recent)
    return sum(tokens * nll for tokens, nll in recent) / n_tokens if n_tokens else None


def _tracked(trainer: Trainer) -> list[Tensor]:
    """A few numbers of every hidden matrix."""
    model = trainer.model
    roles = ("matrix", "positions")
    hidden = [w.name for w in model.plan if w.role in roles and w.tied_to is None]
    return [
        rows.flatten()[:: max(1, rows.numel() // N_TRACKED)].clone()
        for rows, _ in (rows_of(model.get_parameter(name)) for name in hidden)
    ]


def _movement(first: list[Tensor], now: list[Tensor]) -> float | None:
    """The median change of a matrix, relative to its size."""
    moved = [
        ((b - a).norm() / a.norm()).item() for a, b in zip(first, now, strict=True) if a.norm() > 0
    ]
    return float(np.median(moved)) if moved else None


def _entropy(train: EpochPairs, eos_id: int) -> float:
    """Entropy of a target token, `<eos>` counted, in nats."""
    n_pairs = len(train.tgt_lengths)
    step = max(1, n_pairs // N_COUNTED)
    rows = [train.tgt(i) for i in range(0, n_pairs, step)]
    counts = np.bincount(np.concatenate([*rows, np.full(len(rows), eos_id)]))
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _train_length_correlation(train: EpochPairs, *, has_tags: bool) -> float | None:
    """Of the training pairs; with tags, a source's first id says its direction."""
    n_pairs = len(train.src_lengths)
    if not has_tags:
        return _length_correlation(train.src_lengths, train.tgt_lengths, np.zeros(n_pairs))
    chosen = range(0, n_pairs, max(1, n_pairs // N_COMPARED))
    tags = np.array([train.src(i)[0] for i in chosen])
    return _length_correlation(train.src_lengths[chosen], train.tgt_lengths[chosen], tags)


def _dev_length_correlation(dev_sets: list[DevSet], reader: LineReader) -> float | None:
    src = [len(reader.src_ids(text, [])) for dev in dev_sets for text in dev.src]
    tgt = [len(reader.tgt_ids(text)) for dev in dev_sets for text in dev.tgt]
    numbers = [number for number, dev in enumerate(dev_sets) for _ in dev.src]
    return _length_correlation(np.array(src), np.array(tgt), np.array(numbers))


def _length_correlation(
    src_lengths: NDArray[Any], tgt_lengths: NDArray[Any], directions: NDArray[Any]
) -> float | None:
    """Correlation of the two sides' lengths; None where one does not vary.

    For several directions, the mean weighted by their pairs: each has its own ratio of lengths, and
    all together may show no correlation, or a false one.

    Args:
        src_lengths: source tokens of each pair, `(n_pairs)`.
        tgt_lengths: target tokens of each pair, `(n_pairs)`.
        directions: equal for pairs of the same direction, `(n_pairs)`.
    """
    found, counts = [], []
    for direction in np.unique(directions):
        src, tgt = src_lengths[directions == direction], tgt_lengths[directions == direction]
        if len(src) >= 30 and src.std() > 0 and tgt.std() > 0:
            found.append(np.corrcoef(src, tgt)[0, 1])
            counts.append(len(src))
    return float(np.average(found, weights=counts)) if found else None
