"""What survives is judged from strings: spans counted, scores beside those of unchanged lines."""

from typing import Any

import pytest

from heed.evaluate.survival import PAIR, Answer, Trial, is_copied, is_kept, judge, without

LINES = [
    "Ein Mann fährt mit dem Fahrrad.",
    "Zwei Hunde spielen heute im Schnee.",
    "Die Stadt ist sehr groß und laut!",
    "Eine Frau liest ein altes Buch.",
]


@pytest.mark.parametrize(
    ("spans", "kind", "text", "kept"),
    [
        (["%s"], "field", "Datei %s fehlt", True),
        (["%s"], "field", "Datei fehlt", False),
        (["%s"], "field", "%s und %s", False),
        (["%s", "%s"], "own", "%s und %s", True),
        (["12"], "number", "im Jahr 12.", True),
        (["12"], "number", "im Jahr 2012", False),
        (["12"], "number", "12,5 Meter", False),
        (["234"], "number", "1.234 Meter", False),
        (["{a}"], "field", "{{a}}", False),
        (["{a}"], "field", "${a}", False),
        (["<b>", "</b>"], PAIR, "<b>fett</b>", True),
        (["<b>", "</b>"], PAIR, "</b>fett<b>", False),
        (["</b>", "<b>"], "own", "<b>fett</b>", True),
        (["😀😀"], "emoji", "froh 😀😀", True),
        (["😀😀"], "emoji", "froh 😀😀😀", False),
        (["Kasima"], "name", "Kasimas Hund", True),
        (["asima"], "name", "Kasima", False),
        (["カサマ"], "name", "彼はカサマです", True),
    ],
)
def test_a_span_is_kept_if_it_stands_there_as_often_as_before(
    spans: list[str], kind: str, text: str, kept: bool
) -> None:
    assert is_kept(spans, text, kind=kind) == kept


def test_what_is_taken_out_leaves_the_rest() -> None:
    assert without("Ein Mann %s fährt.", ["%s"]) == "Ein Mann fährt."
    assert without("<b>Ein</b> Mann", ["<b>", "</b>"]) == "Ein Mann"
    assert without("Ein Mann", ["%s"]) == "Ein Mann"


def test_a_copy_may_differ_in_blanks_and_in_how_letters_are_composed() -> None:
    assert is_copied("Où  est-ce ?", "Ou\u0300 est-ce\u00a0?")
    assert not is_copied("Où est-ce ?", "Wo ist es?")


def clean() -> Trial:
    return Trial(key="clean", label="unchanged", sources=["a"] * 4, references=[LINES])


def trial(**changes: Any) -> Trial:
    values: dict[str, Any] = {"key": "x", "label": "X", "sources": ["a"] * 4, "numbers": range(4)}
    return Trial(**{**values, "references": [LINES], **changes})


def answers(lines: list[str]) -> list[Answer]:
    return [Answer(line) for line in lines]


@pytest.mark.parametrize(
    ("view", "lines"),
    [
        ("without case", [line.upper() for line in LINES]),
        ("without final marks", [line[:-1] for line in LINES]),
        ("with plain marks", LINES),
    ],
)
def test_a_view_hides_what_is_not_judged(view: str, lines: list[str]) -> None:
    found = judge([clean(), trial(view=view)], [answers(LINES), answers(lines)])
    assert found.rows[1].bleu == pytest.approx(100)
    assert found.rows[1].share == pytest.approx(1)


def test_a_row_is_compared_with_the_same_lines_unchanged() -> None:
    poor = [LINES[0], "x y z", *LINES[2:]]
    some = trial(sources=["a", "b"], numbers=[0, 2], references=[[LINES[0], LINES[2]]])
    found = judge([clean(), some], [answers(poor), answers([LINES[0], LINES[2]])])
    assert found.rows[0].bleu is not None
    assert found.rows[0].bleu < 100
    assert found.rows[1].clean_bleu == pytest.approx(100)
    assert found.rows[1].n_lines == 2


def test_spans_are_counted_and_the_rest_is_scored() -> None:
    spans = trial(spans=[("%s",)] * 4, kinds=["field", "field", "tag", "tag"], is_rest=True)
    given = [f"%s {LINES[0]}", LINES[1], f"{LINES[2]} %s", f"%s {LINES[3]}"]
    row = judge([clean(), spans], [answers(LINES), answers(given)]).rows[1]
    assert row.kept == 0.75
    assert row.by_kind == {"field": (0.5, 2), "tag": (1.0, 2)}
    assert row.bleu == pytest.approx(100)


def test_a_line_that_must_be_copied_may_be_doubted_instead() -> None:
    foreign = Trial(
        key="f", label="F", sources=["un", "deux", "три"], kinds=["fr", "fr", "ru"], must_copy=True
    )
    given = [Answer("un"), Answer("eins"), Answer("drei", is_doubted=True)]
    row = judge([clean(), foreign], [answers(LINES), given]).rows[1]
    assert row.kept == pytest.approx(2 / 3)
    assert row.bleu is None


def test_terms_are_counted_one_by_one() -> None:
    given = Trial(
        key="terms",
        label="terms",
        sources=LINES[:2],
        numbers=[0, 1],
        references=[LINES[:2]],
        has_terms=True,
    )
    said = [Answer(LINES[0], terms=(True, True)), Answer(LINES[1], terms=(False, True))]
    row = judge([clean(), given], [answers(LINES), said]).rows[1]
    assert (row.n_lines, row.kept, row.share) == (2, 0.75, 1.0)


def test_the_table_says_what_is_not_in_it_and_why() -> None:
    trials = [clean(), trial(key="upper", label="UPPER", reason="no capitals", sources=[])]
    found = judge(trials, [answers(LINES), []])
    text = found.as_text()
    assert "left out: UPPER: no capitals" in text
    assert "BLEU: nrefs:1|case:mixed" in text
    record = found.as_dict()
    assert [row["key"] for row in record["survival"]] == ["clean", "upper"]
    assert record["survival"][1]["reason"] == "no capitals"
    assert record["survival"][1]["share_of_clean"] is None


def test_the_table_names_the_kinds_that_were_lost() -> None:
    spans = trial(spans=[("%s",)] * 4, kinds=["field", "field", "tag", "tag"])
    given = [f"%s {LINES[0]}", LINES[1], f"{LINES[2]} %s", f"%s {LINES[3]}"]
    text = judge([clean(), spans], [answers(LINES), answers(given)]).as_text()
    assert "not all kept: X: field 50.0% of 2" in text
    assert "tag 100" not in text
