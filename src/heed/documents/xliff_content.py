"""The content of an XLIFF source: text with inline elements, of which codes are kept."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import unescape

from heed.data.xliff import CODES, FIELDS
from heed.documents.attributes import attribute
from heed.documents.flow import flow
from heed.documents.markup import Markup, escape_xml
from heed.documents.structure import Rules, structure
from heed.documents.tags import Token, local_name, read_tokens
from heed.errors import DataError
from heed.text.protection.fields import is_field

_CDATA = re.compile(r"<!\[CDATA\[(.+)]]>", re.S)
_FIRST, _SECOND = frozenset(("bpt", "bx", "sc")), frozenset(("ept", "ex", "ec"))
"""Codes that begin and end what a pair of tags encloses."""

_RULES = Rules(is_xml=True)


def content_markup(
    content: str,
    data: Mapping[str, str],
    *,
    split: Callable[[str], list[str]],
    has_segments: bool,
) -> Markup:
    """The content of a source, ready to be translated.

    Args:
        content: what stands between its tags.
        data: the text of codes by name, in version 2.
        split: cuts a text into sentences; joining them restores the text.
        has_segments: whether each `<mrk>` is translated separately.
    """
    rules = replace(_RULES, splitting=frozenset(("mrk",))) if has_segments else _RULES
    tokens = _with_codes(content, tokens_of(content), data)
    try:
        found = structure(content, _with_pairs(tokens), rules)
    except DataError:  # codes that cross others are no pairs
        found = structure(content, tokens, rules)
    segments, parts = flow(found, is_html=False, split=split, escape=escape_xml)
    return Markup(segments, parts)


def tokens_of(text: str) -> list[Token]:
    """The tokens of a file or a part of it. CDATA is text: here it holds sentences."""
    return [
        replace(token, kind="text", text=cdata[1])
        if (cdata := _CDATA.fullmatch(token.raw))
        else token
        for token in read_tokens(text, is_xml=True)
    ]


def _with_codes(content: str, tokens: Sequence[Token], data: Mapping[str, str]) -> list[Token]:
    """The tokens, with each code, or protected text, and its content as one."""
    merged: list[Token] = []
    number = 0
    while number < len(tokens):
        token, start = tokens[number], number
        is_protected = attribute(token.raw, "mtype") == "protected" and token.kind == "open"
        if is_protected or local_name(token) in CODES:
            if token.kind == "open":
                number = _end_of(tokens, number)
            last = tokens[number]
            raw = content[token.start : last.start + len(last.raw)]
            inside = "".join(each.text for each in tokens[start + 1 : number])
            read = inside if is_protected else _field(token.raw, inside, data)
            token = Token("kept", raw, token.start, token.name, read)
        merged.append(token)
        number += 1
    return merged


def _field(raw: str, inside: str, data: Mapping[str, str]) -> str:
    """The field that a code stands for, which the model then reads; "" if there is none."""
    texts = [inside, *(unescape(attribute(raw, name)) for name in FIELDS)]
    texts.append(data.get(attribute(raw, "dataref"), ""))
    return next(filter(is_field, texts), "")


def _end_of(tokens: Sequence[Token], number: int) -> int:
    """The end tag of an element."""
    name, depth = tokens[number].name, 0
    for place in range(number, len(tokens)):
        if tokens[place].name == name:
            depth += {"open": 1, "close": -1}.get(tokens[place].kind, 0)
        if not depth:
            return place
    return len(tokens) - 1


def _with_pairs(tokens: Sequence[Token]) -> list[Token]:
    """The tokens, with codes that belong together as tags of an element."""
    firsts, seconds = {}, {}
    for number, token in enumerate(tokens):
        if token.kind == "kept" and local_name(token) in _FIRST:
            firsts[attribute(token.raw, "rid") or attribute(token.raw, "id")] = number
        elif token.kind == "kept" and local_name(token) in _SECOND:
            names = ("startref", "rid", "id")
            seconds[next(filter(None, (attribute(token.raw, each) for each in names)), "")] = number
    paired = [*tokens]
    for key, first in firsts.items():
        second = seconds.get(key, -1)
        if key and second > first:
            paired[first] = replace(tokens[first], kind="open", name=f"code {key}")
            paired[second] = replace(tokens[second], kind="close", name=f"code {key}")
    return paired
