"""Word translations are counted from pairs, and used where they help on development pairs."""

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.train.epochs.corpus import prepared

from heed.data.prepared import Prepared
from heed.data.readers import Pair
from heed.decode.options import DecodeOptions
from heed.train.run import rerank
from heed.train.run.rerank import count_translations, learn_reranking
from heed.translate.result import Translation

WORDS = dict(zip("abcdefgh", "zyxwvuts", strict=True))
"""A language of letters, and the translation of each."""


def sentence(letters: str) -> str:
    return " ".join(letters)


def translated(letters: str) -> str:
    return sentence("".join(WORDS[letter] for letter in letters))


def some_letters(n: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return ["".join(draw.sample([*WORDS], k=draw.randint(2, 7))) for _ in range(n)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    pairs = [(sentence(each), translated(each)) for each in some_letters(1500, 1)]
    return prepared(tmp_path_factory.mktemp("letters"), pairs, ("en", "fr"), keep_duplicates=True)


def translator(data: Prepared, first: Any, second: Any, **options: Any) -> Any:
    """A translator whose best hypotheses are `first` of the letters, and whose next `second`."""

    def translate(texts: list[str], n_best: int) -> list[Translation]:
        letters = [text.replace(" ", "") for text in texts]
        return [
            Translation(
                text=first(each),
                score=-0.5,
                token_scores=[0.0] * (len(first(each).split()) + 1),
                alternatives=(
                    Translation(
                        text=second(each),
                        score=-0.51,
                        token_scores=[0.0] * (len(second(each).split()) + 1),
                    ),
                )[: n_best - 1],
            )
            for each in letters
        ]

    return SimpleNamespace(
        translate=translate,
        src_vocab=data.src_vocab,
        tgt_vocab=data.tgt_vocab,
        options=DecodeOptions(**{"beam_size": 3, **options}),
        reader=SimpleNamespace(target_langs=()),
        target_lang="fr",
    )


def shorter(letters: str) -> str:
    """The translation without its last word."""
    return translated(letters[:-1])


DEV = [Pair(sentence(each), translated(each)) for each in some_letters(150, 2)]


def test_counts_know_which_word_translates_which(data: Prepared) -> None:
    lexicon = count_translations(data.train, data.src_vocab.size, data.tgt_vocab.size)
    table = {
        (int(src), int(tgt)): float(chance)
        for src, tgt, chance in zip(lexicon.src, lexicon.tgt, lexicon.chances, strict=True)
    }
    for letter, other in WORDS.items():
        src, tgt = data.src_vocab.encode(f"a {letter}")[-1], data.tgt_vocab.encode(f"z {other}")[-1]
        assert table[int(src), int(tgt)] > 0.5
    for tgt in set(lexicon.tgt.tolist()):
        assert sum(chance for (_, own), chance in table.items() if own == tgt) < 1.001


def test_what_leaves_words_out_no_longer_comes_first(data: Prepared) -> None:
    found = learn_reranking(translator(data, shorter, translated), DEV, data.train)
    assert found is not None and found.lexicon is not None
    assert found.lexicon.weight > 0
    assert sum(found.before) < 190
    assert found.after == pytest.approx((100.0, 100.0))


def test_where_it_does_not_help_it_is_not_used(data: Prepared) -> None:
    found = learn_reranking(translator(data, translated, shorter), DEV, data.train)
    assert found is not None and found.lexicon is None
    assert found.before == found.after == pytest.approx((100.0, 100.0))


def test_a_small_gain_may_be_chance(data: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rerank, "LEAST_GAIN", 60.0)
    found = learn_reranking(translator(data, shorter, translated), DEV, data.train)
    assert found is not None and found.lexicon is None
    assert sum(found.after) > sum(found.before)


def test_too_few_or_too_many_pairs_and_a_search_without_a_choice_learn_nothing(
    data: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = translator(data, shorter, translated)
    assert learn_reranking(usual, DEV, None) is None
    assert learn_reranking(usual, DEV[:99], data.train) is None
    assert learn_reranking(usual, [*DEV[:99], Pair(" ", "z")], data.train) is None
    for options in ({"beam_size": 1}, {"sample": True}):
        other = translator(data, shorter, translated, **options)
        assert learn_reranking(other, DEV, data.train) is None
    several = translator(data, shorter, translated)
    several.reader.target_langs = ("de", "fr")
    assert learn_reranking(several, DEV, data.train) is None
    few = [(sentence(each), translated(each)) for each in some_letters(300, 3)]
    small = prepared(tmp_path / "few", few, ("en", "fr"), keep_duplicates=True)
    assert learn_reranking(translator(small, shorter, translated), DEV, small.train) is None
    monkeypatch.setattr("heed.translate.rerank.FEW_PAIRS", (1000, 1200))
    assert learn_reranking(usual, DEV, data.train) is None
