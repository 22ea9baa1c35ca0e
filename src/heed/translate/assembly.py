"""The translation of a part, assembled from those of its halves or inner texts."""

from collections.abc import Iterator
from dataclasses import replace

from heed.translate.parts import Chunk
from heed.translate.protect import as_source, with_inner
from heed.translate.result import Doubt, Translation, join_parts

UNWANTED = Translation(text="", status="unwanted")


def join_halves(halves: list[Translation]) -> Translation:
    """The translation of a part from those of its two halves."""
    return replace(join_parts(halves), alternatives=())


def filled(chunk: Chunk, done: Iterator[Translation]) -> Translation:
    """The translation of a part, with those of the texts inside its spans.

    Args:
        chunk: the part.
        done: translations in the order of `Chunk.with_inner`.
    """
    found = next(done)
    texts: dict[int, list[str]] = {}
    for inner in chunk.inner:
        whole = join_parts([filled(part, done) for part in inner.parts])
        if whole.status == "unwanted":
            found = whole
        texts.setdefault(inner.span, []).append(whole.text)
    if found.status == "unwanted" or chunk.source is None:
        return found
    for index, translated in texts.items():
        found = with_inner(found, chunk.source.spans[index], translated)
    return found


def with_corrections(chunk: Chunk, found: Translation) -> Translation:
    """The translation of a part, with a remark about words that were corrected."""
    corrected = [each for part in chunk.with_inner() for each in part.corrected]
    if not corrected or found.status == "unwanted":
        return found
    words = ", ".join(f"{word} as {meant}" for word, meant in dict(corrected).items())
    doubt = Doubt(kind="read_as", sentence=f"Misspelled words were read as others: {words}")
    return replace(found, doubts=(*found.doubts, doubt))


def copied(chunk: Chunk) -> Translation:
    """A part that is its own translation."""
    assert chunk.source is not None, "only protected spans are copied"
    text = as_source(chunk.source)
    return Translation(text=text, tokens=[text], token_scores=[0.0], source_tokens=[text])
