"""Lines that nobody wants any more leave a search, and the others stay as they are."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.serve.conftest import SENTENCES, make_model
from tests.translate.test_translator import make_translator

import heed
from heed.decode.state import Hypothesis
from heed.text.vocab import Vocab, train_vocab
from heed.translate.lines import Line
from heed.translate.parts import Chunk
from heed.translate.result import Translation
from heed.translate.search import Searcher
from heed.translate.translator import Translator

WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"beam_size": 1},
    "beam": {"beam_size": 3, "alternatives": 2},
    "sample": {"sample": True, "temperature": 0.7},
    "alignment": {"alignment": True},
}


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return heed.load(make_model(tmp_path_factory.mktemp("search") / "en-de", "en", "de"), threads=1)


@pytest.mark.parametrize("way", WAYS)
def test_the_neighbors_of_an_unwanted_line_stay_as_they_are(
    translator: Translator, way: str
) -> None:
    whole = translator.translate(SENTENCES, **WAYS[way])
    found = translator.translate(SENTENCES, is_wanted=lambda place: place != 1, **WAYS[way])
    assert found[1] == Translation(text="", status="unwanted")
    assert [found[0], *found[2:]] == [whole[0], *whole[2:]]


@pytest.mark.parametrize("way", WAYS)
def test_a_line_may_become_unwanted_during_the_search(translator: Translator, way: str) -> None:
    whole = translator.translate(SENTENCES, **WAYS[way])
    n_asked = 0

    def is_wanted(place: int) -> bool:
        nonlocal n_asked
        n_asked += 1
        return n_asked < 2 * len(SENTENCES) + 2 or place != 2

    found = translator.translate(SENTENCES, is_wanted=is_wanted, **WAYS[way])
    assert n_asked > 2 * len(SENTENCES) + 2
    assert found[2].status == "unwanted"
    assert [*found[:2], found[3]] == [*whole[:2], whole[3]]


def test_a_text_is_searched_as_long_as_one_of_its_equals_is_wanted(translator: Translator) -> None:
    (whole,) = translator.translate(SENTENCES[:1])
    found = translator.translate([SENTENCES[0]] * 3, is_wanted=lambda place: place == 2)
    assert found == [whole] * 3


def test_a_long_line_is_unwanted_in_all_its_parts(translator: Translator) -> None:
    long = " ".join(SENTENCES * 20)
    short, found = translator.translate([SENTENCES[0], long], is_wanted=lambda place: place == 0)
    assert short == translator.translate(SENTENCES[:1])[0]
    assert found.status == "unwanted"


def test_parts_of_one_key_and_different_texts_are_no_equals(translator: Translator) -> None:
    """A server's batch holds the first lines of several requests."""
    tag = translator.reader.tag(None)
    options = replace(translator.options, sample=True, seed=7)
    chunks = [translator.reader.parts(Line(text), 0, tag)[0] for text in SENTENCES]
    together = translator.searcher.search(chunks, options)
    assert together == [translator.searcher.search([chunk], options)[0] for chunk in chunks]
    assert len({one.text for one in together}) == len(SENTENCES)


def test_lines_with_slots_are_searched_apart_from_others(
    slots_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where they fit into one batch they stay together: two searches take longer than one."""
    translator = heed.load(slots_model, threads=1)
    lines = ["open the file.", "{name} and the file 12", "the file", "open {name}", "open 12"] * 2
    alone = [translator.translate([line])[0] for line in lines]
    batches: list[list[bool]] = []

    def decode(searcher: Searcher, chunks: list[Chunk], *args: Any, **options: Any) -> Any:
        batches.append([chunk.source is not None for chunk in chunks])
        return whole(searcher, chunks, *args, **options)

    whole = Searcher.decode
    monkeypatch.setattr(Searcher, "decode", decode)
    assert translator.translate(lines) == alone
    assert [len(batch) for batch in batches] == [5]
    batches.clear()
    translator.batch_tokens = 100
    assert translator.translate(lines) == alone
    assert len(batches) > 1
    assert all(len({*batch}) == 1 for batch in batches)


CLAUSES = "the man is riding a bike , two dogs play in the snow"


@pytest.fixture(scope="module")
def words() -> Vocab:
    return train_vocab([CLAUSES, "der Mann und zwei Hunde"] * 5, size=300, kind="word")


def written(
    vocab: Vocab, answer: Callable[[str], tuple[str, bool]]
) -> Callable[..., list[list[Hypothesis]]]:
    """A search that finds these answers: a text, and whether it ended or was cut off."""

    def decode(searcher: Searcher, chunks: list[Chunk], *_: Any, **__: Any) -> Any:
        found = []
        for chunk in chunks:
            text, ended = answer(vocab.decode(chunk.src_ids))
            ids = vocab.encode(text)
            scores = [-0.1] * (len(ids) + ended)
            one = Hypothesis(
                ids=ids,
                token_log_probs=scores,
                log_prob=sum(scores),
                score=-0.1,
                status="eos" if ended else "max_length",
            )
            found.append([one])
        return found

    return decode


@pytest.mark.parametrize(
    ("limits", "is_repaired"),
    [
        ({"max_length": 5}, True),
        ({"max_length": 4}, False),
        ({"max_length_factor": 0.0, "max_length_offset": 5.0}, True),
        ({"max_length_factor": 0.0, "max_length_offset": 4.0}, False),
    ],
)
def test_two_halves_are_together_no_longer_than_a_translation_may_be(
    words: Vocab, monkeypatch: pytest.MonkeyPatch, limits: dict[str, Any], is_repaired: bool
) -> None:
    """Each half has two tokens; the whole has four and `<eos>`."""

    def answer(source: str) -> tuple[str, bool]:
        if source == CLAUSES:
            return "zwei Hunde", False
        return ("der Mann" if "man" in source else "zwei Hunde"), True

    translator = make_translator(words)
    translator.searches_again = True
    monkeypatch.setattr(Searcher, "decode", written(words, answer))
    (found,) = translator.translate([CLAUSES], **limits)
    if is_repaired:
        assert found.text == "der Mann zwei Hunde"
        assert (found.status, len(found.token_scores)) == ("ok", 5)
    else:
        assert (found.text, found.status) == ("zwei Hunde", "max_length")
    assert ("repaired" in {doubt.kind for doubt in found.doubts}) == is_repaired


def test_a_long_line_tells_which_of_its_parts_was_cut_off(
    words: Vocab, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = make_translator(words, max_source_tokens=7)
    decode = written(words, lambda source: ("der Mann", "dogs" not in source))
    monkeypatch.setattr(Searcher, "decode", decode)
    (found,) = translator.translate([CLAUSES])
    assert (found.text, found.status) == ("der Mann der Mann", "split")
    (doubt,) = [doubt for doubt in found.doubts if doubt.kind == "max_length"]
    assert (doubt.start, doubt.end) == (len("der Mann "), len(found.text))


@pytest.mark.parametrize(("size", "n_searches"), [(1, 1), (2, 2)])
def test_a_search_is_not_repeated_with_the_same_options(
    words: Vocab, monkeypatch: pytest.MonkeyPatch, size: int, n_searches: int
) -> None:
    calls: list[str] = []

    def answer(source: str) -> tuple[str, bool]:
        calls.append(source)
        return "zwei Hunde", False

    translator = make_translator(words)
    translator.searches_again = True
    monkeypatch.setattr(Searcher, "decode", written(words, answer))
    translator.translate(["a man"], beam_size=5, alternatives=5, no_repeat_ngram_size=size)
    assert len(calls) == n_searches
