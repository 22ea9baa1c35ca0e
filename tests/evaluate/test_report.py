import json
from typing import Any

import pytest

from heed.errors import ConfigError, DataError
from heed.evaluate.counts import Reading, count_bleu
from heed.evaluate.report import Report, report

REFERENCE = ["a small dog", "the cat sat on the mat today", "one two three four five six"]
OLD = ["a small dog", "the cat sat on the mat today", "one two"]
NEW = ["a small cat", "cat", "one two three four five six"]
SOURCES = ["ein kleiner Hund", "die Katze", "eins zwei"]


def of_two(**options: Any) -> Report | None:
    options = {"resamples": 20, "n_worst": 10, **options}
    return report({"old": OLD, "new": NEW}, [REFERENCE], **options)


def test_one_system_is_shown_worst_first() -> None:
    found = report({"new": NEW}, [REFERENCE], resamples=20, n_worst=3)
    assert [line.number for line in found.worst] == [2, 1, 3]
    assert found.differences == {}


def test_of_two_systems_the_greatest_loss_comes_first() -> None:
    found = of_two(sources=SOURCES)
    assert [line.number for line in found.worst] == [2, 1, 3]
    first = found.worst[0]
    assert first.source == "die Katze"
    assert first.reference == REFERENCE[1]
    assert first.translations == {"old": OLD[1], "new": NEW[1]}
    assert first.chrf["old"] == pytest.approx(100)
    assert first.chrf["new"] < 20


def test_only_so_many_sentences_are_shown() -> None:
    assert [line.number for line in of_two(n_worst=1).worst] == [2]
    assert of_two(n_worst=0).worst == []


def test_each_length_has_its_own_scores() -> None:
    found = of_two(length_edges=(3, 6), metrics=["bleu"], n_worst=0, by_length=True)
    assert found.length_unit == "reference words"
    assert found.worst == []
    assert [bucket.label for bucket in found.buckets] == ["0-3", "4-6", "7 or more"]
    assert [bucket.n_sentences for bucket in found.buckets] == [1, 1, 1]
    alone = count_bleu([NEW[2]], [[REFERENCE[2]]], Reading()).of()
    assert found.buckets[1].scores["new"]["bleu"] == pytest.approx(alone, abs=1e-9)


def test_lengths_are_those_of_the_sources_if_they_are_given() -> None:
    found = of_two(sources=SOURCES, length_edges=(2,), metrics=["bleu"], by_length=True)
    assert found.length_unit == "source words"
    assert [bucket.label for bucket in found.buckets] == ["0-2", "3 or more"]
    assert [bucket.n_sentences for bucket in found.buckets] == [2, 1]
    short = count_bleu(OLD[1:], [REFERENCE[1:]], Reading()).of()
    assert found.buckets[0].scores["old"]["bleu"] == pytest.approx(short, abs=1e-9)


def test_an_empty_length_is_left_out() -> None:
    assert [bucket.label for bucket in of_two(length_edges=(2, 10)).buckets] == ["3-10"]


def test_chinese_lengths_are_in_characters() -> None:
    found = report(
        {"a": ["我是学生"]},
        [["我是 老师"]],
        reading=Reading(target_lang="zh"),
        length_edges=(3, 4),
        resamples=5,
        n_worst=1,
    )
    assert [bucket.label for bucket in found.buckets] == ["4-4"]
    assert found.length_unit == "reference characters"
    found = report(
        {"a": ["I am a student"]},
        [["I am a teacher"]],
        sources=["我是 老师"],
        source_lang="zh-Hans",
        resamples=5,
        by_length=True,
        length_edges=(3, 4),
    )
    assert [bucket.label for bucket in found.buckets] == ["4-4"]
    assert found.length_unit == "source characters"


def test_a_report_is_json() -> None:
    found = of_two(sources=SOURCES).as_dict()
    assert json.loads(json.dumps(found)) == found
    assert list(found) == ["systems", "comparison", "length_unit", "by_length", "worst"]
    assert [system["name"] for system in found["systems"]] == ["old", "new"]
    assert list(of_two(n_worst=0).as_dict()) == ["systems", "comparison"]
    by_length = of_two(n_worst=0, by_length=True).as_dict()
    assert list(by_length) == ["systems", "comparison", "length_unit", "by_length"]


def test_a_report_as_text_says_everything_once() -> None:
    text = of_two(sources=SOURCES, metrics=["bleu", "wer"]).as_text()
    lines = text.splitlines()
    assert lines[0] == "old  (3 sentences)"
    assert lines[1].startswith("  BLEU")
    assert "nrefs:1|case:mixed|eff:no|tok:13a" in lines[1]
    assert "difference, second minus first" in lines
    assert any(
        line.split()[:5] == ["source", "words", "sentences", "old", "bleu"] for line in lines
    )
    assert "line 2\n  source     die Katze\n  reference  the cat sat on the mat today" in text
    assert "  new        cat  (chrF " in text
    assert all(line == line.rstrip() for line in lines)
    assert "line 2" not in of_two(n_worst=0).as_text()


def test_one_sentence_is_one_sentence() -> None:
    text = report({"new": NEW[:1]}, [REFERENCE[:1]], resamples=2).as_text()
    assert text.splitlines()[0] == "new  (1 sentence)"


@pytest.mark.parametrize("names", [[], ["a", "b", "c"]])
def test_only_one_or_two_systems_are_reported(names: list[str]) -> None:
    with pytest.raises(ConfigError, match=f"one system or two, but is given {len(names)}"):
        report(dict.fromkeys(names, NEW), [REFERENCE])


def test_sources_of_another_length_are_refused() -> None:
    with pytest.raises(DataError, match="there are 3 translations and 1 sources"):
        of_two(sources=["eins"])


@pytest.mark.parametrize("references", [[], REFERENCE])
def test_missing_references_are_refused_with_sources_too(references: list[Any]) -> None:
    with pytest.raises(DataError, match="(?i)references"):
        report({"new": NEW}, references, sources=SOURCES)
