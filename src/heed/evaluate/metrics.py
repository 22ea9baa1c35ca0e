"""Scores of translations against references: BLEU, chrF, TER, WER and exact match.

Not a reimplementation: BLEU, chrF and TER count with sacreBLEU, and equal it. What is ours is
arithmetic on its counts, so that a thousand resamples cost no more than one. Read on in `report.py`.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.errors import ConfigError, DataError, MissingExtraError

Numbers = NDArray[np.float64]

TOKENIZERS = ("13a", "zh", "ja-mecab", "ko-mecab", "intl", "char", "none")
"""sacreBLEU's ways to cut words for BLEU, but for those that download a model."""

_TOKENIZER_OF = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}
_WRITTEN_WITHOUT_BLANKS = ("zh", "ja", "th", "lo", "km", "my")


@dataclass(frozen=True, slots=True)
class Score:
    """One number about a whole set of translations, and how sure it is.

    Attributes:
        name: as papers write it: BLEU, chrF2, TER, WER, exact match.
        value: 0 to 100; TER and WER may pass 100, and there less is better.
        signature: what must be equal for two such numbers to be comparable.
        low: lower end of the 95 % confidence interval.
        high: its upper end.
    """

    name: str
    value: float
    signature: str
    low: float
    high: float

    def as_dict(self) -> dict[str, str | float]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All scores of one system on one set.

    Attributes:
        scores: by key of `METRICS`, in the order asked for.
        n_sentences: how many translations were scored.
        warnings: what makes the numbers doubtful, in sentences.
    """

    scores: Mapping[str, Score]
    n_sentences: int
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "n_sentences": self.n_sentences,
            "scores": {key: score.as_dict() for key, score in self.scores.items()},
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """How far a system is from a baseline on the same sentences.

    Attributes:
        name: of the metric.
        value: system minus baseline, in points.
        low: lower end of the 95 % confidence interval of the difference.
        high: its upper end.
        p_value: how often chance alone would give a difference as large, if the two were equally good.
    """

    name: str
    value: float
    low: float
    high: float
    p_value: float

    def as_dict(self) -> dict[str, str | float]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Counts:
    """What a metric counted in each sentence: enough to score any part of the set.

    Attributes:
        name: of the metric.
        signature: see `Score`.
        per_sentence: `(n_sentences, n_counts)`; the counts of a set are the sum of its sentences'.
        score: from summed counts `(..., n_counts)` to scores `(...)`.
        is_lower_better: True for error rates.
    """

    name: str
    signature: str
    per_sentence: Numbers
    score: Callable[[Numbers], Numbers]
    is_lower_better: bool = False

    def of(self, chosen: slice | NDArray[np.bool_] = slice(None)) -> float:
        """The score of the chosen sentences taken together."""
        return float(self.score(self.per_sentence[chosen].sum(axis=0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How text is read before it is compared.

    Attributes:
        target_lang: code such as `de`; Chinese, Japanese and Korean have their own BLEU tokenizers, and
            languages written without blanks count characters in TER and WER.
        tokenize: one of `TOKENIZERS` for BLEU; None chooses by `target_lang`, 13a for most.
        lowercase: True ignores case, as some older papers do.
    """

    target_lang: str = ""
    tokenize: str | None = None
    lowercase: bool = False

    @property
    def language(self) -> str:
        """The language without its region: zh for zh-Hant-TW."""
        return re.split("[-_]", self.target_lang)[0].lower()

    @property
    def tokenizer(self) -> str:
        """The BLEU tokenizer this asks for."""
        chosen = self.tokenize or _TOKENIZER_OF.get(self.language, "13a")
        if chosen not in TOKENIZERS:
            near = difflib.get_close_matches(chosen, TOKENIZERS, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ConfigError(f"tokenize must be one of {', '.join(TOKENIZERS)}, but is {chosen}.{hint}")
        return chosen

    @property
    def counts_characters(self) -> bool:
        """True where a blank does not end a word."""
        return self.language in _WRITTEN_WITHOUT_BLANKS


# --- Counting, sentence by sentence.


def _sacrebleu_metrics() -> Any:
    try:
        from sacrebleu import metrics
    except ImportError as error:
        raise MissingExtraError("heed evaluate", "train") from error
    return metrics


def _counted(
    metric: Any, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> tuple[str, Numbers]:
    """sacreBLEU's own counts of each sentence, and its signature."""
    counts = metric._extract_corpus_statistics(hypotheses, references)
    return str(metric.get_signature()), np.array(counts, dtype=np.float64)


def count_bleu(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], reading: Reading
) -> Counts:
    """BLEU with the defaults of sacreBLEU.

    Source: Papineni et al. 2002; Post 2018.
    """
    metrics = _sacrebleu_metrics()
    tokenizer = reading.tokenizer
    try:
        # force: our own warning about tokenised text replaces the one in sacreBLEU's log.
        metric = metrics.BLEU(tokenize=tokenizer, lowercase=reading.lowercase, force=True)
    except (ImportError, RuntimeError) as error:
        extra = tokenizer.partition("-")[0]
        raise ConfigError(
            f"The tokenizer {tokenizer} is not installed: pip install 'sacrebleu[{extra}]', "
            "or choose another such as char."
        ) from error
    return Counts("BLEU", *_counted(metric, hypotheses, references), bleu_of)


def count_chrf(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], reading: Reading
) -> Counts:
    """chrF2: F-score of character 1- to 6-grams, recall weighing twice.

    Source: Popović 2015.
    """
    metric = _sacrebleu_metrics().CHRF(lowercase=reading.lowercase)
    return Counts("chrF2", *_counted(metric, hypotheses, references), chrf_of)


def count_ter(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], reading: Reading
) -> Counts:
    """TER: edits and shifts of blocks, per reference word; ignores case, as Tercom does.

    Source: Snover et al. 2006.
    """
    asian = reading.counts_characters
    metric = _sacrebleu_metrics().TER(normalized=asian, asian_support=asian)
    return Counts("TER", *_counted(metric, hypotheses, references), error_rate_of, True)


def count_wer(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], reading: Reading
) -> Counts:
    """WER: words to insert, delete or replace, per word of the nearest reference."""

    def words(text: str) -> list[str]:
        text = text.lower() if reading.lowercase else text
        return list("".join(text.split())) if reading.counts_characters else text.split()

    rows = []
    for hypothesis, *known in zip(hypotheses, *references, strict=True):
        said = words(hypothesis)
        candidates = [(edit_distance(said, words(text)), len(words(text))) for text in known]
        rows.append(min(candidates, key=lambda row: (row[0] / max(row[1], 1), -row[1])))
    case = "lc" if reading.lowercase else "mixed"
    tok = "char" if reading.counts_characters else "blanks"
    signature = f"nrefs:{len(references)}|case:{case}|tok:{tok}|version:heed-1"
    return Counts("WER", signature, np.array(rows, dtype=np.float64), error_rate_of, True)


def count_exact(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], reading: Reading
) -> Counts:
    """The share of translations that equal a reference, blanks at the ends aside."""

    def plain(text: str) -> str:
        return text.strip().lower() if reading.lowercase else text.strip()

    rows = [
        (plain(hypothesis) in map(plain, known), 1)
        for hypothesis, *known in zip(hypotheses, *references, strict=True)
    ]
    case = "lc" if reading.lowercase else "mixed"
    signature = f"nrefs:{len(references)}|case:{case}|version:heed-1"
    return Counts("exact match", signature, np.array(rows, dtype=np.float64), _share_of)


METRICS: dict[str, Callable[[Sequence[str], Sequence[Sequence[str]], Reading], Counts]] = {
    "bleu": count_bleu,
    "chrf": count_chrf,
    "ter": count_ter,
    "wer": count_wer,
    "exact": count_exact,
}


def edit_distance(a: Sequence[str], b: Sequence[str]) -> int:
    """The fewest insertions, deletions and replacements from `a` to `b` (Levenshtein 1966)."""
    above = list(range(len(b) + 1))
    for i, word in enumerate(a, start=1):
        row = [i]
        for j, other in enumerate(b):
            row.append(min(above[j + 1] + 1, row[j] + 1, above[j] + (word != other)))
        above = row
    return above[-1]
