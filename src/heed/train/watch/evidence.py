"""Records of a diagnosis: the evidence, and the alarms."""

from dataclasses import dataclass, field
from typing import Any

from heed.train.watch.probe import Probe


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The evidence of one validation.

    Attributes:
        step: optimizer steps made.
        share: part of the budget used, 0 to 1.
        epochs: passes through the training data, in part.
        train_loss: nats a target token in the latest steps, with dropout.
        dev_loss: nats a target token of the dev set; infinite if it was not finite.
        is_best: no validation before had a better score.
        same_share: share of the dev sentences that got the commonest translation, or None.
        movement: change of the weights since the process began, relative to their size.
        n_moves: steps of that change.
        probe: results of the probe, or None without one.
    """

    step: int
    share: float
    epochs: float
    train_loss: float
    dev_loss: float
    is_best: bool = False
    same_share: float | None = None
    movement: float | None = None
    n_moves: int = 0
    probe: Probe | None = None


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All evidence of a diagnosis.

    Attributes:
        unigram_entropy: entropy of a target token, in nats: the loss of a model that predicts every
            token by its frequency alone.
        train_length_correlation: correlation of the lengths of source and target over the training
            pairs, 0 if they are unrelated; None if lengths do not vary.
        dev_length_correlation: the same over the dev pairs.
        n_dev: dev pairs.
        n_dev_in_train: training pairs that shared a sentence with the dev set and were left out.
        has_parent: the run began with a model's weights, perhaps trained on the same pairs.
        revives_features: `training.revive_features` is on.
        warmup_steps: steps over which the learning rate rises.
        n_skipped: updates skipped because a number was not finite.
        skipped: where that happened last: `step` and `pairs`.
        measurements: one for each validation, oldest first.
        said: names of the alarms that were raised before.
    """

    unigram_entropy: float
    train_length_correlation: float | None = None
    dev_length_correlation: float | None = None
    n_dev: int = 0
    n_dev_in_train: int = 0
    has_parent: bool = False
    revives_features: bool = False
    warmup_steps: int = 0
    n_skipped: int = 0
    skipped: dict[str, Any] = field(default_factory=dict)
    measurements: tuple[Measurement, ...] = ()
    said: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """A cause and a remedy.

    Attributes:
        name: the cause in a word, a key of `watch.CHECKS`.
        text: the cause in a sentence.
        remedy: the advice.
        numbers: the evidence, by name.
    """

    name: str
    text: str
    remedy: str
    numbers: dict[str, Any] = field(default_factory=dict)
