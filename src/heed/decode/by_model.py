"""Beam search that the model runs itself, if it can and nothing looks into the steps.

The compiled engine does: between its steps, Python takes as long as the steps of a small model.
The results are those of `beam.py` and `greedy.py`.
"""

from functools import lru_cache

import numpy as np

from heed.decode.length_penalty import LENGTH_FORMULAS
from heed.decode.state import Hypothesis, Sums, Task, check_alive, make_hypothesis
from heed.model.interface import BeamPlan, BeamSearcher, Decodable, Ids

_UNIT = 64


def beam_search_by_model(model: Decodable, src: Ids, task: Task) -> list[list[Hypothesis]] | None:
    """Search as `beam_search` does, if the model runs the steps.

    Args:
        model: anything that can be decoded.
        src: padded source ids, `(n_sources, src_len)`.
        task: options, limits and constraints.

    Returns:
        The hypotheses of each source; None if the model does not run this search itself.

    Raises:
        HeedError: the model's output is not a number.
    """
    if not _is_plain(task) or not isinstance(model, BeamSearcher):
        return None
    beam = model.begin_beam(src, _plan(task))
    if beam is None:
        return None
    while beam.step():
        if task.is_wanted is not None:
            is_dropped = ~task.is_wanted(beam.sources)
            if is_dropped.any() and not beam.drop(is_dropped):
                break
    if beam.stuck is not None:
        source, best = beam.stuck
        check_alive(np.array([best]), np.array([source]))
    return [
        [
            make_hypothesis(ids, log_probs, score=score, has_ended=has_ended)
            for ids, log_probs, score, has_ended in of_source
        ]
        for of_source in beam.found()
    ]


def _is_plain(task: Task) -> bool:
    """Whether nothing reads the steps, and each row depends on its own ids only."""
    is_seen = task.observer is not None
    has_others = task.phrases is not None or task.guides or task.constraints.repetition_penalty != 1
    # Greedy search reads prefixes at once.
    is_begun = task.options.beam_size == 1 and task.constraints.prefixes.shape[1] > 0
    return not (is_seen or has_others or is_begun)


def _plan(task: Task) -> BeamPlan:
    options, constraints = task.options, task.constraints
    formula = LENGTH_FORMULAS[options.length_formula]
    return BeamPlan(
        n_best=options.n_best,
        beam_size=options.beam_size,
        # Greedy search ends with its first hypothesis, by any rule.
        early_stopping="first" if options.beam_size == 1 else options.early_stopping,
        bos_id=task.bos_id,
        eos_id=task.eos_id,
        forbidden=constraints.forbidden.forbidden,
        limits=task.limits,
        divisors=formula(task.limits, options.length_penalty),
        penalties=_penalties(options.length_formula, options.length_penalty, _room(task.limits)),
        min_length=constraints.min_length,
        no_repeat_ngram_size=constraints.no_repeat_ngram_size,
        prefixes=constraints.prefixes,
        slots=None if constraints.slots is None else vars(constraints.slots),
        missing_cost=constraints.missing_cost,
        required_ids=constraints.required_ids(),
    )


def _room(limits: Ids) -> int:
    """Above every limit, `(n_sources,)`; seldom another number, so that few tables are made."""
    return (int(limits.max()) // _UNIT + 1) * _UNIT


@lru_cache(maxsize=64)
def _penalties(formula: str, strength: float, n: int) -> Sums:
    """The penalties of 0, 1, … tokens, `(n,)`, to the bit those that `beam_search` computes."""
    table = np.ones(n)
    table[1:] = [LENGTH_FORMULAS[formula](length, strength) for length in range(1, n)]
    table.flags.writeable = False
    return table
