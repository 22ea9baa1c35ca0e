"""Initialize embeddings with word vectors from a file."""

from collections.abc import Mapping
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from heed.data.progress import Report
from heed.errors import ConfigError
from heed.model.config import AnyConfig
from heed.text.vocab import Vocab
from heed.train.start.rows import own_target_rows, with_rows
from heed.vectors.formats import read_vectors
from heed.vectors.pieces import words_of
from heed.vectors.table import WordVectors


def file_weights(
    weights: Mapping[str, Tensor],
    config: AnyConfig,
    vocabs: tuple[Vocab, Vocab],
    path: str | Path,
    report: Report,
) -> dict[str, Tensor]:
    """Weights with embeddings from a file; the others stay as they are.

    A piece that is a word of the file, as spelled or in lower case, gets its direction.

    Args:
        weights: those of a fresh model, by name.
        config: its shape.
        vocabs: of source and target.
        path: word2vec's or GloVe's text format.
        report: gets an event with the number of pieces found.

    Returns:
        The weights; rows have the length of random ones, and other pieces keep their rows.

    Raises:
        ConfigError: the vectors do not have the model's width, or no piece is a word of the file.
        DataError: the file is missing or malformed.
    """
    vectors = read_vectors(path)
    size = vectors.matrix.shape[1]
    if size != config.d_model:
        raise ConfigError(
            f"model.d_model must be {size}, as many numbers as a vector of {path} has, but is "
            f"{config.d_model}. Set model.d_model={size}, or use other vectors."
        )
    sides = (
        {"source": vocabs[0], "target": vocabs[1]} if own_target_rows(config) else {"": vocabs[0]}
    )
    rows = [_rows(vectors, vocab) for vocab in sides.values()]
    counts = [int(table.any(dim=1).sum()) for table in rows]
    if not any(counts):
        raise ConfigError(
            f"training.first_embeddings: no piece of the vocabulary is a word of {path}. Is it "
            "for another language? With tokenizer.kind=word every piece is a word."
        )
    for (side, vocab), count in zip(sides.items(), counts, strict=True):
        name = f"{side} pieces" if side else "pieces"
        text = f"{count:,} of {vocab.size:,} {name} are initialized with a vector of {path}"
        report({"kind": "note", "text": text})
    return with_rows(weights, config, rows[0], rows[-1])


def _rows(vectors: WordVectors, vocab: Vocab) -> Tensor:
    """The direction of each piece that is a word, `(vocab_size, size)`; zeros for the others."""
    rows = torch.zeros(vocab.size, vectors.matrix.shape[1])
    for word, id in words_of(vocab).items():
        row = vectors.rows.get(word, vectors.rows.get(word.lower()))
        if row is not None:
            rows[id] = F.normalize(torch.from_numpy(vectors.matrix[row]), dim=0)
    return rows
