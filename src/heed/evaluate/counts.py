"""The counts of each metric for a sentence, and the score of summed counts.

sacreBLEU counts BLEU, chrF and TER. The arithmetic after it is ours, on arrays, so that a thousand
resamples are cheap; the scores equal sacreBLEU's. `edits.py` lets sacreBLEU count the edits of TER.
"""

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.errors import ConfigError, MissingExtraError
from heed.evaluate.edits import MAX_EXACT_WORDS, MAX_SHIFTED_WORDS, edit_distance, edits_of

Numbers = NDArray[np.float64]

TOKENIZERS = ("13a", "zh", "ja-mecab", "ko-mecab", "intl", "char", "none")
"""sacreBLEU's tokenizers for BLEU, except those that download a model."""

_CHINESE = ("zh", "zho", "cmn", "yue")
_JAPANESE = ("ja", "jpn")
_KOREAN = ("ko", "kor")
_TOKENIZER_OF = {
    **dict.fromkeys(_CHINESE, "zh"),
    **dict.fromkeys(_JAPANESE, "ja-mecab"),
    **dict.fromkeys(_KOREAN, "ko-mecab"),
}
_CUT_BY_TERCOM = (*_CHINESE, *_JAPANESE)
"""Languages written without blanks that sacreBLEU's TER can split."""

_CUT_INTO_CHARACTERS = (
    *("th", "tha", "lo", "lao", "km", "khm", "my", "mya", "shn"),
    *("bo", "bod", "dz", "dzo"),
)
"""Languages written without blanks that sacreBLEU does not split: Thai, Lao, Khmer, Burmese, Shan,
Tibetan."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a metric for each sentence, enough to score any subset.

    Attributes:
        name: of the metric.
        signature: see `Score`.
        per_sentence: `(n_sentences, n_counts)`; the counts of a set are the sum of its sentences'.
        score: from summed counts `(..., n_counts)` to scores `(...)`.
        is_lower_better: True for error rates.
        warnings: sentences that say what was counted in another way than usual.
    """

    name: str
    signature: str
    per_sentence: Numbers
    score: Callable[[Numbers], Numbers]
    is_lower_better: bool = False
    warnings: tuple[str, ...] = ()

    def of(self, chosen: slice | NDArray[np.bool_] = slice(None)) -> float:
        """The score of the chosen sentences as one set."""
        return float(self.score(self.per_sentence[chosen].sum(axis=0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How text is read before it is compared.

    Attributes:
        target_lang: code such as `de`; Chinese, Japanese and Korean have their own BLEU tokenizers,
            and other languages written without blanks count characters in BLEU, TER and WER.
        tokenize: one of `TOKENIZERS` for BLEU; None chooses by `target_lang`: 13a for most, char
            for Thai and others written without blanks.
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
        """The BLEU tokenizer."""
        usual = "char" if self.language in _CUT_INTO_CHARACTERS else "13a"
        chosen = self.tokenize or _TOKENIZER_OF.get(self.language, usual)
        if chosen not in TOKENIZERS:
            near = difflib.get_close_matches(chosen, TOKENIZERS, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ConfigError(
                f"tokenize must be one of {', '.join(TOKENIZERS)}, but is {chosen}.{hint}"
            )
        return chosen

    @property
    def counts_characters(self) -> bool:
        """True where a blank does not end a word."""
        return self.language in (*_CUT_BY_TERCOM, *_CUT_INTO_CHARACTERS)


PLAIN = Reading()
"""The target language unknown, case kept."""


def reading_here(*target_langs: str) -> Reading:
    """Use the language's own BLEU tokenizer if it is installed, else characters.

    For scores whose tokenizer cannot be chosen, such as those during training: they must not fail
    because one is missing. Published scores name their tokenizer.

    Args:
        *target_langs: the language of each text; if they differ, that of words with blanks.
    """
    reading = Reading(target_lang=target_langs[0] if len({*target_langs}) == 1 else "")
    try:
        count_bleu(["a"], [["a"]], reading)
    except ConfigError:
        return replace(reading, tokenize="char")
    return reading


def _sacrebleu_metrics() -> Any:
    try:
        from sacrebleu import metrics
    except ImportError as error:
        raise MissingExtraError("heed evaluate", "train") from error
    return metrics


def _counted(
    metric: Any, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> tuple[str, Numbers]:
    """The metric's signature, and sacreBLEU's counts for each sentence."""
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
        # force: our own warning about tokenized text replaces the one in sacreBLEU's log.
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
    """chrF2: the F-score of character n-grams of 1 to 6; recall has twice the weight.

    Source: Popović 2015.
    """
    metric = _sacrebleu_metrics().CHRF(lowercase=reading.lowercase)
    return Counts("chrF2", *_counted(metric, hypotheses, references), chrf_of)


def count_ter(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    reading: Reading,
    *,
    processes: int = 1,
    progress: Callable[[int], None] = lambda n_done: None,
) -> Counts:
    """TER: edits and block shifts per reference word; ignores case, as Tercom does.

    A pair in which a line has more than `MAX_SHIFTED_WORDS` words is counted without shifts; the
    signature and a warning say so.

    Args:
        hypotheses: as in `evaluate`.
        references: as in `evaluate`.
        reading: the target language decides how words are found.
        processes: as in `edits_of`.
        progress: as in `edits_of`.

    Source: Snover et al. 2006.
    """
    is_asian = reading.language in _CUT_BY_TERCOM
    is_cut = reading.language in _CUT_INTO_CHARACTERS
    if is_cut:
        hypotheses = [" ".join(_characters(line)) for line in hypotheses]
        references = [[" ".join(_characters(line)) for line in known] for known in references]
    first = [known[:1] for known in references]
    metric = _sacrebleu_metrics().TER(is_asian, asian_support=is_asian, references=first)
    signature = str(metric.get_signature()) + ("|split:char" if is_cut else "")
    rows = edits_of(
        hypotheses, references, is_asian=is_asian, processes=processes, progress=progress
    )
    too_long = [number for number, (*_, is_too_long) in enumerate(rows, start=1) if is_too_long]
    warnings: tuple[str, ...] = ()
    if too_long:
        signature += f"|shifts:{MAX_SHIFTED_WORDS}-words"
        warnings = (
            f"{_lines(too_long)} more than {MAX_SHIFTED_WORDS} words, so TER counts edits "
            "without shifts there. This is not sacreBLEU's TER; cut such lines into sentences.",
        )
    counts = np.array([row[:2] for row in rows], dtype=np.float64)
    return Counts("TER", signature, counts, error_rate_of, True, warnings)


def count_wer(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], reading: Reading
) -> Counts:
    """WER: words to insert, delete or replace, per word of the nearest reference."""

    def words(text: str) -> list[str]:
        text = text.lower() if reading.lowercase else text
        return _characters(text) if reading.counts_characters else text.split()

    rows = []
    too_long = []
    for number, (hypothesis, *known) in enumerate(zip(hypotheses, *references, strict=True), 1):
        said, expected = words(hypothesis), [words(text) for text in known]
        if max(map(len, [said, *expected])) > MAX_EXACT_WORDS:
            too_long.append(number)
        candidates = [(edit_distance(said, other), len(other)) for other in expected]
        rows.append(min(candidates, key=lambda row: (row[0] / max(row[1], 1), -row[1])))
    case = "lc" if reading.lowercase else "mixed"
    tok = "char" if reading.counts_characters else "blanks"
    signature = f"nrefs:{len(references)}|case:{case}|tok:{tok}|version:heed-1"
    warnings: tuple[str, ...] = ()
    if too_long:
        signature += f"|stretches:{MAX_EXACT_WORDS}-words"
        warnings = (
            f"{_lines(too_long)} more than {MAX_EXACT_WORDS} words, so WER is only an upper bound "
            "there. Cut such lines into sentences.",
        )
    return Counts("WER", signature, np.array(rows, dtype=np.float64), error_rate_of, True, warnings)


def count_exact(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], reading: Reading
) -> Counts:
    """The share of translations that equal a reference, apart from blanks at the ends."""

    def plain(text: str) -> str:
        return text.strip().lower() if reading.lowercase else text.strip()

    rows = [
        (plain(hypothesis) in map(plain, known), 1)
        for hypothesis, *known in zip(hypotheses, *references, strict=True)
    ]
    case = "lc" if reading.lowercase else "mixed"
    signature = f"nrefs:{len(references)}|case:{case}|version:heed-1"
    return Counts("exact match", signature, np.array(rows, dtype=np.float64), _share_of)


def _characters(text: str) -> list[str]:
    return list("".join(text.split()))


def _lines(numbers: Sequence[int]) -> str:
    """`Line 7 has`, or `3 lines, the first being line 7, have`."""
    if len(numbers) == 1:
        return f"Line {numbers[0]} has"
    return f"{len(numbers)} lines, the first being line {numbers[0]}, have"


def bleu_of(totals: Numbers) -> Numbers:
    """BLEU with exponential smoothing of empty n-gram orders.

    Args:
        totals: translation length, reference length, matches of order 1 to 4, n-grams of order
            1 to 4, `(..., 10)`.

    Source: Chen and Cherry 2014, method 3; as in sacreBLEU.
    """
    n_said, n_expected = totals[..., 0], totals[..., 1]
    matches, n_grams = totals[..., 2:6], totals[..., 6:10]
    is_zero = (n_grams == 0).any(axis=-1) | (matches == 0).all(axis=-1)
    halvings = np.cumsum(matches == 0, axis=-1)
    smoothed = np.where(matches == 0, 0.5**halvings, matches)
    log_precision = np.log(smoothed / np.maximum(n_grams, 1)).mean(axis=-1)
    log_brevity = np.minimum(0.0, 1 - n_expected / np.maximum(n_said, 1))
    return np.where(is_zero, 0.0, 100 * np.exp(log_precision + log_brevity))


def chrf_of(totals: Numbers) -> Numbers:
    """F2 of precision and recall, each averaged over the n-gram orders that both sides have.

    Args:
        totals: n-grams of the translation, n-grams of the reference and matches, for each order
            in turn, `(..., 18)`.
    """
    said, expected, matches = np.moveaxis(totals.reshape(*totals.shape[:-1], -1, 3), -1, 0)
    has_order = (said > 0) & (expected > 0)
    n_orders = np.maximum(has_order.sum(axis=-1), 1)
    precision = (has_order * matches / np.maximum(said, 1)).sum(axis=-1) / n_orders
    recall = (has_order * matches / np.maximum(expected, 1)).sum(axis=-1) / n_orders
    weighted = 4 * precision + recall
    score: Numbers = 500 * precision * recall / np.where(weighted > 0, weighted, 1.0)
    return score


def error_rate_of(totals: Numbers) -> Numbers:
    """Edits per reference word; without reference words, any edit counts as 100 %.

    Args:
        totals: edits and reference words, `(..., 2)`.
    """
    edits, n_words = totals[..., 0], totals[..., 1]
    rate = np.where(n_words > 0, edits / np.where(n_words > 0, n_words, 1.0), edits > 0)
    return 100 * rate


def _share_of(totals: Numbers) -> Numbers:
    return 100 * totals[..., 0] / totals[..., 1]
