"""The translation of a part, assembled from those of its halves or inner texts."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from heed.text.protection.icu import with_texts
from heed.translate.parts import Chunk
from heed.translate.protect import as_source
from heed.translate.result import Doubt, Status, Translation, join_parts
from heed.translate.source import Kept

UNWANTED = Translation(text="", status="unwanted")

_BADNESS: dict[Status, int] = {"split": 1, "max_length": 2}
"""Of what may be wrong with a text inside a message."""


def join_halves(halves: list[Translation]) -> Translation:
    """The translation of a part from those of its two halves; cut off if one of them is."""
    joined = replace(join_parts(halves), alternatives=())
    if joined.status == "split" and any(half.status == "max_length" for half in halves):
        return replace(joined, status="max_length")
    return joined


def filled(chunk: Chunk, done: Iterator[Translation]) -> Translation:
    """The translation of a part, with those of the texts inside its spans and their origin.

    Args:
        chunk: the part.
        done: translations in the order of `Chunk.with_inner`.
    """
    return _with_remark(chunk, _filled(chunk, done))


def _filled(chunk: Chunk, done: Iterator[Translation]) -> Translation:
    found = _with_match(chunk, next(done))
    inside: dict[int, list[Translation]] = {}
    for inner in chunk.inner:
        whole = join_parts([_filled(part, done) for part in inner.parts])
        if whole.status == "unwanted":
            found = whole
        inside.setdefault(inner.span, []).append(whole)
    if found.status == "unwanted" or chunk.source is None:
        return found
    for index, translated in inside.items():
        found = _with_inner(found, chunk.source.spans[index], translated)
    return found


def _with_inner(
    translation: Translation, span: Kept, translated: Sequence[Translation]
) -> Translation:
    """A translation with the translations of the texts inside one of its spans.

    Their doubts are added without places. The texts of the source stay if the translated ones would
    break the span.

    Args:
        translation: a translation that contains the span.
        span: of the source.
        translated: one for each inner text of the span.
    """
    changed = with_texts(span.text, [each.text for each in translated])
    if changed is None:
        sentence = (
            "A translation would have broken the syntax of its message, so the source was kept."
        )
        doubt = Doubt(kind="untranslated", sentence=sentence)
        return replace(translation, doubts=(*translation.doubts, doubt))
    every = (translation, *translated)
    known = [each.confidence for each in every if each.confidence is not None]
    own = [_moved(doubt, translation.text, span.text, changed) for doubt in translation.doubts]
    inner = [replace(doubt, start=None, end=None) for each in translated for doubt in each.doubts]
    return replace(
        translation,
        text=translation.text.replace(span.text, changed),
        tokens=[token.replace(span.text, changed) for token in translation.tokens],
        alternatives=tuple(
            # Nothing has judged an alternative as a whole.
            replace(_with_inner(other, span, translated), confidence=other.confidence)
            for other in translation.alternatives
        ),
        status=max((each.status for each in every), key=lambda one: _BADNESS.get(one, 0)),
        # Equal texts have equal doubts.
        doubts=tuple(dict.fromkeys([*own, *inner])),
        confidence=min(known, default=None),
        matches=tuple(match for each in every for match in each.matches),
    )


def _moved(doubt: Doubt, text: str, old: str, new: str) -> Doubt:
    """A doubt about a text in which `old` becomes `new`; a place that cuts `old` includes it."""
    if doubt.start is None or doubt.end is None:
        return doubt
    start, end = doubt.start, doubt.end
    # The last `old` that begins before a place may reach beyond it.
    first, last = (text.rfind(old, 0, place + len(old) - 1) for place in (start, end))
    if first >= 0 and start < first + len(old):
        start = first
    if last >= 0 and end < last + len(old):
        end = last + len(old)
    return replace(
        doubt,
        start=len(text[:start].replace(old, new)),
        end=len(text[:end].replace(old, new)),
    )


def with_origin(chunk: Chunk, found: Translation) -> Translation:
    """The translation of a part, with the pair that guided it and a remark about corrections."""
    return _with_remark(chunk, _with_match(chunk, found))


def _with_match(chunk: Chunk, found: Translation) -> Translation:
    """The translation of a part, with the pair that guided its search."""
    if chunk.match is None or found.status == "unwanted":
        return found
    matches = (chunk.match,)
    # A second search has no guide, but the alternatives are those of the first.
    is_guided = all(doubt.kind != "repaired" for doubt in found.doubts)
    others = tuple(replace(other, matches=matches) for other in found.alternatives)
    return replace(found, matches=matches if is_guided else (), alternatives=others)


def _with_remark(chunk: Chunk, found: Translation) -> Translation:
    """The translation of a part, with a remark about corrected words."""
    corrected = [each for part in chunk.with_inner() for each in part.corrected]
    if not corrected or found.status == "unwanted":
        return found
    words = ", ".join(f"{word} as {meant}" for word, meant in dict(corrected).items())
    doubt = Doubt(kind="read_as", sentence=f"Misspelled words were read as others: {words}")
    return replace(found, doubts=(*found.doubts, doubt))


def copied(chunk: Chunk, *, alignment: bool) -> Translation:
    """A part that is its own translation."""
    assert chunk.source is not None, "only protected spans are copied"
    text = as_source(chunk.source)
    return Translation(
        text=text,
        tokens=[text],
        token_scores=[0.0],
        source_tokens=[text],
        alignment=[[1.0]] if alignment else None,
    )
