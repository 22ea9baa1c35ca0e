"""Validation: scores and losses on held-out sentences.

It uses fewer sentences than `heed evaluate` and greedy search, so it costs seconds. The
translations come from the same `Translator` that users run.
"""

import math
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from heed.data.prepared import Prepared
from heed.evaluate.counts import Counts, count_bleu, count_chrf, reading_here
from heed.evaluate.metrics import intervals
from heed.translate.doubts.calibrate import MOST_PAIRS
from heed.translate.translator import Translator

N_SAMPLES = 10
"""Sentences that every validation shows, over all target languages."""

MIN_FOR_SHARE = 8
"""With fewer translations, equal ones may be chance."""


@dataclass(frozen=True, kw_only=True)
class DevSet:
    """Development sentences.

    Attributes:
        src: source lines.
        tgt: their translations.
        target_lang: the language of `tgt`, for a model with several; "" otherwise.
    """

    src: list[str]
    tgt: list[str]
    target_lang: str = ""


def dev_sets(data: Prepared) -> list[DevSet]:
    """The development sentences of a corpus, one set for each target language."""
    languages = data.target_langs or ("",)
    sets = []
    for language in languages:
        pairs = [pair for pair in data.dev if not language or pair.target_lang == language]
        if pairs:
            sets.append(
                DevSet(
                    src=[pair.src for pair in pairs],
                    tgt=[pair.tgt for pair in pairs],
                    target_lang=language or data.target_lang,
                )
            )
    return sets


@dataclass(frozen=True, kw_only=True)
class Validation:
    """The results of one validation.

    Attributes:
        loss: negative log-likelihood a target token of the whole set, in nats, `<eos>` counted.
        bleu: corpus BLEU of greedy translations, 0 to 100; None when nothing was translated.
        chrf: corpus chrF of the same, 0 to 100.
        n_translated: sentences translated.
        seconds: its duration.
        beyond_s: the part of it for scoring pairs beyond the first `MOST_PAIRS`, which the work
            after training does not read.
        samples: the same few sentences each time: source `src`, reference `ref`, translation
            `hyp`, and its sentence chrF `chrf`.
        same_share: share of the most common translation among all; None if they are few.
        by_language: BLEU and chrF of each target language, if there are several.
        intervals: the ends of the 95 % confidence intervals of BLEU and chrF, by bootstrap over
            the sentences translated (Koehn 2004).
        signatures: sacreBLEU's of the two; scores are comparable only if these are equal.
        bits: bits a character of a language model's development text.
        accuracy: share of labels or masked pieces that are right, in percent.
        f1: mean F1 of the labels, in percent.
    """

    loss: float
    bleu: float | None = None
    chrf: float | None = None
    n_translated: int = 0
    seconds: float
    samples: list[dict[str, Any]] = field(default_factory=list)
    beyond_s: float = 0.0
    same_share: float | None = None
    by_language: dict[str, dict[str, float]] = field(default_factory=dict)
    intervals: dict[str, list[float]] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)
    bits: float | None = None
    accuracy: float | None = None
    f1: float | None = None

    def score(self, metric: str) -> float:
        """The number by which validations are compared; larger is better."""
        scores = {"bleu": self.bleu, "chrf": self.chrf, "accuracy": self.accuracy}
        score = scores.get(metric)
        return -self.loss if score is None else score


def validate(translator: Translator, dev_sets: list[DevSet], *, n_sentences: int) -> Validation:
    """Score and translate the development sentences.

    Args:
        translator: of the current weights, in evaluation mode.
        dev_sets: one for each target language.
        n_sentences: sentences of all sets together that are translated; all are scored.
    """
    started_at = time.monotonic()
    log_prob, n_tokens, scoring_s = 0.0, 0, 0.0
    sources: list[str] = []
    hypotheses: list[str] = []
    references: list[str] = []
    shown: list[int] = []
    by_language: dict[str, dict[str, float]] = {}
    total = sum(len(dev.src) for dev in dev_sets)
    for dev in dev_sets:
        options: dict[str, Any] = {"target_lang": dev.target_lang or None}
        scoring_at = time.monotonic()
        scored = translator.score(dev.src, dev.tgt, **options)
        scoring_s += time.monotonic() - scoring_at
        for pair in scored:
            log_prob += sum(pair.token_scores)
            n_tokens += len(pair.token_scores)
        n = min(len(dev.src), -(-n_sentences * len(dev.src) // max(1, total)))
        n = n if math.isfinite(log_prob) else 0  # weights that are not finite give no translation
        found = translator(dev.src[:n], beam_size=1, **options) if n else []
        shown += range(len(hypotheses), len(hypotheses) + min(n, -(-N_SAMPLES // len(dev_sets))))
        sources += dev.src[:n]
        hypotheses += found
        references += dev.tgt[:n]
        if found and len(dev_sets) > 1:
            counted = _counted(found, dev.tgt[:n], dev.target_lang)
            by_language[dev.target_lang] = {key: counts.of() for key, counts in counted.items()}
    # A language with its own tokenizer gets it only if it is the only target.
    languages = {dev.target_lang for dev in dev_sets}
    counted = _counted(hypotheses, references, languages.pop() if len(languages) == 1 else "")
    chrf = counted["chrf"].score(counted["chrf"].per_sentence) if counted else ()
    return Validation(
        loss=-log_prob / max(1, n_tokens),
        bleu=counted["bleu"].of() if counted else None,
        chrf=counted["chrf"].of() if counted else None,
        n_translated=len(hypotheses),
        seconds=time.monotonic() - started_at,
        beyond_s=scoring_s * max(0.0, 1 - MOST_PAIRS / max(1, total)),
        samples=[
            {"src": sources[i], "ref": references[i], "hyp": hypotheses[i], "chrf": float(chrf[i])}
            for i in shown
        ],
        same_share=_same_share(hypotheses),
        by_language=by_language,
        intervals=_intervals(counted),
        signatures={key: counts.signature for key, counts in counted.items()},
    )


def _counted(hypotheses: list[str], references: list[str], target_lang: str) -> dict[str, Counts]:
    """The counts of BLEU and chrF; empty if nothing was translated."""
    if not hypotheses:
        return {}
    reading = reading_here(target_lang)
    return {
        "bleu": count_bleu(hypotheses, [references], reading),
        "chrf": count_chrf(hypotheses, [references], reading),
    }


def _intervals(counted: dict[str, Counts]) -> dict[str, list[float]]:
    if not counted:
        return {}
    return dict(zip(counted, map(list, intervals(list(counted.values()))), strict=True))


def _same_share(hypotheses: list[str]) -> float | None:
    if len(hypotheses) < MIN_FOR_SHARE:
        return None
    return max(Counter(hypotheses).values()) / len(hypotheses)
