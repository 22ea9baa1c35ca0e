"""Two classes that wrap the compiled engine; `library.py` has the functions of the library."""

from ctypes import byref, c_void_p

import numpy as np
from numpy.typing import NDArray

from heed.engine import library
from heed.engine.library import (
    BestRecord,
    MatrixRecord,
    PositionsRecord,
    address_of,
    functions,
)
from heed.engine.matrices import COLUMNS, Floats, Matrix, ShortIds
from heed.engine.network import Network, norm_roles, roles
from heed.engine.tables import tables_of
from heed.errors import ConfigError
from heed.machine.compiled import check, words_of
from heed.model.interface import Ids


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
        matrices = (MatrixRecord * len(roles(config)))(
            *(library.matrix_record(network.matrices[role]) for role in roles(config))
        )
        vectors = [vector for role in norm_roles(config) for vector in network.norms[role]]
        width = (-(-config.d_model // COLUMNS) * COLUMNS,)
        norms = (c_void_p * len(vectors))(
            *(library.checked_address(vector, width) for vector in vectors)
        )
        self._handle = c_void_p()
        shape = library.config_record(network)
        error = functions().heed_model_new(
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
            raise ConfigError(f"{words_of(error)}.")
        self._tables = tables_of(network)
        self._places = {side: PositionsRecord() for side in self._tables}

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            functions().heed_model_delete(self._handle)

    def start(
        self, ids: Ids, lengths: NDArray[np.int32], beam_size: int, *, are_prompts: bool = False
    ) -> "NativeState":
        """Read sources.

        Args:
            ids: of all sources, concatenated, `(total_len,)`.
            lengths: of each source, `(n_sources,)`.
            beam_size: rows that will continue each source.
            are_prompts: whether they are the beginnings of the targets.
        """
        return NativeState(self, ids, lengths, beam_size, are_prompts)

    def positions(self, side: str, n: int) -> PositionsRecord:
        """Addresses of the tables of at least `n` positions; valid as long as the returned object.

        Raises:
            DataError: the model learned fewer.
        """
        tables = self._tables[side].first(n)
        places = self._places[side]
        if places.tables is not tables:
            places = self._places[side] = PositionsRecord.of(tables)
        return places

    def set_common_ids(self, matrix: Matrix, ids: ShortIds) -> None:
        """Set the ids that may follow in every restricted state.

        Args:
            matrix: columns of the output, and one for all other ids; not copied.
            ids: of all these columns except the last, `(n_ids,)`.
        """
        assert ids.dtype == np.int32
        assert ids.flags.c_contiguous
        self._always = matrix
        check(
            functions().heed_model_always(
                self._handle,
                byref(library.matrix_record(matrix)),
                address_of(ids),
                len(ids),
            )
        )


class _Tokens:
    """Input arrays of a step, for the largest number of rows, and their addresses.

    They are reused: getting an address from NumPy takes as long as a small product.
    """

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.array = np.empty(n_rows, np.int64)
        self.address = address_of(self.array)


_SPARE = 64
"""A step finds up to this many more than the last call requested."""


class _Largest:
    """Output arrays of a step for the largest log-probs that are not forbidden."""

    def __init__(self, n_rows: int, count: int = 0, forbidden: Ids | None = None) -> None:
        self.count, self.forbidden = count, forbidden
        self.position = 0  # the step in which they were found
        self.values = np.empty((n_rows, count), np.float32)
        self.ids = np.empty((n_rows, count), np.int64)
        self._out = np.ascontiguousarray(() if forbidden is None else forbidden, np.int64)
        self.wanted = BestRecord(
            count,
            len(self._out),
            address_of(self.values),
            address_of(self.ids),
            address_of(self._out),
        )


class NativeState:
    """A batch of sources in translation; made by `NativeModel.start`.

    Attributes:
        model: computes it.
        handle: the library's state.
        beam_size: rows of each source.
        n_sources: number of sources.
        lengths: of the sources, `(n_sources,)`.
        position: tokens of each row so far.
    """

    def __init__(
        self,
        model: NativeModel,
        ids: Ids,
        lengths: NDArray[np.int32],
        beam_size: int,
        are_prompts: bool,
    ) -> None:
        self.model = model
        self._are_prompts = are_prompts
        self.beam_size = beam_size
        self.n_sources = len(lengths)
        self.lengths = lengths
        self.position = 0
        self._tokens, self._largest = _Tokens(0), _Largest(0)
        self._room = np.empty((0, model.network.config.tgt_vocab_size), np.float32)
        self._log_probs: Floats | None = None
        self.handle = c_void_p()
        ids, lengths = np.ascontiguousarray(ids, np.int64), np.ascontiguousarray(lengths, np.int32)
        assert ids.shape == (lengths.sum(),)
        side = "tgt" if are_prompts else "src"
        places = model.positions(side, max(1, int(lengths.max())))
        check(
            functions().heed_state_new(
                model._handle,
                byref(places),
                address_of(ids),
                address_of(lengths),
                len(lengths),
                beam_size,
                byref(self.handle),
                are_prompts,
            )
        )

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            functions().heed_state_delete(self.handle)

    def restrict(self, ids: ShortIds, counts: ShortIds) -> None:
        """Restrict the ids that may follow: the model's common ones, and those of each source.

        Args:
            ids: of all sources, concatenated.
            counts: number of ids of each source, `(n_sources,)`.
        """
        assert ids.dtype == counts.dtype == np.int32
        assert ids.shape == (counts.sum(),)
        check(
            functions().heed_state_shorten(
                self.model._handle,
                self.handle,
                address_of(ids),
                address_of(counts),
                len(counts),
            )
        )

    def step(self, tokens: Ids) -> None:
        """Advance every row by one token.

        Args:
            tokens: the last of each row, `(rows,)`.
        """
        n_rows = len(tokens)
        if n_rows > self._tokens.n_rows:
            self._tokens = _Tokens(n_rows)
            self._largest = _Largest(n_rows, self._largest.count, self._largest.forbidden)
        found = self._largest
        self._tokens.array[:n_rows] = tokens
        places = self.next_positions(1)
        self._log_probs = None
        check(
            functions().heed_state_step(
                self.handle,
                byref(places),
                self._tokens.address,
                n_rows,
                byref(found.wanted),
            )
        )
        self.position = found.position = self.position + 1

    def extend(
        self,
        tokens: Ids,
        *,
        next_ids: Ids | None = None,
        log_probs: Floats | None = None,
        weights: Floats | None = None,
    ) -> None:
        """Advance every row by several tokens at once; `log_probs` and `best` do not work after it.

        Args:
            tokens: the next tokens of each row, `(rows, n_tokens)`.
            next_ids: the id after each token whose log-prob is wanted, `(rows, n_tokens)`; None =
                all ids.
            log_probs: filled with the log-probs after each token, over the whole vocabulary,
                `(rows, n_tokens, tgt_vocab_size)`, or of `next_ids`, `(rows, n_tokens)`; None = not
                wanted.
            weights: filled with the weights by which each token reads the source,
                `(n_decoder_layers, rows, n_heads, n_tokens, longest source)`; None = not wanted.
        """
        n_rows, n_tokens = tokens.shape
        network = self.model.network
        if next_ids is not None:
            next_ids = np.ascontiguousarray(next_ids, np.int64)
            assert next_ids.shape == tokens.shape
        if log_probs is not None:
            n_ids = () if next_ids is not None else (network.config.tgt_vocab_size,)
            _require_array(log_probs, (n_rows, n_tokens, *n_ids))
        if weights is not None:
            shape = (network.stacks.n_decoder_layers, n_rows, network.config.n_heads)
            _require_array(weights, (*shape, n_tokens, int(self.lengths.max())))
        tokens = np.ascontiguousarray(tokens, np.int64)
        places = self.next_positions(n_tokens)
        self._log_probs, self._largest.position = None, 0
        check(
            functions().heed_state_extend(
                self.handle,
                byref(places),
                address_of(tokens),
                n_rows,
                n_tokens,
                address_of(next_ids),
                address_of(log_probs),
                address_of(weights),
            )
        )
        self.position += n_tokens

    def attention(self, tokens: Ids, layer: int, weights: Floats) -> None:
        """Weights by which targets read the source in one layer; the state forgets the targets.

        The rest of the layer and the layers above it are not computed.

        Args:
            tokens: the first tokens of each row, `(rows, n_tokens)`.
            layer: its number from 0.
            weights: filled with the weights by which each token reads the source,
                `(rows, n_heads, n_tokens, longest source)`.

        Raises:
            HeedError: there are tokens already, there is no such layer, or an id is not in the
                vocabulary.
        """
        n_rows, n_tokens = tokens.shape
        n_heads = self.model.network.config.n_heads
        _require_array(weights, (n_rows, n_heads, n_tokens, int(self.lengths.max())))
        tokens = np.ascontiguousarray(tokens, np.int64)
        places = self.next_positions(n_tokens)
        self._log_probs, self._largest.position = None, 0
        check(
            functions().heed_state_attention(
                self.handle,
                byref(places),
                address_of(tokens),
                n_rows,
                n_tokens,
                layer,
                address_of(weights),
            )
        )

    def next_positions(self, n_tokens: int) -> PositionsRecord:
        """Positions of the targets, enough for `n_tokens` more tokens."""
        n_read = int(self.lengths.max()) if self._are_prompts else 0
        return self.model.positions("tgt", n_read + self.position + n_tokens)

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
            check(functions().heed_state_log_probs(self.handle, address_of(self._room), n_rows))
            self._log_probs = self._room[:n_rows]
        return self._log_probs

    def log_probs_of(self, ids: Ids) -> Floats:
        """Log-probs of some ids after the last step, minus infinity if a shortlist lacks them.

        Args:
            ids: `(rows, n_ids)`.

        Returns:
            `(rows, n_ids)`.

        Raises:
            HeedError: rows were selected since, there was no step, or an id is not in the
                vocabulary.
        """
        ids = np.ascontiguousarray(ids, np.int64)
        log_probs = np.empty(ids.shape, np.float32)
        check(
            functions().heed_state_log_probs_of(
                self.handle, address_of(ids), *ids.shape, address_of(log_probs)
            )
        )
        return log_probs

    def best(self, count: int, forbidden: Ids) -> tuple[Floats, Ids]:
        """The largest log-probs of the last step and their ids, both `(rows, count)`.

        A search that calls this calls it again at each step: later steps find the same number of
        them while they compute. Valid until the next step.

        Args:
            count: how many; all, if there are fewer.
            forbidden: ids to leave out, `(n_forbidden,)`; the array must not change.

        Raises:
            HeedError: rows were selected since, or there was no step.
        """
        count = min(count, self.model.network.config.tgt_vocab_size)
        n_rows = self.n_sources * self.beam_size
        found = self._largest
        is_enough = count <= found.count <= count + _SPARE
        if not is_enough or found.forbidden is not forbidden:
            found = self._largest = _Largest(self._tokens.n_rows, count, forbidden)
        if found.position < self.position:
            check(functions().heed_state_best(self.handle, byref(found.wanted), n_rows))
            found.position = self.position
        return found.values[:n_rows, :count], found.ids[:n_rows, :count]

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
        check(
            functions().heed_state_select(
                self.handle,
                address_of(rows),
                len(rows),
                address_of(sources),
                n_sources,
            )
        )
        self._log_probs, self._largest.position = None, 0
        self.n_sources = n_sources
        if sources is not None:
            self.lengths = self.lengths[sources]


def _require_array(array: Floats, shape: tuple[int, ...]) -> None:
    assert array.shape == shape
    assert array.dtype == np.float32
    assert array.flags.c_contiguous
