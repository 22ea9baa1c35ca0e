"""The translation of a part, assembled from those of its halves or inner texts."""

import re
from collections.abc import Iterator, Mapping, Sequence
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
    if found.status == "unwanted" or chunk.source is None or not inside:
        return found
    return _with_inner(found, chunk.source.spans, inside)


def _with_inner(
    translation: Translation, spans: Sequence[Kept], inside: Mapping[int, Sequence[Translation]]
) -> Translation:
    """A translation with the translations of the texts inside its spans.

    Their doubts are added without places. The texts of a span stay if the translated ones would
    break it.

    Args:
        translation: contains the spans.
        spans: of the source.
        inside: by the index of a span, one for each of its inner texts.
    """
    new: dict[str, str] = {}
    used: list[Translation] = []
    doubts: list[Doubt] = []
    for index, translated in inside.items():
        old = spans[index].text
        changed = with_texts(old, [each.text for each in translated])
        new.setdefault(old, old if changed is None else changed)
        if changed is None:
            doubts.append(_BROKEN)
            continue
        used += translated
        doubts += [replace(one, start=None, end=None) for each in translated for one in each.doubts]
    # One span may be a part of another, which then is not changed in the middle.
    wider = [span.text for span in spans if any(old in span.text for old in new)]
    new = {text: text for text in wider} | new
    return _changed(translation, _Change(new), used, doubts)


_BROKEN = Doubt(
    kind="untranslated",
    sentence="A translation would have broken the syntax of its message, so the source was kept.",
)


class _Change:
    """Replaces spans by others, each at once: the longest that begins at a place.

    Args:
        new: from the old texts to the new ones.
    """

    def __init__(self, new: Mapping[str, str]) -> None:
        self._new = new
        self._finds = re.compile("|".join(map(re.escape, sorted(new, key=len, reverse=True))))

    def text(self, text: str) -> str:
        """The text with the new spans."""
        return self._finds.sub(lambda match: self._new[match[0]], text)

    def doubt(self, doubt: Doubt, text: str) -> Doubt:
        """A doubt about the text with the new spans; a place that cuts an old one includes it."""
        if doubt.start is None or doubt.end is None:
            return doubt
        start, end = doubt.start, doubt.end
        for match in self._finds.finditer(text):
            if match.start() < start < match.end():
                start = match.start()
            if match.start() < end < match.end():
                end = match.end()
        return replace(doubt, start=len(self.text(text[:start])), end=len(self.text(text[:end])))


def _changed(
    translation: Translation,
    change: _Change,
    used: Sequence[Translation],
    doubts: Sequence[Doubt],
) -> Translation:
    """A translation and its alternatives with changed spans.

    Args:
        translation: the translation.
        change: of its spans.
        used: the translations of the texts inside them.
        doubts: further ones, about these.
    """
    every = (translation, *used)
    known = [each.confidence for each in every if each.confidence is not None]
    own = [change.doubt(doubt, translation.text) for doubt in translation.doubts]
    return replace(
        translation,
        text=change.text(translation.text),
        tokens=list(map(change.text, translation.tokens)),
        alternatives=tuple(
            # Nothing has judged an alternative as a whole.
            replace(_changed(other, change, used, doubts), confidence=other.confidence)
            for other in translation.alternatives
        ),
        status=max((each.status for each in every), key=lambda one: _BADNESS.get(one, 0)),
        # Equal texts have equal doubts.
        doubts=tuple(dict.fromkeys([*own, *doubts])),
        confidence=min(known, default=None),
        matches=tuple(match for each in every for match in each.matches),
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
