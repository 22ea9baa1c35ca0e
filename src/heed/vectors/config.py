"""Settings of word vectors, with the names, meanings and defaults of gensim's Word2Vec."""

from dataclasses import dataclass
from typing import Annotated, Literal

from heed.config import Range, check

Kind = Literal["skipgram", "cbow", "counts"]


@dataclass(frozen=True, kw_only=True)
class VectorsConfig:
    """How word vectors are learned.

    Attributes:
        kind: `skipgram` (a word predicts each word around it), `cbow` (the mean of the words around
            predicts the word), or `counts` (positive pointwise mutual information and a truncated
            singular value decomposition; the baseline). Source: Mikolov et al. 2013a; Levy,
            Goldberg and Dagan 2015.
        size: numbers a vector.
        window: most words to each side; near ones count more.
        negative: random words against each word that is predicted; not for `counts`.
        epochs: times that the text is read; not for `counts`.
        min_count: rarer words are left out.
        sample: share of the text above which a word is thinned out; 0 = never.
        learning_rate: at the start; it falls linearly to 0.0001. Not for `counts`.
        threads: CPU threads. With one the result depends on the seed alone; with several, which
            write to the same vectors at the same time, it differs a little from call to call.
        seed: decides first vectors, thinning, windows and random words.

    Raises:
        ConfigError: a value out of range.
    """

    kind: Kind = "skipgram"
    size: Annotated[int, Range(1, 65536)] = 100
    window: Annotated[int, Range(1, 1000)] = 5
    negative: Annotated[int, Range(1, 1000)] = 5
    epochs: Annotated[int, Range(1, 1_000_000)] = 5
    min_count: Annotated[int, Range(1, 1_000_000_000)] = 5
    sample: Annotated[float, Range(0, 1)] = 1e-3
    learning_rate: Annotated[float, Range(0, 10, above_low=True)] = 0.025
    threads: Annotated[int, Range(1, 1024)] = 1
    seed: Annotated[int, Range(0, 2**31 - 1)] = 1

    def __post_init__(self) -> None:
        check(self, "vectors")
