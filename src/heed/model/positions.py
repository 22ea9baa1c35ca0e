"""Positions of tokens: computed tables, learned, rotary or none.

`Positions` has three methods: `forward` adds to the embeddings, `rotation` rotates queries and keys
inside self-attention, `distances` gives self-attention the distances of its keys, which
`relative.py` reads. Each kind overrides one of the three. `POSITIONS` names the kinds.
"""

import math

import torch
from torch import Tensor, nn

from heed.errors import DataError
from heed.model.fast.rotation import can_fuse, rotate_fused

Rotation = tuple[Tensor, Tensor]
"""Cosines and sines of the rotary angles, each `(length, d_k)`."""


def sinusoidal_table(n_positions: int, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos of the same angle.

    Returns:
        One row a position, `(n_positions, d_model)`; every value lies in [-1, 1].

    Source: Vaswani et al. 2017, section 3.5.
    """
    angles = _angles(n_positions, d_model)
    # stack + flatten interleaves: sine, cosine, sine, cosine …
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).float()


def sinusoidal_halves_table(n_positions: int, d_model: int) -> Tensor:
    """The same numbers with all sines before all cosines, as in tensor2tensor and Marian.

    Returns:
        One row a position, `(n_positions, d_model)`.
    """
    angles = _angles(n_positions, d_model)
    return torch.cat([angles.sin(), angles.cos()], dim=-1).float()


def absolute_table(n_positions: int, d_model: int) -> Tensor:
    """PE(pos) = (pos, 0, …, 0): the number itself, added to the first feature of the token.

    Only in one feature: LayerNorm subtracts the mean of all and would remove a number in all.

    Returns:
        One row a position, `(n_positions, d_model)`; the values grow without bound.
    """
    table = torch.zeros(n_positions, d_model)
    table[:, 0] = torch.arange(n_positions)
    return table


def seed1_table(n_positions: int, d_model: int) -> Tensor:
    """PE(pos, j) = sin or cos of pos / 10000^(2j/d_model), for j even or odd; PE(0, j) = 0.

    The formula of a tutorial, for comparison. The paper gives columns 2i and 2i+1 one frequency,
    10000^(-2i/d_model); here each has its own, and wavelengths go up to nearly 2π 10000².

    Returns:
        One row a position, `(n_positions, d_model)`.
    """
    columns = torch.arange(d_model, dtype=torch.float64)
    frequencies = torch.exp(2 * columns * (-math.log(10000.0) / d_model))
    angles = torch.outer(torch.arange(n_positions, dtype=torch.float64), frequencies)
    table = torch.where(columns % 2 == 0, angles.sin(), angles.cos())
    table[0] = 0
    return table.float()


def normalized(table: Tensor) -> Tensor:
    """PE(pos) / (|PE(pos)| + 10⁻⁸): each row has length 1, except a row of zeros.

    Args:
        table: `(n_positions, d_model)`.

    Returns:
        `(n_positions, d_model)`.
    """
    lengths: Tensor = table.norm(dim=1, keepdim=True)
    return table / (lengths + 1e-8)


def rotary_table(n_positions: int, d_k: int) -> Rotation:
    """Cosines and sines that `rotate` needs; pair `i` turns by pos / 10000^(2i/d_k).

    Source: Su et al. 2021, "RoFormer", section 3.2.2 (halves layout, as GPT-NeoX).
    """
    angles = _angles(n_positions, d_k).repeat(1, 2)
    return angles.cos().float(), angles.sin().float()


def rotate(x: Tensor, rotation: Rotation) -> Tensor:
    """Rotate each pair of features by its position's angle, so that q·k depends on distance only.

    Args:
        x: queries or keys, `(batch, n_heads, length, d_k)`.
        rotation: cosines and sines, each `(length, d_k)`.

    Returns:
        The same shape, `(batch, n_heads, length, d_k)`.
    """
    cosines, sines = rotation
    if can_fuse(x):
        return rotate_fused(x, cosines, sines)
    first, second = x.chunk(2, dim=-1)
    return x * cosines + torch.cat([-second, first], dim=-1) * sines


def _angles(n_positions: int, width: int) -> Tensor:
    # float64: float32 angles are wrong by 3e-4 at position 5000.
    positions = torch.arange(n_positions, dtype=torch.float64)
    pairs = torch.arange(0, width, 2, dtype=torch.float64)
    return torch.outer(positions, torch.exp(pairs * (-math.log(10000.0) / width)))


def _end(x: Tensor, offset: int | Tensor) -> int:
    """The number of positions up to the last one of `x`, `(batch, length, d_model)`."""
    return x.size(1) + (offset if isinstance(offset, int) else int(offset.max()))


def _read(table: Tensor, length: int, offset: int | Tensor) -> Tensor:
    """Rows `offset …` of a table, `(length, d_model)`; `(batch, length, d_model)` of offsets."""
    if isinstance(offset, int):
        return table[offset : offset + length]
    places = offset[:, None] + torch.arange(length, device=table.device)
    return table[places.clamp(min=0)]


class Positions(nn.Module):
    """The base class, whose methods do nothing; each kind overrides one of the three."""

    def __init__(self, d_model: int, d_k: int, max_positions: int) -> None:
        super().__init__()

    def forward(self, x: Tensor, offset: int | Tensor = 0) -> Tensor:
        """Return `x` as it is, `(batch, length, d_model)`."""
        return x

    def rotation(self, length: int, offset: int = 0) -> Rotation | None:
        """None: queries and keys stay as they are."""
        return None

    def distances(self, n_queries: int, n_keys: int, offset: int = 0) -> Tensor | None:
        """None: scores do not depend on distances."""
        return None


class NoPositions(Positions):
    """No positions: attention reads an unordered set of tokens."""


class SinusoidalPositions(Positions):
    """Adds fixed sines and cosines; works at any length."""

    make_table = staticmethod(sinusoidal_table)

    def __init__(
        self, d_model: int, d_k: int, max_positions: int, *, is_normalized: bool = False
    ) -> None:
        super().__init__(d_model, d_k, max_positions)
        self.d_model = d_model
        self.is_normalized = is_normalized
        self.table: Tensor
        self.register_buffer("table", self._rows(256), persistent=False)

    def forward(self, x: Tensor, offset: int | Tensor = 0) -> Tensor:
        """Add the rows of positions `offset …` to `x`, `(batch, length, d_model)`.

        An offset may be one number or one for each row; positions below 0 get the row of 0.
        """
        end = _end(x, offset)
        # Another thread may replace the table meanwhile, by a smaller one than is needed here.
        table = self.table
        if end > table.size(0):
            # A table made under inference_mode could not be used in training afterwards.
            with torch.inference_mode(False):
                self.table = table = self._rows(2 * end).to(table)
        return x + _read(table, x.size(1), offset)

    def _rows(self, n_positions: int) -> Tensor:
        table = self.make_table(n_positions, self.d_model)
        return normalized(table) if self.is_normalized else table


class SinusoidalHalvesPositions(SinusoidalPositions):
    """The same sines and cosines in the layout of Marian."""

    make_table = staticmethod(sinusoidal_halves_table)


class AbsolutePositions(SinusoidalPositions):
    """The position's number instead of sines and cosines."""

    make_table = staticmethod(absolute_table)


class Seed1Positions(SinusoidalPositions):
    """Sines and cosines of other frequencies; see `seed1_table`."""

    make_table = staticmethod(seed1_table)


class LearnedPositions(Positions):
    """Adds a learned vector a position; has none beyond `max_positions`."""

    def __init__(self, d_model: int, d_k: int, max_positions: int) -> None:
        super().__init__(d_model, d_k, max_positions)
        self.table = nn.Parameter(torch.empty(max_positions, d_model))
        nn.init.normal_(self.table, std=d_model**-0.5)

    def forward(self, x: Tensor, offset: int | Tensor = 0) -> Tensor:
        """Add the rows of positions `offset …` to `x`, `(batch, length, d_model)`.

        An offset may be one number or one for each row; positions below 0 get the row of 0.

        Raises:
            DataError: a position is beyond the table.
        """
        end = _end(x, offset)
        if end > self.table.size(0):
            raise DataError(
                f"a sequence has {end} positions, but this model learned only {self.table.size(0)}"
                " (model.max_positions). Split the text, or use sinusoidal or rotary positions."
            )
        return x + _read(self.table, x.size(1), offset)


class RotaryPositions(Positions):
    """Turns queries and keys instead of adding to embeddings; works at any length."""

    def __init__(self, d_model: int, d_k: int, max_positions: int) -> None:
        super().__init__(d_model, d_k, max_positions)
        self.d_k = d_k
        self.cosines: Tensor
        self.sines: Tensor
        cosines, sines = rotary_table(256, d_k)
        self.register_buffer("cosines", cosines, persistent=False)
        self.register_buffer("sines", sines, persistent=False)

    def rotation(self, length: int, offset: int = 0) -> Rotation | None:
        """Cosines and sines of positions `offset …`, each `(length, d_k)`."""
        end = offset + length
        # Another thread may replace the tables meanwhile, by smaller ones than are needed here.
        cosines, sines = self.cosines, self.sines
        if end > min(cosines.size(0), sines.size(0)):
            # A table made under inference_mode could not be used in training afterwards.
            with torch.inference_mode(False):
                made = rotary_table(2 * end, self.d_k)
                cosines, sines = made[0].to(cosines), made[1].to(sines)
                self.cosines, self.sines = cosines, sines
        return cosines[offset:end], sines[offset:end]


class RelativePositions(Positions):
    """Distances for self-attention instead of anything added to embeddings; works at any length."""

    def __init__(self, d_model: int, d_k: int, max_positions: int) -> None:
        super().__init__(d_model, d_k, max_positions)
        self.places: Tensor
        self.register_buffer("places", torch.arange(256), persistent=False)

    def distances(self, n_queries: int, n_keys: int, offset: int = 0) -> Tensor | None:
        """The position of each key minus that of each query.

        Args:
            n_queries: number of queries; the first is at position `offset`.
            n_keys: number of keys; the first is at position 0.
            offset: position of the first query.

        Returns:
            Whole numbers, `(n_queries, n_keys)`.
        """
        end = max(n_keys, offset + n_queries)
        # Another thread may replace the table meanwhile, by a smaller one than is needed here.
        places = self.places
        if end > len(places):
            with torch.inference_mode(False):
                self.places = places = torch.arange(2 * end, device=places.device)
        return places[:n_keys] - places[offset : offset + n_queries, None]


POSITIONS: dict[str, type[Positions]] = {
    "sinusoidal": SinusoidalPositions,
    "sinusoidal_halves": SinusoidalHalvesPositions,
    "learned": LearnedPositions,
    "rotary": RotaryPositions,
    "none": NoPositions,
    "absolute": AbsolutePositions,
    "seed1": Seed1Positions,
    "shaw": RelativePositions,
    "alibi": RelativePositions,
}
