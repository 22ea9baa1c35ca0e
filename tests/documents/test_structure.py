"""What tags do: part texts, stand among words, or keep what they hold."""

from heed.documents.structure import Rules, names, structure
from heed.documents.tags import read_tokens


def rules(*, is_xml: bool = False, **given: object) -> Rules:
    chosen = {name: frozenset(given.get(name, ())) for name in ("ignored", "splitting", "joining")}
    return Rules(is_xml=is_xml, has_outline=bool(given.get("has_outline")), **chosen)


def apart(source: str, *, is_xml: bool = False, **given: object) -> list[str]:
    found = structure(source, read_tokens(source, is_xml=is_xml), rules(is_xml=is_xml, **given))
    return [found.tokens[number].raw for number in sorted(found.apart)]


def test_blocks_part_texts_and_all_they_break() -> None:
    assert apart("<i>a<p>b</p></i> <b>c</b>") == ["<i>", "<p>", "</p>", "</i>"]


def test_tags_without_partners_part_texts() -> None:
    assert apart("<b>a<i>c</b></u>") == ["<b>", "<i>", "</b>", "</u>"]
    assert apart("<b>a</b></i><u>") == ["</i>", "<u>"]


def test_partners_are_well_nested() -> None:
    source = "<b><i></i><b></b></b>"
    found = structure(source, read_tokens(source, is_xml=False), rules())
    assert found.partner == {0: 5, 5: 0, 1: 2, 2: 1, 3: 4, 4: 3}


def test_a_kept_element_is_one_token_with_its_words() -> None:
    source = "a <code>b <i>c</i></code> <svg><text>d</text></svg> <sup>[1]</sup> <sup>th</sup>"
    found = structure(source, read_tokens(source, is_xml=False), rules())
    kept = [(token.raw, token.text) for token in found.tokens if token.kind == "kept"]
    assert kept == [
        ("<code>b <i>c</i></code>", "b c"),
        ("<svg><text>d</text></svg>", ""),
        ("<sup>[1]</sup>", "[1]"),
    ]


def test_an_element_may_leave_out_its_end_tag() -> None:
    def kept(source: str, **given: object) -> list[str]:
        found = structure(source, read_tokens(source, is_xml=False), rules(**given))
        return [token.raw for token in found.tokens if token.kind == "kept"]

    no = "translate=no"
    assert kept(f"<ul><li {no}>a <b>b</b><li>c</ul>") == [f"<li {no}>a <b>b</b>"]
    assert kept(f"<ul><li>c<li {no}>a<ul><li>b</ul></ul>d") == [f"<li {no}>a<ul><li>b</ul>"]
    assert kept(f"<p {no}>a<br>b<p>c") == [f"<p {no}>a<br>b"]
    assert kept(f"<p {no}>a<hr>b") == [f"<p {no}>a"]
    assert kept(f"<p {no}>a</b>b") == [f"<p {no}>a</b>b"]
    assert kept(f"<tr><td {no}>a<th>b<tr><td>c") == [f"<td {no}>a"]
    assert kept(f"<div><i {no}>a</div>b") == [f"<i {no}>a"]
    assert kept(f"a<li {no}>") == [f"<li {no}>"]


def test_an_element_that_is_mostly_beside_text_is_part_of_the_text() -> None:
    source = "<d><p>a <b>c</b></p><p><b>e</b> f</p><p><b>g</b></p></d>"
    assert set(apart(source, is_xml=True, has_outline=True)) == {"<d>", "</d>", "<p>", "</p>"}
    assert apart(source, is_xml=True) == []


def test_names_are_read_as_people_write_them() -> None:
    assert names([" <P>", "br/", "", "x"], is_xml=False) == {"p", "br", "x"}
    assert names(["P"], is_xml=True) == {"P"}
