"""The words that a model has learned from, to find names that it does not know and must copy.

A word is known if it occurs more than once in the sources of the training pairs. Whether unknown
words with a capital are names is counted, too: in English most of them are, in German most are not.
A name becomes a protected span like others. `readings.py` corrects misspelled words and unusual
case.
"""

import json
import re
import string
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, lru_cache
from itertools import islice
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.disk.files import strict_json
from heed.errors import FormatError
from heed.text.protection.pattern import MARKS, SOLID_MARKS, WORD
from heed.text.scripts import SOLID as SOLID_CHARACTERS
from heed.text.scripts import main_script, script_of
from heed.text.spans import overlaps
from heed.text.typos import (
    LIMITS,
    MAX_LENGTH,
    MOST_FALSE,
    MOST_LETTERS,
    Limits,
    correct,
    level_of,
)

FORMAT = "heed known words 2"

MOST_WORDS = 250_000
"""Words that are remembered, the most frequent ones: two megabytes."""

LEAST_COPIED = 0.3
"""Least share of rare words with a capital that the targets repeat, for unknown ones to be names.

Multi30k and 53,000 strings of programs: 0.74 and 0.43 from English, 0.05 and 0.02 from German.
"""

LEAST_SCRIPT = 0.01
"""Least share of the training sources in a script whose words are read as text, not copied."""

_N_COMPARED = 1_000
_N_CASED = 200_000
_N_RARE = 1_000
_CACHE_SIZE = 1 << 14


def _words(marks: str) -> re.Pattern[str]:
    """Runs of letters with the marks after them; those of scripts without blanks are apart."""
    # Possessive: a very long word takes no more memory.
    usual = rf"(?:[^\W\d_{SOLID_CHARACTERS}]++{marks})++"
    return re.compile(rf"{usual}|(?:(?:(?=[{SOLID_CHARACTERS}])[^\W\d_])++{marks})++")


_WORD, _BARE_WORD = _words(f"[{MARKS}{SOLID_MARKS}]*+"), _words("")
_ASCII_WORD = re.compile("[A-Za-z]+")
_NAME = re.compile(f"{WORD}(?:-{WORD})*")
_BEGINS = re.compile(r"(?:^|[.!?…:;。！？]\s*)[\s\"'“”„«»‘’(\[¿¡]*$")
_INNER_CAPITAL = re.compile(r"(?<=.)[^\W\d_a-zäöüß]")
SOLID = frozenset(("han", "kana", "thai"))
"""Scripts without blanks between words."""

_EAST_ASIAN = frozenset(("han", "kana"))
ENDS = frozenset(".!?:…。！？")
_UNCLEAR = 128
_CALLS = re.compile(r"\s*:")

Place = tuple[int, int]
Pairs = Callable[[], Iterable[tuple[str, str]]]


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownWords:
    """Words by their checksums, with their frequency and case; words seen once are included.

    Attributes:
        hashes: CRC-32 of each word without case, ascending, `(n_words,)`.
        levels: the frequency of each, as `typos.level_of` gives it, `(n_words,)`.
        capitals: which letters of each are usually capitals, the first letter as the lowest bit,
            `(n_words,)`.
        larges: how often each begins with a capital inside a line, in 255ths, `(n_words,)`.
        letters: of the words, the most frequent ones, in order.
        has_names: whether unknown words with a capital inside a sentence are names.
        scripts: scripts of the sources, as `scripts.main_script` calls them, without rare ones.
        begins_large: whether most sources begin with a capital.
        limits: the conditions for correcting a misspelled word; None = no corrections.
        has_marks: whether combining marks are parts of words; in models of earlier versions they
            end words.
    """

    hashes: NDArray[np.uint32]
    levels: NDArray[np.uint8]
    capitals: NDArray[np.uint16]
    larges: NDArray[np.uint8]
    letters: str
    has_names: bool
    scripts: tuple[str, ...]
    begins_large: bool
    limits: Limits | None
    has_marks: bool = True

    @classmethod
    def learn(cls, pairs: Pairs) -> "KnownWords":
        """Count words.

        Args:
            pairs: sources and targets, from the first pair at each call.
        """
        counted = _Counts()
        for src, _ in pairs():
            counted.add(src)
        known = counted.known()
        n_rare = n_copied = 0
        for src, tgt in pairs():
            if n_rare >= _N_COMPARED:
                break
            for start, end in known.names(src, ()):
                n_rare += 1
                n_copied += has_word(tgt, src[start:end])
        return replace(known, has_names=n_copied > LEAST_COPIED * max(1, n_rare))

    def __getstate__(self) -> dict[str, Any]:
        """Pickled without the cache of look-ups."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __contains__(self, word: str) -> bool:
        place = self.place_of(word)
        return place >= 0 and bool(self.levels[place])

    def place_of(self, word: str) -> int:
        """The index of a word in the arrays; -1 = it was never seen."""
        return self._places(word)

    def has_seen_all(self, text: str) -> bool:
        """Whether each word of a text was seen, even if only once; takes a microsecond or two."""
        return min(map(self._places, self._pattern(text).findall(text)), default=0) >= 0

    def word_places(self, text: str) -> Iterator[Place]:
        """The places of the words of a text, as those that are known were counted."""
        return (match.span() for match in self._pattern(text).finditer(text))

    def _pattern(self, text: str) -> re.Pattern[str]:
        return _pattern(text, has_marks=self.has_marks)

    @cached_property
    def _places(self) -> Callable[[str], int]:
        """`place_of`, cached: most words of a text have been looked up before."""

        def find(word: str) -> int:
            # A number of another type would convert the whole array.
            hash_ = np.uint32(_hash(word.casefold()))
            place = int(self.hashes.searchsorted(hash_))
            is_there = place < len(self.hashes) and self.hashes[place] == hash_
            return place if is_there else -1

        return lru_cache(_CACHE_SIZE)(find)

    def levels_of(self, words: Sequence[str]) -> list[int]:
        """The frequencies of words, as levels; 0 = seen once or never."""
        hashes = np.array([_hash(word.casefold()) for word in words], dtype=np.uint32)
        places = np.searchsorted(self.hashes, hashes).clip(max=max(0, len(self.hashes) - 1))
        if not len(self.hashes):
            return [0] * len(words)
        found: list[int] = np.where(self.hashes[places] == hashes, self.levels[places], 0).tolist()
        return found

    @cached_property
    def correct(self) -> Callable[[str], str | None]:
        """A function from a word that was never seen to its correction; None = it is not clear."""
        limits = self.limits

        def find(word: str) -> str | None:
            if limits is None:
                return None
            return correct(word, self.letters, self.levels_of, limits)

        return lru_cache(_CACHE_SIZE)(find)

    def names(self, text: str, taken: Sequence[Place]) -> list[Place]:
        """The places of words that the model does not know and must copy.

        These are words with a capital inside a sentence, or before a colon, if they are names
        (`has_names`), and words in another script than the sources'. A word that is one typing
        error away from a known one is not a name.

        Args:
            text: a source.
            taken: stretches to skip, in order.
        """
        found: list[Place] = []
        if self.has_names and (has_inner_capital(text) or ":" in text):
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
            is_name = calls or is_apart or not (begins_sentence(text, start) or is_title)
            if is_name and not self._is_misspelled(word):
                yield start, end

    def _has_part(self, word: str) -> bool:
        """Whether the word, or a part of it between hyphens, is known."""
        return any(part in self for part in self._pattern(word).findall(word))

    def _of_other_scripts(self, text: str) -> Iterator[Place]:
        """Stretches of unknown words in other scripts, with the text between them."""
        begin = end = -1
        for first, last in self.word_places(text):
            word = text[first:last]
            if not self._is_own(script_of(word[0])) and word not in self:
                begin = first if begin < 0 else begin
                end = last
            elif begin >= 0:
                yield begin, _after_marks(text, end)
                begin = -1
        if begin >= 0:
            yield begin, _after_marks(text, end)

    def _is_own(self, script: str) -> bool:
        is_east_asian = script in _EAST_ASIAN and not _EAST_ASIAN.isdisjoint(self.scripts)
        return script in self.scripts or is_east_asian

    def _is_misspelled(self, word: str) -> bool:
        """Whether a known word is one typing error away."""
        word = word.casefold()
        return len(word) <= MAX_LENGTH and any(self.levels_of(list(_neighbors(word))))

    def to_bytes(self) -> bytes:
        """The content of a file."""
        facts = {
            "format": FORMAT,
            "n_words": len(self.hashes),
            "letters": self.letters,
            "has_names": self.has_names,
            "scripts": self.scripts,
            "begins_large": self.begins_large,
            "limits": self.limits and asdict(self.limits),
            "has_marks": self.has_marks,
        }
        arrays = [getattr(self, name).astype(kind).tobytes() for name, kind in _ARRAYS.items()]
        return b"".join([json.dumps(facts).encode(), b"\n", *arrays])

    @classmethod
    def from_bytes(cls, data: bytes, where: str | PathLike[str]) -> "KnownWords":
        """Read the result of `to_bytes`.

        Raises:
            FormatError: it is something else.
        """
        head, _, rest = data.partition(b"\n")
        try:
            facts = strict_json(head.decode())
            if facts["format"] != FORMAT:
                raise ValueError(facts["format"])
            limits = facts["limits"]
            return cls(
                **_arrays(rest, int(facts["n_words"])),
                letters=str(facts["letters"]),
                has_names=bool(facts["has_names"]),
                scripts=tuple(map(str, facts["scripts"])),
                begins_large=bool(facts["begins_large"]),
                limits=limits and Limits(int(limits["least"]), int(limits["ratio"])),
                has_marks=bool(facts.get("has_marks")),
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            raise FormatError(f"{where} is not in heed's format for known words.") from None


_ARRAYS = {"hashes": "<u4", "capitals": "<u2", "levels": "u1", "larges": "u1"}
"""The arrays in the order of the file."""


def _arrays(data: bytes, n_words: int) -> dict[str, Any]:
    """The arrays of a file.

    Raises:
        ValueError: they are not as long as they should be.
    """
    sizes = {name: n_words * np.dtype(kind).itemsize for name, kind in _ARRAYS.items()}
    if n_words < 0 or sum(sizes.values()) != len(data):
        raise ValueError(f"{len(data)} bytes for {n_words} words")
    found: dict[str, Any] = {}
    for name, kind in _ARRAYS.items():
        found[name] = np.frombuffer(data[: sizes[name]], dtype=kind, count=n_words)
        data = data[sizes[name] :]
    return found


class _Counts:
    """Words counted, line by line."""

    def __init__(self) -> None:
        self.words = Counter[str]()
        self.scripts = Counter[str]()
        self.inner = Counter[str]()
        """Words inside lines, as they are written."""
        self.running = Counter[str]()
        """Those of lines in which most begin with a small letter."""
        self.n_lines = self.n_large = 0

    def add(self, text: str) -> None:
        """Count the words of a source."""
        places = [match.span() for match in _pattern(text, has_marks=True).finditer(text)]
        words = [text[start:end] for start, end in places]
        self.words.update([word.casefold() for word in words])
        self.scripts[main_script(text)] += 1
        self.n_lines += 1
        self.n_large += bool(words) and words[0][0].isupper()
        if self.n_lines <= _N_CASED:
            inner = [
                word
                for word, (start, _) in zip(words[1:], places[1:], strict=True)
                if text[max(0, start - 2)] not in ENDS
            ]
            self.inner.update(inner)
            if 2 * sum(word[0].isupper() for word in inner) <= len(inner):
                self.running.update(inner)

    def known(self) -> KnownWords:
        """The counts as `KnownWords`; unknown words with a capital are assumed to be names."""
        common = [word for word, _ in self.words.most_common(MOST_WORDS)]
        by_hash = {_hash(word): word for word in reversed(common)}
        hashes = np.array(sorted(by_hash), dtype=np.uint32)
        words = [by_hash[hash_] for hash_ in hashes.tolist()]
        least = LEAST_SCRIPT * self.n_lines
        larges, capitals = self._larges(), self._capitals()
        letters = self._letters()
        return KnownWords(
            hashes=hashes,
            levels=np.array([level_of(self.words[word]) for word in words], dtype=np.uint8),
            capitals=np.array([capitals.get(word, 0) for word in words], dtype=np.uint16),
            larges=np.array([larges.get(word, _UNCLEAR) for word in words], dtype=np.uint8),
            letters=letters,
            has_names=True,
            scripts=tuple(sorted(name for name in self.scripts if self.scripts[name] >= least)),
            begins_large=2 * self.n_large > self.n_lines,
            limits=self._limits(letters),
        )

    def _larges(self) -> dict[str, int]:
        """How often words begin with a capital inside lines, in 255ths; unreliable if rare."""
        seen, large = Counter[str](), Counter[str]()
        for word, count in self.inner.items():
            seen[folded := word.casefold()] += count
            large[folded] += count * word[0].isupper()
        return {word: round(255 * (large[word] + 0.5) / (n + 1)) for word, n in seen.items()}

    def _capitals(self) -> dict[str, int]:
        """Which letters of words are usually capitals, as bits."""
        seen = Counter[str]()
        best: dict[str, tuple[int, str]] = {}
        for word, count in self.running.items():
            seen[folded := word.casefold()] += count
            best[folded] = max(best.get(folded, (0, "")), (count, word))
        return {
            folded: capitals_of(word)
            for folded, (count, word) in best.items()
            if 2 * count > seen[folded] and not word.islower()
        }

    def _letters(self) -> str:
        counts = Counter[str]()
        for word, count in (self.inner or self.words).items():
            # Not a set: the order of strings in it differs by process, and decides between equals.
            for letter in filter(str.isalpha, dict.fromkeys(word.lower())):
                counts[letter] += count
        return "".join(sorted(letter for letter, _ in counts.most_common(MOST_LETTERS)))

    def _limits(self, letters: str) -> Limits | None:
        """The loosest limits by which few words that were seen once count as misspelled."""
        rare = [word for word, count in self.words.items() if count == 1]
        some = list(islice(rare, 0, None, max(1, len(rare) // _N_RARE)))

        def levels(words: Sequence[str]) -> list[int]:
            return [level_of(self.words[word.casefold()]) for word in words]

        for limits in LIMITS:
            n_wrong = sum(correct(word, letters, levels, limits) is not None for word in some)
            if n_wrong * len(rare) <= MOST_FALSE * self.n_lines * max(1, len(some)):
                return limits
        return None


def capitals_of(word: str) -> int:
    """Which of the first 16 letters of a word are capitals, the first one as the lowest bit."""
    return sum(letter.isupper() << place for place, letter in enumerate(word[:16]))


def begins_sentence(text: str, start: int) -> bool:
    """Whether a word that starts there is the first one of a sentence."""
    return _BEGINS.search(text, max(0, start - 12), start) is not None


def _pattern(text: str, *, has_marks: bool) -> re.Pattern[str]:
    """The expression whose matches are the words of a text."""
    if text.isascii():
        return _ASCII_WORD  # the same, but faster
    return _WORD if has_marks else _BARE_WORD


def _after_marks(text: str, end: int) -> int:
    """The end of a word, with the marks that are combined with its last letter."""
    while end < len(text) and unicodedata.category(text[end])[0] == "M":
        end += 1
    return end


def has_inner_capital(text: str) -> bool:
    """Whether a text has a capital, or a letter without case, after its first character."""
    if text.isascii():
        return text[1:] != text[1:].lower()
    return _INNER_CAPITAL.search(text) is not None


def has_word(text: str, word: str) -> bool:
    """Whether a text contains a word, not only as a part of another one."""
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
    """Candidates for a word with one typing error: a letter more, less, changed or swapped."""
    letters = string.ascii_lowercase if word.isascii() else "".join({*word})
    for i in range(len(word) + 1):
        before, after = word[:i], word[i:]
        yield before + after[1:]
        yield before + after[1:2] + after[:1] + after[2:]
        for letter in letters:
            yield before + letter + after
            yield before + letter + after[1:]


def _disjoint(places: Iterable[Place], taken: Sequence[Place]) -> list[Place]:
    """Places that touch neither one another nor taken stretches, in order."""
    found: list[Place] = []
    for start, end in sorted(places):
        if found and start < found[-1][1]:
            continue
        if not overlaps(taken, start, end):
            found.append((start, end))
    return found
