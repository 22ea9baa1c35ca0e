import json
import math

import pytest

from heed.cli.formats import (
    Details,
    as_fairseq,
    as_jsonl,
    as_moses,
    as_text,
    as_tsv,
    choose_format,
    spell_alignment,
)
from heed.errors import UsageError
from heed.translate.result import Translation

SECOND = Translation(text="De rien", score=-0.9, log_prob=-2.7, tokens=["▁De", "▁rien"])
FIRST = Translation(
    text="De nada",
    score=-0.5,
    log_prob=-1.5,
    tokens=["▁De", "▁nada"],
    token_scores=[-0.25, -0.75, -0.5],
    source_tokens=["▁You", "▁are", "▁welcome"],
    alignment=[[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]],
    alternatives=(SECOND,),
)
ALL = Details(n_best=2, has_scores=True, has_word_scores=True, alignment="hard")


def test_text_is_the_translation_alone() -> None:
    assert as_text(0, FIRST, Details()) == ["De nada"]


def test_tsv_adds_the_columns_asked_for() -> None:
    one = Translation(text="De nada", score=-0.5, token_scores=[-0.25])
    assert as_tsv(7, one, Details(has_scores=True)) == ["De nada\t-0.5000"]
    assert as_tsv(7, one, Details(has_word_scores=True)) == ["De nada\t-0.2500"]
    assert as_tsv(7, FIRST, ALL) == [
        "7\tDe nada\t-0.5000\t-0.2500 -0.7500 -0.5000\t0-0 2-1",
        "7\tDe rien\t-0.9000\t\t",
    ]


def test_moses_lists_every_reading() -> None:
    assert as_moses(3, FIRST, Details(n_best=2)) == [
        "3 ||| De nada ||| F0= -1.5000 ||| -0.5000",
        "3 ||| De rien ||| F0= -2.7000 ||| -0.9000",
    ]
    assert as_moses(3, FIRST, ALL)[0] == (
        "3 ||| De nada ||| F0= -1.5000 WordScores= -0.2500 -0.7500 -0.5000 ||| -0.5000 ||| 0-0 2-1"
    )


def test_moses_fields_stay_four_whatever_the_text() -> None:
    (row,) = as_moses(0, Translation(text="a ||| b |||"), Details())
    assert len(row.split(" ||| ")) == 4


def test_jsonl_is_one_object_with_alternatives_inside() -> None:
    (row,) = as_jsonl(0, FIRST, Details(n_best=2))
    record = json.loads(row)
    assert record["text"] == "De nada"
    assert record["status"] == "ok"
    assert [other["text"] for other in record["alternatives"]] == ["De rien"]
    (row,) = as_jsonl(0, FIRST, ALL)
    record = json.loads(row)
    assert record["alignment"] == [[0, 0], [2, 1]]
    assert record["token_scores"] == [-0.25, -0.75, -0.5]
    (row,) = as_jsonl(0, FIRST, Details(alignment="soft"))
    assert json.loads(row)["alignment"][0] == [0.7, 0.2, 0.1]


def test_jsonl_hands_on_what_came_with_the_line() -> None:
    (row,) = as_jsonl(3, FIRST, Details(passed_on={"id": "x7"}))
    assert list(json.loads(row).items())[:3] == [("line", 4), ("id", "x7"), ("text", "De nada")]


def test_fairseq_lines_carry_scores_in_base_two() -> None:
    rows = as_fairseq(4, FIRST, ALL)
    assert [row.split("\t")[0] for row in rows[:5]] == ["S-4", "H-4", "D-4", "P-4", "A-4"]
    assert float(rows[1].split("\t")[1]) == pytest.approx(-0.5 / math.log(2), abs=1e-4)
    assert rows[2].endswith("\tDe nada")
    assert rows[4] == "A-4\t0-0 2-1"


def test_alignments_are_spelt_as_pharaoh_or_marian_do() -> None:
    assert spell_alignment(FIRST, "hard") == "0-0 2-1"
    assert spell_alignment(FIRST, "soft") == "0.7000,0.2000,0.1000 0.1000,0.1000,0.8000"
    assert spell_alignment(Translation(text=""), "soft") == ""


def test_the_simplest_format_that_holds_the_details_is_chosen() -> None:
    assert choose_format(None, Details()) is as_text
    assert choose_format(None, Details(has_scores=True)) is as_tsv
    assert choose_format(None, Details(n_best=3)) is as_moses
    assert choose_format("jsonl", Details(n_best=3)) is as_jsonl


def test_text_refuses_what_it_cannot_hold() -> None:
    with pytest.raises(UsageError, match=r"--format text holds one translation a line and nothing"):
        choose_format("text", Details(alignment="soft"))


def test_fairseq_refuses_a_confidence() -> None:
    with pytest.raises(UsageError, match="--format fairseq has no place for a confidence"):
        choose_format("fairseq", Details(has_confidence=True))
    assert choose_format("fairseq", Details(has_scores=True)) is as_fairseq


def test_a_piece_that_is_a_line_break_stays_on_its_line() -> None:
    odd = Translation(text="a b", tokens=["▁a", "\n", "\r"], source_tokens=["\n"])
    rows = as_fairseq(0, odd, Details())
    assert rows[0] == "S-0\t\\n"
    assert rows[1].endswith("\t▁a \\n \\r")
    assert not set("\n\r") & set("".join(rows))
