"""Whether the compiled library has loops for training on this processor (`engine/training.h`)."""

from functools import cache

from heed.machine.compiled import function


@cache
def has_training_kernels() -> bool:
    """Whether the library is installed and the processor has AVX2, AVX-512 or NEON."""
    found = function("heed_training_is_here", ())
    return found is not None and found() is None
