"""Each rule drops what it names and nothing else, and every pair is accounted for."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.data.clean import (
    CleanConfig,
    CleanReport,
    as_table,
    clean,
    length_ratio,
    sentence_hash,
)
from heed.data.readers import Pair
from heed.errors import ConfigError


def run(
    *texts: Any, extra_rules: list[Callable[..., Any]] | tuple[Any, ...] = (), **settings: Any
) -> tuple[list[tuple[str, str]], CleanReport]:
    pairs = [Pair(src, tgt, line, "corpus") for line, (src, tgt) in enumerate(texts, start=1)]
    report = CleanReport()
    kept = list(clean(pairs, CleanConfig(**settings), report, extra_rules=extra_rules))
    return [(pair.src, pair.tgt) for pair in kept], report


@pytest.mark.parametrize(
    ("src", "tgt", "reason"),
    [
        ("", "Haus", "empty"),
        ("house", " \t\u2028 ", "empty"),
        ("nice", "schÃ¶n", "bad_encoding"),
        ("it's", "itâ€™s not", "bad_encoding"),
        ("nice", "sch\ufffdn", "bad_encoding"),
        ("nice", "sch\x96n", "bad_encoding"),
        ("a " * 1500, "ein " * 600, "too_long"),
        ("A house.", "Ein Haus, das viel zu lang beschrieben ist. " * 4, "length_ratio"),
        ("New York", "new york", "copy"),
    ],
)
def test_a_bad_pair_falls_for_its_reason(src: str, tgt: str, reason: str) -> None:
    kept, report = run((src, tgt))
    assert kept == []
    assert report.n_dropped == {reason: 1}


@pytest.mark.parametrize(
    ("src", "tgt"),
    [
        ("Hi.", "Guten Tag, meine Damen!"),
        ("A second line\u0085here", "Noch eine Zeile\u2028hier"),
        ("São Paulo, ÂNGELA", "È già Âge «à»"),
        ("“Quoted” – café’s", "„Zitiert“ … Ça"),
        ("我是学生", "I am a student at this university."),
        ("a\0b\rc", "d\x0ce"),
    ],
)
def test_a_good_pair_stays(src: str, tgt: str) -> None:
    assert run((src, tgt))[1].n_kept == 1


def test_what_stays_is_normalized() -> None:
    assert run(("  two\tblanks\r", "e\u0301te\u0301"))[0] == [("two blanks", "été")]


def test_a_duplicate_is_recognized_after_normalization_and_only_as_a_pair() -> None:
    kept, report = run(("a", "b"), ("a ", "b"), ("a", "c"), ("d", "b"))
    assert kept == [("a", "b"), ("a", "c"), ("d", "b")]
    assert report.n_dropped == {"duplicate": 1}


def test_copies_and_duplicates_stay_where_they_are_the_task() -> None:
    texts = [("a", "a"), ("a", "a")]
    assert run(*texts, keep_copies=True, keep_duplicates=True)[0] == texts


def test_the_length_ratio_is_judged_by_what_is_usual_in_the_corpus() -> None:
    dense = [Pair("字" * 10 + str(n), "letters and words " * 3) for n in range(200)]
    rule = length_ratio(3.0)
    fallen = [rule(pair) for pair in dense]
    assert fallen[-100:] == [None] * 100
    assert rule(Pair("字" * 10, "字" * 10)) is None
    assert rule(Pair("字" * 60, "short")) == "length_ratio"


def test_each_direction_has_a_usual_length_ratio_of_its_own() -> None:
    rule = length_ratio(3.0)
    for number in range(200):
        assert rule(Pair("a sentence of usual length", "字" * 7, number, "", "en", "zh")) is None
    assert rule(Pair("字" * 7, "a sentence of usual length", 1, "", "zh", "en")) is None


def test_a_rule_of_the_caller_comes_before_duplicates_are_remembered() -> None:
    kept, report = run(
        ("a", "b"), ("a", "b"), extra_rules=[lambda pair: "in_dev" if pair.src == "a" else None]
    )
    assert kept == []
    assert report.n_dropped == {"in_dev": 2}


sides = st.sampled_from(["", " ", "a", "b", "schÃ¶n", "a " * 3000, "\u2028"])


@given(texts=st.lists(st.tuples(sides, sides)))
def test_every_pair_is_kept_or_counted(texts: list[tuple[str, str]]) -> None:
    kept, report = run(*texts)
    assert report.n_read == len(texts)
    assert report.n_kept == len(kept) == len(texts) - sum(report.n_dropped.values())


def test_many_pairs_are_remembered_one_by_one() -> None:
    # More than the table holds at first, so that it grows several times.
    texts = [(f"source {n % 5000}", f"target {n % 5000}") for n in range(10_000)]
    assert run(*texts)[1].n_dropped == {"duplicate": 5000}


def test_a_hash_is_the_same_in_every_process() -> None:
    # BLAKE2b, 8 bytes; printed once by this very function.
    assert sentence_hash("heed") == 14560239235969691947


def test_the_report_gives_examples_and_survives_json() -> None:
    _, report = run(*[("", "x" * 500)] * 5, ("one", "eins"))
    found = json.loads(json.dumps(report.to_dict()))
    assert (found["read"], found["kept"], found["dropped"]) == (6, 1, {"empty": 5})
    assert [example["line"] for example in found["examples"]["empty"]] == [1, 2, 3]
    assert found["examples"]["empty"][0] == {
        "origin": "corpus",
        "line": 1,
        "src": "",
        "tgt": "x" * 120 + "…",
    }
    assert as_table(found).splitlines() == [
        "6 pairs read, 1 kept, 5 dropped:",
        f'           5 empty (the first: corpus line 1: "" | "{"x" * 30}…")',
    ]


def test_a_single_pair_is_told_in_the_singular() -> None:
    report = CleanReport(n_read=1)
    report.drop("empty", Pair("", "b"))
    assert report.fallen() == "Of 1 pair read, 1 was dropped (empty 1). "
    report.n_read, report.n_dropped = 2000, {"empty": 1999}
    assert report.fallen() == "Of 2,000 pairs read, 1,999 were dropped (empty 1999). "


def test_impossible_limits_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"data\.max_chars must be .* from 1 to .*, but is 0"):
        CleanConfig(max_chars=0)
    with pytest.raises(ConfigError, match=r"data\.max_ratio must be a number above 1 .*, but is 1"):
        CleanConfig(max_ratio=1)


def test_a_pair_that_could_not_be_read_whole_falls_and_is_counted() -> None:
    report = CleanReport()
    pairs = [Pair("a b", "ab", 1, "m.tmx", fault="unknown_entity"), Pair("one", "eins", 2)]
    assert [pair.src for pair in clean(pairs, CleanConfig(), report)] == ["one"]
    assert report.n_dropped == {"unknown_entity": 1}
