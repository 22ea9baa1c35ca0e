"""Whether the compiled library has loops for training on this processor (`engine/training.h`)."""

from functools import cache

from heed.machine.compiled import function


@cache
def are_here() -> bool:
    """Whether there is a library, and AVX2 or AVX-512 for it."""
    found = function("heed_training_is_here", ())
    return found is not None and found() is None
