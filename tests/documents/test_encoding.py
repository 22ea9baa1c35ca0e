"""Bytes of a text file."""

import pytest

from heed.documents.encoding import decode
from heed.errors import DataError


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_utf_8_and_marked_utf_16_are_read(encoding: str) -> None:
    data = "é中😀".encode(encoding)
    text, name, mark = decode("a.txt", data)
    assert text == "é中😀"
    assert mark + text.encode(name) == data


def test_big_endian_is_known_by_its_mark() -> None:
    assert decode("a", b"\xfe\xff\x00a") == ("a", "utf-16-be", b"\xfe\xff")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"oui\xe9.", r"a.txt must be UTF-8, .* but byte 4 \(0xe9\) does not fit UTF-8"),
        ("a".encode("utf-32"), "a.txt must be UTF-8, .* but begins with the mark of UTF-32"),
        (b"\xff\xfea\x00b", r"byte 5 \(0x62\) does not fit UTF-16-LE"),
    ],
)
def test_another_encoding_is_refused_with_the_first_wrong_byte(data: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        decode("a.txt", data)
