"""Search one batch, or run one errand; every error goes to its requests, none ends the thread."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from heed.serve.work.failures import refusal_of
from heed.serve.work.interludes import Interludes
from heed.serve.work.job import Call, Errand, Part, bring_all, refuse_all
from heed.serve.work.queue import Batch
from heed.translate.result import Translation
from heed.translate.search import rows_of

Note = Callable[[Batch, list[Part], int, float], None]
"""Called with a batch, its parts that need a second search (with their first translations), the
target tokens of the others without alternatives, and the seconds it took."""


def search(batch: Batch, note: Note, between: Interludes) -> None:
    """Translate the parts of a batch and deliver the translations to their jobs.

    If that fails, each job is searched separately, so that only the request that causes an error
    gets it. A segment that several requests wait for is searched separately, too.

    Args:
        batch: the parts to translate.
        note: called when the translations are complete, before any client has one.
        between: gives way to short requests between two steps.
    """
    begun = time.monotonic() - between.seconds  # that time is of other batches
    try:
        again: list[Part] = []
        found: list[tuple[Part, Translation]] = []
        for part, one in _translated(batch, between):
            if _is_open(batch, part, one):
                again.append(replace(part, first=one))
            else:
                found.append((part, one))
        n_tokens = sum(len(translation.tokens) for _, translation in found)
        seconds = time.monotonic() - between.seconds - begun
        # Before parts are queued for a second search: after an error here, all are searched again.
        whole = [(part.segment, part.take(translation)) for part, translation in found]
        note(batch, again, n_tokens, seconds)
        bring_all([(segment, one) for segment, one in whole if one is not None])
    except Exception as error:
        pieces = _pieces(batch)
        if len(pieces) == 1:
            refuse_all({part.segment for part in batch.parts}, refusal_of(error))
            return
        for piece in pieces:
            search(piece, note, between)


def _pieces(batch: Batch) -> list[Batch]:
    """The groups to search separately after an error: each job, and each shared segment."""
    groups: dict[object, list[Part]] = {}
    for part in batch.parts:
        groups.setdefault(part.segment if part.segment.is_shared else part.job, []).append(part)
    return [replace(batch, parts=parts) for parts in groups.values()]


def do(errand: Errand) -> None:
    """Call the function of an errand and deliver its result."""
    try:
        found = errand.function(lambda: errand.results.is_wanted)
    except Exception as error:
        errand.results.fail(refusal_of(error))
    else:
        errand.results.bring({0: found})


def _is_open(batch: Batch, part: Part, found: Translation) -> bool:
    """Whether a part needs a second search."""
    if batch.is_again or part.chunk.inner:
        return False
    return batch.call.translator.searcher.is_open(found, batch.call.options)


def _translated(batch: Batch, between: Interludes) -> list[tuple[Part, Translation]]:
    """The parts that were wanted until the end, with translations that may need a second search."""
    call, searcher = batch.call, batch.call.translator.searcher
    found_by = partial(_found, call, between)
    if batch.is_again:
        firsts = [part.first for part in batch.parts if part.first is not None]
        return found_by(batch.parts, partial(searcher.search_again, found=firsts))
    nested = [part for part in batch.parts if part.chunk.inner]
    plain = [part for part in batch.parts if not part.chunk.inner]
    return [
        *found_by(plain, searcher.search_once),
        # Texts inside spans may need second searches of their own, which are done at once.
        *found_by(nested, searcher.search),
    ]


def _found(
    call: Call,
    between: Interludes,
    parts: Sequence[Part],
    search: Callable[..., list[Translation]],
) -> list[tuple[Part, Translation]]:
    """The translations that a search finds for parts that were wanted until the end."""
    if not parts:
        return []
    n_rows = rows_of(call.options)

    def is_wanted(place: int) -> bool:
        between.step(n_rows)
        return parts[place].segment.is_wanted

    found = search(
        [part.chunk for part in parts],
        options=call.options,
        alignment=call.alignment,
        is_wanted=is_wanted,
    )
    pairs = zip(parts, found, strict=True)
    return [(part, one) for part, one in pairs if one.status != "unwanted"]
