"""`heed check` lists what is doubtful in given pairs: by rules, as the model has random weights."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heed.bundle.doubts import Judgment, save_judgment
from heed.cli import waiting

ROWS = [
    ("Two dogs play.", "Zwei Hunde spielen."),
    ("A man is 12.", "Ein Mann ist 13."),
    ("A man is %s.", "Ein Mann."),
    ("A man is in the snow.", ""),
    ("", ""),
]


@pytest.fixture
def check(
    call: Callable[..., Any], model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Calls the command with a model to which no text is too improbable."""
    monkeypatch.setattr(waiting, "SILENT_S", 1e9)  # however slow the machine is
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    save_judgment(folder, Judgment(low_score=-1000.0))

    def run(*flags: str, **options: Any) -> tuple[int, str, str]:
        found: tuple[int, str, str] = call("check", "-m", str(folder), *flags, **options)
        return found

    return run


def test_its_progress_is_shown_where_rows_go_to_a_file(
    check: Callable[..., Any], table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "SILENT_S", 0.0)
    _, _, plain = check(str(table))
    _, _, err = check(str(table), "-o", str(tmp_path / "doubtful.tsv"))
    assert "checking …\n" in err
    assert "checking" not in plain
    assert err.splitlines()[-1].startswith("heed: 3 of 5 pairs are doubtful")


def test_blanks_stay_in_what_is_clean(check: Callable[..., Any], tmp_path: Path) -> None:
    path, clean = tmp_path / "in.csv", tmp_path / "clean.tsv"
    path.write_text('"Two  dogs\xa0play.","Zwei \n Hunde\u202fspielen."\n', "utf-8")
    code, out, err = check(str(path), "--clean", str(clean))
    assert (code, out) == (0, ""), err
    assert clean.read_text("utf-8") == "Two  dogs\xa0play.\tZwei Hunde\u202fspielen.\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "memory.tsv"
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in ROWS), "utf-8")
    return path


def kinds_of(out: str) -> dict[str, set[str]]:
    """The kinds of doubt of each place."""
    rows = [line.split("\t") for line in out.splitlines()]
    return {row[0]: set(row[1].split(",")) for row in rows}


def test_doubtful_pairs_are_listed_with_their_places_and_counted(
    check: Callable[..., Any], table: Path
) -> None:
    code, out, err = check(str(table))
    assert code == 0, err
    assert out.splitlines()[0] == f"{table}:2\tnumbers\tA man is 12.\tEin Mann ist 13."
    assert kinds_of(out) == {
        f"{table}:2": {"numbers"},
        f"{table}:3": {"spans"},
        f"{table}:4": {"empty"},
    }
    assert "heed: 3 of 5 pairs are doubtful (numbers 1, spans 1, empty 1)." in err
    assert "heed calibrate" in err


def test_the_other_pairs_are_a_table_that_can_be_trained_on(
    check: Callable[..., Any], tmp_path: Path
) -> None:
    path, clean, doubtful = (tmp_path / name for name in ("in.csv", "clean.tsv", "out.tsv"))
    path.write_text('en,de\n"Two\tdogs\nplay.",Zwei Hunde spielen.\nDogs 12.,Hunde 13.\n', "utf-8")
    code, out, err = check(str(path), "--clean", str(clean), "-o", str(doubtful))
    assert (code, out) == (0, ""), err
    assert clean.read_text("utf-8") == "Two dogs play.\tZwei Hunde spielen.\n"
    assert doubtful.read_text("utf-8").split("\t")[1:] == ["numbers", "Dogs 12.", "Hunde 13.\n"]
    assert f"heed: 1 of 2 pairs is doubtful (numbers 1): see {doubtful}." in err
    code, out, _ = check(str(clean))
    assert (code, out) == (0, "")


def test_json_has_a_sentence_for_each_doubt(check: Callable[..., Any], table: Path) -> None:
    _, out, _ = check(str(table), "--json")
    numbers, spans, empty = map(json.loads, out.splitlines())
    assert (numbers["file"], numbers["line"]) == (str(table), 2)
    assert (numbers["source"], numbers["text"]) == ROWS[1]
    assert "12 only in the source; 13 only in" in numbers["doubts"][0]["sentence"]
    assert [doubt["kind"] for doubt in spans["doubts"]] == ["spans"]
    assert [doubt["sentence"] for doubt in empty["doubts"]] == ["The translation is empty."]


def test_pairs_come_from_two_files_tmx_po_and_standard_input(
    check: Callable[..., Any], tmp_path: Path
) -> None:
    src, tgt, tmx = tmp_path / "a.en.gz", tmp_path / "a.de", tmp_path / "memory.tmx"
    src.write_bytes(gzip.compress(b"Two dogs.\nDogs 12.\n"))
    tgt.write_text("Zwei Hunde.\nHunde 13.\n", "utf-8")
    tmx.write_text(
        '<tmx version="1.4"><header srclang="en"/><body>\n'
        '<tu><tuv xml:lang="en"><seg>Dogs 12.</seg></tuv>'
        '<tuv xml:lang="de"><seg>Hunde 13.</seg></tuv></tu>\n</body></tmx>\n',
        "utf-8",
    )
    po = tmp_path / "de.po"
    po.write_text('msgid "Dogs 12."\nmsgstr "Hunde 13."\n', "utf-8")
    code, out, err = check("--src", str(src), "--tgt", str(tgt), str(tmx), str(po))
    assert code == 0, err
    assert f"{po} names no language in its header: msgid is read as en and msgstr as de" in err
    places = f"{src}:2", f"{tmx}:2", f"{po}:1"
    assert kinds_of(out) == {place: {"numbers"} for place in places}
    code, out, err = check("-", stdin=b"Dogs 12.\tHunde 13.\nTwo.\tZwei.\n")
    assert (code, kinds_of(out)) == (0, {"-:1": {"numbers"}}), err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "Give pairs to check"),
        (["--src", "a.en"], "--src and --tgt go together"),
        (["--src", "a.de", "--tgt", "a.en"], "but the model translates en into de. Exchange"),
        (["memory.txt"], "memory.txt must end in .tsv, .csv, .tmx, .xliff or .po"),
        (["missing.tsv"], "missing.tsv"),
        (["memory.tsv", "-o", "x", "--clean", "x"], "must be two files"),
        (["memory.tsv", "--clean", "memory.tsv"], "are the same file"),
        (["memory.tsv", "-o", "memory.tsv"], "are the same file"),
    ],
)
def test_what_cannot_be_checked_is_refused_in_words(
    check: Callable[..., Any],
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(table.parent)
    (table.parent / "memory.txt").write_text("one side\n")
    before = table.read_text("utf-8")
    code, out, err = check(*flags)
    assert code in (1, 2) and out == ""
    assert message in err and "Traceback" not in err
    assert table.read_text("utf-8") == before
