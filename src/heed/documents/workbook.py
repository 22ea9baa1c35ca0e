"""Workbooks of Office Open XML (.xlsx): texts of cells, comments and text boxes.

A string is plain text, or runs of equal format (`runs.py`). Line breaks in it separate texts.
Formulas, names of sheets, and the names of columns of tables and pivot tables stay, because
formulas and tables refer to them. So does a text that a formula spells, as in `IF(A1="Yes",1)`,
which compares cells with it. Readings (phonetic runs) of translated strings are left out.

Source: ECMA-376, part 1, sections 18.4 (shared strings), 18.3.1.4 (cells), 18.7 (comments), 18.5
(tables), 18.17 (formulas) and 22.9.2.19 (escapes such as `_x000D_`).
"""

import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import unescape

from heed.documents.assembly import Assembly, Original
from heed.documents.attributes import attribute
from heed.documents.markup import escape_xml
from heed.documents.passages import Passage, split_passage
from heed.documents.runs import Run, line_of, require_no_marks, split_runs
from heed.documents.segment import REPEATED_AN_ELEMENT, OnRead, Segment, ignore
from heed.documents.structure import matched
from heed.documents.tags import Token, local_name, parts_of_text, read_tokens, root_of
from heed.translate.result import Translation

PARTS = re.compile(
    r"xl/(?:sharedStrings|worksheets/[^/]+|comments/?(?:comment)?\d+"
    r"|threadedComments/threadedComment\d+|drawings/drawing\d+)\.xml",
    re.I,
)
"""Names of the parts that hold text."""

_NAMING_PARTS = re.compile(r"xl/(?:tables/table|pivotCache/pivotCacheDefinition)\d+\.xml", re.I)
_NAMING_TAG = re.compile(r"<(?:\w+:)?(?:tableColumn|cacheField)\s[^<>]*>")
_FORMULA_PARTS = re.compile(r"xl/(?:workbook|worksheets/[^/]+|tables/[^/]+)\.xml", re.I)
_FORMULA = re.compile(
    r"<(?:\w+:)?(f|formula[12]?|definedName|\w+Formula)(?=[\s>])[^<>]*+>([^<]*+)<"
)
# The name of a sheet may have double quotes. A criterion such as "<>Yes" has an operator.
_LITERAL = re.compile(r"'(?:[^']|'')*+'|\"[=<>]*+((?:[^\"]|\"\")*+)\"")
_TYPED_CELL = re.compile(rb"\st=[\"'](?:inlineStr|str)[\"']")
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")
_BREAK = re.compile(rf"{_ESCAPE.pattern}|[\r\n]+")
_STRINGS = frozenset(("si", "is", "text"))
_READINGS = frozenset(("rPh", "phoneticPr"))


def has_text(part: bytes) -> bool:
    """Whether a part must be read. Most sheets hold numbers only, and the numbers of strings."""
    return b"sheetData" not in part or _TYPED_CELL.search(part) is not None


def names_of_columns(workbook: zipfile.ZipFile, on_read: OnRead) -> frozenset[str]:
    """Names of columns, and labels of their totals, which formulas and tables use."""
    tags: list[str] = []
    for part in filter(_NAMING_PARTS.fullmatch, workbook.namelist()):
        found = _NAMING_TAG.findall(workbook.read(part).decode(errors="replace"))
        on_read(0, len(found))
        tags += found
    names = (attribute(tag, which) for tag in tags for which in ("name", "totalsrowlabel"))
    return frozenset(_key(_unescaped(unescape(name))) for name in names)


def literals_of_formulas(workbook: zipfile.ZipFile, on_read: OnRead) -> frozenset[str]:
    """The texts that formulas spell, and the items of lists of permitted values."""
    literals: set[str] = set()
    for part in filter(_FORMULA_PARTS.fullmatch, workbook.namelist()):
        for name, formula in _FORMULA.findall(workbook.read(part).decode(errors="replace")):
            found = [text.replace('""', '"') for text in _LITERAL.findall(unescape(formula))]
            on_read(0, len(found))
            literals.update(found)
            if name == "formula1":
                literals.update(item.strip() for text in found for item in text.split(","))
    return frozenset(map(_key, literals))


def _key(text: str) -> str:
    """A text as formulas compare it: without regard to case."""
    return text.casefold()


def split_workbook_part(
    text: str, kept: frozenset[str] = frozenset(), on_read: OnRead = ignore
) -> Assembly:
    """Split the texts of a part.

    Args:
        text: the part's XML.
        kept: texts that are not translated, in lower case.
        on_read: called for what is repeated; may stop this.

    Raises:
        DataError: the XML is malformed, or holds U+FDD0 or U+FDD1.
    """
    require_no_marks(text)
    tokens = read_tokens(text, is_xml=True)
    root = root_of(tokens)
    if root and local_name(root) == "wsDr":
        return split_runs(text, on_read)
    partner = matched(text, tokens, is_xml=True)
    assembly = Assembly(text)
    is_formula = False
    end = -1
    for number, token in enumerate(tokens):
        name = local_name(token)
        if name == "c":
            is_formula = attribute(token.raw, "t") == "str"
        if token.kind != "open" or number < end:
            continue
        if name in _STRINGS or (name == "v" and is_formula):
            end = partner[number]
            content, words = _read_string(text, tokens, partner, number, on_read)
            # Mentions give the positions of names in the text.
            following = [local_name(each) for each in tokens[end + 1 : end + 2]]
            if _key(words) not in kept and following != ["mentions"]:
                assembly.replace(token.start + len(token.raw), tokens[end].start, content)
    assembly.keep_until(len(text))
    return assembly


@dataclass(frozen=True, slots=True)
class _Plain:
    """Plain text, escaped when it is written."""

    passage: Passage

    @property
    def segments(self) -> list[Segment]:
        return self.passage.segments

    def join(self, translations: Sequence[Translation]) -> str:
        return escape_xml(self.passage.join(translations))


def _read_string(
    source: str,
    tokens: Sequence[Token],
    partner: Mapping[int, int],
    start: int,
    on_read: OnRead,
) -> tuple[Original, str]:
    """The content of an element with text, or with elements that hold text; and the text."""
    end = partner[start]
    inside = tokens[start + 1 : end]
    parts = Assembly()
    if all(token.kind == "text" for token in inside):
        text = _add_text(parts, inside)
    else:
        text = _add_elements(parts, tokens, partner, start, on_read)
    raw = source[tokens[start].start + len(tokens[start].raw) : tokens[end].start]
    return Original(parts, raw), _unescaped(text)


def _add_elements(
    parts: Assembly,
    tokens: Sequence[Token],
    partner: Mapping[int, int],
    start: int,
    on_read: OnRead,
) -> str:
    """Append the elements of a string, its runs as one line, and return their text."""
    text = ""
    line: list[Run | Token] = []
    raw_line = ""
    number = start + 1
    while number < partner[start]:
        after = max(number, partner.get(number, 0)) + 1
        element = tokens[number:after]
        raw = "".join(token.raw for token in element)
        name = local_name(element[0])
        if name == "r" and len(element) > 1:
            run = _run(element)
            text += "".join(token.text for token in run.texts)
            line += _lines(run, on_read)
            raw_line += raw
        elif name == "t" and len(element) > 1:
            parts.keep(element[0].raw)
            text += _add_text(parts, element[1:-1])
            parts.keep(element[-1].raw)
        elif name not in _READINGS:
            parts.keep(raw)
        number = after
    if any(isinstance(item, Run) for item in line):
        parts.add(line_of(line, raw_line, on_read=on_read))
    else:
        parts.keep(raw_line)
    return text


def _run(element: Sequence[Token]) -> Run:
    """A run as an element with its format and text."""
    run = element[0]
    names = [local_name(token) for token in element]
    holder = names.index("t") if "t" in names else len(element) - 1
    head = "".join(token.raw for token in element[:holder])
    tag = f"{run.name[:-1]}t"  # with the prefix of the run
    texts = [*element[holder + 1 : -2]] if element[holder].kind == "open" else []
    return Run.of(f'{head}<{tag} xml:space="preserve">', texts, f"</{tag}></{run.name}>")


def _lines(run: Run, on_read: OnRead) -> Iterator[Run | Token]:
    """The lines of a run, and runs of their own between them that hold only what parts them."""
    texts: list[Token] = []
    for token in run.texts:
        is_plain = token.kind == "text" and token.raw == token.text
        for part, match in parts_of_text(token, _BREAK) if is_plain else [(token, None)]:
            if match or part.text in ("\n", "\r"):
                on_read(0, len(run.opening) // REPEATED_AN_ELEMENT)
                if texts:
                    yield replace(run, texts=texts)
                yield Token("declaration", f"{run.opening}{part.raw}{run.closing}", part.start)
                texts = []
            else:
                texts.append(part)
    if texts:
        yield replace(run, texts=texts)


def _add_text(parts: Assembly, tokens: Sequence[Token]) -> str:
    """Append plain text, and return it. What is not text, such as CDATA, is kept with all of it."""
    text = "".join(token.text for token in tokens)
    if any(token.kind != "text" for token in tokens):
        parts.keep("".join(token.raw for token in tokens))
        return text
    start = 0
    for match in _ESCAPE.finditer(text):
        parts.add(_Plain(split_passage(text[start : match.start()])))
        parts.keep(match[0])
        start = match.end()
    parts.add(_Plain(split_passage(text[start:])))
    return text


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
