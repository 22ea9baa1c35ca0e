import json
import random
import time
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from heed.errors import ConfigError, DataError
from heed.evaluate.counts import Reading
from heed.evaluate.metrics import METRICS, compare, evaluate
from heed.evaluate.report import report

WORDS = [f"w{i}" for i in range(30)]


def corpus(n: int, seed: int = 0) -> list[str]:
    generator = random.Random(seed)
    return [" ".join(generator.choices(WORDS, k=generator.randint(5, 20))) for _ in range(n)]


def spoil(lines: list[str], share: float, seed: int = 0) -> list[str]:
    generator = random.Random(seed)
    return [
        " ".join("?" if generator.random() < share else word for word in line.split())
        for line in lines
    ]


REFERENCE = corpus(200)
GOOD = spoil(REFERENCE, 0.1, seed=1)
BAD = spoil(REFERENCE, 0.3, seed=2)


def test_scores_come_with_signature_and_interval() -> None:
    found = evaluate(GOOD, [REFERENCE])
    assert list(found.scores) == ["bleu", "chrf", "ter"]
    assert found.n_sentences == 200
    bleu = found.scores["bleu"]
    assert bleu.value == pytest.approx(BLEU().corpus_score(GOOD, [REFERENCE]).score, abs=1e-9)
    assert bleu.name == "BLEU"
    assert bleu.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    for score in found.scores.values():
        assert score.low < score.value < score.high


def test_the_interval_is_that_of_a_plain_bootstrap() -> None:
    found = evaluate(GOOD, [REFERENCE], metrics=["bleu"], resamples=50, seed=7).scores["bleu"]
    generator = np.random.default_rng(7)
    scores = []
    for _ in range(50):
        drawn = generator.integers(200, size=200)
        said, known = ([lines[i] for i in drawn] for lines in (GOOD, REFERENCE))
        scores.append(BLEU().corpus_score(said, [known]).score)
    low, high = np.percentile(scores, [2.5, 97.5])
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)


def test_the_same_seed_gives_the_same_interval() -> None:
    first, second, other = (
        evaluate(GOOD, [REFERENCE], metrics=["chrf"], seed=seed).scores["chrf"]
        for seed in (1, 1, 2)
    )
    assert first == second
    assert (first.low, first.high) != (other.low, other.high)


def test_a_thousand_resamples_of_a_thousand_sentences_are_fast() -> None:
    lines = corpus(1000)
    spoilt = spoil(lines, 0.2)
    begin = time.process_time()
    evaluate(spoilt, [lines], metrics=["bleu"], resamples=1)
    once = time.process_time() - begin
    begin = time.process_time()
    evaluate(spoilt, [lines], metrics=["bleu"], resamples=1000)
    # Scoring anew a thousand times would take a thousand times `once`.
    assert time.process_time() - begin < 10 * once + 1


def test_a_perfect_system_is_perfect_in_every_metric() -> None:
    found = evaluate(REFERENCE, [REFERENCE], metrics=list(METRICS))
    assert {key: round(score.value, 9) for key, score in found.scores.items()} == {
        "bleu": 100, "chrf": 100, "ter": 0, "wer": 0, "exact": 100,
    }  # fmt: skip


def test_a_better_system_is_significantly_better() -> None:
    found = compare(BAD, GOOD, [REFERENCE], metrics=["bleu", "ter"])
    assert found["bleu"].value > 0 > found["ter"].value
    assert found["bleu"].low > 0
    assert found["bleu"].p_value == found["ter"].p_value == 1 / 1001


def test_a_system_does_not_differ_from_itself() -> None:
    found = compare(GOOD, GOOD, [REFERENCE], metrics=["bleu"])["bleu"]
    assert (found.value, found.low, found.high, found.p_value) == (0, 0, 0, 1)


def test_a_single_sentence_shows_no_significant_difference() -> None:
    found = compare(["a b"], ["c d"], [["c d"]], metrics=["wer"], resamples=50)["wer"]
    assert (found.value, found.p_value) == (-100, 1)


def test_two_systems_of_one_quality_do_not_differ_significantly() -> None:
    other = spoil(REFERENCE, 0.1, seed=3)
    assert compare(GOOD, other, [REFERENCE], metrics=["bleu"])["bleu"].p_value > 0.05


def test_p_values_of_equals_are_spread_evenly() -> None:
    # Of equally good systems, one in ten falls below 0.1; 60 draws, three standard deviations wide.
    p_values = []
    for seed in range(60):
        known = corpus(60, seed)
        two = [spoil(known, 0.2, seed=1000 + 2 * seed + i) for i in (0, 1)]
        found = compare(*two, [known], metrics=["exact", "wer"], resamples=200)
        p_values.append(found["wer"].p_value)
    assert np.mean(np.array(p_values) < 0.1) < 0.1 + 3 * (0.1 * 0.9 / 60) ** 0.5


def test_results_are_json() -> None:
    found = evaluate(["a b", "c"], [["a b", "d"]], metrics=list(METRICS), resamples=10).as_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["scores"]["exact"]["value"] == 50.0
    difference = compare(["a"], ["b"], [["a"]], metrics=["wer"], resamples=10)["wer"].as_dict()
    assert json.loads(json.dumps(difference)) == difference
    assert difference["value"] == 100.0


def test_chinese_is_cut_into_characters() -> None:
    found = evaluate(["我是学生"], [["我是学生"]], reading=Reading(target_lang="zh"), resamples=5)
    assert "tok:zh" in found.scores["bleu"].signature
    assert "asian:yes" in found.scores["ter"].signature
    assert found.scores["bleu"].value == pytest.approx(100)


@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        (["a", "b"], [["a", "b"], ["a"]],
         "there are 2 translations and 1 lines in reference set 2"),
        (["a"], [["a", "b", "c"]], "there are 1 translations and 3 lines in reference set 1"),
        ([], [[]], "no translations to evaluate"),
        (["a"], [], "no references to evaluate against"),
        (["a", "b"], ["a", "b"], r"a plain list of lines\. Put it in brackets: \[references\]"),
        (["a"], "a", "a plain list of lines"),
        ("a b", [["a b"]], "must be a list of lines, but are one string"),
    ],
)  # fmt: skip
def test_what_would_mean_nothing_is_refused(
    hypotheses: str | list[str], references: str | list[Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        evaluate(hypotheses, references)


def test_systems_of_other_lengths_are_refused() -> None:
    with pytest.raises(DataError, match="there are 1 translations and 2 lines"):
        compare(["a"], ["a", "b"], [["a", "b"]])


def test_an_unknown_metric_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(
        ConfigError, match=r"one of bleu, .*, exact, but is blue\. Did you mean bleu\?"
    ):
        evaluate(["a"], [["a"]], metrics=["blue"])


def test_no_metric_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Give at least one metric: bleu, chrf, ter, wer, exact"):
        evaluate(["a"], [["a"]], metrics=[])


def test_what_was_counted_otherwise_is_warned_about_in_the_result() -> None:
    long = " ".join(f"w{i}" for i in range(401))
    found = evaluate([long], [[long]], resamples=5)
    assert ["TER counts edits without shifts" in text for text in found.warnings] == [True]
    assert report({"a": [long]}, [[long]], resamples=5).evaluations["a"].warnings == found.warnings


UNBROKEN = {
    "Thai": "ผู้ชายกำลังขี่จักรยาน",
    "Lao": "ຜູ້ຊາຍກໍາລັງຂີ່ລົດຖີບ",
    "Khmer": "បុរសម្នាក់កំពុងជិះកង់",
    "Burmese": "လူတစ်ယောက်စက်ဘီးစီးနေသည်",
    "Tibetan": "མི་ཞིག་རྐང་འཁོར་བཞོན་བཞིན་འདུག",
    "Chinese": "一个男人在骑自行车。",
    "Japanese": "男が自転車に乗っている。",
}


@pytest.mark.parametrize("text", UNBROKEN.values(), ids=UNBROKEN)
def test_text_without_blanks_is_warned_about_where_words_are_counted(text: str) -> None:
    lines = [text] * 3
    (warning,) = evaluate(lines, [lines], metrics=["bleu", "wer", "chrf"], resamples=5).warnings
    assert "written without blanks, where BLEU and WER would need blanks" in warning
    assert "such as -t zh or -t th, or for BLEU --tokenize char." in warning
    by_characters = Reading(tokenize="char")
    assert evaluate(lines, [lines], metrics=["bleu"], reading=by_characters).warnings == ()
    (warning,) = evaluate(lines, [lines], metrics=["ter"], reading=by_characters).warnings
    assert "where TER would need blanks" in warning


@pytest.mark.parametrize("lang", ["th", "lo", "km", "my", "bo", "zh"])
def test_equal_lines_without_blanks_are_perfect_where_the_language_is_known(lang: str) -> None:
    lines = list(UNBROKEN.values())
    found = evaluate(lines, [lines], reading=Reading(target_lang=lang), resamples=5)
    assert found.scores["bleu"].value == pytest.approx(100)
    assert found.warnings == ()


def test_a_few_foreign_characters_and_korean_are_not_warned_about() -> None:
    for lines in (["The town of 北京 is large."], ["한 남자가 자전거를 타고 있다"], [""]):
        assert evaluate(lines, [lines], resamples=5).warnings == ()


def test_no_resamples_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"resamples must be at least 1, but is 0\. Try 1000\."):
        evaluate(["a"], [["a"]], metrics=["wer"], resamples=0)


def test_tokenized_text_is_warned_about_in_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    cut = ["a dog , a cat .", "it 's here .", "yes"]
    found = evaluate(cut, [["a dog, a cat.", "it's here.", "yes"]], resamples=5)
    (warning,) = found.warnings
    assert "2 of 3 translations look tokenized, as in 'a dog .'" in warning
    assert capsys.readouterr() == ("", "")


def test_subword_marks_are_warned_about_on_both_sides() -> None:
    found = evaluate(["▁a ▁d og"], [["a d@@ og"]], resamples=5)
    assert ["translations" in w or "reference set 1" in w for w in found.warnings] == [True, True]


def test_french_question_marks_are_not_tokenized_text() -> None:
    lines = ["Tu aimes le thé ?"] * 20
    assert evaluate(lines, [lines], resamples=5).warnings == ()
