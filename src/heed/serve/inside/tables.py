"""`Tables`: embeddings and positions of served models, read once per version of a model."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from heed.bundle.bundle import load_bundle
from heed.errors import HeedError
from heed.serve.work.directions import no_model, no_models
from heed.serve.work.failures import refusal_of_model
from heed.serve.work.models import Models
from heed.serve.work.versions import version_of

if TYPE_CHECKING:
    from heed.explain.embeddings import Map
    from heed.explain.positions import PositionTable, Side
    from heed.vectors.pieces import PieceTable

Key = TypeVar("Key")
Table = TypeVar("Table")

N_KEPT = 2
"""Number of models whose embeddings are in memory."""

N_KEPT_POSITIONS = 8
"""Number of tables of positions in memory. One of 1,024 positions takes a few MB."""


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """The embeddings of a model and their map.

    Attributes:
        tables: one shared table, or the source's and the target's.
        map: map of all pieces.
    """

    tables: "list[PieceTable]"
    map: "Map"

    def of_side(self, side: str) -> "PieceTable":
        """The table of `source` or `target`, which may be shared."""
        return self.tables[-1] if side == "target" else self.tables[0]


class Tables:
    """Reads tables of models. Call all methods in the event loop.

    Args:
        models: the served models.
    """

    def __init__(self, models: Models) -> None:
        self._models = models
        self._kept: OrderedDict[str, Pieces] = OrderedDict()  # by version
        self._positions: OrderedDict[tuple[object, ...], PositionTable] = OrderedDict()
        self._reading = asyncio.Lock()

    async def pieces(self, model: str | None) -> Pieces:
        """The embeddings of a model.

        Args:
            model: its name; None = the first.

        Raises:
            Refusal: there is no such model, or it cannot be read.
        """
        from heed.explain.embeddings import map_of_pieces
        from heed.vectors.pieces import load_exact, piece_tables

        name = self.name_of(model)
        folder = self._models.folders[name]
        try:
            async with self._reading:  # two loads at once would take twice the memory
                version = await asyncio.to_thread(version_of, folder)
                if version not in self._kept:
                    tables = piece_tables(await asyncio.to_thread(load_exact, folder))
                    found = await asyncio.to_thread(map_of_pieces, tables)
                    self._kept[version] = Pieces(tables=tables, map=found)
                return _used(self._kept, version, N_KEPT)
        except (HeedError, OSError) as error:
            raise refusal_of_model(error, name, folder) from error

    async def positions(
        self, model: str | None, n_positions: int | None, side: "Side"
    ) -> "PositionTable":
        """The positions of a model; see `heed.explain.positions.model_positions`.

        Args:
            model: its name; None = the first.
            n_positions: rows of a computed table; None = the usual number.
            side: side of the table.

        Raises:
            Refusal: there is no such model, it cannot be read, or it has no positions.
        """
        name = self.name_of(model)
        folder = self._models.folders[name]

        def read() -> "PositionTable":
            from heed.explain.positions import model_positions

            return model_positions(load_bundle(folder, prefer_int8=True), n_positions, side=side)

        try:
            async with self._reading:
                which = await asyncio.to_thread(version_of, folder), n_positions, side
                if which not in self._positions:
                    self._positions[which] = await asyncio.to_thread(read)
                return _used(self._positions, which, N_KEPT_POSITIONS)
        except (HeedError, OSError) as error:
            raise refusal_of_model(error, name, folder) from error

    def name_of(self, model: str | None) -> str:
        """The name of a served model.

        Raises:
            Refusal: there is no model of this name, or none at all.
        """
        if not self._models.folders:
            raise no_models()
        if model is not None and model not in self._models.folders:
            raise no_model(model)
        return model or next(iter(self._models.folders))


def _used(kept: OrderedDict[Key, Table], key: Key, most: int) -> Table:
    """A kept table, from now on the latest; of more than `most`, the oldest ones are dropped."""
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)
    return kept[key]
