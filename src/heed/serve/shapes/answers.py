"""An `Answer` as JSON of heed's own API: segments, tokens, alignments and doubts."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from heed.serve.request import Answer, Doubt, SegmentAnswer
from heed.text.spans import spans_of
from heed.translate.result import Translation

CELL_CHARS = 3
"""Spelling a weight of an alignment takes about as long as reading this many characters."""

DIGITS = 6
"""Decimals of a score or a probability; further ones would be rounding noise."""


def spelled_answers(answers: Sequence[Answer], *, details: bool) -> list[dict[str, Any]]:
    """The answers of a request as JSON values.

    Args:
        answers: one per text.
        details: include tokens and alignments.
    """
    return [_spelled_answer(answer, details=details) for answer in answers]


def spelling_chars(segments: Iterable[SegmentAnswer]) -> int:
    """Spelling the alignments of segments takes about as long as reading so many characters."""
    rows = (row for segment in segments for row in segment.translation.alignment or ())
    return CELL_CHARS * sum(map(len, rows))


def count_tokens(answers: Sequence[Answer]) -> int:
    """The target tokens of all answers."""
    return sum(len(one.translation.tokens) for answer in answers for one in answer.segments)


def _spelled_answer(answer: Answer, *, details: bool) -> dict[str, Any]:
    return {
        "text": answer.text,
        "source": answer.source,
        "confidence": rounded(answer.confidence),
        "model": answer.model,
        "alternatives": _spelled_alternatives(answer),
        "doubts": [spelled_doubt(doubt) for doubt in answer.doubts],
        "segments": [spelled_segment(one, details=details) for one in answer.segments],
    }


def _spelled_alternatives(answer: Answer) -> list[dict[str, Any]]:
    """An alternative has a score only if the text is a single segment."""
    scores: dict[str, float] = {}
    if len(answer.segments) == 1:
        others = answer.segments[0].translation.alternatives
        scores = {other.text: other.score for other in others}
    return [
        {"text": text, "score": rounded(scores.get(text.strip()))} for text in answer.alternatives
    ]


def spelled_doubt(doubt: Doubt) -> dict[str, Any]:
    """A doubt as JSON values."""
    return {
        "kind": doubt.kind,
        "sentence": doubt.sentence,
        "segment": doubt.segment,
        "start": doubt.start,
        "end": doubt.end,
    }


def spelled_segment(segment: SegmentAnswer, *, details: bool) -> dict[str, Any]:
    """A segment and its translation."""
    translation = segment.translation
    found: dict[str, Any] = {
        "source": segment.source,
        "text": translation.text,
        "score": rounded(translation.score),
        "status": translation.status,
        "confidence": rounded(translation.confidence),
    }
    if details:
        found["tokens"] = spelled_tokens(translation)
        found["source_tokens"] = _spelled_pieces(translation.source_tokens, segment.source)
        found["alignment"] = [
            [rounded(weight) for weight in row] for row in translation.alignment or []
        ]
        # Not the pairs: a client may not be allowed to read what the model was trained on.
        found["memory"] = [rounded(match.similarity) for match in translation.matches]
    return found


def spelled_tokens(translation: Translation) -> list[dict[str, Any]]:
    """The tokens of a translation, with their positions in its text and their probabilities."""
    # `<eos>` has a score but no piece. Glossary terms are no pieces of the model: no scores.
    scores = translation.token_scores or [math.nan] * len(translation.tokens)
    pieces = _spelled_pieces(translation.tokens, translation.text)
    return [
        {
            **piece,
            "text": translation.text[piece["start"] : piece["end"]],
            "probability": rounded(math.exp(score)),
        }
        for piece, score in zip(pieces, scores, strict=False)
    ]


def _spelled_pieces(pieces: Sequence[str], text: str) -> list[dict[str, Any]]:
    return [
        {"piece": piece, "start": start, "end": end}
        for piece, (start, end) in zip(pieces, spans_of(pieces, text), strict=True)
    ]


def rounded(number: float | None) -> float | None:
    """A rounded number for JSON, which has neither NaN nor infinity."""
    return None if number is None or not math.isfinite(number) else round(number, DIGITS)
