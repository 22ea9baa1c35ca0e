"""What rules say about single translations, and which of two answers is kept."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.random_bundle import bundle
from tests.translate.doubts.word_for_word import vocab

from heed.bundle.doubts import WORD_ARRAYS, Fit, Judgment
from heed.decode.options import DecodeOptions
from heed.errors import FormatError
from heed.text.vocab import train_vocab
from heed.translate.doubts.again import better, halves, needs_help, other_options
from heed.translate.doubts.features import NAMES
from heed.translate.doubts.judge import Judge, is_doubtful, judge_of
from heed.translate.doubts.words import N_VALUES
from heed.translate.parts import Chunk
from heed.translate.result import Doubt, Status, Translation


def made(source: str, text: str, *, status: Status = "ok", log_prob: float = -0.1) -> Translation:
    source_tokens, tokens = (["▁" + word for word in side.split()] for side in (source, text))
    return Translation(
        text=text,
        tokens=tokens,
        token_scores=[log_prob] * (len(tokens) + 1),
        source_tokens=source_tokens,
        status=status,
    )


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge(None, vocab(), vocab(), source_lang="en", target_lang="de")


@pytest.mark.parametrize(
    ("found", "kind", "place"),
    [
        (made("a dog runs", "der Hund Hund Hund läuft"), "loop", "Hund Hund Hund"),
        (made("a dog", "ein Hund", status="max_length"), "max_length", "ein Hund"),
        (made("in 2007", "in 2008"), "numbers", None),
        (made("the cat sleeps well", "the cat sleeps well"), "untranslated", "the cat sleeps well"),
        (made("%s has %d dogs", "%d Hunde hat %s"), "field_order", None),
        (made("a", " ".join("abcdefghijklmnopqrst")), "length", " ".join("abcdefghijklmnopqrst")),
        (made(" ".join("abcdefghijklmnopqrst"), "z"), "length", "z"),
        (made("a dog", "ein Hund", log_prob=-5), "low_confidence", None),
    ],
)
def test_rules_need_nothing_learned(
    judge: Judge, found: Translation, kind: str, place: str | None
) -> None:
    (one,) = judge.judge([found])
    (doubt,) = one.doubts
    assert doubt.kind == kind
    assert place == (None if doubt.start is None else found.text[doubt.start : doubt.end])
    assert is_doubtful(one)


@pytest.mark.parametrize("n_rows", [0, 1, 2])
def test_a_regression_of_other_features_is_refused(
    n_rows: int, config_of: Callable[..., Any]
) -> None:
    def opened(n_weights: int, n_knots: int) -> Judge:
        fitted = Fit(weights=(0.0,) * n_weights, bias=0.0, knots=((0.0,) * n_knots,) * n_rows)
        judgment = Judgment(fits={"added.given": fitted}, confidence=Fit(weights=(), bias=0.0))
        return judge_of(replace(bundle(vocab(), config_of), judgment=judgment))

    n = len(NAMES)
    assert opened(n * (1 + n_rows), n).judgment is not None
    for wrong in (n * (1 + n_rows) + 1, n * (1 + n_rows) * 2):
        with pytest.raises(
            FormatError, match=rf"added.given has {wrong} weights and {n_rows} rows"
        ):
            opened(wrong, n)


@pytest.mark.parametrize("side", ["src", "tgt"])
def test_arrays_about_other_pieces_are_refused(side: str, config_of: Callable[..., Any]) -> None:
    def opened(n_more: int, n_columns: int) -> Judge:
        values = np.zeros((vocab().size + n_more, n_columns), np.float32)
        words = {name: np.zeros(0, np.int32) for name in WORD_ARRAYS[:3]}
        words |= {name: np.zeros((vocab().size, N_VALUES), np.float32) for name in WORD_ARRAYS[3:]}
        judgment = Judgment(words={**words, f"{side}.values": values})
        # As a model folder is opened: the arrays fit one another.
        judgment = Judgment.from_files(judgment.to_files(), Path("model"))
        return judge_of(replace(bundle(vocab(), config_of), judgment=judgment))

    assert opened(0, N_VALUES).is_learned
    for n_more, n_columns in ((0, N_VALUES - 1), (0, N_VALUES + 1), (-1, N_VALUES), (1, N_VALUES)):
        with pytest.raises(FormatError, match=rf"{side}\.values must have {vocab().size} rows of"):
            opened(n_more, n_columns)


def test_a_good_translation_stays_as_it_is(judge: Judge) -> None:
    good = made("two dogs", "zwei Hunde")
    assert judge.judge([good]) == [good]
    blank = Translation(text="", status="empty")
    assert judge.judge([blank]) == [blank]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("%1$s has %2$d dogs", "%2$d Hunde hat %1$s"),
        ("%(a)s has %(n)d dogs", "%(n)d Hunde hat %(a)s"),
        ("%s has %s 100%% dogs", "100%% %s Hunde hat %s"),
        ("%s has %.2f dogs", "%s hat %.2f Hunde"),
    ],
)
def test_fields_may_change_places_where_a_program_finds_them(
    judge: Judge, source: str, text: str
) -> None:
    assert judge.judge([made(source, text)])[0].doubts == ()


def test_characters_that_were_copied_are_no_doubt(judge: Judge) -> None:
    smile = ["▁", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>"]
    lost = Translation(text="Hund", tokens=["▁Hund"], token_scores=[-0.1] * 2, source_tokens=smile)
    kept = Translation(text="😀", tokens=smile, token_scores=[-0.1] * 6, source_tokens=smile)
    assert [doubt.kind for doubt in judge.judge([lost])[0].doubts] == ["unknown_word"]
    assert not judge.judge([kept])[0].doubts


def doubtful(text: str, *kinds: str, confidence: float | None = None) -> Translation:
    doubts = tuple(Doubt(kind=kind, sentence=kind) for kind in kinds)
    return Translation(text=text, doubts=doubts, confidence=confidence)


def test_the_answer_with_fewer_doubts_is_kept_and_says_so() -> None:
    first = doubtful("a a a", "loop", "low_confidence")
    kept = better(first, [doubtful("b b b", "loop"), doubtful("c")], "a second search")
    assert kept.text == "c"
    assert [doubt.kind for doubt in kept.doubts] == ["repaired"]
    assert not is_doubtful(kept)
    assert "loop" in kept.doubts[0].sentence and "a second search" in kept.doubts[0].sentence


def test_the_remark_names_the_doubts_of_the_first_answer() -> None:
    """Also if that of a second search was kept before the two halves."""
    first = doubtful("a a a", "loop", "max_length", "low_confidence")
    second = better(first, [doubtful("b", "left_out")], "a second search")
    kept = better(second, [doubtful("c")], "its two halves", first)
    (repaired,) = kept.doubts
    assert "(loop, max_length)" in repaired.sentence and "its two halves" in repaired.sentence


def test_an_answer_that_is_hardly_less_likely_is_taken() -> None:
    first = doubtful("a a a", "loop", confidence=0.5)
    assert better(first, [doubtful("b", confidence=0.45)], "a second search").text == "b"


@pytest.mark.parametrize(
    "other",
    [
        doubtful("b", "loop", confidence=0.9),
        doubtful("", confidence=0.9),
        doubtful("b", confidence=0.1),
    ],
)
def test_an_answer_that_is_no_better_is_not_taken(other: Translation) -> None:
    first = doubtful("a a a", "loop", confidence=0.5)
    assert better(first, [other], "a second search") is first
    assert better(first, [], "a second search") is first


def test_the_second_search_differs_by_what_was_wrong() -> None:
    options = DecodeOptions(beam_size=1, length_penalty=1.0)
    looping = other_options(doubtful("a", "loop"), options)
    assert (looping.no_repeat_ngram_size, looping.beam_size, looping.length_penalty) == (3, 5, 1.0)
    short = other_options(doubtful("a", "left_out"), options)
    assert (short.no_repeat_ngram_size, short.beam_size) == (0, 5)
    assert short.length_penalty > 1.0
    other_options(doubtful("a", "left_out"), DecodeOptions(length_penalty=10.0))
    # A formula that takes no notice of the penalty would find the same answer again.
    plain = DecodeOptions(length_formula="none", length_penalty=0.0)
    longer = other_options(doubtful("a", "left_out"), plain)
    assert (longer.length_formula, longer.length_penalty) == ("gnmt", 0.6)
    assert other_options(doubtful("a", "loop"), plain).length_formula == "none"
    assert not needs_help(doubtful("a", "numbers"))


@pytest.mark.parametrize(("first", "second"), [(0, 3), (5, 3), (4, 3), (3, 2), (2, 1), (1, 1)])
def test_a_second_search_because_of_a_loop_blocks_shorter_ngrams(first: int, second: int) -> None:
    options = DecodeOptions(beam_size=5, n_best=5, no_repeat_ngram_size=first)
    found = other_options(doubtful("a", "loop"), options)
    assert found.no_repeat_ngram_size == second


def test_a_source_is_cut_behind_the_clause_nearest_to_its_middle() -> None:
    words = [
        "one",
        "two",
        "three",
        "four",
        ",",
        "five",
        "six",
        "seven",
        "eight",
        ",",
        "nine",
        "ten",
    ]
    known = train_vocab([" ".join(words)] * 5, size=300, kind="word")
    chunk = Chunk([*known.encode(" ".join(words)), known.eos_id], [], 7)
    first, second = halves(chunk, known)
    assert known.decode(first.src_ids[:-1]) == "one two three four ,"
    assert known.decode(second.src_ids[:-1]) == "five six seven eight , nine ten"
    assert {first.src_ids[-1], second.src_ids[-1]} == {known.eos_id}
    assert halves(replace(chunk, prefix=[5]), known) == []
    short = Chunk([*known.encode("one two , three"), known.eos_id], [], 0)
    assert halves(short, known) == []
