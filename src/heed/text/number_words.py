"""Small numbers spelled as words: `two`, `zwei`. Compound numbers and ordinals are not read."""

import re
from collections import Counter

WORDS: dict[str, dict[str, str]] = {
    language: {
        word: value
        for value, words in zip(
            ("2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"), row.split(), strict=True
        )
        for word in words.split("/")
    }
    for language, row in {
        "en": "two/both/couple/pair three four five six seven eight nine ten eleven twelve",
        "de": "zwei/beide/beiden/paar/zweier drei/dreier vier fünf sechs sieben acht neun zehn "
        "elf zwölf",
        "fr": "deux trois quatre cinq six sept huit neuf dix onze douze",
        "es": "dos/ambos/ambas tres cuatro cinco seis siete ocho nueve diez once doce",
        "it": "due tre quattro cinque sei sette otto nove dieci undici dodici",
        "nl": "twee/beide drie vier vijf zes zeven acht negen tien elf twaalf",
    }.items()
}
"""Number words by language: word → digits."""

# Left out of `WORDS`: most of these are also articles, and so occur in most sentences.
_ONE = {
    "en": "one",
    "de": "ein eine einem einen einer eines eins",
    "fr": "un une",
    "es": "un una uno",
    "it": "un una uno",
    "nl": "een één",
}
_WORD = re.compile(r"[^\W\d_]+")


def spelled_numbers(text: str, lang: str) -> Counter[str]:
    """How often a text may spell each small number as a word.

    Args:
        text: of any case.
        lang: code of its language; of one without number words here, nothing is counted.

    Returns:
        Digits → count. Indefinite articles count as 1.
    """
    language = lang[:2]
    if language not in WORDS:
        return Counter()
    known = WORDS[language] | dict.fromkeys(_ONE[language].split(), "1")
    return Counter(known[word] for word in _WORD.findall(text.lower()) if word in known)
