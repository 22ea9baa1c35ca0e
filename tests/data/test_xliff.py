"""Pairs from XLIFF as translation programs write it, in both versions and directions."""

from pathlib import Path

import pytest

from heed.data.readers import Pair, ParallelFiles, read_part
from heed.errors import ConfigError, DataError

ONE = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en-US" target-language="de-DE" original="x" datatype="plaintext"><body>
{}
</body></file></xliff>
"""
TWO = """<xliff version="2.0" srcLang="en" trgLang="de"
xmlns="urn:oasis:names:tc:xliff:document:2.0">
<file id="f">
{}
</file></xliff>
"""


def read(path: Path, text: str, source: str = "en", target: str = "de") -> list[Pair]:
    path.write_text(text, "utf-8")
    part = ParallelFiles(files=(str(path),), source_lang=source, target_lang=target)
    return list(read_part(part))


def sides(pairs: list[Pair]) -> list[tuple[str, str]]:
    return [(pair.src, pair.tgt) for pair in pairs]


def unit(source: str, target: str, attributes: str = "", state: str = "") -> str:
    return (
        f"<trans-unit id='1' {attributes}><source>{source}</source>"
        f"<target {state}>{target}</target></trans-unit>"
    )


def segment(source: str, target: str, attributes: str = "") -> str:
    return (
        f"<unit id='1'><segment {attributes}><source>{source}</source>"
        f"<target>{target}</target></segment></unit>"
    )


@pytest.mark.parametrize("name", ["a.xlf", "a.xliff", "a.sdlxliff", "a.mqxliff"])
def test_a_file_is_read_in_the_direction_that_is_wanted(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    text = ONE.format("\n".join([unit("The dog", "Der Hund"), unit("Yes &amp; no", "Ja")]))
    assert read(path, text) == [
        Pair("The dog", "Der Hund", 4, str(path), "en", "de"),
        Pair("Yes & no", "Ja", 5, str(path), "en", "de"),
    ]
    assert sides(read(path, text, "de", "en")) == [("Der Hund", "The dog"), ("Ja", "Yes & no")]
    text = TWO.format(segment("The dog", "Der Hund"))
    assert sides(read(path, text)) == [("The dog", "Der Hund")]
    assert sides(read(path, text, "de", "en")) == [("Der Hund", "The dog")]


@pytest.mark.parametrize(
    ("inline", "text"),
    [
        ('the <g id="1">red</g> dog', "the red dog"),
        ('<bpt id="1">&lt;b></bpt>red<ept id="1">&lt;/b></ept>', "red"),
        ('page <ph id="1">%s</ph>', "page %s"),
        ('page <ph id="1">&lt;br></ph>2', "page 2"),
        ('page <ph id="1" equiv-text="%s">%s</ph>', "page %s"),
        ('Hi <x id="1" equiv-text="{{name}}"/>!', "Hi {{name}}!"),
        ('Hi<x id="1" ctype="lb"/>!', "Hi!"),
        ('<mrk mtype="seg" mid="1">One.</mrk> <mrk mtype="seg" mid="2">Two.</mrk>', "One. Two."),
    ],
)
def test_codes_are_left_out_and_fields_are_kept(tmp_path: Path, inline: str, text: str) -> None:
    assert sides(read(tmp_path / "a.xlf", ONE.format(unit(inline, inline)))) == [(text, text)]


@pytest.mark.parametrize(
    ("inline", "text"),
    [
        ('the <pc id="1">red</pc> dog', "the red dog"),
        ('<sc id="1"/>red<ec startRef="1"/>', "red"),
        ('<ph id="1" equiv="%d"/> dogs', "%d dogs"),
        ('<ph id="1" disp="{0}"/> dogs', "{0} dogs"),
        ('<mrk id="m" type="term">dog</mrk>', "dog"),
        ('<ph id="1" dataRef="d"/> dogs', "%s dogs"),
        ('<ph id="1" dataRef="e"/> dogs', " dogs"),
    ],
)
def test_codes_of_the_second_version(tmp_path: Path, inline: str, text: str) -> None:
    data = "<originalData><data id='d'>%s</data><data id='e'>&lt;br></data></originalData>"
    written = TWO.format(segment(inline, inline).replace("<segment", f"{data}<segment"))
    assert sides(read(tmp_path / "b.xlf", written)) == [(text, text)]
    if "dataRef" in inline:
        text = " dogs"
    assert sides(read(tmp_path / "a.xlf", TWO.format(segment(inline, inline)))) == [(text, text)]


def test_what_nobody_has_translated_is_left_out(tmp_path: Path) -> None:
    rows = [
        unit("a", "b", state="state='translated'"),
        unit("c", "d", state="state='needs-translation'"),
        unit("e", "f", state="state='new'"),
        unit("g", "h", attributes="translate='no'"),
        unit("i", " "),
        "<trans-unit id='2'><source>j</source></trans-unit>",
        unit("k", "l", state="state='needs-review-translation'"),
    ]
    assert sides(read(tmp_path / "a.xlf", ONE.format("".join(rows)))) == [("a", "b"), ("k", "l")]
    rows = [
        segment("a", "b", "state='final'"),
        segment("c", "d", "state='initial'"),
        segment("e", "f").replace("<unit", "<unit translate='no'"),
        "<unit id='4'><ignorable><source> </source></ignorable></unit>",
        segment("g", "h"),
    ]
    assert sides(read(tmp_path / "a.xlf", TWO.format("".join(rows)))) == [("a", "b"), ("g", "h")]


@pytest.mark.parametrize("element", ["file", "group", "unit"])
def test_what_an_element_forbids_holds_inside_unless_an_inner_one_allows_it(
    tmp_path: Path, element: str
) -> None:
    rows = "".join(
        f"<group><unit {inner}><segment><source>{text}</source><target>{text}</target></segment>"
        "</unit></group>"
        for inner, text in (("", "a"), ("translate='yes'", "b"))
    )
    text = TWO.format(rows).replace(f"<{element} ", f"<{element} translate='no' ", 1)
    if element == "group":
        text = text.replace("<group>", "<group translate='no'>")
    assert [pair.src for pair in read(tmp_path / "a.xlf", text)] == ["b"]


def segmented(source: str, target: str) -> str:
    return ONE.format(
        f"<trans-unit id='1'><source>One. Two. Three.</source><seg-source>{source}</seg-source>"
        f"<target>{target}</target></trans-unit>"
    )


def mark(number: int, text: str) -> str:
    return f"<mrk mtype='seg' mid='{number}'>{text}</mrk>"


def test_segments_of_a_unit_are_pairs_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "a.sdlxliff"
    source = f"<g>{mark(1, 'One.')} {mark(2, '<g>Two.</g>')}</g> {mark(3, 'Three.')}"
    target = f"{mark(2, 'Zwei.')} <g>{mark(1, 'Ei<x/>ns.')}</g>{mark(3, '')}"
    assert sides(read(path, segmented(source, target))) == [("One.", "Eins."), ("Two.", "Zwei.")]
    back = sides(read(path, segmented(source, target), "de", "en"))
    assert back == [("Eins.", "One."), ("Zwei.", "Two.")]
    whole = [("One. Two. Three.", "Eins. Zwei. Drei.")]
    assert sides(read(path, segmented(source, "Eins. Zwei. Drei."))) == whole
    comments = "<mrk mtype='x-comment' mid='1'>Eins. Zwei. Drei.</mrk>"
    assert sides(read(path, segmented(source, comments))) == whole


def test_proposals_notes_and_segmented_sources_are_no_pairs(tmp_path: Path) -> None:
    aside = (
        "<trans-unit id='1'><source>One. Two.</source>"
        "<seg-source><mrk mtype='seg' mid='1'>One.</mrk></seg-source><target>Eins. Zwei.</target>"
        "<alt-trans><source>x</source><target>y</target></alt-trans><note>z</note></trans-unit>"
    )
    assert sides(read(tmp_path / "a.xlf", ONE.format(aside))) == [("One. Two.", "Eins. Zwei.")]
    aside = (
        "<unit id='1'><originalData><data id='d'>w</data></originalData>"
        "<matches><match ref='#1'><source>x</source><target>y</target></match></matches>"
        "<segment><source>One.</source><target>Eins.</target></segment></unit>"
    )
    assert sides(read(tmp_path / "a.xlf", TWO.format(aside))) == [("One.", "Eins.")]


def test_only_files_in_the_languages_are_read(tmp_path: Path) -> None:
    french = '<file source-language="en" target-language="fr"><body>{}</body></file>'
    text = ONE.replace("</xliff>", french.format(unit("the dog", "le chien")) + "</xliff>")
    path = tmp_path / "a.xlf"
    assert sides(read(path, text.format(unit("the dog", "der Hund")))) == [("the dog", "der Hund")]
    assert sides(read(path, text.format(""), "en", "fr")) == [("the dog", "le chien")]
    with pytest.raises(
        DataError, match="between en and yo, but translates en into fr and en-US in"
    ):
        read(path, text.format(""), "en", "yo")
    without = ONE.replace('target-language="de-DE"', "")
    assert sides(read(path, without.format(unit("a", "b")))) == [("a", "b")]


def test_an_unknown_entity_is_a_fault(tmp_path: Path) -> None:
    text = ONE.replace("<xliff", '<!DOCTYPE xliff SYSTEM "x.dtd"><xliff', 1)
    found = read(tmp_path / "a.xlf", text.format(unit("a&own;b", "c&nbsp;d")))
    assert [(pair.src, pair.tgt, pair.fault) for pair in found] == [
        ("a b", "c\xa0d", "unknown_entity")
    ]


def test_other_files_and_damaged_ones_are_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "a.xlf"
    with pytest.raises(DataError, match="line 1: must begin with <xliff>, but begins with <tmx>"):
        read(path, "<tmx/>")
    with pytest.raises(DataError, match="line 5: not well-formed XML"):
        read(path, ONE.format("<source>"[:-1]))
    with pytest.raises(
        ConfigError, match="Add --source-lang en --target-lang de, or --source-lang de"
    ):
        read(path, ONE.format(""), "", "")
