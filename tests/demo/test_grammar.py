from collections import Counter
from itertools import combinations
from typing import Any

import pytest

from heed.demo.grammar import (
    DIRECTIONS,
    WORKED,
    compositional_split,
    demo_corpus,
    pairs,
    tokens,
    word_text,
)
from heed.demo.synchronous import portraits, sentences
from heed.errors import ConfigError
from heed.vectors.config import VectorsConfig
from heed.vectors.corpus import split_words
from heed.vectors.learn import learn_vectors
from heed.vectors.table import analogy


@pytest.fixture(params=DIRECTIONS, ids="-".join)
def direction(request: pytest.FixtureRequest) -> tuple[str, str]:
    return request.param


def translation(source_lang: str, target_lang: str, src: str) -> str:
    return {pair.src: pair.tgt for pair in pairs(source_lang, target_lang)}[src]


def test_a_direction_has_thousands_of_sentences_distinct_on_both_sides(
    direction: tuple[str, str],
) -> None:
    corpus = pairs(*direction)
    assert 4_000 <= len(corpus) <= 10_000
    assert len({pair.src for pair in corpus}) == len(corpus)
    assert len({pair.tgt for pair in corpus}) == len(corpus)


def test_pairs_are_numbered_in_a_fixed_order(direction: tuple[str, str]) -> None:
    corpus = pairs(*direction)
    assert [pair.line for pair in corpus] == list(range(1, len(corpus) + 1))
    assert corpus == pairs(*direction)


def test_sentences_are_short_clean_lines() -> None:
    for sentence in sentences():
        for language, text in sentence.texts.items():
            assert text == " ".join(text.split())
            assert not set("{}|_") & set(text)
            assert 1 <= len(tokens(text, language)) <= (18 if language == "zh" else 15)


def test_the_vocabulary_stays_small() -> None:
    for language, most in {"zh": 250, "en": 300, "es": 400, "fr": 350}.items():
        texts = [sentence.texts.get(language, "") for sentence in sentences()]
        assert len({word.lower() for text in texts for word in tokens(text, language)}) <= most


@pytest.mark.parametrize("example", WORKED, ids=lambda example: example[2])
def test_worked_sentences_occur_verbatim_and_stay_in_training(example: tuple[str, ...]) -> None:
    """Claims 2, 5, 6."""
    source_lang, target_lang, src, tgt = example
    assert translation(source_lang, target_lang, src) == tgt
    for seed in range(3):
        train, _ = compositional_split(source_lang, target_lang, seed)
        assert (src, tgt) in {(pair.src, pair.tgt) for pair in train}


@pytest.mark.parametrize(
    ("target_lang", "src", "tgt"),
    [
        ("es", "The animal didn't cross the street because it was too tired",
         "El animal no cruzó la calle porque estaba demasiado cansado"),
        ("es", "The animal didn't cross the street because it was too wide",
         "El animal no cruzó la calle porque era demasiado ancha"),
        ("zh", "The animal didn't cross the street because it was too tired",
         "那只动物没有过马路，因为它太累了"),
        ("zh", "The animal didn't cross the street because it was too wide",
         "那只动物没有过马路，因为马路太宽了"),
        ("fr", "The cow didn't cross the canal because it was too scared",
         "La vache n'a pas traversé le canal parce qu'elle était trop effrayée"),
        ("fr", "The cow didn't cross the canal because it was too wide",
         "La vache n'a pas traversé le canal parce qu'il était trop large"),
    ],
)  # fmt: skip
def test_it_agrees_with_what_it_refers_to(target_lang: str, src: str, tgt: str) -> None:
    assert translation("en", target_lang, src) == tgt


@pytest.mark.parametrize(
    ("target_lang", "src", "tgt"),
    [
        ("fr", "I don't live in Paris", "Je n'habite pas à Paris"),
        ("fr", "I live in Spain", "J'habite en Espagne"),
        ("fr", "Is Italy a country?", "Est-ce que l'Italie est un pays ?"),
        ("fr", "She is a singer", "Elle est chanteuse"),
        ("fr", "We are tired", "Nous sommes fatigués"),
        ("fr", "I like water", "J'aime l'eau"),
        ("fr", "Madrid is a beautiful city", "Madrid est une belle ville"),
        ("fr", "Madrid is a quiet city", "Madrid est une ville tranquille"),
        ("fr", "My house is white", "Ma maison est blanche"),
        ("es", "I like water", "Me gusta el agua"),
        ("es", "Mary doesn't like mice", "A María no le gustan los ratones"),
        ("es", "She is a singer", "Ella es cantante"),
        ("es", "We are tired", "Estamos cansados"),
        ("es", "This shirt is red", "Esta camisa es roja"),
        ("es", "Madrid is a beautiful city", "Madrid es una ciudad bonita"),
        ("es", "Why do the children work?", "¿Por qué trabajan los niños?"),
        ("zh", "I am a student", "我是一名学生"),
        ("zh", "We are students", "我们是学生"),
        ("zh", "Why does Anna work?", "安娜为什么要工作？"),
        ("zh", "This shirt is red", "这件衬衫是红色的"),
        ("zh", "Madrid is a beautiful city", "马德里是一座美丽的城市"),
    ],
)  # fmt: skip
def test_words_agree_elide_and_take_their_place(target_lang: str, src: str, tgt: str) -> None:
    assert translation("en", target_lang, src) == tgt


def test_no_elision_or_contraction_is_missed() -> None:
    wrong = {
        "en": (" a apple", " a egg", " a orange", " a animal", " a engineer"),
        "es": (" de el ", " a el ", "¿ ", " ?"),
        "fr": (" de le ", " à le ", "e il", " je a", " ma o", " ce a", "que A", "ne a", "la e"),
        "zh": (" ", "?", "在在"),
    }
    for sentence in sentences():
        for language, text in sentence.texts.items():
            spaced = text if language == "zh" else f" {text.lower()} "
            assert not [part for part in wrong[language] if part in spaced], text


def test_every_question_is_marked_as_its_language_does() -> None:
    for sentence in sentences():
        if sentence.texts["en"].endswith("?") and "es" in sentence.texts:
            assert sentence.texts["es"].startswith("¿") and sentence.texts["es"].endswith("?")
            assert sentence.texts["fr"].endswith(" ?")
            assert sentence.texts["zh"].endswith("？")


def test_three_characters_in_five_orders_have_five_meanings() -> None:
    """Claim 9."""
    orders = ["吃饭没", "没吃饭", "没饭吃", "饭吃没", "饭没吃"]
    assert len({translation("zh", "en", order) for order in orders}) == 5
    assert not set(orders) & {sentence.texts.get("es") for sentence in sentences()}


def test_test_sentences_are_new_combinations_of_known_words(direction: tuple[str, str]) -> None:
    train, test = compositional_split(*direction, seed=1)
    assert len(train) + len(test) == len(pairs(*direction))
    assert 0.08 < len(test) / len(train) < 0.15
    for side, language in zip(("src", "tgt"), direction, strict=True):
        seen = [getattr(pair, side) for pair in train]
        unseen = [getattr(pair, side) for pair in test]
        assert not set(seen) & set(unseen)
        words = Counter(word for text in seen for word in tokens(text, language))
        assert all(words[word] for text in unseen for word in tokens(text, language))


def test_two_words_of_each_test_sentence_never_meet_in_training() -> None:
    train, test = compositional_split("en", "zh", seed=1)
    words_of = {sentence.texts["en"]: set(sentence.words) for sentence in sentences()}
    meetings = set()
    for pair in train:
        words = words_of[pair.src]
        meetings |= {(a, b) for a in words for b in words}
    for pair in test:
        words = words_of[pair.src]
        assert not {(a, b) for a in words for b in words} <= meetings


def test_the_split_is_the_same_in_all_directions() -> None:
    held_out = [
        {pair.src if source_lang == "en" else pair.tgt for pair in part[1]}
        for source_lang, target_lang in DIRECTIONS
        for part in [compositional_split(source_lang, target_lang, seed=2)]
    ]
    assert all(english == held_out[0] for english in held_out)


def test_the_seed_decides_the_split() -> None:
    assert compositional_split("en", "fr", 1) == compositional_split("en", "fr", 1)
    assert compositional_split("en", "fr", 1)[1] != compositional_split("en", "fr", 2)[1]


def test_the_demo_corpus_shares_no_sentence_between_its_parts() -> None:
    parts = demo_corpus(1, train_size=5_000, dev_size=50, test_size=100)
    n_by_heart = len(demo_corpus(1, times_by_heart=2)[0]) - len(demo_corpus(1)[0])
    assert [len(part) for part in parts] == [20_000 + n_by_heart, 200, 400]
    texts = []
    for part in parts:
        texts.append(
            {(lang, text) for s, t, src, tgt in part for lang, text in ((s, src), (t, tgt))}
        )
    train, dev, test = texts
    assert not train & dev and not train & test and not dev & test
    assert set(WORKED) <= set(parts[0])


def test_a_sampled_demo_corpus_still_shows_every_word_in_every_direction() -> None:
    train, dev, test = demo_corpus(3, train_size=1_500)
    for direction in DIRECTIONS:
        for side, language in zip((2, 3), direction, strict=True):
            known, asked = (
                {word for e in part if e[:2] == direction for word in tokens(e[side], language)}
                for part in (train, dev + test)
            )
            assert asked <= known


def test_in_a_sampled_demo_corpus_the_same_words_meet() -> None:
    whole, sampled, larger = (demo_corpus(3, train_size=size)[0] for size in (None, 0, 2500))
    assert len(sampled) < len(whole) / 2
    assert set(sampled) < set(larger) < set(whole)
    assert set(WORKED) <= set(sampled)
    meetings = [
        {
            (language, *couple)
            for source_lang, target_lang, src, tgt in part
            if (source_lang, target_lang) == ("en", "fr")
            for language, text in ((source_lang, src), (target_lang, tgt))
            for couple in combinations(sorted(set(tokens(text, language))), 2)
        }
        for part in (whole, sampled)
    ]
    assert meetings[0] == meetings[1]


def test_worked_sentences_and_idioms_can_be_repeated() -> None:
    once, *unseen = demo_corpus(5, train_size=0)
    thrice, *still = demo_corpus(5, train_size=0, times_by_heart=3)
    assert still == unseen
    counts = Counter(thrice)
    assert set(counts) == set(once) and set(counts.values()) == {1, 3}
    repeated = {example for example, count in counts.items() if count == 3}
    assert set(WORKED) <= repeated
    assert ("en", "es", "Good night", "Buenas noches") in repeated
    assert len(repeated) < len(once) / 50


def test_the_demo_corpus_is_whole_unless_sampled_and_decided_by_its_seed() -> None:
    train, dev, test = demo_corpus(5)
    assert len(train) + len(dev) + len(test) == sum(len(pairs(*d)) for d in DIRECTIONS)
    assert (train, dev, test) == demo_corpus(5)
    assert train != demo_corpus(6)[0]


@pytest.mark.parametrize(("source_lang", "target_lang"), [("en", "de"), ("en", "en")])
def test_other_languages_are_refused(source_lang: str, target_lang: str) -> None:
    message = f"two different languages of zh, en, es, fr, but is asked for en to {target_lang}"
    with pytest.raises(ConfigError, match=message):
        pairs(source_lang, target_lang)
    with pytest.raises(ConfigError, match=message):
        compositional_split(source_lang, target_lang, seed=1)


def test_portraits_say_the_same_in_every_language() -> None:
    said = {
        portrait.texts["en"]: (portrait.texts["zh"], portrait.texts["es"], portrait.texts["fr"])
        for portrait in portraits()
    }
    assert len(said) == len(portraits()) > 500
    assert said["The queen wears a crown because she is busy"] == (
        "女王戴着王冠，因为她很忙",
        "La reina lleva una corona porque está ocupada",
        "La reine porte une couronne parce qu'elle est occupée",
    )
    assert said["When he is sad the boy learns to read"] == (
        "他难过的时候男孩学认字",
        "Cuando está triste el niño aprende a leer",
        "Quand il est triste le garçon apprend à lire",
    )
    assert said["The man drinks coffee and he has a brother"] == (
        "男人喝咖啡，他有一个哥哥",
        "El hombre bebe café y él tiene un hermano",
        "Le monsieur boit du café et il a un frère",
    )


def test_portraits_are_no_part_of_what_is_translated() -> None:
    translated = {text for sentence in sentences() for text in sentence.texts.values()}
    assert not [p for p in portraits() if translated & set(p.texts.values())]


def test_the_text_for_word_vectors_is_everything_once() -> None:
    text = word_text("fr")
    assert len(text) == sum("fr" in s.texts for s in (*sentences(), *portraits()))
    assert text == word_text("fr") != word_text("fr", seed=2)
    with pytest.raises(ConfigError, match="has zh, en, es, fr, but is asked for de"):
        word_text("de")


ANALOGIES = {
    "en": ["king man woman queen", "prince boy girl princess", "boy man woman girl"],
    "es": ["rey hombre mujer reina", "príncipe niño niña princesa"],
    "fr": ["roi monsieur dame reine", "prince garçon fille princesse"],
}


@pytest.mark.parametrize("kind", ["skipgram", "cbow", "counts"])
@pytest.mark.parametrize(
    ("language", "seed"), [("en", 1), ("en", 2), ("en", 3), ("es", 1), ("fr", 1)]
)
def test_king_minus_man_plus_woman_is_queen(kind: Any, language: str, seed: int) -> None:
    """Claim 27."""
    text = split_words(word_text(language), lowercase=True, split_punctuation=True)
    vectors = learn_vectors(text, VectorsConfig(kind=kind, size=50, epochs=12, seed=seed))
    for words in ANALOGIES[language]:
        word, minus, plus, wanted = words.split()
        assert analogy(vectors, word, minus, plus, 1)[0].word == wanted
