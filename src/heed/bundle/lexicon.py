"""Word translations counted in training pairs, by which a model ranks its hypotheses anew.

`heed.train.run.rerank` learns them, `heed.translate.rerank` uses them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heed.bundle.beside import save_beside
from heed.bundle.find import LEXICON
from heed.disk.tensors import decode_tensors, encode_tensors
from heed.errors import FormatError

_LINKS = ("src", np.int32), ("tgt", np.int32), ("chances", np.float32)
_WORDS = "words.sources", "words.targets"
_WEIGHTS = "weights"


class Links(NamedTuple):
    """p(source unit | target unit), where units are pieces or words.

    Attributes:
        src: source unit of each link, `(n_links,)`.
        tgt: target unit of each link; their number is the empty word, `(n_links,)`.
        chances: the probability of the source unit, given the target unit, `(n_links,)`.
    """

    src: NDArray[np.int32]
    tgt: NDArray[np.int32]
    chances: NDArray[np.float32]


class Weights(NamedTuple):
    """What is added to the score of a hypothesis.

    Attributes:
        pieces: for each nat of the log-probability of the source's pieces.
        words: the same of its words.
        per_token: for each token of the hypothesis, `<eos>` included.
    """

    pieces: float
    words: float
    per_token: float


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Lexicon:
    """Translations of pieces and of words, and how much they count.

    Attributes:
        pieces: links between ids of the vocabularies.
        words: links between places in `src_words` and `tgt_words`.
        src_words: in lower case.
        tgt_words: in lower case.
        weights: of a hypothesis.
    """

    pieces: Links
    words: Links
    src_words: tuple[str, ...]
    tgt_words: tuple[str, ...]
    weights: Weights

    def to_bytes(self) -> bytes:
        """The content of its file."""
        units = {"pieces": self.pieces, "words": self.words}
        arrays: dict[str, NDArray[Any]] = {
            f"{unit}.{name}": values
            for unit, links in units.items()
            for (name, _), values in zip(_LINKS, links, strict=True)
        }
        for name, words in zip(_WORDS, (self.src_words, self.tgt_words), strict=True):
            arrays[name] = np.frombuffer("\n".join(words).encode(), np.uint8)
        return encode_tensors({**arrays, _WEIGHTS: np.array(self.weights, np.float32)})

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
        found = _read(decode_tensors(files[LEXICON], where), sizes)
        if found is None:
            raise FormatError(
                f"{where} does not hold the word translations of this model. Get the model again, "
                "or train it again."
            )
        return found


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


def _read(arrays: dict[str, NDArray[Any]], sizes: tuple[int, int]) -> Lexicon | None:
    """The lexicon in these arrays; None if they are those of another one, or of none."""
    links = {f"{unit}.{name}": kind for unit in ("pieces", "words") for name, kind in _LINKS}
    kinds = {**links, **dict.fromkeys(_WORDS, np.uint8), _WEIGHTS: np.float32}
    if {name: (values.dtype, values.ndim) for name, values in arrays.items()} != {
        name: (np.dtype(kind), 1) for name, kind in kinds.items()
    }:
        return None
    pieces, words = (
        Links(*(arrays[f"{unit}.{name}"] for name, _ in _LINKS)) for unit in ("pieces", "words")
    )
    try:
        src_words, tgt_words = (
            tuple(text.split("\n")) if (text := arrays[name].tobytes().decode()) else ()
            for name in _WORDS
        )
    except UnicodeDecodeError:
        return None
    weights = arrays[_WEIGHTS]
    is_sound = (
        len(weights) == len(Weights._fields)
        and _are_sound(pieces, sizes)
        and _are_sound(words, (len(src_words), len(tgt_words)))
    )
    if not is_sound:
        return None
    return Lexicon(
        pieces=pieces,
        words=words,
        src_words=src_words,
        tgt_words=tgt_words,
        weights=Weights(*weights.tolist()),
    )


def _are_sound(links: Links, sizes: tuple[int, int]) -> bool:
    src, tgt, chances = links
    return (
        len(src) == len(tgt) == len(chances)
        and bool(((chances > 0) & (chances <= 1)).all())
        and all(
            not len(units) or (int(units.min()) >= 0 and int(units.max()) < size)
            for units, size in ((src, sizes[0]), (tgt, sizes[1] + 1))
        )
    )
