"""Attention of all heads in one call for training on a CPU, from projections to contexts.

`engine/attention.inc` computes it in float32, for processors with AVX2, AVX-512 or NEON. torch
copies queries, keys and values, rotates them in several passes over memory, and has a kernel made
for sequences longer than sentences.
"""

from ctypes import Structure, addressof, c_char_p, c_int32, c_void_p
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from heed.machine.compiled import check, function
from heed.model.fast.kernels import has_training_kernels

_FORWARD = "heed_attention_forward", (c_void_p, c_char_p, *[c_void_p] * 2)
_BACKWARD = "heed_attention_backward", (c_void_p, c_char_p, *[c_void_p] * 5)

_TENSORS = "query", "key", "value", "cosines", "sines", "mask"
_SIZES = "batch", "q_len", "k_len", "n_heads", "width", "query_stride", "memory_stride"


class _Arguments(Structure):
    _fields_ = (
        *((name, c_void_p) for name in _TENSORS),
        *((name, c_int32) for name in (*_SIZES, "is_causal", "n_threads")),
    )


class Read(NamedTuple):
    """How queries read keys and values.

    Attributes:
        n_heads: number of heads.
        mask: True where reading is allowed, `(batch, 1, 1, k_len)`; None = everywhere.
        is_causal: position t reads no position after t.
        rotation: rotary cosines and sines of all positions, each `(length, d_k)`.
    """

    n_heads: int
    mask: Tensor | None = None
    is_causal: bool = False
    rotation: tuple[Tensor, Tensor] | None = None


def fits(x: Tensor, d_k: int, read: Read) -> bool:
    """Whether `attend` can compute with projections of `x`.

    Args:
        x: the input of the queries, `(batch, q_len, d_model)`.
        d_k: width of queries, keys and values in one head.
        read: how queries read keys and values.
    """
    mask, rotation = read.mask, read.rotation
    return (
        x.device.type == "cpu"
        and x.dtype == torch.float32
        and x.dim() == 3
        and x.numel() > 0
        and torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and d_k % (16 if rotation is None else 32) == 0
        and (mask is None or (mask.dim() == 4 and mask.shape[:3] == (len(x), 1, 1)))
        and (rotation is None or rotation[0].shape == (x.size(1), d_k))
        and has_training_kernels()
    )


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, memory: Tensor | None, read: Read, kernels: str
    ) -> Tensor:
        n_parts = 3 if memory is None else 1
        batch, q_len, width = queries.size(0), queries.size(1), queries.size(2) // n_parts
        context = queries.new_empty(batch, q_len, width)
        normalizers = queries.new_empty(batch, read.n_heads, q_len, 2)
        _call(_FORWARD, queries, memory, read, kernels, (context, normalizers))
        ctx.save_for_backward(queries, memory, normalizers)
        ctx.read, ctx.kernels = read, kernels
        return context

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        queries, memory, normalizers = ctx.saved_tensors
        of_queries = torch.empty_like(queries)
        of_memory = None if memory is None else torch.empty_like(memory)
        found = _parts(of_queries, of_memory)
        given = normalizers, grad.contiguous()
        _call(_BACKWARD, queries, memory, ctx.read, ctx.kernels, (*given, *found))
        return of_queries, of_memory, None, None


def attend(queries: Tensor, memory: Tensor | None, read: Read, *, kernels: str = "") -> Tensor:
    """The contexts of all heads, joined; as `heed.model.attention.attend`, with gradients.

    Args:
        queries: their projections, `(batch, q_len, width)`; in self-attention those of queries,
            keys and values, `(batch, length, 3 * width)`.
        memory: projections of keys and values, `(batch, k_len, 2 * width)`; None = self-attention.
        read: how queries read keys and values.
        kernels: the instruction set, `avx2`, `avx512` or `neon`; "" = the best of this processor.

    Returns:
        `(batch, q_len, width)`.

    Raises:
        HeedError: there is not enough memory, or this processor lacks the instruction set.
    """
    memory = None if memory is None else memory.contiguous()
    context: Tensor = _Attention.apply(queries.contiguous(), memory, read, kernels)  # type: ignore[no-untyped-call]
    return context


def _parts(queries: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Views of queries, keys and values."""
    if memory is None:
        query, key, value = queries.chunk(3, dim=-1)
        return query, key, value
    key, value = memory.chunk(2, dim=-1)
    return queries, key, value


def _call(
    name: tuple[str, tuple[Any, ...]],
    queries: Tensor,
    memory: Tensor | None,
    read: Read,
    kernels: str,
    others: tuple[Tensor, ...],
) -> None:
    query, key, value = _parts(queries, memory)
    mask = None if read.mask is None else read.mask.expand(len(key), 1, 1, key.size(1)).contiguous()
    turns = (None, None) if read.rotation is None else [each.contiguous() for each in read.rotation]
    given = [
        None if each is None else each.data_ptr() for each in (query, key, value, *turns, mask)
    ]
    sizes = len(query), query.size(1), key.size(1), read.n_heads, query.size(2) // read.n_heads
    # Not `query.stride(1)`, which may be any number if there is one token.
    strides = queries.size(-1), (queries if memory is None else memory).size(-1)
    arguments = _Arguments(*given, *sizes, *strides, read.is_causal, torch.get_num_threads())
    addresses = [each.data_ptr() for each in others]
    check(function(*name)(addressof(arguments), kernels.encode(), *addresses))
