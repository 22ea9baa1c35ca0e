"""Catalogs of gettext (.po): missing translations are filled in, everything else is kept.

A message with a plural gets as many forms as the header declares; only the form for 1 is translated
from the singular (`plural_forms.py`).
New translations are not marked as fuzzy; users who want them reviewed can add the mark.

Source: the GNU gettext manual, section 3 (the format of PO files).
"""

import re
from functools import partial

from heed.data.po import ESCAPED, Entry, entries, require_language
from heed.documents.assembly import Assembly
from heed.documents.fields import Format, format_of, has_same_fields
from heed.documents.message import Message
from heed.documents.plural_forms import PluralForms, read_plural_forms
from heed.documents.segment import OnRead, ignore

_CHARSET = re.compile(r'^("Content-Type:[^"\n]*\bcharset=)(?!utf-?8\b)[\w.:-]+', re.M | re.I)
_PLURAL_FORMS = re.compile(r'"Plural-Forms:[^"\n]*"', re.I)
_WRITTEN = {"\\": "\\\\", '"': '\\"'} | {sign: f"\\{letter}" for letter, sign in ESCAPED.items()}


def split_po(text: str, target_lang: str = "", on_read: OnRead = ignore) -> Assembly:
    """The untranslated messages of a catalog; its header declares UTF-8 in the result.

    Args:
        text: the catalog.
        target_lang: the language of the translations; "" = unknown.
        on_read: called for each translation; may stop this.

    Raises:
        DataError: a line is malformed; names it. Or the header names another language.
    """
    text = _CHARSET.sub(r"\1UTF-8", text, count=1)
    found = list(entries(text))
    header = next((one for one in found if one.is_header() and "msgstr" in one.texts), None)
    described = header.texts["msgstr"] if header else ""
    require_language(described, target_lang)
    forms = read_plural_forms(described, target_lang)
    has_plurals = any("msgid_plural" in one.texts for one in found if one.is_to_fill())
    assembly = Assembly(text, on_read=on_read)
    for entry in found:
        if entry is header and forms.missing and has_plurals:
            start, end = entry.places["msgstr"]
            assembly.keep_until(start)
            assembly.keep(_with_plural_forms(text, entry, forms.missing))
            assembly.place = end
        elif entry.is_to_fill():
            _fill(assembly, entry, forms)
    assembly.keep_until(len(text))
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


def _fill(assembly: Assembly, entry: Entry, forms: PluralForms) -> None:
    """Add the translations of an entry."""
    text = assembly.source
    format = format_of(entry.flags)
    places = list(entry.translations().items())
    has_plural = "msgid_plural" in entry.texts
    count = (forms.count or len(places)) if has_plural else 1
    for number, (name, (start, end)) in enumerate(places):
        if number < count:
            source = _source_of(entry, number, count, forms, format)
            assembly.replace(start, end, _message(source, format, name, _line_end(text, end)))
        assembly.place = end
    line_end = _line_end(text, assembly.place)
    first = places[0][1][0] if places else 0
    line_start = text.rfind("\n", 0, first) + 1
    indent = "" if text[line_start:first].strip() else text[line_start:first]
    for number in range(len(places), count if places else 0):
        assembly.keep(line_end + indent)
        source = _source_of(entry, number, count, forms, format)
        assembly.add(_message(source, format, f"msgstr[{number}]", line_end))


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


def _message(text: str, format: Format, keyword: str, line_end: str) -> Message:
    return Message.of(text, format, partial(_lines, keyword=keyword, line_end=line_end))


def _lines(text: str, *, keyword: str, line_end: str) -> str:
    """A translation as lines of the catalog."""
    lines = text.splitlines(keepends=True) if "\n" in text[:-1] else [text]
    quoted = [_quoted(line) for line in lines]
    if len(quoted) > 1:
        quoted = ['""', *quoted]
    return f"{keyword} {line_end.join(quoted)}"


def _quoted(text: str) -> str:
    return '"' + "".join(_WRITTEN.get(character, character) for character in text) + '"'
