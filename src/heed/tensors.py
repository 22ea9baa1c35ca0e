"""Named tensors to bytes and back, in the safetensors format: numbers only, nothing that runs.

Not here: files and their checksums (`folders.py`), nor which tensors a model has (`bundle.py`).
Every header is checked before anything is allocated for it.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from heed.errors import FormatError, RunError
from heed.files import parse_json

DTYPES: dict[str, torch.dtype] = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
MAX_HEADER_BYTES = 32 << 20
MAX_TENSORS = 100_000
MAX_AXES = 8
# Dotted words; so no name can be mistaken for a path.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}(\.[A-Za-z0-9_-]{1,100}){0,20}")
_PICKLES = {b"\x80": "a pickle", b"PK\x03\x04": "a zip archive, as torch.save writes"}


@dataclass(frozen=True, kw_only=True)
class Spec:
    """One tensor as the header announces it: type, shape and place after the header."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int
    end: int


def encode_tensors(tensors: Mapping[str, Tensor]) -> bytes:
    """Tensors as one safetensors file; equal tensors give equal bytes.

    Raises:
        RunError: a number is not finite. Such weights are of no use, so they are never kept.
    """
    copies = {}
    storages = set()
    for name, tensor in tensors.items():
        assert _NAME.fullmatch(name), name
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise RunError(f"{name} holds a number that is not finite, so nothing was saved.")
        copy = tensor.detach().to("cpu").contiguous()
        # The format has no views: what shares memory is written apart.
        storage = copy.untyped_storage().data_ptr()
        copies[name] = copy.clone() if storage in storages else copy
        storages.add(storage)
    return safetensors.torch.save(copies, metadata={"format": "pt"})


def decode_tensors(
    data: bytes,
    where: str | PathLike[str],
    *,
    expected: Mapping[str, tuple[int, ...]] | None = None,
) -> dict[str, Tensor]:
    """Read a safetensors file from memory, on the CPU.

    Args:
        data: the whole file.
        where: what errors call it.
        expected: the names there must be, no more and no fewer, with their shapes; all of them
            hold floating-point numbers.

    Raises:
        FormatError: no such file, damaged, not what was expected, or not finite.
    """
    specs = read_header(data, where)
    if expected is not None:
        _check_expected(specs, expected, where)
    try:
        tensors: dict[str, Tensor] = safetensors.torch.load(data)
    except safetensors.SafetensorError as error:
        raise FormatError(f"{where} is damaged: {error}.") from None
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise FormatError(f"{where} is unusable: {name} holds a number that is not finite.")
    return tensors


def read_header(data: bytes, where: str | PathLike[str]) -> dict[str, Spec]:
    """Check the header against the format and the size of the file.

    Stricter than the format: plain names, known types, no gap and no overlap.

    Raises:
        FormatError: says what is wrong.
    """
    for magic, what in _PICKLES.items():
        # The length of a sound header may begin with the same bytes.
        if data.startswith(magic) and data[8:9] != b"{":
            raise FormatError(
                f"{where} is {what}: reading it could run a program hidden inside. heed reads "
                "weights in the safetensors format only."
            )
    if len(data) < 8:
        raise FormatError(f"{where} is cut short: {len(data)} bytes are no safetensors file.")
    header_size = int.from_bytes(data[:8], "little")
    if header_size > MAX_HEADER_BYTES:
        raise FormatError(
            f"{where} is not a safetensors file: its header would have {header_size} bytes."
        )
    if header_size > len(data) - 8:
        raise FormatError(f"{where} is cut short: its header alone has {header_size} bytes.")
    if data[8:9] != b"{":
        raise FormatError(f"{where} is not a safetensors file: its header is no JSON object.")
    header = parse_json(data[8 : 8 + header_size], f"the header of {where}")
    header.pop("__metadata__", None)
    if len(header) > MAX_TENSORS:
        raise FormatError(f"{where} holds {len(header)} tensors; at most {MAX_TENSORS} make sense.")
    specs = {name: _spec(name, entry, where) for name, entry in header.items()}
    _check_places(specs, len(data) - 8 - header_size, where)
    return specs


def _spec(name: str, entry: Any, where: str | PathLike[str]) -> Spec:
    if not _NAME.fullmatch(name):
        raise FormatError(f"{where} names a tensor {name[:50]!r}; dots and words are allowed.")
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise FormatError(f"{where} must give {name} a dtype, a shape and data_offsets.")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise FormatError(
            f"{where} gives {name} the type {dtype!r}; heed knows {', '.join(DTYPES)}."
        )
    if not _is_counts(shape) or len(shape) > MAX_AXES:
        raise FormatError(f"{where} gives {name} a shape that is none: {str(shape)[:50]}.")
    if not _is_counts(offsets) or len(offsets) != 2:
        raise FormatError(f"{where} gives {name} a place that is none: {str(offsets)[:50]}.")
    start, end = offsets
    size = math.prod(shape) * DTYPES[dtype].itemsize
    if end - start != size:
        raise FormatError(
            f"{where} gives {name} {end - start} bytes, but its type and shape need {size}."
        )
    return Spec(dtype=DTYPES[dtype], shape=tuple(shape), start=start, end=end)


def _is_counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


def _check_places(specs: Mapping[str, Spec], n_bytes: int, where: str | PathLike[str]) -> None:
    """The tensors lie one behind the other and fill the file."""
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
        raise FormatError(f"{where} lacks {_list(missing)}, which the model's config asks for.")
    if extra := specs.keys() - expected.keys():
        raise FormatError(f"{where} holds {_list(extra)}, which the model's config does not have.")
    for name, shape in expected.items():
        spec = specs[name]
        if spec.shape != shape:
            raise FormatError(
                f"{where}: {name} must have the shape {list(shape)} by the model's config, "
                f"but has {list(spec.shape)}."
            )
        if not spec.dtype.is_floating_point:
            raise FormatError(f"{where}: {name} must hold floating-point numbers.")


def _list(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - 5} more" if len(ordered) > 5 else ""
    return ", ".join(ordered[:5] if more else ordered) + more
