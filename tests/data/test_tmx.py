"""Translation memories: languages found, codes dropped, faults named by line."""

import gzip
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from heed.data import tmx, xml_events, xml_segments
from heed.data.tmx import read_units
from heed.data.xml_segments import Unit
from heed.errors import DataError


def write(tmp_path: Path, *units: Any, name: str = "memory.tmx") -> Path:
    text = '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n<header srclang="en"/>\n'
    text += "<body>\n" + "\n".join(units) + "\n</body>\n</tmx>\n"
    data = text.encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def unit(**texts: Any) -> str:
    variants = (
        f'<tuv xml:lang="{language.replace("_", "-")}"><seg>{text}</seg></tuv>'
        for language, text in texts.items()
    )
    return f"<tu>{''.join(variants)}</tu>"


def test_units_are_read_in_either_direction_with_their_lines(tmp_path: Path) -> None:
    path = write(tmp_path, unit(en="Hello", de="Hallo"), unit(de="Tür &amp; Tor", en="door"))
    assert list(read_units(path, "en", "de")) == [
        Unit("Hello", "Hallo", 5),
        Unit("door", "Tür & Tor", 6),
    ]
    assert next(read_units(path, "de", "en")) == Unit("Hallo", "Hello", 5)


def test_a_compressed_memory_is_read_alike(tmp_path: Path) -> None:
    path = write(tmp_path, unit(en="a", de="b"), name="memory.tmx.gz")
    assert list(read_units(path, "en", "de")) == [Unit("a", "b", 5)]


def test_a_language_is_found_under_the_name_of_its_region(tmp_path: Path) -> None:
    path = write(tmp_path, unit(EN_us="color", de_AT="Farbe"))
    assert next(read_units(path, "en", "de"))[:2] == ("color", "Farbe")
    path = write(tmp_path, unit(en_US="color", en="color", de="Farbe"))
    assert next(read_units(path, "en", "de"))[0] == "color"
    assert next(read_units(path, "en_us", "de-DE"))[:2] == ("color", "Farbe")


def test_a_variant_that_fits_one_language_better_is_not_taken_for_the_other(tmp_path: Path) -> None:
    path = write(tmp_path, unit(pt_BR="trem", pt_PT="comboio"))
    assert next(read_units(path, "pt", "pt-BR"))[:2] == ("comboio", "trem")
    assert next(read_units(path, "pt-BR", "pt"))[:2] == ("trem", "comboio")


def test_another_language_with_a_longer_code_is_not_taken(tmp_path: Path) -> None:
    path = write(tmp_path, unit(de="ja", enm="ye", en="yes"))
    assert next(read_units(path, "en", "de"))[:2] == ("yes", "ja")


def test_inline_codes_fall_and_the_words_around_and_inside_highlights_stay(tmp_path: Path) -> None:
    marked = (
        'Press <bpt i="1">&lt;b&gt;</bpt>the <hi>red <it pos="begin">[</it>button</hi>'
        '<ept i="1">&lt;/b&gt;</ept><ph>{0}<sub>note</sub></ph>.'
    )
    path = write(tmp_path, unit(en=marked, de="Drück"))
    assert next(read_units(path, "en", "de"))[0] == "Press the red button."


@pytest.mark.parametrize(
    ("code", "read"),
    [
        ("<ph>%s</ph>", "%s"),
        ('<ph x="1">{count}</ph>', "{count}"),
        ("<ph>%1$d</ph>", "%1$d"),
        ("<ph></ph>", ""),
        ("<ph>&lt;br/&gt;</ph>", ""),
        ("<ph>%s of %s</ph>", ""),
        ("<ph>{0}<sub>note</sub></ph>", ""),
        ("<ph><sub>note</sub>{0}</ph>", ""),
        ("<bpt>{0}</bpt>", ""),
        ("<it><ph>%s</ph></it>", ""),
    ],
)
def test_a_field_in_a_placeholder_is_text(tmp_path: Path, code: str, read: str) -> None:
    path = write(tmp_path, unit(en=f"Frame ({code}) here", de="da"))
    assert next(read_units(path, "en", "de"))[0] == f"Frame ({read}) here"


def test_a_unit_with_one_of_the_languages_has_an_empty_side_and_others_are_passed_over(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, unit(en="a"), unit(fr="b"), unit(en="c", de="d"), unit(de="e"))
    assert [u[:2] for u in read_units(path, "en", "de")] == [("a", ""), ("c", "d"), ("", "e")]


def test_notes_and_old_lang_attributes_are_understood(tmp_path: Path) -> None:
    en, de = (
        f'<tuv lang="{code}"><seg>{text}</seg></tuv>' for code, text in (("en", "a"), ("de", "b"))
    )
    old = f"<tu><note>ignored</note>{en}{de}</tu>"
    assert next(read_units(write(tmp_path, old), "en", "de"))[:2] == ("a", "b")


def test_utf16_is_read_by_its_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "memory.tmx"
    text = write(tmp_path, unit(en="a", de="ä")).read_text().replace("UTF-8", "UTF-16")
    path.write_bytes(text.encode("utf-16"))
    assert next(read_units(path, "en", "de"))[:2] == ("a", "ä")


def test_a_missing_language_lists_the_languages_there_are(tmp_path: Path) -> None:
    path = write(tmp_path, unit(en="a", fr="b"), unit(pt_BR="c"))
    with pytest.raises(
        DataError,
        match=r"must have units in both en and de, but has none. Languages found: en, fr, pt-BR\.",
    ):
        list(read_units(path, "en", "de"))
    with pytest.raises(DataError, match=r"Languages found: none\."):
        list(read_units(write(tmp_path), "en", "de"))


def test_a_missing_language_lists_only_the_first_of_many_languages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tmx, "_SHOWN_LANGUAGES", 3)
    many = [unit(**{f"x{n:02}": "a"}) for n in range(20)]
    with pytest.raises(DataError, match=r"Languages found: x00, x01, x02 and 17 more\.$"):
        list(read_units(write(tmp_path, *many), "en", "de"))
    monkeypatch.setattr(tmx, "_MAX_LANGUAGES", 10)
    with pytest.raises(DataError, match=r"Languages found: x00, x01, x02 and more than 7 more\.$"):
        list(read_units(write(tmp_path, *many), "en", "de"))


def test_a_long_language_code_is_cut_in_the_list(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"Languages found: x{40}\.$"):
        list(read_units(write(tmp_path, unit(**{"x" * 5000: "a"})), "en", "de"))


def test_a_variant_without_language_is_named_by_line(tmp_path: Path) -> None:
    path = write(tmp_path, unit(en="a", de="b"), "<tu>\n<tuv><seg>a</seg></tuv></tu>")
    with pytest.raises(DataError, match=r"memory\.tmx line 7: <tuv> has no xml:lang\. Add the"):
        list(read_units(path, "en", "de"))


def test_broken_xml_is_named_by_line(tmp_path: Path) -> None:
    path = write(tmp_path, unit(en="a", de="b"), "<tu><tuv xml:lang='en'><seg>a</tuv></tu>")
    with pytest.raises(DataError, match=r"line 6: not well-formed XML: mismatched tag"):
        list(read_units(path, "en", "de"))
    path.write_bytes(path.read_bytes()[:150])
    with pytest.raises(DataError, match=r"not well-formed XML: .*\. The file ends too early: copy"):
        list(read_units(path, "en", "de"))


def test_an_endless_segment_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_segments, "MAX_CHARS", 10)
    path = write(tmp_path, unit(fr="a" * 11, en="a" * 10, de="b"))
    assert next(read_units(path, "en", "de")).tgt == "b"
    path = write(tmp_path, unit(en="a" * 11, de="b"))
    with pytest.raises(DataError, match=r"line 5: a <seg> must have at most 10 characters"):
        list(read_units(path, "en", "de"))


LONG = "A" * 300_000
TOKENS = {
    "attribute": f'<tu x="{LONG}"/>',
    "comment": f"<!-- {LONG} -->",
    "name": f"<{LONG}/>",
    "instruction": f"<?x {LONG}?>",
    "entity": f"&{LONG};",
}


@pytest.mark.parametrize("token", TOKENS)
def test_a_long_token_is_refused_by_the_line_where_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setattr(xml_events, "_MAX_TOKEN_BYTES", 100_000)
    path = write(tmp_path, unit(en="a", de="b"), TOKENS[token])
    with pytest.raises(DataError) as error:
        list(read_units(path, "en", "de"))
    assert str(error.value) == (
        f"{path} line 6: a tag, comment or declaration must have at most 100000 bytes, but has "
        "more. Is this a TMX file?"
    )


def test_long_text_is_no_long_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_events, "_MAX_TOKEN_BYTES", 100_000)
    path = write(tmp_path, unit(en=f"<![CDATA[{LONG}]]>", de=LONG), " " * 300_000, unit(en="a"))
    assert list(read_units(path, "en", "de")) == [Unit(LONG, LONG, 5), Unit("a", "", 7)]


@pytest.mark.reliability
@pytest.mark.parametrize(
    ("begin", "end"), [(b'<tmx version="', b'">'), (b"<!-- ", b"-->"), (b"<tmx", b">")]
)
def test_a_token_of_1500_mb_is_refused_in_seconds_and_little_memory(
    tmp_path: Path, begin: bytes, end: bytes
) -> None:
    path = tmp_path / "memory.tmx.gz"
    million = gzip.compress(b"A" * 1_000_000)
    path.write_bytes(gzip.compress(begin) + 1500 * million + gzip.compress(end))
    start = time.monotonic()
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="line 1: a tag, comment or declaration must have"):
            list(read_units(path, "en", "de"))
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert time.monotonic() - start < 5


def test_a_long_doctype_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_events, "_MAX_DOCTYPE_BYTES", 100_000)
    path = tmp_path / "memory.tmx"
    entities = "".join(f"<!ENTITY e{n} 'a'>\n" for n in range(20_000))
    path.write_text(f"<!DOCTYPE tmx [{entities}]><tmx/>")
    with pytest.raises(DataError, match=r"<!DOCTYPE> must have at most 100000 bytes, but has more"):
        list(read_units(path, "en", "de"))


def test_many_names_of_elements_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xml_events, "_MAX_NAMES", 100)
    path = write(tmp_path, *(f"<e{n}/>" for n in range(200)))
    with pytest.raises(DataError, match="must have at most 100 different names, but have more"):
        list(read_units(path, "en", "de"))


def test_elements_that_are_too_deep_in_each_other_are_refused(tmp_path: Path) -> None:
    deep = "<a>" * 998 + "</a>" * 998  # in <body>, in <tmx>
    path = write(tmp_path, deep, unit(en="a", de="b"))
    assert list(read_units(path, "en", "de")) == [Unit("a", "b", 6)]
    path = write(tmp_path, "<a>" * 999)
    with pytest.raises(DataError, match="line 5: elements must be nested at most 1000 deep"):
        list(read_units(path, "en", "de"))


def test_entities_that_stand_for_much_text_in_many_units_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xml_segments, "MAX_CHARS", 1000)
    path = tmp_path / "memory.tmx"
    units = unit(en="&e;", de="b") * 5
    path.write_text(f"<!DOCTYPE tmx [<!ENTITY e '{'a' * 900}'>]><tmx>{units}</tmx>")
    with pytest.raises(DataError, match="entities must expand to at most 4000 characters in one"):
        list(read_units(path, "en", "de"))


def outside_dtd(tmp_path: Path, *units: Any) -> Path:
    path = write(tmp_path, *units)
    begin, body = path.read_text().split("\n", 1)
    path.write_text(f'{begin}\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">{body}')
    return path


def test_an_entity_of_html_becomes_its_character(tmp_path: Path) -> None:
    path = outside_dtd(tmp_path, unit(en="a&nbsp;b &ndash; &Auml; &lt;", de="b<ph>&foo;</ph>"))
    assert list(read_units(path, "en", "de")) == [Unit("a\xa0b – Ä <", "b", 5)]


def test_an_unknown_entity_becomes_a_blank_and_its_unit_is_incomplete(tmp_path: Path) -> None:
    path = outside_dtd(
        tmp_path, unit(en="use&foo;it", de="b"), unit(en="a", fr="&foo;"), unit(en="a", de="b")
    )
    assert list(read_units(path, "en", "de")) == [
        Unit("use it", "b", 5, is_complete=False),
        Unit("a", "", 6),
        Unit("a", "b", 7),
    ]


def test_an_entity_without_any_dtd_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, unit(en="a&nbsp;b", de="b"))
    with pytest.raises(
        DataError, match=r"line 5: not well-formed XML: undefined entity\. Correct it"
    ):
        list(read_units(path, "en", "de"))


@pytest.mark.parametrize("encoding", ["GB2312", "GBK", "Big5", "Shift_JIS", "EUC-JP", "UTF-32"])
def test_a_memory_in_an_asian_encoding_is_read_with_its_lines(
    tmp_path: Path, encoding: str
) -> None:
    text = write(tmp_path, unit(en="hello", zh="日本")).read_text(encoding="utf-8")
    path = tmp_path / "memory.tmx"
    path.write_bytes(text.replace("UTF-8", encoding).encode(encoding))
    assert list(read_units(path, "en", "zh")) == [Unit("hello", "日本", 5)]


def test_other_xml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "page.tmx"
    path.write_text("<html>\n</html>")
    with pytest.raises(DataError, match=r"line 1: must begin with <tmx>, but begins with <html>"):
        list(read_units(path, "en", "de"))
    path.write_text(f"<{'h' * 5000}/>")
    with pytest.raises(DataError, match=r"line 1: must begin with <tmx>, but begins with <h{40}>"):
        list(read_units(path, "en", "de"))


def test_entities_neither_explode_nor_reach_for_files(tmp_path: Path) -> None:
    path = tmp_path / "bomb.tmx"
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<!DOCTYPE tmx [<!ENTITY e0 "{"a" * 100}">{levels}]><tmx>'
    path.write_text(f"{bomb}<body>{unit(en='&e11;', de='b')}</body></tmx>")
    with pytest.raises(DataError, match=r"bomb\.tmx line 1: "):
        list(read_units(path, "en", "de"))
    (tmp_path / "secret").write_text("password")
    outside = f'<!DOCTYPE tmx [<!ENTITY s SYSTEM "{tmp_path}/secret">]><tmx>'
    path.write_text(f"{outside}<body>{unit(en='x&s;', de='b')}</body></tmx>")
    assert next(read_units(path, "en", "de")) == Unit("x ", "b", 1, is_complete=False)
