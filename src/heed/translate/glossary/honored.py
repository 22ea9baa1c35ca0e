"""Checks that a translation has its required terms and no forbidden words."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from heed.translate.glossary.glossary import Glossary, Occurrence
from heed.translate.words import Span, word_spans

# Parts of words with hyphens count here: `E-Mail` is found in `E-Mail-Adresse`.
_JOINERS = re.compile(r"[-’'.,]")


def find_targets(
    text: str, occurrences: Sequence[Occurrence], *, is_large: bool = False
) -> list[Span | None]:
    """For each occurrence the place of one of its forms in a translation, if it is there.

    No two occurrences have the same place; long forms are found first.

    Args:
        text: of the translation.
        occurrences: of terms in its source.
        is_large: source and translation are lines in capitals.
    """
    spans = small_words(text)
    words = [text[start:end] for start, end in spans]
    folded = [word.casefold() for word in words]
    is_free = [True] * len(words)
    found: list[Span | None] = [None] * len(occurrences)
    forms = [
        (number, *form, one)
        for number, one in enumerate(occurrences)
        for form in map(_split, one.targets)
        if form[1][0] in folded
    ]
    forms.sort(key=lambda each: -len(each[1]))
    for number, form, wanted, one in forms:
        if found[number] is not None:
            continue
        n = len(form)
        for start in range(len(words) - n + 1):
            if folded[start : start + n] != wanted or not all(is_free[start : start + n]):
                continue
            is_exact = one.is_exact and not is_large
            is_first = not start and not one.is_kept
            if is_exact and not _is_exact(words[start : start + n], form, is_first=is_first):
                continue
            is_free[start : start + n] = [False] * n
            found[number] = (spans[start][0], spans[start + n - 1][1])
            break
    return found


def find_banned(
    text: str, occurrences: Sequence[Occurrence], glossary: Glossary, kept: Sequence[Span] = ()
) -> list[str]:
    """The forbidden words in a translation.

    Args:
        text: of the translation.
        occurrences: of terms in its source.
        glossary: the glossary of the terms.
        kept: places of required terms, which may contain words that are forbidden elsewhere.
    """
    found = []
    if glossary.banned:
        found += [match.entries[0] for match in glossary.never.find(text, kept)]
    banned = dict.fromkeys(each for one in occurrences for each in one.banned)
    if not banned:
        return found
    spans = small_words(text)
    folded = [text[start:end].casefold() for start, end in spans]
    for each in banned:
        wanted = _split(each)[1]
        n = len(wanted)
        for start in range(len(folded) - n + 1):
            first, last = spans[start][0], spans[start + n - 1][1]
            if folded[start : start + n] == wanted and not _touches(kept, first, last):
                found.append(each)
                break
    return found


def small_words(text: str) -> list[Span]:
    """Start and end of the words of a text; words with hyphens are divided."""
    spans = word_spans(text)
    n_alone = sum(
        _JOINERS.match(text, start) is not None for start, end in spans if end - start == 1
    )
    if n_alone == len(_JOINERS.findall(text)):
        return spans  # no joiner is inside a word
    return [part for span in spans for part in _parts(text, span)]


def _touches(taken: Iterable[Span], start: int, end: int) -> bool:
    return any(a < end and start < b for a, b in taken)


@lru_cache(maxsize=10_000)
def _split(text: str) -> tuple[list[str], list[str]]:
    """The words of a form, and in lower case; cached, because they are searched for often."""
    words = [text[start:end] for start, end in small_words(text)]
    return words, [word.casefold() for word in words]


def _parts(text: str, span: Span) -> list[Span]:
    start, end = span
    if end - start == 1 or not (joiners := list(_JOINERS.finditer(text, start, end))):
        return [span]
    parts: list[Span] = []
    for joiner in joiners:
        parts += ((start, joiner.start()), joiner.span())
        start = joiner.end()
    return [part for part in [*parts, (start, end)] if part[0] < part[1]]


def _is_exact(words: Sequence[str], form: Sequence[str], *, is_first: bool) -> bool:
    """Whether words equal those of a form; at the start of a text, also with a capital."""
    capital = [form[0][:1].upper() + form[0][1:], *form[1:]]
    return list(words) in ([*form], capital) if is_first else list(words) == [*form]
