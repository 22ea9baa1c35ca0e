"""A model of several target languages does not write the pieces of other ones."""

from typing import Any

import numpy as np
import pytest
from tests.translate.test_translator import SENTENCES, make_translator

from heed.decode.guided import Guide
from heed.decode.options import DecodeOptions
from heed.decode.phrases import Phrases
from heed.text.vocab import Vocab, train_vocab
from heed.translate.each_language import each_language, never_written
from heed.translate.parts import SAME_BONUS, Chunk
from heed.translate.translator import Translator


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    """A third of the longer pieces is foreign to German, another third to Chinese."""
    vocab = train_vocab(SENTENCES * 5, size=330, languages=("de", "zh"))
    longer = [
        id for id, piece in enumerate(vocab.pieces(range(vocab.size))) if len(piece.strip("▁")) > 1
    ]
    longer = [id for id in longer if not vocab.is_control(id) and id >= 262]
    vocab.foreign = {
        vocab.language_id("de"): tuple(longer[::3]),
        vocab.language_id("zh"): tuple(longer[1::3]),
    }
    assert all(map(len, vocab.foreign.values()))
    return vocab


@pytest.fixture(scope="module")
def translator(vocab: Vocab) -> Translator:
    return make_translator(
        vocab, target_langs=("de", "zh"), options=DecodeOptions(max_length=20, beam_size=4)
    )


def chunk(vocab: Vocab, language: str, text: str, **parts: Any) -> Chunk:
    ids = [vocab.language_id(language), *vocab.encode(text), vocab.eos_id]
    return Chunk(src_ids=ids, prefix=[], key=0, **parts)


@pytest.mark.parametrize("options", [{}, {"beam_size": 1}, {"sample": True, "n_best": 4}])
def test_no_translation_has_a_foreign_piece(
    translator: Translator, vocab: Vocab, options: dict[str, Any]
) -> None:
    for language in ("de", "zh"):
        foreign = vocab.pieces(vocab.foreign[vocab.language_id(language)])
        for found in translator.translate(SENTENCES, target_lang=language, **options):
            for each in (found, *found.alternatives):
                assert not {*each.tokens} & {*foreign}
        nexts = translator.next_word(SENTENCES[0], k=50, target_lang=language)
        assert not {each.token for each in nexts} & {*foreign}


def test_without_them_all_pieces_are_written(translator: Translator, vocab: Vocab) -> None:
    kept, vocab.foreign = vocab.foreign, {}
    try:
        found = translator.translate(SENTENCES, target_lang="de", n_best=4)
    finally:
        vocab.foreign = kept
    written = {
        token for each in found for own in (each, *each.alternatives) for token in own.tokens
    }
    assert written & {*vocab.pieces(vocab.foreign[vocab.language_id("de")])}


def test_a_batch_of_several_languages_gives_what_each_part_gives_alone(
    translator: Translator, vocab: Vocab
) -> None:
    parts = [chunk(vocab, "zh" if n % 3 else "de", text) for n, text in enumerate(SENTENCES * 2)]
    searcher = translator.searcher
    together = searcher.search(parts, translator.options)
    alone = [searcher.search([part], translator.options)[0] for part in parts]
    assert [each.text for each in together] == [each.text for each in alone]
    assert [each.log_prob for each in together] == pytest.approx([each.log_prob for each in alone])


def test_parts_that_are_no_longer_wanted_keep_their_numbers(vocab: Vocab) -> None:
    asked = []

    def search(parts: Any, options: Any, are_wanted: Any) -> list[list[Any]]:
        return [[bool(wanted)] for wanted in are_wanted(np.arange(len(parts)))]

    def are_wanted(numbers: Any) -> Any:
        asked.append(numbers.tolist())
        return numbers != 2

    parts = [chunk(vocab, language, "a dog") for language in ("de", "zh", "de", "zh", "de")]
    changed: Any = each_language(search, vocab)
    assert changed(parts, None, are_wanted) == [[True], [True], [False], [True], [True]]
    assert asked == [[0, 2, 4], [1, 3]]


def test_what_a_glossary_or_a_memory_gives_may_be_foreign(vocab: Vocab) -> None:
    first, second, *others = vocab.foreign[vocab.language_id("de")]
    plain = never_written(vocab, chunk(vocab, "de", "a dog"))
    assert {first, second, *others} < {*plain} and vocab.eos_id not in plain
    term = chunk(vocab, "de", "a dog", phrases=Phrases(required=(((first,),),)))
    assert {*plain} - {*never_written(vocab, term)} == {first}
    pair = chunk(vocab, "de", "a dog", guide=Guide(ids=(second, 5), bonus=SAME_BONUS))
    assert {*plain} - {*never_written(vocab, pair)} == {second}
    sizes = []

    def search(parts: Any, options: Any, are_wanted: Any) -> list[list[Any]]:
        sizes.append(len(parts))
        return [[] for _ in parts]

    changed: Any = each_language(search, vocab)
    changed([chunk(vocab, "de", "a dog"), term, chunk(vocab, "de", "a cat"), pair], None, None)
    assert sizes == [2, 1, 1]
    kept, vocab.foreign = vocab.foreign, {}
    try:
        assert each_language(search, vocab) is search
    finally:
        vocab.foreign = kept
