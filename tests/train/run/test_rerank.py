"""Word translations are counted from pairs, and used where they help on development pairs."""

import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.train.epochs.corpus import prepared

from heed.data.links import Counted
from heed.data.prepared import Prepared
from heed.data.readers import Pair
from heed.decode.options import DecodeOptions
from heed.train.run import rerank
from heed.train.run.rerank import count_translations, learn_reranking
from heed.translate.doubts.words import counted
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


def counts(data: Prepared) -> Counted:
    return counted(data.train, data.src_vocab, data.tgt_vocab)


def translator(data: Prepared, first: Any, second: Any, **options: Any) -> Any:
    """A translator whose best hypotheses are `first` of the letters, and whose next `second`."""

    def translate(texts: list[str], n_best: int, target_lang: str | None) -> list[Translation]:
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


def test_counts_know_which_piece_and_which_word_translates_which(data: Prepared) -> None:
    lexicon = count_translations(counts(data), data.src_vocab, data.tgt_vocab)
    pieces, words = (
        {
            (int(src), int(tgt)): float(chance)
            for src, tgt, chance in zip(links.src, links.tgt, links.chances, strict=True)
        }
        for links in (lexicon.pieces, lexicon.words)
    )
    for letter, other in WORDS.items():
        src, tgt = data.src_vocab.encode(f"a {letter}")[-1], data.tgt_vocab.encode(f"z {other}")[-1]
        assert pieces[int(src), int(tgt)] > 0.5
        assert words[lexicon.src_words.index(letter), lexicon.tgt_words.index(other)] > 0.5
    assert {*lexicon.src_words} == {*WORDS} and {*lexicon.tgt_words} == {*WORDS.values()}
    for table in (pieces, words):
        for tgt in {tgt for _, tgt in table}:
            assert sum(chance for (_, own), chance in table.items() if own == tgt) < 1.001


def test_what_leaves_words_out_no_longer_comes_first(data: Prepared) -> None:
    found = learn_reranking(translator(data, shorter, translated), DEV, counts(data))
    assert found is not None and found.lexicon is not None
    assert found.lexicon.weights.pieces or found.lexicon.weights.words
    assert sum(found.before) < 190
    assert found.after == pytest.approx((100.0, 100.0))


def test_where_it_does_not_help_it_is_not_used(data: Prepared) -> None:
    found = learn_reranking(translator(data, translated, shorter), DEV, counts(data))
    assert found is not None and found.lexicon is None
    assert found.before == found.after == pytest.approx((100.0, 100.0))


def test_a_small_gain_may_be_chance(data: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rerank, "LEAST_GAIN", 60.0)
    found = learn_reranking(translator(data, shorter, translated), DEV, counts(data))
    assert found is not None and found.lexicon is None
    assert sum(found.after) > sum(found.before)


def test_too_few_pairs_and_a_search_without_a_choice_learn_nothing(
    data: Prepared, tmp_path: Path
) -> None:
    usual = translator(data, shorter, translated)
    assert learn_reranking(usual, DEV, None) is None
    assert learn_reranking(usual, DEV[:99], counts(data)) is None
    assert learn_reranking(usual, [*DEV[:99], Pair(" ", "z")], counts(data)) is None
    for options in ({"beam_size": 1}, {"sample": True}):
        other = translator(data, shorter, translated, **options)
        assert learn_reranking(other, DEV, counts(data)) is None
    few = [(sentence(each), translated(each)) for each in some_letters(300, 3)]
    small = prepared(tmp_path / "few", few, ("en", "fr"), keep_duplicates=True)
    assert learn_reranking(translator(small, shorter, translated), DEV, counts(small)) is None


def test_texts_of_each_target_language_are_translated_into_it(data: Prepared) -> None:
    several = translator(data, shorter, translated)
    several.reader.target_langs = ("de", "fr")
    plain, asked = several.translate, []

    def translate(texts: list[str], n_best: int, target_lang: str | None) -> list[Translation]:
        asked.append((target_lang, len(texts)))
        return plain(texts, n_best=n_best, target_lang=target_lang)

    several.translate = translate
    dev = [replace(pair, target_lang="de" if n % 3 else "fr") for n, pair in enumerate(DEV)]
    found = learn_reranking(several, dev, counts(data))
    alone = learn_reranking(translator(data, shorter, translated), DEV, counts(data))
    assert asked == [("fr", 50), ("de", 100)]
    assert found is not None and found.lexicon is not None and alone is not None
    assert found.before == pytest.approx(alone.before) and found.after == pytest.approx(alone.after)
