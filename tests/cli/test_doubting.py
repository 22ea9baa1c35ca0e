"""What `heed translate` does with doubtful lines; a model that has learned nothing doubts a lot."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from heed.cli.doubting import Doubtful, Doubting
from heed.translate.result import Doubt, Translation

LINES = "A man is riding a bike.\nTwo dogs play in the snow.\n\n"


@pytest.fixture
def translate(call: Callable[..., Any], model: str) -> Callable[..., tuple[int, str, str]]:
    def run(*flags: str) -> tuple[int, str, str]:
        found: tuple[int, str, str] = call(
            "translate", "-m", model, "-b", "1", *flags, stdin=LINES.encode()
        )
        return found

    return run


def test_doubtful_lines_are_counted_kept_and_reported(
    translate: Callable[..., Any], tmp_path: Path
) -> None:
    code, out, err = translate()
    assert code == 0
    assert "heed: 2 of 3 lines are doubtful (" in err and "--report FILE lists them." in err
    report = tmp_path / "doubts.jsonl"
    code, again, err = translate("--report", str(report))
    assert (code, again) == (0, out) and f"see {report}." in err
    records = [json.loads(line) for line in report.read_text().splitlines()]
    assert [record["line"] for record in records] == [1, 2]
    assert [record["source"] for record in records] == LINES.splitlines()[:2]
    assert [record["text"] for record in records] == out.splitlines()[:2]
    for record in records:
        assert "max_length" in [doubt["kind"] for doubt in record["doubts"]]
        assert record["confidence"] is None


def test_doubtful_lines_are_marked_or_replaced_by_their_source(
    translate: Callable[..., Any],
) -> None:
    _, kept, _ = translate()
    _, marked, _ = translate("--on-doubt", "mark")
    first, second, blank = kept.splitlines()
    assert marked.splitlines() == [f"[?] {first}", f"[?] {second}", blank]
    _, sources, _ = translate("--on-doubt", "source")
    assert sources == LINES


def test_a_source_with_line_breaks_and_tabs_stays_one_line(
    call: Callable[..., Any], model: str
) -> None:
    flags = ["translate", "-m", model, "-b", "1", "--on-doubt", "source"]
    texts = b'{"text": "A man\\r\\nrides"}\n"Two dogs"\n'
    code, out, err = call(*flags, "--json-input", stdin=texts)
    assert (code, out) == (0, "A man rides\nTwo dogs\n"), err
    code, out, _ = call(*flags, "--with-scores", stdin=b"A man\trides\n")
    assert (code, out.count("\t")) == (0, 1)
    assert out.startswith("A man rides\t")


def test_the_first_doubtful_line_ends_it_when_asked(translate: Callable[..., Any]) -> None:
    code, out, err = translate("--on-doubt", "fail")
    assert code == 1
    assert out == ""
    assert "Line 1 is doubtful (max_length: " in err


def test_json_holds_all(translate: Callable[..., Any]) -> None:
    _, out, _ = translate("--format", "jsonl")
    first, _, blank = map(json.loads, out.splitlines())
    assert blank["doubts"] == []
    assert first["confidence"] is None
    whole = [doubt for doubt in first["doubts"] if doubt["kind"] == "max_length"]
    assert [(doubt["start"], doubt["end"]) for doubt in whole] == [(0, len(first["text"]))]
    _, marked, _ = translate("--format", "jsonl", "--on-doubt", "mark")
    found = json.loads(marked.splitlines()[0])
    (doubt,) = [doubt for doubt in found["doubts"] if doubt["kind"] == "max_length"]
    assert found["text"][doubt["start"] : doubt["end"]] == first["text"]


def test_an_unknown_confidence_is_a_dash(translate: Callable[..., Any]) -> None:
    _, out, _ = translate("--with-confidence")
    assert [line.split("\t")[1] for line in out.splitlines()] == ["-", "-", "-"]
    code, _, err = translate("--with-confidence", "--format", "text")
    assert code == 2 and "confidence" in err


def test_a_report_is_not_written_over_what_is_read(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    source = tmp_path / "in.txt"
    source.write_text(LINES)
    code, _, err = call("translate", "-m", model, "-i", str(source), "--report", str(source))
    assert code == 2 and "in.txt" in err
    assert source.read_text() == LINES


def test_a_report_has_a_file_of_its_own(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "out.txt")
    files = ("-o", str(tmp_path / "out.txt"), "--report", str(tmp_path / "link"))
    code, _, err = call("translate", "-m", model, *files, stdin=LINES.encode())
    assert code == 2 and "link: each needs its own file." in err
    assert not (tmp_path / "out.txt").exists()
    code, _, _ = call("translate", "-m", model, "-o", "/dev/null", "--report", "/dev/null", "a")
    assert code == 0


def test_a_report_that_cannot_be_written_leaves_no_empty_output(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    files = ("-o", str(tmp_path / "out.txt"), "--report", str(tmp_path / "missing" / "a"))
    code, _, err = call("translate", "-m", model, *files, stdin=LINES.encode())
    assert code == 1 and "a cannot be written: No such file or directory." in err
    assert list(tmp_path.iterdir()) == []


def test_calibrating_needs_development_pairs(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    code, _, err = call("calibrate", "-m", model)
    assert code == 1 and "has no development pairs; name files: SRC TGT." in err
    few = tmp_path / "few"
    few.write_text(LINES)
    code, _, err = call("calibrate", "-m", model, str(few), str(few))
    assert code == 1 and "At least 100 development pairs" in err
    code, _, err = call("calibrate", "-m", model, "-", "-")
    assert (code, err) == (2, "heed: Standard input (-) can be read once, but is given twice.\n")
    code, _, err = call("calibrate", "-m", model, str(few))
    assert code == 2 and "TGT" in err


def test_a_calibrated_model_knows_a_confidence(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    import shutil

    copy = tmp_path / "model"
    shutil.copytree(model, copy)
    for side, words in (("en", "A man rides."), ("de", "Ein Mann reitet.")):
        (tmp_path / side).write_text(f"{words}\n" * 120)
    files = [str(tmp_path / side) for side in ("en", "de")]
    code, out, _ = call("calibrate", "-m", str(copy), *files, "--dry-run", "--json")
    assert (code, json.loads(out)["n_pairs"], json.loads(out)["kinds"]) == (0, 120, [])
    code, out, _ = call("calibrate", "-m", str(copy), *files)
    assert code == 0 and "120 pairs: confidence that sentence chrF2 is at least 50" in out
    _, out, _ = call(
        "translate", "-m", str(copy), "-b", "1", "--with-confidence", stdin=b"A man rides.\n"
    )
    # None of the translations of random weights was right.
    assert 0 <= float(out.split("\t")[1]) < 0.5


def test_remarks_are_no_reasons_for_doubt() -> None:
    """They stand in the report, but are not counted where the reasons are."""
    wanted = Doubting(on_doubt="keep", report_path=None, second_search=None)
    said: list[str] = []
    doubts = [Doubt(kind=kind, sentence="…") for kind in ("left_out", "read_as")]
    with ExitStack() as stack:
        doubtful = Doubtful(wanted, stack)
        for line in doubtful.reading(["one", "two"]):
            is_first = line == "one"
            doubtful.looked_at(
                Translation(text=str(line), doubts=doubts if is_first else doubts[1:])
            )
        doubtful.summarize(SimpleNamespace(say=said.append))
    assert said == ["heed: 1 of 2 lines is doubtful (left_out 1): --report FILE lists them."]
