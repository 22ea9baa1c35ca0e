"""Named tensors to bytes and back, in the safetensors format: numbers only, no code.

Every header is checked before memory is allocated for it.
"""

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.disk.files import Contents, parse_json
from heed.errors import FormatError, RunError

DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
"""The format's types. NumPy has no bfloat16: here the type is that of its bits."""
_FLOATS = ("F64", "F32", "F16", "BF16")
MAX_HEADER_BYTES = 32 << 20
MAX_TENSORS = 100_000
MAX_AXES = 8
# Dotted words, so that no name can be a path.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}(\.[A-Za-z0-9_-]{1,100}){0,20}")
_PICKLES = {b"\x80": "a pickle", b"PK\x03\x04": "a zip archive, as torch.save writes"}


@dataclass(frozen=True, kw_only=True)
class Spec:
    """One tensor as described in the header: type (of `DTYPES`), shape, place after the header."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def encode_tensors(
    tensors: Mapping[str, NDArray[Any]],
    *,
    alignment: int = 8,
    metadata: Mapping[str, str] | None = None,
    must_be_finite: bool = True,
) -> bytes:
    """Tensors as one safetensors file; equal tensors give equal bytes.

    Args:
        tensors: by name.
        alignment: in bytes, a multiple of 8; the first tensor begins at a multiple of it.
        metadata: texts by name; None = those of weights.
        must_be_finite: refuse numbers that are not finite, as for weights.

    Raises:
        RunError: a number is not finite. Such weights are useless, so they are never saved.
    """
    import safetensors.numpy  # Not needed for reading.

    rows_first = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    for name, tensor in rows_first.items():
        assert _NAME.fullmatch(name), name
        if must_be_finite and not _is_finite(tensor):
            raise RunError(f"{name} holds a number that is not finite, so nothing was saved.")
    data = safetensors.numpy.save(rows_first, metadata=dict(metadata or {"format": "pt"}))
    start = 8 + _header_size(data)
    header = json.loads(data[8:start])
    # safetensors writes several texts in random order.
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    head += b" " * (-(8 + len(head)) % alignment)
    return b"".join((len(head).to_bytes(8, "little"), head, memoryview(data)[start:]))


def decode_tensors(
    data: Contents,
    where: str | PathLike[str],
    *,
    expected: Mapping[str, tuple[int, ...]] | None = None,
) -> dict[str, NDArray[Any]]:
    """Read weights in a safetensors file.

    Args:
        data: the whole file.
        where: its name in errors.
        expected: exactly the names that the file must have, with their shapes; all of them hold
            floating-point numbers.

    Returns:
        Read-only arrays, views of `data` if possible; bfloat16 as float32.

    Raises:
        FormatError: not a safetensors file, damaged, not as expected, or not finite.
    """
    specs = read_header(data, where)
    if expected is not None:
        _check_expected(specs, expected, where)
    tensors = _decode_all(data, specs)
    for name, tensor in tensors.items():
        if not _is_finite(tensor):
            raise FormatError(f"{where} is unusable: {name} holds a number that is not finite.")
    return tensors


def decode_with_metadata(
    data: Contents, where: str | PathLike[str]
) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """The tensors of a safetensors file, finite or not, and the texts in its header.

    Raises:
        FormatError: not a safetensors file, or damaged.
    """
    specs, metadata = _read(data, where)
    is_sound = isinstance(metadata, dict) and all(isinstance(x, str) for x in metadata.values())
    if not is_sound:
        raise FormatError(f"{where} is damaged: the metadata in its header must be strings.")
    return _decode_all(data, specs), dict(metadata)


def _decode_all(data: Contents, specs: Mapping[str, Spec]) -> dict[str, NDArray[Any]]:
    return {name: _decode(data, spec) for name, spec in specs.items()}


def _decode(data: Contents, spec: Spec) -> NDArray[Any]:
    start = 8 + _header_size(data) + spec.start
    tensor: NDArray[Any] = np.ndarray(spec.shape, DTYPES[spec.dtype], buffer=data, offset=start)
    if spec.dtype == "BF16":
        bits = tensor.astype(np.uint32)  # the upper half of a float32
        bits <<= 16
        tensor = bits.view(np.float32)
    elif not tensor.flags.aligned:
        tensor = tensor.copy()
    tensor.flags.writeable = False
    return tensor


def _is_finite(tensor: NDArray[Any]) -> bool:
    return tensor.dtype.kind != "f" or bool(np.isfinite(tensor).all())


def read_header(data: Contents, where: str | PathLike[str]) -> dict[str, Spec]:
    """Check the header against the format and the size of the file.

    Stricter than the format: plain names, known types, no gap and no overlap.

    Raises:
        FormatError: says what is wrong.
    """
    return _read(data, where)[0]


def _read(data: Contents, where: str | PathLike[str]) -> tuple[dict[str, Spec], Any]:
    """The same, and the metadata of the header."""
    for magic, what in _PICKLES.items():
        # The length of a valid header may begin with the same bytes.
        if data[: len(magic)] == magic and data[8:9] != b"{":
            raise FormatError(
                f"{where} is {what}: reading it could run a program hidden inside. heed reads "
                "weights in the safetensors format only."
            )
    if len(data) < 8:
        raise FormatError(
            f"{where} is cut short: {len(data)} bytes are too few for a safetensors file."
        )
    header_size = _header_size(data)
    if header_size > MAX_HEADER_BYTES:
        raise FormatError(
            f"{where} is not a safetensors file: its header would have {header_size} bytes."
        )
    if header_size > len(data) - 8:
        raise FormatError(f"{where} is cut short: its header alone has {header_size} bytes.")
    if data[8:9] != b"{":
        raise FormatError(f"{where} is not a safetensors file: its header is not a JSON object.")
    header = parse_json(data[8 : 8 + header_size], f"the header of {where}")
    metadata = header.pop("__metadata__", {})
    if len(header) > MAX_TENSORS:
        raise FormatError(f"{where} holds {len(header)} tensors; the limit is {MAX_TENSORS}.")
    specs = {name: _spec(name, entry, where) for name, entry in header.items()}
    _check_places(specs, len(data) - 8 - header_size, where)
    return specs, metadata


def _header_size(data: Contents) -> int:
    return int.from_bytes(data[:8], "little")


def _spec(name: str, entry: Any, where: str | PathLike[str]) -> Spec:
    if not _NAME.fullmatch(name):
        raise FormatError(
            f"{where} names a tensor {name[:50]!r}; only words joined by dots are allowed."
        )
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise FormatError(f"{where} must give {name} a dtype, a shape and data_offsets.")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise FormatError(
            f"{where} gives {name} the type {dtype!r}; heed supports {', '.join(DTYPES)}."
        )
    if not _is_counts(shape) or len(shape) > MAX_AXES:
        raise FormatError(f"{where} has an invalid shape for {name}: {str(shape)[:50]}.")
    if not _is_counts(offsets) or len(offsets) != 2:
        raise FormatError(f"{where} has invalid offsets for {name}: {str(offsets)[:50]}.")
    start, end = offsets
    size = math.prod(shape) * DTYPES[dtype].itemsize
    if end - start != size:
        raise FormatError(
            f"{where} gives {name} {end - start} bytes, but its type and shape need {size}."
        )
    # NumPy refuses even an empty array if its other axes are too long.
    if size == 0 and math.prod(filter(None, shape)) > sys.maxsize // 8:
        raise FormatError(f"{where} has an invalid shape for {name}: {str(shape)[:50]}.")
    return Spec(dtype=dtype, shape=tuple(shape), start=start, end=end)


def _is_counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


def _check_places(specs: Mapping[str, Spec], n_bytes: int, where: str | PathLike[str]) -> None:
    """Check that the tensors are contiguous and fill the file."""
    end = 0
    for name, spec in sorted(specs.items(), key=lambda item: (item[1].start, item[1].end)):
        if spec.start != end:
            what = "overlaps another tensor" if spec.start < end else "follows a gap"
            raise FormatError(f"{where} is damaged: {name} {what}.")
        end = spec.end
    if end != n_bytes:
        what = "cut short" if end > n_bytes else "too long"
        raise FormatError(f"{where} is {what}: its tensors need {end} bytes, it holds {n_bytes}.")


def _check_expected(
    specs: Mapping[str, Spec], expected: Mapping[str, tuple[int, ...]], where: str | PathLike[str]
) -> None:
    if missing := expected.keys() - specs.keys():
        raise FormatError(f"{where} lacks {_list(missing)}, which the model's config requires.")
    if extra := specs.keys() - expected.keys():
        raise FormatError(f"{where} holds {_list(extra)}, which the model's config does not have.")
    for name, shape in expected.items():
        spec = specs[name]
        if spec.shape != shape:
            raise FormatError(
                f"{where}: {name} must have the shape {list(shape)} by the model's config, "
                f"but has {list(spec.shape)}."
            )
        if spec.dtype not in _FLOATS:
            raise FormatError(f"{where}: {name} must hold floating-point numbers.")


def _list(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - 5} more" if len(ordered) > 5 else ""
    return ", ".join(ordered[:5] if more else ordered) + more
