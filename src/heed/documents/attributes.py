"""Attributes of HTML tags: those that a person reads are translated, the others say what is kept.

LibreTranslate leaves all attributes as they are; heed translates `READ_ATTRIBUTES`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from heed.documents.passages import Passage, split_passage
from heed.documents.segment import Segment, is_unchanged
from heed.documents.tags import decode_entities
from heed.translate.result import Translation

READ_ATTRIBUTES = frozenset(("alt", "title", "placeholder", "aria-label"))
"""Those whose value a browser shows or speaks."""

_ATTRIBUTE = re.compile(
    r"(?P<name>[^\s=/\"'>]++)(?:(?P<equals>\s*+=\s*+)(?P<value>\"[^\"]*+\"|'[^']*+'|[^\s\"'>]++))?"
)


@dataclass(frozen=True, slots=True)
class Attribute:
    """The value of an attribute, to be translated.

    Attributes:
        raw: as it was written, quotes included.
        passage: what it says, split.
        first: the number of its first segment.
    """

    raw: str
    passage: Passage
    first: int

    def render(self, translations: Sequence[Translation]) -> str:
        """The value, quoted so that it cannot end early."""
        count = len(self.passage.segments)
        own = translations[self.first : self.first + count]
        if is_unchanged(self.passage.segments, own):
            return self.raw
        text = self.passage.join(own).replace("&", "&amp;").replace("<", "&lt;")
        text = text.replace(">", "&gt;")
        if self.raw.startswith("'"):
            return "'" + text.replace("'", "&#39;") + "'"
        return '"' + text.replace('"', "&quot;") + '"'


Template = list[str | Attribute]
"""Text to write, with places to fill."""


def render(template: Template, translations: Sequence[Translation]) -> str:
    """A template with its translations filled in."""
    return "".join(
        part if isinstance(part, str) else part.render(translations) for part in template
    )


def tag_template(raw: str, segments: list[Segment]) -> Template:
    """A tag whose readable attributes are to be translated; their segments are appended.

    Args:
        raw: a start tag or an empty one.
        segments: all of the document so far.
    """
    template: Template = []
    start = 0
    for name, value, span in _attributes(raw):
        if name not in READ_ATTRIBUTES or not value:
            continue
        passage = split_passage(decode_entities(_unquoted(value)), "nonewlines")
        if passage.segments:
            template += (raw[start : span[0]], Attribute(value, passage, len(segments)))
            segments += passage.segments
            start = span[1]
    return [*template, raw[start:]]


def forbids_translation(raw: str) -> bool:
    """Whether a start tag forbids the translation of its element.

    Source: HTML's `translate` attribute, which ITS 2.0 has too; Google's class `notranslate`.
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
    """Name in small letters, value with its quotes, and where the value stands."""
    name = re.match(r"<[^\s/>]*+", raw)
    start = name.end() if name else 0
    return [
        (match["name"].lower(), match["value"] or "", match.span("value"))
        for match in _ATTRIBUTE.finditer(raw, start)
    ]
