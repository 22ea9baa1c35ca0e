"""What is learned from pairs of a toy language finds what is wrong in others of it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.translate.doubts.word_for_word import (
    ENGLISH,
    GERMAN,
    pairs,
    sources,
    spelled,
    store,
    translated,
    vocab,
)

from heed.bundle.doubts import Judgment
from heed.errors import DataError
from heed.text.vocab import Vocab
from heed.translate.doubts.calibrate import Pairs, calibrate
from heed.translate.doubts.faults import cut_stretch, in_no_language
from heed.translate.doubts.features import AT_ONCE, NAMES, Measured, measure
from heed.translate.doubts.judge import Judge, is_doubtful
from heed.translate.doubts.words import Coverage, Words, counted
from heed.translate.result import Translation


@pytest.fixture(scope="module")
def words() -> Vocab:
    return vocab()


@pytest.fixture(scope="module")
def judgment(words: Vocab, tmp_path_factory: pytest.TempPathFactory) -> Judgment:
    held_out = pairs(300, seed=3)
    training = counted(store(tmp_path_factory.mktemp("store"), words), words, words)
    return calibrate(sources(words), held_out, training)


def judged(words: Vocab, judgment: Judgment, given: list[tuple[str, str]]) -> list[set[str]]:
    found = [spelled(words, *pair) for pair in given]
    own = [spelled(words, src, translated(src)) for src, _ in given]
    return [
        {doubt.kind for doubt in each.doubts}
        for each in Judge(judgment, words, words).judge(found, own=own)
    ]


def test_each_word_is_known_to_be_covered_by_its_translation(
    words: Vocab, judgment: Judgment
) -> None:
    known = Words(judgment.words, words, words)
    sources = [[f"▁{word}"] for word in ENGLISH]
    own, _ = known.cover(sources, [[f"▁{word}"] for word in GERMAN])
    other, _ = known.cover(sources, [[f"▁{word}"] for word in GERMAN[1:] + GERMAN[:1]])
    assert (own.total < 0).all() and (own.worst == 0).all()
    assert (other.total > 1).all() and (other.worst > 1).all()
    assert own.fertility == pytest.approx(np.ones(15), abs=0.1)
    assert (own.language > 1).all()


def test_faults_are_found_in_sentences_never_seen(words: Vocab, judgment: Judgment) -> None:
    good = pairs(200, seed=4)
    random = np.random.default_rng(5)
    alarms = judged(words, judgment, good)
    assert sum(map(bool, alarms)) <= 0.03 * len(good)
    cut = [(src, less) for src, tgt in good if (less := cut_stretch(tgt, random))]
    assert np.mean(["left_out" in kinds for kinds in judged(words, judgment, cut)]) > 0.95
    more = [(less, tgt) for src, tgt in good if (less := cut_stretch(src, random))]
    assert np.mean(["added" in kinds for kinds in judged(words, judgment, more)]) > 0.95
    copied = [(src, src) for src, _ in good]
    assert all("wrong_language" in kinds for kinds in judged(words, judgment, copied))
    odd = zip([s for s, _ in good], in_no_language([t for _, t in good], random), strict=True)
    assert all("wrong_language" in kinds for kinds in judged(words, judgment, [*odd]))


def test_what_is_left_out_is_named(words: Vocab, judgment: Judgment) -> None:
    src, tgt = pairs(1, seed=8)[0]
    tgt = " ".join(tgt.split()[3:])
    own = [spelled(words, src, translated(src))]
    (found,) = Judge(judgment, words, words).judge([spelled(words, src, tgt)], own=own)
    (doubt,) = [each for each in found.doubts if each.kind == "left_out"]
    assert doubt.sentence.endswith(": " + " ".join(src.split()[:3]))


def test_no_word_is_named_by_a_part_of_it(
    words: Vocab, judgment: Judgment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pieces that are covered worst may begin and end inside a word."""
    src, tgt = pairs(1, seed=8)[0]
    first, second, *rest = spelled(words, src, tgt).source_tokens
    parted = [first[:2], first[2:], second[:3], second[3:], *rest]
    own = [spelled(words, src, translated(src))]
    judge = Judge(judgment, words, words)
    monkeypatch.setattr(Measured, "src_span", lambda self, row: (1, 3))
    given = replace(spelled(words, src, " ".join(tgt.split()[3:])), source_tokens=parted)
    (found,) = judge.judge([given], own=own)
    (doubt,) = [each for each in found.doubts if each.kind == "left_out"]
    assert doubt.sentence.endswith(": " + " ".join(src.split()[:2]))
    monkeypatch.setattr(Measured, "tgt_span", lambda self, row: (1, 3))
    first, second, *rest = own[0].tokens
    parted = [first[:2], first[2:], second[:3], second[3:], *rest]
    given = replace(spelled(words, " ".join(src.split()[3:]), tgt), tokens=parted)
    (found,) = judge.judge([given], own=[spelled(words, "", " ".join(tgt.split()[3:]))])
    (doubt,) = [each for each in found.doubts if each.kind == "added"]
    assert given.text[doubt.start : doubt.end] == " ".join(tgt.split()[:2])


def test_a_model_that_is_never_wrong_gets_no_alarms_about_its_own_translations(
    words: Vocab, judgment: Judgment, tmp_path: Path
) -> None:
    """Nearly all of them would be false, and a second search would replace right answers."""
    found = calibrate(
        sources(words, is_always_right=True),
        pairs(300, seed=3),
        counted(store(tmp_path, words), words, words),
    )
    assert "left_out.searched" in judgment.fits
    assert not any(name.endswith(".searched") for name in found.fits)
    assert {"left_out.given", "added.given"} <= found.fits.keys()


def test_confidence_follows_what_came_out_right(words: Vocab, judgment: Judgment) -> None:
    held_out = pairs(150, seed=6)
    own = sources(words).translate([src for src, _ in held_out], range(len(held_out)))
    found = Judge(judgment, words, words).judge(own)
    is_right = np.arange(len(found)) % 3 > 0
    confidence = np.array([each.confidence for each in found])
    assert confidence[is_right].min() > 0.9 and confidence[~is_right].max() < 0.1
    assert judgment.error < 0.05
    assert all(is_doubtful(found[n]) for n in range(0, len(found), 3))


def test_the_same_pairs_teach_the_same(words: Vocab, judgment: Judgment, tmp_path: Path) -> None:
    held_out = pairs(300, seed=3)
    again = calibrate(sources(words), held_out, counted(store(tmp_path, words), words, words))
    assert again.to_files() == judgment.to_files()


def test_only_development_sources_and_parts_of_them_are_translated_and_scored(
    words: Vocab, tmp_path: Path
) -> None:
    """Text in no language becomes long translations, and nobody compares with them."""
    plain, computed = sources(words), set[str]()

    def translate(texts: Sequence[str], places: Sequence[int]) -> list[Translation]:
        computed.update(texts)
        return plain.translate(texts, places)

    def score(given: Pairs, places: Sequence[int]) -> list[Translation]:
        computed.update(src for src, _ in given)
        return plain.score(given, places)

    training = counted(store(tmp_path, words), words, words)
    model = replace(plain, translate=translate, score=score)
    found = calibrate(model, pairs(300, seed=3), training)
    assert "source_language" in found.fits
    assert {word for text in computed for word in text.split()} <= set(ENGLISH)


def test_numbers_of_a_pair_do_not_depend_on_others(words: Vocab, judgment: Judgment) -> None:
    known = Words(judgment.words, words, words)
    found = [spelled(words, *pair) for pair in [*pairs(AT_ONCE + 9), ("", "Hund"), ("dog", "")]]
    together = measure(known, found)
    assert together.values.shape == (len(found), len(NAMES))
    assert np.isfinite(together.values).all()
    for row, each in enumerate(found):
        alone = measure(known, [each])
        assert (alone.values[0] == together.values[row]).all()
        assert alone.src_span(0) == together.src_span(row)
        assert alone.tgt_span(0) == together.tgt_span(row)


def test_a_translation_in_capitals_is_compared_without_case(
    words: Vocab, judgment: Judgment
) -> None:
    """The model's own translation of a source in capitals, and one that people gave."""
    known = Words(judgment.words, words, words)
    ((src, tgt),) = pairs(1, seed=5)
    given = spelled(words, src, f"{tgt} %s")
    own = spelled(words, src, f"{tgt} %s")
    large = replace(
        own,
        text=f"{tgt.upper()} %s",
        tokens=[token if "%" in token else token.upper() for token in own.tokens],
    )
    assert large.tokens != own.tokens
    for one, other in ((given, large), (large, given)):
        found = measure(known, [one], [other]).values
        assert np.array_equal(found, measure(known, [given], [own]).values)


def test_texts_are_compared_alike_beside_a_longer_one() -> None:
    random = np.random.default_rng(2)
    for _ in range(20):
        odds = random.normal(size=(2, 40))
        odds[0, 13:] = 0.0
        both = _coverage(odds).beyond(_coverage(np.zeros(odds.shape)))
        one = _coverage(odds[:1, :13]).beyond(_coverage(np.zeros((1, 13))))
        assert [each[0] for each in both] == [each[0] for each in one]
    empty = _coverage(np.zeros((2, 0)))
    assert empty.beyond(empty)[0].tolist() == [0.0, 0.0]


def _coverage(odds: NDArray[np.float64]) -> Coverage:
    other = np.zeros(len(odds))
    return Coverage(other, other, other, other, other, other, other, other, odds)


def test_too_few_pairs_are_refused(words: Vocab) -> None:
    few = pairs(99, seed=3)
    with pytest.raises(DataError, match="At least 100 development pairs"):
        calibrate(sources(words), few, None)


def test_without_training_pairs_confidence_is_learned_all_the_same(words: Vocab) -> None:
    held_out = pairs(150, seed=3)
    found = calibrate(sources(words), held_out, None)
    assert not found.fits
    assert found.confidence is not None
