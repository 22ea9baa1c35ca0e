import copy
import math
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import heed
from heed.bundle.alignment import AlignmentHeads
from heed.bundle.bundle import Bundle, save_bundle
from heed.decode import batching as schedule
from heed.decode.options import DecodeOptions, options_from
from heed.engine.network import Network
from heed.engine.runtime import Engine
from heed.errors import ConfigError, DataError, FormatError, UsageError
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.decodable import TorchDecodable, TorchState
from heed.text.vocab import Vocab, train_vocab
from heed.train.step.averages import to_arrays
from heed.translate.lines import Line, LineReader, buffers, with_prefixes
from heed.translate.result import Translation, join_parts, keep_distinct, strongest_links
from heed.translate.translator import Translator, load

SENTENCES = [
    "A man is riding a bike.",
    "Ein Mann fährt Fahrrad.",
    "Two dogs play in the snow.",
    "纽约是一座城市",
    "New York is a city",
]
ODD = [
    "",
    " ",
    "\u2028",
    "a\u2028b",
    "\r",
    "\x00",
    "👍🏽",
    "שלום",
    "</s> <pad> <2de>",
    "▁",
    "\ud800",
]


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return train_vocab(SENTENCES * 5, size=330, languages=("de", "zh"))


def make_config(vocab: Vocab) -> ModelConfig:
    return ModelConfig(
        src_vocab_size=vocab.size,
        tgt_vocab_size=vocab.size,
        d_model=16,
        n_heads=2,
        d_ff=16,
        n_encoder_layers=1,
        n_decoder_layers=2,
    )


def network_of(translator: Translator) -> torch.nn.Module:
    assert isinstance(translator.model, TorchDecodable)
    return translator.model.network


def make_translator(vocab: Vocab, **options: Any) -> Translator:
    settings_ = {"source_lang": "en", "target_lang": "de", "options": DecodeOptions(max_length=12)}
    torch.manual_seed(1)
    model = TorchDecodable(build_model(make_config(vocab)).eval(), torch.device("cpu"))
    return Translator(model, vocab, vocab, **(settings_ | options))


@pytest.fixture(scope="module")
def translator(vocab: Vocab) -> Translator:
    return make_translator(vocab)


def test_a_line_is_in_the_language_that_its_target_implies(vocab: Vocab) -> None:
    languages = {"source_lang": "de", "target_lang": "zh", "target_langs": ("zh", "de")}
    reader = make_translator(vocab, **languages).reader
    for target, source in (("zh", "de"), ("de", "zh")):
        assert reader.cutter(reader.tag(target), reader.rules).source_lang == source


def test_a_text_gives_a_text_and_a_list_a_list(translator: Translator) -> None:
    text = translator("A man is riding a bike.")
    assert isinstance(text, str)
    assert translator(["A man is riding a bike.", ""]) == [text, ""]
    assert str(translator.translate(["A man is riding a bike."])[0]) == text


@pytest.mark.parametrize("text", ["\nA man.\n", "A\r\nman.", "\u2028 A man.\x85", "A\n\nman."])
def test_a_text_is_read_as_one_line(translator: Translator, text: str) -> None:
    """Line breaks count as blanks; `heed.documents.passages` keeps them."""
    assert translator([text]) == [translator("A man.")]
    assert translator(text) == translator("A man.")


def test_a_blank_line_stays_blank_and_says_so(translator: Translator) -> None:
    for blank in ("", "  ", "\u2028", "\x00", "\r"):
        (found,) = translator.translate([blank])
        assert (found.text, found.status, found.tokens) == ("", "empty", [])


@settings(max_examples=15)
@given(st.lists(st.one_of(st.sampled_from(ODD + SENTENCES), st.text(max_size=20)), max_size=6))
def test_as_many_lines_come_out_as_went_in_and_none_is_broken(
    vocab: Vocab, texts: list[str]
) -> None:
    found = make_translator(vocab).translate(texts, beam_size=1, max_length=4)
    assert len(found) == len(texts)
    for translation in found:
        assert len(translation.text.splitlines()) <= 1


@pytest.mark.parametrize("options", [{"alignment": True}, {"sample": True, "seed": 3}])
def test_batches_side_by_side_change_nothing(
    vocab: Vocab, translator: Translator, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    weights = to_arrays(network_of(translator).state_dict())
    network = Network.of(make_config(vocab), weights)
    lines = [*SENTENCES, "", "A man", "Two dogs " * 5]
    expected = Translator(Engine(network), vocab, vocab).translate(lines, max_length=12, **options)
    for threads in (2, 3):
        for least in (1, 30):
            monkeypatch.setattr(schedule, "BESIDE_TOKENS", least)
            several = Translator(Engine(network, threads=threads), vocab, vocab)
            assert several.translate(lines, max_length=12, **options) == expected


@pytest.mark.parametrize("options", [{}, {"beam_size": 1}, {"sample": True, "seed": 3}])
def test_neighbors_and_batches_do_not_change_a_line(vocab: Vocab, options: dict[str, Any]) -> None:
    lines = [*SENTENCES, "", "A man", "Two dogs " * 5]
    alone = [
        make_translator(vocab).translate([line], first_line=number, **options)[0]
        for number, line in enumerate(lines)
    ]
    for batch in ({"batch_tokens": 1}, {"batch_tokens": 10_000}, {"batch_lines": 3}):
        together = make_translator(vocab, **batch).translate(lines, **options)
        assert [found.text for found in together] == [found.text for found in alone]
        for found, single in zip(together, alone, strict=True):
            # Matrix products of other shapes round differently in the last bits.
            assert found.log_prob == pytest.approx(single.log_prob, abs=1e-4)


def test_order_does_not_change_a_line(translator: Translator) -> None:
    lines = [sentence * n for n in (1, 2, 3) for sentence in SENTENCES]
    mixed = random.Random(0).sample(lines, len(lines))
    found = dict(zip(mixed, translator(mixed), strict=True))
    assert [found[line] for line in lines] == translator(lines)


def test_a_stream_gives_the_same_whatever_its_portions(translator: Translator) -> None:
    lines = [*SENTENCES, "", "A man"]
    whole = [str(found) for found in translator.translate(lines, sample=True, seed=5)]
    for buffer in ({"buffer_lines": 1}, {"buffer_lines": 3}, {"buffer_chars": 10}):
        stream = translator.translate_stream(iter(lines), sample=True, seed=5, **buffer)
        assert [str(found) for found in stream] == whole


def test_a_stream_reads_no_further_than_its_buffer(translator: Translator) -> None:
    n_read = 0

    def endless() -> Iterator[str]:
        nonlocal n_read
        while True:
            n_read += 1
            yield "A man"

    stream = translator.translate_stream(endless(), buffer_lines=4, beam_size=1)
    next(stream)
    assert n_read == 4


def test_a_seed_decides_samples_and_another_changes_them(translator: Translator) -> None:
    def draw(seed: int) -> list[str]:
        return [str(found) for found in translator.translate(SENTENCES, sample=True, seed=seed)]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_equal_lines_are_searched_once(
    vocab: Vocab, monkeypatch: pytest.MonkeyPatch, beam_size: int
) -> None:
    translator = make_translator(vocab, target_langs=("de", "zh"))
    sizes = []

    def start(src: Any, **options: Any) -> TorchState:
        sizes.append(len(src))
        return begin(src, **options)

    begin = translator.model.start
    monkeypatch.setattr(translator.model, "start", start)
    a, b = SENTENCES[0], SENTENCES[2]
    lines = [a, b, Line(a, prefix="Ein"), f" {a} ", Line(a, target_lang="zh"), b, a]
    found = translator.translate(lines, beam_size=beam_size)
    assert sum(sizes) == 4
    assert found[0] == found[3] == found[6]
    assert found[1] == found[5]
    assert len({str(one) for one in found[:3]} | {str(found[4])}) == 4
    for one, line in zip(found, lines, strict=True):
        (alone,) = translator.translate([line], beam_size=beam_size)
        assert str(alone) == str(one)


def test_equal_lines_get_samples_of_their_own(translator: Translator) -> None:
    assert len(set(translator(["A man"] * 8, sample=True))) > 1


def test_a_line_that_is_too_long_is_split_and_loses_nothing(vocab: Vocab) -> None:
    translator = make_translator(vocab, max_source_tokens=20)
    long = "A man is riding. Two dogs play in the snow, a man is riding a bike. New York " * 3
    (found,) = translator.translate([long], alignment=True, n_best=2)
    assert found.status == "split"
    whole = "".join(found.source_tokens).replace("▁", " ").split()
    assert "".join(whole).count("<0x") + len(whole) >= len(long.split())
    assert len(found.alignment) == len(found.tokens)
    assert {len(row) for row in found.alignment} == {len(found.source_tokens)}
    assert len(found.alternatives) == 1


def test_short_neighbors_of_a_long_line_stay_as_they_are(vocab: Vocab) -> None:
    translator = make_translator(vocab, max_source_tokens=20)
    long = "word " * 2000
    found = translator.translate(["A man", long, "Two dogs"], beam_size=1)
    assert [f.status == "split" for f in found] == [False, True, False]
    assert [found[0].text, found[2].text] == translator(["A man", "Two dogs"], beam_size=1)


def test_a_forced_prefix_opens_the_translation(translator: Translator) -> None:
    found = translator.translate(["A man", "Two dogs", ""], prefixes=["Ein Mann", "", "Ein"])
    assert found[0].text.startswith("Ein Mann")
    assert found[1].text == translator("Two dogs")
    assert found[2].status == "empty"


def test_prefixes_must_match_the_lines(translator: Translator) -> None:
    with pytest.raises(
        DataError, match="one prefix for each line, but there are 2 lines and 1 prefix"
    ):
        translator.translate(["a", "b"], prefixes=["x"])
    with pytest.raises(DataError, match="line 2 has none: there are only 1"):
        list(translator.translate_stream(["a", "b"], prefixes=["x"]))
    with pytest.raises(DataError, match=r"prefix of line 2 must be shorter than max_length \(3\)"):
        translator.translate(["a", "b"], prefixes=["", "Ein Mann fährt"], max_length=3)


def test_one_text_is_not_a_list_of_letters(translator: Translator) -> None:
    with pytest.raises(UsageError, match=r"^texts must be a list of strings, but is '"):
        translator.translate("A man")


def test_n_best_come_best_first(translator: Translator) -> None:
    (found,) = translator.translate(["A man"], n_best=4)
    scores = [found.score, *(other.score for other in found.alternatives)]
    assert len(scores) == 4
    assert scores == sorted(scores, reverse=True)


def test_alternatives_are_other_texts_and_leave_the_best_as_it_is(translator: Translator) -> None:
    # Wide, since this untrained model writes broken bytes that read the same.
    best = translator("A man", beam_size=16)
    for count in (1, 2):
        (found,) = translator.translate(["A man"], alternatives=count, beam_size=16)
        texts = [found.text, *(other.text for other in found.alternatives)]
        assert texts[0] == best
        assert len(set(texts)) == len(texts) == count + 1
    (found,) = translator.translate(["A man"], alternatives=9, beam_size=1)
    assert 1 <= len(found.alternatives) <= 9
    (drawn,) = translator.translate(["A man"], alternatives=3, sample=True, seed=1)
    assert 1 <= len(drawn.alternatives) <= 3
    (blank,) = translator.translate([""], alternatives=3)
    assert blank.alternatives == ()


def test_equal_and_empty_texts_are_no_alternatives() -> None:
    texts = ["a", "b", "a", "", "b", "c", "d"]
    best, *others = [Translation(text=text, score=-rank) for rank, text in enumerate(texts)]
    found = keep_distinct(replace(best, alternatives=tuple(others)), 2)
    assert [(one.text, one.score) for one in (found, *found.alternatives)] == [
        ("a", 0),
        ("b", -1),
        ("c", -5),
    ]


def test_a_line_may_have_a_language_and_a_prefix_of_its_own(vocab: Vocab) -> None:
    translator = make_translator(vocab, target_lang="de", target_langs=("de", "zh"))
    lines = [Line("A man", "Ein", "zh"), Line("A man"), "A man"]
    found = [str(one) for one in translator.translate(lines, target_lang="zh")]
    assert found[0] == str(translator.translate(["A man"], prefixes=["Ein"], target_lang="zh")[0])
    assert found[1] == found[2] == translator("A man", target_lang="zh")
    assert [str(one) for one in translator.translate_stream(lines, target_lang="zh")] == found
    with pytest.raises(DataError, match=r"Line 2: This model translates into de, zh, not into fr"):
        translator.translate(["A", Line("A", target_lang="fr")])


def test_prefixes_of_a_call_are_laid_on_lines() -> None:
    lines = with_prefixes([Line("a", target_lang="zh"), "b"], ["x", "y"])
    assert list(lines) == [Line("a", "x", "zh"), Line("b", "y")]


def test_a_search_that_never_ends_is_cut_and_says_so(translator: Translator) -> None:
    eos = translator.tgt_vocab.eos_id
    (found,) = translator.translate(["A man"], suppress=(eos,), max_length=5)
    assert found.status == "max_length"
    assert len(found.tokens) == 5


def test_control_pieces_are_never_written(translator: Translator) -> None:
    vocab = translator.tgt_vocab
    control = {vocab.pieces([i])[0] for i in vocab.control_ids}
    for found in translator.translate(["A man"] * 20, sample=True, temperature=5.0):
        assert control.isdisjoint(found.tokens)


def test_scores_of_a_translation_are_those_of_the_search(translator: Translator) -> None:
    (found,) = translator.translate(["A man is riding a bike."], n_best=1)
    ids = [translator.tgt_vocab.pieces([i])[0] for i in translator.reader.tgt_ids(found.text)]
    if ids == found.tokens and found.status == "ok":
        (scored,) = translator.score(["A man is riding a bike."], [found.text])
        assert scored.log_prob == pytest.approx(found.log_prob, abs=1e-3)
    assert found.log_prob == pytest.approx(sum(found.token_scores), abs=1e-4)


def test_score_sums_token_scores_and_ends_with_eos(translator: Translator) -> None:
    """Claim 1."""
    pairs = translator.score(SENTENCES, SENTENCES[::-1])
    alone = [translator.score([s], [t])[0] for s, t in zip(SENTENCES, SENTENCES[::-1], strict=True)]
    for pair, single, tgt in zip(pairs, alone, SENTENCES[::-1], strict=True):
        assert len(pair.tokens) == len(pair.token_scores) == len(translator.reader.tgt_ids(tgt)) + 1
        assert pair.log_prob == pytest.approx(single.log_prob, abs=1e-4)
        assert pair.log_prob == pytest.approx(math.fsum(pair.token_scores), abs=1e-5)
        assert pair.score == pytest.approx(pair.log_prob / len(pair.tokens))
        assert pair.log_prob < 0


def test_score_takes_empty_sides(translator: Translator) -> None:
    assert [len(pair.tokens) for pair in translator.score(["", "a"], ["a", ""])][1] == 1
    assert translator.score([], []) == []


def test_score_refuses_unequal_sides(translator: Translator) -> None:
    with pytest.raises(
        DataError, match="one target for each source, but there are 2 sources and 1"
    ):
        translator.score(["a", "b"], ["a"])


@pytest.mark.parametrize("side", [0, 1])
def test_a_pair_that_is_too_long_gets_no_score_and_leaves_the_others(
    translator: Translator, side: int
) -> None:
    pairs = [["A man", "Ein Mann"], ["Two dogs", "Zwei Hunde"]]
    alone = translator.score(*zip(*pairs, strict=True))
    monster = ["New York", "New York"]
    monster[side] = "word " * 10_000
    first, long, last = translator.score(*zip(pairs[0], monster, pairs[1], strict=True))
    assert [first, last] == alone
    assert (long.status, long.tokens, long.token_scores) == ("too_long", [], [])
    assert math.isnan(long.log_prob)
    assert math.isnan(long.score)
    assert {pair.status for pair in alone} == {"ok"}


def test_the_longest_pair_is_counted_in_pieces_without_tag_and_end(
    vocab: Vocab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heed.translate.lines.MAX_WHOLE_TOKENS", 8)
    translator = make_translator(vocab, max_source_tokens=5, target_langs=("de", "zh"))
    fits, long = "\u5317" * 2, "\u5317" * 3  # three byte pieces each, and one for the beginning
    assert [len(translator.tgt_vocab.encode(text)) for text in (fits, long)] == [7, 10]
    found = translator.score([fits, long, fits, ""], [fits, fits, long, ""])
    assert [pair.status for pair in found] == ["ok", "too_long", "too_long", "ok"]
    wide = make_translator(vocab, max_source_tokens=10)
    assert wide.score([long], [long])[0].status == "ok"
    assert len(wide.align(long, long).target_tokens) == 10
    for what, look in (
        ("source", lambda: translator.next_word(long)),
        ("prefix", lambda: translator.next_word(fits, long)),
        ("source", lambda: translator.continuations(long)),
        ("prefix", lambda: translator.continuations(fits, long)),
        ("translation", lambda: translator.align(fits, long)),
    ):
        message = f"The {what} must have at most 8 tokens to be read in one piece, but has 10"
        with pytest.raises(DataError, match=message):
            look()


def test_align_refuses_a_long_source_before_it_translates(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translator, "translate", lambda *_, **__: pytest.fail())
    with pytest.raises(DataError, match=r"The source must have at most 1024 tokens"):
        translator.align("word " * 3_000)


def test_next_word_gives_probabilities_that_sum_to_one(translator: Translator) -> None:
    """Claim 3."""
    k = translator.tgt_vocab.size
    found = translator.next_word("A man", "Ein", k=k)
    assert [f.probability for f in found] == sorted((f.probability for f in found), reverse=True)
    # Control pieces keep their share and are not shown.
    assert 0.9 < sum(f.probability for f in found) <= 1 + 1e-5
    (scored,) = translator.score(["A man"], ["Ein"])
    eos = scored.tokens[-1]
    chance = next(f.probability for f in found if f.token == eos)
    assert math.log(chance) == pytest.approx(scored.token_scores[-1], abs=1e-4)


def test_alternatives_go_on_with_their_token(translator: Translator) -> None:
    found = translator.continuations("A man", "Ein", k=4, beam_size=2)
    with pytest.warns(FutureWarning, match="now called continuations"):
        assert translator.alternatives("A man", "Ein", k=4, beam_size=2) == found
    begun = translator.tgt_vocab.pieces(translator.reader.tgt_ids("Ein"))
    likely = translator.next_word("A man", "Ein", k=4)
    assert [a.token for a in found] == [n.token for n in likely]
    for alternative in found:
        assert alternative.translation.tokens[: len(begun) + 1] in (
            [*begun, alternative.token],
            begun,  # the token was <eos>
        )


def test_alignment_is_a_distribution_over_the_source(translator: Translator) -> None:
    found = translator.align("A man is riding", "Ein Mann")
    assert len(found.weights) == len(found.target_tokens)
    for row in found.weights:
        assert len(row) == len(found.source_tokens)
        assert all(weight >= 0 for weight in row)
        assert sum(row) <= 1 + 1e-5  # what is missing was read from <eos>
    assert len(found.links()) == len(found.target_tokens)


def test_alignment_of_a_batch_is_that_of_each_line(translator: Translator) -> None:
    found = translator.translate(SENTENCES, alignment=True, beam_size=1)
    for sentence, translation in zip(SENTENCES, found, strict=True):
        (alone,) = translator.translate([sentence], alignment=True, beam_size=1)
        torch.testing.assert_close(
            torch.tensor(translation.alignment), torch.tensor(alone.alignment), atol=1e-5, rtol=0
        )


def test_layers_can_be_chosen_and_wrong_ones_are_refused(translator: Translator) -> None:
    first, last = (translator.align("A man", "Ein", layer=layer) for layer in (0, -1))
    assert first.weights != last.weights
    assert last.weights == translator.align("A man", "Ein", layer=1).weights
    with pytest.raises(ConfigError, match="layer must lie between -2 and 1, but is 2"):
        translator.align("A man", "Ein", layer=2)


def test_heads_are_those_of_the_stored_layer(translator: Translator) -> None:
    stored = copy.copy(translator)
    stored.alignment_heads = AlignmentHeads(layer=0, heads=(0,))
    pair = ("A man", "Ein")
    assert stored.align(*pair).weights == translator.align(*pair, layer=0, heads=[0]).weights
    assert stored.align(*pair, heads=[1]).weights == (
        translator.align(*pair, layer=0, heads=[1]).weights
    )
    assert stored.align(*pair, layer=1).weights == translator.align(*pair).weights


def test_align_translates_when_no_translation_is_given(translator: Translator) -> None:
    found = translator.align("A man is riding", None)
    assert len(found.weights) == len(found.target_tokens)


def test_several_target_languages_are_told_apart_by_a_tag(vocab: Vocab) -> None:
    translator = make_translator(vocab, target_lang="de", target_langs=("de", "zh"))
    assert translator.reader.tag(None) == [vocab.language_id("de")]
    assert translator("A man") == translator("A man", target_lang="de")
    german, chinese = (translator.score(["A"], ["B"], target_lang=t)[0] for t in ("de", "zh"))
    assert german.log_prob != chinese.log_prob
    (found,) = translator.translate(["A man"], target_lang="zh", alignment=True)
    assert "<2zh>" not in found.source_tokens
    assert {len(row) for row in found.alignment} == {len(found.source_tokens)}
    with pytest.raises(ConfigError, match="translates into de, zh, not into fr"):
        translator("A man", target_lang="fr")


def test_a_model_of_one_language_refuses_another(translator: Translator) -> None:
    assert translator("A man", target_lang="de") == translator("A man")
    with pytest.raises(ConfigError, match="translates into de only, not into fr"):
        translator("A man", target_lang="fr")


def test_unknown_options_name_the_nearest() -> None:
    with pytest.raises(ConfigError, match="beam is not a decoding option; did you mean beam_size"):
        options_from(DecodeOptions(), {"beam": 3})
    with pytest.raises(ConfigError, match=r"xyzzy is not a decoding option\. Options: beam_size"):
        options_from(DecodeOptions(), {"xyzzy": 3})


def test_a_saved_model_translates_as_before(
    vocab: Vocab, translator: Translator, tmp_path: Path
) -> None:
    bundle = Bundle(
        config=make_config(vocab),
        weights=to_arrays(network_of(translator).state_dict()),
        src_vocab=vocab,
        tgt_vocab=vocab,
        source_lang="en",
        target_lang="de",
        decoding={"max_length": 12, "beam_size": 2, "max_source_tokens": 33},
    )
    save_bundle(tmp_path / "model", bundle)
    loaded = load(tmp_path / "model", device="cpu", threads=1)
    assert loaded(SENTENCES) == translator(SENTENCES, beam_size=2)
    assert loaded.reader.max_source_tokens == 33
    assert heed.load is load
    half = load(tmp_path / "model", device="cpu", dtype="bfloat16", threads=1)
    assert {parameter.dtype for parameter in network_of(half).parameters()} == {torch.bfloat16}
    (exact,), (rounded,) = (one.score(SENTENCES[:1], SENTENCES[1:2]) for one in (loaded, half))
    # bfloat16 keeps 8 bits of each number, so about two digits.
    assert rounded.score == pytest.approx(exact.score, rel=0.05)
    assert rounded.score != exact.score
    assert len(half.translate(["A man " * 300], alignment=True)[0].text) > 0


@pytest.mark.parametrize("wrong", [0, "64", True, None])
def test_a_longest_source_that_is_no_number_is_refused(
    vocab: Vocab, wrong: int | str | None
) -> None:
    with pytest.raises(ConfigError, match="max_source_tokens must be a whole number from 1, but"):
        LineReader(vocab, vocab, max_source_tokens=wrong)


def test_loading_what_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="there is no model folder"):
        load(tmp_path / "nothing")


def test_unknown_names_of_the_package_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="module 'heed' has no attribute 'lode'"):
        _ = heed.lode
    assert set(dir(heed)) >= {"load", "Translator", "Translation"}


def test_buffers_end_at_lines_or_characters() -> None:
    lines = [Line("ab")] * 5
    assert [len(x) for x in buffers(lines, max_lines=2, max_chars=99)] == [2, 2, 1]
    assert [len(x) for x in buffers(lines, max_lines=9, max_chars=4)] == [2, 2, 1]
    assert list(buffers([], max_lines=2, max_chars=4)) == []


def test_a_portion_ends_when_its_source_has_paused() -> None:
    pauses = iter([False, True, False, False, True])
    found = buffers([Line("a")] * 5, max_lines=9, max_chars=99, has_paused=lambda: next(pauses))
    assert [len(portion) for portion in found] == [2, 3]


def test_a_prefix_that_the_model_cannot_write_names_its_line(vocab: Vocab) -> None:
    reader = LineReader(vocab, vocab, length_limit=6)
    lines = [Line("a man"), Line("a man", prefix="ein Mann " * 9)]
    with pytest.raises(DataError, match=r"prefix of line 2 must be shorter than the longest .*5"):
        reader.all_parts(lines, 0, None, 256)
    with pytest.raises(DataError, match=r"prefix of line 2 must be shorter than max_length \(4\)"):
        reader.all_parts(lines, 0, None, 4)


def test_parts_of_a_line_have_keys_of_their_own(vocab: Vocab) -> None:
    reader = LineReader(vocab, vocab, max_source_tokens=5)
    line = Line("A man is riding a bike.")
    parts = [part for number in range(3) for part in reader.parts(line, number, [])]
    assert len({part.key for part in parts}) == len(parts) > 3


@pytest.mark.parametrize(
    ("left", "right", "joined"),
    [("Hallo.", "Welt.", "Hallo. Welt."), ("你好。", "世界。", "你好。世界。"), ("", "a", "a")],
)
def test_parts_are_joined_as_their_script_does(left: str, right: str, joined: str) -> None:
    parts = [
        Translation(text=text, score=-1.0, log_prob=-2.0, token_scores=[-1.0, -1.0])
        for text in (left, right)
    ]
    found = join_parts(parts)
    assert found.text == joined
    assert found.status == "split"
    assert found.log_prob == -4.0
    assert found.score == -1.0


def test_joined_parts_have_a_score_and_a_row_for_each_token() -> None:
    parts = [
        Translation(
            text=text,
            tokens=list(text),
            token_scores=[-0.1, -0.2, -0.3],
            source_tokens=["s", "t"],
            alignment=alignment,
        )
        for text, alignment in (("ab", None), ("cd", [[0.5, 0.5], [0.0, 1.0]]))
    ]
    found = join_parts(parts)
    assert found.tokens == [*"abcd"]
    # The end of the first part is no token of the line.
    assert found.token_scores == [-0.1, -0.2, -0.1, -0.2, -0.3]
    assert found.alignment == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0.5, 0.5], [0, 0, 0, 1]]
    assert "eos" in found._repr_html_()
    unscored = join_parts([replace(parts[0], token_scores=[]), parts[1]])
    assert unscored.token_scores == []


def test_joining_parts_without_alignments_takes_no_matrix_of_all_tokens() -> None:
    tokens = ["a"] * 10
    parts = [Translation(text="a", tokens=tokens, source_tokens=tokens) for _ in range(200)]
    tracemalloc.start()
    try:
        found = join_parts(parts)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000  # 2,000 times 2,000 would be 32 MB
    finally:
        tracemalloc.stop()
    assert found.alignment is None and len(found.tokens) == 2000


def test_a_part_with_fewer_readings_repeats_its_last() -> None:
    one = Translation(text="a", alternatives=(Translation(text="b"),))
    two = Translation(text="x")
    found = join_parts([one, two])
    assert [found.text, found.alternatives[0].text] == ["a x", "b x"]


def test_the_strongest_links_are_one_per_target_token() -> None:
    assert strongest_links([[0.1, 0.9], [0.8, 0.2]]) == [(1, 0), (0, 1)]
    assert strongest_links([[], []]) == []


def test_translating_is_imported_without_torch() -> None:
    code = "import sys, heed.translate.translator; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


TWO, NO_AXIS = np.array([1, 2]), np.array("a")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: t(b"abc"), "text must be a string or a list of strings, but is b'abc'."),
        (lambda t: t(None), "text must be a string or a list of strings, but is None."),
        (lambda t: t(["a", None]), "text must be .* strings, but item 2 is None."),
        (lambda t: t.translate([["a"]]), "texts must be .*, but item 1 is \\['a'\\]."),
        (lambda t: t.translate(["a"], prefixes="x"), "prefixes must be a list .* but is 'x'. For"),
        (lambda t: t.translate(["a"], prefixes=[None]), "prefixes must be .*item 1 is N"),
        (
            lambda t: t.translate(["a"], alternatives=-1),
            "alternatives must be .* from 0, but is -1",
        ),
        (lambda t: t.translate(["a"], first_line="x"), "first_line must be .* from 0, but is 'x'."),
        (
            lambda t: list(t.translate_stream("abc")),
            "lines must be a list of strings, but is 'abc'",
        ),
        (lambda t: list(t.translate_stream(["a"], prefixes="x")), "prefixes must be a list of str"),
        (
            lambda t: list(t.translate_stream(["a"], buffer_lines=None)),
            "buffer_lines must be a whole number from 1, but is None.",
        ),
        (
            lambda t: list(t.translate_stream(["a"], buffer_chars=0)),
            "buffer_chars must be a whole number from 1, but is 0.",
        ),
        (
            lambda t: list(t.translate_stream(["a"], processes=0)),
            "processes must be a whole number from 1, but is 0.",
        ),
        (
            lambda t: list(t.translate_stream(["a"], has_paused=5)),
            "has_paused must be a function, but is 5.",
        ),
        (
            lambda t: t.score("abc", "abd"),
            "src must be a list of strings, but is 'abc'. For one te",
        ),
        (
            lambda t: t.score(["abc"], "a"),
            "tgt must be a list of strings, but is 'a'. For one text",
        ),
        (lambda t: t.score(["a"], [1]), "tgt must be a list of strings, but item 1 is 1"),
        (lambda t: t.score([Line("a")], ["a"]), "src must be a list of strings, but item 1 is"),
        (lambda t: t.next_word("a", k=-1), "k must be a whole number from 1, but is -1."),
        (lambda t: t.next_word("a", k="2"), "k must be a whole number from 1, but is '2'."),
        (lambda t: t.next_word(None), "src must be a string, but is None."),
        (lambda t: t.next_word("a", 3), "prefix must be a string, but is 3."),
        (lambda t: t.continuations("a", k=0), "k must be a whole number from 1, but is 0."),
        (lambda t: t.continuations("a", k=True), "k must be a whole number from 1, but is True."),
        (lambda t: t.continuations(["a"]), "text must be a string, but is \\['a'\\]."),
        (lambda t: t.align(b"a"), "src must be a string, but is b'a'."),
        (lambda t: t.align("a", 5), "tgt must be a string, but is 5."),
        (
            lambda t: t.translate(["a"], glossary={"a": "b"}),
            "glossary must be a Glossary, but is {",
        ),
        (lambda t: t("a", glossary="terms.tsv"), "glossary must be a Glossary, but is 'terms.tsv'"),
        (lambda t: t.translate(["a"], is_wanted=3), "is_wanted must be a function, but is 3."),
        (lambda t: t.continuations("a", is_wanted=3), "is_wanted must be a function, but is 3."),
        (
            lambda t: t.translate(["a"], is_wanted=lambda: 0),
            r"is_wanted must be a function of one argument, but is .* the arguments \(\)\.",
        ),
        (
            lambda t: t.continuations("a", is_wanted=lambda line: True),
            r"is_wanted must be a function of no argument, but is .* the arguments \(line\)\.",
        ),
        (lambda t: t.align("a", "b", heads=1), "heads must be a list of whole numbers, but is 1."),
        (lambda t: t.align("a", "b", heads="0"), "heads must be a list of whole .* but is '0'."),
        (lambda t: Line("a", prefix=None), "prefix must be a string, but is None."),
        (lambda t: Line("a", target_lang=5), "target_lang must be a string, but is 5."),
        (lambda t: Line("a", rules="x"), "rules must be Rules, but is 'x'. Make them: Rules.of"),
        (lambda t: Line("a", localize_numbers=1), "localize_numbers must be True or .* but is 1."),
        (lambda t: Line("a", keep_typos="x"), "keep_typos must be True or False, but is 'x'."),
        (lambda t: Line("a", glossary={"a": "b"}), "glossary must be a Glossary, but is {'a': "),
        (lambda t: load(None), "folder must be the path of a model folder, but is None."),
        (lambda t: load(b"model"), "folder must be the path of a model folder, but is b'model'."),
        (lambda t: load("model", device=5), "device must be auto, cpu, cuda or cuda:N, but is 5."),
        (lambda t: load("model", dtype=TWO), r"dtype must be a string, but is array\(\[1, 2\]"),
        (lambda t: load("model", runtime=TWO), "runtime must be a string, but is array"),
        (lambda t: load("model", memory=TWO), "memory must be True or False, but is array"),
        (lambda t: load("model", shortlist=TWO), "shortlist must be True or False, but is array"),
        (lambda t: t.translate(["a"], target_lang=TWO), "target_lang must be a string, but is arr"),
        (lambda t: t.next_word("a", target_lang=TWO), "target_lang must be a string, but is arr"),
        (lambda t: t.translate(["a"], alignment=TWO), "alignment must be True or False, but is a"),
        (lambda t: t.align("a", "b", layer=TWO), "layer must be a whole number, but is array"),
        (lambda t: t.align("a", "b", layer="x"), "layer must be a whole number, but is 'x'."),
        (lambda t: t.align("a", "b", layer=1.0), "layer must be a whole number, but is 1.0."),
        (lambda t: t.translate(TWO[0]), r"texts must be a list of strings, but is .*\(1\)"),
        (lambda t: t.translate(NO_AXIS), "texts must be a list of strings, but is array"),
        (lambda t: t.translate(["a"], protect=NO_AXIS), "protect must be a list of str.* is array"),
    ],
)
def test_a_wrong_argument_is_refused_by_its_name(
    translator: Translator, call: Callable[..., Any], words: str
) -> None:
    with pytest.raises(UsageError, match=f"^{words}"):
        call(translator)


def test_what_gives_texts_one_by_one_is_as_good_as_a_list(translator: Translator) -> None:
    texts = SENTENCES[:2]
    assert translator(iter(texts)) == translator(texts)
    given = translator.translate(iter(texts), prefixes=iter(["Ein", ""]))
    assert given == translator.translate(texts, prefixes=["Ein", ""])
    assert translator.score(iter(texts), iter(texts)) == translator.score(texts, texts)


def test_numbers_of_numpy_are_as_good_as_those_of_python(translator: Translator) -> None:
    text = SENTENCES[0]
    assert translator(text, beam_size=np.int64(2)) == translator(text, beam_size=2)
    drawn = {"sample": True, "seed": np.int32(1)}
    warm = translator(text, temperature=np.float32(0.5), **drawn)
    assert warm == translator(text, temperature=0.5, sample=True, seed=1)
    assert translator.next_word(text, k=np.int64(3)) == translator.next_word(text, k=3)
    heads = translator.align(text, "Ein", layer=0, heads=np.array([0, 1])).weights
    assert np.array_equal(heads, translator.align(text, "Ein", layer=0, heads=[0, 1]).weights)
