"""Bytes of a text file."""

import pytest

from heed.documents.encoding import Encoding, decode
from heed.errors import DataError

META = '<meta charset="%s">'
HTTP_EQUIV = "<META http-equiv='Content-Type' content='text/html; charset=%s'>"
PO = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=%s\\n"\n'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_utf_8_and_marked_utf_16_are_read(encoding: str) -> None:
    data = "é中😀".encode(encoding)
    text, written = decode("a.txt", data)
    assert text == "é中😀"
    assert written.encode(text) == data


def test_big_endian_is_known_by_its_mark() -> None:
    assert decode("a", b"\xfe\xff\x00a") == ("a", Encoding("utf-16-be", b"\xfe\xff"))


@pytest.mark.parametrize(
    ("ending", "page"),
    [
        ("xml", '<?xml version="1.0" encoding="iso-8859-1"?>%s'),
        ("xhtml", "<?xml version='1.0' encoding='iso-8859-1'?>%s"),
        ("xlf", '<?xml version="1.0" encoding="iso-8859-1"?>%s'),
        ("xliff", '<?xml version="1.0" encoding="iso-8859-1"?>%s'),
        ("html", META % "latin1" + "%s"),
        ("htm", HTTP_EQUIV % "ISO-8859-1" + "%s"),
    ],
)
@pytest.mark.parametrize("text", ["oui", "ouïe"])
def test_a_page_keeps_the_encoding_that_it_declares(ending: str, page: str, text: str) -> None:
    data = (page % text).encode("latin-1")
    read, written = decode("a", data, ending)
    assert read == page % text
    assert written.encode(read) == data
    assert written.encode(page % "ï中") == (page % "ï&#20013;").encode("latin-1")


@pytest.mark.parametrize("name", ["utf-8", "UTF8", "utf-16", "no-such", "zlib", "punycode"])
def test_what_no_file_is_written_in_is_utf_8(name: str) -> None:
    assert decode("a", (META % name).encode(), "html")[1] == Encoding("utf-8")


def test_what_was_converted_to_utf_8_stays_so() -> None:
    assert decode("a", (META % "latin1" + "é").encode(), "html")[1] == Encoding("utf-8")


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_xml_in_utf_16_needs_no_mark(codec: str) -> None:
    data = '<?xml version="1.0" encoding="utf-16"?><a>é</a>'.encode(codec)
    text, written = decode("a", data, "xml")
    assert text.endswith("<a>é</a>")
    assert written.encode(text) == data


def test_names_of_pages_stand_for_what_browsers_read() -> None:
    assert decode("a", (META % "gb2312").encode() + "镕".encode("gb18030"), "html")[0][-1] == "镕"
    assert decode("a", (META % "iso-8859-1").encode() + b"\x80", "html")[0][-1] == "€"


def test_a_catalog_is_read_as_it_declares_and_written_as_utf_8() -> None:
    text, written = decode("a", (PO % "ISO-8859-1" + "# é").encode("latin-1"), "po")
    assert text.endswith("é")
    assert written == Encoding("utf-8")
    assert decode("a", (PO % "CHARSET").encode(), "po")[1] == Encoding("utf-8")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"oui\xe9.", r"a.txt must be UTF-8, .* but byte 4 \(0xe9\) is invalid in UTF-8"),
        ("a".encode("utf-32"), "a.txt must be UTF-8, .* but begins with the mark of UTF-32"),
        (b"\xff\xfea\x00b", r"byte 5 \(0x62\) is invalid in UTF-16-LE"),
        ("oui".encode("utf-16-le"), "a.txt must be text, but character 2 is NUL, so it looks like"),
        ("oui".encode("utf-16-be"), "character 1 is NUL, .* looks like UTF-16 without a byte orde"),
        ("a\0".encode("utf-16"), r"a.txt must be text, but character 2 is NUL\. Remove it\."),
    ],
)
def test_another_encoding_is_refused_with_the_first_wrong_place(data: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        decode("a.txt", data)


def test_bytes_that_do_not_fit_a_declaration_are_refused() -> None:
    data = (META % "shift_jis").encode() + b"\x81"
    with pytest.raises(DataError, match=r"a.html must be cp932, which it declares, .* \(0x81\)"):
        decode("a.html", data, "html")
