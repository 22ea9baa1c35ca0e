"""Inline elements of a Markdown paragraph: emphasis, links, images, code, formulas, HTML.

The model reads `$x1$` for the first formula, address or template: a field, which every translation
has.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import count

from heed.documents.inline import stand_in
from heed.documents.segment import OnRead, ignore
from heed.documents.tags import Kind, Token, decode_entities

_ENTITY = r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|\w{2,31});"
# Of spans, links and images, as in Pandoc and kramdown: `{.class}`, `{width=50%}`.
_ATTRIBUTES = r"\{(?::|[ \t]*+[#.]|[\w-]++=)[^{}\n]*+\}"
# The order matters: at the same position, the earlier alternative wins.
_SPAN = re.compile(
    r"(?P<math>\\\\?[(\[]|\$\$|\$`|(?<![\w\\])\$(?![\s$]))"
    r"|(?P<template>\$?\{\{[^{}\n]{0,200}\}\}|\{%[^%\n]{0,200}%\})"
    r"|(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<ticks>(?<!`)`++)"
    r"|(?P<comment><!--)"
    r"|(?P<address><(?:[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*+|[\w.+-]+@[\w.-]+)>"
    r"|(?<!\w)https?://[^\s<>()*\[\]]*[^\s<>()*\[\].,;:!?'\"])"
    r"|(?P<closing></(?P<closed>[A-Za-z][\w-]*+)\s*+>)"
    r"|(?P<tag><(?P<opened>[A-Za-z][\w-]*+)(?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+>)"
    r"|(?P<note>\[\^[^\]\s]{1,99}\])"
    r"|(?P<wiki>!?\[\[[^\[\]\n]{1,200}\]\](?![(\[]))"
    r"|(?P<open>!?\[)"
    r"|(?P<close>\](?:\((?:<[^<>\n]*+>|[^()\s\\]|\\.|\([^()\s]*+\))*+"
    r"(?:\s++(?:\"[^\"\n]*+\"|'[^'\n]*+'|\([^()\n]*+\)))?\s*+\)|\[[^\[\]]{0,200}\])?"
    rf"(?:{_ATTRIBUTES})?)"
    r"|(?P<script>(?<=[\w)\]])(?:~(?!~)[^~\s]{1,40}~(?!~)|\^[^\^\s]{1,40}\^))"
    r"|(?P<emoji>(?<![\w:]):[a-z][\w+\-]{1,40}:(?![\w:]))"
    r"|(?P<marks>\*{1,3}(?!\*)|_{1,3}(?!_)|~~(?!~)|(?<!=)==(?!=))"
    rf"|(?P<entity>{_ENTITY})"
    r"|(?P<break>(?:(?<! ) {2,}|\\)?\n)"
)
_VOID = frozenset(("br", "img", "hr", "wbr", "input"))
_MARKERS = tuple("*_~=[")
_CODE_ATTRIBUTES = re.compile(r"\{[.#:=][^{}\n]*+\}")
_CLOSINGS = {"\\\\(": "\\\\)", "\\\\[": "\\\\]", "\\(": "\\)", "\\[": "\\]", "$$": "$$", "$`": "`$"}
_DOLLAR = re.compile(r"(?<!\\)\$")
_LONGEST_FORMULA = 2000
_SIGN = re.compile(r"[\\_^={}<>+]|\d\s*[*/\-]")
_WORD = re.compile(r"[^\W\d_]{3}")
_VARIABLE = re.compile(r"\$[A-Za-z]{1,8}\$")  # without a digit: no stand-in


def label_of(text: str) -> str:
    """The name of a reference, normalized: case and the width of blanks do not matter."""
    return " ".join(text.split()).casefold()


def read_spans(
    text: str, gaps: list[str], labels: Collection[str] = (), on_read: OnRead = ignore
) -> list[Token]:
    """The tokens of a paragraph; start and end markers come in pairs.

    Args:
        text: the paragraph, with its lines separated by line breaks.
        gaps: the original text of each line break, including the prefix of the next line.
        labels: names of the link references in the file. A link whose text is its name, such as
            `[a]`, becomes `[a][a]`, so that the text may change.
        on_read: called for each token; may stop this.
    """
    tokens = _named(text, list(_paired(list(_tokens(text, on_read)))), labels)
    waiting = iter(gaps)
    restored = []
    for token in tokens:
        pieces = token.raw.split("\n")
        raw = pieces[0] + "".join(next(waiting) + piece for piece in pieces[1:])
        restored.append(Token(token.kind, raw, token.start, token.name, token.text))
    return restored


def _tokens(text: str, on_read: OnRead) -> Iterator[Token]:
    """Tokens in which markers of emphasis and links may lack a partner."""
    place = start = 0
    ticks = _ends_of_code(text, on_read)
    numbers = count(1)
    while match := _SPAN.search(text, place):
        if not match["ticks"]:
            on_read(0, 1)
        place = match.end()
        if match["math"]:
            token = _formula(text, match, numbers)
        elif match["address"] or match["template"]:
            token = Token("kept", match[0], match.start(), "url", stand_in(next(numbers)))
        else:
            token = _token(text, match, ticks)
        if token is None:
            continue
        yield from _plain(text, start, match.start())
        if match["script"]:
            yield from _script(token)
        else:
            yield token
        start = place = match.start() + len(token.raw)
    yield from _plain(text, start, len(text))


def _plain(text: str, start: int, end: int) -> Iterator[Token]:
    if start < end:
        yield Token("text", text[start:end], start, text=text[start:end])


def _token(text: str, match: re.Match[str], ticks: dict[int, int]) -> Token | None:
    """The token of a match; None if it is plain text."""
    raw, start, kind = match[0], match.start(), match.lastgroup
    if match["ticks"]:
        end = ticks.get(start)
        if end is None:
            return None
        attributes = _CODE_ATTRIBUTES.match(text, end)
        after = attributes.end() if attributes else end
        return Token("kept", text[start:after], start, "code", text[start:end].strip("` "))
    if match["comment"]:
        end = text.find("-->", start)
        return Token("other", text[start:] if end < 0 else text[start : end + 3], start)
    if match["escape"]:
        return Token("text", raw, start, text=raw[1:])
    if match["entity"]:
        return Token("text", raw, start, text=decode_entities(raw))
    if kind == "break":
        is_hard = len(raw) > 1
        return Token("empty", raw, start, "br") if is_hard else Token("text", raw, start, text=" ")
    if match["note"] or match["emoji"]:
        return Token("kept", raw, start, "mark")
    if match["wiki"]:
        return Token("kept", raw, start, "wiki", raw.strip("![]"))
    if match["script"]:
        return Token("other", raw, start, "raised")
    if match["closing"]:
        return Token("close", raw, start, match["closed"].lower())
    if match["tag"]:
        name = match["opened"].lower()
        is_empty = name in _VOID or raw.endswith("/>")
        return Token("empty" if is_empty else "open", raw, start, name)
    if match["marks"]:
        return Token("other", raw, start, raw)
    return Token("open" if match["open"] else "close", raw, start, "[")


def _script(token: Token) -> Iterator[Token]:
    """A subscript or a superscript: its signs, and the text between them."""
    raw, start = token.raw, token.start
    yield Token("open", raw[0], start, "raised")
    yield Token("text", raw[1:-1], start + 1, text=raw[1:-1])
    yield Token("close", raw[-1], start + len(raw) - 1, "raised")


def _formula(text: str, match: re.Match[str], numbers: Iterator[int]) -> Token | None:
    """The formula that a match begins; without one, the escaped character or None."""
    opening, start = match[0], match.start()
    after = _end_of_formula(text, opening, start)
    if after is not None:
        raw = text[start:after]
        shown = raw if _VARIABLE.fullmatch(raw) else stand_in(next(numbers))
        return Token("kept", raw, start, "math", shown)
    return Token("text", opening[:2], start, text=opening[1]) if opening[0] == "\\" else None


def _end_of_formula(text: str, opening: str, start: int) -> int | None:
    """The end of the formula that an opening begins; None if that is not one."""
    first, last = start + len(opening), start + _LONGEST_FORMULA
    if opening == "$":
        # Two prices are not a formula: `$5 or $6`.
        found = _DOLLAR.search(text, first, last)
        place = found.start() if found else -1
        if place < 0 or text[place - 1].isspace() or text[place + 1 : place + 2].isalnum():
            return None
    else:
        place = text.find(_CLOSINGS[opening], first, last)
    inside = text[first:place] if place >= 0 else ""
    if not inside.strip():
        return None
    is_sure = opening[:2] in ("$$", "$`", "\\\\") or _SIGN.search(inside)
    is_short = opening != "\\[" and not _WORD.search(inside)
    is_name = opening == "$" and len(inside.split()) == 1
    return place + len(opening) if is_sure or is_short or is_name else None


def _ends_of_code(text: str, on_read: OnRead) -> dict[int, int]:
    """For each run of backticks that begins code, the position where the code ends."""
    runs = []
    for match in re.finditer(r"`++", text):
        on_read(0, 1)
        runs.append(match.span())
    ends: dict[int, int] = {}
    latest: dict[int, int] = {}
    for start, end in reversed(runs):
        if (closing := latest.get(end - start)) is not None:
            ends[start] = closing
        latest[end - start] = end
    return ends


class _Pairs:
    """Well-nested pairs of markers.

    Attributes:
        parts: for each marker of a pair, by its number, the tokens that replace it.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.parts: dict[int, list[Token]] = {}
        self._tokens = tokens
        self._opened: list[tuple[int, str]] = []
        self._counts: Counter[str] = Counter()

    def open(self, number: int, name: str) -> None:
        """Let a marker wait for its partner."""
        self._opened.append((number, name))
        self._counts[name] += 1

    def close(self, number: int, name: str) -> bool:
        """Pair a marker with the latest open one of its name, if there is one."""
        if not self._counts[name]:
            return self._close_split(number, name)
        # Markers opened in between have no partner.
        while (latest := self._pop())[1] != name:
            pass
        # The parts of a split marker are closed from the inside out.
        self.parts.setdefault(latest[0], []).insert(0, self._part("open", latest[0], name))
        self.parts.setdefault(number, []).append(self._part("close", number, name))
        return True

    def _close_split(self, number: int, name: str) -> bool:
        """Pair a marker with two open ones, or with a part of one: `*a **b***`, `***a** b*`."""
        latest = [other for _, other in self._opened[-2:]]
        if sorted(latest) == [name[:1], name[:2]] and len(name) == 3:
            return all(self.close(number, other) for other in reversed(latest))
        if name != "[" and len(name) < 3 and latest[-1:] == [3 * name[0]]:
            start, _ = self._pop()
            self.open(start, name[0] * (3 - len(name)))
            self.open(start, name)
            return self.close(number, name)
        return False

    def _pop(self) -> tuple[int, str]:
        latest = self._opened.pop()
        self._counts[latest[1]] -= 1
        return latest

    def _part(self, kind: Kind, number: int, name: str) -> Token:
        token = self._tokens[number]
        return Token(kind, token.raw if name == "[" else name, token.start, name)


def _paired(tokens: list[Token]) -> Iterator[Token]:
    """Tokens in which each marker of emphasis or a link is part of a pair, or text."""
    pairs = _Pairs(tokens)
    for number, token in enumerate(tokens):
        if token.name[:1] not in _MARKERS:
            continue
        can_open, can_close = token.kind == "open", token.kind == "close"
        if token.name != "[":
            can_open, can_close = _flanks(tokens, number)
        if not (can_close and pairs.close(number, token.name)) and can_open:
            pairs.open(number, token.name)
    for number, token in enumerate(tokens):
        if token.name[:1] not in _MARKERS:
            yield token
            continue
        parts = pairs.parts.get(number, [])
        rest = token.raw[: len(token.raw) - sum(len(part.raw) for part in parts)]
        if rest:
            yield Token("text", rest, token.start, text=rest)
        yield from parts


def _named(text: str, tokens: list[Token], labels: Collection[str]) -> list[Token]:
    """Tokens in which a link whose text is its reference's name ends with that name."""
    named: list[Token] = []
    opened: list[Token] = []
    for token in tokens:
        if token.name == "[" and token.kind == "open":
            opened.append(token)
        elif token.name == "[" and token.kind == "close":
            start = opened.pop()
            label = text[start.start + len(start.raw) : token.start]
            if token.raw in ("]", "][]") and label_of(label) in labels:
                token = replace(token, raw=f"][{' '.join(label.split())}]")
        named.append(token)
    return named


def _flanks(tokens: list[Token], number: int) -> tuple[bool, bool]:
    """Whether a marker can open and close emphasis, by the characters next to it."""
    before = tokens[number - 1].raw[-1:] if number else " "
    after = tokens[number + 1].raw[:1] if number + 1 < len(tokens) else " "
    can_open, can_close = not after.isspace(), not before.isspace()
    if tokens[number].name[0] in "_=":
        can_open = can_open and not before.isalnum()
        can_close = can_close and not after.isalnum()
    return can_open, can_close
