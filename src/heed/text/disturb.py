"""Disturbs text: removes capitals, makes typing errors, changes blanks and quotes.

Pure functions of a text and a generator, for any script. They change words and punctuation, never
text that must be copied: numbers, fields, tags, addresses, code. Not here: invented names and spans
(`invent.py`).
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TypeVar

import numpy as np

from heed.text.letter_case import TURKISH, lower, upper
from heed.text.protection.numerals import RAISED
from heed.text.protection.pattern import MARKS
from heed.text.scripts import main_script, neighbors, script_of

T = TypeVar("T")

Disturbance = Callable[[str, np.random.Generator], str]
"""A text → the text disturbed. Normalize it before it becomes ids."""

KEPT = re.compile(
    r"https?://\S+|www\.\S+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    r"|`[^`]+`|<[^<>\s][^<>]*>|&[#\w]+;|\$?\{+[^{}]*\}+|%\([^()]*\)[a-zA-Z]"
    r"|%(?:\d+\$)?[-+#0]*(?:\d+|\*)?(?:\.\d+)?(?:hh|h|ll|l|j|z|t|L)?[a-zA-Z@%]"
    r"|(?:[A-Za-z]:)?(?:[\\/][\w.-]+){2,}[\\/]?"
    rf"|\S*[\d{RAISED}]\S*"
    r"(?:[ \u00a0\u202f](?:%|[€$£¥]|°[CF]|[KMGT]i?B\b|px\b|[kcm]?[mgls]\b|[kM]?Hz\b))?"
)
"""Not `find_spans`, which does not find words such as `3rd` and `mp3`, and is slower."""
_SIGNS = re.compile(rf"[\d{RAISED}@%`<&{{\\/]|www\.")
"""Every match of `KEPT` contains one of these: most texts have none and are not searched twice."""

_WORD = re.compile(rf"[^\W\d_](?:[^\W\d_]|[{MARKS}]|['’](?=[^\W\d_]))*")
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_GERMAN = re.compile("[äöüßÄÖÜẞ]")
_FINAL = re.compile(r"[.!?…。．！？؟۔।։።]+(?=[\"'”’»“«」』)\]）]*\s*$)")
_INNER_MARK = re.compile(r"(?<=\w)[,.;:!?、。，；：！？؟،](?=\s|$)")
_COMMA = re.compile(r"(?<=[^\W\d])[,;،]\s+(?=[^\W\d])")
_IDEOGRAPHIC = frozenset(("han", "kana"))
_BLANK = re.compile(" ")
_BLANKS = ("\u00a0", "  ", "\u202f", " \u00a0")

_PAIRS = (
    "\u201c\u201d",
    "\u201e\u201c",
    "\u00ab\u00bb",
    "''",
    '""',
    "\u2018\u2019",
    "\u00bb\u00ab",
)
_QUOTED = re.compile(r"([\"“„«»])([^\"“”„«»]+)([\"”“»«])")
_APOSTROPHE = re.compile(r"(?<=[^\W\d_])['’](?=[^\W\d_])")
_DASH = re.compile(r"(?<=\s)(?:-|–|—|--)(?=\s)")
_DOTS = re.compile(r"\.\.\.|…")
_DASHES = ("-", "–", "—", "--")


def find_kept(text: str) -> list[tuple[int, int]]:
    """Start and end of the stretches that a disturbance does not change, ascending."""
    return [match.span() for match in KEPT.finditer(text)] if _SIGNS.search(text) else []


def disturb(text: str, kind: str, generator: np.random.Generator) -> str:
    """`text` with one disturbance; unchanged if the kind does not apply to it."""
    return KINDS[kind](text, generator)


def title(text: str) -> str:
    """Each word with a capital: `Ǆ` becomes `ǅ`; letters after an apostrophe stay lowercase."""
    is_turkish = not text.isascii() and TURKISH.search(text)

    def capitalized(match: re.Match[str]) -> str:
        word = match[0]
        if "\u10d0" <= word[0] <= "\u10ff":
            return word
        return ("İ" if is_turkish and word[0] == "i" else word[0].title()) + word[1:]

    return _WORD.sub(capitalized, text)


def typo(text: str, generator: np.random.Generator) -> str:
    """One letter swapped, dropped, doubled, without its accent or from the key beside it."""
    places = [
        (match.start(), match.end())
        for start, end in _between(text, find_kept(text))
        for match in _LETTERS.finditer(text, start, end)
    ]
    for _ in range(4 if places else 0):
        start, end = _one(places, generator)
        word = text[start:end]
        place = int(generator.random() * len(word))
        wrong = _one(_MISTAKES, generator)(word, place, text, generator)
        # After a dropped letter, two others may compose: heed's text is always in NFC.
        changed = unicodedata.normalize("NFC", f"{text[:start]}{wrong}{text[end:]}")
        if changed != text:
            return changed
    return text


Mistake = Callable[[str, int, str, np.random.Generator], str]
"""A word, the place of a letter in it, the text around, a generator → the word misspelled."""


def _swapped(word: str, place: int, text: str, generator: np.random.Generator) -> str:
    place = min(place, len(word) - 2)
    first, second = word[place], word[place + 1]
    if place == 0 and first.isupper() and second.islower() and len(second.upper()) == 1:
        first, second = first.lower(), second.upper()  # the capital stays first
    return word[:place] + second + first + word[place + 2 :]


def _dropped(word: str, place: int, text: str, generator: np.random.Generator) -> str:
    place = max(place, 1)
    return word[:place] + word[place + 1 :]


def _doubled(word: str, place: int, text: str, generator: np.random.Generator) -> str:
    place = max(place, 1)
    return word[: place + 1] + word[place:]


def _beside(word: str, place: int, text: str, generator: np.random.Generator) -> str:
    """Another key; without a keyboard, another letter of the text in the same script."""
    letter = word[place]
    script = script_of(letter)
    if script == "latin" and _GERMAN.search(text):
        script = "latin-qwertz"
    small = letter.lower()
    near = neighbors(script).get(small, "") if script in _LAYOUTS else ""
    if not near and script != "hangul":
        bare = unicodedata.normalize("NFD", small)[0]
        near = bare if bare != small and bare.isalpha() else ""
    if not near:
        near = "".join(c for c in text if c != letter and script_of(c) == script) or letter
    other = _one(near, generator)
    if letter.isupper() and len(other.upper()) == 1:
        other = other.upper()
    return word[:place] + other + word[place + 1 :]


_LAYOUTS = frozenset(("latin", "latin-qwertz", "cyrillic", "greek", "hebrew", "arabic"))
_MISTAKES: tuple[Mistake, ...] = (_swapped, _dropped, _doubled, _beside)


def no_end(text: str, generator: np.random.Generator) -> str:
    """Without its final mark."""
    return _at_end(text, lambda mark: "")


def double_end(text: str, generator: np.random.Generator) -> str:
    """With its final mark twice or three times, or followed by another one."""
    chance = generator.random()

    def more(mark: str) -> str:
        if len(mark) > 1 or mark == "…":
            return mark + mark[-1]
        return mark * (2 if chance < 0.6 else 3) if chance < 0.9 else mark + "!"

    return _at_end(text, more)


def spaces(text: str, generator: np.random.Generator) -> str:
    """A doubled or no-break blank, one before a mark, or none after a comma."""
    kept = find_kept(text)
    marks = [(match.start(), match.start(), " ") for match in _INNER_MARK.finditer(text)]
    commas = [(match.start(), match.end(), match[0][0]) for match in _COMMA.finditer(text)]
    odd: Sequence[str] = _BLANKS
    if main_script(text) in _IDEOGRAPHIC:
        letters = [character.isalpha() for character in text]
        joints = [(i, i) for i, both in enumerate(pairwise(letters), 1) if all(both)]
        odd = "\u3000 "
    else:
        joints = [match.span() for match in _BLANK.finditer(text)]
    count = int(generator.random() * 3) if marks else 1
    changes = [(*_one(joints, generator), _one(odd, generator)) for _ in range(count) if joints]
    for more in (marks, commas):
        if more and (not changes or generator.random() < 0.5):
            changes.append(_one(more, generator))
    return _replaced(text, changes, kept)


def quotes(text: str, generator: np.random.Generator) -> str:
    """With other quotes, apostrophes, dashes and dots."""
    kept = find_kept(text)
    pair = _one(_PAIRS, generator)
    dash = _one(_DASHES, generator)
    changes: list[tuple[int, int, str]] = []
    for match in _QUOTED.finditer(text):
        if not _touches(match.start(), match.start() + 1, kept) and not _touches(
            match.end() - 1, match.end(), kept
        ):
            changes.append((match.start(), match.start() + 1, pair[0]))
            changes.append((match.end() - 1, match.end(), pair[1]))
    for match in _APOSTROPHE.finditer(text):
        changes.append((*match.span(), "’" if match[0] == "'" else "'"))
    for match in _DASH.finditer(text):
        changes.append((*match.span(), dash if dash != match[0] else "–" if dash == "-" else "-"))
    for match in _DOTS.finditer(text):
        changes.append((*match.span(), "…" if match[0] == "..." else "..."))
    return _replaced(text, changes, kept)


def _one(choices: Sequence[T], generator: np.random.Generator) -> T:
    return choices[int(generator.random() * len(choices))]


def _at_end(text: str, change: Callable[[str], str]) -> str:
    match = _FINAL.search(text)
    if match is None:
        return text
    # After `4` or an address, too: such a mark belongs to the sentence.
    return f"{text[: match.start()]}{change(match[0])}{text[match.end() :]}"


def _replaced(text: str, changes: list[tuple[int, int, str]], kept: list[tuple[int, int]]) -> str:
    """`text` with the changes that touch neither kept stretches nor each other."""
    parts: list[str] = []
    done = 0
    for start, end, words in sorted(changes):
        if start >= done and not _touches(start, end, kept):
            parts += [text[done:start], words]
            done = end
    return "".join((*parts, text[done:]))


def _touches(start: int, end: int, kept: list[tuple[int, int]]) -> bool:
    """Whether a change would be inside a kept stretch, or adjacent to it."""
    return any((start < stop and end > begin) or begin < start < stop for begin, stop in kept)


def _between(text: str, kept: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The stretches of a text that may be changed."""
    done = 0
    for start, end in kept:
        yield done, start
        done = end
    yield done, len(text)


def _cased(text: str, generator: np.random.Generator, *, change: Callable[[str], str]) -> str:
    kept = find_kept(text)
    if not kept:
        return change(text)
    stretches = [change(text[start:end]) for start, end in _between(text, kept)]
    spans = [*(text[start:end] for start, end in kept), ""]
    return "".join(a + b for a, b in zip(stretches, spans, strict=True))


KINDS: dict[str, Disturbance] = {
    "upper": partial(_cased, change=upper),
    "title": partial(_cased, change=title),
    "lower": partial(_cased, change=lower),
    "typo": typo,
    "no_end": no_end,
    "double_end": double_end,
    "spaces": spaces,
    "quotes": quotes,
}
"""The disturbances of a text. Each is deterministic for a generator."""
