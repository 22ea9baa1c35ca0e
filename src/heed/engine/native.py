"""The compiled engine, `engine/*.cpp`, behind two small classes.

Every array is checked before its address is passed on; the library checks ids, rows and lengths.
"""

import ctypes
import os
from ctypes import POINTER, Structure, byref, c_char_p, c_float, c_int32, c_int64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from heed.engine.matrices import COLUMNS, GROUP, Floats, Matrix, ShortIds
from heed.engine.network import Network, norm_roles, roles
from heed.engine.tables import PositionRows, tables_of
from heed.errors import ConfigError, HeedError
from heed.model.interface import Ids

LIBRARY = Path(os.environ.get("HEED_LIBRARY") or Path(__file__).with_name("libheed.so"))
"""The variable names another build, such as that of `make soak`."""
ACTIVATIONS = ("none", "relu", "gelu", "swiglu")
TARGET_READINGS = ("attention", "average", "average_feed_forward", "ssru")


class _Config(Structure):
    _fields_ = [
        *((name, c_int32) for name in ("d_model", "n_heads", "d_k", "d_v", "d_ff")),
        *((name, c_int32) for name in ("n_encoder_layers", "n_decoder_layers", "is_pre_norm")),
        *((name, c_int32) for name in ("activation", "is_rotary", "is_same_layer")),
        *((name, c_int32) for name in ("is_one_stack", "is_causal", "target_reading")),
        *((name, c_int32) for name in ("src_vocab_size", "tgt_vocab_size")),
        *((name, c_float) for name in ("norm_eps", "embedding_scale")),
    ]


class _Matrix(Structure):
    _fields_ = [
        *((name, c_int32) for name in ("n", "k")),
        *((name, c_void_p) for name in ("ints", "scales", "floats", "bias", "starts", "next")),
    ]


class _Positions(Structure):
    _fields_ = [
        ("n", c_int32),
        *((name, c_void_p) for name in ("added", "cosines", "sines")),
    ]
    tables: PositionRows | None = None

    @classmethod
    def of(cls, tables: PositionRows) -> Self:
        places = cls(tables.n, *map(_address, (tables.added, tables.cosines, tables.sines)))
        places.tables = tables
        return places


class _Best(Structure):
    _fields_ = [
        *((name, c_int32) for name in ("count", "n_forbidden")),
        *((name, c_void_p) for name in ("values", "ids", "forbidden")),
    ]


@cache
def _library() -> ctypes.CDLL:
    """The compiled library.

    Raises:
        OSError: it was not compiled here, or it is for another kind of machine.
    """
    library = ctypes.CDLL(str(LIBRARY))
    ids, floats, handle, words = c_void_p, c_void_p, c_void_p, c_char_p
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "kernels": (words, [words]),
        "model_new": (
            words,
            [
                POINTER(_Config),
                POINTER(_Matrix),
                c_int32,
                POINTER(c_void_p),
                c_int32,
                words,
                c_int32,
                POINTER(handle),
            ],
        ),
        "model_delete": (None, [handle]),
        "model_always": (words, [handle, POINTER(_Matrix), ids, c_int32]),
        "state_shorten": (words, [handle, handle, ids, c_void_p, c_int32]),
        "state_new": (
            words,
            [handle, POINTER(_Positions), ids, c_void_p, c_int32, c_int32, POINTER(handle)],
        ),
        "state_delete": (None, [handle]),
        "state_step": (
            words,
            [handle, POINTER(_Positions), ids, c_int32, POINTER(_Best), floats],
        ),
        "state_extend": (words, [handle, POINTER(_Positions), ids, c_int32, c_int32, floats]),
        "state_log_probs": (words, [handle, floats, c_int32]),
        "state_best": (words, [handle, POINTER(_Best), c_int32]),
        "state_select": (words, [handle, ids, c_int32, ids, c_int32]),
        "largest": (words, [floats, c_int64, c_int32, c_int32, c_int32, floats, ids]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, f"heed_{name}")
        function.restype, function.argtypes = result, arguments
    return library


@cache
def is_compiled() -> bool:
    """Whether the library exists and loads; checked once, because searches ask at every step."""
    try:
        _library()
    except OSError:
        return False
    return True


def kernels(name: str = "") -> str | None:
    """The instruction set of that name, or the best one here; None if this machine lacks it.

    Args:
        name: `avx512`, `avxvnni`, `avx2`, `portable`, or "" for the best.
    """
    found: bytes | None = _library().heed_kernels(name.encode())
    return found.decode() if found else None


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
    assert scores.dtype == np.float32
    assert scores.strides[1] == scores.itemsize
    values, ids = np.empty((rows, count), np.float32), np.empty((rows, count), np.int64)
    stride = scores.strides[0] // scores.itemsize
    _check(
        _library().heed_largest(
            scores.ctypes.data, stride, rows, width, count, values.ctypes.data, ids.ctypes.data
        )
    )
    return values, ids


class NativeModel:
    """A network that the compiled engine computes.

    Args:
        network: its weights; they are not copied.
        threads: number of threads.
        kernels: the instruction set; "" = the best here. With int8 the results are the same.

    Raises:
        ConfigError: this machine does not have that instruction set.
    """

    def __init__(self, network: Network, *, threads: int = 1, kernels: str = "") -> None:
        self.network = network
        config = network.config
        matrices = (_Matrix * len(roles(config)))(
            *(_matrix(network.matrices[role]) for role in roles(config))
        )
        vectors = [vector for role in norm_roles(config) for vector in network.norms[role]]
        width = (-(-config.d_model // COLUMNS) * COLUMNS,)
        norms = (c_void_p * len(vectors))(*(_checked(vector, width) for vector in vectors))
        self._handle = c_void_p()
        shape = _config(network)
        error = _library().heed_model_new(
            byref(shape),
            matrices,
            len(matrices),
            norms,
            len(norms),
            kernels.encode(),
            threads,
            byref(self._handle),
        )
        if error:
            raise ConfigError(f"{_words(error)}.")
        self._tables = tables_of(network)
        self._places = {side: _Positions() for side in self._tables}

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            _library().heed_model_delete(self._handle)

    def start(self, ids: Ids, lengths: NDArray[np.int32], beam_size: int) -> "NativeState":
        """Read sources.

        Args:
            ids: of all sources, concatenated, `(total_len,)`.
            lengths: of each source, `(n_sources,)`.
            beam_size: rows that will continue each source.
        """
        return NativeState(self, ids, lengths, beam_size)

    def positions(self, side: str, n: int) -> _Positions:
        """Addresses of the tables of at least `n` positions; valid as long as the returned object.

        Raises:
            DataError: the model learned fewer.
        """
        tables = self._tables[side].first(n)
        places = self._places[side]
        if places.tables is not tables:
            places = self._places[side] = _Positions.of(tables)
        return places

    def set_common_ids(self, matrix: Matrix, ids: ShortIds) -> None:
        """Set the ids that may follow in every restricted state.

        Args:
            matrix: columns of the output, and one for all other ids; not copied.
            ids: of all these columns but the last, `(n_ids,)`.
        """
        assert ids.dtype == np.int32
        assert ids.flags.c_contiguous
        self._always = matrix
        _check(
            _library().heed_model_always(
                self._handle, byref(_matrix(matrix)), _address(ids), len(ids)
            )
        )


class _Tokens:
    """Input arrays of a step, for the largest number of rows, and their addresses.

    They are reused: getting an address from NumPy takes as long as a small product.
    """

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.array = np.empty(n_rows, np.int64)
        self.address = _address(self.array)


class _Largest:
    """Output arrays of a step for the largest log-probs that are not forbidden."""

    def __init__(self, n_rows: int, count: int = 0, forbidden: Ids | None = None) -> None:
        self.count, self.forbidden = count, forbidden
        self.position = 0  # of the step in which they were found
        self.values = np.empty((n_rows, count), np.float32)
        self.ids = np.empty((n_rows, count), np.int64)
        self._out = np.ascontiguousarray(() if forbidden is None else forbidden, np.int64)
        self.wanted = _Best(
            count,
            len(self._out),
            _address(self.values),
            _address(self.ids),
            _address(self._out),
        )


class NativeState:
    """A batch of sources in translation; made by `NativeModel.start`."""

    def __init__(
        self, model: NativeModel, ids: Ids, lengths: NDArray[np.int32], beam_size: int
    ) -> None:
        self.model = model
        self.beam_size = beam_size
        self.n_sources = len(lengths)
        self.lengths = lengths
        self.position = 0
        self._tokens, self._largest = _Tokens(0), _Largest(0)
        self._room = np.empty((0, model.network.config.tgt_vocab_size), np.float32)
        self._log_probs: Floats | None = None
        self._handle = c_void_p()
        ids, lengths = np.ascontiguousarray(ids, np.int64), np.ascontiguousarray(lengths, np.int32)
        assert ids.shape == (lengths.sum(),)
        places = model.positions("src", max(1, int(lengths.max())))
        _check(
            _library().heed_state_new(
                model._handle,
                byref(places),
                _address(ids),
                _address(lengths),
                len(lengths),
                beam_size,
                byref(self._handle),
            )
        )

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            _library().heed_state_delete(self._handle)

    def restrict(self, ids: ShortIds, counts: ShortIds) -> None:
        """Restrict the ids that may follow: the model's common ones, and those of each source.

        Args:
            ids: of all sources, concatenated.
            counts: how many each source has, `(n_sources,)`.
        """
        assert ids.dtype == counts.dtype == np.int32
        assert ids.shape == (counts.sum(),)
        _check(
            _library().heed_state_shorten(
                self.model._handle, self._handle, _address(ids), _address(counts), len(counts)
            )
        )

    def step(self, tokens: Ids, *, weights: Floats | None = None) -> None:
        """Advance every row by one token.

        Args:
            tokens: the last of each row, `(rows,)`.
            weights: filled with those by which each row reads the source in this step,
                `(n_decoder_layers, rows, n_heads, longest source)`.
        """
        config, n_rows = self.model.network.config, len(tokens)
        if n_rows > self._tokens.n_rows:
            self._tokens = _Tokens(n_rows)
            self._largest = _Largest(n_rows, self._largest.count, self._largest.forbidden)
        found = self._largest
        self._tokens.array[:n_rows] = tokens
        if weights is not None:
            n_layers = self.model.network.stacks.n_decoder_layers
            shape = (n_layers, n_rows, config.n_heads, int(self.lengths.max()))
            assert weights.shape == shape
            assert weights.dtype == np.float32
            assert weights.flags.c_contiguous
        places = self.model.positions("tgt", self.position + 1)
        self._log_probs = None
        _check(
            _library().heed_state_step(
                self._handle,
                byref(places),
                self._tokens.address,
                n_rows,
                byref(found.wanted),
                _address(weights),
            )
        )
        self.position = found.position = self.position + 1

    def extend(self, tokens: Ids, *, log_probs: Floats | None = None) -> None:
        """Advance every row by several tokens at once; there are no `log_probs` or `best` then.

        Args:
            tokens: the next of each row, `(rows, n_tokens)`.
            log_probs: filled with those after each token, over the whole vocabulary,
                `(rows, n_tokens, tgt_vocab_size)`; None = not wanted.
        """
        n_rows, n_tokens = tokens.shape
        if log_probs is not None:
            assert log_probs.shape == (*tokens.shape, self.model.network.config.tgt_vocab_size)
            assert log_probs.dtype == np.float32
            assert log_probs.flags.c_contiguous
        tokens = np.ascontiguousarray(tokens, np.int64)
        places = self.model.positions("tgt", self.position + n_tokens)
        self._log_probs, self._largest.position = None, 0
        _check(
            _library().heed_state_extend(
                self._handle,
                byref(places),
                _address(tokens),
                n_rows,
                n_tokens,
                _address(log_probs),
            )
        )
        self.position += n_tokens

    def log_probs(self) -> Floats:
        """Log-probs after the last step, `(rows, tgt_vocab_size)`.

        Computed on demand: most searches need only `best`. Valid until the next step.

        Raises:
            HeedError: rows were selected since, or there was no step.
        """
        if self._log_probs is None:
            n_rows = self.n_sources * self.beam_size
            if n_rows > len(self._room):
                self._room = np.empty((n_rows, self._room.shape[1]), np.float32)
            _check(_library().heed_state_log_probs(self._handle, _address(self._room), n_rows))
            self._log_probs = self._room[:n_rows]
        return self._log_probs

    def best(self, count: int, forbidden: Ids) -> tuple[Floats, Ids]:
        """The largest log-probs of the last step and their ids, both `(rows, count)`.

        A search that calls this calls it again at each step: later steps find as many while they
        have the numbers at hand. Valid until the next step.

        Args:
            count: how many; all, if there are fewer.
            forbidden: ids that do not count, `(n_forbidden,)`; the array must not change.

        Raises:
            HeedError: rows were selected since, or there was no step.
        """
        count = min(count, self.model.network.config.tgt_vocab_size)
        n_rows = self.n_sources * self.beam_size
        found = self._largest
        if found.count != count or found.forbidden is not forbidden:
            found = self._largest = _Largest(self._tokens.n_rows, count, forbidden)
        if found.position < self.position:
            _check(_library().heed_state_best(self._handle, byref(found.wanted), n_rows))
            found.position = self.position
        return found.values[:n_rows], found.ids[:n_rows]

    def select(self, rows: Ids, sources: Ids | None = None) -> None:
        """Keep, repeat or reorder rows.

        Args:
            rows: the old row of each new row, `(new_rows,)`.
            sources: those to keep, `(new_n_sources,)`; None = all, in order.
        """
        rows = np.ascontiguousarray(rows, np.int64)
        if sources is not None:
            sources = np.ascontiguousarray(sources, np.int64)
        n_sources = self.n_sources if sources is None else len(sources)
        _check(
            _library().heed_state_select(
                self._handle, _address(rows), len(rows), _address(sources), n_sources
            )
        )
        self._log_probs, self._largest.position = None, 0
        self.n_sources = n_sources
        if sources is not None:
            self.lengths = self.lengths[sources]


def _check(error: bytes | None) -> None:
    if error:
        raise HeedError(f"engine: {_words(error)}.")


def _words(error: bytes) -> str:
    # Cut at some byte if they are many.
    return error.decode(errors="replace")


def _address(array: NDArray[Any] | None) -> int | None:
    return None if array is None else array.ctypes.data


def _checked(
    array: NDArray[Any] | None, shape: tuple[int, ...], dtype: type = np.float32
) -> int | None:
    """Its address, after a check of its size, which C++ cannot make."""
    if array is not None:
        assert array.shape == shape, f"{array.shape} is not {shape}"
        assert array.dtype == dtype
        assert array.flags.c_contiguous
    return _address(array)


def _matrix(matrix: Matrix) -> _Matrix:
    n_panels, is_int8 = -(-matrix.n // COLUMNS), matrix.is_quantized
    groups = (n_panels, -(-matrix.k // GROUP), COLUMNS, GROUP)
    shape = groups if is_int8 else (n_panels, matrix.k, COLUMNS)
    panels = _checked(matrix.panels, shape, np.int8 if is_int8 else np.float32)
    ints, floats = (panels, None) if is_int8 else (None, panels)
    scales, bias = (_checked(v, (n_panels * COLUMNS,)) for v in (matrix.scales, matrix.bias))
    return _Matrix(matrix.n, matrix.k, ints, scales, floats, bias, None)


def _config(network: Network) -> _Config:
    config, stacks = network.config, network.stacks
    return _Config(
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
