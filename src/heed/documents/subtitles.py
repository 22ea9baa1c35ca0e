"""SubRip (.srt), WebVTT (.vtt) and Advanced SubStation Alpha (.ass): times and styles are kept.

The lines of a cue are translated as one text, which is then broken at about the same relative
positions. A line that begins with a dash is another speaker's, and a separate text.

Sources: the SubRip format; W3C WebVTT, section 4; the specification of .ass, appendix A.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from heed.documents.assembly import Assembly
from heed.documents.flow import flow
from heed.documents.markup import Markup, escape
from heed.documents.segment import OnRead, Segment, ignore, is_unchanged
from heed.documents.structure import Rules, structure
from heed.documents.tags import Token, parts_of_text, read_tokens
from heed.documents.wrapping import break_like
from heed.translate.result import Translation

_LINE = re.compile(r"[^\r\n]*+(?:\r\n|[\r\n])|[^\r\n]++\Z")
_TIMES = "-->"
_NUMBER = re.compile(r"\s*\d+\s*")
_SPEAKER = re.compile(r"[-–—‐][ \xa0]*")
# Positions in the style of SubStation Alpha, at the beginning of a line.
_POSITION = re.compile(r"(?:\{\\[^}]*\})+")
# A timestamp inside a cue, or a style of SubStation Alpha.
_MARK = re.compile(r"<\d[\d:.]*>|\{\\[^{}]*\}")
_TAG = re.compile(r"<[^<>]*>")
_RULES = Rules(is_xml=False)
_KEPT_BLOCKS = ("NOTE", "STYLE", "REGION")


@dataclass(frozen=True, slots=True)
class _Signs:
    """How a format writes signs of a text."""

    read: Callable[[str], str] = str
    write: Callable[[str], str] = str


_SRT = _Signs()
_VTT = _Signs(write=escape)
_ASS = _Signs(read=lambda text: text.replace(r"\h", "\u00a0"))
_ASS_BREAK = re.compile(r"\\[Nn]")
_ASS_FIELDS = 10
_ASS_DRAWING = re.compile(r"\{[^{}]*\\p[1-9]")


def split_srt(text: str, on_read: OnRead = ignore) -> Assembly:
    """The texts of a SubRip file; `on_read` may stop this."""
    return _split(text, on_read, is_vtt=False)


def split_vtt(text: str, on_read: OnRead = ignore) -> Assembly:
    """The texts of a WebVTT file; `on_read` may stop this."""
    return _split(text, on_read, is_vtt=True)


def split_ass(text: str, on_read: OnRead = ignore) -> Assembly:
    """The texts of the dialogue in a file of Advanced SubStation Alpha; `on_read` may stop this."""
    assembly = Assembly(on_read=on_read)
    n_fields = _ASS_FIELDS
    for line in _LINE.findall(text):
        name, _, values = line.partition(":")
        if name == "Format":
            n_fields = values.count(",") + 1
        fields = values.split(",", n_fields - 1)
        if name != "Dialogue" or len(fields) < n_fields or _ASS_DRAWING.search(fields[-1]):
            assembly.keep(line)
            continue
        spoken = fields[-1].rstrip("\r\n")
        assembly.keep(line[: len(line) - len(fields[-1])])
        breaks = [*_ASS_BREAK.findall(spoken), ""]
        _add_cue(assembly, [*zip(_ASS_BREAK.split(spoken), breaks, strict=True)], _ASS)
        assembly.keep(fields[-1][len(spoken) :])
    return assembly


@dataclass(frozen=True, slots=True)
class _Speech:
    """The words of one speaker in one cue.

    Attributes:
        markup: its lines, joined by blanks.
        lines: the original lines, including tags.
        breaks: the line breaks between them.
    """

    markup: Markup
    lines: list[str]
    breaks: list[str]

    @property
    def segments(self) -> list[Segment]:
        return self.markup.segments

    def join(self, translations: Sequence[Translation]) -> str:
        lines = self.lines
        if not is_unchanged(self.segments, translations):
            lines = break_like(self.markup.join(translations), lines, unbroken=_TAG)
        breaks = [*self.breaks[: len(lines) - 1], ""]
        return "".join(part for pair in zip(lines, breaks, strict=True) for part in pair)


def _split(text: str, on_read: OnRead, *, is_vtt: bool) -> Assembly:
    assembly = Assembly(on_read=on_read)
    signs = _VTT if is_vtt else _SRT
    cue: list[str] | None = None
    is_kept = False
    for line in _LINE.findall(text):
        if not line.strip():
            _add_lines(assembly, cue, signs)
            # A cue of SubRip goes on after an empty line, until the next times.
            cue, is_kept = (None if is_vtt or cue is None else []), False
            assembly.keep(line)
        elif cue is not None and _TIMES not in line:
            cue.append(line)
        else:
            # A line with times begins a new cue, even without an empty line before it.
            number = cue.pop() if cue and _NUMBER.fullmatch(cue[-1]) else ""
            _add_lines(assembly, cue, signs)
            assembly.keep(number)
            assembly.keep(line)
            is_kept = is_kept or (is_vtt and line.split()[0] in _KEPT_BLOCKS)
            cue = [] if _TIMES in line and not is_kept else None
    _add_lines(assembly, cue, signs)
    return assembly


def _add_lines(assembly: Assembly, lines: list[str] | None, signs: _Signs) -> None:
    texts = [line.rstrip("\r\n") for line in lines or ()]
    breaks = [line[len(text) :] for line, text in zip(lines or (), texts, strict=True)]
    _add_cue(assembly, [*zip(texts, breaks, strict=True)], signs)


def _add_cue(assembly: Assembly, lines: Sequence[tuple[str, str]], signs: _Signs) -> None:
    """Append lines, each with the break that ends it."""
    speech: list[tuple[str, str]] = []
    for line in lines:
        if _SPEAKER.match(line[0]) and speech:
            _add_speech(assembly, speech, signs)
            speech = []
        speech.append(line)
    if speech:
        _add_speech(assembly, speech, signs)


def _add_speech(assembly: Assembly, lines: Sequence[tuple[str, str]], signs: _Signs) -> None:
    texts = [text for text, _ in lines]
    breaks = [ending for _, ending in lines]
    for pattern in (_POSITION, _SPEAKER):
        if match := pattern.match(texts[0]):
            assembly.keep(match[0])
            texts[0] = texts[0][match.end() :]
    segments, parts = flow(
        structure("", _tokens(signs.read(" ".join(texts))), _RULES),
        is_html=False,
        split=lambda text: [text],
        escape=signs.write,
    )
    assembly.add(_Speech(Markup(segments, parts), texts, breaks[:-1]))
    assembly.keep(breaks[-1])


def _tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    for token in read_tokens(text, is_xml=False):
        if token.kind == "text" and token.raw == token.text:
            for part, match in parts_of_text(token, _MARK):
                tokens.append(replace(part, kind="other", text="") if match else part)
        elif token.kind == "open":
            # The classes of a WebVTT tag are part of its name: <c.yellow>.
            tokens.append(replace(token, name=token.name.partition(".")[0]))
        else:
            tokens.append(token)
    return tokens
