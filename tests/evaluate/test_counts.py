import random
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF, TER

from heed.errors import ConfigError, MissingExtraError
from heed.evaluate import counts, edits
from heed.evaluate.counts import (
    Reading,
    bleu_of,
    chrf_of,
    count_bleu,
    count_chrf,
    count_exact,
    count_ter,
    count_wer,
    error_rate_of,
    reading_here,
)

# Few words, so that n-grams match; marks, blanks and another script, so that tokenizers work.
WORDS = [
    "a",
    "cat",
    "sat",
    "on",
    "the",
    "mat",
    ".",
    "Mat,",
    "don't",
    "3.5",
    "猫",
    "在 ",
    "¿qué?",
    "",
]
SENTENCES = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
CORPORA = st.lists(st.tuples(SENTENCES, SENTENCES, SENTENCES), min_size=1, max_size=8)
TOLERANCE = 1e-9  # the same arithmetic in another order

PEERS = {
    "bleu": (count_bleu, lambda: BLEU(), Reading()),
    "bleu-zh": (count_bleu, lambda: BLEU(tokenize="zh"), Reading(target_lang="zh")),
    "bleu-lc": (count_bleu, lambda: BLEU(lowercase=True), Reading(lowercase=True)),
    "bleu-none": (count_bleu, lambda: BLEU(tokenize="none"), Reading(tokenize="none")),
    "chrf": (count_chrf, lambda: CHRF(), Reading()),
    "ter": (count_ter, lambda: TER(), Reading()),
    "ter-zh": (
        count_ter, lambda: TER(normalized=True, asian_support=True), Reading(target_lang="zh"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS)
@pytest.mark.parametrize("n_references", [1, 2])
@settings(max_examples=60, deadline=None)
@given(corpus=CORPORA)
def test_a_score_equals_sacrebleu(
    peer: tuple[Callable[..., Any], Callable[..., Any], Reading],
    n_references: int,
    corpus: list[tuple[str, ...]],
) -> None:
    """Claim 118."""
    count, sacrebleu, reading = peer
    hypotheses, *references = map(list, zip(*corpus, strict=True))
    references = references[:n_references]
    counts = count(hypotheses, references, reading)
    metric = sacrebleu()
    expected = metric.corpus_score(hypotheses, references).score
    assert counts.of() == pytest.approx(expected, abs=TOLERANCE)
    assert counts.signature == str(metric.get_signature())


def test_a_score_equals_sacrebleu_on_a_thousand_random_corpora() -> None:
    generator = random.Random(1)

    def text() -> str:
        return " ".join(generator.choices(WORDS, k=generator.randint(0, 12)))

    for _ in range(1000):
        n = generator.randint(1, 3)
        hypotheses, reference = [text() for _ in range(n)], [text() for _ in range(n)]
        for count, metric in ((count_bleu, BLEU()), (count_chrf, CHRF())):
            expected = metric.corpus_score(hypotheses, [reference]).score
            found = count(hypotheses, [reference], Reading()).of()
            assert found == pytest.approx(expected, abs=TOLERANCE), (hypotheses, reference)


@pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS)
def test_a_part_of_the_set_scores_as_if_it_were_alone(
    peer: tuple[Callable[..., Any], Callable[..., Any], Reading],
) -> None:
    count, sacrebleu, reading = peer
    generator = random.Random(2)
    hypotheses, reference = (
        [" ".join(generator.choices(WORDS, k=8)) for _ in range(40)] for _ in range(2)
    )
    chosen = np.arange(40) % 3 == 0
    alone = sacrebleu().corpus_score(hypotheses[::3], [reference[::3]]).score
    part = count(hypotheses, [reference], reading).of(chosen)
    assert part == pytest.approx(alone, abs=TOLERANCE)


def test_many_sets_are_scored_at_once() -> None:
    generator = np.random.default_rng(3)
    bleu, chrf = generator.integers(0, 9, (50, 10)), generator.integers(0, 9, (50, 18))
    bleu[:, 6:] += bleu[:, 2:6]
    for score, totals in ((bleu_of, bleu), (chrf_of, chrf), (error_rate_of, bleu[:, :2])):
        one_by_one = [score(row.astype(float)) for row in totals]
        assert np.allclose(score(totals.astype(float)), one_by_one, atol=TOLERANCE)


def test_bleu_by_hand() -> None:
    # 5 of 6 words, 3 of 5 pairs, 2 of 4 triples, 1 of 3 fours; as long as the reference.
    """Claim 118."""
    counts = count_bleu(["a b c d x f"], [["a b c d e f"]], Reading(tokenize="none"))
    assert counts.per_sentence[0].tolist() == [6, 6, 5, 3, 2, 1, 6, 5, 4, 3]
    expected = 100 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25
    assert counts.of() == pytest.approx(expected, abs=TOLERANCE)


LONG = [f"w{i}" for i in range(2000)]


@pytest.mark.parametrize("count", [count_bleu, count_chrf, count_ter, count_wer])
def test_a_pair_of_2000_words_in_another_order_is_counted_within_seconds(
    count: Callable[..., Any],
) -> None:
    shuffled = random.Random(4).sample(LONG, k=len(LONG))
    begin = time.process_time()
    count([" ".join(shuffled)], [[" ".join(LONG)]], Reading())
    assert time.process_time() - begin < 5


def test_ter_of_a_line_with_too_many_words_has_no_shifts_and_says_so() -> None:
    # Two words change places: one shift for TER, two edits without shifts.
    line, swapped = "a b c d", "c d a b"
    long, turned = " ".join(LONG[:401]), " ".join([*LONG[1:401], LONG[0]])
    short = count_ter([swapped], [[line]], Reading())
    assert short.per_sentence.tolist() == [[1, 4]]
    assert short.warnings == ()
    found = count_ter([swapped, turned, "a"], [[line, long, "a"], [line, "b", "a"]], Reading())
    assert found.per_sentence.tolist() == [[1, 4], [2, 201], [0, 1]]
    assert found.signature == short.signature.replace("nrefs:1", "nrefs:2") + "|shifts:400-words"
    (warning,) = found.warnings
    assert warning.startswith("Line 2 has more than 400 words, so TER counts edits without shifts")
    (warning,) = count_ter([turned] * 3, [[long] * 3], Reading()).warnings
    assert warning.startswith("3 lines, the first being line 1, have more than 400 words")


def test_ter_of_400_words_equals_sacrebleu() -> None:
    line = LONG[:400]
    other = " ".join([*line[5:9], *line[:5], *line[9:200], "x", *line[201:]])
    counted = count_ter([other], [[" ".join(line)]], Reading())
    assert counted.of() == TER().corpus_score([other], [[" ".join(line)]]).score
    assert counted.signature == str(TER(references=[[" ".join(line)]]).get_signature())


def test_ter_of_thai_counts_characters() -> None:
    said, known = "ผู้ชาย ขี่จักรยาน", "ผู้หญิงขี่จักรยาน"
    counted = count_ter([said], [[known]], Reading(target_lang="th"))
    split = [" ".join(text.replace(" ", "")) for text in (said, known)]
    expected = TER().corpus_score(split[:1], [split[1:]])
    assert counted.of() == pytest.approx(expected.score, abs=TOLERANCE)
    assert 0 < counted.of() < 100
    assert counted.signature.endswith("|split:char")


def test_wer_of_a_line_with_too_many_words_is_a_bound_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (counts, edits):
        monkeypatch.setattr(module, "MAX_EXACT_WORDS", 3)
    found = count_wer(["a b c d", "a"], [["a b c e", "a"]], Reading())
    assert found.per_sentence.tolist() == [[1, 4], [0, 1]]
    assert found.signature.endswith("|stretches:3-words")
    (warning,) = found.warnings
    assert warning.startswith("Line 1 has more than 3 words, so WER is only an upper bound there.")


def test_wer_counts_words_of_the_nearest_reference() -> None:
    """Claim 118."""
    counts = count_wer(["a b c"], [["a x c d"], ["a b c d"]], Reading())
    assert counts.per_sentence.tolist() == [[1, 4]]
    assert counts.of() == 25.0
    assert counts.signature == "nrefs:2|case:mixed|tok:blanks|version:heed-1"


def test_wer_of_chinese_counts_characters() -> None:
    counts = count_wer(["我是学生"], [["我是老师"]], Reading(target_lang="zh-CN"))
    assert counts.of() == 50.0
    assert "tok:char" in counts.signature


def test_wer_may_pass_a_hundred_and_an_empty_reference_costs_a_hundred() -> None:
    assert count_wer(["a b c"], [["x"]], Reading()).of() == 300.0
    assert count_wer(["a b c"], [[""]], Reading()).of() == 100.0
    assert count_wer([""], [[""]], Reading()).of() == 0.0


def test_exact_match_ignores_blanks_at_the_ends_only() -> None:
    hypotheses, reference = [" a b", "a  b", "A b", "c"], ["a b", "a b", "a b", "d"]
    assert count_exact(hypotheses, [reference], Reading()).of() == 25.0
    assert count_exact(hypotheses, [reference], Reading(lowercase=True)).of() == 50.0
    assert count_exact(hypotheses, [reference, ["c"] * 4], Reading()).of() == 50.0


@pytest.mark.parametrize(
    ("target_lang", "tokenizer"),
    [("", "13a"), ("de", "13a"), ("zh", "zh"), ("zh_TW", "zh"), ("ZH-Hant", "zh"),
     ("yue-Hant", "zh"), ("zho_Hans", "zh"), ("ja", "ja-mecab"), ("jpn_Jpan", "ja-mecab"),
     ("ko", "ko-mecab"), ("th", "char"), ("lo", "char"), ("km", "char"), ("my", "char"),
     ("bo", "char"), ("tha_Thai", "char")],
)  # fmt: skip
def test_the_target_language_chooses_the_tokenizer(target_lang: str, tokenizer: str) -> None:
    assert Reading(target_lang=target_lang).tokenizer == tokenizer


def test_a_tokenizer_can_be_chosen_against_the_language() -> None:
    assert Reading(target_lang="zh", tokenize="char").tokenizer == "char"


def test_an_unknown_tokenizer_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r"tokenize must be one of .*, but is 13A\. Did you mean"):
        count_bleu(["a"], [["a"]], Reading(tokenize="13A"))


def test_a_tokenizer_that_would_download_is_refused() -> None:
    with pytest.raises(ConfigError, match="but is flores200"):
        count_bleu(["a"], [["a"]], Reading(tokenize="flores200"))


def test_a_tokenizer_that_is_not_installed_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "MeCab", None)
    monkeypatch.delitem(sys.modules, "sacrebleu.tokenizers.tokenizer_ja_mecab", raising=False)
    with pytest.raises(ConfigError, match=r"ja-mecab is not installed: pip install 'sacrebleu\[ja"):
        count_bleu(["a"], [["a"]], Reading(target_lang="ja"))


def test_a_training_counts_characters_where_words_cannot_be_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "MeCab", None)
    monkeypatch.delitem(sys.modules, "sacrebleu.tokenizers.tokenizer_ja_mecab", raising=False)
    assert reading_here("ja") == Reading(target_lang="ja", tokenize="char")
    assert reading_here("de") == Reading(target_lang="de")
    assert reading_here("zh").tokenizer == "zh"
    assert reading_here("zh", "zh").tokenizer == "zh"
    assert reading_here("zh", "de") == Reading()


def test_without_sacrebleu_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(MissingExtraError, match=r"heed evaluate needs .* 'heed\[train\]'"):
        count_chrf(["a"], [["a"]], Reading())


def test_wer_and_exact_match_need_no_sacrebleu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    assert count_wer(["a"], [["a"]], Reading()).of() == 0.0
    assert count_exact(["a"], [["a"]], Reading()).of() == 100.0
