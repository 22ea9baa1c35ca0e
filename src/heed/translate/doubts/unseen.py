"""Finds sources of words that a model has never seen, most likely in another language.

This needs no development pairs; the words are counted before training.
"""

from heed.text.known import KnownWords
from heed.text.scripts import is_solid

LEAST = 2
"""Fewest unseen words."""

SHARE = 0.5
"""They have to be more than this share of the words.

Of 5,500 sentences of Multi30k and strings of programs one has so many, of their German translations
99.7 % and 90 %; of Tatoeba's German sentences 98 % and 90 %.
"""


def is_of_unseen_words(known: KnownWords, source: str) -> bool:
    """Whether a model has never seen most words of a source.

    Args:
        known: the words that it has seen.
        source: the text; False for scripts without blanks.
    """
    if known.has_seen_all(source):
        return False
    n_words = n_unseen = 0
    for start, end in known.word_places(source):
        if end - start > 1 and not is_solid(source[start]):
            n_words += 1
            n_unseen += known.place_of(source[start:end]) < 0
    return n_unseen >= LEAST and n_unseen > SHARE * n_words
