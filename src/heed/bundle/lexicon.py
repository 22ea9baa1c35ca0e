"""Word translations counted in training pairs, by which a model ranks its hypotheses anew.

`heed.train.run.rerank` learns them, `heed.translate.rerank` uses them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.bundle.beside import save_beside
from heed.bundle.find import LEXICON
from heed.disk.tensors import decode_tensors, encode_tensors
from heed.errors import FormatError

_LINKS = "links.src", "links.tgt", "links.chances"
_WEIGHTS = "weights"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Lexicon:
    """p(source piece | target piece), and how much it counts.

    Attributes:
        src: source ids of the links, `(n_links,)`.
        tgt: target ids of the links; the size of the vocabulary is the empty word, `(n_links,)`.
        chances: the probability of each source piece, given the target piece, `(n_links,)`.
        weight: what a nat of the source's log-probability adds to the score of a hypothesis.
        per_token: what each of its tokens adds, `<eos>` included.
    """

    src: NDArray[np.int32]
    tgt: NDArray[np.int32]
    chances: NDArray[np.float32]
    weight: float
    per_token: float

    def to_bytes(self) -> bytes:
        """The content of its file."""
        weights = np.array([self.weight, self.per_token], np.float32)
        links = zip(_LINKS, (self.src, self.tgt, self.chances), strict=True)
        return encode_tensors({**dict(links), _WEIGHTS: weights})

    @classmethod
    def from_files(
        cls, files: Mapping[str, bytes], sizes: tuple[int, int], folder: Path
    ) -> "Lexicon | None":
        """Read the result of `to_bytes`; None if it is not among the files of a model.

        Args:
            files: contents by name.
            sizes: of the source and the target vocabulary.
            folder: that of the files, for errors.

        Raises:
            FormatError: it holds something else, or belongs to other vocabularies.
        """
        if LEXICON not in files:
            return None
        where = folder / LEXICON
        arrays = decode_tensors(files[LEXICON], where)
        if not _are_sound(arrays, sizes):
            raise FormatError(
                f"{where} does not hold the word translations of this model. Get the model again, "
                "or train it again."
            )
        src, tgt, chances = (arrays[name] for name in _LINKS)
        weight, per_token = arrays[_WEIGHTS].tolist()
        return cls(src=src, tgt=tgt, chances=chances, weight=weight, per_token=per_token)


def save_lexicon(path: str | PathLike[str], lexicon: Lexicon) -> None:
    """Write a lexicon beside a model's weights, in place of an older one.

    Args:
        path: a model folder, or a run folder.
        lexicon: the lexicon to store.

    Raises:
        ConfigError: the run has not ended, so its model will be replaced.
        FormatError: it is not a model folder.
        RunError: the disk is full or read-only, or permission is denied.
    """
    save_beside(path, {LEXICON: lexicon.to_bytes()}, replaced=(LEXICON,))


def _are_sound(arrays: dict[str, NDArray[Any]], sizes: tuple[int, int]) -> bool:
    if arrays.keys() != {*_LINKS, _WEIGHTS}:
        return False
    src, tgt, chances = (arrays[name] for name in _LINKS)
    return (
        src.ndim == 1
        and src.shape == tgt.shape == chances.shape
        and src.dtype == tgt.dtype == np.int32
        and chances.dtype == np.float32
        and arrays[_WEIGHTS].dtype == np.float32
        and arrays[_WEIGHTS].shape == (2,)
        and bool(np.isfinite(arrays[_WEIGHTS]).all())
        and bool(((chances > 0) & (chances <= 1)).all())
        and all(
            not len(ids) or (int(ids.min()) >= 0 and int(ids.max()) < size)
            for ids, size in ((src, sizes[0]), (tgt, sizes[1] + 1))
        )
    )
