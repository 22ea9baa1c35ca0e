"""The learned part of a model's judge of translations, stored with the model.

`heed.translate.doubts.calibrate` learns it from development data, `heed.translate.doubts.judge`
uses it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.bundle.beside import save_beside
from heed.bundle.find import DOUBT_WORDS, DOUBTS
from heed.disk.files import parse_json, to_json
from heed.disk.tensors import decode_tensors, encode_tensors
from heed.errors import FormatError

FORMAT = "heed doubts 1"

LOWEST = -1000.0
"""A mean log-probability that no translation has."""

Arrays = dict[str, NDArray[Any]]

WORD_ARRAYS = ("links.src", "links.tgt", "links.strict", "src.values", "tgt.values")
"""The arrays of `Judgment.words`: see `heed.translate.doubts.words`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """A logistic regression on piecewise linear functions of the features, with knots.

    Attributes:
        weights: one a feature, in the order of `heed.translate.doubts.features.NAMES`; after
            them, for each row of knots, one a feature for its excess over the knot.
        bias: added to the weighted sum.
        threshold: the lowest sum at which a translation is doubtful.
        knots: rows of one value a feature; none = a plain regression.
    """

    weights: tuple[float, ...]
    bias: float
    threshold: float = 0.0
    knots: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgment:
    """The learned regressions and statistics by which translations of a model are judged.

    Attributes:
        fits: a regression for each kind of fault.
        confidence: a regression for the probability that a translation is right; None = too few
            development pairs.
        low_confidence: a lower confidence is doubtful.
        low_score: a lower mean log-probability of a given translation is doubtful.
        right: the lowest sentence chrF2 at which a translation counted as right.
        scripts: of the target language.
        error: expected calibration error on development pairs that the regression had not seen.
        n_pairs: number of development pairs used.
        words: arrays about pieces, by the names of `WORD_ARRAYS`; empty = too few training pairs.
    """

    fits: dict[str, Fit] = field(default_factory=dict)
    confidence: Fit | None = None
    low_confidence: float = 0.0
    low_score: float = LOWEST
    right: float = 0.0
    scripts: tuple[str, ...] = ()
    error: float = 0.0
    n_pairs: int = 0
    words: Arrays = field(default_factory=dict)

    def to_files(self) -> dict[str, bytes]:
        """The content of its files, by name."""
        values = {name: value for name, value in asdict(self).items() if name != "words"}
        files = {DOUBTS: to_json({"format": FORMAT, **values})}
        if self.words:
            files[DOUBT_WORDS] = encode_tensors(self.words)
        return files

    @classmethod
    def from_files(cls, files: Mapping[str, bytes], where: Path) -> "Judgment":
        """Read the result of `to_files`.

        Args:
            files: both files, or only the first.
            where: their folder, for errors.

        Raises:
            FormatError: they hold something else.
        """
        values = parse_json(files[DOUBTS], where / DOUBTS)
        if values.pop("format", None) != FORMAT or not _is_sound(values):
            raise FormatError(f"{where / DOUBTS} is not in heed's format for doubts.")
        words = {}
        if DOUBT_WORDS in files:
            words = decode_tensors(files[DOUBT_WORDS], where / DOUBT_WORDS)
            if not _are_sound(words):
                raise FormatError(f"{where / DOUBT_WORDS} is not in heed's format for words.")
        confidence = values.pop("confidence")
        return cls(
            **values
            | {
                "fits": {name: _fit(fit) for name, fit in values["fits"].items()},
                "confidence": confidence and _fit(confidence),
                "scripts": tuple(values["scripts"]),
            },
            words=words,
        )


def save_judgment(path: str | PathLike[str], judgment: Judgment) -> Path:
    """Write a model's judgment beside its weights.

    Args:
        path: a model folder, or a run folder.
        judgment: the judgment to store.

    Returns:
        The folder.

    Raises:
        ConfigError: the run has not ended, so its model will be replaced.
        FormatError: it is not a model folder.
        RunError: the disk is full or read-only, or permission is denied.
    """
    return save_beside(path, judgment.to_files(), replaced=(DOUBTS, DOUBT_WORDS))


def _fit(values: Mapping[str, Any]) -> Fit:
    knots = tuple(tuple(row) for row in values.get("knots", ()))
    return Fit(**{**values, "weights": tuple(values["weights"]), "knots": knots})


def _is_sound(values: Mapping[str, Any]) -> bool:
    names = {each.name for each in fields(Judgment)} - {"words"}
    return (
        values.keys() == names
        and isinstance(values["fits"], dict)
        and all(map(_is_fit, values["fits"].values()))
        and (values["confidence"] is None or _is_fit(values["confidence"]))
        and all(
            isinstance(values[name], int | float)
            for name in ("low_confidence", "low_score", "right", "error", "n_pairs")
        )
        and isinstance(values["scripts"], list)
        and all(isinstance(name, str) for name in values["scripts"])
    )


def _is_fit(values: object) -> bool:
    return (
        isinstance(values, dict)
        and values.keys() - {"knots"} == {"weights", "bias", "threshold"}
        and _are_numbers(values["weights"])
        and isinstance(values.get("knots", []), list)
        and all(_are_numbers(row) for row in values.get("knots", []))
        and _fit_together(values["weights"], values.get("knots", []))
        and all(isinstance(values[name], int | float) for name in ("bias", "threshold"))
    )


def _are_numbers(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, int | float) for value in values)


def _fit_together(weights: list[float], knots: list[list[float]]) -> bool:
    """Whether there are a weight and, in each row, a knot for each feature."""
    return all(len(row) * (len(knots) + 1) == len(weights) for row in knots)


def _are_sound(words: Arrays) -> bool:
    """Whether arrays fit together; whether ids fit the vocabularies is checked elsewhere."""
    if words.keys() != set(WORD_ARRAYS):
        return False
    src, tgt, strict = (words[name] for name in WORD_ARRAYS[:3])
    tables = [words[name] for name in WORD_ARRAYS[3:]]
    return (
        src.ndim == 1
        and src.shape == tgt.shape == strict.shape
        and all(array.dtype.kind == "i" for array in (src, tgt))
        and all(table.ndim == 2 and table.dtype == np.float32 for table in tables)
        and bool((src >= 0).all() and (tgt >= 0).all())
        and all(
            not len(ids) or int(ids.max()) < len(table)
            for ids, table in zip((src, tgt), tables, strict=True)
        )
    )
