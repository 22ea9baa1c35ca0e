"""Paragraphs of Office Open XML (.docx, .pptx), whose text stands in runs of equal format.

The runs of a paragraph that look like most of its text are its plain text; other runs, links and
bookmarks move among the words as tags do (`inline.py`). A tab, a line break, a field or a picture
parts texts.

Source: ECMA-376, part 1, sections 17.3 (WordprocessingML) and 21.1.2 (DrawingML).
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from heed.documents.assembly import Assembly
from heed.documents.flow import flow
from heed.documents.markup import Markup
from heed.documents.markup import escape as escape_markup
from heed.documents.passages import sentences
from heed.documents.segment import Segment, is_unchanged
from heed.documents.structure import Rules, structure
from heed.documents.tags import Token, read_tokens
from heed.errors import DataError
from heed.translate.result import Translation

# Where a run of plain text begins and ends; no character, so no text holds them.
_BEGIN, _END = "\ufdd0", "\ufdd1"
_EMPTY_RUN = _BEGIN + _END
_ILLEGAL = re.compile(f"[{_BEGIN}{_END}\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
# What differs between runs that look the same: editing sessions, languages, marks of the spelling.
_INVISIBLE = re.compile(
    r'\s+(?:w:rsid\w*|lang|altLang|dirty|err|noProof|smtClean)="[^"]*"'
    r"|<w:(?:lang|noProof)\b[^<>]*/>"
)
_MOVED = frozenset(
    "hyperlink bookmarkStart bookmarkEnd commentRangeStart commentRangeEnd smartTag".split()  # noqa: SIM905
)
_DROPPED = frozenset(("proofErr", "lastRenderedPageBreak"))
_RULES = Rules(
    is_xml=False,
    ignored=frozenset(),
    splitting=frozenset(),
    joining=frozenset(),
    has_outline=False,
)


@dataclass(frozen=True, slots=True)
class _Run:
    """A run that holds nothing but text."""

    opening: str
    texts: list[Token]
    closing: str

    @property
    def format(self) -> str:
        return _INVISIBLE.sub("", self.opening)


@dataclass(frozen=True, slots=True)
class _Line:
    """Runs and what stands between them, as markup whose plain text is in runs of one format."""

    markup: Markup
    raw: str
    opening: str
    closing: str

    @property
    def segments(self) -> list[Segment]:
        return self.markup.segments

    def join(self, translations: Sequence[Translation]) -> str:
        if is_unchanged(self.segments, translations):
            return self.raw
        text = f"{_BEGIN}{self.markup.join(translations)}{_END}".replace(_EMPTY_RUN, "")
        return text.replace(_BEGIN, self.opening).replace(_END, self.closing)


def split_runs(text: str, prefix: str) -> Assembly:
    """The texts of a part of a document.

    Args:
        text: the XML.
        prefix: of its names: `w` in word processing, `a` in slides.

    Raises:
        DataError: the XML is malformed, or holds what is no character.
    """
    if _BEGIN in text or _END in text:
        raise DataError(
            "The document holds U+FDD0 or U+FDD1, which are no characters. Remove them."
        )
    tokens = read_tokens(text, is_xml=True)
    structure(text, tokens, replace(_RULES, is_xml=True))
    assembly = Assembly()
    line: list[_Run | Token] = []
    line_start = number = 0
    while number < len(tokens):
        token = tokens[number]
        run, after = _text_run(tokens, number, prefix)
        is_inline = token.name.removeprefix(f"{prefix}:") in _MOVED | _DROPPED
        if run or (is_inline and token.kind != "text"):
            line_start = line_start if line else token.start
            line.append(run or token)
        else:
            _add_line(assembly, line, text[line_start : token.start] if line else "", prefix)
            line = []
            assembly.keep(token.raw)
        number = after
    _add_line(assembly, line, text[line_start:] if line else "", prefix)
    return assembly


def _text_run(tokens: list[Token], number: int, prefix: str) -> tuple[_Run | None, int]:
    """The run of text that begins at a token, and the number of the token behind it."""
    start = number
    if (tokens[number].kind, tokens[number].name) != ("open", f"{prefix}:r"):
        return None, start + 1
    opening = [tokens[number].raw]
    number += 1
    if tokens[number].name == f"{prefix}:rPr":
        depth = 0
        while True:
            token = tokens[number]
            opening.append(token.raw)
            depth += {"open": 1, "close": -1}.get(token.kind, 0)
            number += 1
            if not depth:
                break
    while tokens[number].name.removeprefix(f"{prefix}:") in _DROPPED:
        number += 1
    if (tokens[number].kind, tokens[number].name) != ("open", f"{prefix}:t"):
        return None, start + 1
    opening.append(f'<{prefix}:t xml:space="preserve">' if prefix == "w" else tokens[number].raw)
    texts = []
    number += 1
    while tokens[number].kind == "text":
        texts.append(tokens[number])
        number += 1
    closing = tokens[number : number + 2]
    if [token.name for token in closing] != [f"{prefix}:t", f"{prefix}:r"]:
        return None, start + 1
    if any(token.kind != "close" for token in closing):
        return None, start + 1
    return _Run("".join(opening), texts, "".join(t.raw for t in closing)), number + 2


def _add_line(assembly: Assembly, line: list[_Run | Token], raw: str, prefix: str) -> None:
    line = _merged([item for item in line if not _is_dropped(item, prefix)])
    lengths: Counter[str] = Counter()
    for item in line:
        if isinstance(item, _Run):
            lengths[item.format] += 1 + sum(len(token.text) for token in item.texts)
    if not lengths:
        assembly.keep(raw)
        return
    plain_format = lengths.most_common(1)[0][0]
    plain = next(i for i in line if isinstance(i, _Run) and i.format == plain_format)
    tokens: list[Token] = []
    for item in line:
        if isinstance(item, _Run):
            tokens += _run_tokens(item, plain_format)
        else:
            tokens.append(Token(item.kind, f"{_END}{item.raw}{_BEGIN}", item.start, "moved"))
    segments, parts = flow(
        structure(raw, tokens, _RULES), is_html=False, split=sentences, escape=_escape
    )
    assembly.add(_Line(Markup(segments, parts), raw, plain.opening, plain.closing))


def _is_dropped(item: _Run | Token, prefix: str) -> bool:
    return isinstance(item, Token) and item.name.removeprefix(f"{prefix}:") in _DROPPED


def _merged(line: list[_Run | Token]) -> list[_Run | Token]:
    """Neighboring runs that look the same as one; an editor divides them at will."""
    merged: list[_Run | Token] = []
    for item in line:
        latest = merged[-1] if merged else None
        if isinstance(item, _Run) and isinstance(latest, _Run) and item.format == latest.format:
            merged[-1] = replace(latest, texts=[*latest.texts, *item.texts])
        else:
            merged.append(item)
    return merged


def _run_tokens(run: _Run, plain_format: str) -> list[Token]:
    if run.format == plain_format:
        return run.texts
    start = run.texts[0].start if run.texts else 0
    return [
        Token("open", _END + run.opening, start, "run"),
        *run.texts,
        Token("close", run.closing + _BEGIN, start, "run"),
    ]


def _escape(text: str) -> str:
    return escape_markup(_ILLEGAL.sub("", text))
