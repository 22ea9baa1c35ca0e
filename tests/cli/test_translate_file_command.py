"""`heed translate-file`: a file in, a file of the same format out."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heed.translate.term_search import _Wanted

PAGE = "<h1 title='x'>A <b>man</b></h1>\n<p>Two <i>dogs</i> play.<!-- c --></p>\n"


def test_a_page_keeps_all_but_its_words(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    source, target = tmp_path / "page.html", tmp_path / "page.de.html"
    source.write_text(PAGE)
    code, out, err = call("translate-file", str(source), str(target), "-m", model, "-b", "1")
    assert (code, out) == (0, "")
    assert f"{target}: 3 texts translated\n" in err
    tags = re.findall("<.*?>", target.read_text())
    assert [re.sub("'.*'", "", tag) for tag in tags] == [
        re.sub("'.*'", "", tag) for tag in re.findall("<.*?>", PAGE)
    ]
    assert ">man<" not in target.read_text()


def test_a_link_is_written_through_and_a_dash_is_standard_output(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    source, target, link = (tmp_path / name for name in ("a.txt", "b.txt", "link.txt"))
    source.write_text("A man\n")
    target.write_text("old")
    link.symlink_to(target)
    assert call("translate-file", str(source), str(link), "-m", model)[0] == 0
    assert link.is_symlink() and target.read_text() != "old"
    code, out, _ = call("translate-file", str(source), "-", "-m", model)
    assert (code, out) == (0, target.read_text())


def test_an_output_that_cannot_be_written_is_told_before_the_model_is_loaded(
    call: Callable[..., Any], model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, folder = tmp_path / "a.txt", tmp_path / "folder.txt"
    source.write_text("A man\n")
    folder.mkdir()
    monkeypatch.setattr("heed.cli.memory.load_translator", None)
    for target in (folder, source / "b.txt"):
        code, out, err = call("translate-file", str(source), str(target), "-m", model)
        assert (code, out) == (1, "")
        assert f"cannot write {target}: " in err


def test_terms_of_a_glossary_are_put_in(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    source, target = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_text("dogs play in the snow\n")
    for name, text in (("terms.tsv", "snow\tPulverschnee\n"), ("terms.csv", "snow,Pulverschnee\n")):
        (tmp_path / name).write_text(text)
        glossary = str(tmp_path / name)
        call("translate-file", str(source), str(target), "-m", model, "--glossary", glossary)
        assert "pulverschnee" in target.read_text().lower()


def test_an_error_in_a_glossary_names_its_file(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    source, terms = tmp_path / "a.txt", tmp_path / "terms.tsv"
    source.write_text("snow\n")
    terms.write_text("snow\n")
    arguments = ("translate-file", str(source), str(tmp_path / "b.txt"), "-m", model)
    code, _, err = call(*arguments, "--glossary", str(terms))
    assert code == 1
    assert err.startswith(f"heed: {terms}: Line 1 of the glossary must have a source term, a tab")


def test_terms_without_a_place_are_named(
    call: Callable[..., Any], model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words that belong to no term are nearly always found; here there are none."""
    monkeypatch.setattr(_Wanted, "variants", lambda wanted, translation: [])
    source, terms = tmp_path / "a.txt", tmp_path / "terms.tsv"
    source.write_text("snow " * 60)
    terms.write_text("snow\tPulverschnee\n")
    arguments = ("translate-file", str(source), str(tmp_path / "b.txt"), "-m", model)
    _, _, err = call(*arguments, "--glossary", str(terms))
    assert "no place for the glossary's translation of snow." in err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.exe", "a.exe must end with a supported suffix"),
        ("none.txt", "none.txt is missing"),
        ("utf-16.txt", "utf-16.txt must be text, but character 2 is NUL, so it looks like UTF-16"),
    ],
)
def test_what_cannot_be_read_is_an_error_in_words(
    call: Callable[..., Any], model: str, tmp_path: Path, name: str, words: str
) -> None:
    (tmp_path / "a.exe").write_bytes(b"x")
    (tmp_path / "utf-16.txt").write_bytes("A dog runs.\n".encode("utf-16-le"))
    code, _, err = call("translate-file", str(tmp_path / name), str(tmp_path / "out"), "-m", model)
    assert code == 1
    assert words in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        ("-", "a.txt", "IN must be a file, because its suffix tells its format, but is"),
        ("", "a.txt", "IN must be the name of a file, but is empty."),
        ("a.txt", "", "OUT must be the name of a file, but is empty."),
    ],
)
def test_names_that_name_no_file_are_refused(
    call: Callable[..., Any], model: str, source: str, target: str, words: str
) -> None:
    code, _, err = call("translate-file", source, target, "-m", model)
    assert code == 2
    assert words in err


def test_a_file_is_not_written_over_itself(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a")
    code, _, err = call("translate-file", str(path), str(path), "-m", model)
    assert code == 2
    assert "are the same file" in err


def test_doubtful_texts_are_counted_reported_and_replaced(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    """A model that has learned nothing doubts both texts."""
    source, target, report = (tmp_path / name for name in ("a.html", "b.html", "doubts.jsonl"))
    source.write_text("<p>A <b>man</b> rides.</p><p>Two dogs.</p>")
    translate = ["translate-file", str(source), str(target), "-m", model, "-b", "1"]
    _, _, err = call(*translate, "--report", str(report))
    assert "heed: 2 of 2 texts are doubtful (" in err and f"see {report}." in err
    records = [json.loads(line) for line in report.read_text().splitlines()]
    assert [(each["line"], each["source"]) for each in records] == [
        (1, "A man rides."),
        (2, "Two dogs."),
    ]
    call(*translate, "--on-doubt", "source")
    assert target.read_text() == source.read_text()
    target.write_text("old")
    code, _, err = call(*translate, "--on-doubt", "fail")
    assert (code, target.read_text()) == (1, "old")
    assert "Text 1 is doubtful (" in err
    code, _, err = call(*translate, "--report", str(target))
    assert (code, target.read_text()) == (2, "old")
    assert "--report and OUT are both" in err
