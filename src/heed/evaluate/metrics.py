"""Scores of translations against references, with confidence intervals.

`report.py` compares two systems.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from heed.errors import ConfigError, DataError
from heed.evaluate.counts import (
    PLAIN,
    Counts,
    Numbers,
    Reading,
    count_bleu,
    count_chrf,
    count_exact,
    count_ter,
    count_wer,
)

METRICS: dict[str, Callable[[Sequence[str], Sequence[Sequence[str]], Reading], Counts]] = {
    "bleu": count_bleu,
    "chrf": count_chrf,
    "ter": count_ter,
    "wer": count_wer,
    "exact": count_exact,
}
"""The metrics by the names that `heed evaluate` takes."""

RESAMPLES = 1000
SEED = 12345
"""The number of resamples and the seed that sacreBLEU uses."""


@dataclass(frozen=True, slots=True)
class Score:
    """A score of a set of translations, with its confidence interval.

    Attributes:
        name: the metric as papers write it: BLEU, chrF2, TER, WER, exact match.
        value: 0 to 100. TER and WER may exceed 100, and lower is better.
        signature: two such numbers are comparable only if their signatures are equal.
        low: lower end of the 95 % confidence interval.
        high: its upper end.
    """

    name: str
    value: float
    signature: str
    low: float
    high: float

    def as_dict(self) -> dict[str, str | float]:
        """As JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All scores of one system on one set.

    Attributes:
        scores: by key of `METRICS`, in the order requested.
        n_sentences: how many translations were scored.
        warnings: reasons to doubt the numbers, in sentences.
    """

    scores: Mapping[str, Score]
    n_sentences: int
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "n_sentences": self.n_sentences,
            "scores": {key: score.as_dict() for key, score in self.scores.items()},
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between a system and a baseline on the same sentences.

    Attributes:
        name: of the metric.
        value: system minus baseline, in points.
        low: lower end of the 95 % confidence interval of the difference.
        high: its upper end.
        p_value: probability of so large a difference by chance, if both were equally good; 1 for
            a single sentence.
    """

    name: str
    value: float
    low: float
    high: float
    p_value: float

    def as_dict(self) -> dict[str, str | float]:
        """As JSON values."""
        return asdict(self)


def evaluate(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    metrics: Sequence[str] = ("bleu", "chrf", "ter"),
    reading: Reading = PLAIN,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Evaluation:
    """Score one system.

    Args:
        hypotheses: the translations, one a line, as plain text (not tokenized).
        references: one or more reference sets, each with a line for every translation.
        metrics: keys of `METRICS`.
        reading: target language, tokenizer and case.
        resamples: number of resampled sets for the confidence intervals (Koehn 2004).
        seed: seed of the resampling; the same seed gives the same interval.

    Raises:
        DataError: if there is nothing to score, counts differ, or the references are not nested.
        ConfigError: if a metric or tokenizer is unknown.
        MissingExtraError: if sacreBLEU is not installed.
    """
    counts = count(hypotheses, references, metrics=metrics, reading=reading)
    doubts = find_doubts(hypotheses, references, metrics, reading)
    return evaluation_of(counts, doubts, resamples, seed)


def compare(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    metrics: Sequence[str] = ("bleu", "chrf", "ter"),
    reading: Reading = PLAIN,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> dict[str, Difference]:
    """Test by paired bootstrap whether a system differs from a baseline.

    Args:
        baseline: translations of the baseline.
        system: translations of the system, for the same sentences.
        references: as in `evaluate`.
        metrics: keys of `METRICS`.
        reading: as in `evaluate`.
        resamples: as in `evaluate`.
        seed: as in `evaluate`.

    Returns:
        A difference for each metric.

    Raises:
        DataError, ConfigError, MissingExtraError: as in `evaluate`.

    Source: Koehn 2004; p-value after Efron and Tibshirani 1993, section 16.4.
    """
    ours = count(system, references, metrics=metrics, reading=reading)
    theirs = count(baseline, references, metrics=metrics, reading=reading)
    return {key: difference_of(theirs[key], ours[key], resamples, seed) for key in ours}


def count(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    metrics: Sequence[str],
    reading: Reading,
    processes: int = 1,
    progress: Callable[[str, int], None] = lambda metric, n_done: None,
) -> dict[str, Counts]:
    """The counts of each metric for each sentence: the slow part, done once per system.

    Args:
        hypotheses: as in `evaluate`.
        references: as in `evaluate`.
        metrics: as in `evaluate`.
        reading: as in `evaluate`.
        processes: the largest number of processes that count TER, which takes the longest.
        progress: called with a metric and the number of sentences done.

    Raises:
        DataError, ConfigError, MissingExtraError: as in `evaluate`.
    """
    _check(hypotheses, references)
    require_known(metrics, reading)
    ter = partial(count_ter, processes=processes, progress=partial(progress, "ter"))
    functions, found = METRICS | {"ter": ter}, {}
    for key in metrics:
        progress(key, 0)
        found[key] = functions[key](hypotheses, references, reading)
    return found


def require_known(metrics: Sequence[str], reading: Reading) -> None:
    """Refuse unknown metrics and tokenizers.

    Raises:
        ConfigError: names the nearest known one, or says that no metric is given.
    """
    if not metrics:
        raise ConfigError(f"Give at least one metric: {', '.join(METRICS)}.")
    for key in metrics:
        if key not in METRICS:
            near = difflib.get_close_matches(key, METRICS, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ConfigError(f"A metric must be one of {', '.join(METRICS)}, but is {key}.{hint}")
    _ = reading.tokenizer  # raises if there is no such metric


def require_installed(metrics: Sequence[str], reading: Reading) -> None:
    """Refuse a metric whose packages are missing, before the expensive work starts.

    Raises:
        ConfigError: BLEU's tokenizer is not installed.
        MissingExtraError: sacreBLEU is not installed.
    """
    count(["a"], [["a"]], metrics=metrics, reading=reading)


def evaluation_of(
    counts: Mapping[str, Counts], warnings: Sequence[str], resamples: int, seed: int
) -> Evaluation:
    """The scores of counts, with their confidence intervals.

    The warnings in the counts are added to `warnings`.
    """
    scores = {}
    n_sentences = 0
    warnings = [*warnings, *(text for counted in counts.values() for text in counted.warnings)]
    ends = intervals(list(counts.values()), resamples=resamples, seed=seed)
    for (key, counted), (low, high) in zip(counts.items(), ends, strict=True):
        n_sentences = len(counted.per_sentence)
        scores[key] = Score(counted.name, counted.of(), counted.signature, low, high)
    return Evaluation(scores, n_sentences, tuple(warnings))


def intervals(
    counts: Sequence[Counts], *, resamples: int = RESAMPLES, seed: int = SEED
) -> list[tuple[float, float]]:
    """The 95 % confidence interval of each score; the same sentences are drawn for all.

    Args:
        counts: at least one, all of the same sentences.
        resamples: how many sets are drawn.
        seed: decides the draws.

    Raises:
        ConfigError: `resamples` is less than 1.
    """
    widths = [counted.per_sentence.shape[1] for counted in counts]
    drawn = _resample(np.hstack([counted.per_sentence for counted in counts]), resamples, seed)
    parts = np.split(drawn, np.cumsum(widths)[:-1], axis=1)
    return [_interval(counted.score(part)) for counted, part in zip(counts, parts, strict=True)]


def difference_of(baseline: Counts, system: Counts, resamples: int, seed: int) -> Difference:
    """The paired bootstrap on counts: the same sentences are drawn for both systems."""
    width = baseline.per_sentence.shape[1]
    both = _resample(np.hstack([baseline.per_sentence, system.per_sentence]), resamples, seed)
    drawn = system.score(both[:, width:]) - baseline.score(both[:, :width])
    value = system.of() - baseline.of()
    # If both were equally good, the differences would have the same spread, but around zero.
    n_as_large = int((np.abs(drawn - value) >= abs(value)).sum())
    low, high = _interval(drawn)
    # All resamples of a single sentence are equal, so their spread says nothing about chance.
    is_single = len(system.per_sentence) == 1
    p_value = 1.0 if is_single else (n_as_large + 1) / (resamples + 1)
    return Difference(system.name, value, low, high, p_value)


def _resample(per_sentence: Numbers, resamples: int, seed: int) -> Numbers:
    """Summed counts of sets drawn with replacement, `(resamples, n_counts)`."""
    if resamples < 1:
        raise ConfigError(f"resamples must be at least 1, but is {resamples}. Try {RESAMPLES}.")
    generator = np.random.default_rng(seed)
    n_sentences = len(per_sentence)
    totals = np.empty((resamples, per_sentence.shape[1]))
    for row in totals:
        drawn = generator.integers(n_sentences, size=n_sentences)
        row[:] = np.bincount(drawn, minlength=n_sentences) @ per_sentence
    return totals


def _interval(scores: Numbers) -> tuple[float, float]:
    """The middle 95 % of resampled scores."""
    low, high = np.percentile(scores, [2.5, 97.5])
    return float(low), float(high)


def _check(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Refuse input whose score would be meaningless."""
    if isinstance(hypotheses, str):
        raise DataError("Translations must be a list of lines, but are one string. Split it.")
    if not hypotheses:
        raise DataError("There are no translations to evaluate: the list is empty.")
    if isinstance(references, str) or any(isinstance(known, str) for known in references):
        raise DataError(
            "References must be a list of reference sets, but are a plain list of lines. "
            "Put it in brackets: [references]."
        )
    if not references:
        raise DataError("There are no references to evaluate against: the list is empty.")
    for number, known in enumerate(references, start=1):
        if len(known) != len(hypotheses):
            raise DataError(
                f"Each translation needs its reference, but there are {len(hypotheses)} "
                f"translations and {len(known)} lines in reference set {number}."
            )


_SPACED_MARK = re.compile(r"\w [.,](\s|$)")
_SUBWORD_MARK = re.compile(r"@@ |\u2581")
_UNBROKEN = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u3040-\u30ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uaa60-\uaadf\U00020000-\U0003ffff]"
)
"""Thai, Lao, Tibetan, Myanmar, Khmer, Tai, Kana and Han: scripts written without blanks."""


def find_doubts(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: Sequence[str],
    reading: Reading,
) -> list[str]:
    """Warnings about texts that the metrics would misread."""
    unbroken = look_unbroken(references, metrics, reading)
    return [*look_tokenized(hypotheses, references), *unbroken]


def look_unbroken(
    references: Sequence[Sequence[str]], metrics: Sequence[str], reading: Reading
) -> list[str]:
    """A warning about metrics of words, where the references are written without blanks."""
    counts_words = {
        "bleu": reading.tokenizer in ("13a", "intl"),
        "ter": not reading.counts_characters,
        "wer": not reading.counts_characters,
    }
    affected = [key.upper() for key in metrics if counts_words.get(key)]
    text = "".join("".join(line.split()) for line in references[0])
    n_unbroken = len(text) - len(_UNBROKEN.sub("", text))
    if not affected or n_unbroken * 2 <= len(text):
        return []
    return [
        "The references are mostly in a script written without blanks, where "
        f"{' and '.join(affected)} would need blanks to find words. Give the target language, "
        "such as -t zh or -t th, or for BLEU --tokenize char."
    ]


def look_tokenized(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[str]:
    """Warnings about tokenized lines; BLEU expects plain text and tokenizes it itself."""
    found = []
    sets = [("translations", hypotheses)]
    sets += [(f"lines of reference set {i}", known) for i, known in enumerate(references, start=1)]
    for what, lines in sets:
        for mark, example in ((_SPACED_MARK, "a dog ."), (_SUBWORD_MARK, "do@@ g or ▁dog")):
            n_lines = sum(mark.search(line) is not None for line in lines)
            if n_lines * 10 > len(lines):
                found.append(
                    f"{n_lines} of {len(lines)} {what} look tokenized, as in {example!r}. "
                    "Join them to plain text first: scores of tokenized text do not compare."
                )
    return found
