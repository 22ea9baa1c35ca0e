"""Finds repetitions in a translation that its source does not have.

Pieces are counted, because a search repeats pieces; a loop may not contain a whole word.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from heed.text.spans import BLANK_SIGN

MIN_REPEATS = 3
"""So many equal n-grams one after the other are a loop of the search."""

MAX_REPEATED = 8
"""Longest repeated n-gram, in tokens."""

PHRASE = 4
"""A stretch of so many tokens that stands twice is a repetition, if the source repeats one token at
most."""

TWICE = 2
"""Least tokens that stand once more in a translation that is looked at."""


def find_loops(source_tokens: Sequence[str], tokens: Sequence[str]) -> list[tuple[int, int]]:
    """Ranges of tokens in which a translation repeats itself and its source does not.

    Args:
        source_tokens: of the source.
        tokens: of the translation.
    """
    n_again = len(tokens) - len(set(tokens))
    # The fast test first: most translations hold hardly a piece twice.
    if n_again < TWICE:
        return []
    direct = list(repeated(tokens))
    if direct:
        usual = _most_repeats(source_tokens)
        if often := _often(direct, usual):
            return often
        twice = [(a, b) for a, b, size in direct if _has_words(tokens[a : a + size])]
        if twice and usual < 2:
            return twice[:1]
    if n_again >= MIN_REPEATS - 1 and (among_marks := _among_marks(source_tokens, tokens)):
        return among_marks
    if n_again < PHRASE or (size := longest_again(tokens)) < PHRASE:
        return []
    if size < longest_again(source_tokens) + PHRASE - 1:
        return []
    places = _again(tokens, size)
    return [places] if places else []


def repeated(tokens: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Ranges in which an n-gram follows itself at least once, and its size.

    A range may begin with the last token of the one before, because loops may overlap.
    """
    places: dict[str, int] = {}
    start = 0
    for place, token in enumerate(tokens):
        before = places.get(token)
        places[token] = place
        if before is None or place - before > MAX_REPEATED or before < start:
            continue
        size, first, last = place - before, before, place + 1
        while first > start and tokens[first - 1] == tokens[first - 1 + size]:
            first -= 1
        while last < len(tokens) and tokens[last] == tokens[last - size]:
            last += 1
        if last - first >= 2 * size:
            yield first, last, size
            start = last - 1


def longest_again(tokens: Sequence[str]) -> int:
    """Length in tokens of the longest stretch that occurs twice without overlap."""
    if len(tokens) - len(set(tokens)) < TWICE:
        return 0
    # A stretch that occurs twice begins with a shorter one that does.
    most = 1
    while _again(tokens, most) is not None:
        most *= 2
    longer = range(most // 2 + 1, most)
    return most // 2 + bisect_left(longer, True, key=lambda size: _again(tokens, size) is None)


def _often(found: Sequence[tuple[int, int, int]], usual: int) -> list[tuple[int, int]]:
    """Ranges that repeat an n-gram more often than the source does, of those from `repeated`.

    Args:
        found: ranges and the sizes of their n-grams.
        usual: how often an n-gram of the source follows itself.
    """
    least = max(MIN_REPEATS, usual + 1)
    ranges: list[tuple[int, int]] = []
    for first, last, size in found:
        if last - first >= least * size and (not ranges or first >= ranges[-1][1]):
            ranges.append((first, last))
    return ranges


def _among_marks(source_tokens: Sequence[str], tokens: Sequence[str]) -> list[tuple[int, int]]:
    """Ranges in which words or their parts repeat themselves with marks between them."""
    places = [place for place, token in enumerate(tokens) if _bare(token)]
    found = list(repeated([_bare(tokens[place]) for place in places]))
    if not found:
        return []
    usual = _most_repeats([bare for token in source_tokens if (bare := _bare(token))])
    return [(places[a], places[b - 1] + 1) for a, b in _often(found, usual)]


def _bare(token: str) -> str:
    """The letters and digits of a token."""
    token = token.removeprefix(BLANK_SIGN)
    return token if token.isalnum() else "".join(c for c in token if c.isalnum())


def _most_repeats(tokens: Sequence[str]) -> int:
    """The largest number of times that an n-gram of a text follows itself."""
    return max(((last - first) // size for first, last, size in repeated(tokens)), default=1)


def _again(tokens: Sequence[str], size: int) -> tuple[int, int] | None:
    """The second place of a stretch of `size` tokens that occurs twice."""
    seen: dict[tuple[str, ...], int] = {}
    for start, stretch in enumerate(zip(*(tokens[i:] for i in range(size)), strict=False)):
        first = seen.setdefault(stretch, start)
        if start >= first + size:
            return start, start + size
    return None


def _has_words(tokens: Sequence[str]) -> bool:
    """Whether a stretch has the beginnings of two words, or is of a script without blanks."""
    starts = sum(token.startswith(BLANK_SIGN) for token in tokens)
    return starts >= 2 or (not starts and len(tokens) >= MIN_REPEATS)
