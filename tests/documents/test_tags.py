"""Tokens of HTML and XML."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.documents.tags import decode_entities, position, read_tokens
from heed.errors import DataError

SOUP = st.lists(
    st.sampled_from(
        [
            "<",
            ">",
            "<b>",
            "</b",
            "<!--",
            "-->",
            "<a b='",
            '"',
            "'",
            "&amp;",
            "&#",
            "&nbsp;",
            "<![CDATA[",
            "]]>",
            "<!DOCTYPE x>",
            "<?x",
            "?>",
            "<title>",
            "</title>",
            "<script>",
            "</script ",
            "x",
            " ",
            "=",
            "/>",
            "<br",
        ]
    )
).map("".join)


def kinds(source: str, *, is_xml: bool = False) -> list[tuple[str, str]]:
    return [(token.kind, token.raw) for token in read_tokens(source, is_xml=is_xml)]


@given(SOUP | st.text())
def test_joined_tokens_are_the_input(source: str) -> None:
    tokens = read_tokens(source, is_xml=False)
    assert "".join(token.raw for token in tokens) == source
    starts = [token.start for token in tokens]
    assert starts == sorted(starts)


def test_html_tags_texts_and_entities() -> None:
    assert kinds("<P Class='a>b'>1 &lt; 2<br/>x</P >") == [
        ("open", "<P Class='a>b'>"),
        ("text", "1 "),
        ("text", "&lt;"),
        ("text", " 2"),
        ("empty", "<br/>"),
        ("text", "x"),
        ("close", "</P >"),
    ]
    assert read_tokens("<P>", is_xml=False)[0].name == "p"


@pytest.mark.parametrize("tag", ["</p", "</p\n", "<br \r\n", "<a href=x"])
def test_a_tag_at_the_end_of_a_page_may_lack_its_sign(tag: str) -> None:
    assert kinds(f"a{tag}") == [("text", "a"), ("other", tag)]


@pytest.mark.parametrize(
    "text", ["a < b", "I <3 you", "<", "</", "</ b>", "a <b and <i c", "if a <b then"]
)
def test_a_sign_that_begins_no_tag_is_text(text: str) -> None:
    assert kinds(text) == [("text", text)]


@pytest.mark.parametrize("rest", ["<a href='x", "<im", "</b", "<!-- c", "<!DOCTYP"])
def test_a_page_may_end_inside_a_tag(rest: str) -> None:
    tokens = read_tokens(f"x {rest}", is_xml=False)
    assert [token.raw for token in tokens] == ["x ", rest]


def test_an_unclosed_quote_ends_with_its_tag() -> None:
    assert kinds('<a href="x>y</a>')[0] == ("open", '<a href="x>')


def test_a_script_is_one_token_up_to_its_own_end() -> None:
    source = "<script>if (a<b) '</b>'</SCRIPT >x"
    assert kinds(source) == [("kept", source[:-1]), ("text", "x")]
    assert kinds("<style>a{}") == [("kept", "<style>a{}")]


def test_a_title_holds_text_only() -> None:
    assert kinds("<title>a <b> c</title>") == [
        ("open", "<title>"),
        ("text", "a <b> c"),
        ("close", "</title>"),
    ]


def test_entities_are_decoded_as_browsers_do() -> None:
    assert decode_entities("&eacute;&#233;&#xe9;&notit;&unknown;&") == "ééé¬it;&unknown;&"


@pytest.mark.parametrize("entity", ["&#1;", "&#x1;", "&#X01;", "&#001;", "&#1"])
def test_a_control_character_is_one(entity: str) -> None:
    assert decode_entities(entity) == "\x01"
    (token,) = read_tokens(entity, is_xml=False)
    assert (token.text, token.raw) == ("\x01", entity)


@pytest.mark.parametrize("digits", ["9" * 5000, "x" + "F" * 5000, "9" * 9])
def test_a_huge_number_is_no_character(digits: str) -> None:
    assert decode_entities(f"&#{digits};") == "\N{REPLACEMENT CHARACTER}"


def test_xml_keeps_case_declarations_and_entities_of_its_own() -> None:
    source = (
        '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "<c>"> <!-- ] --> ]><A x=\'"\'>&b;&#65;</A>'
    )
    tokens = read_tokens(source, is_xml=True)
    assert [(token.kind, token.name, token.text) for token in tokens] == [
        ("declaration", "", ""),
        ("declaration", "", ""),
        ("open", "A", ""),
        ("other", "", ""),
        ("text", "", "A"),
        ("close", "A", ""),
    ]
    assert "".join(token.raw for token in tokens) == source


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("a\nb <c", "line 2, column 3: '<c' is not a tag; write a literal < as &lt;"),
        ("<a b=c>", "line 1, column 1: '<a b=c>' is not a tag"),
        ("<a>\r\n &</a>", "line 2, column 2: this & does not begin an entity; write &amp;"),
        ("x&#0;", "column 2: this entity is not a valid character number"),
        ("x&#1;", "column 2: this entity is not a valid character number"),
        ("&#xD800;", "this entity is not a valid character number"),
        ("&#99999999999;", "this entity is not a valid character number"),
        ("<!-- a", "column 1: <!-- is never closed by -->"),
        ("<![CDATA[ a", r"<!\[CDATA\[ is never closed by \]\]>"),
        ("<a b='1' c='2' b='3'/>", "column 1: the tag has the attribute b twice"),
        ("a\0b", r"column 2: XML cannot have U\+0000"),
        ("<a>\x1b</a>", r"column 4: XML cannot have U\+001B"),
        ("a ]]> b", r"column 3: this \]\]> does not end a CDATA section; write \]\]&gt;"),
        ("<?a", r"<\? is never closed by \?>"),
        ("<!DOCTYPE a [", "<!DOCTYPE is never closed by >"),
    ],
)
def test_malformed_xml_is_an_error_that_names_its_place(source: str, words: str) -> None:
    with pytest.raises(DataError, match=f"The XML is malformed at .*{words}"):
        read_tokens(source, is_xml=True)


def test_a_position_counts_from_1() -> None:
    assert position("ab\ncd", 4) == "line 2, column 2"


@pytest.mark.parametrize(
    "unit",
    ["<", "<a", '<a "', "<a '\"", "<a '\"<a \"'", "<!--", "</", "</a", "&#9", "<title>", "<?"],
)
def test_hostile_html_takes_one_pass(unit: str) -> None:
    source = unit * (200_000 // len(unit))
    assert "".join(token.raw for token in read_tokens(source, is_xml=False)) == source


def test_hostile_doctypes_take_one_pass() -> None:
    for unit in ("<!--", '"', "[", "<", "'\""):
        with pytest.raises(DataError, match="never closed"):
            read_tokens("<!DOCTYPE a [" + unit * (100_001 // len(unit)), is_xml=True)
