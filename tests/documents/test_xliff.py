"""XLIFF: missing translations are filled in, everything else stays as it is."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.fakes import backwards, shouted, unchanged

from heed.documents.assembly import Assembly
from heed.documents.xliff import split_xliff
from heed.errors import DataError

ONE = (
    '<?xml version="1.0"?>\n<xliff version="1.2"><file source-language="en" target-language="de">'
    "<body>\n{}\n</body></file></xliff>\n"
)
TWO = '<xliff version="2.0" srcLang="en" trgLang="de"><file id="f">{}</file></xliff>'


def texts(assembly: Assembly) -> list[str]:
    return [segment.text for segment in assembly.segments]


def filled(text: str, target_lang: str = "") -> str:
    assembly = split_xliff(text, target_lang)
    return assembly.join(shouted(assembly.segments))


def in_one(unit: str) -> str:
    """A unit of the first version, filled."""
    before, after = ONE.split("{}")
    return filled(before + unit + after).removeprefix(before).removesuffix(after)


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("", "<target>A DOG</target>"),
        ("<target/>", "<target>A DOG</target>"),
        ("<target></target>", "<target>A DOG</target>"),
        ("<target> </target>", "<target>A DOG</target>"),
        ("<target>&#32;</target>", "<target>A DOG</target>"),
        ('<target xml:lang="de" />', '<target xml:lang="de">A DOG</target>'),
        (
            "<target state='needs-translation'/>",
            '<target state="needs-review-translation">A DOG</target>',
        ),
        (
            '<target state="new">a dog</target>',
            '<target state="needs-review-translation">A DOG</target>',
        ),
    ],
)
def test_a_missing_target_is_filled_in(target: str, found: str) -> None:
    unit = "<trans-unit id='1'><source>a dog</source>{}<note>b</note></trans-unit>"
    assert in_one(unit.format(target)) == unit.format(found)


@pytest.mark.parametrize("target", ["<![CDATA[ein Hund]]>", "&own;", "ein <![CDATA[Hund]]>"])
def test_a_translation_in_cdata_or_an_entity_stays(target: str) -> None:
    unit = f"<trans-unit id='1'><source>a dog</source><target>{target}</target></trans-unit>"
    assert in_one(unit) == unit


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("<![CDATA[a dog]]>", "A DOG"),
        ("<![CDATA[a dog & a cat]]>", "A DOG &amp; A CAT"),
        ("a <![CDATA[black]]> dog", "A BLACK DOG"),
        ("<![CDATA[]]>", "<![CDATA[]]>"),
    ],
)
def test_cdata_is_translated(source: str, found: str) -> None:
    unit = "<trans-unit id='1'><source>{}</source>{}</trans-unit>"
    target = f"<target>{found}</target>"
    assert in_one(unit.format(source, "<target/>")) == unit.format(source, target)


@pytest.mark.parametrize(
    "unit",
    [
        "<trans-unit id='1'><source>a dog</source><target>ein Hund</target></trans-unit>",
        "<trans-unit id='1'><source>a</source><target><x id='1'/></target></trans-unit>",
        "<trans-unit id='1' translate='no'><source>a dog</source></trans-unit>",
        "<group translate='no'><trans-unit id='1'><source>a dog</source></trans-unit></group>",
        "<note>a <source>dog</source></note>",
        "<trans-unit id='1'><note>a dog</note></trans-unit>",
    ],
)
def test_other_units_stay_as_they_are(unit: str) -> None:
    assert in_one(unit) == unit


@pytest.mark.parametrize("translate", ["translate", "its:translate"])
def test_an_element_may_allow_what_the_one_around_it_forbids(translate: str) -> None:
    unit = "<trans-unit id='1'{}><source>a dog</source>{}</trans-unit>"
    group = f"<group {translate}='no'>{unit.format('', '')}{{}}</group>"
    allowed = f" {translate}='yes'"
    found = group.format(unit.format(allowed, "<target>A DOG</target>"))
    assert in_one(group.format(unit.format(allowed, ""))) == found


@pytest.mark.parametrize(
    ("place", "segments"),
    [
        ("source", ["a", "dog"]),
        ("trans-unit", ["a", "dog"]),
        ("body", ["a", "dog"]),
        ("", ["a\ndog"]),
    ],
)
def test_line_breaks_separate_texts_where_space_is_preserved(
    place: str, segments: list[str]
) -> None:
    text = ONE.format("<trans-unit><source>a\ndog</source></trans-unit>")
    text = text.replace(f"<{place}>", f'<{place} xml:space="preserve">') if place else text
    assert texts(split_xliff(text)) == segments
    reset = text.replace("<source", '<source xml:space="default"', 1)
    if place in ("trans-unit", "body"):
        assert texts(split_xliff(reset)) == ["a\ndog"]


def test_protected_text_is_read_and_kept() -> None:
    for mark in ("<mrk mtype='protected'>Anna</mrk>", "<mrk translate='no'>Anna</mrk>"):
        unit = f"<trans-unit><source>see {mark} there</source>{{}}</trans-unit>"
        text = ONE.format(unit.format(""))
        assert texts(split_xliff(text)) == ["see Anna there"]
        assert in_one(unit.format("")) == unit.format(f"<target>SEE {mark} THERE</target>")


def test_a_field_may_be_written_with_entities() -> None:
    text = ONE.format(
        "<trans-unit><source>see <x id='1' equiv-text='&#37;s'/></source></trans-unit>"
    )
    assert texts(split_xliff(text)) == ["see %s"]


def test_only_files_in_the_language_are_filled_in() -> None:
    unit = "<trans-unit><source>a dog</source>{}</trans-unit>"
    file = "<file source-language='en' target-language='{}'><body>{}</body></file>"
    text = "<xliff version='1.2'>{}{}{}</xliff>"
    files = [file.format(language, unit.format("")) for language in ("fr", "de-AT", "")]
    done = [each.format("<target>A DOG</target>") for each in (unit, unit)]
    found = [
        files[0],
        *(file.format(name, each) for name, each in zip(("de-AT", ""), done, strict=True)),
    ]
    assert filled(text.format(*files), "de") == text.format(*found)
    with pytest.raises(DataError, match=r"into yo, but says that .* into fr and de-AT\.$"):
        split_xliff(text.format(*files), "yo")
    with pytest.raises(DataError, match=r"into fr, but says that it is translated into de\.$"):
        split_xliff(TWO.format(""), "fr")


def test_the_second_version_gets_the_language_of_its_targets() -> None:
    without = TWO.replace(' trgLang="de"', "")
    unit = "<unit id='1'><segment><source>a dog</source>{}</segment></unit>"
    found = TWO.format(unit.format("<target>A DOG</target>"))
    assert filled(without.format(unit.format("")), "de") == found
    empty = without.format(unit.format("<target>ein Hund</target>"))
    assert filled(empty, "de") == empty


def test_a_new_target_has_a_line_of_its_own_where_the_source_has_one() -> None:
    unit = "  <trans-unit id='1'>\n    <source>a</source>{}\n  </trans-unit>"
    assert in_one(unit.format("")) == unit.format("\n    <target>A</target>")


def test_names_may_have_a_prefix() -> None:
    text = (
        "<x:xliff version='1.2'><x:file><x:body><x:trans-unit><x:source>a</x:source>"
        "{}</x:trans-unit></x:body></x:file></x:xliff>"
    )
    assert filled(text.format("")) == text.format("<x:target>A</x:target>")


def test_proposals_are_not_translated() -> None:
    unit = (
        "<trans-unit id='1'><source>a dog</source>{}<alt-trans><source>a dog</source>"
        "<target>ein Hund</target></alt-trans></trans-unit>"
    )
    assert in_one(unit.format("")) == unit.format("<target>A DOG</target>")


def test_segments_keep_their_marks() -> None:
    unit = (
        "<trans-unit id='1'><source>One. Two.</source><seg-source>"
        "<mrk mtype='seg' mid='1'>One.</mrk> <mrk mtype='seg' mid='2'>Two.</mrk></seg-source>"
        "{}</trans-unit>"
    )
    found = (
        "<target><mrk mtype='seg' mid='1'>ONE.</mrk> <mrk mtype='seg' mid='2'>TWO.</mrk></target>"
    )
    assert in_one(unit.format("")) == unit.format(found)


@pytest.mark.parametrize(
    ("target", "found"),
    [
        (
            "<mrk mtype='seg' mid='1'>Eins.</mrk> <mrk mtype='seg' mid='2' />",
            "<mrk mtype='seg' mid='1'>Eins.</mrk> "
            "<mrk mtype='seg' mid='2'><g id='1'>TWO</g>.</mrk>",
        ),
        (
            "<g id='1'><mrk mid='2' mtype='seg'> </mrk></g> <mrk mtype='seg' mid='3'/>Eins.",
            "<g id='1'><mrk mid='2' mtype='seg'><g id='1'>TWO</g>.</mrk></g> "
            "<mrk mtype='seg' mid='3'/>Eins.",
        ),
        (
            "<mrk mtype='seg' mid='1'/><mrk mtype='seg' mid='2'></mrk>",
            "<mrk mtype='seg' mid='1'>ONE.</mrk> <mrk mtype='seg' mid='2'><g id='1'>TWO</g>.</mrk>",
        ),
        ("<mrk mtype='seg' mid='1'/>&own;", "<mrk mtype='seg' mid='1'>ONE.</mrk>&own;"),
        ("<mrk mtype='x'/>", "<mrk mtype='x'/>"),
    ],
)
def test_segments_without_a_translation_are_filled_in(target: str, found: str) -> None:
    unit = (
        "<trans-unit id='1'><source>One. <g id='1'>Two</g>.</source><seg-source>"
        "<mrk mtype='seg' mid='1'>One.</mrk> <mrk mtype='seg' mid='2'><g id='1'>Two</g>.</mrk>"
        "</seg-source><target>{}</target></trans-unit>"
    )
    assert in_one(unit.format(target)) == unit.format(found)


@pytest.mark.parametrize(
    ("target", "marked"),
    [("", "1 2"), ("<target/>", "1 2"), ("<target>{} {}</target>", "2")],
)
def test_trados_studio_is_told_which_segments_were_filled(target: str, marked: str) -> None:
    segment, draft = "<mrk mtype='seg' mid='{}'>{}</mrk>", ' conf="Draft" origin="mt"'
    source = " ".join(segment.format(mid, text) for mid, text in ((1, "One."), (2, "Two.")))
    target = target.format(segment.format(1, "Eins."), segment.format(2, ""))
    unit = (
        f"<trans-unit id='1'><source>One. Two.</source><seg-source>{source}</seg-source>{target}"
        "<sdl:seg-defs><sdl:seg id='1' percent='0'/><sdl:seg id='2' {}><sdl:value>x</sdl:value>"
        "</sdl:seg><sdl:seg id='3' /></sdl:seg-defs></trans-unit>"
    )
    found = in_one(unit.format(""))
    assert found.count(draft) == len(marked.split())
    assert ("<sdl:seg id='1' percent='0'" + draft + "/>" in found) == ("1" in marked)
    assert "<sdl:seg id='2'" + draft + " >" in found
    assert 'conf="Draft">' in in_one(unit.format("origin='tm'"))
    assert "conf='Translated'>" in in_one(unit.format("conf='Translated'"))


def test_fields_of_codes_may_stand_apart() -> None:
    data = "<originalData><data id='d'>%s</data><data id='e'>&lt;br></data></originalData>"
    source = "a <ph dataRef='d'/> b<ph dataRef='e'/>"
    unit = f"<unit>{{}}<segment><source>{source}</source></segment></unit>"
    assert texts(split_xliff(TWO.format(unit.format(data) + unit.format("")))) == ["a %s b", "a  b"]


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ("the <g id='1'>red</g> dog", "the red dog"),
        ("<bpt id='1'>&lt;b></bpt>red<ept id='1'>&lt;/b></ept> dogs", "red dogs"),
        ("<bx id='1'/>red<ex id='2' rid='1'/> dogs", "red dogs"),
        ("<ph id='1'>%s</ph> dogs", "%s dogs"),
        ("<ph id='1'>&lt;br></ph>dogs", "dogs"),
        ("<x id='1' equiv-text='{n}'/> dogs", "{n} dogs"),
        ("two<bx id='1'/> red<bx id='2'/> big<ex id='1'/> dogs<ex id='2'/>", "two red big dogs"),
        ("<ept id='1'/>red<bpt id='1'/> dogs", "red dogs"),
        ("<ph id='1'>a<sub>b<ph id='2'>c</ph></sub></ph>dogs", "dogs"),
        ("fish &amp; dogs", "fish & dogs"),
    ],
)
def test_codes_are_not_read_and_stand_once_in_the_target(source: str, read: str) -> None:
    text = ONE.format(f"<trans-unit id='1'><source>{source}</source></trans-unit>")
    assembly = split_xliff(text)
    assert texts(assembly) == [read]
    same = f"<source>{source}</source><target>{source}</target>"
    assert same in assembly.join(unchanged(assembly.segments))
    codes = re.findall(r"<[^<>]*>", source)
    target = assembly.join(shouted(assembly.segments)).partition("<target>")[2]
    assert sorted(re.findall(r"<[^<>]*>", target.partition("</target>")[0])) == sorted(codes)


def test_codes_that_belong_together_stay_in_order_among_words_in_any_order() -> None:
    source = "see <bpt id='1'/>red <bx id='2'/>big<ex id='2'/><ept id='1'/> dogs"
    assembly = split_xliff(ONE.format(f"<trans-unit><source>{source}</source></trans-unit>"))
    target = assembly.join(backwards(assembly.segments)).partition("<target>")[2]
    assert target.startswith(
        "dogs <bpt id='1'/><bx id='2'/>big<ex id='2'/> red<ept id='1'/> see</target>"
    )


def test_a_source_without_words_is_its_own_translation() -> None:
    unit = "<trans-unit id='1'><source><x id='1'/> 12</source>{}</trans-unit>"
    assert in_one(unit.format("")) == unit.format("<target><x id='1'/> 12</target>")


def test_segments_of_the_second_version_are_filled_in() -> None:
    unit = (
        "<unit id='1'><originalData><data id='d'>x</data></originalData><segment{}>"
        "<source>the <pc id='1'>red</pc> dog<ph id='2' dataRef='d'/></source>{}</segment></unit>"
    )
    found = "<target>THE <pc id='1'>RED</pc> DOG<ph id='2' dataRef='d'/></target>"
    assert filled(TWO.format(unit.format("", ""))) == TWO.format(unit.format("", found))
    old = unit.format(' state="initial"', "<target>the red dog</target>")
    assert filled(TWO.format(old)) == TWO.format(unit.format(' state="translated"', found))
    done = unit.format(' state="final"', "<target>der rote Hund</target>")
    assert filled(TWO.format(done)) == TWO.format(done)
    kept = "<unit id='1' translate='no'><segment><source>a</source></segment></unit>"
    assert filled(TWO.format(kept)) == TWO.format(kept)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<tmx/>", "must begin with <xliff>, but does not, at line 1, column 1"),
        ("", "must begin with <xliff>"),
        ("<xliff><file></xliff>", "malformed at line 1, column 14"),
        ("<xliff><file>", "never closed"),
    ],
)
def test_other_files_are_refused_in_words(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        split_xliff(text)


PIECES = st.sampled_from(
    [
        *("a dog. ", "two", " ", "&amp;", "\n", "12", "%s"),
        *("<g id='1'>", "</g>", "<x id='2'/>", "<mrk mtype='seg' mid='1'>", "</mrk>", "<mrk/>"),
        *("<bpt id='3'>&lt;b></bpt>", "<ept id='3'/>", "<bx id='4'/>", "<ex id='4'/>"),
        *("<ph id='5'>%d</ph>", "<sub>x</sub>", "<!-- c -->"),
    ]
)


@given(
    st.lists(PIECES, max_size=12).map("".join),
    st.sampled_from(["", "<target/>", "<target>b</target>", "<seg-source>{}</seg-source>"]),
)
def test_nothing_but_targets_is_ever_added(content: str, rest: str) -> None:
    unit = f"<trans-unit id='1'><source>{content}</source>{rest.format(content)}</trans-unit>"
    try:
        assembly = split_xliff(ONE.format(unit))
    except DataError:
        return
    done = assembly.join(unchanged(assembly.segments))
    target = "" if "<target>b" in rest else f"<target>{content}</target>"
    kept = "" if rest == "<target/>" else rest.format(content)
    filled_unit = f"<trans-unit id='1'><source>{content}</source>{kept}{target}</trans-unit>"
    assert done == ONE.format(filled_unit)


@pytest.mark.parametrize("holder", ["source", "target", "seg-source"])
def test_units_in_units_are_read_once(holder: str) -> None:
    """They were read once for each unit around them: 15 s for 60 kB."""
    unit = f"<trans-unit><source>a</source><{holder}>", f"</{holder}></trans-unit>"
    text = ONE.format(unit[0] * 5000 + "b" + unit[1] * 5000)
    assembly = split_xliff(text)
    assert len(assembly.join(unchanged(assembly.segments))) >= len(text)
