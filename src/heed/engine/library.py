"""The compiled library, `engine/*.cpp`: its path, its functions, and the records they take.

Every array is checked before its address is passed on; the library checks ids, rows and lengths.
"""

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_double, c_float, c_int32, c_int64, c_void_p
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from heed.engine.matrices import COLUMNS, GROUP, Floats, Matrix
from heed.engine.network import Network
from heed.engine.tables import PositionRows
from heed.machine.compiled import LIBRARY, check
from heed.model import interface
from heed.model.interface import Ids

ACTIVATIONS = ("none", "relu", "gelu", "swiglu")
TARGET_READINGS = ("attention", "average", "average_feed_forward", "ssru")
EARLY_STOPPING = ("first", "bound", "never")


class ConfigRecord(Structure):
    """`heed::Config`."""

    _fields_ = [
        *((name, c_int32) for name in ("d_model", "n_heads", "d_k", "d_v", "d_ff")),
        *((name, c_int32) for name in ("n_encoder_layers", "n_decoder_layers", "is_pre_norm")),
        *((name, c_int32) for name in ("activation", "is_rotary", "is_same_layer")),
        *((name, c_int32) for name in ("is_one_stack", "is_causal", "target_reading")),
        *((name, c_int32) for name in ("src_vocab_size", "tgt_vocab_size")),
        *((name, c_float) for name in ("norm_eps", "embedding_scale")),
    ]


class MatrixRecord(Structure):
    """`heed::Matrix`."""

    _fields_ = [
        *((name, c_int32) for name in ("n", "k")),
        *((name, c_void_p) for name in ("ints", "scales", "floats", "bias", "starts", "next")),
    ]


class PositionsRecord(Structure):
    """`heed::Positions`."""

    _fields_ = [
        ("n", c_int32),
        *((name, c_void_p) for name in ("added", "cosines", "sines")),
    ]
    tables: PositionRows | None = None

    @classmethod
    def of(cls, tables: PositionRows) -> Self:
        """The addresses of these tables, which live as long as the record."""
        places = cls(tables.n, *map(address_of, (tables.added, tables.cosines, tables.sines)))
        places.tables = tables
        return places


class BestRecord(Structure):
    """`heed::Best`."""

    _fields_ = [
        *((name, c_int32) for name in ("count", "n_forbidden")),
        *((name, c_void_p) for name in ("values", "ids", "forbidden")),
    ]


class SearchRecord(Structure):
    """`heed::SearchOptions`."""

    _fields_ = [
        *((name, c_int32) for name in ("n_best", "early_stopping", "n_forbidden", "n_penalties")),
        *((name, c_int32) for name in ("min_length", "no_repeat_ngram_size")),
        *((name, c_int32) for name in ("prefix_len", "n_slots")),
        *((name, c_int64) for name in ("bos_id", "eos_id")),
        *((name, c_void_p) for name in ("forbidden", "limits", "divisors", "penalties")),
        *((name, c_void_p) for name in ("prefixes", "slots", "is_slot")),
        *((name, c_void_p) for name in ("parents", "depths", "closers", "is_closer")),
        ("missing_cost", c_double),
    ]


class ProgressRecord(Structure):
    """`heed::Progress`."""

    _fields_ = [
        *((name, c_int32) for name in ("n_sources", "stuck")),
        ("best", c_double),
        ("sources", c_void_p),
    ]


@cache
def functions() -> ctypes.CDLL:
    """The compiled library, whose functions are those of `engine/api.cpp`.

    Raises:
        OSError: it was not compiled here, or it is for another kind of machine.
    """
    compiled = ctypes.CDLL(str(LIBRARY))
    ids, floats, handle, words = c_void_p, c_void_p, c_void_p, c_char_p
    places, made = POINTER(PositionsRecord), POINTER(handle)
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "kernels": (words, [words]),
        "model_new": (
            words,
            [
                POINTER(ConfigRecord),
                POINTER(MatrixRecord),
                c_int32,
                POINTER(c_void_p),
                c_int32,
                words,
                c_int32,
                POINTER(handle),
            ],
        ),
        "model_delete": (None, [handle]),
        "give_back": (c_int64, []),
        "model_always": (words, [handle, POINTER(MatrixRecord), ids, c_int32]),
        "state_shorten": (words, [handle, handle, ids, c_void_p, c_int32]),
        "state_new": (words, [handle, places, ids, c_void_p, c_int32, c_int32, made, c_int32]),
        "state_delete": (None, [handle]),
        "state_step": (words, [handle, places, ids, c_int32, POINTER(BestRecord)]),
        "state_extend": (words, [handle, places, ids, c_int32, c_int32, ids, floats, floats]),
        "state_attention": (words, [handle, places, ids, c_int32, c_int32, c_int32, floats]),
        "state_log_probs": (words, [handle, floats, c_int32]),
        "state_log_probs_of": (words, [handle, ids, c_int32, c_int32, floats]),
        "state_best": (words, [handle, POINTER(BestRecord), c_int32]),
        "state_select": (words, [handle, ids, c_int32, ids, c_int32]),
        "search_new": (words, [handle, POINTER(SearchRecord), made]),
        "search_delete": (None, [handle]),
        "search_step": (words, [handle, places, POINTER(ProgressRecord)]),
        "search_drop": (words, [handle, c_void_p, c_int32]),
        "search_found": (words, [handle, c_int32, c_void_p, c_void_p, c_void_p, ids, floats]),
        "largest": (words, [floats, c_int64, c_int32, c_int32, c_int32, floats, ids]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(compiled, f"heed_{name}")
        function.restype, function.argtypes = result, arguments
    return compiled


@cache
def is_compiled() -> bool:
    """Whether the library exists and loads; cached, because searches call this at every step."""
    try:
        functions()
    except OSError:
        return False
    return True


def give_back_memory() -> int:
    """Free the unused memory of batches, of all models; return the number of bytes freed."""
    return int(functions().heed_give_back()) if is_compiled() else 0


def kernels(name: str = "") -> str | None:
    """The instruction set of that name, or the best one here; None if this machine lacks it.

    Args:
        name: `amx`, `avx512`, `avxvnni`, `avx2`, `dotprod`, `neon`, `portable`, or "" for the
            best.
    """
    found: bytes | None = functions().heed_kernels(name.encode())
    return found.decode() if found else None


MOST_INSERTED = 512
"""Up to this many of the largest are found by insertion, whose time grows with their number, more
by sorting. For 16 rows of 8,000 numbers that takes 19 ms, inserting 2,048 of each takes 87."""


def largest(scores: Floats, count: int) -> tuple[Floats, Ids]:
    """The `count` largest of each row, largest first, the lower id first among equals.

    Args:
        scores: `(rows, vocab_size)`, each row contiguous.
        count: at least 1; all, if there are fewer.

    Returns:
        The values and their ids, both `(rows, count)`.
    """
    rows, width = scores.shape
    count = min(count, width)
    if count > MOST_INSERTED:
        return interface.largest(scores, count)
    assert scores.dtype == np.float32
    assert scores.strides[1] == scores.itemsize
    values, ids = np.empty((rows, count), np.float32), np.empty((rows, count), np.int64)
    stride = scores.strides[0] // scores.itemsize
    check(
        functions().heed_largest(
            scores.ctypes.data, stride, rows, width, count, values.ctypes.data, ids.ctypes.data
        )
    )
    return values, ids


def address_of(array: NDArray[Any] | None) -> int | None:
    """The address of an array's numbers; None for None."""
    return None if array is None else array.ctypes.data


def checked_address(
    array: NDArray[Any] | None, shape: tuple[int, ...], dtype: type = np.float32
) -> int | None:
    """The address of an array, after a check of its size, which C++ cannot make."""
    if array is not None:
        assert array.shape == shape, f"{array.shape} is not {shape}"
        assert array.dtype == dtype
        assert array.flags.c_contiguous
    return address_of(array)


def matrix_record(matrix: Matrix) -> MatrixRecord:
    """The addresses of a matrix, whose arrays must outlive the record."""
    n_panels, is_int8 = -(-matrix.n // COLUMNS), matrix.is_quantized
    groups = (n_panels, -(-matrix.k // GROUP), COLUMNS, GROUP)
    shape = groups if is_int8 else (n_panels, matrix.k, COLUMNS)
    panels = checked_address(matrix.panels, shape, np.int8 if is_int8 else np.float32)
    ints, floats = (panels, None) if is_int8 else (None, panels)
    scales, bias = (checked_address(v, (n_panels * COLUMNS,)) for v in (matrix.scales, matrix.bias))
    return MatrixRecord(matrix.n, matrix.k, ints, scales, floats, bias, None)


def config_record(network: Network) -> ConfigRecord:
    """The shape of a network."""
    config, stacks = network.config, network.stacks
    return ConfigRecord(
        config.d_model,
        config.n_heads,
        config.key_width,
        config.value_width,
        config.d_ff,
        stacks.n_encoder_layers,
        stacks.n_decoder_layers,
        config.norm == "pre",
        ACTIVATIONS.index(config.activation),
        config.positions == "rotary",
        stacks.is_same_layer,
        stacks.is_one_stack,
        stacks.is_causal,
        TARGET_READINGS.index(stacks.target_reading),
        config.src_vocab_size,
        config.tgt_vocab_size,
        config.norm_eps,
        config.d_model**0.5 if config.scale_embedding else 1.0,
    )
