"""Workbooks of Office Open XML."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.fakes import backwards, shouted, unchanged
from tests.documents.test_archives import archive, contents

from heed.documents.archives import open_archive
from heed.documents.workbook import split_workbook_part
from heed.errors import DataError


def texts(part: str) -> list[str]:
    return [segment.text for segment in split_workbook_part(part).segments]


def shout(part: str, *kept: str) -> str:
    assembly = split_workbook_part(part, frozenset(kept))
    return assembly.join(shouted(assembly.segments))


def strings(*contents: str) -> str:
    items = "".join(f"<si>{content}</si>" for content in contents)
    return f'<?xml version="1.0"?>\n<sst xmlns="x" count="9">{items}</sst>'


def run(text: str, format: str = "") -> str:
    look = f"<rPr>{format}</rPr>" if format else ""
    return f'<r>{look}<t xml:space="preserve">{text}</t></r>'


BOLD = '<b/><sz val="11"/>'


def test_shared_strings_are_translated_and_numbers_kept() -> None:
    part = strings(
        "<t>a &amp; b</t>", "<t>12.5 %</t>", '<t xml:space="preserve"> cc. D </t>', "<t/>"
    )
    assert texts(part) == ["a & b", "cc.", "D"]
    assert shout(part) == part.replace("a &amp; b", "A &amp; B").replace(" cc. D", " CC. D")


def test_lines_of_a_cell_are_texts_of_their_own() -> None:
    part = strings("<t>a b\nc_x000D_\nd_x005F_e</t>")
    assert texts(part) == ["a b", "c", "d", "e"]
    assert shout(part) == strings("<t>A B\nC_x000D_\nD_x005F_E</t>")
    part = strings(run("a\nb", BOLD) + run(" c_x000D_d"))
    assert texts(part) == ["a", "b c", "d"]
    assert shout(part) == strings(
        run("A", BOLD) + run("\n", BOLD) + run("B", BOLD) + run(" C") + run("_x000D_") + run("D")
    )


def test_runs_move_with_their_words() -> None:
    part = strings(run("a ") + run("blue shirt", BOLD) + run(" is here &amp; now."))
    assembly = split_workbook_part(part)
    assert texts(part) == ["a blue shirt is here & now."]
    assert assembly.join(backwards(assembly.segments)) == strings(
        run(". now &amp; here is ") + run("shirt blue", BOLD) + run(" a")
    )


def test_prefixes_of_names_are_kept() -> None:
    part = "<x:sst><x:si><x:t>a</x:t></x:si><x:si><x:r><x:t>b</x:t></x:r></x:si></x:sst>"
    assert shout(part) == (
        "<x:sst><x:si><x:t>A</x:t></x:si>"
        '<x:si><x:r><x:t xml:space="preserve">B</x:t></x:r></x:si></x:sst>'
    )


def test_readings_are_no_text_and_do_not_fit_a_translation() -> None:
    reading = '<rPh sb="0" eb="1"><t>r</t></rPh><phoneticPr fontId="1"/>'
    part = strings(f"<t>a</t>{reading}", f"<t>1</t>{reading}", f"{run('b')}\n{reading}")
    assert texts(part) == ["a", "b"]
    assert shout(part) == strings("<t>A</t>", f"<t>1</t>{reading}", f"\n{run('B')}")


def test_cells_with_a_text_of_their_own_are_translated_and_formulas_kept() -> None:
    part = (
        '<worksheet><sheetData><row r="1"><c r="A1"><v>3</v></c><c r="B1" t="s"><v>0</v></c>'
        '<c r="C1" t="str"><f>IF(A1=1,"yes","no")</f><v>{0}</v></c><c r="D1" t="b"><v>1</v></c>'
        '<c r="E1" t="inlineStr"><is><t>{1}</t></is></c></row></sheetData></worksheet>'
    )
    assert texts(part.format("no", "a")) == ["no", "a"]
    assert shout(part.format("no", "a")) == part.format("NO", "A")


def test_comments_are_translated_but_not_their_authors() -> None:
    part = (
        "<comments><authors><author>ann</author></authors><commentList>"
        f"<comment ref='A1'><text>{run('{0}:', BOLD)}{run(chr(10))}{run('{1}')}</text></comment>"
        "<comment ref='A2'><text><t>{2}</t></text></comment></commentList></comments>"
    )
    assert shout(part.format("x", "y", "z")) == part.format("X", "Y", "Z")


def test_a_comment_that_mentions_a_person_by_position_is_kept() -> None:
    part = (
        "<ThreadedComments><threadedComment id='1'><text>a &lt; b</text></threadedComment>"
        "<threadedComment id='2'><text>@c d</text><mentions><mention startIndex='0' length='2'/>"
        "</mentions></threadedComment></ThreadedComments>"
    )
    assert texts(part) == ["a < b"]
    assert shout(part) == part.replace("a &lt; b", "A &lt; B")


def test_text_boxes_are_translated_and_names_of_shapes_kept() -> None:
    part = (
        '<xdr:wsDr><xdr:sp><xdr:cNvPr name="box"/><xdr:txBody><a:p><a:r><a:t>a b</a:t></a:r></a:p>'
        "</xdr:txBody></xdr:sp></xdr:wsDr>"
    )
    assert shout(part) == part.replace("a b", "A B")


def test_names_of_columns_stay_because_formulas_and_tables_use_them() -> None:
    table = (
        '<table displayName="t"><tableColumns><tableColumn id="1" name="unit &amp;_x000a_price"'
        ' totalsRowLabel="all"/></tableColumns></table>'
    )
    cache = '<pivotCacheDefinition><cacheFields><cacheField name="town"/></cacheFields></x>'
    part = strings("<t>unit &amp;\nprice</t>", "<t>all</t>", "<t>town</t>", "<t>towns</t>")
    parts: dict[str, str | bytes] = {
        "xl/sharedStrings.xml": part,
        "xl/tables/table1.xml": table,
        "xl/pivotCache/pivotCacheDefinition1.xml": cache,
    }
    document = open_archive("a.xlsx", archive(parts), "xlsx")
    assert [segment.text for segment in document.segments] == ["towns"]
    done = contents(document.join(shouted(document.segments)))
    assert done["xl/sharedStrings.xml"].decode() == part.replace("towns", "TOWNS")
    assert done["xl/tables/table1.xml"].decode() == table


@pytest.mark.parametrize(
    ("name", "formula", "kept"),
    [
        ("worksheets/sheet1", '<f>IF(A1="Yes","a dog",2)</f>', ["Yes", "a dog"]),
        ("worksheets/sheet1", '<x:f t="a">A1=&quot;YES&quot;</x:f>', ["Yes"]),
        ("worksheets/sheet1", '<f>COUNTIF(A:A,"&lt;&gt;yes")</f>', ["Yes"]),
        ("worksheets/sheet1", """<f>'it"s'!A1&amp;"Yes"</f>""", ["Yes"]),
        ("worksheets/sheet1", '<f>A1="say ""no"""</f>', ['say "no"']),
        ("worksheets/sheet1", '<cfRule><formula>"Yes"</formula></cfRule>', ["Yes"]),
        ("worksheets/sheet1", '<formula1>"Yes, a dog"</formula1>', ["Yes", "a dog"]),
        ("worksheets/sheet1", "<f>Yes+dog</f><t>&quot;Yes&quot;</t>", []),
        ("workbook", '<definedName name="x">"Yes"</definedName>', ["Yes"]),
        ("tables/table1", '<calculatedColumnFormula>"Yes"</calculatedColumnFormula>', ["Yes"]),
    ],
)
def test_a_text_that_a_formula_spells_stays(name: str, formula: str, kept: list[str]) -> None:
    every = ["Yes", "a dog", 'say "no"', "Yes."]
    parts: dict[str, str | bytes] = {
        "xl/sharedStrings.xml": strings(*(f"<t>{text}</t>" for text in every)),
        f"xl/{name}.xml": f"<a><sheetData/>{formula}</a>",
    }
    document = open_archive("a.xlsx", archive(parts), "xlsx")
    found = [segment.text for segment in document.segments]
    assert found == [text for text in every if text not in kept]


def test_a_sheet_of_numbers_is_not_read() -> None:
    """On a server the signs of a file are limited, and a sheet may hold a million numbers."""
    cells = '<c r="A1" s="2"><v>1</v></c>' * 1_000
    parts: dict[str, str | bytes] = {
        "xl/worksheets/sheet1.xml": f"<worksheet><sheetData>{cells}</sheetData></worksheet>",
        "xl/worksheets/sheet2.xml": "<worksheet><sheetData><c t='inlineStr'><is><t>a</t></is></c>"
        "</sheetData></worksheet>",
    }
    elements: list[int] = []
    data = archive(parts)
    document = open_archive("a.xlsx", data, "xlsx", lambda _, n: elements.append(n))
    assert [segment.text for segment in document.segments] == ["a"]
    assert sum(elements) < 10
    numbers = archive({"xl/worksheets/sheet1.xml": parts["xl/worksheets/sheet1.xml"]})
    assert open_archive("a.xlsx", numbers, "xlsx").segments == []


def test_names_of_columns_count_as_elements() -> None:
    """So that a server can refuse a file of millions of them."""
    columns = '<tableColumn name="a"/>' * 1_000
    data = archive({"xl/sharedStrings.xml": strings(), "xl/tables/table1.xml": columns})
    elements: list[int] = []
    open_archive("a.xlsx", data, "xlsx", lambda _, n: elements.append(n))
    assert sum(elements) > 1_000


def test_text_that_is_not_text_of_xml_is_kept() -> None:
    part = strings("<t>a <![CDATA[b]]></t>", "<t>c<!-- d --></t>", "<!-- e --><t>f</t>")
    assert texts(part) == ["f"]
    assert shout(part) == part.replace("<t>f", "<t>F")


@pytest.mark.parametrize("root", ["text", "si", "is", "c", "v", "r", "t"])
def test_any_root_is_read(root: str) -> None:
    part = f"<{root}>a</{root}>"
    assembly = split_workbook_part(part)
    assert assembly.join(unchanged(assembly.segments)) == part


@pytest.mark.parametrize("part", ["<sst><si></sst>", strings("<t>\ufdd0</t>")])
def test_malformed_parts_are_refused(part: str) -> None:
    with pytest.raises(DataError):
        split_workbook_part(part)


TAG = re.compile("<[^<>]*>")
PIECES = ("a", "b", " ", ". ", "\n", "_x000D_", "&")
TEXTS = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


@given(st.lists(st.lists(st.tuples(TEXTS, st.sampled_from(["", BOLD])), max_size=3), max_size=4))
def test_unchanged_segments_give_the_part(items: list[list[tuple[str, str]]]) -> None:
    written = [
        "".join(run(text.replace("&", "&amp;"), format) for text, format in item) for item in items
    ]
    written += [f"<t>{text.replace('&', '&amp;')}</t>" for item in items for text, _ in item]
    part = strings(*written)
    assembly = split_workbook_part(part)
    assert assembly.join(unchanged(assembly.segments)) == part
    done = assembly.join(shouted(assembly.segments))
    assert TAG.sub("", done).lower() == TAG.sub("", part).lower()
