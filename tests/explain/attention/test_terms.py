"""Words that translate one another, from pairs alone."""

from heed.explain.attention.terms import linked_terms, repeated_terms

SOURCES = ["the house burns", "the mouse burns", "the house sleeps", "the mouse sleeps", "a horse"]
TARGETS = ["das Haus brennt", "das Tier brennt", "das Haus ruht", "das Tier ruht", "ein Pferd"]


def test_words_that_go_together_in_all_pairs_are_linked() -> None:
    found = linked_terms(SOURCES, TARGETS)
    assert found[0] == [("house", "Haus"), ("burns", "brennt")]
    assert ("mouse", "Tier") in found[3]


def test_a_line_gets_the_rarest_of_the_terms_that_others_have_too() -> None:
    found = repeated_terms([*SOURCES, "the house burns"], [*TARGETS, TARGETS[0]], most=1)
    assert found[1] == {"mouse": "Tier"}
    assert found[4] == {}
    assert all(len(terms) <= 1 for terms in found)


def test_there_are_no_terms_where_each_character_is_a_word() -> None:
    assert repeated_terms(["我看你"] * 3, ["I see you"] * 3, most=2) == [{}, {}, {}]
