"""SubRip (.srt) and WebVTT (.vtt): numbers, times, notes and styles are kept.

The lines of a cue are translated as one text, which is then broken at about the same relative
positions. A line that begins with a dash is another speaker's, and a separate text.

Sources: the SubRip format; W3C WebVTT, section 4.
"""

import re
from collections.abc import Sequence
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
_KEPT_BLOCKS = ("NOTE", "STYLE", "REGION")
_RULES = Rules(is_xml=False)


def split_srt(text: str, on_read: OnRead = ignore) -> Assembly:
    """The texts of a SubRip file; `on_read` may stop this."""
    return _split(text, on_read, is_vtt=False)


def split_vtt(text: str, on_read: OnRead = ignore) -> Assembly:
    """The texts of a WebVTT file; `on_read` may stop this."""
    return _split(text, on_read, is_vtt=True)


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
    cue: list[str] | None = None
    is_kept = False
    for line in _LINE.findall(text):
        if not line.strip():
            _add_cue(assembly, cue, is_vtt=is_vtt)
            cue, is_kept = None, False
            assembly.keep(line)
        elif cue is not None and _TIMES not in line:
            cue.append(line)
        else:
            # A line with times begins a new cue, even without an empty line before it.
            number = cue.pop() if cue and _NUMBER.fullmatch(cue[-1]) else ""
            _add_cue(assembly, cue, is_vtt=is_vtt)
            assembly.keep(number)
            assembly.keep(line)
            is_kept = is_kept or (is_vtt and line.split()[0] in _KEPT_BLOCKS)
            cue = [] if _TIMES in line and not is_kept else None
    _add_cue(assembly, cue, is_vtt=is_vtt)
    return assembly


def _add_cue(assembly: Assembly, lines: list[str] | None, *, is_vtt: bool) -> None:
    speech: list[str] = []
    for line in lines or ():
        if _SPEAKER.match(line) and speech:
            _add_speech(assembly, speech, is_vtt=is_vtt)
            speech = []
        speech.append(line)
    if speech:
        _add_speech(assembly, speech, is_vtt=is_vtt)


def _add_speech(assembly: Assembly, lines: list[str], *, is_vtt: bool) -> None:
    for pattern in (_POSITION, _SPEAKER):
        if match := pattern.match(lines[0]):
            assembly.keep(match[0])
            lines = [lines[0][match.end() :], *lines[1:]]
    texts = [line.rstrip("\r\n") for line in lines]
    breaks = [line[len(text) :] for line, text in zip(lines, texts, strict=True)]
    tokens = _tokens(" ".join(texts))
    segments, parts = flow(
        structure("", tokens, _RULES),
        is_html=False,
        split=lambda text: [text],
        escape=escape if is_vtt else str,
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
