"""The vectors of a heed model: the embeddings of the vocabulary's pieces that are words."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from heed.bundle.bundle import Bundle, load_bundle
from heed.bundle.find import find_model_folder, has_float_weights
from heed.engine.network import engine_config, stacks_of
from heed.engine.packed import from_arrays
from heed.errors import ConfigError
from heed.model.families import plan
from heed.text.spans import BLANK_SIGN
from heed.text.vocab import Vocab
from heed.vectors.table import Floats, WordVectors

Side = Literal["source", "target"]
"""The side of a translator."""

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


@dataclass(frozen=True, kw_only=True)
class PieceTable:
    """A table of embeddings and its pieces.

    Attributes:
        side: `source` or `target`; `shared` where both sides have the same table.
        vocab: the vocabulary that numbers the pieces.
        matrix: a row for each id, `(vocab_size, d_model)`.
        name: the model's name, for messages.
    """

    side: Literal["source", "target", "shared"]
    vocab: Vocab
    matrix: Floats
    name: str

    @cached_property
    def vectors(self) -> WordVectors:
        """The vectors of the pieces, as spelled (`▁king`), without control pieces and bytes."""
        ids = [id for id in range(self.vocab.size) if not self.vocab.is_control(id)]
        pieces = {
            piece: id
            for piece, id in zip(self.vocab.pieces(ids), ids, strict=True)
            if not _BYTE.fullmatch(piece)
        }
        return WordVectors(tuple(pieces), self.matrix[list(pieces.values())], self.name)


def model_vectors(folder: str | Path, side: Side = "source") -> WordVectors:
    """The embeddings of a model, or of a run's best model: one for each word among the pieces.

    Args:
        folder: the model or run folder.
        side: the side whose table is used, if each side has its own; otherwise it has no effect.

    Raises:
        ConfigError: its vocabulary has no words.
        FormatError: the folder holds no model, or a damaged one.
    """
    tables = piece_tables(load_exact(folder), str(folder))
    table = tables[-1] if side == "target" else tables[0]
    ids = words_of(table.vocab)
    if not ids:
        raise ConfigError(f"{folder} has no words among its pieces.")
    return WordVectors(tuple(ids), table.matrix[list(ids.values())], str(folder))


def load_exact(folder: str | Path) -> Bundle:
    """Load a model with float32 weights if its folder has them, else with the int8 ones.

    Raises:
        FormatError: the folder holds no model, or a damaged one.
    """
    found = find_model_folder(folder)
    return load_bundle(found, prefer_int8=not has_float_weights(found))


def piece_tables(bundle: Bundle, name: str = "the model") -> list[PieceTable]:
    """The tables of embeddings of a model: one shared table, or the source's and the target's.

    For a model with int8 weights only, they hold the rounded numbers.

    Args:
        bundle: from `load_bundle`.
        name: the model's name, for messages.
    """
    weights = [weight for weight in plan(bundle.config) if weight.role == "table"]
    if not weights:
        raise ConfigError(f"{name} has no table of embeddings, because it is a bag of n-grams.")
    vocabs = {"src": bundle.src_vocab, "tgt": bundle.tgt_vocab}
    matrices = _rounded(bundle) if bundle.int8 is not None else bundle.weights
    if len(weights) == 1 or weights[1].tied_to:
        matrix = np.array(matrices[weights[0].name], np.float32)
        vocab = vocabs["tgt" if weights[0].side == "tgt" else "src"]
        return [PieceTable(side="shared", vocab=vocab, matrix=matrix, name=name)]
    sides: dict[str, Side] = {"src": "source", "tgt": "target"}
    return [
        PieceTable(
            side=sides[weight.side],
            vocab=vocabs[weight.side],
            matrix=np.array(matrices[weight.name], np.float32),
            name=name,
        )
        for weight in weights
    ]


def as_piece(vectors: WordVectors, word: str) -> str:
    """The piece for a word that a user typed: with `▁` in front if the table has that piece."""
    return f"{BLANK_SIGN}{word}" if f"{BLANK_SIGN}{word}" in vectors.rows else word


def words_of(vocab: Vocab) -> dict[str, int]:
    """Maps each word to its piece's id, in the order of the pieces.

    A piece that begins a word (`▁king`) is the word without the mark. A piece from inside a word
    (`王`) is a word too, for languages without blanks, unless it also has a piece with the mark.
    """
    ids = [id for id in range(vocab.size) if not vocab.is_control(id)]
    pieces = {
        piece: id
        for piece, id in zip(vocab.pieces(ids), ids, strict=True)
        if piece != BLANK_SIGN and not _BYTE.fullmatch(piece)
    }
    words = {
        piece.removeprefix(BLANK_SIGN): id
        for piece, id in pieces.items()
        if piece[:1] == BLANK_SIGN
    }
    inside = {piece: id for piece, id in pieces.items() if piece[:1] != BLANK_SIGN}
    found = {**inside, **words}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def _rounded(bundle: Bundle) -> dict[str, Floats]:
    """The embeddings of an int8 model, keyed by the weight names of its plan."""
    config = engine_config(bundle.config)
    assert bundle.int8 is not None
    network = from_arrays(config, bundle.int8, f"the int8 file of {bundle.path}")
    names = stacks_of(config).embeddings
    return {name: network.matrices[role].floats() for role, name in names.items()}
