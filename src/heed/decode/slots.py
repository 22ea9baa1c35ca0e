"""Slots: ids that represent spans of the source; each must occur once, pairs well nested.

The slots form a tree: those inside a pair in the source must come inside it, and the pair closes
when all of them are there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from heed.model.interface import Ids

_ROOT = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """A slot of one source.

    Attributes:
        id: its id; the opening one of a pair.
        closing_id: the closing one of a pair; None = it is not a pair.
        inside: the index, in the list of the source's slots, of the pair around it; None = there
            is none.
    """

    id: int
    closing_id: int | None = None
    inside: int | None = None


@dataclass(frozen=True, kw_only=True)
class SlotRules:
    """The slots of all sources of a call; a column is an id that is a slot of any of them.

    Attributes:
        ids: of the columns, `(n_columns,)`.
        columns: the column of each id up to one more than the highest of them, -1 if it has none,
            `(highest + 2,)`.
        is_slot: whether a source has the slot, `(n_sources, n_columns)`.
        parents: the column of the pair around it, -1 if there is none, `(n_sources, n_columns)`;
            for a closing slot, the column of its pair.
        depths: for an opening slot, one more than the number of pairs around it; 0 for others,
            `(n_sources, n_columns)`.
        closers: for an opening slot, the column of its closing slot; its own for others,
            `(n_sources, n_columns)`.
        is_closer: `(n_sources, n_columns)`.
    """

    ids: Ids
    columns: Ids
    is_slot: NDArray[np.bool_]
    parents: Ids
    depths: Ids
    closers: Ids
    is_closer: NDArray[np.bool_]

    @classmethod
    def of(cls, slots: Sequence[Sequence[Slot]]) -> Self | None:
        """The rules for the slots of each source; None if there are none at all."""
        of_sources = [
            {id for slot in listed for id in (slot.id, slot.closing_id) if id is not None}
            for listed in slots
        ]
        ids = np.array(sorted(set().union(*of_sources)), dtype=np.int64)
        if not len(ids):
            return None
        columns = np.full(ids[-1] + 2, -1)
        columns[ids] = np.arange(len(ids))
        shape = len(slots), len(ids)
        found = cls(
            ids=ids,
            columns=columns,
            is_slot=np.zeros(shape, dtype=bool),
            parents=np.full(shape, _ROOT),
            depths=np.zeros(shape, dtype=np.int64),
            closers=np.tile(np.arange(len(ids)), (len(slots), 1)),
            is_closer=np.zeros(shape, dtype=bool),
        )
        for source, listed in enumerate(slots):
            found._add(source, listed)
        return found

    def _add(self, source: int, slots: Sequence[Slot]) -> None:
        for slot in slots:
            column = self.columns[slot.id]
            self.is_slot[source, column] = True
            depth, around = 1, slot.inside
            if around is not None:
                self.parents[source, column] = self.columns[slots[around].id]
            while around is not None:
                depth, around = depth + 1, slots[around].inside
            if slot.closing_id is not None:
                closer = self.columns[slot.closing_id]
                self.depths[source, column] = depth
                self.closers[source, column] = closer
                self.is_slot[source, closer] = self.is_closer[source, closer] = True
                self.parents[source, closer] = column

    def next(self, tokens: Ids, sources: Ids) -> tuple[NDArray[np.bool_], Ids]:
        """Which slots may come next in each row, and how many slots it lacks.

        Args:
            tokens: predicted so far, `(rows, length)`.
            sources: the source of the call for each row, `(rows,)`.

        Returns:
            `(rows, n_columns)` and `(rows,)`.
        """
        missing = self.is_slot[sources]
        columns = self.columns[np.minimum(tokens, len(self.columns) - 1)]
        rows, places = (columns >= 0).nonzero()
        missing[rows, columns[rows, places]] = False
        every = np.arange(len(tokens))[:, None]
        # A pair is open if its opening slot is there and its closing slot is not.
        depths = self.depths[sources] * (missing[every, self.closers[sources]] & ~missing)
        innermost = np.where(depths.any(axis=1), depths.argmax(axis=1), _ROOT)
        may_come = missing & (self.parents[sources] == innermost[:, None])
        # A pair stays open as long as any slot other than its closing one may come inside it.
        is_closer = self.is_closer[sources]
        has_others = (may_come & ~is_closer).any(axis=1)
        may_come &= ~(is_closer & has_others[:, None])
        return may_come, missing.sum(axis=1)
