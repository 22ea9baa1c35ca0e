"""Translations with the terms of a glossary, by any model."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.decodable import TorchDecodable
from heed.model.interface import ArrayNextTokens
from heed.text.extend import with_controls
from heed.text.protected import Rules, find_spans
from heed.text.slots import SLOT_PIECES
from heed.text.vocab import Vocab, train_vocab
from heed.translate.doubts.judge import Judge
from heed.translate.glossary.glossary import Glossary
from heed.translate.glossary.honored import find_banned, find_targets
from heed.translate.glossary.placing import Site
from heed.translate.glossary.reading import rows_of
from heed.translate.inspect import mean_log_probs
from heed.translate.lines import Line
from heed.translate.result import Doubt, Translation
from heed.translate.translator import Translator
from heed.translate.words import word_spans

SENTENCES = [
    "the old man sees a dog near the house",
    "der alte Mann sieht einen Hund beim Haus",
    "Press OK to save 12 files (see the log).",
    "Zum Speichern von 12 Dateien OK drücken (siehe Protokoll).",
]


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return train_vocab(SENTENCES * 3, size=400)


def random_translator(vocab: Vocab, seed: int = 0, **options: Any) -> Translator:
    torch.manual_seed(seed)
    config = ModelConfig(
        src_vocab_size=vocab.size,
        tgt_vocab_size=vocab.size,
        d_model=16,
        n_heads=2,
        d_ff=32,
        n_encoder_layers=1,
        n_decoder_layers=1,
    )
    model = build_model(config).eval()
    return Translator(TorchDecodable(model, torch.device("cpu")), vocab, vocab, **options)


@pytest.fixture(scope="module")
def translator(vocab: Vocab) -> Translator:
    return random_translator(vocab)


def test_the_score_of_a_text_does_not_depend_on_longer_ones(vocab: Vocab) -> None:
    """Bit for bit, so that the place of a term does not depend on other lines."""
    random = np.random.default_rng(1)
    table = np.log(random.dirichlet(np.ones(vocab.size), size=vocab.size)).astype(np.float32)

    class AfterOne:
        """Log-probs that depend on the last token only."""

        def teacher_forced(self, src: np.ndarray, tgt_in: np.ndarray) -> ArrayNextTokens:
            return ArrayNextTokens(table[tgt_in.ravel()])

    model: Any = AfterOne()
    for _ in range(20):
        short, long = (random.integers(9, vocab.size, size).tolist() for size in (13, 40))
        pairs = [([5], short), ([6], long)]
        together = mean_log_probs(model, (vocab, vocab), pairs)
        assert together == [mean_log_probs(model, (vocab, vocab), [pair])[0] for pair in pairs]


GLOSSARY = Glossary.of(
    {
        "dog": "Dackel|Dackeln",
        "old man": "Greis",
        "house": "Haus am See",
        "OK": "=",
        "log": "Protokoll|!Log",
        "files": "Dateien",
    }
)
WORDS = ["the", "old man", "dog", "house", "OK", "log", "files", "sees", "(", ")", ".", "%s", "12"]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=7), st.integers(0, 3))
def test_a_model_with_random_weights_writes_every_term(
    vocab: Vocab, words: list[str], seed: int
) -> None:
    text = " ".join(words)
    translator = random_translator(vocab, seed)
    (found,) = translator.translate([text], glossary=GLOSSARY, max_length=60, beam_size=2)
    occurrences = GLOSSARY.occurrences(text)
    doubts = [doubt for doubt in found.doubts if doubt.kind.startswith("glossary_")]
    named = " ".join(doubt.sentence for doubt in doubts)
    for one, place in zip(occurrences, find_targets(found.text, occurrences), strict=True):
        assert place is not None or f"{one.term}." in named
    # Random weights write signs around a field, between which a term may find no place.
    assert not named or "%s" in words
    assert text.count("%s") == found.text.count("%s")


class Suspicious(Judge):
    """Doubts every answer that has a term, and no other."""

    def judge(
        self,
        found: Sequence[Translation],
        sources: Sequence[str | None] = (),
        *,
        own: Sequence[Translation] | None = None,
    ) -> list[Translation]:
        doubt = Doubt(kind="left_out", sentence="Something is left out.")
        return [replace(each, doubts=(doubt,) if "Dackel" in each.text else ()) for each in found]


def test_a_second_search_does_not_lose_the_terms(vocab: Vocab) -> None:
    translator = random_translator(vocab, judge=Suspicious(None, vocab, vocab))
    translator.searches_again = True
    text = "the old man sees a dog, near the house, OK"
    for given_options in ({}, {"n_best": 3}):
        (found,) = translator.translate([text], glossary=GLOSSARY, max_length=60, **given_options)
        assert "Dackel" in found.text
        (plain,) = translator.translate([text], max_length=60, **given_options)
        assert "Dackel" not in plain.text


class Attentive(Judge):
    """Remembers what it is shown, and raises a doubt about the text against each."""

    def __init__(self, vocab: Vocab) -> None:
        super().__init__(None, vocab, vocab)
        self.shown: list[Translation] = []

    def judge(
        self,
        found: Sequence[Translation],
        sources: Sequence[str | None] = (),
        *,
        own: Sequence[Translation] | None = None,
    ) -> list[Translation]:
        self.shown += found
        return [
            replace(each, doubts=(Doubt(kind="added", sentence=each.text),), confidence=0.5)
            for each in found
        ]


@pytest.mark.parametrize("alignment", [False, True])
def test_a_translation_with_terms_is_judged_in_pieces(vocab: Vocab, alignment: bool) -> None:
    """What was learned of doubts knows pieces: words without blanks would all be unknown."""
    judge = Attentive(vocab)
    translator = random_translator(vocab, judge=judge)
    text = "the old man sees a dog near the house"
    given_options: dict[str, Any] = {"max_length": 60, "alignment": alignment}
    (plain,) = translator.translate([text], **given_options)
    (found,) = translator.translate([text], glossary=GLOSSARY, **given_options)
    first, shown = judge.shown
    assert found.text == shown.text != plain.text
    assert shown.tokens == vocab.pieces(vocab.encode(found.text))
    assert (shown.source_tokens, shown.token_scores) == (first.source_tokens, first.token_scores)
    assert [doubt.sentence for doubt in found.doubts] == [found.text]
    assert found.confidence == 0.5
    # Words have alignments, pieces would not.
    assert "Dackel" in found.tokens
    assert not found.token_scores
    assert (found.alignment is None) is not alignment


@pytest.fixture
def linked(monkeypatch: pytest.MonkeyPatch) -> list[Translation]:
    """The translations whose words were linked with those of their sources."""
    found: list[Translation] = []
    make = Site.of

    def of(*args: Any, **ways: Any) -> Site:
        found.append(args[3])
        return make(*args, **ways)

    monkeypatch.setattr(Site, "of", of)
    return found


def test_the_pieces_of_a_line_in_capitals_are_found_in_its_translation(
    vocab: Vocab, linked: list[Translation]
) -> None:
    translator = random_translator(with_controls(vocab, SLOT_PIECES))
    translator.translate(["THE OLD MAN SEES A DOG {x}"], glossary=GLOSSARY, max_length=60)
    letters = [token for token in linked[0].tokens if not token.startswith(("{x}", "<0x"))]
    assert letters and letters == [token.upper() for token in letters]


@pytest.mark.parametrize("text", ["*the old man sees a dog*", "<b>12</b>: %s, the dog"])
def test_terms_are_linked_with_the_text_of_spans(
    vocab: Vocab, text: str, linked: list[Translation]
) -> None:
    """With the names of slots in place of spans, all words after a span would be linked wrongly."""
    translator = random_translator(with_controls(vocab, SLOT_PIECES))
    translator.translate([text], glossary=GLOSSARY, max_length=60)
    wanted = Counter(text[span.start : span.end] for span in find_spans(text, Rules.default()))
    for tokens in (linked[0].tokens, linked[0].source_tokens):
        assert Counter(token for token in tokens if token in wanted) == wanted


def test_a_term_replaces_a_word_in_emphasis(vocab: Vocab) -> None:
    assert [one.term for one in GLOSSARY.occurrences("a _dog_ and __files__")] == ["dog", "files"]
    translator = random_translator(with_controls(vocab, SLOT_PIECES))
    (found,) = translator.translate(["_dog_"], glossary=GLOSSARY, max_length=30)
    assert "dackel" in found.text.casefold() and found.text.count("_") == 2


FIELDS = Glossary.of(
    {"dog": "Dackel %s", "house": "<b>Haus</b>", "log": "http://a.b/c|Log {x}", "OK": "="}
)
SPANS = ["%s", "{x}", "<b>", "</b>", "http://a.b/c", "12", "dog", "house", "log", "OK", "sees"]


@pytest.mark.parametrize("has_slots", [False, True])
@settings(max_examples=25, deadline=None)
@given(words=st.lists(st.sampled_from(SPANS), min_size=1, max_size=7), seed=st.integers(0, 3))
def test_terms_with_fields_of_their_own_leave_those_of_the_source(
    vocab: Vocab, has_slots: bool, words: list[str], seed: int
) -> None:
    text = " ".join(words)
    spoken = with_controls(vocab, SLOT_PIECES) if has_slots else vocab
    translator = random_translator(spoken, seed)
    (found,) = translator.translate([text], glossary=FIELDS, max_length=60, beam_size=2)
    wanted = Counter(text[span.start : span.end] for span in find_spans(text, Rules.default()))
    forms = [form for one in FIELDS.occurrences(text) for form in one.targets]
    named = " ".join(doubt.sentence for doubt in found.doubts)
    for span, n in wanted.items():
        n_more = sum(form.count(span) for form in forms)
        assert n <= found.text.count(span) <= n + n_more or span in named


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"beam_size": 3, "n_best": 3}])
@pytest.mark.parametrize("prefix", ["dog", "der alte Hund", "OK %s: ein Hu"])
@pytest.mark.parametrize("text", ["the dog", "%s: the old man sees a dog near the house"])
def test_terms_leave_a_required_beginning_as_it_is(
    vocab: Vocab, options: dict[str, Any], prefix: str, text: str
) -> None:
    for seed in range(4):
        translator = random_translator(vocab, seed)
        (found,) = translator.translate(
            [text], prefixes=[prefix], glossary=GLOSSARY, max_length=40, **options
        )
        for one in (found, *found.alternatives):
            assert one.text.startswith(prefix)
            assert "dackel" in one.text.casefold() or one.doubts


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"sample": True, "seed": 3}, {}])
def test_terms_stand_in_the_answers_of_every_kind_of_search(
    translator: Translator, options: dict[str, Any]
) -> None:
    (found,) = translator.translate(["the dog"], glossary=GLOSSARY, max_length=30, **options)
    assert "dackel" in found.text.casefold()


def test_a_term_is_in_capitals_in_a_line_in_capitals_with_a_field(translator: Translator) -> None:
    text = "NEAR THE DOG OF {name}"
    (found,) = translator.translate([text], glossary=GLOSSARY, max_length=30)
    assert "DACKEL" in found.text and "{name}" in found.text


def test_terms_stand_in_the_alternatives_too(translator: Translator) -> None:
    options: dict[str, Any] = {"beam_size": 4, "n_best": 4, "max_length": 30}
    found = translator.translate(["the dog", "near the man"], glossary=GLOSSARY, **options)
    assert len(found[0].alternatives) == 3
    for one in (found[0], *found[0].alternatives):
        is_doubted = any(doubt.kind == "glossary_not_placed" for doubt in one.doubts)
        assert ("dackel" in one.text.casefold()) != is_doubted
    assert any("dackel" in one.text.casefold() for one in found[0].alternatives)
    assert found[1] == translator.translate(["near the man"], **options)[0]


def test_the_answer_to_a_line_does_not_depend_on_the_others(translator: Translator) -> None:
    texts = ["the dog", "a log and the house", "no term here", "the old man"]
    together = translator.translate(texts, glossary=GLOSSARY, max_length=30)
    alone = [translator.translate([text], glossary=GLOSSARY, max_length=30)[0] for text in texts]
    assert [one.text for one in together] == [one.text for one in alone]


def test_lines_without_terms_are_what_they_are_without_a_glossary(translator: Translator) -> None:
    texts = ["near the man", "12 (see)"]
    assert translator.translate(texts, glossary=GLOSSARY) == translator.translate(texts)


def test_a_line_with_an_empty_glossary_has_no_terms(translator: Translator) -> None:
    without = Line("the dog", glossary=Glossary.empty())
    found = translator.translate([without, "the dog"], glossary=GLOSSARY, max_length=30)
    assert found[0] == translator.translate(["the dog"], max_length=30)[0]
    assert found[0].text != found[1].text


def test_a_line_may_have_a_glossary_of_its_own(translator: Translator) -> None:
    own = Line("the dog", glossary=Glossary.of({"dog": "Pudel"}))
    found = translator.translate([own, "the dog"], glossary=GLOSSARY, max_length=30)
    assert "pudel" in found[0].text.casefold() and "dackel" in found[1].text.casefold()


def test_a_forbidden_word_is_not_written_where_another_can_be(translator: Translator) -> None:
    (plain,) = translator.translate(["the dog"], max_length=20)
    spans = word_spans(plain.text)
    words = [plain.text[start:end] for start, end in spans if plain.text[start:end].isalnum()]
    assert words, "the model says something"
    glossary = Glossary(rows_of(f"\t!{words[0]}"))
    (found,) = translator.translate(["the dog"], glossary=glossary, max_length=20)
    banned = find_banned(found.text, [], glossary)
    assert not banned or any(doubt.kind == "glossary_forbidden" for doubt in found.doubts)
    assert found.text != plain.text


def test_a_glossary_is_read_and_passed_as_one_object(
    translator: Translator, tmp_path: Path
) -> None:
    import heed

    path = tmp_path / "terms.tsv"
    path.write_text("dog\tDackel\n", encoding="utf-8")
    glossary = heed.Glossary.read(path)
    assert "dackel" in translator("the dog", glossary=glossary, max_length=30).casefold()
    (found,) = translator.translate_stream(["the dog"], glossary=glossary, max_length=30)
    assert "dackel" in found.text.casefold()
