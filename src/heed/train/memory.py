"""When a batch does not fit into memory: the same gradients in several parts.

Not gradient accumulation (`accumulate` in `config.py`), which a person chooses. Dropout draws other
numbers for parts than for the whole, so a run that had to split is not bit-exact with one that had
not; the loop counts such steps.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

import torch

from heed.data.batch import Batch
from heed.errors import RunError

Result = TypeVar("Result")


def in_parts(
    compute: Callable[[int], Result], *, undo: Callable[[], None], max_parts: int
) -> tuple[Result, int]:
    """`compute(1)`, or in twice as many parts each time that memory does not suffice.

    Args:
        compute: number of parts → result.
        undo: forgets what a failed attempt has left behind.
        max_parts: rows of the largest batch: smaller parts there are not.

    Returns:
        The result and the number of parts.

    Raises:
        RunError: a single row does not fit.
    """
    n_parts = 1
    while True:
        try:
            return compute(n_parts), n_parts
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
        # Outside the handler: there the error would still hold the tensors of the attempt.
        undo()
        if n_parts >= max_parts:
            raise RunError(
                "a single training pair does not fit into memory. Lower data.max_length or choose "
                "a smaller model, and start a new run."
            )
        n_parts *= 2


def is_out_of_memory(error: BaseException) -> bool:
    """Whether Python, a GPU or torch's CPU allocator says that there is no memory left."""
    is_ours = isinstance(error, MemoryError | torch.OutOfMemoryError)
    return is_ours or "can't allocate memory" in str(error) or "not enough memory" in str(error)


def split(batch: Batch, n_parts: int) -> Iterator[Batch]:
    """A batch's rows in so many parts or fewer; token counts are not divided, nobody asks them."""
    n_rows = len(batch.src)
    size = -(-n_rows // n_parts)
    for start in range(0, n_rows, size):
        rows = slice(start, start + size)
        yield Batch(
            src=batch.src[rows],
            tgt_in=batch.tgt_in[rows],
            tgt_out=batch.tgt_out[rows],
            src_mask=None if batch.src_mask is None else batch.src_mask[rows],
            n_src_tokens=batch.n_src_tokens,
            n_tgt_tokens=batch.n_tgt_tokens,
            indices=batch.indices[rows],
        )
