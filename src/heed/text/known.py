"""The words that a model has learned from, so that it copies names that it cannot know.

A word counts as known if the sources of the training pairs have it more than once. Whether unknown
words with a capital are names is counted, too: in English most of them are, in German most are not.
Not here: what becomes of a name; it is a protected span like others.
"""

import json
import re
import string
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from heed.errors import FormatError
from heed.text.capitals import in_small_letters
from heed.text.scripts import main_script, script_of

FORMAT = "heed known words 1"

MOST_WORDS = 250_000
"""Words that are remembered, the most frequent ones: a megabyte."""

LEAST_COPIED = 0.3
"""Least share of rare words with a capital that the targets repeat, for unknown ones to be names.

Multi30k and 53,000 strings of programs: 0.74 and 0.43 from English, 0.05 and 0.02 from German.
"""

MOST_TITLES = 0.01
"""Largest share of training sources in Title Case for a model that does not know it."""

LEAST_SCRIPT = 0.01
"""Least share of the training sources in a script whose words are read as text, not copied."""

_N_COMPARED = 1_000
_WORD = re.compile(r"[^\W\d_]+")
_NAME = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_BEGINS = re.compile(r"(?:^|[.!?…:;。！？]\s*)[\s\"'“”„«»‘’(\[¿¡]*$")
_INNER_CAPITAL = re.compile(r"(?<=.)[^\W\d_a-zäöüß]")
_SOLID = frozenset(("han", "kana", "thai"))
_EAST_ASIAN = frozenset(("han", "kana"))
_CALLS = re.compile(r"\s*:")

Place = tuple[int, int]
Pairs = Callable[[], Iterable[tuple[str, str]]]


@dataclass(frozen=True, eq=False)
class KnownWords:
    """Words by their checksums.

    Attributes:
        hashes: CRC-32 of each word without case, ascending, `(n_words,)`.
        has_names: whether unknown words with a capital inside a sentence are names.
        scripts: what sources are written in, as `scripts.main_script` calls it, without rare ones.
        has_titles: whether the model has learned from Lines Written Like This.
    """

    hashes: NDArray[np.uint32]
    has_names: bool
    scripts: tuple[str, ...]
    has_titles: bool = True

    @classmethod
    def learn(cls, pairs: Pairs) -> "KnownWords":
        """Count words.

        Args:
            pairs: sources and targets, from the first pair at each call.
        """
        counts, scripts = Counter[str](), Counter[str]()
        n_lines = n_titles = 0
        for src, _ in pairs():
            counts.update(src[start:end].casefold() for start, end in _words(src))
            scripts[main_script(src)] += 1
            n_lines += 1
            n_titles += _is_title(src)
        common = [word for word, count in counts.most_common(MOST_WORDS) if count > 1]
        hashes = np.unique(np.array([_hash(word) for word in common], dtype=np.uint32))
        own = tuple(sorted(name for name in scripts if scripts[name] >= LEAST_SCRIPT * n_lines))
        known = cls(hashes, True, own)
        n_rare = n_copied = 0
        for src, tgt in pairs():
            if n_rare >= _N_COMPARED:
                break
            for start, end in known.names(src, ()):
                n_rare += 1
                n_copied += has_word(tgt, src[start:end])
        has_titles = n_titles > MOST_TITLES * n_lines
        return cls(hashes, n_copied > LEAST_COPIED * max(1, n_rare), own, has_titles)

    def __contains__(self, word: str) -> bool:
        place = int(np.searchsorted(self.hashes, hash_ := _hash(word.casefold())))
        return place < len(self.hashes) and int(self.hashes[place]) == hash_

    def untitled(self, text: str, taken: Sequence[Place]) -> str | None:
        """A Line Written Like This in small letters, if the model knows no such lines; else None.

        Args:
            text: a source.
            taken: stretches that stay as they are, in order.
        """
        return None if self.has_titles or not _is_title(text) else in_small_letters(text, taken)

    def names(self, text: str, taken: Sequence[Place]) -> list[Place]:
        """Where words stand that the model cannot know and has to copy.

        These are words with a capital inside a sentence, or before a colon, if they are names
        (`has_names`), and words in another script than the sources'. A word that is one typing
        error away from a known one is none.

        Args:
            text: a source.
            taken: stretches to leave alone, in order.
        """
        found: list[Place] = []
        if self.has_names and (_INNER_CAPITAL.search(text) or ":" in text):
            found += self._capitalized(text)
        if not text.isascii() or "latin" not in self.scripts:
            found += self._of_other_scripts(text)
        return _disjoint(found, taken) if found else found

    def _capitalized(self, text: str) -> Iterator[Place]:
        words = [match.span() for match in _NAME.finditer(text)]
        n_capital = sum(text[start].isupper() for start, _ in words)
        is_title = len(words) > 2 and n_capital > 0.6 * len(words)
        for start, end in words:
            word = text[start:end]
            if end - start < 2 or not word[0].isupper():
                continue
            if script_of(word[0]) not in self.scripts or self._has_part(word):
                continue
            calls = _CALLS.match(text, end) is not None
            is_apart = text[start - 1 : start] == "(" or text[:start].endswith(", ")
            is_first = _BEGINS.search(text, max(0, start - 12), start) is not None
            is_name = calls or is_apart or not (is_first or is_title)
            if is_name and not self._is_misspelled(word):
                yield start, end

    def _has_part(self, word: str) -> bool:
        """Whether the word, or a part of it between hyphens, is known."""
        return any(part in self for part in word.split("-"))

    def _of_other_scripts(self, text: str) -> Iterator[Place]:
        """Stretches of unknown words in other scripts, with what stands between them."""
        begin = end = -1
        for first, last in _words(text):
            word = text[first:last]
            if not self._is_own(script_of(word[0])) and word not in self:
                begin = first if begin < 0 else begin
                end = last
            elif begin >= 0:
                yield begin, end
                begin = -1
        if begin >= 0:
            yield begin, end

    def _is_own(self, script: str) -> bool:
        is_east_asian = script in _EAST_ASIAN and not _EAST_ASIAN.isdisjoint(self.scripts)
        return script in self.scripts or is_east_asian

    def _is_misspelled(self, word: str) -> bool:
        """Whether a known word is one typing error away."""
        word = word.casefold()
        hashes = np.array([_hash(other) for other in _neighbors(word)], dtype=np.uint32)
        return bool(np.isin(hashes, self.hashes).any())

    def to_bytes(self) -> bytes:
        """The content of a file."""
        facts = {
            "format": FORMAT,
            "has_names": self.has_names,
            "scripts": self.scripts,
            "has_titles": self.has_titles,
        }
        return json.dumps(facts).encode() + b"\n" + self.hashes.astype("<u4").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, where: str | PathLike[str]) -> "KnownWords":
        """Read what `to_bytes` wrote.

        Raises:
            FormatError: it is something else.
        """
        head, _, rest = data.partition(b"\n")
        try:
            facts = json.loads(head)
            is_sound = facts["format"] == FORMAT and type(facts["has_names"]) is bool
            is_sound = is_sound and type(facts["has_titles"]) is bool
            scripts = facts["scripts"]
            is_sound = is_sound and isinstance(scripts, list) and len(rest) % 4 == 0
            is_sound = is_sound and all(isinstance(script, str) for script in scripts)
        except (ValueError, KeyError, TypeError):
            is_sound = False
        if not is_sound:
            raise FormatError(f"{where} does not hold known words as heed writes them.")
        hashes = np.frombuffer(rest, dtype="<u4")
        return cls(hashes, facts["has_names"], tuple(scripts), facts["has_titles"])


def _is_title(text: str) -> bool:
    """Whether all longer words of a line, four at least, begin with a capital."""
    words = [word for word in _WORD.findall(text) if len(word) > 3]
    return len(words) > 3 and all(word[0].isupper() and word[1:].islower() for word in words)


def _words(text: str) -> Iterator[Place]:
    """Runs of letters; those of a script without blanks are parted from others."""
    for match in _WORD.finditer(text):
        if match[0].isascii():
            yield match.span()
            continue
        start = match.start()
        for _, letters in groupby(match[0], lambda c: script_of(c) in _SOLID):
            end = start + sum(1 for _ in letters)
            yield start, end
            start = end


def has_word(text: str, word: str) -> bool:
    """Whether a text holds a word, and not as a part of another one."""
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        if not (text[start - 1 : start].isalpha() or text[end : end + 1].isalpha()):
            return True
        start = text.find(word, start + 1)
    return False


def _hash(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "replace"))


def _neighbors(word: str) -> Iterator[str]:
    """What a word with one typing error may have been: a letter more, less, other, or swapped."""
    letters = string.ascii_lowercase if word.isascii() else "".join({*word})
    for i in range(len(word) + 1):
        before, after = word[:i], word[i:]
        yield before + after[1:]
        yield before + after[1:2] + after[:1] + after[2:]
        for letter in letters:
            yield before + letter + after
            yield before + letter + after[1:]


def _disjoint(places: Iterable[Place], taken: Sequence[Place]) -> list[Place]:
    """Places that touch neither one another nor what is taken, in order."""
    found: list[Place] = []
    for start, end in sorted(places):
        if found and start < found[-1][1]:
            continue
        if not any(start < stop and begin < end for begin, stop in taken):
            found.append((start, end))
    return found
