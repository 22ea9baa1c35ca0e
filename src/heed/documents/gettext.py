"""Catalogs of gettext (.po): missing translations are filled in, everything else is kept.

Fields such as `%s`, `%1$d` and `{name}` are not given to the model (`fields.py`); alignment decides
their place. A message with a plural gets as many forms as the header declares; only the form for 1
is translated from the singular (`plural_forms.py`).
New translations are not marked as fuzzy; users who want them reviewed can add the mark.

Source: the GNU gettext manual, section 3 (the format of PO files).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from heed.data.po import ESCAPED, Entry, entries, require_language
from heed.documents.assembly import Assembly
from heed.documents.fields import MARK, Format, Masked, format_of, has_same_fields, mask
from heed.documents.flow import flow
from heed.documents.markup import Markup
from heed.documents.passages import parts_of
from heed.documents.plural_forms import PluralForms, read_plural_forms
from heed.documents.segment import Segment
from heed.documents.structure import Rules, structure
from heed.documents.tags import Token, read_tokens
from heed.translate.result import Translation

_CHARSET = re.compile(r'^("Content-Type:[^"\n]*\bcharset=)(?!utf-?8\b)[\w.:-]+', re.M | re.I)
_PLURAL_FORMS = re.compile(r'"Plural-Forms:[^"\n]*"', re.I)
_WRITTEN = {"\\": "\\\\", '"': '\\"'} | {sign: f"\\{letter}" for letter, sign in ESCAPED.items()}
_RULES = Rules(
    is_xml=False,
    ignored=frozenset(),
    splitting=frozenset(),
    joining=frozenset(),
    has_outline=False,
)


@dataclass(frozen=True, slots=True)
class _Message:
    """The translation of a message as lines of the catalog.

    Attributes:
        markup: its text, with marks for its fields.
        masked: the fields.
        keyword: the keyword before the translation.
        line_end: the line break of the catalog.
    """

    markup: Markup
    masked: Masked
    keyword: str
    line_end: str

    @property
    def segments(self) -> list[Segment]:
        return self.markup.segments

    def join(self, translations: Sequence[Translation]) -> str:
        text = self.masked.restored(self.markup.join(translations))
        lines = text.splitlines(keepends=True) if "\n" in text[:-1] else [text]
        quoted = [_quoted(line) for line in lines]
        if len(quoted) > 1:
            quoted = ['""', *quoted]
        return f"{self.keyword} {self.line_end.join(quoted)}"


def split_po(text: str, target_lang: str = "") -> Assembly:
    """The untranslated messages of a catalog; its header declares UTF-8 in the result.

    Args:
        text: the catalog.
        target_lang: the language of the translations; "" = unknown.

    Raises:
        DataError: a line is malformed; names it. Or the header names another language.
    """
    text = _CHARSET.sub(r"\1UTF-8", text, count=1)
    found = list(entries(text))
    header = next((one for one in found if one.is_header() and "msgstr" in one.texts), None)
    described = header.texts["msgstr"] if header else ""
    require_language(described, target_lang)
    forms = read_plural_forms(described)
    has_plurals = any("msgid_plural" in one.texts for one in found if one.is_to_fill())
    assembly = Assembly()
    written = 0
    for entry in found:
        if entry is header and forms.missing and has_plurals:
            start, end = entry.places["msgstr"]
            assembly.keep(text[written:start])
            assembly.keep(_with_plural_forms(text, entry, forms.missing))
            written = end
        elif entry.is_to_fill():
            written = _fill(assembly, text, written, entry, forms)
    assembly.keep(text[written:])
    return assembly


def _with_plural_forms(text: str, header: Entry, declaration: str) -> str:
    """The header's translation with a declaration of the plural forms."""
    start, end = header.places["msgstr"]
    line = f'"Plural-Forms: {declaration}\\n"'
    if _PLURAL_FORMS.search(text, start, end):
        return _PLURAL_FORMS.sub(lambda _: line, text[start:end])
    is_whole = header.texts["msgstr"].endswith("\n")
    return text[start:end] + (_line_end(text, end) + line if is_whole else "")


def _line_end(text: str, place: int) -> str:
    return "\r\n" if text.startswith("\r\n", place) else "\n"


def _fill(assembly: Assembly, text: str, written: int, entry: Entry, forms: PluralForms) -> int:
    """Add the translations of an entry, and return the end of the text added so far."""
    format = format_of(entry.flags)
    places = list(entry.translations().items())
    has_plural = "msgid_plural" in entry.texts
    count = (forms.count or len(places)) if has_plural else 1
    for number, (name, (start, end)) in enumerate(places):
        if number < count:
            assembly.keep(text[written:start])
            source = _source_of(entry, number, count, forms, format)
            assembly.add(_message(source, format, name, _line_end(text, end)))
        written = end
    line_end = _line_end(text, written)
    first = places[0][1][0] if places else 0
    line_start = text.rfind("\n", 0, first) + 1
    indent = "" if text[line_start:first].strip() else text[line_start:first]
    for number in range(len(places), count if places else 0):
        assembly.keep(line_end + indent)
        source = _source_of(entry, number, count, forms, format)
        assembly.add(_message(source, format, f"msgstr[{number}]", line_end))
    return written


def _source_of(entry: Entry, number: int, count: int, forms: PluralForms, format: Format) -> str:
    """The text from which a form is translated."""
    singular = entry.texts["msgid"]
    plural = entry.texts.get("msgid_plural", singular)
    # A language with one form uses it for any number.
    if count == 1 or number != max(0, forms.of_one):
        return plural
    # A form for many numbers must show the number.
    is_general = forms.of_one < 0 or forms.has_few or has_same_fields(singular, plural, format)
    return singular if is_general else plural


def _message(text: str, format: Format, keyword: str, line_end: str) -> _Message:
    masked = mask(text, format)
    tokens: list[Token] = []
    for token in read_tokens(masked.text, is_xml=False):
        tokens += _fields(token) if token.kind == "text" else [token]
    segments, parts = flow(
        structure(masked.text, tokens, _RULES),
        is_html=False,
        split=lambda text: parts_of(text, "1"),
        escape=str,
    )
    return _Message(Markup(segments, parts), masked, keyword, line_end)


def _fields(token: Token) -> list[Token]:
    """Split a text, as written, into its fields and the rest."""
    tokens = []
    start = 0
    for match in MARK.finditer(token.raw):
        tokens.append(_text(token, start, match.start()))
        tokens.append(Token("kept", match[0], token.start + match.start(), "field"))
        start = match.end()
    return [part for part in (*tokens, _text(token, start, len(token.raw))) if part.raw]


def _text(token: Token, start: int, end: int) -> Token:
    raw = token.raw[start:end]
    return Token("text", raw, token.start + start, text=raw)


def _quoted(text: str) -> str:
    return '"' + "".join(_WRITTEN.get(character, character) for character in text) + '"'
