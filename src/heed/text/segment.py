"""Split long text into sentences, and longer ones into parts that fit; nothing is lost.

A model can read only sentences about as long as those it learned from. The rules ignore meaning, so
a sentence with a rare abbreviation may end too early or too late.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from itertools import chain, count, pairwise

# Sentence_Terminal and Terminal_Punctuation of the Unicode Character Database, the usual scripts.
# A narrow sign ends a sentence only before a blank; a wide one anywhere, because most of their
# scripts write no blank.
_NARROW_ENDS = ".!?…‼⁇⁈⁉"
_WIDE_ENDS = "。．！？｡؟۔।॥։።፧፨။៕᠃᠉"
_NARROW_PAUSES = ",;:،؛՝—–"
_WIDE_PAUSES = "、，；：､፣፤၊"
# Germans open with „ or » and close with “ or «, others the other way round.
_QUOTES = "\"'“”‘’«»‹›"
_OPENERS = _QUOTES + "„‚([{「『（［【《〈¿¡"
_CLOSERS = _QUOTES + ")]}」』）］】》〉"

# A pattern starts where a run starts (lookbehind) and never gives back (`++`, `*+`), so that a
# megabyte of full stops takes one pass.
_CLOSING = f"[{re.escape(_CLOSERS)}]*+"
_SENTENCE_END = re.compile(
    rf"(?<![{_NARROW_ENDS}{_WIDE_ENDS}])(?P<ends>[{_NARROW_ENDS}{_WIDE_ENDS}]++)"
    rf"(?P<closers>{_CLOSING})(?P<blanks>\s*+)|\n\s*+"
)
_PAUSE = re.compile(rf"[{_NARROW_PAUSES}]++{_CLOSING}\s++|[{_WIDE_PAUSES}]++{_CLOSING}\s*+")
_BLANKS = re.compile(r"\s++")

# Before a capital these are far more often abbreviations than the end of a sentence, and a missed
# end costs less than a broken sentence. Initials and abbreviations such as "z.B." and "U.S." have a
# rule. No abbreviation is longer than `_LONGEST_WORD`.
_ABBREVIATIONS = frozenset(
    "dr mr mrs ms prof st sr jr rev hon gov sen gen col lt sgt capt messrs mme mlle mgr sra dra "  # noqa: SIM905 - a list would fill a page
    "hr fr frl dipl ing bzw ca evtl ggf inkl exkl sog bspw zzgl vgl cf vs approx geb hrsg".split()
)
# The same, but only before a number.
_ABBREVIATIONS_OF_NUMBERS = frozenset(
    "no nr nos vol fig figs abb tab pp art abs kap ch sec bd núm pág tel max min ver "  # noqa: SIM905 - as above
    "jan feb mar apr jun jul aug sep sept oct okt nov dec dez".split()
)
_LONGEST_WORD = 24


def split_sentences(text: str) -> list[str]:
    """The sentences of `text`, each with the blanks after it, so that joining them gives `text`.

    A line break always ends a sentence. A full stop does not after an abbreviation, an initial, or
    a number of one or two digits (a date in German), nor before a lowercase letter.

    Source: the idea of Unicode Standard Annex 29, section 5, with abbreviations added.
    """
    return _cut_at(text, _sentence_ends(text))


def cut(text: str, *, max_length: int, length: Callable[[str], int] = len) -> list[str]:
    """Parts of `text` no longer than `max_length` each; joining them gives `text`.

    A text that fits is not split. Otherwise each sentence becomes a part, and a sentence that is
    too long is cut at pauses, then at blanks, then between visible characters, then anywhere. Only
    a single character may be longer than `max_length`.

    Args:
        text: any text.
        max_length: in the units of `length`.
        length: measures a text, for example `lambda part: len(vocab.encode(part))`. Called
            O(log n) times on each stretch of text.
    """
    if length(text) <= max_length:
        return [text]
    return [
        part
        for sentence in split_sentences(text)
        for part in _fit(sentence, _LEVELS, max_length, length)
    ]


def _fit(
    text: str,
    levels: Sequence[Callable[[str], list[int]]],
    max_length: int,
    length: Callable[[str], int],
) -> list[str]:
    """`text` in as few parts as fit, cut at the first of `levels` that can."""
    if not levels or length(text) <= max_length:
        return [text]
    places = [0, *(place for place in levels[0](text) if 0 < place < len(text)), len(text)]
    parts: list[str] = []
    start, stride = 0, 1
    while start < len(places) - 1:
        end = _furthest(text, places, start, stride, max_length, length)
        parts += _fit(text[places[start] : places[end]], levels[1:], max_length, length)
        start, stride = end, end - start
    return parts


def _furthest(
    text: str,
    places: list[int],
    start: int,
    stride: int,
    max_length: int,
    length: Callable[[str], int],
) -> int:
    """The index of the last place that a part from `places[start]` can reach, at least one more.

    Galloping search: it tries `stride` places (the length of the part before), then doubles, then
    bisects. Neighbors are similar, so a part is measured a few times, and the rest of `text` never.
    """

    def fits(end: int) -> bool:
        return length(text[places[start] : places[end]]) <= max_length

    good, bad = start + 1, len(places)
    for step in chain([stride - 1], (2**n for n in count())):
        if good + step >= bad:
            break
        if not fits(good + step):
            bad = good + step
            break
        good += step
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return good


def _cut_at(text: str, places: list[int]) -> list[str]:
    inner = (place for place in places if 0 < place < len(text))
    return [text[start:end] for start, end in pairwise([0, *inner, len(text)]) if end > start]


def _sentence_ends(text: str) -> list[int]:
    return [match.end() for match in _SENTENCE_END.finditer(text) if _ends_sentence(text, match)]


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    if "\n" in match[0]:
        return True
    ends, after = match["ends"], text[match.end() : match.end() + 8]
    if ends[-1] in _WIDE_ENDS:
        if ends[-1] == "．" and after[:1].isdecimal():
            return False
        # 「はい。」と言った: a quotation inside a sentence, unless a blank or another one follows.
        return not match["closers"] or bool(match["blanks"]) or after[:1] in _OPENERS
    if not match["blanks"] or after.lstrip(_OPENERS)[:1].islower():
        return False
    start = match.start()
    return ends != "." or not _is_abbreviation(text[max(0, start - _LONGEST_WORD) : start], after)


def _is_abbreviation(before: str, after: str) -> bool:
    """Whether the full stop between `before` and `after` ends an abbreviation."""
    if not before or before[-1].isspace():
        return False
    word = before.split()[-1].lstrip(_OPENERS).lower()
    if word.isdecimal():  # "am 3. Mai", but "in 2012. Then"
        return len(word) <= 2
    if word in _ABBREVIATIONS_OF_NUMBERS:
        return after[:1].isdecimal()
    # "J. Smith", "z.B.", "Ph.D.", but neither "3.5." nor "example.org."
    is_initials = all(part.isalpha() and len(part) <= 2 for part in word.split("."))
    return word in _ABBREVIATIONS or (is_initials and (len(word) == 1 or "." in word))


def _pauses(text: str) -> list[int]:
    return [match.end() for match in _PAUSE.finditer(text)]


def _blanks(text: str) -> list[int]:
    return [match.end() for match in _BLANKS.finditer(text)]


def _characters(text: str) -> list[int]:
    """Positions where a new visible character begins: not before combining marks and joiners."""
    return [
        place
        for place in range(1, len(text))
        if not _sticks(text[place]) and text[place - 1] != "\N{ZERO WIDTH JOINER}"
    ]


def _sticks(character: str) -> bool:
    is_skin_tone = "\U0001f3fb" <= character <= "\U0001f3ff"
    return (
        unicodedata.category(character).startswith("M")
        or character == "\N{ZERO WIDTH JOINER}"
        or is_skin_tone
    )


def _code_points(text: str) -> list[int]:
    return list(range(1, len(text)))


_LEVELS = (_pauses, _blanks, _characters, _code_points)
