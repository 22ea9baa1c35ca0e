"""Tensors as bytes: what is written comes back, what is hostile is refused before it costs."""

import json
import pickle
import struct
import time
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from numpy.typing import NDArray

from heed.disk.tensors import (
    DTYPES,
    MAX_TENSORS,
    decode_tensors,
    decode_with_metadata,
    encode_tensors,
    read_header,
)
from heed.errors import FormatError, RunError


def tensors() -> dict[str, NDArray[Any]]:
    generator = np.random.default_rng(1)
    return {
        "a.weight": generator.standard_normal((3, 4), dtype=np.float32),
        "a.bias": generator.standard_normal(4, dtype=np.float32),
        "step": np.array(7),
    }


def file(header: object, n_bytes: int = 0) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(n_bytes)


def f32(shape: list[int], start: int, end: int) -> dict[str, object]:
    return {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}


NATIVE = {name: dtype for name, dtype in DTYPES.items() if name != "BF16"}


@pytest.mark.parametrize("dtype", NATIVE.values(), ids=NATIVE)
def test_every_type_comes_back_unchanged(dtype: np.dtype[Any]) -> None:
    before = {
        "x": np.array([[0, 1], [1, 0]], dtype),
        "scalar": np.ones((), dtype),
        "empty": np.ones((0, 3), dtype),
    }
    after = decode_tensors(encode_tensors(before), "x")
    assert after.keys() == before.keys()
    for name, tensor in before.items():
        assert after[name].dtype == dtype
        assert after[name].shape == tensor.shape
        assert np.array_equal(after[name], tensor)


def test_bfloat16_comes_as_the_same_numbers_in_float32() -> None:
    """Every finite one: sign, 8 bits of exponent, 7 of mantissa."""
    bits = np.array([b for b in range(1 << 16) if b & 0x7F80 != 0x7F80], "<u2")
    entry = {"dtype": "BF16", "shape": [2, len(bits) // 2], "data_offsets": [0, 2 * len(bits)]}
    scalar = {"dtype": "BF16", "shape": [], "data_offsets": [2 * len(bits), 2 * len(bits) + 2]}
    data = file({"a": entry, "b": scalar}) + bits.tobytes() + b"\x80\x3f"
    after = decode_tensors(data, "x", expected={"a": (2, len(bits) // 2), "b": ()})
    assert after["a"].dtype == after["b"].dtype == np.float32
    expected = torch.tensor(bits.view(np.int16)).view(torch.bfloat16).float().view(2, -1)
    assert torch.equal(torch.tensor(after["a"]), expected)
    assert after["b"] == 1.0
    data = file({"a": entry | {"shape": [1], "data_offsets": [0, 2]}}) + b"\x80\x7f"
    with pytest.raises(FormatError, match="x is unusable: a holds a number that is not finite"):
        decode_tensors(data, "x")


def test_torch_s_own_reader_and_writer_agree() -> None:
    theirs = {name: torch.tensor(tensor) for name, tensor in tensors().items()}
    data = safetensors.torch.save(theirs, metadata={"format": "pt"})
    assert encode_tensors(tensors()) == data
    read = safetensors.torch.load(encode_tensors(tensors()))
    for name, tensor in decode_tensors(data, "x").items():
        assert torch.equal(torch.tensor(tensor), theirs[name])
        assert torch.equal(read[name], theirs[name])


def test_views_and_shared_memory_come_back_as_they_look() -> None:
    base = np.arange(12.0).reshape(3, 4)
    before = {
        "base": base,
        "same": base,
        "turned": base.T,
        "row": base[1],
        "big": base.astype(">f8"),
    }
    after = decode_tensors(encode_tensors(before), "x")
    assert all(np.array_equal(after[name], before[name]) for name in before)


@pytest.mark.parametrize("n_blanks", range(8))
def test_what_is_read_is_aligned_and_cannot_be_written_into(n_blanks: int) -> None:
    """In place where the header's length allows; no byte is copied for the sake of it."""
    text = json.dumps({"a": f32([2], 0, 8)}).encode()
    text += b" " * (-len(text) % 8 + n_blanks)
    data = struct.pack("<Q", len(text)) + text + struct.pack("<2f", 1.0, 2.0)
    tensor = decode_tensors(data, "x")["a"]
    assert tensor.tolist() == [1.0, 2.0]
    assert tensor.flags.aligned
    assert tensor.flags.owndata == (n_blanks % 4 != 0)
    with pytest.raises(ValueError, match="read-only"):
        tensor[0] = 3.0


def test_the_first_tensor_may_begin_where_a_line_of_the_cache_does() -> None:
    for n_letters in range(1, 66, 8):
        data = encode_tensors({"a" * n_letters: np.arange(5.0)}, alignment=64)
        assert (len(data) - 5 * 8) % 64 == 0
        assert decode_tensors(data, "x")["a" * n_letters].tolist() == [0, 1, 2, 3, 4]
        assert safetensors.torch.load(data)["a" * n_letters].tolist() == [0, 1, 2, 3, 4]


def test_equal_tensors_give_equal_bytes_in_any_order() -> None:
    reverse = dict(reversed(tensors().items()))
    assert encode_tensors(tensors()) == encode_tensors(reverse)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_finite_is_neither_written_nor_read(bad: float) -> None:
    with pytest.raises(RunError, match=r"a\.bias holds a number that is not finite"):
        encode_tensors({**tensors(), "a.bias": np.array([1.0, bad])})
    data = file({"a": f32([1], 0, 4)}) + struct.pack("<f", bad)
    with pytest.raises(FormatError, match="x is unusable: a holds a number that is not finite"):
        decode_tensors(data, "x")


def test_headers_of_every_length_are_sound() -> None:
    """The format pads a header to 8 bytes; of 128 mod 256 the length begins like a pickle."""
    first_bytes = set()
    for length in range(1, 257, 8):
        name = ".".join(["n" * 63] * 4)[:length]
        data = encode_tensors({name: np.arange(3.0)})
        assert list(read_header(data, "x")) == [name]
        assert np.array_equal(decode_tensors(data, "x")[name], np.arange(3.0))
        first_bytes.add(data[0])
    assert first_bytes == set(range(0, 256, 8))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("value", [None, {"a": [1.0] * 9}, "{" * 300, [b"{" * n for n in range(9)]])
def test_a_pickle_of_any_protocol_is_refused(value: object, protocol: int) -> None:
    with pytest.raises(FormatError, match="x is a pickle|x is not a safetensors file"):
        decode_tensors(pickle.dumps(value, protocol), "x")


HOSTILE = {
    "nothing": (b"", "x is cut short: 0 bytes"),
    "seven bytes": (bytes(7), "x is cut short: 7 bytes"),
    "no header": (bytes(8), "its header is not a JSON object"),
    "huge header": (struct.pack("<Q", 2**63) + b"{}", "would have 9223372036854775808 bytes"),
    "long header": (struct.pack("<Q", 100) + b"{}", "cut short: its header alone has 100"),
    "leading space": (file(b" {}"), "its header is not a JSON object"),
    "not JSON": (file(b"{nonsense"), "the header of x is not valid JSON"),
    "a list": (file(b"[]"), "its header is not a JSON object"),
    "deep": (file(b'{"a":' * 100_000), "nested too deeply"),
    "twice": (file(b'{"a": 1, "a": 2}'), "the key 'a' is repeated"),
    "not UTF-8": (file(b'{"\xff": 1}'), "not valid JSON"),
    "no entry": (file({"a": 3}), "x must give a a dtype, a shape and data_offsets"),
    "more in the entry": (file({"a": {**f32([0], 0, 0), "x": 1}}), "x must give a a dtype"),
    "unknown type": (file({"a": {**f32([0], 0, 0), "dtype": "F8"}}), "the type 'F8'"),
    "type of type": (file({"a": {**f32([0], 0, 0), "dtype": ["F32"]}}), "the type"),
    "negative shape": (file({"a": f32([-1], 0, 0)}), r"an invalid shape for a: \[-1\]"),
    "float shape": (file({"a": f32([1.0], 0, 4)}, 4), "an invalid shape for"),
    "bool shape": (file({"a": f32([True], 0, 4)}, 4), "an invalid shape for"),
    "many axes": (file({"a": f32([1] * 9, 0, 4)}, 4), "an invalid shape for"),
    "one offset": (file({"a": {**f32([0], 0, 0), "data_offsets": [0]}}), "invalid offsets for"),
    "negative offset": (file({"a": f32([1], -4, 0)}), "invalid offsets for"),
    "backwards": (file({"a": f32([1], 4, 0)}, 4), "gives a -4 bytes, but .* need 4"),
    "terabytes": (file({"a": f32([2**20, 2**20], 0, 2**42)}), "need 4398046511104 bytes"),
    "overflow": (file({"a": f32([2**32, 2**32], 0, 0)}), "gives a 0 bytes, but .* need"),
    "empty and endless": (
        file({"a": f32([0, 2**62], 0, 0)}),
        r"an invalid shape for a: \[0, 46116",
    ),
    "empty and vast": (file({"a": f32([2**40, 2**40, 0], 0, 0)}), "an invalid shape for"),
    "overlap": (file({"a": f32([2], 0, 8), "b": f32([1], 4, 8)}, 8), "b overlaps another tensor"),
    "gap": (file({"a": f32([1], 0, 4), "b": f32([1], 8, 12)}, 12), "b follows a gap"),
    "cut": (file({"a": f32([2], 0, 8)}, 7), "cut short: its tensors need 8 bytes, it holds 7"),
    "more": (file({"a": f32([2], 0, 8)}, 9), "too long: its tensors need 8 bytes, it holds 9"),
    "path": (file({"../a": f32([0], 0, 0)}), "names a tensor '../a'"),
    "slash": (file({"a/b": f32([0], 0, 0)}), "names a tensor 'a/b'"),
    "dots": (file({"a..b": f32([0], 0, 0)}), "names a tensor"),
    "long name": (file({"a" * 5000: f32([0], 0, 0)}), "names a tensor"),
    "many": (file({f"a{i}": 0 for i in range(MAX_TENSORS + 1)}), "holds 100001 tensors"),
    "pickle": (b"\x80\x04\x95", "x is a pickle: reading it could run a program"),
    "torch.save": (b"PK\x03\x04....", "x is a zip archive, as torch.save writes: reading it"),
}


@pytest.mark.parametrize(("data", "words"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_file_is_refused_quickly(data: bytes, words: str) -> None:
    start = time.process_time()
    with pytest.raises(FormatError, match=words):
        decode_tensors(data, "x")
    assert time.process_time() - start < 1.0


def test_every_truncation_is_noticed() -> None:
    data = encode_tensors(tensors())
    for n_bytes in range(len(data)):
        with pytest.raises(FormatError):
            decode_tensors(data[:n_bytes], "x")


def test_what_was_not_expected_is_refused() -> None:
    def decode(**shapes: tuple[int, ...]) -> None:
        decode_tensors(data, "x", expected=shapes)

    data = encode_tensors({"a": np.ones((2, 3)), "b": np.ones(4, np.int64)})
    with pytest.raises(FormatError, match="x lacks c, which the model's config requires"):
        decode(a=(2, 3), c=(1,))
    with pytest.raises(FormatError, match="x holds b, which the model's config does not have"):
        decode(a=(2, 3))
    with pytest.raises(FormatError, match=r"a must have the shape \[3, 2\] .* but has \[2, 3\]"):
        decode(a=(3, 2), b=(4,))
    with pytest.raises(FormatError, match="b must hold floating-point numbers"):
        decode(a=(2, 3), b=(4,))
    with pytest.raises(FormatError, match="lacks t0, t1, t2, t3, t4 and 15 more"):
        decode(**{f"t{i}": (1,) for i in range(10)}, **{f"u{i}": (1,) for i in range(10)})


def test_the_header_tells_type_shape_and_place() -> None:
    specs = read_header(encode_tensors({"a": np.ones((2, 3), np.float32)}), "x")
    assert (specs["a"].dtype, specs["a"].shape) == ("F32", (2, 3))
    assert (specs["a"].start, specs["a"].end) == (0, 24)


def test_texts_are_written_in_one_order() -> None:
    metadata = {name: name for name in ("c", "format", "a", "é", "b")}
    found = {encode_tensors({"t": np.zeros(2)}, metadata=metadata) for _ in range(20)}
    assert len(found) == 1
    assert decode_with_metadata(found.pop(), "x")[1] == metadata
