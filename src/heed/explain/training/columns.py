"""Columns of numbers with a bounded length: older rows are merged into means."""

from collections.abc import Mapping, Sequence

MAX_ROWS = 4096
"""Must be even."""

Row = tuple[float | None, ...]


class Columns:
    """A table that grows; when it is full, each two rows are merged, and so are later ones.

    Attributes:
        rows: a value for each name; None if there is none.
        stride: number of appended rows in each stored row.
        n_halvings: number of times that the table was full.

    Args:
        names: names of the columns.
        places: columns that give the place of a row. When rows are merged, the last value of these
            columns is kept, and the mean of all others.
    """

    def __init__(self, names: Sequence[str], *, places: Sequence[str]) -> None:
        self.names = tuple(names)
        self.rows: list[Row] = []
        self.stride = 1
        self.n_halvings = 0
        self._is_place = [name in places for name in names]
        self._waiting: list[Row] = []

    def append(self, values: Mapping[str, float | None]) -> None:
        """Add a row; names that are missing have no value."""
        self._waiting.append(tuple(values.get(name) for name in self.names))
        if len(self._waiting) < self.stride:
            return
        self.rows.append(self._merged(self._waiting))
        self._waiting = []
        if len(self.rows) == MAX_ROWS:
            self.rows = [self._merged(self.rows[i : i + 2]) for i in range(0, MAX_ROWS, 2)]
            self.stride *= 2
            self.n_halvings += 1

    def column(self, name: str) -> list[float | None]:
        """The values of one column."""
        place = self.names.index(name)
        return [row[place] for row in self.rows]

    def as_dict(self, start: int = 0) -> dict[str, list[float | None]]:
        """All columns by name, starting at a row."""
        columns = zip(*self.rows[start:], strict=True) if self.rows[start:] else ((),) * 99
        return {name: list(column) for name, column in zip(self.names, columns, strict=False)}

    def _merged(self, rows: list[Row]) -> Row:
        if len(rows) == 1:
            return rows[0]
        columns = zip(self._is_place, zip(*rows, strict=True), strict=True)
        return tuple(values[-1] if is_place else _mean(values) for is_place, values in columns)


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None
