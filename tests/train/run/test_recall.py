"""A search that was made once is not made again, and nothing else changes."""

from copy import copy
from typing import Any

import pytest
from tests.translate.test_translator import SENTENCES, make_translator

from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.text.vocab import Vocab, train_vocab
from heed.train.run.recall import RecallingTranslator
from heed.translate.translator import Translator

TEXTS = ["The dog sleeps", "Two cats run on the house", "", "The dog sleeps"]


class Reversed:
    """Ranks the hypotheses of a search the other way round."""

    def ranked(self, src_ids: Any, hypotheses: list[Any]) -> list[Any]:
        return hypotheses[::-1]


@pytest.fixture
def plain() -> Translator:
    vocab: Vocab = train_vocab(SENTENCES * 5, size=330)
    return make_translator(vocab, options=DecodeOptions(max_length=12))


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of sources in each search of the model."""
    sizes: list[int] = []

    def counted(model: Any, sources: Any, *given: Any, **named: Any) -> Any:
        sizes.append(len(sources))
        return decode(model, sources, *given, **named)

    monkeypatch.setattr("heed.translate.search.decode", counted)
    return sizes


def test_hypotheses_that_are_ranked_anew_need_no_second_search(
    plain: Translator, searched: list[int]
) -> None:
    recalling = RecallingTranslator(plain)
    before = recalling.translate(TEXTS, n_best=5)
    assert sum(searched) == 2
    for translator in (plain, ranked := copy(recalling)):
        translator.reranker = Reversed()  # type: ignore[assignment]
    after = ranked.translate(TEXTS)
    assert sum(searched) == 2
    assert [each.text for each in after] != [each.text for each in before]
    assert after == plain.translate(TEXTS)


def test_other_sources_and_other_options_are_searched(
    plain: Translator, searched: list[int]
) -> None:
    recalling = RecallingTranslator(plain)
    recalling.translate(TEXTS[:1])
    searched.clear()
    assert recalling.translate(TEXTS[:2]) == plain.translate(TEXTS[:2])
    assert searched == [1, 2]
    searched.clear()
    assert recalling.translate(TEXTS[:2], beam_size=1) == plain.translate(TEXTS[:2], beam_size=1)
    assert searched == [2, 2]


def test_samples_are_drawn_for_each_line(plain: Translator, searched: list[int]) -> None:
    options: dict[str, Any] = {"sample": True, "temperature": 3.0}
    recalling = RecallingTranslator(plain)
    recalling.translate(TEXTS, **options)
    assert recalling.translate(TEXTS, **options) == plain.translate(TEXTS, **options)
    assert searched == [3, 3, 3]


def test_a_search_that_may_be_given_up_is_not_kept(plain: Translator, searched: list[int]) -> None:
    recalling = RecallingTranslator(plain)
    given_up = recalling.translate(TEXTS[:1], is_wanted=lambda text: False)
    assert given_up[0].status == "unwanted"
    assert recalling.translate(TEXTS[:1]) == plain.translate(TEXTS[:1])
