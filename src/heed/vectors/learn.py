"""Learn word vectors from a text, with any kind of `VectorsConfig`."""

from collections.abc import Callable, Iterable

from heed.data.clean import amount
from heed.data.progress import Report, silent
from heed.vectors.config import VectorsConfig
from heed.vectors.corpus import Corpus, read_corpus
from heed.vectors.counts import learn_counts
from heed.vectors.table import Floats, WordVectors
from heed.vectors.word2vec import learn_word2vec

KINDS: dict[str, Callable[[Corpus, VectorsConfig, Report], Floats]] = {
    "skipgram": learn_word2vec,
    "cbow": learn_word2vec,
    "counts": learn_counts,
}
"""Maps a kind to the function that learns a vector for each word, `(n_words, size)`."""


def learn_vectors(
    lines: Iterable[Iterable[str]], config: VectorsConfig, report: Report = silent
) -> WordVectors:
    """Learn word vectors from a text.

    Args:
        lines: the words of each line.
        config: settings.
        report: receives progress events.

    Raises:
        DataError: fewer than two words occur often enough.
    """
    corpus = read_corpus(lines, config.min_count)
    report({"kind": "note", "text": _spelled(corpus, config)})
    return WordVectors(corpus.words, KINDS[config.kind](corpus, config, report))


def _spelled(corpus: Corpus, config: VectorsConfig) -> str:
    return (
        f"{amount(corpus.n_read, 'word')} in {amount(len(corpus.ends), 'line')}; "
        f"{len(corpus.words):,} different ones occur {amount(config.min_count, 'time')} or more"
    )
