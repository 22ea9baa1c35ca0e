"""Empty translations, which are searched again for one of at least one token.

A search with a low length limit often completes the empty hypothesis only; and a model may give it
the largest score where the source is unlike its training text.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from heed.decode.options import DecodeOptions
from heed.decode.state import Hypothesis
from heed.decode.state import IsWanted as BatchIsWanted
from heed.translate.parts import Chunk
from heed.translate.wanted import of_places

MIN_LIMIT = 2
"""The lowest length limit with room for a token and `<eos>`."""

Search = Callable[[Sequence[Chunk], DecodeOptions, BatchIsWanted | None], list[list[Hypothesis]]]
"""Searches parts in one batch; returns the hypotheses of each, best first."""


def search_non_empty(
    search: Search,
    chunks: Sequence[Chunk],
    options: DecodeOptions,
    is_wanted: BatchIsWanted | None,
) -> list[list[Hypothesis]]:
    """The hypotheses of parts; no best one is empty, if there is another.

    Args:
        search: searches parts.
        chunks: the parts.
        options: of the search; samples are not replaced.
        is_wanted: called after every step with indices in `chunks`.
    """
    found = search(chunks, options, is_wanted)
    empty = [place for place, some in enumerate(found) if some and not some[0].ids]
    if not empty or options.sample or options.min_length or options.max_length < MIN_LIMIT:
        return found
    are_wanted = of_places(is_wanted, empty)
    again = search([chunks[place] for place in empty], replace(options, min_length=1), are_wanted)
    for place, some in zip(empty, again, strict=True):
        found[place] = some
    return found
