"""Markdown: the text of paragraphs, headings, lists, quotes and tables is translated.

Kept: front matter, code, formulas, HTML blocks without text, link targets, reference definitions,
attributes of headings, lines that begin or end a container, and the markers of lists, definitions,
quotes and footnotes. Markers of emphasis and links move with their words, as tags do (`inline.py`).
A translated paragraph is written on one line.

Source: CommonMark 0.31, simplified: a document is read line by line, and blocks are not nested.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from heed.documents.assembly import Assembly, Original
from heed.documents.flow import flow
from heed.documents.markdown_spans import label_of, read_spans
from heed.documents.markup import Markup
from heed.documents.markup import escape as escape_markup
from heed.documents.passages import sentences
from heed.documents.segment import OnRead, ignore
from heed.documents.structure import Rules, structure
from heed.documents.tags import read_tokens

_LINE = re.compile(r"[^\n]*+\n|[^\n]++\Z")
_PREFIX = re.compile(
    r"(?:[ \t]*(?:>|(?:[-*+:]|\d{1,9}[.)])(?=[ \t]|\r?\n|\Z)))*+[ \t]*"
    r"(?:\[[ xX]\][ \t]+|(?:(?<=>)|(?<=> ))\[![A-Za-z]+\][+-]?(?=\s|\Z)[ \t]*)?"
    r"(?:#{1,6}[ \t]+|\[\^[^\]\s]{1,99}\]:[ \t]+)?"
)
_NOTE = re.compile(r"\]:[ \t]+\Z")
_CALLOUT = re.compile(r"\[![A-Za-z]+\][+-]?[ \t]*\Z")  # of GitHub and Obsidian: `> [!NOTE]`
_LIST_MARK = re.compile(r"[-*+:]|\d[.)]")  # a colon begins a definition
# Admonitions of MkDocs; containers of VitePress, Pandoc and MyST; shortcodes of Liquid and Hugo.
_ADMONITION = re.compile(r"(?:!!!|\?\?\?\+?)[ \t]+\w")
_CONTAINER = re.compile(r":{3,}|(?:\{%[^{}]*%\}|\{\{[<%][^{}]*+\}\})\s*\Z")
# Tables of contents, abbreviations of PHP Markdown Extra, and modules of MDX.
_COMMAND = re.compile(
    r"\[TOC\]\s*\Z|\*\[[^\[\]]+\]:|import\s[^'\"]*(['\"])[^'\"]+\1;?\s*\Z"
    r"|export\s+(?:const|default|function|let)\s.*[=({]"
)
_FORMULA_LINE = re.compile(r"\$\$[^$]+\$\$\s*\Z")
_FORMULA = re.compile(r"(?P<sign>\$\$|\\\\?\[(?=\s*\Z))|\\begin\{(?P<name>\w+\*?)\}")
# A line with more backticks behind the first ones begins with code among words.
_FENCE = re.compile(r"(`{3,}+(?!.*`)|~{3,})")
_KEPT_HTML = re.compile(r"<(script|style|pre|textarea|!--)", re.I)
# CommonMark, section 4.6, condition 6: no mark means anything up to the next blank line.
_HTML_NAMES = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details"
    "|dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head"
    "|header|hr|html|iframe|legend|li|link|main|menu|menuitem|nav|noframes|ol|optgroup|option|p"
    "|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul"
)
_HTML_BLOCK = re.compile(rf"</?(?:{_HTML_NAMES})(?=[\s/>]|\Z)", re.I)
_DEFINITION = re.compile(r"\[([^\[\]]+)\]:\s*\S+")
_DELIMITER_ROW = re.compile(r"[|:\- \t]*-[|:\- \t]*\Z")
_RULE = re.compile(r"[ \t]*(?:=+|-+|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})[ \t]*\Z")
_CLOSING_MARKS = re.compile(r"(?<![ \t])[ \t]+#+[ \t]*\Z")
# Of a heading, as in Pandoc and kramdown: `{#id .class key=value}`, `{-}`, `{: .class}`.
_ATTRIBUTE = r"(?:[#.][\w\-:.]++|[\w\-:.]++=(?:\"[^\"{}]*+\"|'[^'{}]*+'|[^\s\"'{}]++)|-)"
_ATTRIBUTES = re.compile(
    rf"\{{(?::[^{{}}]*+|[ \t]*+{_ATTRIBUTE}(?:[ \t]++{_ATTRIBUTE})*+[ \t]*+)\}}"
)
_ATTRIBUTE_LINE = re.compile(r"\{:[^{}]*+\}\s*\Z")
_CELL = re.compile(r"((?<!\\)\|)")
_INDENT = 4
_FORMULA_ENDS = ("$$", "\\]", "\\\\]", "\\end{")
_RULES = Rules(is_xml=False)


@dataclass(slots=True)
class _State:
    """The state after the lines read so far.

    Attributes:
        end: the pattern of the line that ends a kept block; None outside of one.
        paragraph: lines of the current paragraph, without their prefixes.
        gaps: the line breaks and prefixes between them.
        html: lines of the current block of HTML.
        depth: the quote depth of the line before.
        is_table: whether the lines are rows.
        is_list: whether an indented line belongs to a list.
        was_blank: whether the line before was blank.
        labels: names of the link references in the file.
        last: for each sign that ends a formula, the last line with it.
    """

    end: re.Pattern[str] | None = None
    paragraph: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    html: list[str] = field(default_factory=list)
    depth: int = 0
    is_table: bool = False
    is_list: bool = False
    was_blank: bool = True
    labels: frozenset[str] = frozenset()
    last: dict[str, int] = field(default_factory=dict)


def split_markdown(text: str, on_read: OnRead = ignore) -> Assembly:
    """Split the texts of a Markdown file; `on_read` may stop this."""
    assembly = Assembly(on_read=on_read)
    lines: list[str] = _LINE.findall(text)
    definitions = (_DEFINITION.match(line.lstrip(" \t>")) for line in lines)
    state = _State(labels=frozenset(label_of(match[1]) for match in definitions if match))
    if lines and lines[0].rstrip() in ("---", "+++"):
        # Front matter, or a thematic break if no line closes it.
        marks = {lines[0].rstrip(), "..."}
        end = next((n for n in range(1, len(lines)) if lines[n].rstrip() in marks), 0)
        assembly.keep("".join(lines[: end + 1]))
        lines = lines[end + 1 :]
    signs = [sign for sign in _FORMULA_ENDS if sign in text]
    for number, line in enumerate(lines if signs else ()):
        state.last |= {sign: number for sign in signs if sign in line}
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        on_read(0, 0)
        _read_line(assembly, state, number, line, following)
    _end_paragraph(assembly, state)
    return assembly


def _read_line(assembly: Assembly, state: _State, number: int, line: str, following: str) -> None:
    match = _PREFIX.match(line)
    prefix = match[0] if match else ""
    body = line[len(prefix) :]
    if state.end:
        assembly.keep(line)
        state.end = None if state.end.search(line) else state.end
        return
    if not body.strip():
        _end_paragraph(assembly, state)
        assembly.keep(line)
        state.was_blank, state.is_table = True, False
        return
    is_marked = bool(prefix.strip())
    state.is_list = _begins_item(prefix) or (
        state.is_list and (line[0] in " \t" or not state.was_blank)
    )
    indent = len(prefix.expandtabs(_INDENT))
    is_code = state.was_blank and indent >= _INDENT and not is_marked and not state.is_list
    was_blank, state.was_blank = state.was_blank and is_code, False
    if is_code or (not state.html and _is_kept_line(body)):
        if state.paragraph and body[0] in "=-":
            _end_heading(state, is_underlined=True)
        _end_paragraph(assembly, state)
        assembly.keep(line)
        state.was_blank = was_blank
        state.is_list = state.is_list or bool(_ADMONITION.match(body))
    elif kept := (not state.html and _FENCE.match(body)) or _KEPT_HTML.match(body):
        _end_paragraph(assembly, state)
        assembly.keep(line)
        state.end = _end_of(kept[1])
        if kept.re is _KEPT_HTML and state.end.search(body):
            state.end = None
    elif not state.html and (formula_end := _end_of_formula(state, body, number)):
        _end_paragraph(assembly, state)
        assembly.keep(line)
        state.end = formula_end
    elif state.html or (not is_marked and _HTML_BLOCK.match(body)):
        if not state.html:
            _end_paragraph(assembly, state)
        state.html.append(line)
    elif state.is_table or ("|" in body and _DELIMITER_ROW.match(following.strip(" \t\r\n>"))):
        _end_paragraph(assembly, state)
        state.is_table = True
        _add_row(assembly, prefix, body, state.labels)
    else:
        _add_line(assembly, state, prefix, body)


def _is_kept_line(body: str) -> bool:
    """Whether a line is a reference definition, a rule, an underline, or marks or names a block."""
    is_rule = _DEFINITION.match(body) or _RULE.match(body.rstrip("\r\n"))
    is_block = _ATTRIBUTE_LINE.match(body) or _ADMONITION.match(body) or _CONTAINER.match(body)
    return bool(is_rule or is_block or _COMMAND.match(body) or _FORMULA_LINE.match(body))


def _begins_item(prefix: str) -> bool:
    """Whether a prefix begins a list item or a footnote, which continue in indented lines."""
    return bool(_NOTE.search(prefix) or _LIST_MARK.search(prefix))


def _end_of(opening: str) -> re.Pattern[str]:
    """The pattern of the line that ends the block opened by `opening`."""
    if opening[0] in "`~":
        return re.compile(rf"^[\s>]*{re.escape(opening[0])}{{{len(opening)},}}\s*$")
    return re.compile("-->" if opening == "!--" else f"</{opening}", re.I)


def _end_of_formula(state: _State, body: str, number: int) -> re.Pattern[str] | None:
    """The pattern of a later line that ends the formula which begins at a line, if it is one."""
    match = _FORMULA.match(body)
    if not match:
        return None
    sign = match["sign"]
    closing = sign.replace("[", "]") if sign else f"\\end{{{match['name']}}}"
    ends_later = state.last.get(closing if sign else "\\end{", -1) > number
    is_open = body.find(closing, match.end()) < 0
    return re.compile(re.escape(closing)) if ends_later and is_open else None


def _add_line(assembly: Assembly, state: _State, prefix: str, body: str) -> None:
    assembly.on_read(0, 1)
    text = body.rstrip("\r\n")
    is_heading = prefix.rstrip().endswith("#") or bool(_CALLOUT.search(prefix))
    depth = prefix.count(">")
    # A list item, a heading or a nested quote begins a new paragraph.
    is_new = is_heading or _begins_item(prefix) or depth > state.depth
    state.depth = depth
    if is_new or not state.paragraph:
        _end_paragraph(assembly, state)
        assembly.keep(prefix)
    else:
        state.gaps[-1] += prefix
    state.paragraph.append(text)
    state.gaps.append(body[len(text) :])
    if is_heading:
        _end_heading(state, is_underlined=False)
        _end_paragraph(assembly, state)


def _end_heading(state: _State, *, is_underlined: bool) -> None:
    """Keep the attributes and the closing marks of a heading, in any order, out of its text."""
    text = state.paragraph[-1]
    end = _without_attributes(text, len(text))
    if not is_underlined and (closing := _CLOSING_MARKS.search(text[:end])):
        end = _without_attributes(text, closing.start())
    state.paragraph[-1], state.gaps[-1] = text[:end], text[end:] + state.gaps[-1]


def _without_attributes(text: str, end: int) -> int:
    """The end of a heading's text before its attributes; `end` if it has none."""
    body = text[:end].rstrip(" \t")
    start = body.rfind("{")
    # A backslash escapes them; after `$` and the like they are a field.
    if (
        start < 0
        or body[start - 1 : start] in tuple("\\$%#{")
        or not _ATTRIBUTES.fullmatch(body, start)
    ):
        return end
    return len(body[:start].rstrip(" \t"))


def _add_row(assembly: Assembly, prefix: str, body: str, labels: Collection[str]) -> None:
    text = body.rstrip("\r\n")
    assembly.keep(prefix)
    for cell in _CELL.split(text):
        if cell == "|":
            assembly.keep(cell)
        else:
            assembly.add(_paragraph(cell, [], labels, assembly.on_read))
    assembly.keep(body[len(text) :])


def _end_paragraph(assembly: Assembly, state: _State) -> None:
    if state.paragraph:
        text, gaps = "\n".join(state.paragraph), state.gaps[:-1]
        assembly.add(_paragraph(text, gaps, state.labels, assembly.on_read))
        assembly.keep(state.gaps[-1])
    if state.html:
        text = "".join(state.html)
        assembly.on_read(0, text.count("<"))
        assembly.add(_html_block(text))
    state.paragraph, state.gaps, state.html = [], [], []


def _paragraph(text: str, gaps: list[str], labels: Collection[str], on_read: OnRead) -> Original:
    tokens = read_spans(text, gaps, labels, on_read)
    # A sign of dollars that is escaped might else begin a formula.
    escape_text = _escape_dollars if "\\$" in text else escape
    segments, parts = flow(
        structure(text, tokens, _RULES), is_html=False, split=sentences, escape=escape_text
    )
    first, *others = text.split("\n")
    raw = first + "".join(gap + line for gap, line in zip(gaps, others, strict=True))
    return Original(Markup(segments, parts), raw)


def _html_block(text: str) -> Markup:
    found = structure(text, read_tokens(text, is_xml=False), _RULES)
    return Markup(*flow(found, is_html=False, split=sentences, escape=escape_markup))


_MARK = re.compile(r"[\\`*\[\]<>|~]|(?<!\w)_|_(?!\w)|&(?=[#\w]+;)")
_LINE_MARK = re.compile(r"([-+#]|\d{1,9}(?=[.)]))(?=[.)]?(?:\s|\Z))")


def escape(text: str) -> str:
    """Escape a text so that no part of it is Markdown syntax."""
    text = _MARK.sub(r"\\\g<0>", text)
    if match := _LINE_MARK.match(text):
        number = match[1]
        return (f"{number}\\" if number.isdigit() else f"\\{number}") + text[match.end() :]
    return text


def _escape_dollars(text: str) -> str:
    return escape(text).replace("$", "\\$")
