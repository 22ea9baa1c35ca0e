"""A `Translation` as lines of text, in each output format.

Numbers are natural logarithms, except in `fairseq`, whose own scripts expect base 2.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from heed.cli.streams import json_row, on_one_line
from heed.errors import UsageError
from heed.translate.result import Translation


@dataclass(frozen=True, kw_only=True)
class Details:
    """The content to write besides the text.

    Attributes:
        n_best: number of translations of each line.
        has_scores: also the score and the log-probability of the whole line.
        has_word_scores: also each token's log-probability.
        alignment: `hard`, `soft` or None.
        has_confidence: also the probability that the translation is right.
        passed_on: keys of this input line that `jsonl` copies to the output, such as `id`.
    """

    n_best: int = 1
    has_scores: bool = False
    has_word_scores: bool = False
    alignment: str | None = None
    has_confidence: bool = False
    passed_on: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_plain(self) -> bool:
        """Whether only the text is written."""
        return self == Details()


Format = Callable[[int, Translation, Details], list[str]]
"""Maps a line number from 0, its translation and the details to output lines."""


def choose_format(name: str | None, details: Details) -> Format:
    """The named format, or the simplest one that can hold all details.

    Raises:
        UsageError: the format cannot hold the details.
    """
    if name is None:
        name = "text" if details.is_plain else "tsv" if details.n_best == 1 else "moses"
    if name == "text" and not details.is_plain:
        raise UsageError(
            "--format text holds one translation a line and nothing else. "
            "For scores, confidence, alignments or n-best lists use --format tsv, moses or jsonl."
        )
    if name == "fairseq" and details.has_confidence:
        raise UsageError(
            "--format fairseq has no place for a confidence: use --format tsv, moses or jsonl."
        )
    return FORMATS[name]


def as_text(line: int, translation: Translation, details: Details) -> list[str]:
    """The translation alone."""
    return [translation.text]


def as_tsv(line: int, translation: Translation, details: Details) -> list[str]:
    """Columns: line number (n-best only), text, score, token scores, alignment, confidence."""
    rows = []
    for reading in _readings(translation):
        columns = [str(line)] if details.n_best > 1 else []
        columns.append(reading.text.replace("\t", " "))  # the source itself may have tabs
        if details.has_scores or details.n_best > 1:
            columns.append(f"{reading.score:.4f}")
        if details.has_word_scores:
            columns.append(_numbers(reading.token_scores))
        if details.alignment:
            columns.append(spell_alignment(reading, details.alignment))
        if details.has_confidence:
            columns.append(_spelled(reading.confidence))
        rows.append("\t".join(columns))
    return rows


def as_moses(line: int, translation: Translation, details: Details) -> list[str]:
    """`id ||| text ||| features ||| score`, and the alignment last, as Moses' n-best lists."""
    rows = []
    for reading in _readings(translation):
        features = f"F0= {reading.log_prob:.4f}"
        if details.has_word_scores:
            features += f" WordScores= {_numbers(reading.token_scores)}"
        if details.has_confidence:
            features += f" Confidence= {_spelled(reading.confidence)}"
        # A translation may itself contain the separator.
        text = reading.text.replace("|||", "|| |")
        columns = [str(line), text, features, f"{reading.score:.4f}"]
        if details.alignment:
            columns.append(spell_alignment(reading, details.alignment))
        rows.append(" ||| ".join(columns))
    return rows


def as_jsonl(line: int, translation: Translation, details: Details) -> list[str]:
    """One JSON object per input line, numbered from 1; alternatives are objects inside it."""
    record = {
        "line": line + 1,
        **details.passed_on,
        **_record(translation, details),
        "status": translation.status,
        "doubts": [asdict(doubt) for doubt in translation.doubts],
        "confidence": translation.confidence,
    }
    if translation.matches:
        record["memory"] = [asdict(match) for match in translation.matches]
    if details.n_best > 1:
        record["alternatives"] = [_record(other, details) for other in translation.alternatives]
    return [json_row(record)]


def as_fairseq(line: int, translation: Translation, details: Details) -> list[str]:
    """S-, H-, D-, P- and A- lines as `fairseq-generate` prints them; scores in base 2."""
    rows = [f"S-{line}\t{_pieces(translation.source_tokens)}"]
    for reading in _readings(translation):
        score = reading.score / math.log(2)
        rows.append(f"H-{line}\t{score:.4f}\t{_pieces(reading.tokens)}")
        rows.append(f"D-{line}\t{score:.4f}\t{reading.text}")
        rows.append(f"P-{line}\t{_numbers([s / math.log(2) for s in reading.token_scores])}")
        if details.alignment:
            rows.append(f"A-{line}\t{spell_alignment(reading, details.alignment)}")
    return rows


FORMATS: dict[str, Format] = {
    "text": as_text,
    "tsv": as_tsv,
    "moses": as_moses,
    "jsonl": as_jsonl,
    "fairseq": as_fairseq,
}


def spell_alignment(translation: Translation, kind: str) -> str:
    """`hard`: Pharaoh's `source-target` pairs, `0-0 1-2`; `soft`: Marian's, one group per token.

    Positions count pieces, not words, because not every language separates words by blanks.
    """
    if kind == "hard":
        return " ".join(f"{source}-{target}" for source, target in translation.links())
    return " ".join(
        ",".join(f"{weight:.4f}" for weight in row) for row in translation.alignment or []
    )


def _readings(translation: Translation) -> Sequence[Translation]:
    return [translation, *translation.alternatives]


def _record(translation: Translation, details: Details) -> dict[str, Any]:
    record: dict[str, Any] = {
        "text": translation.text,
        "score": round(translation.score, 6),
        "log_prob": round(translation.log_prob, 6),
    }
    if details.has_word_scores:
        record["tokens"] = translation.tokens
        record["token_scores"] = [round(score, 6) for score in translation.token_scores]
    if details.alignment:
        record["source_tokens"] = translation.source_tokens
        record["tokens"] = translation.tokens
    if details.alignment == "hard":
        record["alignment"] = [list(link) for link in translation.links()]
    elif details.alignment == "soft":
        record["alignment"] = [[round(w, 6) for w in row] for row in translation.alignment or []]
    return record


def _spelled(confidence: float | None) -> str:
    """A probability, or a dash if the model is not calibrated."""
    return "-" if confidence is None else f"{confidence:.4f}"


def _pieces(tokens: Sequence[str]) -> str:
    return " ".join(map(on_one_line, tokens))


def _numbers(values: Sequence[float]) -> str:
    return " ".join(f"{value:.4f}" for value in values)
