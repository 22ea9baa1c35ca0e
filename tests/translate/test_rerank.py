"""Hypotheses are ranked anew by word translations: model 1 of IBM, computed in the plainest way."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.translate.test_translator import SENTENCES, make_translator

from heed.bundle.lexicon import Lexicon, Links, Weights
from heed.decode.guided import Guide
from heed.decode.options import DecodeOptions
from heed.decode.phrases import Phrases
from heed.decode.state import Hypothesis
from heed.text.piece_words import counted_words
from heed.text.vocab import Vocab, train_vocab
from heed.translate.parts import SAME_BONUS, Chunk
from heed.translate.rerank import LEAST, Reranker, reranking

N_SRC, N_TGT, END = 4, 5, 99


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return train_vocab(SENTENCES * 5, size=330)


Table = dict[tuple[int, int], float]
TABLES = st.dictionaries(
    st.tuples(st.integers(0, N_SRC - 1), st.integers(0, N_TGT)), st.floats(2**-10, 1.0, width=32)
)


class Letters:
    """A vocabulary in which piece 0 is `▁a`, and so on; each is a word."""

    def __init__(self, size: int) -> None:
        self.size = size

    def pieces(self, ids: Any) -> list[str]:
        return ["▁" + "abcdef"[id] for id in ids]

    def is_control(self, id: int) -> bool:
        return id == END


def links(table: Table) -> Links:
    src, tgt = zip(*table, strict=True) if table else ((), ())
    return Links(
        np.array(src, np.int32), np.array(tgt, np.int32), np.array([*table.values()], np.float32)
    )


def lexicon(
    pieces: Table, weight: float = 1.0, per_token: float = 0.0, words: Table | None = None
) -> Lexicon:
    """Of pieces; or also of words, which are those of `Letters` in reverse order."""
    return Lexicon(
        pieces=links(pieces),
        words=links(words or {}),
        src_words=tuple("abcdef"[:N_SRC][::-1]),
        tgt_words=tuple("abcdef"[:N_TGT][::-1]),
        weights=Weights(weight, weight if words else 0.0, per_token),
    )


def reranker(*args: Any, **options: Any) -> Reranker:
    vocabs: Any = Letters(N_SRC), Letters(N_TGT)
    return Reranker(lexicon(*args, **options), *vocabs)


def hypothesis(ids: list[int], score: float) -> Hypothesis:
    return Hypothesis(
        ids=ids,
        token_log_probs=[0.0] * (len(ids) + 1),
        log_prob=score,
        score=score,
        status="eos",
    )


def model_1(table: Table, src: list[int], target: list[int]) -> float:
    words = [*target, N_TGT]
    means = [sum(table.get((x, y), 0.0) for y in words) / len(words) for x in src]
    return sum(math.log(max(mean, LEAST)) for mean in means)


@given(
    TABLES,
    TABLES,
    st.lists(st.integers(0, N_SRC - 1), max_size=5),
    st.lists(st.lists(st.integers(0, N_TGT - 1), max_size=4), min_size=1, max_size=4),
)
def test_the_probability_of_a_source_is_that_of_model_1(
    pieces: Table, words: Table, src: list[int], targets: list[list[int]]
) -> None:
    here = reranker(pieces, words=words)
    found = here.explained(src, targets)
    assert found[0] == pytest.approx([model_1(pieces, src, target) for target in targets])
    reversed_src = [N_SRC - 1 - x for x in src]
    assert found[1] == pytest.approx(
        [model_1(words, reversed_src, [N_TGT - 1 - y for y in target]) for target in targets]
    )
    assert here.explained([END, *src, END], targets).tolist() == found.tolist()
    # The same bits as if asked alone.
    alone = [here.explained(src, [one])[:, 0].tolist() for one in targets]
    assert found.T.tolist() == alone


def test_words_without_translations_explain_nothing() -> None:
    short = Lexicon(
        pieces=links({}),
        words=links({(0, 0): 1.0}),
        src_words=("b",),
        tgt_words=("c",),
        weights=Weights(0.0, 1.0, 0.0),
    )
    vocabs: Any = Letters(N_SRC), Letters(N_TGT)
    found = Reranker(short, *vocabs).explained([1, 3], [[2], [4], [2, 4]])[1]
    assert found == pytest.approx(
        [math.log(1 / 2) + math.log(LEAST), 2 * math.log(LEAST), math.log(1 / 3) + math.log(LEAST)]
    )


def test_a_hypothesis_that_explains_more_of_the_source_may_come_first() -> None:
    table = {(1, 1): 0.9, (2, 2): 0.9}
    short, whole = hypothesis([1], -0.5), hypothesis([1, 2], -0.6)
    for weight, per_token, first in ((0.001, 0.0, short), (0.1, 0.0, whole), (0.1, -1.0, short)):
        ranked = reranker(table, weight, per_token).ranked
        assert ranked([1, 2], [short, whole])[0] is first
    assert reranker(table, 0.0).ranked([3], [whole, short]) == [short, whole]


def test_the_order_decides_between_equal_hypotheses() -> None:
    some = [hypothesis([place], -1.0) for place in (3, 1, 2)]
    assert reranker({}).ranked([1], some) == some
    assert reranker({}).ranked([1], []) == []


def test_a_search_gives_its_whole_beam_to_choose_from_and_returns_what_was_asked_for() -> None:
    asked: list[DecodeOptions] = []
    beam = [hypothesis([3], -0.1), hypothesis([1], -0.2), hypothesis([4], -0.3)]

    def search(parts: Any, options: DecodeOptions, _: Any) -> list[list[Hypothesis]]:
        asked.append(options)
        return [beam[: options.n_best] for _ in parts]

    changed = reranking(search, reranker({(1, 1): 1.0}))
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
    words = counted_words(vocab.pieces(vocab.encode(" ".join(texts))))
    own = replace(
        lexicon(table, 5.0),
        words=links({(place, place): 0.5 for place in range(len(words))}),
        src_words=tuple(words),
        tgt_words=tuple(words),
        weights=Weights(5.0, 3.0, -0.5),
    )
    reranker = Reranker(own, vocab, vocab)
    ids = {piece: id for id, piece in enumerate(vocab.pieces(range(vocab.size)))}
    expected = []
    for found in translator.translate(texts, n_best=5):
        some = [found, *found.alternatives]
        targets = [[ids[piece] for piece in each.tokens] for each in some]
        src = [ids[piece] for piece in found.source_tokens]
        pieces, of_words = reranker.explained(src, targets)
        lengths = np.array([len(each.token_scores) for each in some])
        scores = [each.score for each in some] + 5.0 * pieces + 3.0 * of_words - 0.5 * lengths
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
    changed = reranking(lambda parts, *_: [beam for _ in parts], reranker({(1, 1): 1.0}))
    plain = Chunk(src_ids=[1], prefix=[], key=0)
    remembered = replace(plain, guide=Guide(ids=(3, 0), bonus=SAME_BONUS))
    with_term = replace(plain, phrases=Phrases())
    found = changed([plain, remembered, with_term], DecodeOptions(beam_size=2), None)
    assert found == [[beam[1]], [beam[0]], [beam[0]]]


def test_a_translation_that_was_cut_stays_behind_one_that_ended() -> None:
    whole = hypothesis([3], -9.0)
    cut = replace(hypothesis([1], -0.1), status="max_length")
    ranked = reranker({(1, 1): 1.0}).ranked
    assert ranked([1], [whole, cut]) == [whole, cut]
