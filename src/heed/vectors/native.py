"""Skip-gram and CBOW in the compiled library, engine/word2vec.inc: the same bits as `plain.py`."""

from ctypes import POINTER, Structure, byref, c_char_p, c_float, c_int32, c_uint64, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.machine.compiled import check, function
from heed.vectors.plain import Learner


class _WordVectors(Structure):
    _fields_ = [
        *((name, c_int32) for name in ("n_words", "size", "window", "negative", "is_cbow")),
        *((name, c_void_p) for name in ("keep", "chances", "others", "inputs", "outputs")),
    ]


class _Lines(Structure):
    _fields_ = [("ids", c_void_p), ("ends", c_void_p), ("n_lines", c_int32)]


def _function() -> Any:
    """The library's function; None if the library is missing or lacks it."""
    records = POINTER(_WordVectors), POINTER(_Lines)
    return function("heed_learn_words", (*records, c_float, POINTER(c_uint64), c_char_p))


def is_compiled() -> bool:
    """Whether the compiled library has the function."""
    return _function() is not None


def learn_lines(
    learner: Learner,
    ids: NDArray[np.int32],
    ends: NDArray[np.int64],
    rate: float,
    state: int,
    *,
    kernels: str = "",
) -> int:
    """Do the same as `heed.vectors.plain.learn_lines`, hundreds of times as fast.

    Args:
        learner: the vectors; changed in place.
        ids: the words of all lines, concatenated.
        ends: where each line ends.
        rate: the learning rate.
        state: the state of the random generator, below 2**48.
        kernels: `avx512`, `avx2`, `neon`, `portable`, or "" for the fastest one; all give the same
            bits.

    Returns:
        The state of the generator afterwards.

    Raises:
        HeedError: this processor does not have that instruction set.
    """
    n_words, width = learner.inputs.shape
    for array, shape, dtype in (
        (learner.inputs, (n_words, width), np.float32),
        (learner.outputs, (n_words, width), np.float32),
        (learner.keep, (n_words,), np.uint32),
        (learner.chances, (n_words,), np.uint32),
        (learner.others, (n_words,), np.int32),
    ):
        assert array.shape == shape
        assert array.dtype == dtype
        assert array.flags.c_contiguous
    assert width == -(-learner.size // 16) * 16
    ids, line_ends = np.ascontiguousarray(ids, np.int32), np.ascontiguousarray(ends, np.int64)
    assert not len(line_ends) or line_ends.max() <= len(ids)
    addresses = (
        array.ctypes.data
        for array in (
            learner.keep, learner.chances, learner.others, learner.inputs, learner.outputs
        )
    )  # fmt: skip
    sizes = learner.size, learner.window, learner.negative, learner.is_cbow
    vectors = _WordVectors(n_words, *sizes, *addresses)
    lines = _Lines(ids.ctypes.data, line_ends.ctypes.data, len(line_ends))
    after = c_uint64(state)
    check(_function()(byref(vectors), byref(lines), rate, byref(after), kernels.encode()))
    return after.value
