"""Plain text as sentences and separators: white space, line breaks, list markers.

Separators are restored unchanged. `text/segment.py` decides where a sentence ends.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from heed.documents.segment import Segment, has_words, require_one_each, split_edges
from heed.documents.wrapping import break_like
from heed.errors import UsageError
from heed.text.normalize import BLANKS
from heed.text.scripts import is_written_solid
from heed.text.segment import split_sentences
from heed.translate.result import Translation

MODES = ("1", "0", "nonewlines")
"""How a text is split, as in DeepL's `split_sentences`.

`1`: at line breaks and ends of sentences. `0`: at line breaks only, because a model reads no line
break. `nonewlines`: at ends of sentences and blank lines; line breaks inside a sentence are
restored at about the same relative position in its translation.
"""

_BREAK = r"(?:\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])"
_LINE_BREAK = re.compile(_BREAK)
# Columns are separated by a tab or by several blanks. Two blanks can just follow a sentence.
_LINES = re.compile(rf"{_BREAK}|\t|[ \xa0\u3000]{{3,}}")
_PARAGRAPHS = re.compile(rf"{_BREAK}[^\S\n\r]*{_BREAK}")
_BREAK_AND_INDENT = re.compile(rf"[ \t]*{_BREAK}[ \t]*")
_BULLET = r"[-*+•‣▪▫◦●○–—>#|]+"
_NUMBER = r"\d{1,9}(?:\.\d{1,9}){0,8}"
# A capital with a full stop is an initial (`A. Smith`), and so may be `κ.` and `г.`; two letters
# with full stops are an abbreviation (`e. g.`).
_LETTER = "[a-zß-öø-ÿα-ωа-џ]"
_ITEM = rf"{_NUMBER}\.?\)|{_NUMBER}\.|{_LETTER}\)|[a-z]\.(?![ \t\xa0]+\w\.)"
_ITEM += rf"|\((?:{_NUMBER}|{_LETTER})\)"
_BULLETS = re.compile(rf"(?:{_BULLET}[ \t\xa0]+)+")
LIST_MARKS = re.compile(rf"(?:(?:{_BULLET}|{_ITEM})[ \t\xa0]+)+")
"""Matches marks of lists such as `-`, `1.` and `a)`, with the blanks behind them."""
_TO_BLANKS = dict.fromkeys(map(ord, BLANKS), " ")


@dataclass(frozen=True, slots=True)
class Passage:
    """A text, split into segments.

    Attributes:
        segments: the segments to translate, in order.
        between: the text before, between and after them: one item more than `segments`.
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
    """The sentences of a text; joining them unchanged restores the text.

    A sentence without words (`heed.documents.segment.has_words`) is not a segment; it is kept.

    Args:
        text: any text.
        mode: one of `MODES`.

    Raises:
        UsageError: the mode is unknown.
    """
    if mode not in MODES:
        raise UsageError(f"mode must be one of {', '.join(MODES)}, but is {mode!r}.")
    segments: list[Segment] = []
    between: list[str] = []
    gap: list[str] = []
    is_line_start = True
    for part in parts_of(text, mode):
        before, body, after = split_edges(part)
        ends_line = _LINES.search(after if body else before) is not None
        # A tab may follow a mark, and is the end of this part then.
        if mark := (LIST_MARKS if is_line_start else _BULLETS).match(f"{body} "):
            before, body = before + body[: mark.end()], body[mark.end() :]
        if has_words(body):
            between.append("".join([*gap, before]))
            segments.append(Segment(body))
            gap = [after]
        else:
            gap += (before, body, after)
        is_line_start = ends_line or (is_line_start and not body)
    return Passage(segments, [*between, "".join(gap)])


def sentences(text: str) -> list[str]:
    """The sentences of a text in which line breaks have no meaning; joining them restores it."""
    sentences: list[str] = []
    start = 0
    # The replaced text has the same length, so positions stay the same.
    for sentence in split_sentences(text.translate(_TO_BLANKS)):
        sentences.append(text[start : start + len(sentence)])
        start += len(sentence)
    return sentences


def parts_of(text: str, mode: str) -> list[str]:
    """The potential segments, including the blanks around them; joining them restores `text`."""
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
    # With fewer words than lines, the last line breaks have no place.
    return "".join(
        part for pair in zip(lines, [*breaks[: len(lines) - 1], ""], strict=True) for part in pair
    )


def _needs_blank(source: str, text: str) -> bool:
    """Whether a translation needs a blank after a sentence that had none in the source script."""
    return source[-1] != text[-1:] and bool(text) and not is_written_solid(text[-1])
