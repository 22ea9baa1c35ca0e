"""Forty captions that were aligned by hand, in `captions`: English, German, links."""

from pathlib import Path

import numpy as np
import pytest

from heed.data.word_alignment import Link
from heed.explain.attention.choice import choose
from heed.explain.attention.links import error_rate, read_gold, strongest
from heed.explain.attention.statistical import reference
from heed.explain.attention.words import between_words
from heed.text.piece_words import words_of
from heed.translate.translator import Translator

FOLDER = Path(__file__).parent / "captions"
N_PAIRS = 40


def aligned(translator: Translator, src: str, tgt: str) -> set[Link]:
    """For each word between blanks the source word that it reads most."""
    found = translator.align(src, tgt)
    sides = (found.target_tokens, found.source_tokens)
    rows, columns = (words_of(tokens, only_blanks=True) for tokens in sides)
    return strongest(between_words(np.array(found.weights, np.float32), rows, columns))


def lines(name: str) -> list[str]:
    return (FOLDER / f"captions.{name}").read_text("utf-8").splitlines()


def test_each_german_word_is_linked_inside_its_pair() -> None:
    gold = read_gold(FOLDER / "captions.align", N_PAIRS)
    for src, tgt, links in zip(lines("en"), lines("de"), gold, strict=True):
        assert links.sure <= links.possible
        assert {source for source, _ in links.possible} <= set(range(len(src.split())))
        assert {target for _, target in links.possible} == set(range(len(tgt.split()))), tgt


def test_a_statistical_aligner_that_knows_nothing_else_agrees_with_them() -> None:
    """Two witnesses: whoever aligned them, and what goes together in them."""
    gold = read_gold(FOLDER / "captions.align", N_PAIRS)
    sides = ([text.split() for text in lines(name)] for name in ("en", "de"))
    rate = error_rate([found.sure for found in reference(*sides)], gold)
    shuffled = error_rate([each.sure for each in gold[1:] + gold[:1]], gold)
    assert rate < 0.3
    assert shuffled > 0.5


def test_heads_are_measured_against_them(translator: Translator) -> None:
    gold = read_gold(FOLDER / "captions.align", N_PAIRS)
    choice = choose(translator, lines("en"), lines("de"), gold=gold)
    assert choice.n_pairs == N_PAIRS
    assert choice.best.measure == "alignments made by hand"
    # By hand, as Och and Ney have it, for the best head.
    found = []
    for src, tgt in zip(lines("en"), lines("de"), strict=True):
        translator.alignment_heads = choice.best
        try:
            found.append(aligned(translator, src, tgt))
        finally:
            translator.alignment_heads = None
    assert error_rate(found, gold) == pytest.approx(choice.best.error_rate, abs=1e-4)
