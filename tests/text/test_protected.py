"""Protected spans: what is found, what is not, and that pairs are well nested."""

import pickle
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.text.protected import Rules, Span, Terms, find_spans


def found(text: str, rules: Rules | None = None) -> list[str]:
    spans = find_spans(text, Rules.default() if rules is None else rules)
    return [text[span.start : span.end] for span in spans]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%s %d %1$s %-12.12s %5.2f", ["%s", "%d", "%1$s", "%-12.12s", "%5.2f"]),
        ("%(name)s, %@ and %ld%%", ["%(name)s", "%@", "%ld", "%%"]),
        ("%sKB in %dx%d", ["%s", "%d", "%d"]),
        ("95,234.50 %% of 7 %s", ["95,234.50", "%%", "7", "%s"]),
        ("5%(unit)s, x2%1$d and 3%<n>.2f", ["5", "%(unit)s", "%1$d", "3", "%<n>.2f"]),
        ("5%(a)sure, 5% (a)s", ["5", "5%"]),
        ("Left (%1).", ["%1"]),
        ("with %1custom%2 quotes", ["%1", "%2"]),
        ("%PRODUCTNAME starts", ["%PRODUCTNAME"]),
        ("written to:~%~s~%", ["~%", "~s", "~%"]),
        ("%A, %B %d, %Y %H:%M", ["%A", "%B", "%d", "%Y", "%H", "%M"]),
        ("the %age, a %-Angabe, ~Save", []),
    ],
)
def test_printf_fields(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("请联系help@example.org获取帮助", ["help@example.org"]),
        ("a@b.org和c@d.org", ["a@b.org", "c@d.org"]),
        ("support@example.com으로 문의하세요", ["support@example.com"]),
        ("ดูที่help@example.orgนะ", ["help@example.org"]),
        ("访问example.com查看", ["example.com"]),
        ("使用UTF-8编码，版本v2.1", ["UTF-8", "v2.1"]),
        ("xhelp@example.orgx, example.commer", ["xhelp@example.orgx"]),
        ("הhelp@example.org, לexample.com", ["help@example.org", "example.com"]),
        ("打开setup.exe文件", ["setup.exe"]),
        ("設定はapp.config.yamlです", ["app.config.yaml"]),
        ("เปิดsrc/main.cนะ, 파일a.txt를", ["src/main.c", "a.txt"]),
        ("בsetup.exe, فيa.txt", ["setup.exe", "a.txt"]),
        ("所有*.svg和.csv文件，a.c文件或b.h", ["*.svg", ".csv"]),
        (
            "报告_v2.pdf, 报告2024.pdf, 文件夹/photo.png",
            ["报告_v2.pdf", "报告2024.pdf", "文件夹/photo.png"],
        ),
        ("файлv2.txt, .config/人々.txt", ["файлv2.txt", ".config/人々.txt"]),
        ("访问https://example.com/a请点击", ["https://example.com/a"]),
        (
            "https://example.comで, https://example.com/a?b=1을",
            ["https://example.com", "https://example.com/a?b=1"],
        ),
        ("https://a.com/b,请看https://a.com/c.谢谢", ["https://a.com/b", "https://a.com/c"]),
        ("https://zh.wikipedia.org/wiki/北京 /人々", ["https://zh.wikipedia.org/wiki/北京"]),
        (
            "https://a.com/2024年报告.html?q=中文&r=a中/b",
            ["https://a.com/2024年报告.html?q=中文&r=a中/b"],
        ),
        (
            "http://www.例え.jp/パス, https://한국.한국",
            ["http://www.例え.jp/パス", "https://한국.한국"],
        ),
        ("https://ja.wikipedia.org/wiki/人々", ["https://ja.wikipedia.org/wiki/人々"]),
        ("https://www.пример.рф/aпуть", ["https://www.пример.рф/aпуть"]),
        ("почта@пример.рф, info@例子.中国。", ["почта@пример.рф", "info@例子.中国"]),
        ("联系help@a.org，好。a@b.org.请看", ["help@a.org", "a@b.org"]),
        ("打开/etc/hosts文件，看~/a.b目录，和/or/und", ["/etc/hosts", "~/a.b"]),
        ("在/home/a/b.txt中", ["/home/a/b.txt"]),
    ],
)
def test_addresses_beside_letters_of_other_scripts(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dear {{name}}: {} {0} {x!r:>10}", ["{{name}}", "{}", "{0}", "{x!r:>10}"]),
        (
            "{user.name} {items[0]} {d, date, short}",
            ["{user.name}", "{items[0]}", "{d, date, short}"],
        ),
        ("${name}, #{name}, %{name} or $(ARG1)", ["${name}", "#{name}", "%{name}", "$(ARG1)"]),
        ("{% if x %}a{{{raw}}}", ["{% if x %}", "{{{raw}}}"]),
        ("Set $HOME and $column$", ["$HOME", "$column$"]),
        ("{Broken Image}, {, }", []),
        (r"one\ntwo \"x\" \u00e4 in C:\new", [r"\n", r"\"", r"\"", r"\u00e4", r"C:\new"]),
        ("{0, number, #,##0.00}", ["{0, number, #,##0.00}"]),
        ("&amp; &#160; but not &File", ["&amp;", "&#160;"]),
    ],
)
def test_fields_in_braces_and_entities(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See https://example.com/a?b=1.", ["https://example.com/a?b=1"]),
        ("(http://x.de/a_(b)), then", ["http://x.de/a_(b)"]),
        ("&lt;https://x.de/&gt;", ["&lt;", "https://x.de/", "&gt;"]),
        ("https://x.de/a?b=1&amp;c={id}", ["https://x.de/a?b=1&amp;c={id}"]),
        ("at example.com, or www.x.y!", ["example.com", "www.x.y"]),
        ("the end.Then e.g. this", []),
        ("https://x.de/a*[b](c)", ["https://x.de/a", "[", "](c)"]),
        ("Write to a.b@x.co.uk.", ["a.b@x.co.uk"]),
        ("/usr/lib/x ./x ../y/z ~/x", ["/usr/lib/x", "./x", "../y/z", "~/x"]),
        (r"C:\x\y.txt, \\server\share.", [r"C:\x\y.txt", r"\\server\share"]),
        ("open src/main.c or config.json.", ["src/main.c", "config.json"]),
        ("(*.svg, *.png) and .csv", ["*.svg", "*.png", ".csv"]),
        ("das heißt d.h. dies, a.c", []),
        ("Europe/Madrid, and/or, 360°/number", ["360°"]),
    ],
)
def test_addresses(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it costs 1,234.50 € or $5, EUR 5", ["1,234.50 €", "$5", "EUR 5"]),
        ("100 % of them, 50% done", ["100 %", "50%"]),
        ("5 km, 20 °C, 3.5GHz, 1 234 567 kg", ["5 km", "20 °C", "3.5GHz", "1 234 567 kg"]),
        ("-5 ± 0.3, 1920x1080, 1–4", ["-5", "0.3", "1920x1080", "1–4"]),
        ("It is .5 mm, -.5, $.50 (.5)", [".5 mm", "-.5", "$.50", ".5"]),
        ("the end.5 men, x.5 ...5", ["5", "5", "5"]),
        ("€\u00a05 or USD\u00a05 men", ["€\u00a05", "USD\u00a05"]),
        ("pay € 5 for it, EUR 5 to him", ["€ 5", "EUR 5"]),
        ("at 5 km/h, 3 m/s², 3 m", ["5 km/h", "3 m/s²", "3 m"]),
        ("A-179 980:30 or A-320 100 km", ["A-179", "980:30", "A-320", "100 km"]),
        ("HOUSE१२", []),
        ("12:30 on 2024-01-02, 3/4/2025", ["12:30", "2024-01-02", "3/4/2025"]),
        ("2011年3月, ٣ كتب", ["2011", "3", "٣"]),
        ("ב2011, ו5 כלבים, في12:30, ב-2011", ["2011", "5", "12:30", "2011"]),
        ("عام 2011م، ٣كتب, 12ש, 12км", ["2011", "٣", "12"]),
        ("גרסתUTF-8, ב+49 30 1234567", ["UTF-8", "+49 30 1234567"]),
        ("版本v2.1-beta的, 编号#48213和#ff00ff色", ["v2.1-beta", "#48213", "#ff00ff"]),
        ("提交1a2b3c4是0xFF的", ["1a2b3c4", "0xFF"]),
        ("Т2011, в5, C#abc", []),
        ("2 men, Level 2, 5 miles", ["2", "2", "5"]),
        ("the 1st, 7 PM, mp3", ["7"]),
        ("#48213 A-113 UTF-8 3D v2.0", ["#48213", "A-113", "UTF-8", "3D", "v2.0"]),
        ("DE89 3704 0044 0532 0130 00", ["DE89 3704 0044 0532 0130 00"]),
        ("#ff00ff 0xFF 1a2b3c4", ["#ff00ff", "0xFF", "1a2b3c4"]),
        ("1.Yí and 2.Ölflasche", ["1", "2"]),
        ("decade, deadbeef", []),
        ("+49 30 1234567, +1 800 555-1234", ["+49 30 1234567", "+1 800 555-1234"]),
        ("1e5 or 1.2E-5 m, 10^-3", ["1e5", "1.2E-5 m", "10^-3"]),
        ("10² and 6.02×10²³ or 10⁻⁵ kg, 2½", ["10²", "6.02×10²³", "10⁻⁵ kg", "2½"]),
        ("x² of 5 m², or km², the²", ["x²", "5 m²", "km²"]),
        ("2e 3e5f 1e5-B", ["1e5"]),
        ("+44 (0)20 7946 0000, +1 000 000 €", ["+44 (0)20 7946 0000", "+1 000 000 €"]),
    ],
)
def test_numbers_and_identifiers(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize("emoji", ["😀", "👨‍👩‍👧", "👍🏽", "🇩🇪", "1️⃣", "❤️", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "→", "😀😀😀"])
def test_an_emoji_is_one_span_however_many_characters_it_has(emoji: str) -> None:
    assert found(f"so {emoji}, or{emoji}") == [emoji, emoji]


def test_one_digit_before_a_word_has_a_rule_of_its_own() -> None:
    spans = find_spans("2 men, 5 km, 12 men", Rules.default())
    assert [(span.rule, span.kind) for span in spans] == [
        ("count", "number"),
        ("number", "number"),
        ("number", "number"),
    ]
    assert found("2 men, 5 km", Rules.of(["-count"])) == ["2", "5 km"]


def test_tags_are_paired() -> None:
    spans = find_spans("Press <b>OK</b><br/>", Rules.default())
    assert spans == [
        Span(6, 9, "open", "tag", 1),
        Span(11, 15, "close", "tag", 0),
        Span(15, 20, "thing", "tag"),
    ]


def test_crossing_tags_do_not_become_crossing_pairs() -> None:
    spans = find_spans("<b><i></b></i>", Rules.default())
    assert [span.kind for span in spans] == ["open", "thing", "close", "thing"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<a href='x > y' id=3>t</a>", ["<a href='x > y' id=3>", "</a>"]),
        ("a <!-- <b> --> b <?php x ?>", ["<!-- <b> -->", "<?php x ?>"]),
        ("<![CDATA[ text ]]>", ["<![CDATA[", "]]>"]),
        ("<%= x %>a", ["<%= x %>"]),
        ("<0>x</0> <1/>", ["<0>", "</0>", "<1/>"]),
        ("<none>, <file name>, <<unknown>>", []),
        ("a < b and c > d, <3", ["3"]),
        ('<img src="5.png" alt="{0}">', ['<img src="5.png" alt="{0}">']),
    ],
)
def test_tags(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**a** *b* _c_ ~~d~~ __e__", ["**", "**", "*", "*", "_", "_", "~~", "~~", "__", "__"]),
        ("[text](http://x.y) ![alt](a.png)", ["[", "](http://x.y)", "![", "](a.png)"]),
        ("[text](x) and", ["[", "](x)"]),
        ("これは**太字**です", ["**", "**"]),
        ("## Title", ["##"]),
        ("run `rm -rf` or ``a`b``", ["`rm -rf`", "``a`b``"]),
        ("`this' and `that'", []),
        ("2 * 3 * 4 or a*b*c", ["2", "3", "4"]),
        ("_File, snake_case_name, [optional]", []),
        ("**<b>a**</b>", ["<b>", "</b>"]),
        ("<b>**a**</b>", ["<b>", "**", "**", "</b>"]),
        ("_12 men_ and __UTF-8__.", ["_", "12", "_", "__", "UTF-8", "__"]),
        ("_$HOME house_, *set $HOME*", ["_", "$HOME", "_", "*", "$HOME", "*"]),
        ("**/etc/hosts or *.svg**", ["**", "/etc/hosts", "*.svg", "**"]),
        ("_mail a@b.org_ and ~~%s~~", ["_", "a@b.org", "_", "~~", "%s", "~~"]),
        ("_run `x`_ _in a.txt_", ["_", "`x`", "_", "_", "a.txt", "_"]),
        ("**_$5_**", ["**", "_", "$5", "_", "**"]),
        ("__init__.py, _x/a.py, $_GET_x", ["__init__.py", "_x/a.py", "$_GET_x"]),
    ],
)
def test_marks_of_markdown(text: str, expected: list[str]) -> None:
    assert found(text) == expected


def test_the_texts_of_an_icu_message_are_inner_stretches() -> None:
    text = "You have {n, plural, =0 {no file} one {# file} other { # files }} left"
    [span] = find_spans(text, Rules.default())
    assert text[span.start : span.end] == text[9:-5]
    assert [text[start:end] for start, end in span.inner] == ["no file", "# file", "# files"]


def test_in_a_text_of_an_icu_message_the_number_and_quotations_are_protected() -> None:
    rules = Rules.default().within_icu()
    assert found("#&#160;file of '{x}' in {n, select, a {b} other {c}}", rules) == [
        "#",
        "&#160;",
        "'{x}'",
        "{n, select, a {b} other {c}}",
    ]


def test_nothing_is_protected_on_request() -> None:
    assert find_spans("%s <b>5</b>", Rules.none()) == []


def test_the_user_protects_terms_and_expressions() -> None:
    rules = Rules.of([r"ACME-\w+"], Terms(["Visual Studio", "C++", "東京"]))
    text = "ACME-x in Visual Studio, C++ 東京都"
    assert found(text, rules) == ["ACME-x", "Visual Studio", "C++", "東京"]
    assert [span.rule for span in find_spans(text, rules)] == ["regex", "term", "term", "term"]


def test_a_match_of_the_user_within_a_span_of_heed_is_a_part_of_it() -> None:
    text = "see https://acme.com/x"
    assert found(text, Rules.of(["acme"])) == ["https://acme.com/x"]


def test_a_match_of_the_user_that_crosses_a_tag_leaves_the_other_tag_alone() -> None:
    spans = find_spans("a <b>x</b> 5", Rules.of(["a <b>x"]))
    assert [(span.kind, span.rule, span.partner) for span in spans] == [
        ("thing", "regex", None),
        ("thing", "tag", None),
        ("number", "number", None),
    ]


def test_partners_are_found_again_among_matches_of_the_user() -> None:
    text = "one <b>two</b> three"
    spans = find_spans(text, Rules.of(["one|two|three"]))
    assert [span.partner for span in spans] == [None, 3, None, 1, None]


# Properties

_PIECES = st.sampled_from(
    [
        *("<b>", "</b>", "<i>", "</i>", "<br/>", "<x>", "%s", "{0}", "5", " ", "a", "<", "%", "{"),
        *("}", "&amp;", "**", "*", "_", "[", "](u)", "`", "```", "x.y", "://", "@", "/", "\\"),
        *("{n, plural, one {", "other {", "'", "#", "😀", "\u200d", "ש", "\u0301", "東", "\ud800"),
        *("<!--", "-->", "<![CDATA[", "]]>", "1,000", "km", "\n"),
    ]
)
_TEXTS = st.lists(_PIECES, max_size=30).map("".join) | st.text(max_size=60)
_RULES = st.sampled_from(
    [
        Rules.default(),
        Rules.default().within_icu(),
        Rules.of(["none", r"[ab<]\W?"]),
        Rules.of([r"\w[<*]|\d+", "-markdown"], Terms(["a", "5 %", "東"])),
    ]
)


@given(_TEXTS, _RULES)
def test_spans_are_disjoint_and_pairs_nest(text: str, rules: Rules) -> None:
    spans = find_spans(text, rules)
    place = 0
    waiting = []
    for index, span in enumerate(spans):
        assert place <= span.start < span.end <= len(text)
        place = span.end
        edges = [span.start, *chain(*span.inner), span.end]
        assert edges == sorted(edges)
        if span.kind == "open":
            waiting.append(index)
        elif span.kind == "close":
            assert span.partner == waiting.pop()
            assert spans[span.partner].partner == index
        else:
            assert span.partner is None
    assert not waiting


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyzäéß ,!?'\"東京שλж-:;()", max_size=80))
def test_plain_words_hold_no_span(text: str) -> None:
    assert find_spans(text, Rules.default()) == []


_FIELDS = st.sampled_from(
    [
        *("%s", "%1$d", "%-12.12s", "%(name)s", "{}", "{name}", "{{name}}", "${name}", "$(ARG1)"),
        *("<br/>", '<img src="a.png"/>', "&amp;", "&#160;", "`code here`", "https://x.org/a?b=1"),
        *("me@example.org", "/usr/lib/x", r"C:\a\b", "./x", "config.json", "1,234.50 €", "20 °C"),
        *(
            "12:30",
            "2024-01-02",
            "#48213",
            "A-113",
            "👨‍👩‍👧",
            "{n, plural, one {a b} other {{x} # c}}",
        ),
    ]
)


@given(
    st.lists(st.tuples(st.sampled_from(["word", "ein Wort", "שלום", "слово", "東京"]), _FIELDS)),
)
def test_fields_among_words_are_found_exactly(parts: list[tuple[str, str]]) -> None:
    text = " ".join(f"{word} {field}" for word, field in parts)
    assert found(text) == [field for _, field in parts]


@st.composite
def _nested(draw: st.DrawFn, depth: int = 4) -> list[str]:
    """Tokens of well-nested tags around words."""
    tokens: list[str] = []
    for _ in range(draw(st.integers(0, 2))):
        tokens.append("word")
        if depth and draw(st.booleans()):
            name = draw(st.sampled_from(["b", "i", "a", "x-y", "g:1"]))
            tokens += [f"<{name}>", *draw(_nested(depth - 1)), f"</{name}>"]
    return tokens


@given(_nested())
def test_nested_tags_of_any_depth_find_their_partners(tokens: list[str]) -> None:
    text = "".join(tokens)
    spans = find_spans(text, Rules.default())
    tags = [token for token in tokens if token != "word"]
    assert [text[span.start : span.end] for span in spans] == tags
    waiting: list[int] = []
    for index, tag in enumerate(tags):
        if tag[1] == "/":
            first = waiting.pop()
            assert (spans[first].partner, spans[index].partner) == (index, first)
        else:
            waiting.append(index)


@pytest.mark.timeout(
    60
)  # each is done in a second; a search that starts again and again takes hours
@pytest.mark.parametrize(
    "unit",
    [
        *(
            "<",
            "{",
            "%",
            "[",
            "*",
            "_",
            "`",
            "~",
            "&",
            "#",
            "$",
            "@",
            ".",
            "/",
            "\\",
            "1",
            "a.",
            "-",
        ),
        *(
            "<a ",
            "<a b='",
            "<!--",
            "<![CDATA[",
            "<b>",
            "</b>",
            "``a",
            "*a",
            "a*",
            "_a ",
            "[a](",
            "](",
        ),
        *(
            "{{",
            "{%",
            "{n, plural, ",
            "{n, plural, one {",
            "{n,plural,one{'{",
            "1,",
            "1 000 ",
            "A-",
        ),
        *(
            "://",
            "http://",
            "a@",
            "a@b.",
            "/a",
            "./",
            "a/",
            "C:\\",
            "%(",
            "${",
            "&a",
            "😀\u200d",
            "0a",
        ),
        *(
            "a.b.",
            "*.",
            "[a",
            "**a",
            "1a",
            "A1_",
            "#a",
            "é\u0301",
            "5 %",
            "<?a",
            *("<%", "<% ", "+1 22", "+1 2 ", "\\n", "{a,", "{a, b"),
            "'",
            "www.",
            "~~a",
            *("_!a ", "a_ ", "*a* "),
            *("打a.", "a/打", "www.打", "a.txt打", "https://a/打b", "打/etc/", "а@б.", "é@é"),
        ),
    ],
)
def test_hostile_texts_take_linear_time(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    spans = find_spans(text, Rules.default())
    assert all(span.start < span.end <= len(text) for span in spans)


def test_rules_pickle() -> None:
    rules = Rules.of([r"\d+x"], Terms(["heed"]))
    assert pickle.loads(pickle.dumps(rules)) == rules
