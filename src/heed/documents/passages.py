"""Plain text as sentences and what stands between them: white space, line breaks, list marks.

What stands between comes back as it was. `text/segment.py` decides where a sentence ends.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from heed.documents.segment import Segment, has_words, require_one_each, split_edges
from heed.documents.wrapping import break_like
from heed.errors import UsageError
from heed.text.normalize import BLANKS
from heed.text.segment import split_sentences
from heed.translate.result import Translation, is_written_solid

MODES = ("1", "0", "nonewlines")
"""What splits a text, as in DeepL's `split_sentences`.

`1`: line breaks and sentence ends. `0`: line breaks only, because a model reads no line break.
`nonewlines`: sentence ends and blank lines; the line breaks inside a sentence come back at about
the same share of its translation.
"""

_BREAK = r"(?:\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])"
_LINE_BREAK = re.compile(_BREAK)
# Columns are separated by a tab or by several blanks; two are a habit of typists.
_LINES = re.compile(rf"{_BREAK}|\t|[ \xa0\u3000]{{3,}}")
_PARAGRAPHS = re.compile(rf"{_BREAK}[^\S\n\r]*{_BREAK}")
_BREAK_AND_INDENT = re.compile(rf"[ \t]*{_BREAK}[ \t]*")
_LIST_MARK = re.compile(r"(?:[-*+•‣▪▫◦●○–—>#|]+[ \t\xa0]+)+")
_TO_BLANKS = dict.fromkeys(map(ord, BLANKS), " ")


@dataclass(frozen=True, slots=True)
class Passage:
    """A text, split.

    Attributes:
        segments: what is to be translated, in order.
        between: what stands before, between and after them: one more than `segments`.
    """

    segments: list[Segment]
    between: list[str]

    def join(self, translations: Sequence[Translation]) -> str:
        """The text with each segment replaced by its translation.

        Raises:
            UsageError: there are not as many translations as segments.
        """
        require_one_each(self.segments, translations)
        parts = [self.between[0]]
        for number, (segment, translation) in enumerate(
            zip(self.segments, translations, strict=True)
        ):
            text = _with_line_breaks(segment.text, translation.text)
            gap = self.between[number + 1]
            is_last = number + 1 == len(self.segments)
            if not gap and not is_last and _needs_blank(segment.text, text):
                gap = " "
            parts += (text, gap)
        return "".join(parts)


def split_passage(text: str, mode: str = "1") -> Passage:
    """The sentences of a text; joining them unchanged gives the text.

    A sentence without words (`heed.documents.segment.has_words`) is no segment: it stays.

    Args:
        text: any text.
        mode: one of `MODES`.

    Raises:
        UsageError: there is no such mode.
    """
    if mode not in MODES:
        raise UsageError(f"mode must be one of {', '.join(MODES)}, but is {mode!r}.")
    segments: list[Segment] = []
    between: list[str] = []
    gap: list[str] = []
    for part in parts_of(text, mode):
        before, body, after = split_edges(part)
        if mark := _LIST_MARK.match(body):
            before, body = before + mark[0], body[mark.end() :]
        if has_words(body):
            between.append("".join([*gap, before]))
            segments.append(Segment(body))
            gap = [after]
        else:
            gap += (before, body, after)
    return Passage(segments, [*between, "".join(gap)])


def sentences(text: str) -> list[str]:
    """The sentences of a text whose line breaks mean nothing; joining them gives the text."""
    sentences: list[str] = []
    start = 0
    # Of the same length, so that the places are the same.
    for sentence in split_sentences(text.translate(_TO_BLANKS)):
        sentences.append(text[start : start + len(sentence)])
        start += len(sentence)
    return sentences


def parts_of(text: str, mode: str) -> list[str]:
    """What may be one segment each, with the blanks around it; joining them gives `text`."""
    if mode == "nonewlines":
        return [part for block in _cut_behind(text, _PARAGRAPHS) for part in sentences(block)]
    lines = _cut_behind(text, _LINES)
    return lines if mode == "0" else [part for line in lines for part in sentences(line)]


def _cut_behind(text: str, separator: re.Pattern[str]) -> list[str]:
    ends = [match.end() for match in separator.finditer(text)]
    return [text[i:j] for i, j in zip([0, *ends], [*ends, len(text)], strict=True)]


def _with_line_breaks(source: str, text: str) -> str:
    """A translation with the line breaks of its source."""
    breaks = [match[0] for match in _BREAK_AND_INDENT.finditer(source)]
    if not breaks or text == source:
        return text
    lines = break_like(text, _BREAK_AND_INDENT.split(source))
    # With fewer words than lines the last breaks have no place.
    return "".join(
        part for pair in zip(lines, [*breaks[: len(lines) - 1], ""], strict=True) for part in pair
    )


def _needs_blank(source: str, text: str) -> bool:
    """Whether two sentences that stood close together have to be parted in another script."""
    return source[-1] != text[-1:] and bool(text) and not is_written_solid(text[-1])
