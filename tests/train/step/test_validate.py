"""Validation: its scores are those of `heed evaluate`, its samples always the same sentences."""

from typing import Any, cast

import pytest

from heed.evaluate.counts import Reading
from heed.evaluate.metrics import evaluate
from heed.train.step.validate import N_SAMPLES, DevSet, validate
from heed.translate.result import PairScore
from heed.translate.translator import Translator


class Shortening:
    """Translates by leaving out the last word, but for every third sentence."""

    def score(self, src: list[str], tgt: list[str], **options: Any) -> list[PairScore]:
        return [PairScore(tokens=["a", "b"], token_scores=[-1.0, -3.0]) for _ in src]

    def __call__(self, src: list[str], **options: Any) -> list[str]:
        return [
            line.upper() if i % 3 == 0 else " ".join(line.upper().split()[:-1])
            for i, line in enumerate(src)
        ]


def dev_set(n: int, target_lang: str = "en") -> DevSet:
    src = [f"the {word} dog {i} runs home now" for i in range(n) for word in ["old"]]
    return DevSet(src=src, tgt=[line.upper() for line in src], target_lang=target_lang)


def found(*sets: DevSet, n_sentences: int = 500) -> Any:
    return validate(cast(Translator, Shortening()), list(sets), n_sentences=n_sentences)


def test_scores_intervals_and_signatures_are_those_of_evaluate() -> None:
    dev = dev_set(30)
    hyps = Shortening()(dev.src)
    right = evaluate(hyps, [dev.tgt], metrics=["bleu", "chrf"], reading=Reading(target_lang="en"))
    validation = found(dev)
    assert validation.bleu == pytest.approx(right.scores["bleu"].value)
    for key, score in right.scores.items():
        assert validation.intervals[key] == pytest.approx([score.low, score.high])
        assert validation.signatures[key] == score.signature
    assert validation.loss == 2.0


def test_the_time_for_pairs_that_calibration_does_not_read_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0

    def monotonic() -> float:
        return now

    def score(self: Shortening, src: list[str], tgt: list[str], **options: Any) -> list[PairScore]:
        nonlocal now
        now += 2.0 * len(src)
        return [PairScore(tokens=["a"], token_scores=[-1.0]) for _ in src]

    monkeypatch.setattr("heed.train.step.validate.time.monotonic", monotonic)
    monkeypatch.setattr(Shortening, "score", score)
    monkeypatch.setattr("heed.train.step.validate.MOST_PAIRS", 10)
    assert found(dev_set(10)).beyond_s == 0.0
    assert found(dev_set(40)).beyond_s == 60.0  # of 80 s for 40 pairs, those for the last 30
    assert found(dev_set(15), dev_set(25, "de")).beyond_s == 60.0


def test_samples_are_the_first_ten_sentences_with_their_chrf() -> None:
    dev = dev_set(30)
    samples = found(dev).samples
    assert [sample["src"] for sample in samples] == dev.src[:N_SAMPLES]
    assert samples[0]["chrf"] == pytest.approx(100)
    alone = evaluate([samples[1]["hyp"]], [[samples[1]["ref"]]], metrics=["chrf"], resamples=1)
    assert samples[1]["chrf"] == pytest.approx(alone.scores["chrf"].value)


def test_several_target_languages_share_the_samples() -> None:
    samples = found(dev_set(20, "en"), dev_set(20, "de")).samples
    assert len(samples) == N_SAMPLES
    assert samples[0]["src"] == samples[5]["src"]


def test_a_set_of_three_sentences_shows_three() -> None:
    assert len(found(dev_set(3)).samples) == 3


def test_without_translations_there_are_no_intervals() -> None:
    validation = found(dev_set(3), n_sentences=0)
    assert (validation.bleu, validation.intervals, validation.samples) == (None, {}, [])
