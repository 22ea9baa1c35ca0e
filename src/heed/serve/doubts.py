"""Places where a translation may be wrong, as far as the model itself shows it."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from heed.serve.request import Doubt, Kind, SegmentAnswer
from heed.translate.words import piece_spans

LOW_PROBABILITY = 0.1
"""A word below this probability is doubtful.

On the 1,000 sentences of Multi30k's test set (English to German, beam 5, a model of 1.6 million
parameters) these were 4.7 % of the words; 84 % of them were not in the reference translation, and
27 % of the others.
"""

MIN_REPEATS = 3
"""So many equal n-grams one after the other are a loop of the search."""

MAX_REPEATED = 8
"""Longest repeated n-gram, in tokens."""

_LOW_LOG_PROB = math.log(LOW_PROBABILITY)
_WORD_START = "\u2581"
_UNKNOWN = re.compile(r"<0x[0-9A-F]{2}>|<unk>")

_WHOLE_SEGMENT: dict[str, tuple[Kind, str]] = {
    "max_length": ("max_length", "The translation was cut off: it reached its length limit."),
    "split": ("split", "The sentence was too long for the model and was translated in parts."),
}


def find_doubts(text: str, segments: Sequence[SegmentAnswer]) -> tuple[Doubt, ...]:
    """The doubts about the segments of an answer, in the order of its text.

    Args:
        text: of the answer.
        segments: of the same.
    """
    doubts: list[Doubt] = []
    after = 0
    for index, segment in enumerate(segments):
        translation = segment.translation
        start = text.find(translation.text, after)
        found = list(_of_segment(segment))
        has_places = found and start >= 0
        spans = piece_spans(translation.tokens, translation.text) if has_places else None
        for kind, sentence, tokens in found:
            place = _place(start, spans, tokens, len(translation.text))
            doubts.append(
                Doubt(
                    kind=kind,
                    sentence=sentence,
                    segment=index,
                    tokens=tokens,
                    start=place and place[0],
                    end=place and place[1],
                )
            )
        after = max(after, start + len(translation.text))
    return tuple(doubts)


Found = tuple[Kind, str, tuple[int, int] | None]
"""A kind, its sentence, and a range of target tokens."""


def _of_segment(segment: SegmentAnswer) -> Iterator[Found]:
    translation = segment.translation
    if translation.status in _WHOLE_SEGMENT:
        kind, sentence = _WHOLE_SEGMENT[translation.status]
        yield kind, sentence, None
    for term in segment.unplaced:
        sentence = f"There was no place for the glossary's translation of {term}."
        yield "glossary_not_placed", sentence, None
    if unknown := _unknown(translation.source_tokens):
        words = ", ".join(dict.fromkeys(unknown))
        yield "unknown_word", f"The model has not learned these characters: {words}", None
    repeated = list(_repeated(translation.tokens))
    for tokens in repeated:
        yield "repeated", "The same words come again and again.", tokens
    if len(translation.token_scores) < len(translation.tokens):
        return  # words that a glossary has put in have no probability
    for start, end in _words(translation.tokens):
        log_prob = sum(translation.token_scores[start:end])
        if log_prob >= _LOW_LOG_PROB or any(first <= start < last for first, last in repeated):
            continue
        percent = 100 * math.exp(log_prob)
        shown = f"{percent:.0f} %" if percent >= 1 else "less than 1 %"
        sentence = f"The model gives this word a probability of {shown}."
        yield "low_probability", sentence, (start, end)


def _place(
    start: int,
    spans: list[tuple[int, int]] | None,
    tokens: tuple[int, int] | None,
    length: int,
) -> tuple[int, int] | None:
    """Where a range of tokens is in the text of the answer, if it stands there as it is."""
    if spans is None:
        return None
    if tokens is None:
        return start, start + length
    first, last = tokens
    return start + spans[first][0], start + spans[last - 1][1]


def _words(tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Ranges of the tokens of each word."""
    starts = [
        place for place, token in enumerate(tokens) if not place or token.startswith(_WORD_START)
    ]
    yield from pairwise([*starts, len(tokens)])  # none of a translation without tokens


def _unknown(source_tokens: Sequence[str]) -> list[str]:
    """Characters of the source that the model reads as bytes, or not at all."""
    found: list[str] = []
    data = b""
    for token in [*source_tokens, ""]:
        if token.startswith("<0x") and _UNKNOWN.fullmatch(token):
            data += bytes.fromhex(token[3:5])
        elif data:
            found += data.decode("utf-8", errors="replace").strip()
            data = b""
        if token == "<unk>":
            found.append("?")
    return found


def _repeated(tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Ranges in which one n-gram follows itself, not overlapping; the shortest n-gram counts."""
    # The cheaper question first: three equal tokens are two that were there before.
    if len(tokens) - len(set(tokens)) < MIN_REPEATS - 1:
        return
    if max(Counter(tokens).values(), default=0) < MIN_REPEATS:
        return
    start = 0
    while start < len(tokens):
        for size in range(1, MAX_REPEATED + 1):
            end = start + size
            while tokens[end : end + size] == tokens[start : start + size]:
                end += size
            if end - start >= MIN_REPEATS * size:
                yield start, end
                start = end
                break
        else:
            start += 1
