"""Paragraphs of Office Open XML (.docx, .pptx), whose text is in runs of equal format.

The runs with the most common format of a paragraph are its plain text. Other runs, links,
bookmarks, marks of notes, fields, formulas and tracked deletions move among the words as tags do
(`inline.py`). A tab, a line break or a picture separates texts, between runs and within one. White
space between elements means nothing.

Source: ECMA-376, part 1, sections 17.3 (WordprocessingML) and 21.1.2 (DrawingML).
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from heed.documents.assembly import Assembly, Original
from heed.documents.flow import flow
from heed.documents.markup import Markup
from heed.documents.markup import escape as escape_markup
from heed.documents.namespaces import with_usual_prefixes
from heed.documents.passages import sentences
from heed.documents.segment import REPEATED_AN_ELEMENT, OnRead, Segment, ignore
from heed.documents.structure import Rules, matched, structure
from heed.documents.tags import NO_XML_CHARACTER, Kind, Token, opened, read_tokens
from heed.documents.word_fields import field_tags
from heed.errors import DataError
from heed.translate.result import Translation

# Start and end of a run of plain text: noncharacters, so no text contains them.
_BEGIN, _END = "\ufdd0", "\ufdd1"
_EMPTY_RUN = _BEGIN + _END
_ILLEGAL = re.compile(f"[{_BEGIN}{_END}]|{NO_XML_CHARACTER.pattern}")
_WHITE_SPACE = " \t\r\n"
_END_RUN = ("close", "r")
# Differences that do not change the look: editing sessions, languages, marks of the spell checker,
# and indents.
_INVISIBLE = re.compile(
    r'(?<!\s)\s++(?:(?:\w+:)?rsid\w*|lang|altLang|dirty|err|noProof|smtClean)="[^"]*"'
    r"|<(?:\w+:)?(?:lang|noProof)\b[^<>]*/>"
    r"|(?<=>)\s++(?=<)"
)
_MOVED = frozenset(
    (
        *("hyperlink", "bookmarkStart", "bookmarkEnd", "commentRangeStart", "commentRangeEnd"),
        *("smartTag", "ins", "moveTo"),  # the latter are tracked changes
        *("moveFromRangeStart", "moveFromRangeEnd", "moveToRangeStart", "moveToRangeEnd"),
        *("permStart", "permEnd", "fldSimple"),
    )
)
_WHOLE = frozenset(("fld", "m:oMath"))  # a field of a slide, which holds no run, and a formula
_DELETED = frozenset(("del", "moveFrom"))  # tracked changes, too; no reader reads these words
_NOTES = frozenset(("footnoteReference", "endnoteReference", "commentReference"))
_DROPPED = frozenset(("proofErr", "lastRenderedPageBreak", "softHyphen"))
_HYPHEN = "noBreakHyphen"
_TEXTS = ("w:t", "a:t")
_WRITTEN_NAME = re.compile(r"<([^\s/>]+)")
_SPACE = re.compile(r"\s+xml:space\s*=\s*(?:\"[^\"]*\"|'[^']*')")
_RULES = Rules(is_xml=False)


@dataclass(frozen=True, slots=True)
class Run:
    """A run that holds only text, between the tags that begin and end it.

    Attributes:
        opening: the tags that begin it.
        texts: its text.
        closing: the tags that end it.
        format: the tags that decide how the text looks.
    """

    opening: str
    texts: list[Token]
    closing: str
    format: str

    @classmethod
    def of(cls, opening: str, texts: list[Token], closing: str) -> "Run":
        """A run between these tags."""
        return cls(opening, texts, closing, _INVISIBLE.sub("", opening))


@dataclass(frozen=True, slots=True)
class _Line:
    """Runs and the tokens between them, as markup whose plain text is in runs of one format.

    Attributes:
        markup: the text with its tags.
        opening: XML that begins a run of plain text.
        closing: XML that ends one.
        before: XML that ends the run in which the line begins.
        after: XML that reopens the run in which it ends.
    """

    markup: Markup
    opening: str
    closing: str
    before: str
    after: str

    @property
    def segments(self) -> list[Segment]:
        return self.markup.segments

    def join(self, translations: Sequence[Translation]) -> str:
        text = f"{_BEGIN}{self.markup.join(translations)}{_END}".replace(_EMPTY_RUN, "")
        runs = text.replace(_BEGIN, self.opening).replace(_END, self.closing)
        return f"{self.before}{runs}{self.after}"


def split_runs(text: str, on_read: OnRead = ignore) -> Assembly:
    """Split the texts of a part of a document.

    Args:
        text: the part's XML.
        on_read: called for what is repeated; may stop this.

    Raises:
        DataError: the XML is malformed, or holds U+FDD0 or U+FDD1.
    """
    require_no_marks(text)
    tokens = read_tokens(text, is_xml=True)
    matched(text, tokens, is_xml=True)
    tokens = with_usual_prefixes(text, tokens)
    return _Parts(text, _with_indents(tokens), on_read).assembly


def require_no_marks(text: str) -> None:
    """Check that a text lacks the signs that mark the runs of a line.

    Raises:
        DataError: it has one.
    """
    if _BEGIN in text or _END in text:
        raise DataError("The document has U+FDD0 or U+FDD1, which are not characters. Remove them.")


def _with_indents(tokens: list[Token]) -> list[Token]:
    """Append white space to the tag before it, unless it is in an element that holds text."""
    joined: list[Token] = []
    opened: list[str] = []
    for token in tokens:
        is_indent = token.kind == "text" and not token.raw.strip(_WHITE_SPACE)
        is_between = not (opened and opened[-1] in _TEXTS)
        if is_indent and is_between and joined and joined[-1].kind != "text":
            joined[-1] = replace(joined[-1], raw=joined[-1].raw + token.raw)
            continue
        joined.append(token)
        if token.kind == "open":
            opened.append(token.name)
        elif token.kind == "close":
            opened.pop()
    return joined


class _Parts:
    """Reads the tokens of a document's part into an assembly.

    A run may hold more than text. Other elements separate its texts; if these are translated, the
    run becomes several runs of the same format.
    """

    def __init__(self, text: str, tokens: list[Token], on_read: OnRead) -> None:
        self.assembly = Assembly()
        self._on_read = on_read
        self._text, self._tokens = text, tokens
        self._fields = field_tags(tokens)
        self._line: list[Run | Token] = []
        self._latest: Run | None = None  # texts of one run share its tags, which may be long
        self._start: int | None = None  # start of the line
        self._before = ""  # XML that closes the run in which the line begins
        self._heads: list[str] = []  # of the open runs; they nest, as a drawing in a run has runs
        self._depths: list[int] = []  # of each of them: how many other elements are open in it
        self._is_inside = False  # whether the line's last run is open
        number = 0
        while number < len(tokens):
            number = self._read(number)
        self._end_line(len(text))

    def _read(self, number: int) -> int:
        """Read the element at a token, and return the number of the token after it."""
        token = self._tokens[number]
        match token.kind, _name(token):
            case "open", "r":
                return self._open_run(number)
            case "open", name if name in _DELETED and not self._is_inside:
                return self._keep_deleted(number)
            case "open", name if name in _WHOLE and not self._is_inside:
                return self._add_mark(number, _behind(self._tokens, number))
            case _, "t" | "noBreakHyphen" if (
                self._heads and not self._depths[-1] and self._is_text(number)
            ):
                return self._add_text(number)
            case "close", "r" if self._heads:
                self._heads.pop()
                self._depths.pop()
                self._is_inside = False
                if self._start is None:
                    self.assembly.keep(token.raw)
            case _, name if name in _DROPPED and self._start is not None:
                pass
            case kind, name if kind != "text" and name in _MOVED and not self._is_inside:
                self._begin_line(token.start)
                self._line.append(token)
            case _:
                self._end_line(token.start)
                self.assembly.keep(token.raw)
                if self._heads:
                    self._depths[-1] += {"open": 1, "close": -1}.get(token.kind, 0)
        return number + 1

    def _keep_deleted(self, number: int) -> int:
        """Let a tracked deletion stand among the words, without a word of its own."""
        after = _behind(self._tokens, number)
        # The parts of a field must keep their order.
        if any(_name(token) == "fldChar" for token in self._tokens[number:after]):
            self._end_line(self._tokens[number].start)
            self.assembly.keep(self._raw(number, after))
        else:
            self._add_mark(number, after)
        return after

    def _add_mark(self, number: int, after: int, kind: Kind = "empty") -> int:
        """Add tokens to the line as one tag, of a field if it has a partner; return `after`."""
        start = self._tokens[number].start
        self._begin_line(start)
        self._line.append(Token(kind, self._raw(number, after), start, "field"))
        return after

    def _raw(self, number: int, after: int) -> str:
        return "".join(token.raw for token in self._tokens[number:after])

    def _open_run(self, number: int) -> int:
        start = number
        number += 1
        if _name(self._tokens[number]) == "rPr":
            number = _behind(self._tokens, number)
        if self._is_note(number):
            return self._add_mark(start, number + 2)
        if start in self._fields and not self._is_inside:
            kind, end = self._fields[start]
            return self._add_mark(start, end + 1, kind)
        self._heads.append(self._raw(start, number))
        self._depths.append(0)
        first = number
        while _name(self._tokens[first]) in _DROPPED:
            first += 1
        if self._is_text(first):
            self._begin_line(self._tokens[start].start)
            self._is_inside = True
            return first
        last = self._tokens[first]
        if first > number and self._start is not None and (last.kind, _name(last)) == _END_RUN:
            self._heads.pop()
            self._depths.pop()
            return first + 1
        self._end_line(self._tokens[start].start)
        self.assembly.keep(self._heads[-1])
        return number

    def _is_note(self, number: int) -> bool:
        """Whether a run holds only the mark of a note, from a token on."""
        token = self._tokens[number]
        if self._is_inside or token.kind != "empty" or _name(token) not in _NOTES:
            return False
        following = self._tokens[number + 1]
        return (following.kind, _name(following)) == _END_RUN

    def _is_text(self, number: int) -> bool:
        """Whether an element that holds only text, or is a hyphen, begins at a token."""
        token = self._tokens[number]
        if token.kind == "empty" and _name(token) == _HYPHEN:
            return True
        if (token.kind, _name(token)) != ("open", "t"):
            return False
        inside = self._tokens[number + 1 : _behind(self._tokens, number) - 1]
        return all(token.kind == "text" for token in inside)

    def _add_text(self, number: int) -> int:
        token, after = self._tokens[number], _behind(self._tokens, number)
        self._on_read(0, len(self._heads[-1]) // REPEATED_AN_ELEMENT)
        if self._start is None:
            self._begin_line(token.start)
            self._before = _end_tag(self._heads[-1])
        self._is_inside = True
        opening, texts = token.raw, self._tokens[number + 1 : after - 1]
        if _name(token) == _HYPHEN:
            opening = opened(token).replace(_HYPHEN, "t", 1)
            texts = [Token("text", "\u2011", token.start, text="\u2011")]
        if token.name.startswith("w:"):
            opening = f'{_SPACE.sub("", opening.rstrip())[:-1]} xml:space="preserve">'
        closing = _end_tag(opening) + _end_tag(self._heads[-1])
        opening = self._heads[-1] + opening
        if self._latest is None or self._latest.opening != opening:
            self._latest = Run.of(opening, [], closing)
        self._line.append(replace(self._latest, texts=texts))
        return after

    def _begin_line(self, start: int) -> None:
        if self._start is None:
            self._start = start

    def _end_line(self, end: int) -> None:
        if self._start is not None:
            whole = self._text[self._start : end]
            raw = whole.rstrip(_WHITE_SPACE)
            line = _merged(self._line)
            if any(isinstance(item, Run) for item in line):
                after = self._heads[-1] if self._is_inside else ""
                self.assembly.add(line_of(line, raw, self._before, after, on_read=self._on_read))
            else:
                self.assembly.keep(raw)
            self.assembly.keep(whole[len(raw) :])
        self._line, self._start, self._before, self._is_inside = [], None, "", False


def _name(token: Token) -> str:
    """The name of an element of word processing or of drawings without its prefix."""
    return token.name.removeprefix("w:").removeprefix("a:")


def _end_tag(opening: str) -> str:
    """The tag that ends an element."""
    name = _WRITTEN_NAME.match(opening)
    return f"</{name[1]}>" if name else ""


def _behind(tokens: list[Token], number: int) -> int:
    """The number of the token after the element that begins at a token."""
    depth = 0
    while True:
        depth += {"open": 1, "close": -1}.get(tokens[number].kind, 0)
        number += 1
        if depth <= 0:
            return number


def line_of(
    items: Sequence[Run | Token],
    raw: str,
    before: str = "",
    after: str = "",
    *,
    on_read: OnRead = ignore,
) -> Original:
    """Runs, one of them at least, and tokens between them as a line.

    Args:
        items: the runs and tokens.
        raw: the original XML, which may begin and end inside a run.
        before: as in `_Line`.
        after: as in `_Line`.
        on_read: called for what is repeated; may stop this.
    """
    lengths: Counter[str] = Counter()
    for item in items:
        if isinstance(item, Run):
            lengths[item.format] += 1 + sum(len(token.text) for token in item.texts)
    plain_format = lengths.most_common(1)[0][0]
    plain = next(i for i in items if isinstance(i, Run) and i.format == plain_format)
    on_read(0, len(items) * len(plain.opening) // REPEATED_AN_ELEMENT)
    tokens: list[Token] = []
    for item in items:
        if isinstance(item, Run):
            tokens += _run_tokens(item, plain_format)
        else:
            tokens.append(Token(item.kind, f"{_END}{item.raw}{_BEGIN}", item.start, item.name))
    segments, parts = flow(
        structure(raw, tokens, _RULES), is_html=False, split=sentences, escape=_escape
    )
    markup = Markup(segments, parts)
    return Original(_Line(markup, plain.opening, plain.closing, before, after), raw)


def _merged(line: list[Run | Token]) -> list[Run | Token]:
    """Merge neighboring runs with the same look; editors split them arbitrarily."""
    merged: list[Run | Token] = []
    latest: Run | None = None
    for item in line:
        if not isinstance(item, Run):
            latest = None
            merged.append(item)
        elif latest is None or item.format != latest.format:
            latest = replace(item, texts=[*item.texts])
            merged.append(latest)
        else:
            latest.texts.extend(item.texts)
    return merged


def _run_tokens(run: Run, plain_format: str) -> list[Token]:
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
