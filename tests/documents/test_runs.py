"""Paragraphs of Office Open XML."""

import re
import xml.dom.minidom
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.fakes import backwards, shouted, unchanged

from heed.documents.runs import split_runs
from heed.errors import DataError
from heed.translate.result import Translation


def run(text: str, format: str = "") -> str:
    look = f"<w:rPr>{format}</w:rPr>" if format else ""
    return f'<w:r>{look}<w:t xml:space="preserve">{text}</w:t></w:r>'


BOLD = "<w:b/>"


def paragraph(*parts: str) -> str:
    return f"<w:document><w:p><w:pPr/>{''.join(parts)}</w:p></w:document>"


def texts(part: str) -> list[str]:
    return [segment.text for segment in split_runs(part).segments]


def test_unchanged_segments_give_the_part() -> None:
    part = paragraph(
        run("a "), "<w:proofErr/>", run("b", BOLD), '<w:r w:rsidR="1"><w:t>c</w:t></w:r>'
    )
    assembly = split_runs(part)
    assert assembly.join(unchanged(assembly.segments)) == part


def test_runs_move_with_their_words_and_plain_text_stays_in_runs() -> None:
    part = paragraph(run("a "), run("blue shirt", BOLD), run(" is here &amp; now."))
    assembly = split_runs(part)
    assert texts(part) == ["a blue shirt is here & now."]
    assert assembly.join(backwards(assembly.segments)) == paragraph(
        run(". now &amp; here is "), run("shirt blue", BOLD), run(" a")
    )


def test_a_text_inside_another_element_of_a_run_stays() -> None:
    """Word writes a symbol this way, with a letter for programs without the symbol."""
    symbol = "<mc:AlternateContent><mc:Fallback><w:t>A</w:t></mc:Fallback></mc:AlternateContent>"
    part = paragraph(f'<w:r><w:t xml:space="preserve">a </w:t>{symbol}<w:t>b</w:t></w:r>')
    assembly = split_runs(part)
    assert texts(part) == ["a", "b"]
    done = assembly.join(shouted(assembly.segments))
    assert symbol in done
    xml.dom.minidom.parseString(re.sub(r"\b(w|mc):", r"\1_", done))


def test_neighboring_runs_that_look_the_same_are_one() -> None:
    part = paragraph(
        run("a b "),
        '<w:r w:rsidR="00AA"><w:rPr><w:b/></w:rPr><w:t>b</w:t></w:r>',
        '<w:proofErr w:type="x"/>',
        '<w:r><w:rPr><w:b/><w:lang w:val="en"/></w:rPr><w:lastRenderedPageBreak/>'
        "<w:t>lue</w:t></w:r>",
    )
    assembly = split_runs(part)
    assert texts(part) == ["a b blue"]
    done = assembly.join(shouted(assembly.segments))
    assert re.sub(' w:rsidR="00AA"', "", done) == paragraph(run("A B "), run("BLUE", BOLD))


def test_links_and_bookmarks_move_with_their_words() -> None:
    link = '<w:hyperlink r:id="1">' + run("two words", "<w:u/>") + "</w:hyperlink>"
    mark = '<w:bookmarkStart w:id="0"/>'
    part = paragraph(run("first and "), link, mark, run(" at the end"))
    assembly = split_runs(part)
    done = assembly.join(backwards(assembly.segments))
    assert done.count('<w:hyperlink r:id="1">' + run("words two", "<w:u/>") + "</w:hyperlink>") == 1
    assert done.count(mark) == 1
    assert re.sub("<.*?>", "", done) == "end the at words two and first"


@pytest.mark.parametrize(
    "between",
    [
        "<w:r><w:tab/></w:r>",
        "<w:r><w:br/></w:r>",
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r>',
        "</w:p><w:p>",
    ],
)
def test_what_is_no_plain_run_parts_texts(between: str) -> None:
    part = paragraph(run("a b"), between, run("c d"))
    assembly = split_runs(part)
    assert texts(part) == ["a b", "c d"]
    assert assembly.join(shouted(assembly.segments)) == paragraph(run("A B"), between, run("C D"))


def test_what_is_no_text_parts_the_texts_of_a_run() -> None:
    look = "<w:rPr><w:b/></w:rPr>"
    part = paragraph(
        run("a "), f"<w:r>{look}<w:t>man</w:t><w:br/><w:t>a </w:t><w:t>dog</w:t></w:r>", run(" b")
    )
    assembly = split_runs(part)
    assert texts(part) == ["a man", "a dog b"]
    assert assembly.join(shouted(assembly.segments)) == paragraph(
        run("A "), run("MAN", BOLD), f"<w:r>{look}<w:br/></w:r>", run("A DOG", BOLD), run(" B")
    )


def test_hyphens_of_a_word_do_not_part_it() -> None:
    soft, hard = "<w:softHyphen/>", "<w:noBreakHyphen/>"
    part = paragraph(
        f"<w:r><w:t>Soft</w:t>{soft}<w:t>ware by e</w:t>{hard}<w:t>mail, </w:t></w:r>",
        f"<w:r>{soft}</w:r><w:r>{hard}</w:r>",
        run("all"),
    )
    assembly = split_runs(part)
    assert texts(part) == ["Software by e\u2011mail, \u2011all"]
    assert assembly.join(unchanged(assembly.segments)) == part
    done = assembly.join(shouted(assembly.segments))
    assert re.sub("<.*?>", "", done) == "SOFTWARE BY E\u2011MAIL, \u2011ALL"
    xml.dom.minidom.parseString(done.replace("<w:document>", '<w:document xmlns:w="w">'))


def test_tracked_insertions_move_with_their_words() -> None:
    inserted = '<w:ins w:id="1">{}</w:ins>'
    part = paragraph(run("a "), inserted.format(run("new ")), run("dog"))
    assembly = split_runs(part)
    assert texts(part) == ["a new dog"]
    assert assembly.join(unchanged(assembly.segments)) == part
    done = assembly.join(backwards(assembly.segments))
    assert re.sub("<.*?>", "", done) == "dog new a"
    assert inserted.format(run("new ")) in done
    within = inserted.format(run("b c") + "<w:r><w:tab/></w:r>" + run("d e"))
    part = paragraph(run("a "), within, run(" f"))
    assembly = split_runs(part)
    assert texts(part) == ["a", "b c", "d e", "f"]  # half of a pair parts texts
    assert assembly.join(shouted(assembly.segments)) == re.sub(
        "(?<=>)[a-f ]+(?=<)", lambda match: match[0].upper(), part
    )
    mark = "<w:pPr><w:rPr><w:ins/></w:rPr></w:pPr>"
    part = f"<w:document><w:p>{mark}{run('a')}</w:p></w:document>"
    assembly = split_runs(part)
    assert assembly.join(shouted(assembly.segments)) == part.replace(">a<", ">A<")


def deleted(text: str, tag: str = "w:delText") -> str:
    return f'<w:r><{tag} xml:space="preserve">{text}</{tag}></w:r>'


@pytest.mark.parametrize(
    "change",
    [
        f'<w:del w:id="1" w:author="A">{deleted("old ")}{deleted("small ")}</w:del>',
        f'<w:del w:id="1">\n  {deleted("old ")}\n</w:del>',
        f'<w:moveFrom w:id="1">{deleted("old ", "w:t")}</w:moveFrom>',
        f'<w:moveFromRangeStart w:id="1"/><w:moveFrom w:id="2">{deleted("old ", "w:t")}'
        '</w:moveFrom><w:moveFromRangeEnd w:id="1"/>',
        f'<w:ins w:id="2"><w:del w:id="1">{deleted("old ")}</w:del></w:ins>',
        '<w:del w:id="1"><w:r><w:tab/></w:r><w:r><w:drawing><w:p/></w:drawing></w:r></w:del>',
    ],
)
def test_tracked_deletions_are_no_text_and_do_not_part_one(change: str) -> None:
    part = paragraph(run("the "), change, run("new dog"))
    assembly = split_runs(part)
    assert texts(part) == ["the new dog"]
    assert assembly.join(unchanged(assembly.segments)) == part
    assert assembly.join(shouted(assembly.segments)) == paragraph(
        run("THE "), change, run("NEW DOG")
    )
    turned = assembly.join(backwards(assembly.segments))
    assert turned.replace(change, "").count("old") == 0
    tags = re.findall("<w:(?:del|moveFrom|ins).*?>", change)
    assert re.findall("<w:(?:del|moveFrom|ins).*?>", turned) == tags
    xml.dom.minidom.parseString(turned.replace("<w:document>", '<w:document xmlns:w="w">'))


def test_a_deletion_and_an_insertion_in_a_word_leave_one_word() -> None:
    change = f"<w:del>{deleted('our')}</w:del><w:ins>{run('or')}</w:ins>"
    part = paragraph(run("the col"), change, run(" of it"))
    assembly = split_runs(part)
    assert texts(part) == ["the color of it"]
    done = assembly.join(shouted(assembly.segments))
    assert re.sub("<w:delText.*?/w:delText>|<.*?>", "", done) == "THE COLOR OF IT"


def test_a_deleted_paragraph_or_mark_has_no_text() -> None:
    mark = "<w:pPr><w:rPr><w:del w:id='1'/></w:rPr></w:pPr>"
    part = f"<w:document><w:p>{mark}<w:del>{deleted('all of it')}</w:del></w:p></w:document>"
    assembly = split_runs(part)
    assert texts(part) == []
    assert assembly.join([]) == part


def test_the_parts_of_a_deleted_field_keep_their_order() -> None:
    kinds = ("begin", "separate", "end")
    fields = [f'<w:del><w:r><w:fldChar w:fldCharType="{kind}"/></w:r></w:del>' for kind in kinds]
    part = paragraph(run("a b"), fields[0], run(" c d "), fields[1], fields[2], run("e f"))
    assembly = split_runs(part)
    assert texts(part) == ["a b", "c d", "e f"]
    assert re.findall('Type="(.*?)"', assembly.join(backwards(assembly.segments))) == list(kinds)


@pytest.mark.parametrize("name", ["footnoteReference", "endnoteReference", "commentReference"])
def test_the_mark_of_a_note_does_not_part_a_sentence(name: str) -> None:
    mark = f'<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:{name} w:id="1"/></w:r>'
    part = paragraph(run("the dog"), mark, run(" barks."))
    assembly = split_runs(part)
    assert texts(part) == ["the dog barks."]
    assert assembly.join(unchanged(assembly.segments)) == part
    assert assembly.join(shouted(assembly.segments)) == paragraph(
        run("THE DOG"), mark, run(" BARKS.")
    )
    turned = assembly.join(backwards(assembly.segments))
    assert turned == paragraph(run(". barks dog"), mark, run(" the"))
    own = f'<w:r><w:{name} w:customMarkFollows="1" w:id="1"/><w:t>*</w:t></w:r>'
    part = paragraph(run("the dog"), own, run(" barks."))
    xml.dom.minidom.parseString(
        split_runs(part).join(shouted(split_runs(part).segments)).replace("w:", "w_")
    )


def mark(kind: str) -> str:
    return f'<w:fldChar w:fldCharType="{kind}"/>'


def parts_of_field(*kinds: str) -> str:
    return "".join(f"<w:r>{mark(kind)}</w:r>" for kind in kinds)


CODE = "<w:r><w:instrText> REF a </w:instrText></w:r>"
BEGIN, SEPARATE, END = (parts_of_field(kind) for kind in ("begin", "separate", "end"))


@pytest.mark.parametrize(
    ("opening", "result", "closing"),
    [
        ('<w:fldSimple w:instr="PAGE">', "3", "</w:fldSimple>"),
        (BEGIN + CODE + SEPARATE, "the house", END),
        (BEGIN + CODE + BEGIN + CODE + SEPARATE + run("no") + END + SEPARATE, "it", END),
        (f"<w:r>{mark('begin')}<w:instrText/>{mark('separate')}</w:r>", "it", END),
        (BEGIN + CODE + END, "", ""),
        (f"<w:r>{mark('begin')}{mark('separate')}<w:t>3</w:t>{mark('end')}</w:r>", "", ""),
        ("<m:oMath><m:r><m:t>x</m:t></m:r></m:oMath>", "", ""),
        ('<a:fld type="slidenum"><a:t>3</a:t></a:fld>', "", ""),
    ],
)
def test_a_field_moves_among_the_words_of_its_sentence(
    opening: str, result: str, closing: str
) -> None:
    field = opening + (run(result) if result else "") + closing
    part = paragraph(run("a dog "), field, run(" barks."))
    assembly = split_runs(part)
    assert texts(part) == [f"a dog {result} barks."]
    assert assembly.join(unchanged(assembly.segments)) == part
    turned = assembly.join(backwards(assembly.segments))
    backward = " ".join(result.split()[::-1])
    assert opening + (run(backward) if result else "") + closing in turned
    assert turned.index("barks") < turned.index(opening)


def lowest_depth(marks: list[str]) -> int:
    return min(accumulate({"begin": 1, "end": -1}.get(mark, 0) for mark in ["", *marks]))


@given(st.lists(st.sampled_from((BEGIN, SEPARATE, END, CODE, "</w:p><w:p>", "a", "b. c"))))
def test_fields_stay_well_nested_wherever_they_end(parts: list[str]) -> None:
    part = paragraph(*(run(text) if text[0] != "<" else text for text in parts))
    assembly = split_runs(part)
    turned = assembly.join(backwards(assembly.segments))
    xml.dom.minidom.parseString(turned.replace("<w:document>", '<w:document xmlns:w="w">'))
    pattern = re.compile("begin|instrText|separate|end|w:p>")
    before, after = pattern.findall(part), pattern.findall(turned)
    assert sorted(after) == sorted(before)
    assert lowest_depth(after) >= lowest_depth(before)


INSIDE = (
    "<w:softHyphen/>",
    "<w:t>a b</w:t>",
    "<w:t>c</w:t>",
    "<w:t/>",
    "<w:t>d<!-- x --></w:t>",
    "<w:tab/>",
    "<w:lastRenderedPageBreak/>",
    "<w:drawing><w:p><w:r><w:t>e</w:t><w:br/><w:t>f g</w:t></w:r></w:p></w:drawing>",
)


@given(st.lists(st.lists(st.sampled_from(INSIDE), max_size=5), max_size=4))
def test_translated_runs_keep_what_is_no_text_in_its_order(runs: list[list[str]]) -> None:
    part = paragraph(*(f"<w:r>{''.join(inside)}</w:r>" for inside in runs))
    assembly = split_runs(part)
    assert assembly.join(unchanged(assembly.segments)) == part
    done = assembly.join(shouted(assembly.segments))
    xml.dom.minidom.parseString(done.replace("<w:document>", '<w:document xmlns:w="w">'))

    def skeleton(text: str) -> str:
        dropped = "<w:lastRenderedPageBreak/>|<w:softHyphen/>|<w:t/>|<!-- x -->"
        text = re.sub(dropped, "", text)
        return re.sub(r"</?w:(?:r|t|t xml:space=\"preserve\")>", "", text)

    # "d" stands beside a comment, so it is no text.
    wanted = re.sub(r"(?<=>)[abcefg ]+(?=<)", lambda match: match[0].upper(), part)
    assert skeleton(done) == skeleton(wanted)


INDENTED = """<w:document>
  <w:p>
    <w:pPr/>
    <w:r>
      <w:t xml:space="preserve">a </w:t>
    </w:r>
    <w:r>
      <w:rPr>
        <w:b/>
      </w:rPr>
      <w:t>blue</w:t>
    </w:r>
    <w:r>
      <w:rPr>
        <w:b/>
        <w:noProof/>
      </w:rPr>
      <w:t xml:space="preserve"> </w:t>
      <w:t>shirt</w:t>
    </w:r>
    <w:r>
      <w:t xml:space="preserve"> is here</w:t>
    </w:r>
  </w:p>
</w:document>
"""


def test_white_space_between_elements_means_nothing() -> None:
    assembly = split_runs(INDENTED)
    assert texts(INDENTED) == ["a blue shirt is here"]
    assert assembly.join(unchanged(assembly.segments)) == INDENTED
    done = assembly.join(backwards(assembly.segments))
    assert done.startswith("<w:document>\n  <w:p>\n    <w:pPr/>\n    <w:r>\n      <w:t ")
    assert done.endswith("</w:r>\n  </w:p>\n</w:document>\n")
    assert re.sub(r">\s+<", "><", done.strip()) == paragraph(
        run("here is "), run("shirt blue", BOLD), run(" a")
    )


def test_tracked_formats_within_a_format_are_kept() -> None:
    changed = "<w:b/><w:rPrChange><w:rPr><w:i/></w:rPr></w:rPrChange>"
    part = paragraph(run("a b c "), run("d", changed))
    assembly = split_runs(part)
    assert assembly.join(shouted(assembly.segments)) == paragraph(run("A B C "), run("D", changed))


def test_slides_have_runs_too() -> None:
    bold = '<a:r><a:rPr lang="en" b="1"/><a:t>Hi</a:t></a:r>'
    part = f"<a:p>{bold}<a:r><a:rPr/><a:t> all of you</a:t></a:r></a:p>"
    assembly = split_runs(part)
    assert [segment.text for segment in assembly.segments] == ["Hi all of you"]
    assert assembly.join(shouted(assembly.segments)) == part.replace("Hi", "HI").replace(
        "all of you", "ALL OF YOU"
    )


def test_what_a_model_says_stays_text() -> None:
    assembly = split_runs(paragraph(run("a")))
    done = assembly.join([Translation(text="<w:p>&\x00\ufdd0\ufdd1")])
    assert done == paragraph(run("&lt;w:p&gt;&amp;"))


def test_malformed_parts_and_noncharacters_are_refused() -> None:
    with pytest.raises(DataError, match="malformed at line 1, column 6: </b> comes before <w:p>"):
        split_runs("<w:p></b>")
    with pytest.raises(DataError, match=r"has U\+FDD0 or U\+FDD1, which are not characters"):
        split_runs("<w:p>\ufdd0</w:p>")


@pytest.mark.parametrize(
    "run", [f'<w:r a="{" " * 200_000}">', f"<w:r><w:rPr>{' ' * 200_000}</w:rPr>"]
)
def test_hostile_blanks_take_one_pass(run: str) -> None:
    text = f"<w:document><w:p>{run}<w:t>a dog</w:t></w:r></w:p></w:document>"
    assembly = split_runs(text)
    assert assembly.join(unchanged(assembly.segments)) == text
