"""From evidence to causes, without any training: `test_faults.py` has real ones."""

import math
from dataclasses import replace
from typing import Any

import pytest

from heed.train.watch.checks import CHECKS, diagnose
from heed.train.watch.evidence import Evidence, Measurement
from heed.train.watch.probe import Probe

HEALTHY_PROBE = Probe(
    train_loss=3.2,
    dev_loss=3.3,
    train_gain=1.4,
    dev_gain=1.5,
    source_effect=1.7,
    leak=0.0,
    echo=0.01,
    dead_share=0.05,
    seconds=0.1,
    evenness=0.5,
)


def reading(step: int, train_loss: float, dev_loss: float, **facts: Any) -> Measurement:
    defaults = {
        "share": step / 1000,
        "epochs": step / 200,
        "is_best": True,
        "same_share": 0.03,
        "movement": 0.006 * step**0.8,
        "n_moves": step,
        "probe": HEALTHY_PROBE,
    }
    return Measurement(step=step, train_loss=train_loss, dev_loss=dev_loss, **{**defaults, **facts})


def evidence(*measurements: Measurement, **facts: Any) -> Evidence:
    defaults = {
        "unigram_entropy": 5.6,
        "train_length_correlation": 0.8,
        "dev_length_correlation": 0.8,
        "warmup_steps": 100,
    }
    return Evidence(measurements=measurements, **{**defaults, **facts})


def asked(**answers: Any) -> Probe:
    return replace(HEALTHY_PROBE, **answers)


def names(found: Evidence) -> list[str]:
    return [alarm.name for alarm in diagnose(found)]


SICK = {
    "non-finite": evidence(reading(100, 4.0, 4.0), n_skipped=1, skipped={"step": 7, "pairs": (3,)}),
    "labels-not-shifted": evidence(reading(100, 0.3, 9.0, probe=asked(echo=0.98, dev_loss=9.0))),
    "mask-leak": evidence(reading(100, 1.0, 1.0, probe=asked(leak=0.4))),
    "rate-too-high": evidence(reading(300, 3.0, 3.0), reading(400, 4.0, 3.9)),
    "rate-too-low": evidence(reading(300, 8.7, 8.8, movement=0.002)),
    "misaligned-training": evidence(
        reading(300, 4.9, 5.0, probe=asked(train_gain=0.01, dev_gain=0.01)),
        train_length_correlation=0.05,
    ),
    "source-ignored": evidence(
        reading(100, 5.0, 5.0, probe=asked(source_effect=1e-7, train_gain=0.0, dev_gain=0.0))
    ),
    "bad-dev-set": evidence(reading(100, 3.0, 5.0, probe=asked(dev_gain=-0.1))),
    "same-output": evidence(
        reading(100, 3.0, 9.0, same_share=1.0),
        reading(200, 2.0, 9.0, same_share=1.0, probe=asked(train_loss=8.0, dev_loss=9.0)),
    ),
    "dead-units": evidence(reading(100, 4.0, 4.0, probe=asked(dead_share=0.97))),
    "over-fitting": evidence(
        reading(200, 2.0, 2.5),
        reading(300, 1.5, 2.7, is_best=False),
        reading(400, 1.0, 2.9, is_best=False),
    ),
}


@pytest.mark.parametrize("name", CHECKS)
def test_each_cause_is_named_with_a_remedy_and_said_once(name: str) -> None:
    (alarm,) = diagnose(SICK[name])
    assert alarm.name == name
    assert alarm.text
    assert alarm.remedy
    assert alarm.numbers
    assert names(replace(SICK[name], said=frozenset({name}))) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # The loss jumps where it is judged, and may be high while the rate is still rising.
        (evidence(reading(300, 3.0, 3.0), reading(400, 3.4, 3.4)), None),
        (evidence(reading(300, 7.0, 7.0), reading(400, 6.9, 6.9)), "rate-too-high"),
        (evidence(reading(50, 9.2, 8.5), reading(100, 8.0, 7.1)), None),
        (evidence(reading(50, 5.0, 5.0, movement=30.0)), "rate-too-high"),
        # A run of a few steps is at its end before a model could read anything.
        (
            evidence(
                reading(12, 5.0, 5.0, share=1.0, probe=asked(train_gain=0.0, evenness=1.0)),
                train_length_correlation=0.05,
            ),
            None,
        ),
        # What moves little because it is being refined has learned before.
        (evidence(reading(300, 2.0, 2.0, movement=0.01)), None),
        # A fresh model with tied embeddings repeats what it reads, but does not profit by it.
        (evidence(reading(20, 8.9, 9.0, probe=asked(echo=1.0, train_loss=9, dev_loss=9))), None),
        # Measurement comes late; deaf is who learns nothing more without it.
        (evidence(reading(200, 5.1, 5.1), reading(300, 4.6, 4.7, probe=asked(train_gain=0))), None),
        (
            evidence(reading(200, 5.1, 5.1), reading(300, 5.1, 5.1, probe=asked(train_gain=0))),
            "source-ignored",
        ),
        # A fresh model reads evenly, and some have no source long enough to tell.
        (evidence(reading(200, 5.1, 5.1, probe=asked(evenness=1.0))), None),
        (evidence(reading(400, 4.0, 4.0, probe=asked(evenness=None))), None),
        (evidence(reading(400, 4.0, 4.0, probe=asked(evenness=0.95))), None),
        (evidence(reading(400, 4.0, 4.0, probe=asked(evenness=1.0))), "source-ignored"),
        # Known by heart: dev pairs may lag behind.
        (evidence(reading(900, 0.2, 3.0, epochs=60, probe=asked(dev_gain=0.1))), None),
        (
            evidence(
                reading(900, 0.2, 3.0, epochs=60, probe=asked(dev_gain=0.1)),
                dev_length_correlation=0.1,
            ),
            "bad-dev-set",
        ),
        (evidence(reading(100, 3.0, 6.0, epochs=0.5, probe=asked(dev_loss=6.0))), "bad-dev-set"),
        # A student knows what its teacher says from the start, and not what people say.
        (
            evidence(
                reading(100, 0.7, 2.3, epochs=0.5, probe=asked(train_loss=0.7, dev_loss=2.3)),
                has_parent=True,
            ),
            None,
        ),
        (evidence(n_dev=1000, n_dev_in_train=2), None),
        (evidence(n_dev=1000, n_dev_in_train=900), "bad-dev-set"),
        # Early models say one thing to all; it is a fault when it stays.
        (evidence(reading(100, 7, 7, same_share=1.0), reading(200, 6, 6, same_share=1.0)), None),
        (
            evidence(reading(300, 5, 5, same_share=1.0), reading(400, 5, 5, same_share=1.0)),
            "same-output",
        ),
        # A dev loss that rises a little while translations improve is no harm.
        (evidence(reading(200, 2.0, 2.5), reading(300, 1.5, 2.6), reading(400, 1.2, 2.7)), None),
        (
            evidence(reading(200, 2.0, 2.5), reading(300, 1.5, 3.2), reading(400, 1.2, 3.5)),
            "over-fitting",
        ),
        # A model that is refined may be worse at first than its parent was.
        (
            evidence(reading(0, math.inf, 2.0), reading(200, 2.2, 2.4), reading(300, 2.0, 2.3)),
            None,
        ),
        # Corpora of one-word lines have no lengths to compare.
        (
            evidence(
                reading(100, 4.0, 4.0), train_length_correlation=None, dev_length_correlation=None
            ),
            None,
        ),
        (evidence(reading(400, 4.0, 4.0, probe=None, same_share=None, movement=None)), None),
        (evidence(), None),
    ],
)
def test_borderline_cases(before: Evidence, after: str | None) -> None:
    assert names(before) == ([after] if after else [])


def test_a_cause_silences_what_it_brings_about() -> None:
    deaf = asked(source_effect=0.0, train_gain=0.0, dev_gain=0.0, leak=0.5, dead_share=1.0)
    ill = evidence(reading(300, 5, 5, same_share=1.0), reading(400, 5, 5, probe=deaf))
    assert names(ill) == ["mask-leak"]
    assert names(replace(ill, said=frozenset({"mask-leak"}))) == []


# Validations of finished healthy runs: step, share, training loss, dev loss. `metrics.jsonl`.
REAL = {
    "Multi30k en-de, 60 min": [
        (299, 0.09, 3.25, 2.97),
        (562, 0.20, 2.38, 2.45),
        (779, 0.29, 2.24, 2.14),
        (978, 0.39, 2.17, 2.00),
        (1176, 0.49, 1.86, 1.89),
        (1382, 0.60, 1.63, 1.81),
        (1585, 0.70, 1.54, 1.74),
        (1801, 0.80, 1.44, 1.69),
        (2015, 0.89, 1.21, 1.67),
        (2226, 1.00, 1.25, 1.65),
    ],
    "Tatoeba zh-en, 30 min": [
        (104, 0.10, 4.03, 3.98),
        (204, 0.20, 3.02, 3.06),
        (285, 0.29, 2.68, 2.69),
        (332, 0.38, 2.50, 2.56),
        (397, 0.47, 2.11, 2.42),
        (460, 0.60, 1.87, 2.31),
        (517, 0.67, 1.98, 2.22),
        (567, 0.79, 1.60, 2.14),
        (619, 0.87, 1.53, 2.11),
        (676, 0.97, 1.37, 2.08),
    ],
    "Multi30k, AdamW too slow, 7 min": [
        (51, 0.08, 9.27, 8.57),
        (97, 0.17, 8.20, 7.17),
        (141, 0.30, 6.42, 5.87),
        (197, 0.37, 5.52, 5.04),
        (251, 0.49, 4.87, 4.63),
    ],
}


@pytest.mark.parametrize("name", REAL)
def test_finished_real_runs_gave_no_alarm_at_any_validation(name: str) -> None:
    found = [
        reading(step, train, dev, share=share, probe=None, movement=0.006 * step**0.8)
        for step, share, train, dev in REAL[name]
    ]
    for n in range(1, len(found) + 1):
        assert names(evidence(*found[:n])) == []


def test_the_remedy_for_dead_features_is_one_that_is_not_in_use() -> None:
    for is_on, named in ((False, "training.revive_features=true, lower"), (True, "lower")):
        (alarm,) = diagnose(replace(SICK["dead-units"], revives_features=is_on))
        assert alarm.remedy.startswith(f"{named} rates, or")
