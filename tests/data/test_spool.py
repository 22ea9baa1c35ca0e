"""Pairs come back from their file as they went in, by part, and evenly if only some are wanted."""

from pathlib import Path

import numpy as np
import pytest

from heed.data.readers import Pair
from heed.data.split import DEV, TRAIN
from heed.data.spool import Spool, read_pairs, write_pairs
from heed.disk.files import crc32
from heed.errors import FormatError

PAIRS = [Pair(f"s{n}", f"t{n}", n, "a file", "en", "de") for n in range(100)]


def spool(folder: Path) -> Spool:
    write_pairs(folder / "pairs", PAIRS)
    parts = np.full(100, TRAIN, dtype=np.uint8)
    parts[::10] = DEV
    return Spool(folder / "pairs", parts)


def test_pairs_come_back_as_they_went_in(tmp_path: Path) -> None:
    write_pairs(tmp_path / "pairs", PAIRS)
    assert list(read_pairs(tmp_path / "pairs")) == PAIRS


def test_what_breaks_a_row_is_no_part_of_one(tmp_path: Path) -> None:
    write_pairs(tmp_path / "pairs", [Pair("\udc80", "b", 1, "a\tfile\n")])
    assert list(read_pairs(tmp_path / "pairs")) == [Pair("?", "b", 1, "a file")]


def test_a_changed_file_of_pairs_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "pairs"
    write_pairs(path, PAIRS[:2])
    checksum = f"{crc32(path):08x}"
    assert list(read_pairs(path, checksum)) == PAIRS[:2]
    path.write_bytes(path.read_bytes().replace(b"s1", b"s2"))
    with pytest.raises(
        FormatError, match=rf"pairs was changed: its checksum is \w+, not {checksum}"
    ):
        list(read_pairs(path, checksum))
    assert len(list(read_pairs(path))) == 2, "without a checksum it cannot be noticed"
    for row in (b"one line more\n", b"en\tde\tx\tfile\tsrc\ttgt\n"):
        write_pairs(path, PAIRS[:2])
        path.write_bytes(path.read_bytes() + row)
        with pytest.raises(
            FormatError, match="pairs line 3 must have six columns, the third a number"
        ):
            list(read_pairs(path))
    with pytest.raises(FormatError, match="pears is missing or not a file. Remove"):
        list(read_pairs(tmp_path / "pears"))


def test_a_part_is_read_as_often_as_asked(tmp_path: Path) -> None:
    kept = spool(tmp_path)
    assert list(kept.pairs(DEV)) == list(kept.pairs(DEV)) == PAIRS[::10]
    assert [*kept.pairs(DEV), *kept.pairs(TRAIN)] == sorted(
        PAIRS, key=lambda pair: pair.line % 10 > 0
    )


def test_some_of_a_part_are_spread_evenly(tmp_path: Path) -> None:
    kept = spool(tmp_path)
    lines = [pair.line for pair in kept.pairs(TRAIN, at_most=30)]
    assert len(lines) == 30
    assert not set(lines) & set(range(0, 100, 10))
    assert max(np.diff(lines)) <= 4
    assert list(kept.pairs(TRAIN, at_most=90)) == list(kept.pairs(TRAIN))
