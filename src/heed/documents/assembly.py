"""A file as a list of parts: some are kept unchanged, some have segments."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from heed.documents.segment import OnRead, Segment, ignore, is_unchanged, require_one_each
from heed.translate.result import Translation


class Content(Protocol):
    """A text with segments, such as a `Passage` or a `Markup`."""

    @property
    def segments(self) -> list[Segment]:
        """The segments to translate, in order."""

    def join(self, translations: Sequence[Translation]) -> str:
        """The text with each segment replaced by its translation."""


@dataclass(frozen=True, slots=True)
class Original:
    """Content that stays as it was written if none of its segments changes.

    Attributes:
        content: it may be written in another way.
        raw: the text as written.
    """

    content: Content
    raw: str

    @property
    def segments(self) -> list[Segment]:
        """The segments to translate, in order."""
        return self.content.segments

    def join(self, translations: Sequence[Translation]) -> str:
        """The text with each segment replaced by its translation."""
        if is_unchanged(self.segments, translations):
            return self.raw
        return self.content.join(translations)


@dataclass(slots=True)
class Assembly:
    """Parts, joined in order.

    Attributes:
        source: the text of the file, if parts of it are replaced.
        place: where `source` goes on behind the parts so far.
        segments: those of all parts.
        parts: kept text, or content with the number of its first segment.
        on_read: called after each content.
    """

    source: str = ""
    place: int = 0
    segments: list[Segment] = field(default_factory=list)
    parts: list[str | tuple[Content, int]] = field(default_factory=list)
    on_read: OnRead = ignore

    def keep(self, text: str) -> None:
        """Append text that is kept unchanged."""
        self.parts.append(text)

    def keep_until(self, end: int) -> None:
        """Append the source up to a place."""
        self.keep(self.source[self.place : end])
        self.place = end

    def replace(self, start: int, end: int, content: Content) -> None:
        """Append the source up to `start`, and content that stands for it from there to `end`."""
        self.keep_until(start)
        self.add(content)
        self.place = end

    def add(self, content: Content) -> None:
        """Append content to be translated."""
        segments = content.segments
        self.parts.append((content, len(self.segments)) if segments else content.join([]))
        self.segments += segments
        self.on_read(sum(len(segment.text) for segment in segments), 1)

    def join(self, translations: Sequence[Translation]) -> str:
        """The text with each segment replaced by its translation.

        Raises:
            UsageError: there are not as many translations as segments.
        """
        require_one_each(self.segments, translations)
        texts = []
        for part in self.parts:
            if isinstance(part, str):
                texts.append(part)
            else:
                content, first = part
                texts.append(content.join(translations[first : first + len(content.segments)]))
        return "".join(texts)
