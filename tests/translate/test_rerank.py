"""Hypotheses are ranked anew by word translations: model 1 of IBM, computed in the plainest way."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.translate.test_translator import SENTENCES, make_translator

from heed.bundle.lexicon import Lexicon
from heed.decode.guided import Guide
from heed.decode.options import DecodeOptions
from heed.decode.phrases import Phrases
from heed.decode.state import Hypothesis
from heed.text.vocab import Vocab, train_vocab
from heed.translate.parts import SAME_BONUS, Chunk
from heed.translate.rerank import LEAST, Reranker, reranking

N_SRC, N_TGT = 4, 5


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return train_vocab(SENTENCES * 5, size=330)


Table = dict[tuple[int, int], float]
TABLES = st.dictionaries(
    st.tuples(st.integers(0, N_SRC - 1), st.integers(0, N_TGT)), st.floats(2**-10, 1.0, width=32)
)


def lexicon(table: Table, weight: float = 1.0, per_token: float = 0.0) -> Lexicon:
    src, tgt = zip(*table, strict=True) if table else ((), ())
    return Lexicon(
        src=np.array(src, np.int32),
        tgt=np.array(tgt, np.int32),
        chances=np.array([*table.values()], np.float32),
        weight=weight,
        per_token=per_token,
    )


def hypothesis(ids: list[int], score: float) -> Hypothesis:
    return Hypothesis(
        ids=ids,
        token_log_probs=[0.0] * (len(ids) + 1),
        log_prob=score,
        score=score,
        status="eos",
    )


@given(
    TABLES,
    st.lists(st.integers(0, N_SRC - 1), max_size=5),
    st.lists(st.lists(st.integers(0, N_TGT - 1), max_size=4), min_size=1, max_size=4),
)
def test_the_probability_of_a_source_is_that_of_model_1(
    table: Table, src: list[int], targets: list[list[int]]
) -> None:
    expected = []
    for target in targets:
        words = [*target, N_TGT]
        means = [sum(table.get((x, y), 0.0) for y in words) / len(words) for x in src]
        expected.append(sum(math.log(max(mean, LEAST)) for mean in means))
    found = Reranker(lexicon(table), N_SRC, N_TGT).explained(src, targets)
    assert found == pytest.approx(expected)
    # The same bits as if asked alone.
    alone = [Reranker(lexicon(table), N_SRC, N_TGT).explained(src, [one])[0] for one in targets]
    assert found.tolist() == alone


def test_a_hypothesis_that_explains_more_of_the_source_may_come_first() -> None:
    table = {(1, 1): 0.9, (2, 2): 0.9}
    short, whole = hypothesis([1], -0.5), hypothesis([1, 2], -0.6)
    for weight, per_token, first in ((0.001, 0.0, short), (0.1, 0.0, whole), (0.1, -1.0, short)):
        ranked = Reranker(lexicon(table, weight, per_token), N_SRC, N_TGT).ranked
        assert ranked([1, 2], [short, whole])[0] is first
    assert Reranker(lexicon(table, 0.0), N_SRC, N_TGT).ranked([3], [whole, short]) == [short, whole]


def test_the_order_decides_between_equal_hypotheses() -> None:
    some = [hypothesis([place], -1.0) for place in (3, 1, 2)]
    assert Reranker(lexicon({}), N_SRC, N_TGT).ranked([1], some) == some
    assert Reranker(lexicon({}), N_SRC, N_TGT).ranked([1], []) == []


def test_a_search_gives_its_whole_beam_to_choose_from_and_returns_what_was_asked_for() -> None:
    asked: list[DecodeOptions] = []
    beam = [hypothesis([3], -0.1), hypothesis([1], -0.2), hypothesis([4], -0.3)]

    def search(parts: Any, options: DecodeOptions, _: Any) -> list[list[Hypothesis]]:
        asked.append(options)
        return [beam[: options.n_best] for _ in parts]

    changed = reranking(search, Reranker(lexicon({(1, 1): 1.0}), N_SRC, N_TGT))
    part, options = Chunk(src_ids=[1], prefix=[], key=0), DecodeOptions(beam_size=3)
    assert changed([part, part], options, None) == [[beam[1]]] * 2
    two = replace(options, n_best=2)
    assert changed([part], two, None) == [[beam[1], beam[0]]]
    assert [each.n_best for each in asked] == [3, 3]
    assert replace(asked[0], n_best=1) == options
    samples = DecodeOptions(sample=True, n_best=2)
    assert changed([part], samples, None) == [beam[:2]]
    assert reranking(search, None) is search


def test_a_translator_writes_the_best_of_its_beam_ranked_anew(vocab: Vocab) -> None:
    texts = ["The dog sleeps", "Two cats run on the house", "", "A man reads a book."]
    translator = make_translator(vocab, options=DecodeOptions(max_length=20))
    draw = np.random.default_rng(1)
    table = {
        (int(src), int(tgt)): float(chance)
        for src, tgt, chance in zip(
            draw.integers(0, vocab.size, 3000),
            draw.integers(0, vocab.size + 1, 3000),
            draw.uniform(0.01, 1.0, 3000),
            strict=True,
        )
    }
    reranker = Reranker(lexicon(table, 5.0), vocab.size, vocab.size)
    ids = {piece: id for id, piece in enumerate(vocab.pieces(range(vocab.size)))}
    expected = []
    for found in translator.translate(texts, n_best=5):
        some = [found, *found.alternatives]
        targets = [[ids[piece] for piece in each.tokens] for each in some]
        src = [ids[piece] for piece in found.source_tokens]
        scores = [each.score for each in some] + 5.0 * reranker.explained(src, targets)
        order = sorted(range(len(some)), key=lambda place: -scores[place])
        expected.append([some[place].text for place in order])
    translator.reranker = reranker
    for n_best in (1, 3):
        ranked = [
            [found.text, *(each.text for each in found.alternatives)]
            for found in translator.translate(texts, n_best=n_best)
        ]
        assert ranked == [texts[:n_best] for texts in expected]
    assert [*map(translator, texts)] == [some[0] for some in expected]


def test_what_a_memory_or_a_glossary_decided_stays_first() -> None:
    beam = [hypothesis([3], -0.1), hypothesis([1], -0.2)]
    changed = reranking(
        lambda parts, *_: [beam for _ in parts], Reranker(lexicon({(1, 1): 1.0}), N_SRC, N_TGT)
    )
    plain = Chunk(src_ids=[1], prefix=[], key=0)
    remembered = replace(plain, guide=Guide(ids=(3, 0), bonus=SAME_BONUS))
    with_term = replace(plain, phrases=Phrases())
    found = changed([plain, remembered, with_term], DecodeOptions(beam_size=2), None)
    assert found == [[beam[1]], [beam[0]], [beam[0]]]


def test_a_translation_that_was_cut_stays_behind_one_that_ended() -> None:
    whole = hypothesis([3], -9.0)
    cut = replace(hypothesis([1], -0.1), status="max_length")
    ranked = Reranker(lexicon({(1, 1): 1.0}), N_SRC, N_TGT).ranked
    assert ranked([1], [whole, cut]) == [whole, cut]
