"""The text of an XML file comes out as UTF-8, whatever encoding it is in."""

import codecs
from pathlib import Path
from typing import Any

import pytest

from heed.data import lines, xml_encoding
from heed.data.xml_encoding import read_xml
from heed.errors import DataError

TEXTS = {
    "UTF-8": "äöü 你好 😀",
    "us-ascii": "hello",
    "ISO-8859-1": "Ärger",
    "windows-1251": "привет",
    "KOI8-R": "привет",
    "GB2312": "你好，世界",
    "GBK": "你好，鎔基",
    "GB18030": "你好 😀",
    "Big5": "你好，世界",
    "Shift_JIS": "こんにちは、世界",
    "EUC-JP": "こんにちは、世界",
    "ISO-2022-JP": "こんにちは、世界",
    "EUC-KR": "안녕하세요",
    "UTF-7": "你好 + 1",
    "UTF-16": "你好 😀",
    "UTF-32": "你好 😀",
    "cp037": "hello",
}


def declared(encoding: str, text: str) -> str:
    return f'<?xml version="1.0" encoding="{encoding}"?>\n<tmx>{text}</tmx>\n'


def read(tmp_path: Path, data: Any) -> str | None:
    path = tmp_path / "memory.tmx"
    path.write_bytes(data)
    return b"".join(read_xml(path)).decode()


@pytest.mark.parametrize("chunk_bytes", [1, 7, 1 << 16])
@pytest.mark.parametrize("encoding", TEXTS)
def test_a_declared_encoding_is_read_wherever_a_chunk_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, chunk_bytes: int
) -> None:
    monkeypatch.setattr(lines, "_CHUNK_BYTES", chunk_bytes)
    monkeypatch.setattr(xml_encoding, "_HEAD_BYTES", 100)
    text = declared(encoding, TEXTS[encoding] * 50)
    assert read(tmp_path, text.encode(encoding)) == text


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
@pytest.mark.parametrize("declaration", ["", '<?xml version="1.0" encoding="GB2312"?>'])
def test_a_byte_order_mark_counts_more_than_a_declaration(
    tmp_path: Path, mark: bytes, encoding: str, declaration: str
) -> None:
    text = f"{declaration}<tmx>你好</tmx>"
    assert read(tmp_path, mark + text.encode(encoding)) == text


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-8"])
def test_unicode_encodings_need_neither_a_mark_nor_a_declaration(
    tmp_path: Path, encoding: str
) -> None:
    text = "<tmx>你好</tmx>"
    assert read(tmp_path, text.encode(encoding)) == text


def test_a_file_that_was_converted_but_still_declares_utf16_is_read_as_utf8(tmp_path: Path) -> None:
    text = declared("UTF-16", "你好")
    assert read(tmp_path, text.encode("utf-8")) == text


def test_characters_of_gbk_under_the_name_gb2312_are_read(tmp_path: Path) -> None:
    text = declared("GB2312", "朱镕基 — ①")
    assert read(tmp_path, text.encode("gbk")) == text


@pytest.mark.parametrize("name", ["foo", "zlib", "rot13", "idna", "unicode_escape", "undefined"])
def test_an_encoding_that_python_does_not_know_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError) as error:
        read(tmp_path, declared(name, "").encode())
    assert str(error.value) == (
        f"{tmp_path / 'memory.tmx'} line 1: encoding must be one that Python knows, but is {name}. "
        'Convert the file to UTF-8 and write encoding="UTF-8" there.'
    )


@pytest.mark.parametrize("chunk_bytes", [5, 1 << 16])
@pytest.mark.parametrize(
    ("encoding", "wrong"),
    [("UTF-8", b"\xfc"), ("GB2312", b"\xff"), ("us-ascii", b"\xe4"), ("utf-16", b"\x00\xdc")],
)
def test_bytes_that_the_encoding_does_not_have_are_named_by_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, wrong: bytes, chunk_bytes: int
) -> None:
    monkeypatch.setattr(lines, "_CHUNK_BYTES", chunk_bytes)
    monkeypatch.setattr(xml_encoding, "_HEAD_BYTES", 60)
    begin = f'<?xml version="1.0" encoding="{encoding}"?>\n<tmx>\n'.encode(encoding)
    with pytest.raises(
        DataError,
        match=rf"memory\.tmx line 3: must be {encoding}, but is not: .*\. If the file is in "
        r"another encoding, name it at its beginning, for example: <\?xml ",
    ):
        read(tmp_path, begin + wrong + b"x" * 50)


def test_a_character_cut_at_the_end_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 1: must be utf-8, but is not: unexpected end"):
        read(tmp_path, "<tmx>ä".encode()[:-1])


def test_half_a_character_of_utf16_in_utf7_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 2: must be UTF-7, but is not: surrogates"):
        read(tmp_path, declared("UTF-7", "+2AA-").encode())


def test_an_endless_run_of_utf7_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_encoding, "_MAX_PENDING_BYTES", 1000)
    with pytest.raises(DataError, match=r"line 3: a run of UTF-7 must have at most 1000 bytes"):
        read(tmp_path, declared("UTF-7", "").encode() + b"+" + b"AGEA" * 500)
