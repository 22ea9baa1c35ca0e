"""Terms shown beside their translations."""

from heed.text.terms import Shown, show_terms


def test_a_term_is_shown_with_its_translation_and_without_the_blank_before_it() -> None:
    text = "a blue shirt, (cat)"
    found, places = show_terms(
        text, [Shown(2, 12, "Hemd"), Shown(15, 18, "Katze")], ("«", "|", "»")
    )
    assert found == "a« blue shirt| Hemd», (« cat| Katze»)"
    assert [found[place] for place in places] == ["«", "|", "»"] * 2


def test_a_term_at_the_beginning_has_no_blank_to_lose() -> None:
    assert show_terms("cat", [Shown(0, 3, "Katze")], ("«", "|", "»"))[0] == "« cat| Katze»"
