"""Find the smallest shortlist with which at most a given share of translations changes.

`lexicon.py` learns the lists; `engine/shortlist.py` applies them.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from heed.engine.runtime import Engine
from heed.engine.shortlist import MAX_REST, Shortlist
from heed.model.interface import Floats, Ids
from heed.translate.lines import Line
from heed.translate.translator import Translator
from heed.translate.whole import read_pair

MOST_OF_VOCABULARY = 0.75
"""A list with a larger share of the target ids saves too little to be worth a file."""

_LINES_AT_ONCE = 64
_MEASURED_LINES = 64

Sample = list[tuple[Ids, Floats]]
"""Source ids, and log-probs of all tokens at each position of the translation."""


def try_shortlists(
    translator: Translator,
    shortlists: Iterable[Shortlist],
    lines: Sequence[Line],
    max_changed: float,
) -> Iterator[tuple[Shortlist, bool]]:
    """Translate with one shortlist after another until one is accepted.

    Args:
        translator: with the engine, and no shortlist.
        shortlists: shortlists, the smallest first.
        lines: development sentences, whose translations are compared.
        max_changed: the share of translations that may differ, 0 to 1.

    Yields:
        Each shortlist with its measurements, and whether it is accepted; only the last one can be.
        A list is abandoned as soon as it has certainly changed too many translations.
    """
    before = [found.text for found in translator.translate(lines)]
    sample = [
        _measured(translator, line, text)
        for line, text in zip(lines[:_MEASURED_LINES], before, strict=False)
    ]
    for draft in shortlists:
        if len(draft.common_ids) > MOST_OF_VOCABULARY * translator.tgt_vocab.size:
            return
        shortlist = replace(draft, rest_logit=rest_logit_of(draft, sample))
        n_changed, n_done = 0, 0
        for now, text in zip(_texts(translator, shortlist, lines), before, strict=False):
            n_changed, n_done = n_changed + (now != text), n_done + 1
            if n_changed > max_changed * len(lines):
                break
        is_kept = n_changed <= max_changed * len(lines)
        yield replace(shortlist, changed=(n_changed, n_done)), is_kept
        if is_kept:
            return


def rest_logit_of(shortlist: Shortlist, sample: Sample) -> float:
    """The logit of the rest column that matches, on average, the probability of the ids left out.

    Args:
        shortlist: a shortlist without a rest logit.
        sample: log-probs over the whole vocabulary.
    """
    left_out = stand_in = 0.0
    for src, log_probs in sample:
        is_out = np.ones(log_probs.shape[1], bool)
        is_out[shortlist.common_ids] = False
        others = log_probs[:, is_out]
        stand_in += np.exp(others.mean(axis=1)).sum() * others.shape[1] if others.size else 0.0
        own, _ = shortlist.ids_of(src[None], np.ones((1, len(src)), bool))
        is_out[own] = False
        left_out += np.exp(log_probs[:, is_out]).sum()
    if not stand_in or not left_out:
        return 0.0
    return float(np.clip(math.log(left_out / stand_in), -MAX_REST, MAX_REST))


def _measured(translator: Translator, line: Line, text: str) -> tuple[Ids, Floats]:
    """One line of a `Sample`."""
    reader, vocab = translator.reader, translator.tgt_vocab
    pair = read_pair(reader, line.text, text, reader.tag(line.target_lang))
    src, tgt_in = np.array(pair.src_ids), np.array([vocab.bos_id, *pair.prefix])
    return src, translator.model.teacher_forced(src[None], tgt_in[None]).all_log_probs()


def _texts(translator: Translator, shortlist: Shortlist, lines: Sequence[Line]) -> Iterator[str]:
    """Translate with a shortlist."""
    assert isinstance(translator.model, Engine)
    shortened = copy(translator)
    shortened.model = translator.model.with_shortlist(shortlist)
    found = shortened.translate_stream(lines, buffer_lines=_LINES_AT_ONCE)
    return (one.text for one in found)
