"""Given pairs are read as they are for translating, with slots: scores, next words, traces."""

import math
import random
from pathlib import Path

import pytest
from tests.slots_model import sentence

from heed.errors import ConfigError
from heed.text.extend import with_controls
from heed.text.protected import Rules, Span
from heed.text.slots import SLOT_PIECES, Slots
from heed.text.vocab import Vocab, train_vocab
from heed.translate.given_spans import given_marks, prefix_marks
from heed.translate.result import Translation
from heed.translate.source import Source, make_source
from heed.translate.translator import Translator, load

LINE = "save {name} and the file 12."
TRANSLATION = "{name} und die Datei 12 sichern."


@pytest.fixture(scope="module")
def translator(slots_model: Path) -> Translator:
    return load(slots_model, threads=1)


@pytest.fixture(scope="module")
def found(translator: Translator) -> dict[str, Translation]:
    """Lines that training may have seen, with their translations by the model."""
    chooser = random.Random(77)
    lines = sorted({sentence(chooser)[0] for _ in range(60)})
    return dict(zip(lines, translator.translate(lines), strict=True))


def test_the_model_has_learned_where_spans_belong(found: dict[str, Translation]) -> None:
    chooser = random.Random(77)
    right = dict(sentence(chooser) for _ in range(60))
    assert sum(found[line].text == right[line] for line in right) >= 0.9 * len(right)


def test_the_score_of_a_translation_is_its_own(
    translator: Translator, found: dict[str, Translation]
) -> None:
    scores = translator.score([*found], [each.text for each in found.values()])
    n_same = 0
    for own, score in zip(found.values(), scores, strict=True):
        if own.tokens == score.tokens[:-1]:  # else the search has cut a word in another way
            n_same += 1
            assert score.log_prob == pytest.approx(own.log_prob, abs=1e-3)
            assert score.token_scores == pytest.approx(own.token_scores, abs=1e-3)
    assert n_same >= 0.9 * len(found)


def test_a_lost_or_foreign_span_costs(translator: Translator) -> None:
    right, lost, foreign = translator.score(
        [LINE] * 3, [TRANSLATION, TRANSLATION.replace("{name} ", ""), "{title} und die Datei 12."]
    )
    assert right.log_prob > lost.log_prob + 5
    assert right.log_prob > foreign.log_prob + 5


def test_numbers_of_a_given_translation_may_be_written_as_its_language_does(
    translator: Translator,
) -> None:
    line = "save %s and the file 1,500."
    own, other = translator.score(
        [line] * 2, ["%s und die Datei 1,500 sichern.", "%s und die Datei 1.500 sichern."]
    )
    assert "1.500" in other.tokens
    assert own.token_scores == other.token_scores


def test_next_words_multiply_to_the_score(translator: Translator) -> None:
    (score,) = translator.score([LINE], [TRANSLATION])
    prefix, total = "", 0.0
    for wanted in ("{name}", "▁", "u", "n"):
        choices = translator.next_word(LINE, prefix, k=400)
        chances = {choice.token: choice.probability for choice in choices}
        total += math.log(chances[wanted])
        prefix += wanted.replace("▁", " ")
        if wanted == "▁":
            break  # a prefix ends with no blank
    assert total == pytest.approx(sum(score.token_scores[:2]), abs=1e-3)


def test_a_span_may_be_next_until_it_is_there(translator: Translator) -> None:
    tokens = [choice.token for choice in translator.next_word(LINE, "{name} und die Datei", k=400)]
    assert "12" in tokens
    assert "{name}" not in tokens
    assert not any(token in SLOT_PIECES for token in tokens)
    done = translator.next_word(LINE, "{name} und die Datei 12", k=400)
    assert "12" not in [choice.token for choice in done]


def test_continuations_show_and_keep_spans(translator: Translator) -> None:
    found = translator.continuations(LINE, "{name} und die Datei", k=3)
    assert all(each.translation.text.count("12") == 1 for each in found)
    assert all(each.translation.text.count("{name}") == 1 for each in found)
    first = translator.continuations(LINE, k=1)[0]
    assert (first.token, first.translation.text) == ("{name}", TRANSLATION)


def test_an_alignment_shows_spans_and_links_them(translator: Translator) -> None:
    found = translator.align(LINE, TRANSLATION)
    assert {"{name}", "12"} <= {*found.source_tokens} & {*found.target_tokens}
    assert not any(token in SLOT_PIECES for token in found.source_tokens + found.target_tokens)
    assert len(found.weights) == len(found.target_tokens)
    assert {len(row) for row in found.weights} == {len(found.source_tokens)}


def test_a_trace_holds_what_translate_wrote(translator: Translator) -> None:
    own = translator.translate([LINE])[0]
    searched, given = translator.trace(LINE), translator.trace(LINE, own.text)
    for trace in (searched, given):
        assert trace.translation == own.text
        assert {"{name}", "12"} <= {*trace.source_tokens} & {*trace.target_tokens}
        log_probs = trace["log_probs"]
        total = sum(log_probs[row, id] for row, id in enumerate(trace.expected_ids))
        assert total == pytest.approx(own.log_prob, abs=1e-3)
    batch = translator.trace([LINE, "open the file."])
    assert batch.sentences[0].without_padding().source_tokens == searched.source_tokens
    assert batch.sentences[0].translation == own.text


@pytest.fixture(scope="module")
def slots() -> Slots:
    vocab: Vocab = with_controls(train_vocab(["the man"] * 9, size=280), SLOT_PIECES)
    assert vocab.slots is not None
    return vocab.slots


def source_of(text: str, spans: list[Span], slots: Slots) -> Source:
    return make_source(text, spans, Rules.default(), (slots, slots))


def test_a_name_in_a_prefix_is_found(slots: Slots) -> None:
    source = source_of("Zorblax sleeps", [Span(0, 7, "thing", "name")], slots)
    assert prefix_marks("Hier schläft Zorblax", source) == [(13, 20, slots.things[0])]
    assert prefix_marks("Hier schläft Zorblaxin", source) == []


def test_half_a_pair_is_text_in_a_translation_and_a_span_in_a_prefix(slots: Slots) -> None:
    spans = [Span(0, 3, "open", "tag", 1), Span(5, 9, "close", "tag", 0)]
    source = source_of("<b>OK</b>", spans, slots)
    assert prefix_marks("so <b>gut", source) == [(3, 6, slots.opens[0])]
    marks, _ = given_marks("so <b>gut</b>", source)
    assert marks == [(3, 6, slots.opens[0]), (9, 13, slots.closes[0])]
    assert given_marks("so <b>gut", source)[0] == []


def test_a_message_is_the_same_with_other_texts(slots: Slots) -> None:
    text = "{n, plural, one {a dog} other {# dogs}}"
    span = Span(0, len(text), "thing", "icu", None, ((17, 22), (31, 37)))
    source = source_of(text, [span], slots)
    german = "{n, plural, one {ein Hund} other {# Hunde}}"
    marks, spelled = given_marks(german, source)
    assert marks == [(0, len(german), slots.things[0])]
    assert spelled.spans[0].text == german
    assert given_marks(german.replace("one", "two"), source)[0] == []


def test_a_translator_may_be_loaded_with_rules_of_its_own(slots_model: Path) -> None:
    line = "open the file and the page %s."
    own = load(slots_model, threads=1, protect=["none", "the page"])
    assert own.translate([line])[0].text.count("the page") == 1
    usual = load(slots_model, threads=1)
    assert own.translate([line], protect="default")[0].text == usual.translate([line])[0].text
    assert load(slots_model, protect="none").reader.rules.is_empty
    with pytest.raises(ConfigError, match="not a valid regular expression"):
        load(slots_model, protect="(")


def test_spans_of_a_prefix_stand_once(translator: Translator) -> None:
    for prefix in ("{name} und", "12 und {name}", "die Datei 12 und"):
        (found,) = translator.translate([LINE], prefixes=[prefix])
        assert found.text.startswith(prefix)
        assert found.text.count("{name}") == found.text.count("12") == 1


def test_a_pair_around_more_than_a_piece_stays_around_it(translator: Translator) -> None:
    inside = "print the map %s and the page 12, " * 12
    (found,) = translator.translate([f"open the file <i>{inside}</i>. save {{name}}."])
    before, _, rest = found.text.partition("<i>")
    between, _, after = rest.partition("</i>")
    assert found.status == "split"
    assert between.count("%s") == between.count("12") == 12
    assert "%s" not in before + after and "{name}" in after
