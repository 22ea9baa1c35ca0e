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
        size: numbers in a vector.
        window: most words on each side; near ones count more.
        negative: random words drawn for each word that is predicted; not for `counts`.
        epochs: passes over the text; not for `counts`.
        min_count: rarer words are left out.
        sample: words with a larger share of the text are left out at random; 0 = never. Not for
            `counts`.
        learning_rate: the rate at the start; it falls linearly to 0.0001. Not for `counts`.
        threads: CPU threads. With one, the result depends on the seed alone. Several write to the
            same vectors at the same time, so the result differs a little from run to run. Not for
            `counts`.
        seed: decides the first vectors, left-out words, windows and random words.

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
