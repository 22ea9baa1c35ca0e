"""Faults that are put into good translations are the faults that they are called."""

import numpy as np

from heed.translate.doubts import faults

TEXT = "Ein Mann sitzt auf einer Bank, während zwei Kinder 15 bunte Bälle werfen."
SOLID = "今日はとても良い天気ですから、公園で犬と遊びました。"


def test_a_stretch_is_missing() -> None:
    shorter = faults.cut_stretch(TEXT, np.random.default_rng(0))
    assert shorter is not None and shorter.endswith(".")
    assert len(TEXT.split()) - len(shorter.split()) >= 3
    assert faults.cut_stretch("Zwei Hunde", np.random.default_rng(0)) is None
    solid = faults.cut_stretch(SOLID, np.random.default_rng(0))
    assert solid is not None and len(SOLID) - len(solid) >= 5


def test_a_clause_is_missing() -> None:
    found = {faults.cut_clause(TEXT, np.random.default_rng(seed)) for seed in range(9)}
    assert found == {
        "Ein Mann sitzt auf einer Bank.",
        "während zwei Kinder 15 bunte Bälle werfen.",
    }
    assert faults.cut_clause("Ein Mann sitzt auf einer Bank.", np.random.default_rng(0)) is None
    solid = {faults.cut_clause(SOLID, np.random.default_rng(seed)) for seed in range(9)}
    assert solid == {"今日はとても良い天気ですから。", "公園で犬と遊びました。"}


def test_a_phrase_stands_twice() -> None:
    longer = faults.repeat_phrase(TEXT, np.random.default_rng(0))
    assert longer is not None
    assert 3 <= len(longer.split()) - len(TEXT.split()) <= 6


def test_a_digit_is_another() -> None:
    changed = faults.change_number(TEXT, np.random.default_rng(0))
    assert changed is not None and changed != TEXT and len(changed) == len(TEXT)
    assert faults.change_number("Ein Hund", np.random.default_rng(0)) is None


def test_other_letters_keep_the_shape_of_texts() -> None:
    (text,) = faults.in_no_language([TEXT], np.random.default_rng(0))
    assert len(text) == len(TEXT) and text != TEXT
    assert [c.isalpha() for c in text] == [c.isalpha() for c in TEXT]
    assert "15" in text
