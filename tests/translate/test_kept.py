"""Hypotheses that are kept are those that a search would find again."""

from dataclasses import replace
from typing import Any

import pytest
from tests.translate.test_translator import SENTENCES, make_translator

from heed.decode.guided import Guide
from heed.decode.options import DecodeOptions
from heed.decode.phrases import Phrases
from heed.decode.state import Hypothesis
from heed.text.vocab import Vocab, train_vocab
from heed.translate.kept import KeptSearches
from heed.translate.parts import Chunk

PART = Chunk(src_ids=[1, 2], prefix=[], key=0)
OPTIONS = DecodeOptions(beam_size=3, n_best=3)
BEAM = [
    Hypothesis(ids=[n], token_log_probs=[-1.0, -1.0], log_prob=-2.0, score=-float(n), status="eos")
    for n in range(1, 4)
]


class Searches:
    """A search that returns `BEAM` and remembers the parts that it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[Chunk, int]] = []

    def __call__(self, parts: Any, options: DecodeOptions, _: Any) -> list[list[Hypothesis]]:
        self.asked += [(part, options.n_best) for part in parts]
        return [BEAM[: options.n_best] for _ in parts]


def test_what_is_kept_is_not_searched_again() -> None:
    plain, kept = Searches(), KeptSearches()
    search = kept.applied(plain)
    other, same = replace(PART, src_ids=[2]), replace(PART, key=7)
    assert search([PART], OPTIONS, None) == [BEAM]
    assert search([other, same], OPTIONS, None) == [BEAM, BEAM]
    assert search([same], replace(OPTIONS, n_best=1), None) == [BEAM[:1]]
    assert plain.asked == [(PART, 3), (other, 3)]


def test_other_options_more_hypotheses_and_samples_are_searched() -> None:
    plain, kept = Searches(), KeptSearches()
    search, one = kept.applied(plain), replace(OPTIONS, n_best=1)
    samples = DecodeOptions(sample=True)
    asked = [one, OPTIONS, replace(OPTIONS, min_length=1), samples, samples]
    for options in asked:
        assert search([PART], options, None) == [BEAM[: options.n_best]]
    assert plain.asked == [(PART, options.n_best) for options in asked]
    search([PART], OPTIONS, lambda parts: parts >= 0)  # an unwanted part finds nothing
    assert len(plain.asked) == 6


@pytest.mark.parametrize(
    "led", [replace(PART, guide=Guide((1, 2), 9.0)), replace(PART, phrases=Phrases())]
)
def test_a_led_search_may_end_sooner_with_fewer_hypotheses(led: Chunk) -> None:
    plain = Searches()
    search = KeptSearches().applied(plain)
    for n_best in (3, 3, 1):
        assert search([led], replace(OPTIONS, n_best=n_best), None) == [BEAM[:n_best]]
    assert plain.asked == [(led, 3), (led, 1)]


def test_new_ones_are_not_kept_if_it_is_only_read() -> None:
    plain, kept = Searches(), KeptSearches()
    search, other = kept.applied(plain), replace(PART, src_ids=[2])
    search([PART], OPTIONS, None)
    kept.adds = False
    for _ in range(2):
        assert search([PART, other], OPTIONS, None) == [BEAM, BEAM]
    assert plain.asked == [(PART, 3), (other, 3), (other, 3)]


def test_a_translator_finds_the_same_with_it() -> None:
    vocab: Vocab = train_vocab(SENTENCES * 5, size=330)
    for length_penalty in (0.0, 0.6):  # a random model finds empty translations without one
        options = DecodeOptions(max_length=20, length_penalty=length_penalty)
        translator, plain = (make_translator(vocab, options=options) for _ in range(2))
        translator.reranker = KeptSearches()
        assert translator.translate(SENTENCES, n_best=5) == plain.translate(SENTENCES, n_best=5)
        assert translator.translate(SENTENCES) == plain.translate(SENTENCES)
