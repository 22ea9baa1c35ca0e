"""Entry point of decoding: sources and options in, hypotheses out.

It sets up the task and calls greedy search, sampling or beam search.
"""

from collections.abc import Sequence

import numpy as np

from heed.decode.beam import beam_search
from heed.decode.by_model import beam_search_by_model
from heed.decode.constraints import Constraints
from heed.decode.greedy import greedy_search
from heed.decode.guided import Guide, GuidedModel
from heed.decode.options import DecodeOptions
from heed.decode.phrases import Phrases
from heed.decode.sampling import Sampler, draw_table
from heed.decode.slots import Slot
from heed.decode.state import Hypothesis, IsWanted, Observer, Task
from heed.errors import DataError
from heed.model.interface import Decodable, Ids


def decode(
    model: Decodable,
    src: Ids,
    options: DecodeOptions,
    *,
    bos_id: int,
    eos_id: int,
    pad_id: int,
    forbidden: Sequence[int] = (),
    prefixes: Sequence[Sequence[int]] | None = None,
    slots: Sequence[Sequence[Slot]] = (),
    score_prefixes: bool = True,
    keys: Sequence[int] | None = None,
    phrases: Sequence[Phrases | None] | None = None,
    guides: Sequence[Guide | None] = (),
    observer: Observer | None = None,
    is_wanted: IsWanted | None = None,
) -> list[list[Hypothesis]]:
    """Translate every source; the result of a source never depends on the others.

    Args:
        model: anything that can be decoded, in eval mode.
        src: source ids, padded with `pad_id`, `(n_sources, src_len)`.
        options: of the search.
        bos_id: the target token before the first; `eos_id` ends a hypothesis.
        forbidden: target ids never produced; `eos_id` is allowed even if listed.
        prefixes: ids each hypothesis must begin with, one list a source.
        slots: ids that a hypothesis must contain once, unless cut, one list a source; empty = none.
        score_prefixes: False = parts of prefixes that are read at once have log-probs of 0.
        keys: with `options.seed`, decides a sentence's draws; None = its index in the batch.
        phrases: required and forbidden phrases of each source; not for sampling.
        guides: a similar translation or None for each source; empty = none.
        observer: gets a record of every step.
        is_wanted: called after every step; a source that is no longer wanted leaves the batch.

    Returns:
        For each source 1 to `n_best` hypotheses, best first; none if it is no longer wanted.

    Raises:
        DataError: a prefix leaves no room below `max_length` or the length limit of the model.
        HeedError: the model's output is not a number.
    """
    if not len(src):
        return []
    keys = range(len(src)) if keys is None else keys
    n_samples, src, prefixes, slots, guides = _repeated(src, prefixes, slots, guides, options)
    task = Task(
        options=options,
        bos_id=bos_id,
        eos_id=eos_id,
        limits=_limits(model, (src != pad_id).sum(axis=1), options, prefixes, phrases, guides),
        constraints=Constraints.of(options, eos_id, forbidden, prefixes, slots),
        pad_id=None if score_prefixes else pad_id,
        phrases=phrases,
        guides=guides,
        n_samples=n_samples,
        observer=observer,
        is_wanted=_of_samples(is_wanted, n_samples),
    )
    return _search(model, src, task, keys)


def _search(model: Decodable, src: Ids, task: Task, keys: Sequence[int]) -> list[list[Hypothesis]]:
    assert task.n_samples * len(keys) == len(src), "one key a source"
    if task.guides:
        model = GuidedModel(model, task.guides)
    if task.options.sample:
        return _sample(model, src, task, keys)
    if (ended := beam_search_by_model(model, src, task)) is not None:
        return ended
    if task.options.beam_size == 1 and task.phrases is None:
        return [[answer] if answer else [] for answer in greedy_search(model, src, task)]
    return beam_search(model, src, task)


def _sample(model: Decodable, src: Ids, task: Task, keys: Sequence[int]) -> list[list[Hypothesis]]:
    """Draw `n_samples` hypotheses for each key; every one has its own random numbers."""
    n = task.n_samples
    draws = draw_table(
        [(key, sample) for key in keys for sample in range(n)],
        seed=task.options.seed,
        length=int(task.limits.max()),
    )
    sampler = Sampler(options=task.options, draws=draws, is_observed=task.observer is not None)
    found = greedy_search(model, src, task, sampler)
    groups = (found[start : start + n] for start in range(0, len(found), n))
    return [_ranked(group) for group in groups]


def _repeated(
    src: Ids,
    prefixes: Sequence[Sequence[int]] | None,
    slots: Sequence[Sequence[Slot]],
    guides: Sequence[Guide | None],
    options: DecodeOptions,
) -> tuple[int, Ids, Sequence[Sequence[int]], Sequence[Sequence[Slot]], Sequence[Guide | None]]:
    """The number of samples, and sources, prefixes, slots and guides repeated for each."""
    n = options.n_best if options.sample else 1
    prefixes = [[]] * len(src) if prefixes is None else prefixes
    assert len(prefixes) == len(src), "one prefix a source"
    guides = guides if any(guides) else []
    if n == 1:
        return n, src, prefixes, slots, guides
    prefixes = [each for each in prefixes for _ in range(n)]
    slots = [each for each in slots for _ in range(n)]
    return n, src.repeat(n, axis=0), prefixes, slots, [each for each in guides for _ in range(n)]


def _ranked(group: Sequence[Hypothesis | None]) -> list[Hypothesis]:
    """The samples of a source, complete ones first, then by score.

    If some are missing, the source is no longer wanted, and the result is empty.
    """
    found = [answer for answer in group if answer is not None]
    if len(found) < len(group):
        return []
    return sorted(found, key=lambda answer: (answer.status != "eos", -answer.score))


def _of_samples(is_wanted: IsWanted | None, n_samples: int) -> IsWanted | None:
    """`is_wanted` for sources that are repeated, once for each sample."""
    if is_wanted is None or n_samples == 1:
        return is_wanted
    return lambda sources: is_wanted(sources // n_samples)


def _limits(
    model: Decodable,
    src_lengths: Ids,
    options: DecodeOptions,
    prefixes: Sequence[Sequence[int]],
    phrases: Sequence[Phrases | None] | None,
    guides: Sequence[Guide | None],
) -> Ids:
    """Set the most tokens each source may get, from what is given for it and the model only.

    Args:
        model: its length limit is used.
        src_lengths: of the sources, in tokens, `(n_sources,)`.
        options: `max_length`, `max_length_factor` and `max_length_offset` are used.
        prefixes: their lengths are added to the limit by source length.
        phrases: likewise.
        guides: the limits have room for them.

    Returns:
        Limits from 1, `(n_sources,)`.
    """
    most = options.max_length
    if model.length_limit is not None:  # less `<bos>`
        most = max(1, min(most, model.length_limit - 1))
    for place, prefix in enumerate(prefixes):
        if len(prefix) >= most:
            limit, remedy = "decoding.max_length", " or raise max_length"
            if most < options.max_length:
                limit, remedy = "the longest text that the model can write", ""
            raise DataError(
                f"The forced prefix of sentence {place + 1} must be shorter than {limit} ({most}), "
                f"but has {len(prefix)} tokens. Shorten it{remedy}."
            )
    own = np.array([options.source_limit(length) for length in src_lengths.tolist()])
    limits: Ids = own + [len(prefix) for prefix in prefixes]
    if phrases is not None:
        limits += [each.n_ids if each else 0 for each in phrases]
    if guides:
        limits = np.maximum(limits, [len(guide.ids) if guide else 0 for guide in guides])
    return np.minimum(limits, most)
