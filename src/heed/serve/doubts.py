"""The doubts about the segments of a translation, with their positions in its text.

`heed.translate.doubts` finds most of them. This module adds words to which the model gives a low
probability, and glossary terms that could not be placed.
"""

import math
from collections.abc import Iterator, Sequence

from heed.serve.request import Doubt, SegmentAnswer
from heed.text.spans import BLANK_SIGN
from heed.translate.result import Doubt as JudgedDoubt
from heed.translate.result import Translation
from heed.translate.words import piece_spans

LOW_PROBABILITY = 0.1
"""A word with a lower probability is doubtful.

On the 1,000 sentences of Multi30k's test set (English to German, beam 5, a model of 1.6 million
parameters) these were 4.7 % of the words; 84 % of them were not in the reference translation, and
27 % of the others.
"""

_LOW_LOG_PROB = math.log(LOW_PROBABILITY)


def find_doubts(text: str, segments: Sequence[SegmentAnswer]) -> tuple[Doubt, ...]:
    """The doubts about the segments of a translation, in the order of its text.

    Args:
        text: the whole translation.
        segments: its segments.
    """
    doubts: list[Doubt] = []
    after = 0
    for index, segment in enumerate(segments):
        translation = segment.translation
        start = text.find(translation.text, after)
        for kind, sentence, place in _of_segment(segment):
            # If markup has split a translation, there is no single position.
            first, last = place if place is not None and start >= 0 else (None, None)
            doubts.append(
                Doubt(
                    kind=kind,
                    sentence=sentence,
                    segment=index,
                    start=None if first is None else start + first,
                    end=None if last is None else start + last,
                )
            )
        after = max(after, start + len(translation.text))
    return tuple(doubts)


def placed(target: str, judged: Translation, doubts: Sequence[JudgedDoubt]) -> list[Doubt]:
    """Doubts about a given translation, with their places in it.

    Args:
        target: the translation.
        judged: the result of `Translator.judged`, which may have normalized it.
        doubts: with their places in the judged text.
    """
    offset = target.find(judged.text)  # -1 if it was normalized
    return [
        Doubt(
            kind=doubt.kind,
            sentence=doubt.sentence,
            start=None if doubt.start is None or offset < 0 else offset + doubt.start,
            end=None if doubt.end is None or offset < 0 else offset + doubt.end,
        )
        for doubt in doubts
    ]


Found = tuple[str, str, tuple[int, int] | None]
"""A kind, its sentence, and a position in the translated text."""


def _of_segment(segment: SegmentAnswer) -> Iterator[Found]:
    translation = segment.translation
    whole = 0, len(translation.text)
    if translation.status == "split":
        sentence = "The sentence was too long for the model and was translated in parts."
        yield "split", sentence, whole
    loops = []
    for doubt in translation.doubts:
        place = None
        # A glossary term may have made the text shorter.
        if doubt.start is not None and doubt.end is not None and doubt.end <= whole[1]:
            place = doubt.start, doubt.end
        if doubt.kind == "loop" and place is not None:
            loops.append(place)
        yield doubt.kind, doubt.sentence, place
    yield from _improbable(segment, loops)


def _improbable(segment: SegmentAnswer, loops: Sequence[tuple[int, int]]) -> Iterator[Found]:
    """Words of a low probability, except in loops."""
    translation = segment.translation
    if len(translation.token_scores) < len(translation.tokens):
        return  # words inserted by a glossary have no probability
    low = _low_words(translation.tokens, translation.token_scores)
    spans = piece_spans(translation.tokens, translation.text) if low else []
    for first, last, log_prob in low:
        start, end = spans[first][0], spans[last - 1][1]
        if any(a <= start < b for a, b in loops):
            continue
        percent = 100 * math.exp(log_prob)
        shown = f"{percent:.0f} %" if percent >= 1 else "less than 1 %"
        sentence = f"The model gives this word a probability of {shown}."
        yield "low_probability", sentence, (start, end)


def _low_words(tokens: Sequence[str], log_probs: Sequence[float]) -> list[tuple[int, int, float]]:
    """Ranges of the tokens of each improbable word, with its log-probability. One loop, because
    every sentence of every response passes through it.
    """
    low = []
    start, log_prob = 0, 0.0
    for place, token in enumerate(tokens):
        if token[:1] == BLANK_SIGN:
            if log_prob < _LOW_LOG_PROB:
                low.append((start, place, log_prob))
            start, log_prob = place, 0.0
        log_prob += log_probs[place]
    return [*low, (start, len(tokens), log_prob)] if log_prob < _LOW_LOG_PROB else low
