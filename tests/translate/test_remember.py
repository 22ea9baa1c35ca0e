"""Remembered pairs guide translations of similar sources, and of nothing else."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from tests.random_bundle import bundle
from tests.translate.test_protect import SENTENCES, check, lines, make_translator
from tests.translate.test_translator import make_translator as mild
from tests.translate.test_translator import network_of

import heed
from heed.bundle.bundle import save_bundle
from heed.decode.options import DecodeOptions
from heed.errors import ConfigError, UsageError
from heed.text.extend import with_controls
from heed.text.memory import TranslationMemory
from heed.text.protected import Rules
from heed.text.slots import SLOT_PIECES
from heed.text.vocab import Vocab, train_vocab
from heed.translate.assembly import filled
from heed.translate.lines import Line
from heed.translate.remember import remember_file
from heed.translate.result import Doubt, Match, Translation
from heed.translate.translator import Translator

PAIRS = [
    ("The dog sleeps on the house", "Der Hund schläft"),
    ("The cats run", "Nein, nein, nein, nein"),
    ("A man reads a book.", "狗在睡觉。"),
    ("Two cats", "כלב ישן"),
]
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"beam_size": 1},
    "beam": {"beam_size": 5},
    "n_best": {"beam_size": 5, "n_best": 3},
    "alternatives": {"beam_size": 3, "alternatives": 2},
    "sample": {"sample": True, "seed": 7},
    "samples": {"sample": True, "seed": 7, "n_best": 3},
    "alignment": {"beam_size": 2, "alignment": True},
}
UNLIKE = ["He is here: https://example.com/a?b=1", "狗 3", ""]


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    words = [text for pair in [*PAIRS, ("Read all of it", "Alles lesen")] for text in pair]
    return train_vocab([*SENTENCES, *words] * 5, size=420, languages=("de", "zh"))


def remembering(vocab: Vocab, **changes: Any) -> Translator:
    """A translator with random weights, whose translations may be longer than those of PAIRS."""
    translator = make_translator(vocab, 0, **changes)
    translator.options = replace(translator.options, max_length=60)
    return translator


@pytest.fixture(params=[False, True], ids=["plain", "slotted"])
def translator(request: pytest.FixtureRequest, vocab: Vocab) -> Translator:
    """Random weights, once without slots and once with them."""
    return remembering(with_controls(vocab, SLOT_PIECES) if request.param else vocab)


@pytest.fixture
def slotted(vocab: Vocab) -> Translator:
    return remembering(with_controls(vocab, SLOT_PIECES))


def test_a_given_translation_is_compared_with_an_own_one_not_with_a_remembered_one(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A translation memory that is checked may be the one that the model remembers."""
    src, tgt = PAIRS[0]
    (own,) = translator.translate([src])
    heed.remember(translator, [PAIRS[0]])
    beside: list[Translation] = []

    def judge(found: Any, sources: Any, *, own: Any = ()) -> Any:
        beside.extend(own)
        return found

    monkeypatch.setattr(type(translator.judge), "is_learned", True)
    monkeypatch.setattr(translator.judge, "judge", judge)
    translator.judged([src], [tgt])
    monkeypatch.undo()
    assert [each.text for each in beside] == [own.text]
    assert translator.translate([src])[0].text == tgt


@pytest.mark.parametrize("way", WAYS)
def test_an_equal_source_gets_its_translation_and_others_their_own(
    translator: Translator, way: str
) -> None:
    """However improbable: the weights are random."""
    sources = [src for src, _ in PAIRS]
    before = translator.translate([*UNLIKE, *sources], **WAYS[way])
    assert heed.remember(translator, PAIRS) == len(PAIRS)
    after = translator.translate([*UNLIKE, *sources], **WAYS[way])
    assert [found.text for found in after[len(UNLIKE) :]] == [tgt for _, tgt in PAIRS]
    assert not {found.text for found in before} & {tgt for _, tgt in PAIRS}
    unlike = [found.text for found in before[: len(UNLIKE)]]
    assert [found.text for found in after[: len(UNLIKE)]] == unlike
    for found in after:
        assert found.status in ("ok", "empty", "max_length")
        assert all(score <= 0 for score in found.token_scores)


def test_a_similar_source_follows_a_pair_where_the_model_agrees(vocab: Vocab) -> None:
    """This model finds all tokens about equally probable."""
    similar = "The dog sleeps on the house, and"
    translator = mild(vocab, options=DecodeOptions(max_length=30))
    with torch.no_grad():
        for weights in network_of(translator).parameters():
            weights *= 0.1
    before = translator.translate([similar, *UNLIKE])
    heed.remember(translator, PAIRS)
    after = translator.translate([similar, *UNLIKE])
    assert after[0].text == PAIRS[0][1] != before[0].text
    assert [found.text for found in after[1:]] == [found.text for found in before[1:]]


def test_the_guide_of_a_source_does_not_depend_on_its_batch(translator: Translator) -> None:
    heed.remember(translator, PAIRS)
    texts = [*UNLIKE, *(src for src, _ in PAIRS), "The dog sleeps on the big house"]
    together = translator.translate(texts, beam_size=3)
    assert [found.text for found in together] == [translator(text, beam_size=3) for text in texts]


@pytest.mark.parametrize(
    ("pair", "source", "left_open"),
    [
        (("The dog sleeps on the house", "Der Hund schläft"), "The dog sleeps on the house.", -1),
        (("The dog sleeps on the house.", "Der Hund schläft."), "The dog sleeps on the house", -2),
        (("The dog sleeps on the house.", "Der Hund schläft."), "The cat sleeps on the house.", 0),
        (("The dog sleeps on the house.", "Der Hund schläft"), "The dog sleeps on the house", 0),
    ],
)
def test_the_end_of_another_kind_of_sentence_is_not_followed(
    translator: Translator, pair: tuple[str, str], source: str, left_open: int
) -> None:
    """A sentence keeps its full stop beside a pair without one, and gets none from a pair."""
    heed.remember(translator, [pair])
    (chunk,) = translator.reader.parts(Line(source), 0, [])
    assert chunk.guide is not None and not chunk.is_remembered
    expected = [*translator.tgt_vocab.encode(pair[1]), translator.tgt_vocab.eos_id]
    if left_open:
        expected[left_open] = -1
    assert list(chunk.guide.ids) == expected


def test_the_last_pair_of_a_source_counts(translator: Translator) -> None:
    source = "The dog sleeps"
    assert heed.remember(translator, [(source, "eins"), (source, "zwei")]) == 1
    assert translator(source) == "zwei"
    heed.remember(translator, [(source, "drei")])
    assert translator(source) == "drei"
    heed.remember(translator, [("The dog sleeps there", "vier")])
    assert translator(source) == "drei"


def test_pairs_given_one_by_one_are_in_few_memories(translator: Translator) -> None:
    letters = "adehknorst"
    pairs = [(f"The dog {a} {b}", f"Hund {a}{b}") for a in letters for b in letters]
    for pair in pairs:
        assert heed.remember(translator, [pair]) == 1
    assert [len(memory) for memory in translator.reader.memories] == [64, 32, 4]
    for src, tgt in pairs[::9]:
        assert translator(src) == tgt
    heed.remember(translator, [(pairs[0][0], "die Katze")])
    assert translator(pairs[0][0]) == "die Katze"
    assert sum(len(memory) for memory in translator.reader.memories) == 101


def test_pairs_given_one_by_one_are_remembered_like_those_given_together(
    translator: Translator,
) -> None:
    other = copy.copy(translator)
    other.reader = copy.copy(translator.reader)
    heed.remember(translator, PAIRS[:4])
    for pair in PAIRS[:4]:
        heed.remember(other, [pair])
    (together,), (one_by_one,) = translator.reader.memories, other.reader.memories
    assert together.bonus == one_by_one.bonus
    for name, array in together.arrays.items():
        np.testing.assert_array_equal(array, one_by_one.arrays[name], strict=True)


def test_a_translation_that_repeats_itself_is_followed_to_its_end(translator: Translator) -> None:
    target = "ja ja ja ja nein ja ja ja"
    heed.remember(translator, [("The cats run", target)])
    for options in WAYS.values():
        assert translator("The cats run", **options) == target


def test_numbers_and_fields_are_those_of_the_source(slotted: Translator) -> None:
    heed.remember(
        slotted,
        [
            ("Page 5 of 7", "Seite 5 von 7"),
            ("Open %s and run <b>the dog</b>", "<b>Hund</b> und %s öffnen"),
        ],
    )
    assert slotted("Page 12 of 30") == "Seite 12 von 30"
    assert slotted("Open {name} and run <i>the dog</i>") == "<i>Hund</i> und {name} öffnen"


def test_a_pair_that_lacks_a_span_does_not_take_it_from_a_source(translator: Translator) -> None:
    heed.remember(
        translator,
        [("Two cats and 3 dogs", "Drei"), ("Open %s", "Öffnen"), ("The cat", "Katze {0} <br/>")],
    )
    for source in ("Two cats and 3 dogs", "Open %s"):
        check(source, translator(source))
    assert translator("The cat") == "Katze {0} <br/>"


@settings(max_examples=10)
@given(source=lines(), other=lines(), target=lines())
def test_every_span_of_a_source_stands_once_whatever_is_remembered(
    vocab: Vocab, source: str, other: str, target: str
) -> None:
    for words in (vocab, with_controls(vocab, SLOT_PIECES)):
        translator = remembering(words)
        heed.remember(translator, [(other, target), (f"{source} dog", target)])
        check(source, translator(source, beam_size=2, max_length=24))


def test_a_translation_that_lacks_a_span_is_only_similar(slotted: Translator) -> None:
    """`Fünfte Seite` is no translation of `Page 7`."""
    heed.remember(slotted, [("Page 5", "Fünfte Seite"), ("Page 5 of 7", "Seite 5 von 7")])
    ((part,),) = slotted.reader.all_parts([Line("Page 7")], 0, None, 60)
    assert not part.is_remembered
    check("Page 7", slotted("Page 7"))
    ((part,),) = slotted.reader.all_parts([Line("Page 7 of 8")], 0, None, 60)
    assert part.is_remembered


def test_a_short_source_gets_its_long_translation(translator: Translator) -> None:
    target = "nein, " * 16 + "ja"
    heed.remember(translator, [("dog", target)])
    assert translator("dog") == target
    assert translator.translate(["dog"], max_length=9)[0].status == "max_length"


def test_a_match_has_the_pair_as_the_model_reads_it(slotted: Translator) -> None:
    heed.remember(slotted, [("5 of <b>all</b>", "5 von <b>allem</b>"), ("The dog", "Der Hund")])
    (found,) = slotted.translate(["The dog"])
    assert found.matches == (Match(similarity=1.0, source="The dog", target="Der Hund"),)
    (found,) = slotted.translate(["12 of <i>all</i>"])
    (match,) = found.matches
    assert (match.source, match.target) == ("… of … all …", "… von … allem …")


def test_alternatives_have_the_match_that_guided_them(translator: Translator) -> None:
    heed.remember(translator, PAIRS)
    (found,) = translator.translate([PAIRS[0][0]], beam_size=5, n_best=3)
    assert len(found.alternatives) == 2
    for each in (found, *found.alternatives):
        assert [match.target for match in each.matches] == [PAIRS[0][1]]


def test_tags_of_a_pair_are_not_written_for_a_source_without_them(vocab: Vocab) -> None:
    """A model without slots reads both sources alike."""
    translator = remembering(vocab)
    heed.remember(translator, [("Read <b>all</b> of it", "Alles <b>lesen</b>")])
    assert translator("Read all of it") == "Alles lesen"
    check("Read <b>all</b> of it", translator("Read <b>all</b> of it"))


def test_a_line_in_capitals_follows_the_pair_in_small_letters(translator: Translator) -> None:
    heed.remember(translator, PAIRS)
    assert translator("THE DOG SLEEPS ON THE HOUSE") == "DER HUND SCHLÄFT"


def test_a_pair_in_capitals_is_followed_by_the_same_line(translator: Translator) -> None:
    heed.remember(translator, [("SAVE THE FILE NOW", "SICHERN"), ("THE DOG SLEEPS", "EIN HUND")])
    assert translator("SAVE THE FILE NOW") == "SICHERN"
    assert translator("THE DOG SLEEPS") == "EIN HUND"
    assert translator("The dog sleeps") == "Ein hund"
    pairs = [("The dog sleeps", "Der Hund"), ("THE DOG SLEEPS", "EIN HUND")]
    assert heed.remember(translator, pairs) == 1
    assert translator("The dog sleeps") == "Der Hund"


def test_fields_of_a_pair_in_capitals_keep_their_case(slotted: Translator) -> None:
    heed.remember(slotted, [("SAVE THE FILE %S NOW {NAME}", "{NAME} SICHERN: %S")])
    assert slotted("SAVE THE FILE %S NOW {NAME}") == "{NAME} SICHERN: %S"


def test_a_prefix_stays_and_the_rest_follows(translator: Translator) -> None:
    heed.remember(translator, PAIRS)
    source, target = PAIRS[0]
    assert translator.translate([source], prefixes=["Der Hund"])[0].text == target
    other = translator.translate([source], prefixes=["Ein"])[0].text
    assert other.startswith("Ein")


def test_terms_of_a_glossary_hold_beside_a_pair(translator: Translator) -> None:
    heed.remember(translator, PAIRS)
    glossary = heed.Glossary.of({"dog": "Dackel"})
    found = translator("The dog sleeps on the house", glossary=glossary)
    assert "Dackel" in found and found != PAIRS[0][1]


def test_only_pairs_of_the_same_target_language_guide(vocab: Vocab) -> None:
    translator = remembering(vocab, target_lang="de", target_langs=("de", "zh"))
    source, target = PAIRS[0]
    before = translator(source)
    heed.remember(translator, [(source, target)], target_lang="zh")
    assert translator(source) == before
    assert translator(source, target_lang="zh") == target
    assert translator([Line(source, target_lang="zh"), source]) == [target, before]
    heed.remember(translator, [(source, "Hund")])  # of the default language
    assert translator([source, Line(source, target_lang="zh")]) == ["Hund", target]
    with pytest.raises(ConfigError, match="into de, zh, not into fr"):
        heed.remember(translator, PAIRS, target_lang="fr")


def test_texts_inside_a_message_are_guided_too(slotted: Translator) -> None:
    heed.remember(slotted, [("the dog", "Hund"), ("the cats", "Katzen")])
    found = slotted("{n, plural, one {the dog} other {the cats}}")
    assert found == "{n, plural, one {Hund} other {Katzen}}"


def test_matches_of_texts_inside_a_message_are_reported(slotted: Translator) -> None:
    heed.remember(slotted, [("the dog", "Hund"), ("the cats", "Katzen"), ("Now 5", "Jetzt 5")])
    (found,) = slotted.translate(["Now {n, plural, one {the dog} other {the cats}}"])
    assert [match.source for match in found.matches] == ["Now …", "the dog", "the cats"]
    assert len(set(found.matches)) == 3


def test_a_repaired_text_inside_a_message_does_not_hide_other_matches(slotted: Translator) -> None:
    """It was translated without its match; the rest was not."""
    heed.remember(slotted, [("Now {0}", "Jetzt {0}"), ("the dog", "Hund")])
    source = "Now {n, plural, other {the dog}}"
    ((part,),) = slotted.reader.all_parts([Line(source)], 0, None, 60)
    repaired = Doubt(kind="repaired", sentence="")
    outer = Translation(text=source.replace("Now", "Jetzt"))
    found = filled(part, iter([outer, Translation(text="Dackel", doubts=(repaired,))]))
    assert found.text == "Jetzt {n, plural, other {Dackel}}"
    assert [match.source for match in found.matches] == ["Now …"]


MESSAGE = "Now {n, plural, one {the dog} other {# the cats {m, select, a {A man} other {cats}}}}"


def test_texts_of_a_remembered_message_are_remembered_too(slotted: Translator) -> None:
    target = "{n, plural, one {Hund} other {Katzen {m, select, a {Mann} other {ihre}} #}} jetzt"
    assert heed.remember(slotted, [(MESSAGE, target)]) == 5
    assert slotted(MESSAGE) == target
    other = "{count, plural, =1 {the dog} other {A man}}"
    assert slotted(other) == "{count, plural, =1 {Hund} other {Mann}}"
    assert slotted("the dog") == "Hund"


@pytest.mark.parametrize(
    "target",
    [
        "Jetzt {n, plural, other {Hund}}",
        "Jetzt {n, plural, other {Hund} one {Katzen {m, select, a {Mann} other {ihre}} #}}",
        "Jetzt {k, plural, one {Hund} other {Katzen}}",
        "Jetzt",
    ],
)
def test_texts_of_another_message_are_not_its_translations(
    slotted: Translator, target: str
) -> None:
    assert heed.remember(slotted, [(MESSAGE, target)]) == 1
    slotted.reader.rules = Rules.of(["-icu"])
    assert heed.remember(slotted, [(MESSAGE, MESSAGE)]) == 1


def test_a_file_is_read_for_the_direction_of_the_call(vocab: Vocab, tmp_path: Path) -> None:
    """A model of both directions names only one of them."""
    path = tmp_path / "pairs.tsv"
    path.write_text("zh\tde\n狗在\tDer Hund schläft\n", encoding="utf-8")
    both = remembering(vocab, source_lang="zh", target_lang="de", target_langs=("de", "zh"))
    assert remember_file(both, str(path), target_lang="zh") == 1
    assert both("Der Hund schläft", target_lang="zh") == "狗在"
    assert remember_file(both, str(path)) == 1
    assert both("狗在") == "Der Hund schläft"
    several = remembering(vocab, source_lang="en", target_langs=("de", "zh"))
    path.write_text("zh\ten\tde\n狗在\tThe dog\tDer Hund\n", encoding="utf-8")
    assert remember_file(several, str(path)) == 1
    assert several("The dog") == "Der Hund"
    several.reader.directions = (("en", "zh"), ("zh", "de"))
    assert remember_file(several, str(path), target_lang="de") == 1
    assert several("狗在", target_lang="de") == "Der Hund"


def test_blank_and_overlong_pairs_are_left_out(translator: Translator) -> None:
    long = "dog cat " * 600
    pairs = [("", "Hund"), ("dog", "  "), ("\u2028", ""), (long, "Hund"), ("dog", long)]
    assert heed.remember(translator, pairs) == 0
    assert translator.reader.memories == ()
    assert heed.remember(translator, [*pairs, ("dog", "Hund")]) == 1
    assert translator("dog") == "Hund"
    assert heed.remember(translator, iter([])) == 0


@pytest.mark.parametrize(
    "pairs",
    [None, 3, "ab", ["ab"], [("a", 1)], [(None, "b")], [("a", "b", "c")], [{"a": "b", "c": "d"}]],
)
def test_what_is_no_pair_is_refused(translator: Translator, pairs: Any) -> None:
    with pytest.raises(UsageError, match=r"must be"):
        heed.remember(translator, pairs)
    assert translator.reader.memories == ()


def test_a_copy_of_a_translator_keeps_its_memory(translator: Translator) -> None:
    heed.remember(translator, PAIRS)
    source, target = PAIRS[0]
    assert copy.deepcopy(translator.reader).memories[0].to_bytes() == (
        translator.reader.memories[0].to_bytes()
    )
    for other in (copy.deepcopy(translator), pickle.loads(pickle.dumps(translator))):
        assert other(source) == target


def test_a_guided_line_may_be_unwanted(translator: Translator) -> None:
    heed.remember(translator, PAIRS)
    sources = [src for src, _ in PAIRS]
    found = translator.translate(sources, beam_size=5, is_wanted=lambda index: index != 1)
    assert [each.status for each in found] == ["ok", "unwanted", "ok", "ok"]
    assert [each.text for each in found] == ["" if n == 1 else PAIRS[n][1] for n in range(4)]


def test_a_second_search_does_not_replace_a_remembered_translation(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = "The cats run", "nein, nein, nein, nein, nein, nein"
    heed.remember(translator, [(source, target)])
    translator.searches_again = True
    monkeypatch.setattr("heed.translate.search.better", lambda first, others, how: others[0])
    (found,) = translator.translate([source])
    assert "loop" in {doubt.kind for doubt in found.doubts}
    assert found.text == target


def test_a_prefix_that_leaves_a_remembered_translation_is_searched_again(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = "The cats run", "nein, nein, nein, nein, nein, nein"
    heed.remember(translator, [(source, target)])
    translator.searches_again = True
    other = Translation(text="another", tokens=["another"])
    monkeypatch.setattr("heed.translate.search.needs_help", lambda found: found is not other)
    monkeypatch.setattr("heed.translate.search.better", lambda first, others, how: other)
    found = translator.translate([source] * 2, prefixes=["nein, nein", "Alles"])
    assert [each.text for each in found] == [target, "another"]


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"beam_size": 5}, {"sample": True}])
def test_a_model_folder_with_pairs_is_guided_unless_they_are_left_out(
    vocab: Vocab, config_of: Callable[..., Any], tmp_path: Path, options: dict[str, Any]
) -> None:
    """`load(memory=False)` translates as the same model without the pairs."""
    options = {**options, "max_length": 20}
    made = bundle(vocab, config_of, max_positions=64)
    plain, model = tmp_path / "plain", tmp_path / "model"
    save_bundle(plain, made)
    pairs = [(vocab.encode(src), vocab.encode(tgt)) for src, tgt in PAIRS]
    memory = TranslationMemory.of(pairs, (vocab.size, vocab.size))
    save_bundle(model, replace(made, memory=memory))
    source, target = PAIRS[0]
    texts = [source, *UNLIKE]
    own, guided, without = (
        heed.load(folder, threads=1, memory=memory)
        for folder, memory in ((plain, True), (model, True), (model, False))
    )
    before = own.translate(texts, **options)
    after = guided.translate(texts, **options)
    assert after[0].text == target != before[0].text
    assert after[1:] == before[1:]  # bit for bit: the engine computes each line alone
    assert without.translate(texts, **options) == before
    # A later call goes before what is stored, and is as strong.
    guided.reader.memories = (memory.with_bonus(12.0),)
    heed.remember(guided, [(source, "Hund")])
    assert guided.reader.memories[-1].bonus == 12.0
    assert guided(source, **options) == "Hund"


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"beam_size": 4, "n_best": 2}])
def test_a_guided_batch_answers_as_each_text_alone(
    vocab: Vocab, config_of: Callable[..., Any], tmp_path: Path, options: dict[str, Any]
) -> None:
    """Bit for bit in the engine, whether a text is like a pair or not."""
    save_bundle(tmp_path / "model", bundle(vocab, config_of, max_positions=64))
    translator = heed.load(tmp_path / "model", threads=1)
    heed.remember(translator, [*PAIRS, ("Read all of it", "ja ja nein ja ja ja ja nein nein")])
    texts = [*UNLIKE, *(src for src, _ in PAIRS), "The dog sleeps on the big house", "Read it all"]
    options = {**options, "max_length": 20}
    alone = [translator.translate([text], **options)[0] for text in texts]
    assert translator.translate(texts, **options) == alone
