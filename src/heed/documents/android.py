r"""Texts of Android's resources: strings, arrays and plurals, with their own escapes.

Apostrophes, quotes and line breaks are written `\'`, `\"` and `\n`; a model reads the characters.
Kept are other resources such as colors, elements with `translatable="false"`, references such as
`@string/name`, fields, and `<xliff:g>`, which encloses what must not be translated.

Source: https://developer.android.com/guide/topics/resources/string-resource
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from heed.documents.attributes import attribute
from heed.documents.fields import FIELD
from heed.documents.flow import flow
from heed.documents.markup import Markup, escape_xml
from heed.documents.namespaces import with_usual_prefixes
from heed.documents.passages import parts_of
from heed.documents.structure import Rules, matched, structure
from heed.documents.tags import Token, parts_of_text, read_tokens

_ROOT = re.compile(
    r"(?:\ufeff|\s++|<\?(?:[^?]|\?(?!>))*+\?>|<!--(?:[^-]|-(?!->))*+-->)*+<resources[\s/>]"
)
# A line break of the file is a blank. Quotes around a text keep its blanks.
_SPECIAL = re.compile(
    r"\\u(?P<code>[0-9a-fA-F]{4})|\\(?P<letter>.)|(?P<quote>\")|(?P<blank>\s{2,}+|\n)"
    rf"|(?P<field>{FIELD.pattern})",
    re.S,
)
_REFERENCE = re.compile(r"\s*+[@?][+\w.:]*+/[\w.]++\s*+")
_LETTERS = {"n": "\n", "t": "\t"}
_WRITTEN = str.maketrans({"\\": "\\\\", "'": "\\'", '"': '\\"', "\n": "\\n", "\t": "\\t"})
_TEXTS = ("string", "string-array", "plurals")
_RULES = Rules(
    is_xml=True,
    ignored=frozenset(("xliff:g",)),
    splitting=frozenset(("resources", "string", "string-array", "plurals", "item")),
)


def is_resources(text: str) -> bool:
    """Whether an XML file has Android's resources."""
    return _ROOT.match(text) is not None


def split_resources(text: str) -> Markup:
    """The texts of resources.

    Raises:
        DataError: the XML is malformed.
    """
    tokens = with_usual_prefixes(text, read_tokens(text, is_xml=True))
    tokens = [part for token in _without_kept(text, tokens) for part in _unescaped(token)]
    segments, parts = flow(
        structure(text, tokens, _RULES),
        is_html=False,
        split=lambda text: parts_of(text, "1"),
        escape=_escaped,
    )
    return Markup(segments, parts)


def _without_kept(text: str, tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens, with each element that must not be translated as one."""
    partner = matched(text, [*tokens], is_xml=True)
    depth = behind = 0
    for number, token in enumerate(tokens):
        if number < behind:
            continue
        is_other = depth == 1 and token.name not in _TEXTS
        if token.kind == "open" and (is_other or attribute(token.raw, "translatable") == "false"):
            last = tokens[partner[number]]
            behind = partner[number] + 1
            raw = text[token.start : last.start + len(last.raw)]
            yield Token("kept", raw, token.start, token.name)
        else:
            depth += (token.kind == "open") - (token.kind == "close")
            yield token


def _unescaped(token: Token) -> Iterator[Token]:
    """The parts of a text, each as written and as read."""
    if token.kind != "text" or token.raw != token.text:
        yield token
        return
    if _REFERENCE.fullmatch(token.raw):
        yield replace(token, kind="other", text="")
        return
    for part, match in parts_of_text(token, _SPECIAL):
        yield _special(match, part) if match else part


def _special(match: re.Match[str], token: Token) -> Token:
    if match["quote"]:
        return replace(token, kind="other", text="")
    if match["field"]:
        return replace(token, kind="kept", name="field", text="")
    if blank := match["blank"]:
        return replace(token, text=" ") if "\n" in blank else token
    if code := match["code"]:
        character = chr(int(code, 16))
        return replace(token, text=character if character.isprintable() else " ")
    return replace(token, text=_LETTERS.get(match["letter"], match["letter"]))


def _escaped(text: str) -> str:
    written = escape_xml(text.translate(_WRITTEN))
    return f"\\{written}" if written[:1] in ("@", "?") else written
