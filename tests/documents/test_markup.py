"""Pages and fragments: every tag comes back, around the words it was around."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.fakes import backwards, reversed_words, shouted, unchanged

from heed.documents.flow import MAX_ALIGNED_CHARS, MAX_MARKS
from heed.documents.markup import Markup, parse_markup
from heed.errors import DataError, UsageError
from heed.translate.result import Translation

SOUP = st.lists(
    st.sampled_from(
        [
            "<B>",
            "</B>",
            "<I>",
            "</I>",
            "<P>",
            "</P>",
            "<BR>",
            "<IMG>",
            "<!--C-->",
            "</A>",
            "<",
            ">",
            "<A HREF='<'>",
            "<CODE>",
            "</CODE>",
            '<P TITLE="a b">',
            "a",
            "b",
            "c ",
            "d. ",
            "e. ",
            " ",
            "\n",
            ".",
            ", ",
            "<B",
            'X="',
            '"',
            "f g h ",
        ]
    ),
    max_size=14,
).map("".join)
LEAVES = [
    "a",
    "b ",
    "c, ",
    "d. ",
    " ",
    "<BR>",
    "<IMG>",
    "<!--C-->",
    "f g h ",
    "<CODE>x</CODE>",
    "<U></U>",
]
TREES = st.lists(
    st.recursive(
        st.sampled_from(LEAVES),
        lambda inner: st.tuples(st.sampled_from("BIAP"), st.lists(inner, max_size=4)).map(
            lambda tree: f"<{tree[0]}>{''.join(tree[1])}</{tree[0]}>"
        ),
    ),
    max_size=6,
).map("".join)
TAG = re.compile(r"</?[A-Z][^>]*>|<!--C-->")


def texts(markup: Markup) -> list[str]:
    return [segment.text for segment in markup.segments]


def decoded(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def is_nested(page: str) -> bool:
    opened: list[str] = []
    for tag in TAG.findall(page):
        if tag in ("<BR>", "<IMG>", "<!--C-->"):
            continue
        if not tag.startswith("</"):
            opened.append(tag.strip("<>"))
        elif not opened or opened.pop() != tag.strip("</>"):
            return False
    return not opened


# Every page


@pytest.mark.parametrize(
    "ruby",
    [
        "<ruby>{}<rp>(</rp><rt>b</rt><rp>)</rp></ruby>",
        "<ruby>{}<rt>b c</ruby>",
        "<ruby>{}<rp>(<rt>b<rp>)</ruby>",
        "<ruby>{}<rtc><rt>b</rt></rtc></ruby>",
    ],
)
def test_readings_are_kept_and_no_words_of_the_sentence(ruby: str) -> None:
    text = f"<p>the {ruby.format('dog')} barks"
    page = parse_markup(text)
    assert [segment.text for segment in page.segments] == ["the dog barks"]
    assert page.join(unchanged(page.segments)) == text
    assert page.join(backwards(page.segments)) == f"<p>barks {ruby.format('dog')} the"


@given(SOUP | st.text())
def test_joining_unchanged_segments_gives_the_page(page: str) -> None:
    markup = parse_markup(page)
    assert markup.join(unchanged(markup.segments)) == page


@given(SOUP)
def test_tags_stay_around_words_that_keep_their_places(page: str) -> None:
    markup = parse_markup(page)
    assert decoded(markup.join(shouted(markup.segments))).lower() == page.lower()


@given(TREES)
def test_every_tag_comes_back_once_and_nested_though_the_words_turn_round(page: str) -> None:
    markup = parse_markup(page)
    done = markup.join(backwards(markup.segments))
    assert sorted(TAG.findall(done)) == sorted(TAG.findall(page))
    assert is_nested(done)


@given(SOUP, st.lists(st.text("ab <&>.", max_size=9), min_size=1))
def test_nothing_that_a_model_says_becomes_a_tag(page: str, said: list[str]) -> None:
    markup = parse_markup(page)
    translations = [
        Translation(text=said[number % len(said)]) for number in range(len(markup.segments))
    ]
    n_signs = markup.join([Translation(text="x") for _ in markup.segments]).count("<")
    assert markup.join(translations).count("<") == n_signs


def test_a_script_said_by_a_model_is_text() -> None:
    markup = parse_markup("<p title='it is'>hi <b>you</b></p>")
    evil = "<script>alert(1)</script>' onclick='x"
    done = markup.join([Translation(text=evil)] * 2)
    assert "<script" not in done
    assert done.startswith("<p title='&lt;script&gt;alert(1)&lt;/script&gt;&#39; onclick=&#39;x'>")


def test_no_character_that_xml_forbids_is_written() -> None:
    markup = parse_markup("<p>a</p>", kind="xml")
    assert markup.join([Translation(text="b\x01\uffff<")]) == "<p>b&lt;</p>"


def test_another_number_of_translations_is_refused() -> None:
    with pytest.raises(UsageError, match="1 segments and 0 translations"):
        parse_markup("<p>a").join([])


def test_an_unknown_kind_or_mode_is_refused() -> None:
    with pytest.raises(UsageError, match="kind must be one of html, xml, but is 'svg'"):
        parse_markup("a", kind="svg")
    with pytest.raises(UsageError, match="split_sentences must be one of 1, 0, nonewlines"):
        parse_markup("a", split_sentences="2")


# What is a segment


def test_blocks_and_sentences_part_texts_and_inline_tags_do_not() -> None:
    markup = parse_markup("<h1>A <i>b</i></h1>\n<p>Hi <b>you</b>. Bye,<br>all.</p><td>x<td>y")
    assert texts(markup) == ["A b", "Hi you.", "Bye, all.", "x", "y"]


def test_two_line_breaks_part_paragraphs() -> None:
    assert texts(parse_markup("a<br>b<br> <br>c")) == ["a b", "c"]


def test_a_pair_around_a_sentence_end_parts_texts() -> None:
    assert texts(parse_markup("He said <q>Stop. Go.</q> and left.")) == [
        "He said",
        "Stop.",
        "Go.",
        "and left.",
    ]
    assert texts(parse_markup("<font>One. Two.</font> <b>Three.</b>")) == ["One.", "Two.", "Three."]


def test_crossed_and_unclosed_tags_stay_where_they_are() -> None:
    for page, expected in (
        ("<b>x<i>y</b>z</i>", "<b>X<i>Y</b>Z</i>"),
        ("<p>a <b>c", "<p>A <b>C"),
        ("a</b> c</p>", "A</b> C</p>"),
        ("<b>a<div>c</b></div>", "<b>A<div>C</b></div>"),
    ):
        markup = parse_markup(page)
        assert markup.join(shouted(markup.segments)) == expected


def test_line_breaks_mean_nothing_in_html_unless_asked_for() -> None:
    page = "a\n  man.\nHe"
    assert texts(parse_markup(page)) == ["a\n  man.", "He"]
    assert texts(parse_markup(page, split_sentences="1")) == ["a", "man.", "He"]
    assert texts(parse_markup("a. B", split_sentences="0")) == ["a. B"]


@pytest.mark.parametrize(
    "kept",
    [
        "<script>a b</script>",
        "<style>a</style>",
        "<pre>a b</pre>",
        "<textarea>a</textarea>",
        "<div translate='no'>a b</div>",
        '<p class="x notranslate">a <b>c</b></p>',
        "<!-- a -->",
        "<!DOCTYPE html>",
        "<svg><text>a</text></svg>",
        "<code>a</code>",
        "<p>12 %</p>",
        "😀",
    ],
)
def test_what_is_no_text_is_no_segment(kept: str) -> None:
    markup = parse_markup(kept)
    assert (texts(markup), markup.join([])) == ([], kept)


def test_ignored_tags_are_kept_at_the_aligned_place() -> None:
    page = "<p>the <X>Golden Gate</X> bridge</p>"
    markup = parse_markup(page, ignore_tags=["<x>"])
    assert texts(markup) == ["the Golden Gate bridge"]
    translation = Translation(
        text="die Brücke Tor Gold",
        tokens=["die", "Brücke", "Tor", "Gold"],
        source_tokens=["the", "Golden", "Gate", "bridge"],
        alignment=[[1.0, 0, 0, 0], [0, 0, 0, 1.0], [0, 0, 1.0, 0], [0, 1.0, 0, 0]],
    )
    assert markup.join([translation]) == "<p>die Brücke <X>Golden Gate</X></p>"


def test_a_kept_element_takes_the_place_of_no_number() -> None:
    markup = parse_markup("see <code>a b</code> A-127")
    assert markup.join([Translation(text="A-127")]) == "A-127 <code>a b</code>"


def test_the_numbers_of_a_kept_element_are_there_once() -> None:
    page = "see <code>A-1 B-2</code> or <kbd>F1</kbd>"
    markup = parse_markup(page)
    assert texts(markup) == ["see  or F1"]
    done = markup.join([Translation(text="F1 und siehe")])
    assert sorted(re.findall("A-1|B-2|F1", done)) == ["A-1", "B-2", "F1"]
    assert "<kbd>F1</kbd> und" in done


def test_long_code_is_hidden_from_the_model_and_stands_apart_from_words() -> None:
    page = "Run <code>git commit --amend --no-edit -q</code> twice."
    markup = parse_markup(page)
    assert texts(markup) == ["Run  twice."]
    translation = reversed_words(markup.segments[0])
    assert translation.text == ". twice Run"
    assert markup.join([translation]) == (
        ". twice Run <code>git commit --amend --no-edit -q</code>"
    )


def test_blanks_beside_hidden_code_are_outside_of_the_tags_around_it() -> None:
    code = "<b><code>x = a long line of code</code></b>"
    markup = parse_markup(f"see {code} and {code} now")
    assert markup.join(backwards(markup.segments)) == f"now and {code} see {code}"


def test_the_mark_of_a_footnote_stays_behind_its_word() -> None:
    markup = parse_markup("a lake<sup><a href='#1'>[1]</a></sup> here")
    assert texts(markup) == ["a lake here"]
    done = markup.join(backwards(markup.segments))
    assert done == "here lake<sup><a href='#1'>[1]</a></sup> a"


# Where tags go


def test_pairs_go_around_what_belongs_to_their_words_and_empty_elements_behind_a_word() -> None:
    markup = parse_markup("one <b>two <i>three</i></b> four<br>five <img src=x>six")
    assert texts(markup) == ["one two three four five six"]
    assert markup.segments[0].needs_alignment
    assert markup.join(backwards(markup.segments)) == (
        "<img src=x>six five four<br><b><i>three</i> two</b> one"
    )


def test_a_tag_around_everything_needs_no_alignment() -> None:
    markup = parse_markup("<a href='x'> <b>one two.</b></a><img>")
    assert [(s.text, s.needs_alignment) for s in markup.segments] == [("one two.", False)]
    assert markup.join([Translation(text="z")]) == "<a href='x'> <b>z</b></a><img>"


def test_a_tag_within_a_word_stays_there_if_the_word_does() -> None:
    markup = parse_markup("<b>H</b>eed is quick")
    assert markup.join(shouted(markup.segments)) == "<b>H</b>EED IS QUICK"


def test_blanks_within_tags_stay_within_them() -> None:
    markup = parse_markup("One.<b> a</b> man <i>who </i>is")
    assert markup.join(shouted(markup.segments)) == "ONE.<b> A</b> MAN <i>WHO </i>IS"


@pytest.mark.parametrize(
    ("page", "text", "done"),
    [
        ("at 12:30<b>today</b>", "at 12:30 today", "AT 12:30<b>TODAY</b>"),
        ("<b>room</b>12 <i>is</i>", "room 12 is", "<b>ROOM</b>12 <i>IS</i>"),
        ("<b>12:30</b><i>now</i> a", "12:30 now a", "<b>12:30</b><i>NOW</i> A"),
        ("at 12<i><b>&uuml;ber</b></i>", "at 12 über", "AT 12<i><b>ÜBER</b></i>"),
        ("at 12<!--c-->today", "at 12 today", "AT 12<!--c--> TODAY"),
        ("<code>x</code>2 is", "x 2 is", "<code>x</code> 2 IS"),
        ("is 2<code>x</code>", "is 2 x", "IS 2 <code>x</code>"),
        ("A-113<i>room</i>", "A-113 room", "A-113<i>ROOM</i>"),
        ("at<i>12:30</i><b>today</b> ok", "at 12:30 today ok", "AT<i>12:30</i><b>TODAY</b> OK"),
        ("A-113<b>a room</b>", "A-113 a room", "A-113<b>A ROOM</b>"),
        ("at 12<b>:30</b>x y", "at 12:30 x y", "AT 12<b>:30</b>X Y"),
        ("a%1$s<b>2011-03-11</b>", "a%1$s 2011-03-11", "A%1$S<b>2011-03-11</b>"),
        ("{n}.<i>a@b.de</i> is", "{n}. a@b.de is", "{N}. <i>A@B.DE</i> IS"),
    ],
)
def test_a_number_that_touches_a_tag_is_a_number_for_the_model(
    page: str, text: str, done: str
) -> None:
    """Tags are not read, and `12:30today` is not a number, which may be lost."""
    markup = parse_markup(page)
    assert texts(markup) == [text]
    assert markup.join(unchanged(markup.segments)) == page
    assert markup.join(shouted(markup.segments)) == done


def test_a_word_and_a_number_that_moved_together_are_not_joined() -> None:
    markup = parse_markup("at 12:30<b>today</b> we go")
    said = Translation(text="we today go at 12:30")
    assert "wetoday" not in re.sub("<.*?>", "", markup.join([said]))


@pytest.mark.parametrize(
    "page",
    [
        "the 1<sup>st</sup> man",
        "the 1<sup>a</sup> man",
        "H<sub>2</sub>O is",
        "5<b>km</b> far",
        "see https://example.com/a12<wbr>path",
        "2011<b>年</b>好",
        "12<b>34</b> is",
        "<b>H</b>eed",
    ],
)
def test_a_tag_within_a_span_or_a_word_does_not_separate_it(page: str) -> None:
    assert texts(parse_markup(page)) == [re.sub("<.*?>", "", page)]


def test_all_tags_come_back_around_an_empty_translation() -> None:
    markup = parse_markup("a <b>b <i>c</i></b> <br>d")
    assert markup.join([Translation(text="")]) == "<b><i></i></b><br>"


def test_more_pairs_than_words_all_come_back() -> None:
    markup = parse_markup("<b>a</b> <i>b</i> <u>c</u> d")
    done = markup.join([Translation(text="z")])
    assert re.sub(r"<(.)></\1>", "", done).count("z") == 1
    assert sorted(re.findall("<.*?>", done)) == ["</b>", "</i>", "</u>", "<b>", "<i>", "<u>"]


def test_an_alignment_of_a_script_without_blanks_is_read_by_characters() -> None:
    markup = parse_markup("a <b>man</b> runs")
    translation = Translation(
        text="一个男人跑",
        tokens=["▁一个", "男人", "跑"],
        source_tokens=["▁a", "▁man", "▁runs"],
        alignment=[[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]],
    )
    assert markup.join([translation]) == "一个<b>男人</b>跑"


# Entities and attributes


def test_entities_are_decoded_for_the_model_and_written_again_for_the_page() -> None:
    markup = parse_markup("AT&amp;T &lt;b&gt; &eacute;t&eacute;&nbsp;x")
    assert texts(markup) == ["AT&T <b> été\xa0x"]
    assert markup.join([Translation(text="<b> & T")]) == "&lt;b&gt; &amp; T"


@pytest.mark.parametrize("end", ["\r\n", "\x1c", "\x85", "\ufeff", "\u3000"])
def test_an_entity_without_a_semicolon_ends_before_a_blank(end: str) -> None:
    page = f"&eacute{end}<b></b>"
    markup = parse_markup(page)
    assert texts(markup) == ["é"]
    assert markup.join(unchanged(markup.segments)) == page


def test_attributes_that_a_person_reads_are_translated() -> None:
    page = "<img ALT='a \"dog\"' title=cat src='a b'><input placeholder=\"x &amp; y\" value='z'>"
    markup = parse_markup(page)
    assert texts(markup) == ['a "dog"', "cat", "x & y"]
    done = markup.join([Translation(text=text) for text in ("'d'", "le chat", '"&"')])
    assert done == (
        "<img ALT='&#39;d&#39;' title=\"le chat\" src='a b'>"
        "<input placeholder=\"&quot;&amp;&quot;\" value='z'>"
    )


def test_attributes_of_kept_elements_and_of_xml_stay() -> None:
    assert texts(parse_markup("<div translate=no><img alt='a dog'></div>")) == []
    assert texts(parse_markup("<p>a<img translate=no alt='a dog'></p>")) == ["a"]
    assert texts(parse_markup("<img alt='a dog'/>", kind="xml")) == []


# XML


def test_the_outline_of_xml_parts_texts_where_no_text_is_beside_an_element() -> None:
    page = "<doc><t>Hi <e>you</e> all</t><t>Bye <e>now</e></t></doc>"
    assert texts(parse_markup(page, kind="xml")) == ["Hi you all", "Bye now"]
    whole = parse_markup(page, kind="xml", outline_detection=False)
    assert texts(whole) == ["Hi you allBye now"]


def test_tags_of_xml_may_be_told_to_part_texts_or_not() -> None:
    page = "<d>a <x/>b <e>c</e></d>"
    assert texts(parse_markup(page, kind="xml")) == ["a b c"]
    parted = parse_markup(page, kind="xml", splitting_tags=["x", "e"])
    assert texts(parted) == ["a", "b", "c"]
    page = "<d><e>a</e> <e>b</e></d>"
    assert texts(parse_markup(page, kind="xml")) == ["a", "b"]
    assert texts(parse_markup(page, kind="xml", non_splitting_tags=["e"])) == ["a b"]
    assert texts(parse_markup("<p>a</p><p>b</p>", non_splitting_tags=["P"])) == ["ab"]


def test_xml_may_have_the_entities_of_html() -> None:
    markup = parse_markup("<a>one&nbsp;two &lt;</a>", kind="xml")
    assert texts(markup) == ["one\xa0two <"]
    assert markup.join([Translation(text="x <")]) == "<a>x &lt;</a>"


def test_xml_keeps_cdata_entities_of_its_own_and_the_case_of_names() -> None:
    page = "<?xml version='1.0'?><a>one <![CDATA[<x>]]> two &own; &amp; <X>z</X></a>"
    markup = parse_markup(page, kind="xml", ignore_tags=["x"])
    assert texts(markup) == ["one  two  & z"]
    assert markup.join(shouted(markup.segments)) == (
        "<?xml version='1.0'?><a>ONE <![CDATA[<x>]]> TWO &own; &amp; <X>Z</X></a>"
    )


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (
            "<a>\n<b>x</a>",
            "at line 2, column 5: </a> comes before <b> at line 2, column 1 is closed.",
        ),
        ("x</a>", "at line 1, column 2: </a> closes no tag. Remove it, or add <a> before it."),
        ("<a>x", "<a> at line 1, column 1 is never closed. Add </a>."),
    ],
)
def test_tags_of_xml_that_do_not_match_are_an_error(page: str, words: str) -> None:
    with pytest.raises(DataError, match=f"The XML is malformed.*{re.escape(words)}"):
        parse_markup(page, kind="xml")


# Hostile sizes


@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "<b>",
        "</b>",
        "<b>x",
        "<b>x</b> ",
        "<b>a. ",
        "<br>",
        "a<br>",
        "<code>",
        "<p title='a b'>",
        "<b>x</b>y. ",
        "<sup>",
        "&amp;",
        "<a b=",
    ],
)
def test_hostile_pages_take_one_pass(unit: str) -> None:
    page = unit * (60_000 // len(unit))
    markup = parse_markup(page)
    assert markup.join([Translation(text=s.text) for s in markup.segments]) == page


def test_deep_nesting_needs_no_recursion() -> None:
    page = "<b>" * 20_000 + "x" + "</b>" * 20_000
    markup = parse_markup(page)
    assert markup.join(shouted(markup.segments)) == page.replace("x", "X")
    page = "<b>a " * (MAX_MARKS // 2) + "</b>" * (MAX_MARKS // 2)
    markup = parse_markup(page)
    assert sorted(re.findall("<.*?>", markup.join(backwards(markup.segments)))) == sorted(
        re.findall("<.*?>", page)
    )


def test_tags_part_a_sentence_that_is_too_long_to_be_aligned() -> None:
    page = "a " * MAX_ALIGNED_CHARS + "<b>b</b> c"
    assert not any(segment.needs_alignment for segment in parse_markup(page).segments)
    page = "<b>b</b> " * MAX_MARKS
    markup = parse_markup(page)
    assert not any(segment.needs_alignment for segment in markup.segments)
    assert markup.join(shouted(markup.segments)) == page.replace("b</b>", "B</b>")
