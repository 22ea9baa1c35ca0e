"""ZIP archives of XML: documents, slides, books."""

import io
import re
import struct
import xml.dom.minidom
import zipfile

import pytest
from tests.documents.fakes import backwards, shouted, unchanged

from heed.documents import archives
from heed.documents.archives import ARCHIVE_FORMATS, open_archive
from heed.errors import DataError, UsageError
from heed.translate.result import Translation

DOCX = '<w:document><w:p><w:r><w:t xml:space="preserve">a b</w:t></w:r></w:p></w:document>'
DIAGRAM = "<dgm:dataModel><dgm:t><a:p><a:r><a:t>a b</a:t></a:r></a:p></dgm:t></dgm:dataModel>"
PPTX = "<p:sld><a:p><a:r><a:t>a b</a:t></a:r></a:p></p:sld>"
ODF = (
    "<office:document-content><office:automatic-styles><number:text>x</number:text>"
    "</office:automatic-styles><text:p>a <text:span>b</text:span> c<text:line-break/>d</text:p>"
    "<text:p><text:span>e</text:span></text:p></office:document-content>"
)
PARTS = {
    "docx": {
        "word/document.xml": DOCX,
        "word/styles.xml": "<a>style</a>",
        "word/footer1.xml": DOCX,
        "word/comments.xml": DOCX,
        "word/diagrams/data1.xml": DIAGRAM,
    },
    "pptx": {
        "ppt/slides/slide12.xml": PPTX,
        "ppt/diagrams/drawing2.xml": DIAGRAM,
        "ppt/presentation.xml": "<a>b</a>",
    },
    "xlsx": {
        "xl/sharedStrings.xml": "<sst><si><t>a b</t></si></sst>",
        "xl/workbook.xml": "<workbook><sheets><sheet name='a'/></sheets></workbook>",
    },
    "odt": {"content.xml": ODF, "meta.xml": "<a>b</a>"},
    "odp": {"content.xml": ODF},
    "ods": {"content.xml": ODF},
    "epub": {
        "OPS/toc.ncx": '<?xml version="1.0"?><ncx:ncx><ncx:text>a b</ncx:text></ncx:ncx>',
        "OPS/a.xhtml": "<html><title/><script src='x'/><p>a <b>b</b></p></html>",
        "b.css": "p {}",
    },
}


def archive(parts: dict[str, str | bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as file:
        file.writestr("mimetype", "application/x", zipfile.ZIP_STORED)
        for name, text in parts.items():
            file.writestr(name, text)
    return packed.getvalue()


def contents(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


@pytest.mark.parametrize("ending", ARCHIVE_FORMATS)
def test_parts_with_text_are_translated_and_all_others_copied(ending: str) -> None:
    data = archive(PARTS[ending])
    document = open_archive("a." + ending, data, ending)
    assert contents(document.join(unchanged(document.segments))) == contents(data)
    done = document.join(shouted(document.segments))
    with zipfile.ZipFile(io.BytesIO(done)) as file:
        first = file.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
        assert [info.filename for info in file.infolist()] == ["mimetype", *PARTS[ending]]
    for name, part in contents(done).items():
        before = contents(data)[name]
        assert part.lower() == before.lower()
        is_text = bool(ARCHIVE_FORMATS[ending].parts.fullmatch(name))
        assert (part != before) == is_text


def test_the_parts_of_a_document_may_have_numbers() -> None:
    parts: dict[str, str | bytes] = {"word/document2.xml": DOCX, "word/footnotes2.xml": DOCX}
    document = open_archive("a.docx", archive(parts), "docx")
    assert [segment.text for segment in document.segments] == ["a b", "a b"]


WORD, DRAWING, TEXT = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://schemas.openxmlformats.org/drawingml/2006/main",
    "urn:oasis:names:tc:opendocument:xmlns:text:1.0",
)
OFFICE = TEXT.replace("text", "office")


@pytest.mark.parametrize(
    ("name", "part", "prefix", "namespace"),
    [
        ("a.docx/word/document.xml", DOCX.replace("w:r>", "w:r>\n"), "w", WORD),
        ("a.docx/word/document.xml", DOCX, "w", "http://purl.oclc.org/ooxml/wordprocessingml/main"),
        ("a.pptx/ppt/slides/slide1.xml", f"<a:sld>{PPTX}</a:sld>", "a", DRAWING),
        ("a.odt/content.xml", f"<text:a>{ODF}</text:a>", "text", TEXT),
    ],
)
@pytest.mark.parametrize("written", ["ns0:", "", "a:", "w:", "text:"])
def test_namespaces_decide_and_not_their_prefixes(
    name: str, part: str, prefix: str, namespace: str, written: str
) -> None:
    """Python's `ElementTree` writes `ns0:`, and other programs write no prefix."""
    file, _, path = name.partition("/")
    usual = open_archive(file, archive({path: part}), file[2:])
    declared = f"xmlns:{written[:-1]}" if written else "xmlns"
    part = re.sub(rf"(</?){prefix}:", rf"\1{written}", part)
    part = part.replace(">", f' {declared}="{namespace}">', 1)
    others = {"p": "p", "office": OFFICE, "number": OFFICE.replace("office", "datastyle")}
    also = "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in others.items())
    part = part.replace(">", f"{also}>", 1)
    document = open_archive(file, archive({path: part}), file[2:])
    assert document.segments == usual.segments
    same = contents(document.join(unchanged(document.segments)))[path].decode()
    assert same == part
    done = contents(document.join(shouted(document.segments)))[path].decode()
    assert done.lower() == part.lower() != done
    xml.dom.minidom.parseString(done)


def test_a_usual_prefix_of_another_namespace_means_nothing() -> None:
    part = DOCX.replace(">", ' xmlns:w="urn:other">', 1)
    assert open_archive("a.docx", archive({"word/document.xml": part}), "docx").segments == []
    within = (
        f'<x:p xmlns:x="{WORD}"><x:r><x:t>c</x:t></x:r></x:p><w:p><w:r><w:t>d</w:t></w:r></w:p>'
    )
    part = part.replace("</w:document>", f"{within}</w:document>")
    document = open_archive("a.docx", archive({"word/document.xml": part}), "docx")
    assert [segment.text for segment in document.segments] == ["c"]


def test_headers_and_footers_of_opendocument_are_translated() -> None:
    styles = (
        "<office:document-styles><office:styles><number:text>x</number:text></office:styles>"
        "<office:master-styles><style:header><text:p>a b</text:p></style:header><style:footer>"
        "<text:p>page <text:page-number>1</text:page-number></text:p></style:footer>"
        "</office:master-styles></office:document-styles>"
    )
    parts: dict[str, str | bytes] = {"content.xml": ODF, "styles.xml": styles}
    document = open_archive("a.odt", archive(parts), "odt")
    assert [segment.text for segment in document.segments] == ["a b c", "d", "e", "a b", "page 1"]
    done = contents(document.join(shouted(document.segments)))["styles.xml"].decode()
    assert "<style:header><text:p>A B</text:p>" in done
    assert "<number:text>x</number:text>" in done


def test_authors_and_dates_of_comments_in_opendocument_are_kept() -> None:
    by = "<dc:creator>Ann</dc:creator><dc:date>2024-05-01T10:20:30</dc:date>"
    text = (
        f"<office:document-content><text:tracked-changes><text:p>old</text:p>{by}"
        f"</text:tracked-changes><text:p>a<office:annotation>{by}<text:p>note</text:p>"
        "</office:annotation></text:p></office:document-content>"
    )
    document = open_archive("a.odt", archive({"content.xml": text}), "odt")
    assert sorted(segment.text for segment in document.segments) == ["a", "note"]
    done = contents(document.join(shouted(document.segments)))["content.xml"].decode()
    assert done.count(by) == 2


def test_spans_of_opendocument_stand_among_words_and_line_breaks_part_them() -> None:
    document = open_archive("a.odt", archive(PARTS["odt"]), "odt")
    assert [segment.text for segment in document.segments] == ["a b c", "d", "e"]


def test_blanks_of_opendocument_are_blanks_for_the_model() -> None:
    """Word writes each blank at the end of a run so; the words beside it were read as one."""
    body = (
        '<text:p><text:s text:c="2"/>a <text:span>red<text:s/></text:span><text:span>dog'
        "</text:span><text:s/>barks.<text:s/></text:p><text:p><text:s/></text:p>"
    )
    text = f"<office:document-content>{body}</office:document-content>"
    document = open_archive("a.odt", archive({"content.xml": text}), "odt")
    assert [segment.text for segment in document.segments] == ["a red dog barks."]
    same = contents(document.join(unchanged(document.segments)))["content.xml"].decode()
    assert same == text
    done = contents(document.join(shouted(document.segments)))["content.xml"].decode()
    assert '<text:p><text:s text:c="2"/>A <text:span>RED </text:span><text:span>DOG' in done
    assert "</text:span> BARKS.<text:s/></text:p><text:p><text:s/></text:p>" in done


def test_marks_of_tracked_changes_in_opendocument_do_not_part_sentences() -> None:
    """Most of these marks stand alone here, from which `outline_detection` infers blocks."""
    names = ("change", "change-start", "change-end")
    change, start, end = (f'<text:{name} text:change-id="c1"/>' for name in names)
    alone = 2 * f"<text:p>{change}{start}{end}<text:soft-page-break/></text:p>"
    body = f"<text:p>the {change}{start}new{end} dog<text:soft-page-break/> barks</text:p>"
    text = f"<office:document-content>{alone}{body}</office:document-content>"
    document = open_archive("a.odt", archive({"content.xml": text}), "odt")
    assert [segment.text for segment in document.segments] == ["the new dog barks"]


@pytest.mark.parametrize(
    ("element", "texts"),
    [
        (
            "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>a</text:p>"
            "<text:p>b</text:p></text:note-body></text:note>",
            "ab",
        ),
        (
            "<office:annotation><dc:creator>A</dc:creator><text:p>c</text:p></office:annotation>",
            "c",
        ),
        (
            "<draw:frame><draw:text-box><text:p>d <draw:frame><text:p>e</text:p></draw:frame> f"
            "</text:p></draw:text-box></draw:frame>",
            "def",
        ),
        (
            "<draw:frame><draw:image/><svg:title>g</svg:title><svg:desc>h</svg:desc></draw:frame>",
            "gh",
        ),
    ],
)
def test_notes_and_frames_stand_among_words_and_have_texts_of_their_own(
    element: str, texts: str
) -> None:
    body = 3 * f"<text:p>{element}</text:p>" + f"<text:p>the dog{element} barks</text:p>"
    text = f"<office:document-content>{body}</office:document-content>"
    document = open_archive("a.odt", archive({"content.xml": text}), "odt")
    found = [segment.text for segment in document.segments]
    assert found == [*texts] * 4 + ["the dog barks"]
    same = contents(document.join(unchanged(document.segments)))["content.xml"].decode()
    assert same == text
    done = contents(document.join(backwards(document.segments)))["content.xml"].decode()
    assert f"<text:p>barks dog{element} the</text:p>" in done
    shout = contents(document.join(shouted(document.segments)))["content.xml"].decode()
    assert shout.lower() == text.lower()


def test_fields_of_opendocument_do_not_part_sentences_where_most_stand_alone() -> None:
    field = "<text:page-number>3</text:page-number>"
    body = 3 * f"<text:p>{field}</text:p>" + f"<text:p>on page {field} of it</text:p>"
    text = f"<office:document-content>{body}</office:document-content>"
    document = open_archive("a.odt", archive({"content.xml": text}), "odt")
    assert [segment.text for segment in document.segments] == ["on page 3 of it"]


def test_an_empty_script_of_xhtml_holds_nothing() -> None:
    document = open_archive("a.epub", archive(PARTS["epub"]), "epub")
    assert [segment.text for segment in document.segments] == ["a b", "a b"]


def test_the_labels_of_an_old_table_of_contents_are_texts() -> None:
    label = "<navLabel>\n <text>{}</text>\n</navLabel><content src='a'/>"
    text = (
        "<?xml version='1.0' encoding='iso-8859-1'?><ncx><docTitle><text>t\xe9</text></docTitle>"
        f"<docAuthor><text>Ann</text></docAuthor><navMap>{label.format('a')}{label.format('b')}"
    )
    document = open_archive("a.epub", archive({"toc.ncx": text.encode("latin-1")}), "epub")
    assert [segment.text for segment in document.segments] == ["t\xe9", "a", "b"]
    done = contents(document.join(shouted(document.segments)))["toc.ncx"].decode("latin-1")
    assert done.lower() == text.lower()
    assert "<text>Ann</text>" in done


def test_entities_are_never_expanded() -> None:
    bomb = '<!DOCTYPE a [<!ENTITY b "xxxxxxxx"><!ENTITY c "&b;&b;&b;">]><text:p>a &c; b</text:p>'
    document = open_archive("a.odt", archive({"content.xml": bomb}), "odt")
    assert [segment.text for segment in document.segments] == ["a  b"]
    assert b"&c;" in contents(document.join(shouted(document.segments)))["content.xml"]


def test_names_that_lead_elsewhere_are_only_names() -> None:
    data = archive({"../../etc/x": "y", "content.xml": ODF})
    document = open_archive("a.odt", data, "odt")
    assert "../../etc/x" in contents(document.join(unchanged(document.segments)))


def test_another_number_of_translations_is_refused() -> None:
    document = open_archive("a.odt", archive(PARTS["odt"]), "odt")
    with pytest.raises(UsageError, match="3 segments and 1 translations"):
        document.join([Translation(text="x")])


# Hostile archives


def test_zip_bombs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = archive({"content.xml": ODF, "zeros": b"\0" * (4 << 20)})
    with pytest.raises(DataError, match="200 times its own size .* but unpacks to 4,19"):
        open_archive("a.odt", bomb, "odt")
    monkeypatch.setattr(archives, "MAX_UNPACKED_BYTES", 100)
    with pytest.raises(DataError, match="must unpack to at most 100 bytes"):
        open_archive("a.odt", archive({"content.xml": ODF}), "odt")


def test_too_many_parts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_PARTS", 1)
    with pytest.raises(DataError, match="a.odt must have at most 1 parts, but has 2"):
        open_archive("a.odt", archive({"content.xml": ODF}), "odt")


def test_a_part_that_lies_about_its_size_is_damaged() -> None:
    data = archive({"content.xml": ODF})
    size = struct.pack("<I", len(ODF))
    with pytest.raises(DataError, match="a.odt is damaged"):
        open_archive("a.odt", data.replace(size, struct.pack("<I", 10)), "odt")


def test_encrypted_archives_are_refused() -> None:
    data = bytearray(archive({"content.xml": ODF}))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(DataError, match="a.odt is encrypted"):
        open_archive("a.odt", bytes(data), "odt")


@pytest.mark.parametrize(("part", "is_refused"), [("fonts/a.otf", False), ("OPS/a%20b.html", True)])
def test_a_book_with_encrypted_pages_is_refused_and_encrypted_fonts_are_copied(
    part: str, is_refused: bool
) -> None:
    listed = f'<encryption><enc:CipherReference x="y" URI="{part}"/></encryption>'
    parts: dict[str, str | bytes] = {
        "META-INF/encryption.xml": listed,
        "fonts/a.otf": b"\xff\0",
        "OPS/a b.html": b"\xff" if is_refused else "<p>a</p>",
    }
    if is_refused:
        with pytest.raises(DataError, match=r"a.epub is protected .* OPS/a b.html is encrypted"):
            open_archive("a.epub", archive(parts), "epub")
    else:
        document = open_archive("a.epub", archive(parts), "epub")
        assert contents(document.join(shouted(document.segments)))["fonts/a.otf"] == b"\xff\0"


def test_pages_of_books_are_xml_whatever_their_names_end_in() -> None:
    page = "<?xml version='1.0' encoding='iso-8859-1'?><p>\xe9t\xe9</p>".encode("latin-1")
    document = open_archive("a.epub", archive({"a.html": page}), "epub")
    assert [segment.text for segment in document.segments] == ["\xe9t\xe9"]


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_another_compression_is_refused(compression: int) -> None:
    """The library of LZMA raises errors of its own for damaged data."""
    data = archive({"content.xml": ODF}, compression)
    words = f"content.xml has compression {compression}"
    with pytest.raises(DataError, match=words):
        open_archive("a.odt", data, "odt")


def test_two_parts_of_one_name_are_refused() -> None:
    data = archive({"content.xml": ODF, "content.xmk": ODF}).replace(b"content.xmk", b"content.xml")
    with pytest.raises(DataError, match="two of its parts have the same name"):
        open_archive("a.odt", data, "odt")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"no zip", "a.odt is damaged, or is not a .odt file"),
        (archive({"content.xml": ODF})[:-30], "a.odt is damaged, or is not a .odt file"),
        (archive({"other.xml": ODF}), "a.odt has no part with text, so it is not a .odt file"),
        (archive({"content.xml": "<a>"}), "content.xml of a.odt: The XML is malformed: <a> at"),
        (archive({"content.xml": b"\xff"}), "content.xml of a.odt must be UTF-8"),
    ],
)
def test_damaged_archives_are_errors_in_words(data: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        open_archive("a.odt", data, "odt")


def test_any_damaged_byte_is_an_error_in_words_or_harmless() -> None:
    data = archive(PARTS["odt"])
    for place in range(0, len(data), 3):
        broken = bytearray(data)
        broken[place] ^= 0xFF
        try:
            document = open_archive("a.odt", bytes(broken), "odt")
            document.join(unchanged(document.segments))
        except DataError:
            pass
