"""Options of a second search for doubtful translations, and the choice of the best answer.

`heed.translate.search` runs the searches.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from heed.decode.options import DecodeOptions
from heed.text.spans import BLANK_SIGN
from heed.text.vocab import Vocab
from heed.translate.parts import Chunk
from heed.translate.result import Doubt, Translation

HELPED = frozenset({"loop", "left_out", "max_length"})
"""Kinds that another search may put right."""

BEAM = 5
"""Least width of another search."""

NO_REPEAT = 3
"""No n-gram of this size stands twice in another search because of a loop."""

LONGER = 0.6
"""What another search because of something left out adds to the length penalty."""

MAX_PENALTY = 10.0
"""The largest that `DecodeOptions` takes."""

MOST_HYPOTHESES = 4
"""Answers of another search that are looked at."""

ALIKE = 0.1
"""Confidences that differ by less do not speak against another answer with fewer doubts.

A repetition is likely in itself, so it raises the confidence. Lines that still loop, with 0 and
with 0.1: 39 and 23 of 1,000 captions, 61 and 30 of 2,000 software strings, 112 and 25 of 600 lines
of MENYO; BLEU rises by 0.01, 0.02 and 0.10.
"""

LEAST_PART = 4
"""Fewest pieces of each part of a source that is cut in two."""

_CLAUSE_ENDS = (",", ";", ":", "–", "—", "，", "、", "；", "：", "。")


def needs_help(found: Translation) -> bool:
    """Whether another search may find a better translation."""
    return any(doubt.kind in HELPED for doubt in found.doubts)


def other_options(found: Translation, options: DecodeOptions) -> DecodeOptions:
    """Options of another search for a doubtful translation.

    Args:
        found: the first answer.
        options: of the first search.
    """
    is_loop = any(doubt.kind != "left_out" and doubt.kind in HELPED for doubt in found.doubts)
    return _other_options(options, is_loop=is_loop)


@lru_cache(maxsize=64)
def _other_options(options: DecodeOptions, *, is_loop: bool) -> DecodeOptions:
    """The same, cached for each kind of doubt: checking options is slower than judging a line."""
    beam_size = max(BEAM, options.beam_size)
    changed = replace(
        options, beam_size=beam_size, n_best=min(beam_size, max(MOST_HYPOTHESES, options.n_best))
    )
    if is_loop:
        size = options.no_repeat_ngram_size
        # A loop of shorter n-grams got past the limit of the first search.
        shorter = max(1, min(size - 1, NO_REPEAT)) if size else NO_REPEAT
        return replace(changed, no_repeat_ngram_size=shorter)
    if options.length_formula == "none":  # whatever the penalty is
        return replace(changed, length_formula="gnmt", length_penalty=LONGER)
    longer = min(MAX_PENALTY, options.length_penalty + LONGER)
    return replace(changed, length_penalty=longer)


def halves(chunk: Chunk, vocab: Vocab) -> list[Chunk]:
    """The two halves of a part, cut after the mark of a clause; empty if there is no such place.

    Args:
        chunk: the part; with protected spans, a prefix or a remembered translation it is not cut.
        vocab: its pieces.
    """
    ids = chunk.src_ids[:-1]
    first = next((n for n, id in enumerate(ids) if not vocab.is_control(id)), len(ids))
    pieces = vocab.pieces(ids)
    is_whole = chunk.prefix or chunk.source is not None or chunk.is_remembered
    if is_whole or any(map(vocab.is_control, ids[first:])):
        return []
    places = [
        place
        for place in range(first + LEAST_PART, len(ids) - LEAST_PART + 1)
        if pieces[place - 1].removeprefix(BLANK_SIGN) in _CLAUSE_ENDS
    ]
    if not places:
        return []
    middle = (first + len(ids)) / 2
    cut = min(places, key=lambda place: abs(place - middle))
    end = chunk.src_ids[-1]
    return [
        replace(chunk, src_ids=[*ids[:cut], end], guide=None),
        replace(chunk, src_ids=[*ids[:first], *ids[cut:], end], guide=None),
    ]


def halves_of(
    chunks: Sequence[Chunk], found: Sequence[Translation], vocab: Vocab
) -> dict[int, list[Chunk]]:
    """The halves of each part whose translation needs help, if it can be cut; by its index.

    Args:
        chunks: the parts.
        found: their translations.
        vocab: pieces of the sources.
    """
    return {
        place: two
        for place, each in enumerate(found)
        if needs_help(each) and (two := halves(chunks[place], vocab))
    }


def fits(joined: Translation, chunk: Chunk, options: DecodeOptions) -> bool:
    """Whether the joined translation of two halves is as short as one of the whole must be.

    Args:
        joined: the translation.
        chunk: the whole part.
        options: of the first search, with its limits of length.
    """
    most = min(options.max_length, options.source_limit(len(chunk.src_ids)))
    return len(joined.token_scores) <= most


def better(
    first: Translation,
    others: Sequence[Translation],
    how: str,
    origin: Translation | None = None,
) -> Translation:
    """The first answer, or another with fewer doubts, which then has a remark about that.

    An answer with far less confidence is not taken, however few its doubts.

    Args:
        first: the answer of the first search.
        others: answers of other searches, the best of a search before the rest; all judged.
        how: the other search, in words.
        origin: the answer of the first search if `first` is already that of another.
    """
    most = _weight(first)
    best = min(others, key=_weight, default=first)
    is_unlikely = (best.confidence or 0.0) + ALIKE < (first.confidence or 0.0)
    if _weight(best) >= most or is_unlikely:
        return first
    kinds = ", ".join(dict.fromkeys(d.kind for d in (origin or first).doubts if d.kind in HELPED))
    sentence = f"The first answer was doubtful ({kinds}); this one is from {how}."
    repaired = Doubt(kind="repaired", sentence=sentence)
    return replace(
        best,
        doubts=(*best.doubts, repaired),
        alternatives=first.alternatives,
        status="ok" if best.status == "split" else best.status,
    )


def is_beyond_doubt(found: Translation) -> bool:
    """Whether no other answer can be better."""
    return _weight(found) == 0


def _weight(found: Translation) -> int:
    """The number of doubts, empty answers counted as the worst."""
    if not found.text:
        return 99
    return len({doubt.kind for doubt in found.doubts if doubt.kind not in ("split", "repaired")})
