"""`Cache`: translations of earlier segments, limited in bytes."""

import hashlib
import json
import sys
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING

from heed.decode.options import DecodeOptions
from heed.serve.work.job import Call
from heed.translate.lines import Line
from heed.translate.result import Translation

if TYPE_CHECKING:
    from hashlib import _Hash as Hash


class Cache:
    """Keeps the most recently used translations. For one thread only.

    Args:
        max_bytes: approximate limit of its memory; 0 = keep none.

    Attributes:
        n_hits: number of segments found.
        n_misses: number of segments not found.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[bytes, tuple[Translation, int]] = OrderedDict()
        self.n_bytes = 0
        self.n_hits = 0
        self.n_misses = 0

    def get(self, key: bytes) -> Translation | None:
        """The translation for a key, if there is one."""
        if key not in self._kept:
            self.n_misses += 1
            return None
        self.n_hits += 1
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def put(self, key: bytes, translation: Translation) -> None:
        """Store a translation; the least recently used ones are dropped to make room."""
        if not self._max_bytes or (size := size_of(translation)) > self._max_bytes:
            return
        self._remove(key)
        self._kept[key] = translation, size
        self.n_bytes += size
        while self.n_bytes > self._max_bytes:
            self._remove(next(iter(self._kept)))

    def _remove(self, key: bytes) -> None:
        _, size = self._kept.pop(key, (None, 0))
        self.n_bytes -= size


class Keys:
    """Computes the keys of segments: hashes of everything that affects their translations.

    Args:
        version: version of the model.
        call: translation options.
        pairs: of the request, which guide its translations.
    """

    def __init__(self, version: str, call: Call, pairs: Sequence[tuple[str, str]] = ()) -> None:
        self._is_random = call.options.sample
        self._begun = _begun(version, call.options, call.alignment, call.alternatives)
        if pairs:
            self._begun = self._begun.copy()
            self._begun.update(_json(["memory", *pairs]))

    def of(self, line: Line) -> bytes | None:
        """The key of a segment; None if its translation is sampled at random."""
        if self._is_random:
            return None
        whole = self._begun.copy()
        whole.update(_json([line.text, line.prefix, line.target_lang, _terms(line)]))
        if line.rules is not None or line.localize_numbers is not None:
            rules = line.rules and [*line.rules.names, 0, *line.rules.patterns]
            whole.update(_json([rules, line.localize_numbers]))
        if line.keep_typos is not None:
            whole.update(_json(["keep_typos", line.keep_typos]))
        return whole.digest()


def _terms(line: Line) -> str | None:
    """A key for its glossary; None if it has none."""
    # Whether a term occurs is known only after the text is normalized and its typos are corrected.
    return line.glossary.digest if line.glossary else None


def size_of(translation: Translation) -> int:
    """The approximate memory of a translation in bytes."""
    own = (
        _strings([translation.text, *translation.tokens, *translation.source_tokens])
        + _numbers(len(translation.token_scores))
        + sum(_numbers(len(row)) for row in translation.alignment or [])
        + sum(150 + len(doubt.sentence) for doubt in translation.doubts)
        + sum(100 + _strings([match.source, match.target]) for match in translation.matches)
    )
    return 400 + own + sum(map(size_of, translation.alternatives))


@lru_cache(maxsize=64)
def _begun(version: str, options: DecodeOptions, alignment: bool, alternatives: int) -> "Hash":
    """The hash of the part that all segments of a request share; most requests share it, too."""
    # JSON instead of joined strings, so that no two requests have the same bytes.
    return hashlib.sha256(_json([version, asdict(options), alignment, alternatives]))


_encode = json.JSONEncoder(sort_keys=True).encode


def _json(value: object) -> bytes:
    return _encode(value).encode()


def _strings(strings: Iterable[str]) -> int:
    return sum(8 + sys.getsizeof(string) for string in strings)


def _numbers(count: int) -> int:
    return 56 + 32 * count
