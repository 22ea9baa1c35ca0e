"""Translation memories: languages found, codes dropped, faults named by line."""

import gzip

import pytest

from heed.data import tmx
from heed.data.tmx import read_units
from heed.errors import DataError


def write(tmp_path, *units, name="memory.tmx"):
    text = '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n<header srclang="en"/>\n'
    text += "<body>\n" + "\n".join(units) + "\n</body>\n</tmx>\n"
    data = text.encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def unit(**texts):
    variants = (
        f'<tuv xml:lang="{language.replace("_", "-")}"><seg>{text}</seg></tuv>'
        for language, text in texts.items()
    )
    return f"<tu>{''.join(variants)}</tu>"


def test_units_are_read_in_either_direction_with_their_lines(tmp_path):
    path = write(tmp_path, unit(en="Hello", de="Hallo"), unit(de="Tür &amp; Tor", en="door"))
    assert list(read_units(path, "en", "de")) == [("Hello", "Hallo", 5), ("door", "Tür & Tor", 6)]
    assert next(read_units(path, "de", "en")) == ("Hallo", "Hello", 5)


def test_a_compressed_memory_is_read_alike(tmp_path):
    path = write(tmp_path, unit(en="a", de="b"), name="memory.tmx.gz")
    assert list(read_units(path, "en", "de")) == [("a", "b", 5)]


def test_a_language_is_found_under_the_name_of_its_region(tmp_path):
    path = write(tmp_path, unit(EN_us="color", de_AT="Farbe"))
    assert next(read_units(path, "en", "de"))[:2] == ("color", "Farbe")
    path = write(tmp_path, unit(en_US="color", en="colour", de="Farbe"))
    assert next(read_units(path, "en", "de"))[0] == "colour"
    assert next(read_units(path, "en_us", "de-DE"))[:2] == ("color", "Farbe")


def test_another_language_with_a_longer_code_is_not_taken(tmp_path):
    path = write(tmp_path, unit(de="ja", enm="ye", en="yes"))
    assert next(read_units(path, "en", "de"))[:2] == ("yes", "ja")


def test_inline_codes_fall_and_the_words_around_and_inside_highlights_stay(tmp_path):
    marked = (
        'Press <bpt i="1">&lt;b&gt;</bpt>the <hi>red <it pos="begin">[</it>button</hi>'
        '<ept i="1">&lt;/b&gt;</ept><ph>{0}<sub>note</sub></ph>.'
    )
    path = write(tmp_path, unit(en=marked, de="Drück"))
    assert next(read_units(path, "en", "de"))[0] == "Press the red button."


def test_a_unit_with_one_of_the_languages_has_an_empty_side_and_others_are_passed_over(tmp_path):
    path = write(tmp_path, unit(en="a"), unit(fr="b"), unit(en="c", de="d"), unit(de="e"))
    assert [u[:2] for u in read_units(path, "en", "de")] == [("a", ""), ("c", "d"), ("", "e")]


def test_notes_and_old_lang_attributes_are_understood(tmp_path):
    en, de = (
        f'<tuv lang="{code}"><seg>{text}</seg></tuv>' for code, text in (("en", "a"), ("de", "b"))
    )
    old = f"<tu><note>ignored</note>{en}{de}</tu>"
    assert next(read_units(write(tmp_path, old), "en", "de"))[:2] == ("a", "b")


def test_utf16_is_read_by_its_byte_order_mark(tmp_path):
    path = tmp_path / "memory.tmx"
    text = write(tmp_path, unit(en="a", de="ä")).read_text().replace("UTF-8", "UTF-16")
    path.write_bytes(text.encode("utf-16"))
    assert next(read_units(path, "en", "de"))[:2] == ("a", "ä")


def test_a_missing_language_lists_the_languages_there_are(tmp_path):
    path = write(tmp_path, unit(en="a", fr="b"), unit(pt_BR="c"))
    with pytest.raises(
        DataError,
        match=r"must have units in both en and de, but has none. Languages found: en, fr, pt-BR\.",
    ):
        list(read_units(path, "en", "de"))
    with pytest.raises(DataError, match=r"Languages found: none\."):
        list(read_units(write(tmp_path), "en", "de"))


def test_a_variant_without_language_is_named_by_line(tmp_path):
    path = write(tmp_path, unit(en="a", de="b"), "<tu>\n<tuv><seg>a</seg></tuv></tu>")
    with pytest.raises(DataError, match=r"memory\.tmx line 7: <tuv> has no xml:lang\. Add it"):
        list(read_units(path, "en", "de"))


def test_broken_xml_is_named_by_line(tmp_path):
    path = write(tmp_path, unit(en="a", de="b"), "<tu><tuv xml:lang='en'><seg>a</tuv></tu>")
    with pytest.raises(DataError, match=r"line 6: not well-formed XML: mismatched tag"):
        list(read_units(path, "en", "de"))
    path.write_bytes(path.read_bytes()[:150])
    with pytest.raises(DataError, match=r"not well-formed XML: "):
        list(read_units(path, "en", "de"))


def test_an_endless_segment_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tmx, "_MAX_SEGMENT_CHARS", 10)
    path = write(tmp_path, unit(en="a" * 11, de="b"))
    with pytest.raises(DataError, match=r"line 5: a <seg> must have at most 10 characters"):
        list(read_units(path, "en", "de"))


def test_other_xml_is_refused(tmp_path):
    path = tmp_path / "page.tmx"
    path.write_text("<html>\n</html>")
    with pytest.raises(DataError, match=r"line 1: must begin with <tmx>, but with <html>"):
        list(read_units(path, "en", "de"))


def test_entities_neither_explode_nor_reach_for_files(tmp_path):
    path = tmp_path / "bomb.tmx"
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<!DOCTYPE tmx [<!ENTITY e0 "{"a" * 100}">{levels}]><tmx>'
    path.write_text(f"{bomb}<body>{unit(en='&e11;', de='b')}</body></tmx>")
    with pytest.raises(DataError, match=r"bomb\.tmx line 1: "):
        list(read_units(path, "en", "de"))
    (tmp_path / "secret").write_text("password")
    outside = f'<!DOCTYPE tmx [<!ENTITY s SYSTEM "{tmp_path}/secret">]><tmx>'
    path.write_text(f"{outside}<body>{unit(en='x&s;', de='b')}</body></tmx>")
    assert next(read_units(path, "en", "de"))[0] == "x"
