"""A text of a program: tags and fields move with the words, line breaks separate texts.

Marks of lists at the beginning of a line are kept.

Fields such as `%s`, `%1$d` and `{name}` are not given to the model (`fields.py`); alignment decides
their place.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import unescape

from heed.documents.fields import MARK, Format, Masked, mask
from heed.documents.flow import flow
from heed.documents.markup import Markup, escape
from heed.documents.passages import LIST_MARKS, parts_of
from heed.documents.segment import Segment
from heed.documents.structure import Rules, structure
from heed.documents.tags import Token, parts_of_text, read_tokens
from heed.translate.result import Translation

_ENTITY = re.compile(r"&(?:[A-Za-z]\w*|#\w+);")
_LIST_MARK = re.compile(rf"^[ \t]*{LIST_MARKS.pattern}(?=\S)", re.M)
_RULES = Rules(is_xml=False)


@dataclass(frozen=True, slots=True)
class Message:
    """A text, and how its translation is written in its file.

    Attributes:
        markup: the text, split, with marks for its fields.
        masked: the fields.
        text: the text as read.
        raw: the text as written; None if an unchanged text is to be written anew.
        write: writes a translation as the file needs it.
    """

    markup: Markup
    masked: Masked
    text: str
    raw: str | None
    write: Callable[[str], str]

    @classmethod
    def of(
        cls, text: str, format: Format, write: Callable[[str], str], raw: str | None = None
    ) -> "Message":
        """A text, split."""
        masked = mask(text, format)
        # In a text without entities, `&` and `<` stand for themselves.
        is_html = any(unescape(found) != found for found in _ENTITY.findall(masked.text))
        tokens = [
            part
            for token in _list_marks(read_tokens(masked.text, is_xml=False))
            for part in (_fields(token, is_html=is_html) if token.kind == "text" else [token])
        ]
        segments, parts = flow(
            structure(masked.text, tokens, _RULES),
            is_html=False,
            split=lambda text: parts_of(text, "1"),
            escape=escape if is_html else str,
        )
        return cls(Markup(segments, parts), masked, text, raw, write)

    @property
    def segments(self) -> list[Segment]:
        """The segments to translate, in order."""
        return self.markup.segments

    def join(self, translations: Sequence[Translation]) -> str:
        """The text with each segment replaced by its translation, as written in the file."""
        text = self.masked.restored(self.markup.join(translations))
        return self.write(text) if self.raw is None or text != self.text else self.raw


def _list_marks(tokens: Iterable[Token]) -> Iterator[Token]:
    """Split texts into the marks at the beginning of their lines, which separate texts."""
    is_line_start = True
    for token in tokens:
        parts = parts_of_text(token, _LIST_MARK) if token.kind == "text" else [(token, None)]
        is_first = True
        for part, match in parts if token.raw == token.text else [(token, None)]:
            is_mark = match is not None and (is_line_start or not is_first)
            yield replace(part, kind="declaration", text="") if is_mark else part
            is_first = False
        is_line_start = token.kind == "text" and token.text.endswith("\n")


def _fields(token: Token, *, is_html: bool) -> Iterator[Token]:
    """Split a text into its fields and the rest."""
    for part, match in parts_of_text(token, MARK):
        if match:
            yield replace(part, kind="kept", name="field", text="")
        else:
            yield replace(part, text=unescape(part.raw)) if is_html else part
