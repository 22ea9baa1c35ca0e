import pytest

from heed.demo.inflection import Phrase, agreeing, inflect, plural, spell


@pytest.mark.parametrize(
    ("word", "language", "expected"),
    [
        ("gato", "es", "gatos"),
        ("ciudad", "es", "ciudades"),
        ("chat", "fr", "chats"),
        ("gâteau", "fr", "gâteaux"),
        ("souris", "fr", "souris"),
        ("dog", "en", "dogs"),
    ],
)
def test_regular_plurals(word: str, language: str, expected: str) -> None:
    assert plural(word, language) == expected


def test_a_cell_of_five_agrees_in_person_and_number() -> None:
    assert agreeing("suis es est sommes sont")["1p"] == "sommes"


def test_a_cell_with_strokes_agrees_in_gender_and_number() -> None:
    article = Phrase({"": agreeing("le/la/les")})
    assert [article.text("", agreement) for agreement in ("3sm", "3sf", "3pf")] == [
        "le", "la", "les",
    ]  # fmt: skip
    spanish = Phrase({"": agreeing("el/la/los/las")})
    assert [spanish.text("", agreement) for agreement in ("3pm", "3pf")] == ["los", "las"]


def test_a_form_that_does_not_exist_is_a_mistake_in_the_files() -> None:
    with pytest.raises(LookupError, match="has nothing for agreement '3p'"):
        Phrase({"": {"s": "dog"}}).text("", "3p")


def test_a_noun_tells_its_gender_and_classifier_by_its_article() -> None:
    mouse = inflect("noun", "a mouse, mice | 一只老鼠 | un ratón, ratones | une souris")
    assert mouse["zh"].text("classifier", "") == "只"
    assert mouse["en"].text("many", "") == "mice"
    assert mouse["es"].agreement == "3sm"
    assert mouse["fr"].agreement == "3sf"


def test_regular_verbs_are_conjugated_from_the_infinitive() -> None:
    eat = inflect("verb", "eat (past ate) | 吃 | comer | manger")
    persons = ("1s", "2s", "3s", "1p", "3p")
    assert [eat["es"].text("past", p) for p in persons] == (
        ["comí", "comiste", "comió", "comimos", "comieron"]
    )
    assert [eat["fr"].text("present", p) for p in persons] == (
        ["mange", "manges", "mange", "mangeons", "mangent"]
    )
    assert [eat["en"].text("present_not", p) for p in ("3s", "3p")] == ["doesn't eat", "don't eat"]
    assert eat["zh"].text("past", "") == "吃了"


def test_irregular_forms_stand_in_the_cell() -> None:
    drink = inflect(
        "verb",
        "drink (past drank) | 喝 | beber"
        " | boire (present bois bois boit buvons boivent, participle bu)",
    )
    assert drink["en"].text("past", "3s") == "drank"
    assert drink["fr"].text("past_not", "1p") == "ne avons pas bu"
    assert drink["fr"].text("future", "1s") == "vais boire"


def test_a_missing_cell_is_a_missing_language() -> None:
    assert set(inflect("fixed", "Have you eaten? | 吃饭没 | - | -")) == {"en", "zh"}


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("fr", "je ne ai pas mangé la orange", "Je n'ai pas mangé l'orange"),
        ("fr", "est-ce que Anna aime ce animal ?", "Est-ce qu'Anna aime cet animal ?"),
        ("fr", "ma orange est à côté de le lit", "Mon orange est à côté du lit"),
        ("fr", "de la eau et de le thé", "De l'eau et du thé"),
        ("es", "¿ está  detrás de el árbol ?", "¿Está detrás del árbol?"),
        ("es", "ayudo a el niño", "Ayudo al niño"),
        ("es", "a él le gusta", "A él le gusta"),
        ("en", "a apple and a dog", "An apple and a dog"),
        ("zh", "我 正在 在家 唱歌", "我正在家唱歌"),
    ],
)
def test_spelling_joins_words_as_the_language_does(language: str, text: str, expected: str) -> None:
    assert spell(text, language) == expected
