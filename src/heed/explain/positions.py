"""Tables of positions as readable numbers: formulas of waves, wavelengths, similarities.

The tables are those that models add to embeddings or use inside attention. This module needs torch
only for kinds of positions that torch computes. `heed.model.positions` has the modules.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heed.bundle.bundle import Bundle
from heed.engine.network import engine_config
from heed.engine.packed import from_arrays
from heed.engine.tables import wave_angles, wave_table
from heed.errors import ConfigError, DataError
from heed.model.families import plan
from heed.model.one_stack.config import OneStackConfig
from heed.text.spans import BLANK_SIGN

Floats = NDArray[np.float32]
Side = Literal["source", "target"]

FORMULAS = {
    "sinusoidal": "PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d))",
    "sinusoidal_halves": "PE(pos, i) = sin(pos / 10000^(2i/d)), PE(pos, d/2+i) = cos of the same",
    "learned": "PE(pos) = a learned row of the model",
    "rotary": "features i and d/2+i of queries and keys turn by pos / 10000^(2i/d): cosines, then "
    "sines",
    "none": "this model has no positions: it reads a bag of tokens, or in order",
    "absolute": "PE(pos) = (pos, 0, …, 0)",
    "seed1": "PE(pos, j) = sin or cos of pos / 10000^(2j/d), for j even or odd; PE(0, j) = 0",
    "shaw": "a learned vector of the distance j − i, added to the keys",
    "alibi": "head h adds −m_h |i − j| to its scores",
}
"""A description of each kind of positions, for captions."""

BY_DISTANCE = ("shaw", "alibi")
"""Kinds whose rows are distances, not positions."""
LEARNED = ("learned", "shaw")


class Wave(NamedTuple):
    """The function of the position for one column.

    Attributes:
        pair: i of the formula.
        function: `sin` or `cos`.
        exponent: e of the angle pos / 10000^e.
    """

    pair: int
    function: Literal["sin", "cos"]
    exponent: float

    @property
    def wavelength(self) -> float:
        """The number of positions after which the wave repeats: 2π 10000^e."""
        return float(2 * math.pi * 10000**self.exponent)


class Term(NamedTuple):
    """One number of a position, with its formula.

    Attributes:
        dimension: the column.
        value: the number.
        wave: the function that computes it, or None.
        formula: the function with its numbers, such as `sin(5 / 10000^(4/16))`.
    """

    dimension: int
    value: float
    wave: Wave | None
    formula: str


@dataclass(frozen=True, kw_only=True)
class PositionTable:
    """A table of positions.

    Attributes:
        kind: a kind of `model.positions`.
        values: one row per position or distance, `(n_rows, width)`.
        waves: the wave of each column; empty if columns are not waves.
        first: the position or distance of the first row.
        trained_len: number of positions of the longest training source; None = unknown.
        is_normalized: whether each row was divided by its length.
        name: the origin of the table, for captions.
    """

    kind: str
    values: Floats
    waves: tuple[Wave, ...] = ()
    first: int = 0
    trained_len: int | None = None
    is_normalized: bool = False
    name: str = ""

    @property
    def positions(self) -> range:
        """The positions or distances of the rows."""
        return range(self.first, self.first + len(self.values))

    @property
    def axes(self) -> tuple[str, str]:
        """What a row is and what a column is: `position` or `distance`, `dimension` or `head`."""
        row = "distance" if self.kind in BY_DISTANCE else "position"
        return row, "head" if self.kind == "alibi" else "dimension"

    @property
    def formula(self) -> str:
        """A description of the table, in words and letters."""
        words = FORMULAS[self.kind]
        return f"{words}; each row divided by its length" if self.is_normalized else words


def position_table(
    kind: str, n_positions: int, width: int, *, is_normalized: bool = False
) -> PositionTable:
    """The table of a kind of positions that needs no model.

    Args:
        kind: a kind of `model.positions` that is computed.
        n_positions: number of rows.
        width: number of columns: `d_model`; for `rotary` `d_k`, for `alibi` the number of heads.
        is_normalized: divide each row by its length.

    Raises:
        ConfigError: the kind is unknown or learned, or the sizes are impossible for a model.
    """
    if kind not in FORMULAS:
        raise ConfigError(f"positions must be one of {', '.join(FORMULAS)}, but are {kind!r}.")
    if kind in LEARNED:
        raise ConfigError(f"{kind} positions are weights: name the model that has them.")
    if n_positions < 1 or width < 1:
        raise ConfigError(
            f"a table of positions must have rows and columns, but has {n_positions} and {width}."
        )
    waves = _waves(kind, width)
    if waves and kind != "seed1" and width % 2:
        raise ConfigError(f"{kind} positions must have an even number of columns, not {width}.")
    values = _computed(kind, n_positions, width)
    if is_normalized:
        lengths = np.linalg.norm(values, axis=1, keepdims=True)
        values = (values / (lengths + 1e-8)).astype(np.float32)
    return PositionTable(kind=kind, values=values, waves=waves, is_normalized=is_normalized)


def model_positions(
    bundle: Bundle, n_positions: int | None = None, *, side: Side = "source", layer: int = 0
) -> PositionTable:
    """The table of positions of a model.

    Args:
        bundle: from `load_bundle`; int8 weights are sufficient.
        n_positions: rows of a computed table. None = twice the length of the longest training
            sentence, to include positions beyond it; 128 if that length is unknown. A learned table
            has its own rows, or the first `n_positions` of them.
        side: the side whose table is used, if each has a learned one.
        layer: the layer of self-attention, if each has its own table (`shaw`).

    Raises:
        ConfigError: the model has no positions, or lacks that layer.
    """
    settings = bundle.config.to_dict()
    kind = settings.get("positions", "none")
    if kind == "none":
        raise ConfigError(f"this model ({bundle.config.summary()}) has no table of positions.")
    stored = bundle.decoding.get("max_source_tokens")
    trained_len = stored if isinstance(stored, int) else None
    name = "" if bundle.path is None else bundle.path.name
    if kind in LEARNED:
        values = _learned(bundle, kind, side, layer)
        first = -(len(values) // 2) if kind == "shaw" else 0
        if kind == "learned" and n_positions:
            values = values[:n_positions]
        found = PositionTable(kind=kind, values=values, first=first)
    else:
        n_rows = n_positions or 2 * (trained_len or 64)
        found = position_table(
            kind,
            n_rows,
            _width_of(settings, kind),
            is_normalized=bool(settings.get("normalize_positions")),
        )
    return replace(found, trained_len=trained_len, name=name)


def written_out(table: PositionTable, position: int) -> list[Term]:
    """Each number of one position, with its formula.

    Raises:
        DataError: the table lacks that position.
    """
    row = _row(table, position)
    return [
        Term(
            dimension,
            float(value),
            table.waves[dimension] if table.waves else None,
            _formula(table, position, dimension),
        )
        for dimension, value in enumerate(table.values[row])
    ]


def chosen(
    table: PositionTable, places: Iterable[tuple[int, int]]
) -> list[tuple[int, int, float, str]]:
    """Single numbers of the table with their formulas: (position, dimension, value, formula).

    Args:
        table: a table of any kind.
        places: pairs of position and dimension.

    Raises:
        DataError: the table lacks such a number.
    """
    found = []
    for position, dimension in places:
        row = _row(table, position)
        if not 0 <= dimension < table.values.shape[1]:
            raise DataError(
                f"dimension must be from 0 to {table.values.shape[1] - 1}, but is {dimension}."
            )
        value = float(table.values[row, dimension])
        found.append((position, dimension, value, _formula(table, position, dimension)))
    return found


def similarity(table: PositionTable) -> Floats:
    """PE·PEᵀ: the similarity of positions. For waves it depends on the distance alone.

    For `alibi`, which has no vectors: the mean over heads of the terms it adds to the scores.

    Returns:
        `(n_rows, n_rows)`.
    """
    if table.kind == "alibi":
        places = np.arange(len(table.values))
        distances = np.abs(places[:, None] - places)
        means: Floats = table.values.mean(axis=1)[distances]
        return means
    products: Floats = table.values @ table.values.T
    return products


def tokens_with(word: str, tokens: Sequence[str]) -> list[int]:
    """The indices of a word among tokens, from 0; `▁` in front of a piece is ignored.

    In "New York is a city" the last word has index 4. It has index 5 if `<bos>` comes first, as in
    the input of a decoder.

    Raises:
        DataError: the word does not occur.
    """
    found = [i for i, token in enumerate(tokens) if token.removeprefix(BLANK_SIGN) == word]
    if not found:
        raise DataError(f"{word!r} must be one of the tokens, which are {' '.join(tokens)}.")
    return found


def _waves(kind: str, width: int) -> tuple[Wave, ...]:
    if kind == "sinusoidal":
        return tuple(
            Wave(j // 2, "cos" if j % 2 else "sin", 2 * (j // 2) / width) for j in range(width)
        )
    if kind == "seed1":
        return tuple(Wave(j, "cos" if j % 2 else "sin", 2 * j / width) for j in range(width))
    if kind in ("sinusoidal_halves", "rotary"):
        first, second = ("sin", "cos") if kind == "sinusoidal_halves" else ("cos", "sin")
        half = width // 2
        pairs = [(i, 2 * i / width) for i in range(half)]
        return tuple(
            Wave(i, function, exponent)  # type: ignore[arg-type]
            for function in (first, second)
            for i, exponent in pairs
        )
    return ()


def _computed(kind: str, n_positions: int, width: int) -> Floats:
    if kind in ("sinusoidal", "sinusoidal_halves"):
        return wave_table(n_positions, width, is_halved=kind != "sinusoidal")
    if kind == "rotary":
        angles = wave_angles(n_positions, width)
        return np.concatenate([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    if kind == "none":
        raise ConfigError("a model without positions has no table of them.")
    if kind == "alibi":
        from heed.model.relative import alibi_slopes

        slopes = np.array(alibi_slopes(width), np.float32)
        return np.float32(0) - slopes * np.arange(n_positions, dtype=np.float32)[:, None]
    from heed.model.positions import absolute_table, seed1_table

    make = {"absolute": absolute_table, "seed1": seed1_table}[kind]
    table: Floats = make(n_positions, width).numpy()
    return table


def _learned(bundle: Bundle, kind: str, side: Side, layer: int) -> Floats:
    code = {"source": "src", "target": "tgt"}[side]
    if bundle.int8 is not None:
        network = from_arrays(engine_config(bundle.config), bundle.int8, str(bundle.path))
        return network.tables[code]
    named = [weight for weight in plan(bundle.config) if weight.role == "positions"]
    if kind == "shaw":
        part = re.compile(rf".*\.{layer}\.(self|joint)_attention\.relative\.keys")
    else:
        part = re.compile(r".*\.positions\.table")
    if not isinstance(bundle.config, OneStackConfig):  # that has one table for both sides
        named = [weight for weight in named if weight.side == code]
    fitting = [weight for weight in named if part.fullmatch(weight.name)]
    if not fitting:
        raise ConfigError(
            f"this model ({bundle.config.summary()}) has no layer {layer} with positions on the "
            f"{side} side."
        )
    return np.array(bundle.weights[fitting[0].name], np.float32)


def _width_of(settings: dict[str, Any], kind: str) -> int:
    if kind == "alibi":
        return int(settings["n_heads"])
    if kind == "rotary":
        return int(settings["d_k"] or settings["d_model"] // settings["n_heads"])
    return int(settings["d_model"])


def _row(table: PositionTable, position: int) -> int:
    if position not in table.positions:
        raise DataError(
            f"position must be from {table.first} to {table.positions[-1]}, but is {position}."
        )
    return position - table.first


def _formula(table: PositionTable, position: int, dimension: int) -> str:
    if not table.waves:
        value = table.values[position - table.first, dimension]
        return f"table[{position}][{dimension}] = {value:.4g}"
    wave, width = table.waves[dimension], table.values.shape[1]
    if table.kind == "seed1" and position == 0:
        return "0"
    top = 2 * wave.pair
    words = f"{wave.function}({position} / 10000^({top}/{width}))"
    return f"{words} / |PE({position})|" if table.is_normalized else words
