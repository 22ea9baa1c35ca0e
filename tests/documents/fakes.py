"""Translations made by rules, with the alignment that a perfect model would have."""

from collections.abc import Callable, Iterable

from heed.documents.segment import Segment
from heed.translate.result import Translation
from heed.translate.words import word_spans


def changed(segment: Segment, change: Callable[[str], str]) -> Translation:
    """Each word changed by itself, at its place."""
    spans = word_spans(segment.text)
    words = [segment.text[start:end] for start, end in spans]
    text = list(segment.text)
    for start, end in reversed(spans):
        text[start:end] = change(segment.text[start:end])
    return Translation(
        text="".join(text),
        tokens=[change(word) for word in words],
        source_tokens=words,
        alignment=[[float(i == j) for j in range(len(words))] for i in range(len(words))],
    )


def reversed_words(segment: Segment) -> Translation:
    """The words in the opposite order, parted by blanks."""
    words = [segment.text[start:end] for start, end in word_spans(segment.text)]
    n = len(words)
    return Translation(
        text=" ".join(words[::-1]),
        tokens=words[::-1],
        source_tokens=words,
        alignment=[[float(i == n - 1 - j) for j in range(n)] for i in range(n)],
    )


def unchanged(segments: Iterable[Segment]) -> list[Translation]:
    return [changed(segment, str) for segment in segments]


def shouted(segments: Iterable[Segment]) -> list[Translation]:
    return [changed(segment, str.upper) for segment in segments]


def backwards(segments: Iterable[Segment]) -> list[Translation]:
    return [reversed_words(segment) for segment in segments]
