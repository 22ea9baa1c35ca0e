"""The target ids that may follow each source id; the output layer then computes only these.

`heed/compress/lexicon.py` learns the lists.
Source: Schwenk et al. 2007, section 3; Jean et al. 2015, section 3.3.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from heed.bundle.find import SHORTLIST
from heed.disk.folders import read_directory, read_manifest, update_directory
from heed.disk.tensors import decode_tensors, encode_tensors
from heed.engine.matrices import COLUMNS, Matrix, ShortIds, with_mean
from heed.errors import FormatError
from heed.model.config import AnyConfig
from heed.model.interface import Ids

Flags = NDArray[np.bool_]

MAX_IDS = 1 << 26
"""Most ids in all lists of a file together."""
MAX_REST = 50.0
_ID_BITS = 31
_INT, _FLOAT = np.dtype(np.int32), np.dtype(np.float32)
_TYPES = {"always": _INT, "offsets": _INT, "ids": _INT, "rest": _FLOAT, "changed": _INT}


@dataclass(frozen=True, kw_only=True)
class Shortlist:
    """Lists of target ids; all ids are int32, and each list is ascending.

    Attributes:
        common_ids: ids that may follow every source, `(n_common,)`.
        offsets: start of the list of each source id, and end of the last one,
            `(src_vocab_size + 1,)`.
        source_ids: the lists, concatenated, without ids of `common_ids`, `(n_ids,)`.
        rest_logit: added to the column for all other ids, so that it gets the
            probability that the model gives them together, a natural log.
        changed: how many translations differed with it from those without, and of how many.
    """

    common_ids: ShortIds
    offsets: ShortIds
    source_ids: ShortIds
    rest_logit: float = 0.0
    changed: tuple[int, int] = (0, 0)

    @classmethod
    def from_arrays(
        cls, config: AnyConfig, arrays: Mapping[str, NDArray[Any]], where: str | PathLike[str]
    ) -> Self:
        """A shortlist from the arrays of `to_arrays`; nothing is copied.

        Args:
            config: the model's shape.
            arrays: by name.
            where: the name of their file in errors.

        Raises:
            FormatError: the arrays are invalid, or for another model.
        """
        if arrays.keys() != _TYPES.keys():
            raise FormatError(f"{where} must hold {', '.join(_TYPES)}, but holds {[*arrays]}.")
        for name, dtype in _TYPES.items():
            array = arrays[name]
            if array.dtype != dtype or array.ndim != 1:
                raise FormatError(
                    f"{where}: {name} must be a row of {dtype}, but is {array.dtype} "
                    f"{list(array.shape)}."
                )
        always, offsets, ids, rest, changed = (arrays[name] for name in _TYPES)
        if len(offsets) != config.src_vocab_size + 1:
            raise FormatError(
                f"{where}: offsets must have {config.src_vocab_size + 1} numbers, one more than "
                f"there are source ids, but have {len(offsets)}."
            )
        if len(ids) > MAX_IDS or not _are_ends(offsets, len(ids)):
            raise FormatError(
                f"{where}: offsets must grow from 0 to {len(ids)}, the number of ids."
            )
        for name, listed in (("always", always), ("ids", ids)):
            if len(listed) and not 0 <= listed.min() <= listed.max() < config.tgt_vocab_size:
                raise FormatError(
                    f"{where}: {name} must be target ids from 0 to {config.tgt_vocab_size - 1}."
                )
        if not len(always) or not (np.diff(always) > 0).all():
            raise FormatError(f"{where}: always must be ascending, and not empty.")
        is_always = np.zeros(config.tgt_vocab_size, bool)
        is_always[always] = True
        if n_twice := int(is_always[ids].sum()):
            raise FormatError(
                f"{where}: ids must not hold ids of always, but {n_twice} of them are there, too."
            )
        if len(changed) != 2 or not 0 <= changed[0] <= changed[1]:
            raise FormatError(f"{where}: changed must be two numbers, the second not smaller.")
        if len(rest) != 1 or not abs(rest[0]) <= MAX_REST:
            raise FormatError(f"{where}: rest must be a number from {-MAX_REST} to {MAX_REST}.")
        return cls(
            common_ids=always,
            offsets=offsets,
            source_ids=ids,
            rest_logit=float(rest[0]),
            changed=(int(changed[0]), int(changed[1])),
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays by name, for a file."""
        return {
            "always": self.common_ids,
            "offsets": self.offsets,
            "ids": self.source_ids,
            "rest": np.array([self.rest_logit], np.float32),
            "changed": np.array(self.changed, np.int32),
        }

    def shared(self, output: Matrix) -> Matrix:
        """Columns of the output for `common_ids`, and one for all other ids.

        That column is the mean of the others, raised by the log of their number and by
        `rest_logit`: for normally distributed logits, `rest_logit` is half of the variance.
        """
        others = np.setdiff1d(
            np.arange(output.n, dtype=np.int32), self.common_ids, assume_unique=True
        )
        matrix = with_mean(output, self.common_ids, others)
        bias = np.zeros(len(matrix.panels) * COLUMNS, np.float32)
        if matrix.bias is not None:
            bias += matrix.bias
        bias[len(self.common_ids)] += (
            math.log(len(others)) if len(others) else -math.inf
        ) + self.rest_logit
        return replace(matrix, bias=bias)

    def ids_of(
        self, src: Ids, is_token: Flags, required_ids: Ids | None = None
    ) -> tuple[ShortIds, ShortIds]:
        """The ids that may follow each source, besides `common_ids`.

        Args:
            src: padded source ids, `(n_sources, src_len)`.
            is_token: False where they are padding, `(n_sources, src_len)`.
            required_ids: ids that each target will contain, -1 for none, `(n_sources, n_required)`.

        Returns:
            The ids of all sources, concatenated, ascending and distinct, and their number for each.
        """
        sources, tokens = is_token.nonzero()[0], src[is_token]
        starts, ends = self.offsets[tokens], self.offsets[tokens + 1]
        counts = ends - starts
        places = np.arange(counts.sum()) + (starts - np.cumsum(counts) + counts).repeat(counts)
        # A source and an id in one number: sorted by the source, then by the id.
        keys = sources.repeat(counts) << _ID_BITS | self.source_ids[places]
        if required_ids is not None and required_ids.size:
            sources, columns = (~np.isin(required_ids, [-1, *self.common_ids])).nonzero()
            keys = np.append(keys, sources << _ID_BITS | required_ids[sources, columns])
        keys = np.unique(keys)
        n_each = np.bincount(keys >> _ID_BITS, minlength=len(src))
        return (keys & (1 << _ID_BITS) - 1).astype(np.int32), n_each.astype(np.int32)


def _are_ends(offsets: ShortIds, total: int) -> bool:
    """Whether offsets grow from 0 to `total`."""
    is_growing = bool((offsets[1:] >= offsets[:-1]).all())
    return is_growing and offsets[0] == 0 and offsets[-1] == total


def save_shortlist(folder: Path, shortlist: Shortlist | None) -> None:
    """Write a shortlist beside a model's weights, replacing any other; None = remove it.

    Raises:
        RunError: the disk is full or read-only, or permission is denied.
    """
    manifest = read_manifest(folder)
    if shortlist is None and SHORTLIST not in manifest.files:
        return
    others = {name: entry for name, entry in manifest.checked.items() if name != SHORTLIST}
    files = {} if shortlist is None else {SHORTLIST: encode_tensors(shortlist.to_arrays())}
    update_directory(folder, files, manifest.metadata, others=others)
    if shortlist is None:
        (folder / SHORTLIST).unlink(missing_ok=True)


def load_shortlist(folder: Path, config: AnyConfig) -> Shortlist | None:
    """The shortlist of a model folder, if it has one.

    Raises:
        FormatError: its file is missing or damaged, or does not fit the model.
    """
    _, files = read_directory(folder, [SHORTLIST])
    if not files:
        return None
    where = folder / SHORTLIST
    return Shortlist.from_arrays(config, decode_tensors(files[SHORTLIST], where), where)
