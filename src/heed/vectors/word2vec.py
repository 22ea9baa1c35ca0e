"""Word2vec: skip-gram and CBOW with negative sampling, over a whole text.

The training steps are in `native.py` (compiled) and `plain.py` (NumPy); both give the same bits.

Source: Mikolov et al. 2013a, "Efficient Estimation of Word Representations in Vector Space";
Mikolov et al. 2013b, sections 2.2 and 2.3.
"""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from heed.data.progress import Report, phase, silent
from heed.machine.seeds import derive_seed, derived_random
from heed.vectors import native, plain
from heed.vectors.config import VectorsConfig
from heed.vectors.corpus import MAX_LINE_WORDS, Corpus
from heed.vectors.table import Floats

LOWEST_RATE = 1e-4
"""The learning rate at the end, unless that of the beginning is lower."""

POWER = 0.75
"""Negative words are drawn in proportion to their counts to this power."""

JOBS_AT_ONCE = 4
"""Jobs of each thread between two checks for signals and progress reports."""

_ALWAYS = 2**32 - 1
_LANES = 16


def learn_word2vec(corpus: Corpus, config: VectorsConfig, report: Report = silent) -> Floats:
    """Learn a vector for each word, `(n_words, size)`.

    Args:
        corpus: the words as ids, and their counts.
        config: `kind` is `skipgram` or `cbow`.
        report: receives progress events.
    """
    learner = make_learner(corpus.counts, config)
    learn = native.learn_lines if native.is_compiled() else plain.learn_lines
    jobs = list(_jobs(corpus.ends))
    n_total = max(1, config.epochs * len(corpus.ids))

    lowest = min(LOWEST_RATE, config.learning_rate)

    def run(epoch: int, number: int) -> None:
        first, last, start, end = jobs[number]
        share = (epoch * len(corpus.ids) + start) / n_total
        rate = config.learning_rate - (config.learning_rate - lowest) * share
        state = derive_seed(config.seed, config.kind, epoch, number) % (1 << 48)
        ends = corpus.ends[first:last] - start
        learn(learner, corpus.ids[start:end], ends, max(rate, lowest), state)

    all_jobs = list(itertools.product(range(config.epochs), range(len(jobs))))
    with ThreadPoolExecutor(config.threads) as pool:
        for at in range(0, len(all_jobs), JOBS_AT_ONCE * config.threads):
            some = all_jobs[at : at + JOBS_AT_ONCE * config.threads]
            if config.threads == 1:
                for job in some:
                    run(*job)
            else:
                list(pool.map(lambda job: run(*job), some))
            epoch, number = some[-1]
            done = epoch * len(corpus.ids) + jobs[number][3]
            phase(report, "learning", done=done, of=n_total, unit="words")
    return np.ascontiguousarray(learner.inputs[:, : config.size])


def make_learner(counts: NDArray[np.int64], config: VectorsConfig) -> plain.Learner:
    """Vectors before the first step (small random inputs, outputs 0), and the tables for draws.

    Args:
        counts: the count of each word, the most frequent first, `(n_words,)`.
        config: sizes, `sample`, and the seed.
    """
    width = -(-config.size // _LANES) * _LANES
    random = derived_random(config.seed, "vectors")
    inputs = np.zeros((len(counts), width), np.float32)
    first = random.random((len(counts), config.size), np.float32)
    inputs[:, : config.size] = (2 * first - 1) / np.float32(config.size)
    chances, others = alias_table(counts.astype(np.float64) ** POWER)
    return plain.Learner(
        inputs=inputs,
        outputs=np.zeros_like(inputs),
        keep=kept_draws(counts, config.sample),
        chances=chances,
        others=others,
        size=config.size,
        window=config.window,
        negative=config.negative,
        is_cbow=config.kind == "cbow",
    )


def kept_draws(counts: NDArray[np.int64], sample: float) -> NDArray[np.uint32]:
    """The largest draw of 32 bits for which a word stays in its line, `(n_words,)`.

    A word with share z of the text stays with probability √(t/z) + t/z, where t = `sample`.

    Source: word2vec.c, and gensim; section 2.3 of Mikolov et al. 2013b has √(t/z) alone.
    """
    if not sample:
        return np.full(len(counts), _ALWAYS, np.uint32)
    relative = sample * counts.sum() / counts
    likely = np.minimum(np.sqrt(relative) + relative, 1.0)
    draws: NDArray[np.uint32] = np.rint(likely * _ALWAYS).astype(np.uint32)
    return draws


def alias_table(
    weights: NDArray[np.float64],
) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    """Alias tables to draw word i with probability weights[i] / Σ weights: a place, then a word.

    Returns:
        The largest second draw for which place i means word i, and the word that it means
        otherwise, both `(n_words,)`.

    Source: Walker 1977; Vose 1991.
    """
    n = len(weights)
    shares = (weights * (n / weights.sum())).tolist()
    others = list(range(n))
    small = [i for i in range(n) if shares[i] < 1]
    large = [i for i in range(n) if shares[i] >= 1]
    while small and large:
        less, more = small.pop(), large[-1]
        others[less] = more
        shares[more] -= 1 - shares[less]
        if shares[more] < 1:
            small.append(large.pop())
    chances = np.rint(np.clip(shares, 0, 1) * np.float64(_ALWAYS))
    chances[small + large] = _ALWAYS  # left over because of rounding
    return chances.astype(np.uint32), np.array(others, np.int32)


def _jobs(ends: NDArray[np.int64]) -> Iterator[tuple[int, int, int, int]]:
    """Groups of about `MAX_LINE_WORDS` words: first line, end line, first word and end word.

    The learning rate at the first word holds for the whole group, as in gensim.
    """
    first, start = 0, 0
    while first < len(ends):
        last = int(np.searchsorted(ends, start + MAX_LINE_WORDS, side="right"))
        last = max(last, first + 1)
        yield first, last, start, int(ends[last - 1])
        first, start = last, int(ends[last - 1])
