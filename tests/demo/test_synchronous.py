from heed.demo.inflection import Phrase, agreeing, inflect
from heed.demo.synchronous import GrammarRule, Meaning, expand, sentences


def word(category: str, kind: str, row: str) -> Meaning:
    return Meaning(category, category, (row.split("|")[0].strip(),), inflect(kind, row))


KNOWN = {
    "pet": [
        word("pet", "noun", "a cat | 一只猫 | un gato | un chat"),
        word("pet", "noun", "a frog | 一只青蛙 | una rana | une grenouille"),
    ],
    "color": [word("color", "adjective", "green | 绿色的 | verde | _ vert/verte")],
}
SMALL = {"fr": {"un": Phrase({"": agreeing("un/une")})}, "en": {}}
COLORED = GrammarRule(
    makes="np",
    slots={"color": "color", "noun": "pet"},
    templates={"en": "a {color} {noun}", "fr": "{un@noun} {noun} {color@noun}"},
    head="noun",
)


def test_a_rule_says_the_same_in_each_language() -> None:
    cat, frog = expand(COLORED, KNOWN, SMALL)
    assert cat.phrases["en"].text("", "") == "a green cat"
    assert cat.phrases["fr"].text("", "") == "un chat vert"
    assert frog.phrases["fr"].text("", "") == "une grenouille verte"
    assert frog.words == ("green", "a frog")


def test_a_phrase_takes_over_the_forms_agreement_and_kind_of_its_head() -> None:
    _, frog = expand(COLORED, KNOWN, SMALL)
    assert frog.phrases["fr"].agreement == "3sf"
    assert frog.phrases["en"].text("many", "") == "a green frogs"  # asked for by no rule with "a"
    assert (frog.category, frog.kind) == ("np", "pet")


def test_a_slot_may_ask_for_phrases_about_one_kind() -> None:
    known = {**KNOWN, "np": expand(COLORED, KNOWN, SMALL)}
    see = GrammarRule(makes="sentence", slots={"what": "np:pet"}, templates={"en": "I see {what}"})
    fly = GrammarRule(makes="sentence", slots={"what": "np:bird"}, templates={"en": "I see {what}"})
    assert len(expand(see, known, SMALL)) == 2
    assert expand(fly, known, SMALL) == []


def test_nothing_is_named_twice() -> None:
    rule = GrammarRule(
        makes="sentence",
        slots={"a": "pet", "b": "pet"},
        templates={"en": "the {a} sees the {b}"},
    )
    said = [meaning.phrases["en"].text("", "") for meaning in expand(rule, KNOWN, SMALL)]
    assert said == ["the cat sees the frog", "the frog sees the cat"]


def test_a_plural_controller_makes_plural() -> None:
    rule = GrammarRule(
        makes="sentence",
        slots={"color": "color", "noun": "pet"},
        templates={"fr": "deux {noun.many} {color@noun.p}"},
    )
    said = [meaning.phrases["fr"].text("", "") for meaning in expand(rule, KNOWN, SMALL)]
    assert said == ["deux chats verts", "deux grenouilles vertes"]


def test_a_sample_is_always_the_same_and_in_order() -> None:
    rule = GrammarRule(
        makes="sentence",
        slots={"a": "pet", "b": "color"},
        templates={"en": "the {a} is {b}"},
        keep=1,
    )
    kept = expand(rule, KNOWN, SMALL)
    assert len(kept) == 1
    assert kept == expand(rule, KNOWN, SMALL)


def test_a_language_that_cannot_say_it_is_absent() -> None:
    texts = next(s.texts for s in sentences() if s.texts["zh"] == "吃饭没")
    assert set(texts) == {"zh", "en"}
