"""The built-in corpus: thousands of short sentences in Chinese, English, Spanish and French.

They are built from some two hundred words, so a model learns them in minutes and a person can
check them by eye. `synchronous.py` generates them from `corpus/*.toml`.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from itertools import combinations

from heed.data.readers import Pair
from heed.demo.inflection import LANGUAGES
from heed.demo.synchronous import Sentence, portraits, sentences
from heed.errors import ConfigError

DIRECTIONS = (("zh", "en"), ("en", "es"), ("en", "fr"), ("en", "zh"))

Example = tuple[str, str, str, str]
"""(source_lang, target_lang, src, tgt)."""

WORKED: list[Example] = [
    ("zh", "en", "纽约是一座城市", "New York is a city"),
    ("en", "zh", "Why do we work?", "为什么要工作？"),
    ("en", "es", "You are welcome", "De nada"),
    ("en", "fr", "I am a student", "Je suis étudiant"),
    (
        "en",
        "fr",
        "The animal didn't cross the street because it was too tired",
        "L'animal n'a pas traversé la rue parce qu'il était trop fatigué",
    ),
    (
        "en",
        "fr",
        "The animal didn't cross the street because it was too wide",
        "L'animal n'a pas traversé la rue parce qu'elle était trop large",
    ),
]
"""The worked sentences of tutorials: always in training."""


def tokens(text: str, language: str) -> list[str]:
    """Words and punctuation of a sentence, or characters in Chinese."""
    return list(text) if language == "zh" else re.findall(r"[\w']+|[^\w\s]", text)


def _check_languages(source_lang: str, target_lang: str) -> None:
    if source_lang == target_lang or not {source_lang, target_lang} <= set(LANGUAGES):
        raise ConfigError(
            f"The built-in corpus needs two different languages of {', '.join(LANGUAGES)}, "
            f"but is asked for {source_lang} to {target_lang}."
        )


def _project(chosen: Iterable[Sentence], source_lang: str, target_lang: str) -> list[Pair]:
    """The chosen sentences as pairs of one direction, without those missing in either language."""
    texts = (sentence.texts for sentence in chosen)
    sayable = [text for text in texts if source_lang in text and target_lang in text]
    origin = f"built-in {source_lang}-{target_lang}"
    return [
        Pair(text[source_lang], text[target_lang], line, origin)
        for line, text in enumerate(sayable, start=1)
    ]


def pairs(source_lang: str, target_lang: str) -> list[Pair]:
    """All sentence pairs of one direction, distinct on both sides, in a fixed order.

    Args:
        source_lang: zh, en, es or fr.
        target_lang: another of these.

    Raises:
        ConfigError: a language is not one of these, or both are the same.
    """
    _check_languages(source_lang, target_lang)
    return _project(sentences(), source_lang, target_lang)


def word_text(language: str, *, seed: int = 1) -> list[str]:
    """Lines to learn word vectors from: all sentences and portraits of people, in random order.

    The portraits describe a king, a queen, a man, a woman and four others by what they do. The
    words for royal or common, old or young, male or female occur with each of them in the same
    way. The portraits are not among the `pairs`.

    Args:
        language: zh, en, es or fr.
        seed: decides the order.

    Raises:
        ConfigError: the language is not one of these.
    """
    if language not in LANGUAGES:
        raise ConfigError(
            f"The built-in corpus has {', '.join(LANGUAGES)}, but is asked for {language}."
        )
    spoken = [s.texts[language] for s in (*sentences(), *portraits()) if language in s.texts]
    random.Random(seed).shuffle(spoken)
    return spoken


def _known_by_heart() -> set[int]:
    """Indices of the sentences that must stay in training: worked examples and idioms."""
    worked = {
        said
        for source_lang, target_lang, src, tgt in WORKED
        for said in ((source_lang, src), (target_lang, tgt))
    }
    return {
        position
        for position, sentence in enumerate(sentences())
        if len(sentence.words) == 1 or not worked.isdisjoint(sentence.texts.items())
    }


@cache
def _split(seed: int) -> tuple[tuple[Sentence, ...], tuple[Sentence, ...]]:
    """One split for all languages, so that a test sentence is new in every direction.

    It draws two words that occur together in some sentences and moves all these sentences to the
    test: training has "draw" and "frog", but never together. It skips a draw that would leave
    training with less than half of a word's occurrences in any language, or without a sentence of
    `_known_by_heart`.
    """
    corpus = sentences()
    seen = [
        [(language, word) for language in text for word in tokens(text[language], language)]
        for text in (sentence.texts for sentence in corpus)
    ]
    left = Counter(word for words in seen for word in words)
    floor = {word: (count + 1) // 2 for word, count in left.items()}
    meetings: dict[tuple[str, str], set[int]] = {}
    for position, sentence in enumerate(corpus):
        for couple in combinations(sorted(sentence.words), 2):
            meetings.setdefault(couple, set()).add(position)
    by_heart, test = _known_by_heart(), set[int]()
    couples = sorted(meetings)
    random.Random(seed).shuffle(couples)
    for couple in couples:
        held_out = meetings[couple] - test
        if held_out & by_heart or len(held_out) > len(corpus) // 300:
            continue
        loss = Counter(word for position in held_out for word in seen[position])
        if all(left[word] - count >= floor[word] for word, count in loss.items()):
            left -= loss
            test |= held_out
        if len(test) >= len(corpus) // 10:
            break
    train = tuple(sentence for i, sentence in enumerate(corpus) if i not in test)
    return train, tuple(corpus[i] for i in sorted(test))


def compositional_split(
    source_lang: str, target_lang: str, seed: int
) -> tuple[list[Pair], list[Pair]]:
    """Train and test pairs of one direction: test words are known, their combinations are new.

    Each test sentence holds two words that never occur together in training, in any direction. No
    sentence, on either side, is in both parts. Training has each word of the test, on both sides.

    Args:
        source_lang: zh, en, es or fr.
        target_lang: another of these.
        seed: decides which combinations are held out; about a tenth of all sentences.

    Raises:
        ConfigError: a language is not one of these, or both are the same.
    """
    _check_languages(source_lang, target_lang)
    train, test = _split(seed)
    return _project(train, source_lang, target_lang), _project(test, source_lang, target_lang)


def demo_corpus(
    seed: int,
    *,
    train_size: int | None = None,
    times_by_heart: int = 1,
    dev_size: int = 50,
    test_size: int | None = None,
) -> tuple[list[Example], list[Example], list[Example]]:
    """The corpus of `heed demo`: four directions for one model, as train, dev and test.

    Args:
        seed: decides the split, the sample and the order of training.
        train_size: training pairs per direction. It takes all pairs in which two words of one side
            first occur together, then others up to this number. None takes all pairs.
        times_by_heart: how often training contains each worked sentence and each idiom.
        dev_size: unseen pairs per direction that go to dev.
        test_size: unseen pairs per direction that go to the test, None takes all that are left.

    Returns:
        Three lists: train shuffled, the others one direction after the other.
    """
    generator = random.Random(seed)
    by_heart = {said for i in _known_by_heart() for said in sentences()[i].texts.items()}
    train: list[Example] = []
    dev: list[Example] = []
    test: list[Example] = []
    for source_lang, target_lang in DIRECTIONS:
        seen, unseen = (
            [(source_lang, target_lang, pair.src, pair.tgt) for pair in part]
            for part in compositional_split(source_lang, target_lang, seed)
        )
        generator.shuffle(seen)
        known = [example for example in seen if (source_lang, example[2]) in by_heart]
        others = [example for example in seen if (source_lang, example[2]) not in by_heart]
        train += known * times_by_heart
        train += others if train_size is None else _sample(others, train_size)
        # The same order in each direction, so that a dev pair of one is not a test pair of another.
        random.Random(seed).shuffle(unseen)
        dev += unseen[:dev_size]
        test += unseen[dev_size:] if test_size is None else unseen[dev_size : dev_size + test_size]
    generator.shuffle(train)
    return train, dev, test


def _sample(examples: Iterable[Example], size: int) -> list[Example]:
    """The examples in which two words of one side first occur together, then others."""
    met = defaultdict[tuple[str, str], set[str]](set)
    needed: list[Example] = []
    rest: list[Example] = []
    for example in examples:
        is_needed = False
        for language, text in zip(example[:2], example[2:], strict=True):
            words = set(tokens(text, language))
            for word in words:
                others = met[language, word]
                is_needed |= not words <= others
                others |= words
        (needed if is_needed else rest).append(example)
    return needed + rest[: max(0, size - len(needed))]
