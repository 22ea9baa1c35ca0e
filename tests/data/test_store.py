"""Ids come back from disk as they went in, or not at all."""

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.data.store import Store
from heed.errors import FormatError

SRC, TGT = "ab" * 32, "cd" * 32
PAIRS = [([1, 2, 3], [4]), ([], [5, 6]), ([70_000], [])]


def write(path: Path, pairs: list[Any] = PAIRS) -> Path:
    with Store.create(path, SRC, TGT) as store:
        for src, tgt in pairs:
            store.add(src, tgt)
    return path


ids = st.lists(st.integers(0, 2**31 - 1), max_size=8)


@settings(max_examples=30)
@given(pairs=st.lists(st.tuples(ids, ids), max_size=8))
def test_ids_come_back_as_they_went_in(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[list[int], list[int]]]
) -> None:
    store = Store.open(write(tmp_path_factory.mktemp("store") / "ids", pairs), SRC, TGT)
    assert len(store) == len(pairs)
    for index, (src, tgt) in enumerate(pairs):
        assert store.src(index).tolist() == src
        assert store.tgt(index).tolist() == tgt


def test_lengths_count_the_eos_that_batches_add(tmp_path: Path) -> None:
    store = Store.open(write(tmp_path / "ids"), SRC, TGT)
    assert store.src_lengths.tolist() == [4, 1, 2]
    assert store.tgt_lengths.tolist() == [2, 3, 1]


def test_so_many_ids_that_they_are_written_in_between_come_back_too(tmp_path: Path) -> None:
    pairs = [(range(n % 300), range(n % 7)) for n in range(1000)]
    store = Store.open(write(tmp_path / "ids", pairs), SRC, TGT)
    assert all(store.src(n).tolist() == list(range(n % 300)) for n in range(1000))
    assert all(store.tgt(n).tolist() == list(range(n % 7)) for n in range(1000))


def test_arrays_and_lists_are_stored_alike(tmp_path: Path) -> None:
    arrays = [(np.array(src, np.int32), np.array(tgt, np.int64)) for src, tgt in PAIRS]
    assert write(tmp_path / "a").read_bytes() == write(tmp_path / "b", arrays).read_bytes()


def test_an_interrupted_writer_leaves_the_old_file(tmp_path: Path) -> None:
    path = write(tmp_path / "ids")
    before = path.read_bytes()
    with pytest.raises(KeyboardInterrupt), Store.create(path, SRC, TGT) as store:
        store.add([1], [2])
        raise KeyboardInterrupt
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["ids"]


def test_a_flipped_bit_in_any_byte_and_any_missing_end_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "ids")
    whole = path.read_bytes()
    flipped = (
        whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :]
        for place in range(len(whole))
    )
    shortened = (whole[:end] for end in range(len(whole)))
    for damaged in (*flipped, *shortened, whole + b"\0"):
        path.write_bytes(damaged)
        with pytest.raises(FormatError):
            Store.open(path, SRC, TGT)


def test_a_damaged_store_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "ids")
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(
        FormatError,
        match=r"ids is damaged: its checksum does not match .* Delete its folder and run",
    ):
        Store.open(path, SRC, TGT)


def test_another_vocabulary_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "ids")
    with pytest.raises(
        FormatError,
        match=r"with the target vocabulary abababababab, but was made with cdcdcdcdcdcd",
    ):
        Store.open(path, SRC, SRC)


def test_a_foreign_file_a_missing_file_and_another_version_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "ids"
    with pytest.raises(FormatError, match=r"ids is missing or not a file\. Delete its folder"):
        Store.open(path, SRC, TGT)
    path.write_bytes(b"PK\x03\x04 something else entirely, and long enough for a header" * 3)
    with pytest.raises(FormatError, match=r"must be a heed store of ids, but does not start with"):
        Store.open(path, SRC, TGT)
    write(path)
    path.write_bytes(path.read_bytes()[:8] + struct.pack("<I", 9) + path.read_bytes()[12:])
    with pytest.raises(FormatError, match=r"must have store version 1, but has 9"):
        Store.open(path, SRC, TGT)


def test_counts_that_do_not_add_up_are_refused_even_with_a_right_checksum(tmp_path: Path) -> None:
    path = write(tmp_path / "ids")
    data = bytearray(path.read_bytes())
    data[-4:] = struct.pack("<i", 7)
    facts, body = bytes(data[16:96]), bytes(data[96:])
    data[12:16] = struct.pack("<I", zlib.crc32(facts, zlib.crc32(body)))
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"must hold 7 ids, but its counts do not match"):
        Store.open(path, SRC, TGT)
