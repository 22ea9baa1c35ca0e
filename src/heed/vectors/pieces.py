"""The vectors of a heed model: its embeddings, by the words that are pieces of its vocabulary."""

import re
from pathlib import Path
from typing import Literal

import numpy as np

from heed.bundle.bundle import load_bundle
from heed.errors import ConfigError
from heed.model.families import plan
from heed.text.vocab import Vocab
from heed.vectors.table import WordVectors

Side = Literal["source", "target"]

_BLANK = "\u2581"
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


def model_vectors(folder: str | Path, side: Side = "source") -> WordVectors:
    """The embeddings of a model, or of the best model of a run, one for each word among its pieces.

    Args:
        folder: of the model.
        side: which, if both sides have a table of their own; a model with one has that for both.

    Raises:
        ConfigError: its vocabulary has no words.
        FormatError: the folder holds no model, a damaged one, or rounded weights only.
    """
    bundle = load_bundle(folder)
    tables = [weight for weight in plan(bundle.config) if weight.role == "table"]
    code, vocab = {"source": ("src", bundle.src_vocab), "target": ("tgt", bundle.tgt_vocab)}[side]
    if len(tables) == 1:
        vocab = bundle.tgt_vocab if tables[0].side == "tgt" else bundle.src_vocab
    else:
        tables = [weight for weight in tables if weight.side == code]
    ids = words_of(vocab)
    if not ids:
        raise ConfigError(f"{folder} has no words among its pieces.")
    matrix = np.array(bundle.weights[tables[0].name][list(ids.values())], np.float32)
    return WordVectors(tuple(ids), matrix, str(folder))


def words_of(vocab: Vocab) -> dict[str, int]:
    """Word → its piece, in the order of the pieces.

    A piece that begins a word (`▁king`) is the word without its blank. One from inside (`王`) is a
    word too, for languages that write no blanks, unless a piece that begins a word is spelled so.
    """
    ids = [id for id in range(vocab.size) if not vocab.is_control(id)]
    pieces = {
        piece: id
        for piece, id in zip(vocab.pieces(ids), ids, strict=True)
        if piece != _BLANK and not _BYTE.fullmatch(piece)
    }
    words = {piece.removeprefix(_BLANK): id for piece, id in pieces.items() if piece[:1] == _BLANK}
    inside = {piece: id for piece, id in pieces.items() if piece[:1] != _BLANK}
    found = {**inside, **words}
    return dict(sorted(found.items(), key=lambda item: item[1]))
