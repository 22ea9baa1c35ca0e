"""HTML and XML as a flat list of tokens; joining their raw texts restores the input.

HTML is read as browsers do: nothing is an error. Malformed XML is refused. Each pass takes linear
time, even for hostile input, and nothing recurses.

Source: WHATWG HTML, section 13.2.5 (tokenization), simplified; XML 1.0, sections 2 and 3.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from html.entities import html5
from itertools import chain
from typing import Literal

from heed.errors import DataError

Kind = Literal["text", "open", "close", "empty", "other", "declaration", "kept"]

RAW_ELEMENTS = frozenset(("script", "style", "textarea", "xmp", "iframe", "noembed", "noframes"))
"""HTML elements whose content is not markup, and is not translated."""

VOID_ELEMENTS = frozenset(
    "area base br col embed hr img input link meta param source track wbr".split()  # noqa: SIM905
)
"""HTML elements that have no end tag."""

# All quantifiers are possessive. A bare `<` ends the match, so the same character is scanned at
# most twice: once inside each kind of quotes.
_HTML_OPEN = re.compile(
    r"<(?P<name>[A-Za-z][^\s/><]*+)(?:[^<>\"']++|\"[^\"]*+\"|'[^']*+'|[\"'])*+>"
)
_HTML_CLOSE = re.compile(r"</(?P<name>[A-Za-z][^\s/><]*+)[^<>]*+>")
_XML_NAME = r"[^\s<>/=&\"'!?][^\s<>/=&\"']*+"
_XML_OPEN = re.compile(
    rf"<(?P<name>{_XML_NAME})"
    rf"(?:\s++{_XML_NAME}\s*+=\s*+(?:\"[^\"<]*+\"|'[^'<]*+'))*+\s*+(?P<empty>/?)>"
)
_XML_ATTRIBUTE = re.compile(rf"\s({_XML_NAME})\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+')")
NO_XML_CHARACTER = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML does not allow: XML 1.0, section 2.2."""
_XML_CLOSE = re.compile(rf"</(?P<name>{_XML_NAME})\s*+>")
# The page ends inside a tag. A text such as "if a <b then" does not match.
_CUT_OFF = re.compile(r"</?[A-Za-z](?:\S*+\s*+\Z|[^<=]*=)")
# The same entities as in Python's `html` module, which decodes them.
_HTML_ENTITY = re.compile(r"&(?:#[0-9]++;?|#[xX][0-9a-fA-F]++;?|[0-9A-Za-z]{1,32};?)")
_XML_ENTITY = re.compile(r"&(?:#[0-9]++|#x[0-9a-fA-F]++|[^\s<>/=&\"'!?;#]++);")
# No code point has more digits. Python refuses to parse a very long number.
_MAX_DIGITS = 8
_LAST_CHARACTER = 0x10FFFF


@dataclass(frozen=True, slots=True)
class Token:
    """A tag, a text, or something else between `<` and `>`.

    Attributes:
        kind: `text`; `open`, `close` and `empty` tags; `other`, such as a comment; `declaration`,
            which separates texts; `kept`, an element with all its content.
        raw: the original text.
        start: its position in the input.
        name: name of a tag; in lower case for HTML.
        text: the text, with entities decoded; of a kept element, its words.
        opening: the start tag of a kept element, if its attributes are translated nevertheless.
        inside: the tokens of a kept element whose texts are translated by themselves, such as a
            note, its own tags included.
    """

    kind: Kind
    raw: str
    start: int
    name: str = ""
    text: str = ""
    opening: str = ""
    inside: tuple["Token", ...] = ()


def read_tokens(source: str, *, is_xml: bool) -> list[Token]:
    """The tokens of a page or a fragment.

    Raises:
        DataError: the XML is malformed; unmatched tags are not checked here.
    """
    return list(_xml_tokens(source) if is_xml else _html_tokens(source))


def position(source: str, start: int) -> str:
    """`line 3, column 5`, both counted from 1."""
    line_start = source.rfind("\n", 0, start) + 1
    return f"line {source.count(chr(10), 0, start) + 1}, column {start - line_start + 1}"


def parts_of_text(
    token: Token, pattern: re.Pattern[str]
) -> Iterator[tuple[Token, re.Match[str] | None]]:
    """The parts of a text, as written: each match, and what stands between matches."""
    start = 0
    for match in chain(pattern.finditer(token.raw), [None]):
        end = match.start() if match else len(token.raw)
        if start < end:
            yield _part(token, start, end), None
        if match:
            yield _part(token, end, match.end()), match
            start = match.end()


def _part(token: Token, start: int, end: int) -> Token:
    raw = token.raw[start:end]
    return Token("text", raw, token.start + start, text=raw)


def require_root(source: str, tokens: Sequence[Token], name: str) -> Token:
    """The first tag of an XML file.

    Raises:
        DataError: it has another name, also without its prefix.
    """
    root = root_of(tokens)
    if root is None or local_name(root) != name:
        where = position(source, root.start if root else 0)
        raise DataError(f"The file must begin with <{name}>, but does not, at {where}.")
    return root


def root_of(tokens: Sequence[Token]) -> Token | None:
    """The first tag, if there is one."""
    return next((token for token in tokens if token.name), None)


def local_name(token: Token) -> str:
    """The name of a tag without its prefix."""
    return token.name.rpartition(":")[2]


def opened(token: Token, raw: str = "") -> str:
    """A tag as the start tag of an element with content.

    Args:
        token: the tag.
        raw: what is written instead of it; "" = itself.
    """
    raw = raw or token.raw
    return f"{raw.removesuffix('/>').rstrip()}>" if token.kind == "empty" else raw


def decode_entities(text: str) -> str:
    """Decode the entities of a text or of an attribute's value in HTML."""
    return _HTML_ENTITY.sub(lambda match: _html_character(match[0]), text)


def _html_tokens(source: str) -> Iterator[Token]:
    place, text_start = 0, 0
    while (place := source.find("<", place)) >= 0:
        token = _html_tag(source, place)
        if token is None:
            place += 1
            continue
        yield from _html_text(source, text_start, place)
        yield token
        place = text_start = place + len(token.raw)
        if token.kind == "open" and token.name == "title":
            closing = re.compile(r"</title(?=[\s/>])", re.I).search(source, place)
            place = closing.start() if closing else len(source)
            yield from _html_text(source, text_start, place)
            text_start = place
    yield from _html_text(source, text_start, len(source))


def _html_tag(source: str, start: int) -> Token | None:
    """The token that begins with the `<` at `start`; None if that is plain text."""
    following = source[start + 1 : start + 2]
    if following in ("!", "?"):
        return _html_declaration(source, start)
    if match := _HTML_CLOSE.match(source, start):
        return Token("close", match[0], start, match["name"].lower())
    if match := _HTML_OPEN.match(source, start):
        name = match["name"].lower()
        # XHTML closes an empty element this way; browsers do not in HTML mode.
        if name in RAW_ELEMENTS and not match[0].endswith("/>"):
            return _raw_element(source, match, name)
        is_empty = name in VOID_ELEMENTS or match[0].endswith("/>")
        return Token("empty" if is_empty else "open", match[0], start, name)
    if source.find("<", start + 1) < 0 and _CUT_OFF.match(source, start):
        return Token("other", source[start:], start)
    return None


def _html_declaration(source: str, start: int) -> Token:
    if source.startswith("<!--", start):
        # `<!-->` is a whole comment.
        end = source.find("-->", start + 2)
        return _until(source, start, end, 3, "other")
    if source.startswith("<![CDATA[", start):
        return _until(source, start, source.find("]]>", start), 3, "other")
    is_doctype = source[start : start + 9].lower() == "<!doctype"
    kind: Kind = "declaration" if is_doctype else "other"
    return _until(source, start, source.find(">", start), 1, kind)


def _until(source: str, start: int, end: int, length: int, kind: Kind) -> Token:
    """A token up to `end` plus `length` characters; to the end of the input if `end` is missing."""
    return Token(kind, source[start:] if end < 0 else source[start : end + length], start)


def _raw_element(source: str, opening: re.Match[str], name: str) -> Token:
    closing = re.compile(rf"</{name}(?=[\s/>])[^>]*+>?", re.I).search(source, opening.end())
    end = closing.end() if closing else len(source)
    start = opening.start()
    return Token("kept", source[start:end], start, name, opening=opening[0])


def _html_text(source: str, start: int, end: int) -> Iterator[Token]:
    for match in _HTML_ENTITY.finditer(source, start, end):
        decoded = _html_character(match[0])
        if decoded != match[0]:
            if start < match.start():
                raw = source[start : match.start()]
                yield Token("text", raw, start, text=raw)
            yield Token("text", match[0], match.start(), text=decoded)
            start = match.end()
    if start < end:
        yield Token("text", source[start:end], start, text=source[start:end])


def _html_character(entity: str) -> str:
    if entity.startswith("&#") and len(entity.lstrip("&#xX0").rstrip(";")) > _MAX_DIGITS:
        return "\N{REPLACEMENT CHARACTER}"
    if character := unescape(entity):
        return character
    # Python drops control characters; browsers keep them.
    digits = entity.strip("&#;")
    return chr(int(digits[1:], 16) if digits[0] in "xX" else int(digits))


def _xml_tokens(source: str) -> Iterator[Token]:
    if match := NO_XML_CHARACTER.search(source):
        raise _malformed(source, match.start(), f"XML cannot have U+{ord(match[0]):04X}")
    place = 0
    while place < len(source):
        start = source.find("<", place)
        yield from _xml_text(source, place, len(source) if start < 0 else start)
        if start < 0:
            return
        token = _xml_tag(source, start)
        yield token
        place = start + len(token.raw)


def _xml_tag(source: str, start: int) -> Token:
    for opening, closing in (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")):
        if source.startswith(opening, start):
            end = source.find(closing, start + len(opening))
            if end < 0:
                raise _malformed(source, start, f"{opening} is never closed by {closing}")
            is_first = source.startswith("<?xml", start)
            kind: Kind = "declaration" if is_first else "other"
            return Token(kind, source[start : end + len(closing)], start)
    if source.startswith("<!DOCTYPE", start):
        return _doctype(source, start)
    if match := _XML_CLOSE.match(source, start):
        return Token("close", match[0], start, match["name"])
    if match := _XML_OPEN.match(source, start):
        counts = Counter(_XML_ATTRIBUTE.findall(match[0]))
        if repeated := next((name for name, count in counts.items() if count > 1), None):
            raise _malformed(source, start, f"the tag has the attribute {repeated} twice")
        return Token("empty" if match["empty"] else "open", match[0], start, match["name"])
    shown = source[start : start + 20].split("\n")[0]
    raise _malformed(source, start, f"{shown!r} is not a tag; write a literal < as &lt;")


def _doctype(source: str, start: int) -> Token:
    """A document type with its declarations, which are ignored."""
    match = re.compile(
        r"<!DOCTYPE(?:[^<>\"'\[\]]++|\"[^\"]*+\"|'[^']*+')*+"
        r"(?:\[(?:<!--(?:[^-]++|-(?!->))*+-->|[^\]\"'<]++|<(?!!--)|\"[^\"]*+\"|'[^']*+')*+\]\s*+)?>"
    ).match(source, start)
    if not match:
        raise _malformed(source, start, "<!DOCTYPE is never closed by >")
    return Token("declaration", match[0], start)


def _xml_text(source: str, start: int, end: int) -> Iterator[Token]:
    if (section_end := source.find("]]>", start, end)) >= 0:
        raise _malformed(source, section_end, "this ]]> does not end a CDATA section; write ]]&gt;")
    while start < end:
        sign = source.find("&", start, end)
        plain_end = end if sign < 0 else sign
        if start < plain_end:
            raw = source[start:plain_end]
            yield Token("text", raw, start, text=raw)
        if sign < 0:
            return
        match = _XML_ENTITY.match(source, sign, end)
        if not match:
            raise _malformed(source, sign, "this & does not begin an entity; write &amp;")
        character = _xml_character(source, sign, match[0])
        # HTML's entity names mean the same here; the document's own are not resolved.
        kind: Kind = "text" if character else "other"
        yield Token(kind, match[0], sign, text=character)
        start = match.end()


def _xml_character(source: str, start: int, entity: str) -> str:
    body = entity[1:-1]
    if not body.startswith("#"):
        return html5.get(f"{body};", "")
    digits, base = (body[2:], 16) if body[1] == "x" else (body[1:], 10)
    number = int(digits, base) if len(digits.lstrip("0")) <= _MAX_DIGITS else -1
    if not 0 < number <= _LAST_CHARACTER or NO_XML_CHARACTER.match(chr(number)):
        raise _malformed(source, start, "this entity is not a valid character number")
    return chr(number)


def _malformed(source: str, start: int, why: str) -> DataError:
    return DataError(f"The XML is malformed at {position(source, start)}: {why}.")
