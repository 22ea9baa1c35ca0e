"""One batch searched, or one errand done: every outcome reaches the requests, none the thread."""

import time
from collections.abc import Callable
from dataclasses import replace

from heed.serve.work.failures import refusal_of
from heed.serve.work.job import Errand, Job, Part
from heed.serve.work.queue import Batch
from heed.serve.work.results import bring_all
from heed.translate.result import Translation

Note = Callable[[Batch, int, float], None]
"""Is told a batch, the tokens written, alternatives not counted, and the seconds it took."""


def search(batch: Batch, note: Note) -> None:
    """Translate the parts of a batch and bring them to their jobs.

    If that fails, the jobs are searched one by one, so that an error is only its own request's.

    Args:
        batch: what to translate.
        note: called when the translations are there, and no client has one yet.
    """
    begun = time.monotonic()
    jobs = list({id(part.job): part.job for part in batch.parts}.values())
    try:
        found = _translated(batch)
        of_job: dict[Job, list[tuple[Part, Translation]]] = {}
        for pair in found:
            of_job.setdefault(pair[0].job, []).append(pair)
        n_tokens = sum(len(translation.tokens) for _, translation in found)
        note(batch, n_tokens, time.monotonic() - begun)
        bring_all([(job.results, job.take(pairs)) for job, pairs in of_job.items()])
    except Exception as error:
        if len(jobs) == 1:
            jobs[0].results.fail(refusal_of(error))
            return
        for job in jobs:
            search(_of_one(batch, job), note)


def do(errand: Errand) -> None:
    """Call the function of an errand and bring what it returns."""
    try:
        found = errand.function(lambda: errand.results.is_wanted)
    except Exception as error:
        errand.results.fail(refusal_of(error))
    else:
        errand.results.bring({0: found})


def _translated(batch: Batch) -> list[tuple[Part, Translation]]:
    """The parts that were wanted to the end, and their translations."""
    call, parts = batch.call, batch.parts
    found = call.translator.searcher.search(
        [part.chunk for part in parts],
        call.options,
        alignment=call.alignment,
        is_wanted=lambda place: parts[place].job.results.is_wanted,
    )
    pairs = zip(parts, found, strict=True)
    return [(part, one) for part, one in pairs if one.status != "unwanted"]


def _of_one(batch: Batch, job: Job) -> Batch:
    return replace(batch, parts=[part for part in batch.parts if part.job is job])
