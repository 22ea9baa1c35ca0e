"""Attributes of HTML tags: some are translated, others forbid the translation of an element.

LibreTranslate leaves all attributes unchanged; heed translates `READ_ATTRIBUTES`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from heed.documents.passages import Passage, split_passage
from heed.documents.segment import Segment, is_unchanged
from heed.documents.tags import decode_entities
from heed.translate.result import Translation

READ_ATTRIBUTES = frozenset(
    (
        *("alt", "title", "placeholder", "label"),
        *("aria-label", "aria-description", "aria-placeholder", "aria-roledescription"),
        "aria-valuetext",
    )
)
"""Attributes whose value a browser shows or speaks."""

_ATTRIBUTE = re.compile(
    r"(?P<name>[^\s=/\"'>]++)(?:(?P<equals>\s*+=\s*+)(?P<value>\"[^\"]*+\"|'[^']*+'|[^\s\"'>]++))?"
)
# A browser writes the value of such an input on it.
_BUTTONS = ("submit", "button", "reset")


@dataclass(frozen=True, slots=True)
class Attribute:
    """The value of an attribute, to translate.

    Attributes:
        raw: the original value, including quotes.
        passage: its text, split.
        first: the number of its first segment.
    """

    raw: str
    passage: Passage
    first: int

    def render(self, translations: Sequence[Translation]) -> str:
        """The value, quoted and escaped."""
        count = len(self.passage.segments)
        own = translations[self.first : self.first + count]
        if is_unchanged(self.passage.segments, own):
            return self.raw
        text = self.passage.join(own).replace("&", "&amp;").replace("<", "&lt;")
        text = text.replace(">", "&gt;")
        if self.raw.startswith("'"):
            return "'" + text.replace("'", "&#39;") + "'"
        return '"' + text.replace('"', "&quot;") + '"'


class Placeholder(Protocol):
    """A part of a text that is filled in when there are translations."""

    def render(self, translations: Sequence[Translation]) -> str:
        """The part, given the translations of all segments."""


Template = list[str | Placeholder]
"""Text to write, with placeholders for attributes and for the texts of notes."""


def render(template: Template, translations: Sequence[Translation]) -> str:
    """A template with its translations filled in."""
    return "".join(
        part if isinstance(part, str) else part.render(translations) for part in template
    )


def tag_template(raw: str, segments: list[Segment]) -> Template:
    """A tag whose readable attributes are placeholders; their segments are appended.

    Args:
        raw: a start tag or an empty tag.
        segments: all segments of the document so far.
    """
    template: Template = []
    start = 0
    is_input = raw[: len("<input")].lower() == "<input"
    is_button = is_input and attribute(raw, "type").lower() in _BUTTONS
    for name, value, span in _attributes(raw):
        is_read = name in READ_ATTRIBUTES or (is_button and name == "value")
        if not is_read or not value:
            continue
        passage = split_passage(decode_entities(_unquoted(value)), "nonewlines")
        if passage.segments:
            template += (raw[start : span[0]], Attribute(value, passage, len(segments)))
            segments += passage.segments
            start = span[1]
    return [*template, raw[start:]]


def attribute(raw: str, name: str) -> str:
    """The value of an attribute of a start tag, as written, without quotes; "" if it has none.

    Args:
        raw: the tag.
        name: in lower case.
    """
    found = (_unquoted(value) for each, value, _ in _attributes(raw) if each == name)
    return next(found, "")


def forbids_translation(raw: str) -> bool:
    """Whether a start tag forbids the translation of its element.

    Source: HTML's `translate` attribute, also in ITS 2.0; Google's class `notranslate`.
    """
    for name, value, _ in _attributes(raw):
        plain = _unquoted(value)
        if name in ("translate", "its:translate") and plain.lower() == "no":
            return True
        if name == "class" and "notranslate" in plain.split():
            return True
    return False


def _unquoted(value: str) -> str:
    return value[1:-1] if value[:1] in ("'", '"') else value


def _attributes(raw: str) -> list[tuple[str, str, tuple[int, int]]]:
    """Name in lower case, value with its quotes, and start and end of the value."""
    name = re.match(r"<[^\s/>]*+", raw)
    start = name.end() if name else 0
    return [
        (match["name"].lower(), match["value"] or "", match.span("value"))
        for match in _ATTRIBUTE.finditer(raw, start)
    ]
