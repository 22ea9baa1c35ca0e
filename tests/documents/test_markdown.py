"""Markdown: what is kept, what is translated, where marks go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.fakes import backwards, shouted, unchanged

from heed.documents.assembly import Assembly
from heed.documents.markdown import escape, split_markdown
from heed.translate.result import Translation

PIECES = (
    "a |b|**|*|_|`|```|[|](|](x)|]|!|\n|\n\n|    |  |> |- |1. |# |<b>|</b>|<!--|-->|:|~~|\\|---"
    "|===|\t|&amp;| {#a}|{:.a}|<div>|</p>|<pre>"
)
SOUP = st.lists(st.sampled_from([*PIECES.split("|"), "|", "|-|"]), max_size=16).map("".join)


def texts(page: str) -> list[str]:
    return [segment.text for segment in split_markdown(page).segments]


def shout(page: str) -> str:
    parts: Assembly = split_markdown(page)
    return parts.join(shouted(parts.segments))


@given(SOUP | st.text())
def test_joining_unchanged_segments_gives_the_file(page: str) -> None:
    assembly = split_markdown(page)
    assert assembly.join(unchanged(assembly.segments)) == page


@pytest.mark.parametrize(
    "page",
    [
        "---\ntitle: x\n---\n",
        "```py\na = b\n\nc\n```\n",
        "> ~~~\n> a\n> ~~~\n",
        "~~~ a `b`\nc\n~~~\n",
        "\n    code here\n    more\n",
        "[ref]: http://a.b 'title'\n",
        "<script>\na b\n</script>\n",
        "<!-- a\n b -->\n",
        "<pre>a b</pre>\n",
        "***\n- - -\n===\n",
        "`code` <http://a.b> https://c.d [^1] 12\n",
        "$$\na_b\n\nc\n$$\n",
        "- $$\n  a_b\n  $$\n",
        "$$ a_b $$\n",
        "\\[\na_b\n\\]\n",
        "\\begin{align*}\na &= b\n\\end{align*}\n",
        "$a_b$ \\(c\\) \\\\(d e f\\\\) $`g`$ $$h$$ \\[i^2\\]\n",
        "*[HTML]: a language\n",
        "[TOC]\n",
        "[[_TOC_]]\n",
        "import A, {b} from '../a'\n",
        "import 'a.css';\n",
        "export const a = {b: 1}\n",
        "{{ a.b | c }} :smile:\n",
    ],
)
def test_what_is_no_text_is_kept(page: str) -> None:
    assert texts(page) == []
    assert texts(page + "\nafter") == ["after"]


def test_a_line_that_begins_with_code_is_no_fence() -> None:
    page = "```inline``` text\n\nafter\n"
    assert texts(page) == ["inline text", "after"]
    assert shout(page) == "```inline``` TEXT\n\nAFTER\n"


def test_a_rule_at_the_beginning_opens_no_front_matter() -> None:
    assert texts("---\na b\n") == ["a b"]


def test_blocks_part_texts() -> None:
    page = "# A b #\nSetext\n---\npara\nline\n- one\n  more\n2. two\n> quote\n> > inner\n\nend"
    assert texts(page) == [
        "A b",
        "Setext",
        "para line",
        "one more",
        "two",
        "quote",
        "inner",
        "end",
    ]
    assert shout("- [x] a\n") == "- [x] A\n"


def test_cells_of_a_table_are_texts() -> None:
    page = "| a | b c |\n|---|:-:|\n| `x` | **d** e |\n\nf | g"
    assert texts(page) == ["a", "b c", "d e", "f | g"]
    assert shout(page).startswith("| A | B C |\n|---|:-:|\n| `x` | **D** E |\n")


def test_indented_lines_of_a_list_are_no_code() -> None:
    assert texts("- a\n\n      b\n") == ["a", "b"]


@pytest.mark.parametrize(
    "attributes",
    [
        " {#dog}",
        "  {.big}  ",
        " {#dog .big key=value other='two words' data-x=\"y\"}",
        " {: #dog .big }",
        " {-}",
        "{#dog}",
        " ## {#dog}",
        " {#dog} ##",
    ],
)
def test_the_attributes_of_a_heading_are_kept(attributes: str) -> None:
    assert texts(f"# A dog{attributes}\n") == ["A dog"]
    assert shout(f"> ## A *dog*{attributes}\r\ntext {{#b}}") == (
        f"> ## A *DOG*{attributes}\r\nTEXT {{#B}}"
    )
    if "##" not in attributes:
        page = f"One\ndog{attributes}\n---\n"
        assert (texts(page), shout(page)) == (["One dog"], f"ONE DOG{attributes}\n---\n")


def test_the_attributes_of_a_block_are_kept() -> None:
    page = "# A dog\n{: .no_toc }\n\nIt runs.\n{: #run}\n"
    assert texts(page) == ["A dog", "It runs."]
    assert shout(page) == "# A DOG\n{: .no_toc }\n\nIT RUNS.\n{: #run}\n"


@pytest.mark.parametrize("text", ["a {name}", "a \\{#b}", "a ${b=1}", "a {#b", "a {#b} c", "{b c}"])
def test_braces_that_are_no_attributes_are_text(text: str) -> None:
    assert texts(f"# {text}\n") == [text.replace("\\", "")]


def test_footnotes_are_texts() -> None:
    page = "See[^1].\n\n[^1]: A note\n    goes on.\n[^b-c]: Another.\n\n    And more.\n\nafter\n"
    assert texts(page) == ["See.", "A note goes on.", "Another.", "And more.", "after"]
    assert shout(page).startswith("SEE[^1].\n\n[^1]: A NOTE GOES ON.\n[^b-c]: ANOTHER.\n\n    AND")


def test_definitions_stay_on_lines_of_their_own() -> None:
    page = "Term\n: the first\n  goes on\n:   the second\n\n    more\n\nafter\n"
    assert texts(page) == ["Term", "the first goes on", "the second", "more", "after"]
    assert shout(page) == "TERM\n: THE FIRST GOES ON\n:   THE SECOND\n\n    MORE\n\nAFTER\n"


@pytest.mark.parametrize(
    "page",
    [
        "::: tip Title\n{}\n:::\n",
        "::::{{note}}\n{}\n::::\n",
        '!!! note "Title"\n    {}\n\n    {}\n\n{}\n',
        "??? question\n    {}\n",
        "{{% note %}}\n{}\n{{% endnote %}}\n",
        "{{{{< note >}}}}\n{}\n{{{{< /note >}}}}\n",
    ],
)
def test_the_lines_of_containers_and_shortcodes_are_kept(page: str) -> None:
    texts_in = [f"text {number}" for number in range(page.count("{}"))]
    assert texts(page.format(*texts_in)) == texts_in
    assert shout(page.format(*texts_in)) == page.format(*map(str.upper, texts_in))


def test_formulas_and_addresses_are_fields_for_the_model() -> None:
    """Words beside a gap would be another sentence."""
    page = (
        "let $a_b$ be \\\\(c*d\\\\) or\n\\(e\\) at https://f.g/h_i, <http://j.k> and $l$ "
        "{{ m | n }}"
    )
    assembly = split_markdown(page)
    source = "let $x1$ be $x2$ or $x3$ at $x4$, $x5$ and $l$ $x6$"
    assert texts(page) == [source]
    translation = Translation(text="$x6$ $l$ $x5$ $x2$ $x1$ und $x4$ auch $x3$ sind")
    assert assembly.join([translation]) == (
        "{{ m | n }} $l$ <http://j.k> \\\\(c*d\\\\) $a_b$ und https://f.g/h_i auch \\(e\\) sind"
    )
    # Without protected spans a model may leave them out.
    done = assembly.join([Translation(text="sei es so")])
    assert [word for word in done.split() if word in ("sei", "es", "so")] == ["sei", "es", "so"]
    kept = [
        "$a_b$",
        "\\\\(c*d\\\\)",
        "\\(e\\)",
        "https://f.g/h_i",
        "<http://j.k>",
        "{{ m | n }}",
        "$l$",
    ]
    assert [done.count(one) for one in kept] == [1] * len(kept)


@pytest.mark.parametrize(
    "text",
    [
        "costs $5 or $6 a day",
        "a $5, that is US$ 6",
        "set $HOME and $PATH in a",
        "a \\(see below\\) and \\[a link\\]",
        "a $$ b",
        "a $ b $ c",
        "$a\n\nb$",
        "$$\na\n\nb",
    ],
)
def test_dollars_and_escapes_that_begin_no_formula_are_text(text: str) -> None:
    assert "x1" not in "".join(texts(text))
    assert "".join(texts(text)).count("a") == text.count("a")


def test_an_escaped_dollar_stays_escaped() -> None:
    assert shout("costs \\$5 or \\$6") == "COSTS \\$5 OR \\$6"
    assert shout("costs $5 or 6") == "COSTS $5 OR 6"


def test_a_callout_keeps_its_mark_on_a_line() -> None:
    page = "> [!NOTE]\n> some text\n> more\n\n> [!tip]- the title\n> text\n"
    assert texts(page) == ["some text more", "the title", "text"]
    assert shout(page) == ("> [!NOTE]\n> SOME TEXT MORE\n\n> [!tip]- THE TITLE\n> TEXT\n")


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("a H~2~O x^b^ c", "a H2O xb c", "c x^b^ H~2~O a"),
        ("a ==b c== d", "a b c d", "d ==c b== a"),
        ("![a b](c){width=5%} d", "a b d", "d ![b a](c){width=5%}"),
        ("[a b]{.c} `d`{.py} e", "a b d e", "e `d`{.py} [b a]{.c}"),
        ("a [[B c]] d", "a B c d", "d [[B c]] a"),
        ("a b[^1] c.", "a b c.", ". c b[^1] a"),
        ("a :smile: b", "a  b", "b a :smile:"),
    ],
)
def test_marks_of_many_dialects_stay_whole(page: str, text: str, expected: str) -> None:
    assembly = split_markdown(page)
    assert texts(page) == [text]
    assert assembly.join(backwards(assembly.segments)) == expected


def test_marks_move_with_their_words() -> None:
    page = "a **bold *very* one** and [a link](http://x.y/z_w 'T') `code`"
    assembly = split_markdown(page)
    assert texts(page) == ["a bold very one and a link code"]
    assert assembly.join(backwards(assembly.segments)) == (
        "`code` [link a](http://x.y/z_w 'T') and **one *very* bold** a"
    )


@pytest.mark.parametrize(
    "page",
    ["2 * 3 * 4 a", "snake_case_word", "a * b*", "**a", "a]", "[a", "*a **b* c**", "`a", "a ~ b"],
)
def test_signs_that_mark_nothing_are_text(page: str) -> None:
    assert "".join(texts(page)).count("a") == page.count("a")
    assert shout(page).replace("\\", "").lower() == page


def test_escapes_and_entities_are_decoded_for_the_model() -> None:
    assert texts("5 \\* 3 &amp; \\[x\\]") == ["5 * 3 & [x]"]


def test_a_paragraph_that_was_translated_is_one_line_and_its_hard_breaks_stay() -> None:
    assert shout("> a\n> b  \n> c\n") == "> A B  \n> C\n"


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("a *b* _c_ `d` [e](f) <g>", "a \\*b\\* \\_c\\_ \\`d\\` \\[e\\](f) \\<g\\>"),
        ("# a", "\\# a"),
        ("- a", "\\- a"),
        ("1. a", "1\\. a"),
        ("snake_case &amp; a & b", "snake_case \\&amp; a & b"),
    ],
)
def test_nothing_that_a_model_says_becomes_a_mark(said: str, written: str) -> None:
    assert escape(said) == written
    assert split_markdown("x").join([Translation(text=said)]) == written


def test_nothing_is_a_mark_within_a_block_of_html() -> None:
    page = "a *b*\n<div>\n5 * 3 [ ] c:\\x\n# &amp; <b>bold</b>\n</div>\n\n**a** * b\n"
    assert texts(page) == ["a b", "5 * 3 [ ] c:\\x\n# & bold", "a * b"]
    assert shout(page) == (
        "A *B*\n<div>\n5 * 3 [ ] C:\\X\n# &amp; <b>BOLD</b>\n</div>\n\n**A** \\* B\n"
    )
    assert texts("<p>a\n<pre>\n\nb</pre>\nc") == ["a", "c"]
    assert texts('- a\n  <p title="b">c</p>\n') == ["a", "c"]


@pytest.mark.parametrize(
    "unit",
    [
        "*",
        "**a",
        "[",
        "](",
        "`",
        "``a",
        "<a ",
        "](<a",
        "](a (b",
        "<!--",
        "> ",
        "- ",
        "|",
        "a\n",
        "![",
        "\\",
        "_a",
        "$",
        "$a ",
        "\\(",
        "\\\\[a",
        "$$a",
        "[[",
        "{{",
        "{%",
        "a^",
        "](a){a=",
        "$$\n",
        "\\begin{a}\n",
    ],
)
def test_hostile_files_take_one_pass(unit: str) -> None:
    require_one_pass(unit * (50_000 // len(unit)))


@pytest.mark.parametrize("page", [f"# a{' ' * 50_000}b", f"# a {{{'#a ' * 20_000}}}"])
def test_long_headings_take_one_pass(page: str) -> None:
    require_one_pass(page)


def require_one_pass(page: str) -> None:
    assembly = split_markdown(page)
    assert assembly.join([Translation(text=s.text) for s in assembly.segments]) == page


def test_a_link_named_by_its_text_keeps_the_name_when_the_text_changes() -> None:
    page = "[Our  *page*][] and [that] or [other], ![pic]\n\n[our page]: x\n[THAT]: y\n[pic]: z\n"
    page = page.replace("*page*", "page")
    assembly = split_markdown(page)
    assert assembly.join(unchanged(assembly.segments)) == page
    assert shout(page).startswith(
        "[OUR  PAGE][Our page] AND [THAT][that] OR [OTHER], ![PIC][pic]\n"
    )
