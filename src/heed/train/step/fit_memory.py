"""A batch that does not fit into memory: the same gradients in several parts.

The size that fits is measured before the first step (`positions_that_fit`); if memory still runs
out, the step is repeated in smaller parts (`in_parts`). Dropout draws different numbers for parts
than for the whole, so such a run is not bit-exact with one that did not split; the loop counts
these steps. Gradient accumulation (`training.accumulate`) is different: it is a setting.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from heed.data.batch import Batch
from heed.errors import RunError

Result = TypeVar("Result")

PEAK, PEAK_RECOMPUTING = 1.6, 0.7
"""Most memory that a step takes, relative to the tensors that layers keep for the backward pass;
measured on presets tiny, small and base, 2,000 to 8,000 tokens a side: 1.2 to 1.6, and 0.7 if
layers recompute."""


def positions_that_fit(
    compute: Callable[[Batch], Any],
    batch: Batch,
    *,
    most: int,
    spare_bytes: float,
    weights_bytes: int,
    peak: float = PEAK,
) -> int:
    """Number of positions, source and target together, that fit in memory; 0 = `most`.

    One row and then two are computed forward; the difference is the memory of a row. If even they
    do not fit, the result is 0, too: `in_parts` handles that.

    Args:
        compute: part of a batch → its loss, with the tensors that autograd keeps for it.
        batch: two rows or more, the longest of the corpus.
        most: positions of the largest batch.
        spare_bytes: available memory.
        weights_bytes: size of the weights; gradients and averages need as much again each, and the
            state of the optimizer twice as much.
        peak: most memory that a step takes, relative to the part kept for the backward pass.
    """
    try:
        first = bytes_kept(lambda: compute(_rows(batch, 0, 1)))
        a_row = max(1, bytes_kept(lambda: compute(_rows(batch, 0, 2))) - first)
    except (MemoryError, RuntimeError) as error:
        if is_out_of_memory(error):
            return 0
        raise
    for_rows = max(0.0, spare_bytes - peak * (first - a_row) - 4 * weights_bytes)
    positions = for_rows / (peak * a_row) * _row_positions(batch)
    return 0 if positions >= most else max(1, int(positions))


def needed_parts(batch: Batch, at_once: int) -> int:
    """Parts of a batch with at most this number of positions each; 0 = any number."""
    return -(-len(batch.src) * _row_positions(batch) // at_once) if at_once else 1


def _row_positions(batch: Batch) -> int:
    return batch.src.size(1) + batch.tgt_in.size(1)


def bytes_kept(compute: Callable[[], Any]) -> int:
    """Size of the tensors that autograd keeps for the backward pass."""
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        result = compute()
    del result  # held until here, so that no two tensors had the same address
    return sum(kept.values())


def in_parts(
    compute: Callable[[int], Result],
    *,
    undo: Callable[[], None],
    max_parts: int,
    can_repeat: bool = True,
) -> tuple[Result, int]:
    """`compute(1)`, or twice as many parts each time that memory runs out.

    Args:
        compute: number of parts → result.
        undo: removes the effects of a failed attempt.
        max_parts: rows of the largest batch.
        can_repeat: False if other processes take part in it.

    Returns:
        The result and the number of parts.

    Raises:
        RunError: a single row does not fit, or the attempt cannot be repeated.
    """
    n_parts = 1
    while True:
        try:
            return compute(n_parts), n_parts
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
        if not can_repeat:
            raise RunError(
                "a batch does not fit into memory, and with training.shard a step cannot be "
                "repeated in smaller parts. Continue with more processes, or start a new run "
                "with fewer training.batch_tokens or with training.recompute=true."
            )
        # Outside the handler: inside, the error would still hold the tensors of the attempt.
        undo()
        if n_parts >= max_parts:
            raise RunError(
                "a single training pair does not fit into memory. Lower data.max_length or choose "
                "a smaller model, and start a new run."
            )
        n_parts *= 2


def is_out_of_memory(error: BaseException) -> bool:
    """Whether Python, a GPU or torch's CPU allocator ran out of memory."""
    is_ours = isinstance(error, MemoryError | torch.OutOfMemoryError)
    return is_ours or "can't allocate memory" in str(error) or "not enough memory" in str(error)


def split(batch: Batch, n_parts: int) -> list[Batch]:
    """A batch's rows in at most `n_parts` parts; token counts stay those of the whole."""
    n_rows = len(batch.src)
    size = -(-n_rows // n_parts)
    return [_rows(batch, start, start + size) for start in range(0, n_rows, size)]


def _rows(batch: Batch, start: int, end: int) -> Batch:
    rows = slice(start, end)
    return Batch(
        src=batch.src[rows],
        tgt_in=batch.tgt_in[rows],
        tgt_out=batch.tgt_out[rows],
        src_mask=None if batch.src_mask is None else batch.src_mask[rows],
        n_src_tokens=batch.n_src_tokens,
        n_tgt_tokens=batch.n_tgt_tokens,
        indices=batch.indices[rows],
    )
