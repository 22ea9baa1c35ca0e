"""ICU messages: `{n, plural, one {# file} other {# files}}`, select and selectordinal.

A message is one span. The texts in it are translated separately; the rest of it stays. In these
texts `#` is the number, and apostrophes quote: `'{'` is a brace. A message with more than
`MAX_DEPTH` messages in one another stays whole.

Not found: messages with unbalanced braces, and `choice`.

Source: ICU User Guide, "Formatting Messages".
"""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

_HEAD = re.compile(
    r"\{\s*+[\w.\-]++\s*+,\s*+(?:plural|select|selectordinal)\s*+,\s*+(?:offset\s*+:\s*+\d++)?"
)
_SELECTOR = re.compile(r"\s*+(?:=\d++|[\w\-]++)\s*+\{")
_END = re.compile(r"\s*+\}")
_MARK = re.compile(r"''|'(?=[{}#|])|[{}]")
_QUOTED = r"'[{}#|](?:[^']++|'')*+'"
# A text of many messages that do not end would be read to its end for each of them.
_MAX_FAILURES = 10

MAX_DEPTH = 20
"""Most messages in one another whose texts are translated: each is read in a call of its own."""

ABOUT = "ICU messages of plural and select; the texts in them are translated"
NEEDED = re.compile(r",\s*(?:plural|select)")
_QUOTATION = re.compile(_QUOTED)
_BRACE = re.compile(r"[{}]")
INSIDE = re.compile(rf"{_QUOTED}|(?<!&)#")
"""Further protected spans in a text of a message."""


class Message(NamedTuple):
    """The place of a message, and the places of the texts in it."""

    start: int
    end: int
    texts: tuple[tuple[int, int], ...]


def find_messages(text: str) -> Iterator[Message]:
    """The ICU messages of a text that are not inside of others, in order."""
    place = n_failures = 0
    while n_failures < _MAX_FAILURES and (head := _HEAD.search(text, place)):
        message = _read(text, head)
        if message is None:
            n_failures += 1
            place = head.end()
        else:
            yield message
            place = message.end


def with_texts(message: str, texts: Sequence[str]) -> str | None:
    """A message with other texts; None if the braces of one of these are unbalanced.

    An apostrophe of a new text that would begin a quotation is doubled, unless the old text has the
    same quotation.

    Args:
        message: one whole message.
        texts: one for each of its texts, such as their translations.
    """
    own = next(find_messages(message))
    parts: list[str] = []
    place = 0
    for (start, end), text in zip(own.texts, texts, strict=True):
        new = _with_plain_apostrophes(text, _QUOTATION.findall(message[start:end]))
        if _end_of_text(f"{new}}}", 0) != len(new):
            return None
        parts += [message[place:start], new]
        place = end
    return "".join([*parts, message[place:]])


def _with_plain_apostrophes(text: str, quotations: Collection[str]) -> str:
    parts: list[str] = []
    place = 0
    followed = f"{text}}}"  # The brace that closes the text follows an apostrophe at its end.
    while (mark := _MARK.search(followed, place)) and mark.end() <= len(text):
        same = next((each for each in quotations if text.startswith(each, mark.start())), None)
        end = mark.start() + len(same) if same else mark.end()
        parts.append(text[place:end] + ("'" if mark[0] == "'" and not same else ""))
        place = end
    return "".join([*parts, text[place:]])


def _read(text: str, head: re.Match[str]) -> Message | None:
    place = head.end()
    texts: list[tuple[int, int]] = []
    while selector := _SELECTOR.match(text, place):
        end = _end_of_text(text, selector.end())
        if end is None:
            return None
        texts.append((selector.end(), end))
        place = end + 1
    closing = _END.match(text, place)
    if not texts or closing is None:
        return None
    if _depth(text[head.start() : closing.end()]) > 2 * MAX_DEPTH:
        texts = []
    trimmed = (_trimmed(text, start, end) for start, end in texts)
    return Message(
        head.start(), closing.end(), tuple(each for each in trimmed if each[0] < each[1])
    )


def _depth(message: str) -> int:
    """The most braces that are open at once; a message opens one, and another for a text."""
    braces = _BRACE.findall(_QUOTATION.sub("", message))
    return max(accumulate(1 if brace == "{" else -1 for brace in braces))


def _end_of_text(text: str, place: int) -> int | None:
    """The place of the brace that closes the text which begins at `place`."""
    depth = 0
    while mark := _MARK.search(text, place):
        place = mark.end()
        if mark[0] == "{":
            depth += 1
        elif mark[0] == "}":
            if not depth:
                return mark.start()
            depth -= 1
        elif mark[0] == "'":
            place = _end_of_quotation(text, place)
    return None


def _end_of_quotation(text: str, place: int) -> int:
    """One past the apostrophe that ends a quotation; without one, the end of the text."""
    while (place := text.find("'", place) + 1) and text.startswith("'", place):
        place += 1
    return place or len(text)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The stretch without the blanks at its ends."""
    inner = text[start:end]
    start += len(inner) - len(inner.lstrip())
    return start, start + len(inner.strip())
