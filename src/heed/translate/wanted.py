"""Whether items are still wanted, by their indices in a smaller list or in a batch."""

from collections.abc import Callable, Sequence

import numpy as np

from heed.decode.state import IsWanted as BatchIsWanted

IsWanted = Callable[[int], bool]
"""Whether the item of this index is still wanted; called often, from the thread that searches."""


def of_equals(is_wanted: IsWanted | None, same: Sequence[int]) -> IsWanted | None:
    """`is_wanted` for one of several equal items: True as long as one of them is wanted."""
    if is_wanted is None:
        return None
    items: dict[int, list[int]] = {}
    for item, place in enumerate(same):
        items.setdefault(place, []).append(item)
    return lambda place: any(map(is_wanted, items[place]))


def of_items(is_wanted: IsWanted | None, places: Sequence[int]) -> IsWanted | None:
    """`is_wanted` for some of the items, by their index among these."""
    return None if is_wanted is None else lambda place: is_wanted(places[place])


def of_places(are_wanted: BatchIsWanted | None, places: Sequence[int]) -> BatchIsWanted | None:
    """The same of a part of a batch: its sources are those at these places of the whole."""
    if are_wanted is None:
        return None
    whole = np.array(places)
    return lambda sources: are_wanted(whole[sources])


def of_batch(is_wanted: IsWanted | None, places: Sequence[int]) -> BatchIsWanted | None:
    """`is_wanted` for the sources of a batch, in the form that searches call."""
    if is_wanted is None:
        return None
    return lambda sources: np.array(
        [bool(is_wanted(places[source])) for source in sources.tolist()]
    )
