"""`heed show positions`: on a terminal, in files, one position written out."""

import csv
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heed.bundle.bundle import load_bundle, save_bundle
from heed.explain.embeddings import map_of_pieces
from heed.vectors.pieces import piece_tables


def test_the_heat_map_has_a_row_for_each_position(call: Callable[..., Any]) -> None:
    """Claim 39."""
    code, out, _ = call("show", "positions", "--len", "100", "--dim", "16")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith("sinusoidal positions: PE(pos, 2i) = sin(pos / 10000^(2i/d))")
    assert [line.split()[0] for line in lines[2:-1]] == [str(i) for i in range(100)]
    assert lines[-1].startswith("-1 ")
    assert lines[-1].endswith(" 1")


def test_a_word_is_written_out_at_its_index(call: Callable[..., Any]) -> None:
    """Claims 41 and 131: "city" has index 4, not 3."""
    code, out, err = call(
        "show", "positions", "--text", "New York is a city", "--word", "city", "--dim", "512"
    )
    assert code == 0
    assert "city: index 4 among New York is a city" in err
    assert "(5 if <bos> comes first" in err
    rows = [line.split(maxsplit=4) for line in out.splitlines()[1:]]
    assert len(rows) == 512
    assert rows[3][1] == "1"
    assert float(rows[3][3]) == pytest.approx(math.cos(4 / 10000 ** (2 / 512)), abs=1e-6)
    assert rows[3][4] == "cos(4 / 10000^(2/512))"


def test_a_word_has_the_index_at_which_a_model_reads_it(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    """A tag stands in front of a source where there are several languages, <s> of a target."""
    several, flags = str(tmp_path / "several"), ("--text", "A bike.", "--word", ".")
    save_bundle(several, replace(load_bundle(model), target_langs=("de", "zh")))
    for folder, side, first in (
        (model, "source", []),
        (several, "source", ["<2de>"]),
        (several, "target", ["<s>"]),
    ):
        code, out, err = call("show", "positions", "-m", folder, "--side", side, *flags)
        bundle = load_bundle(folder)
        pieces = [*first, *bundle.src_vocab.pieces(bundle.src_vocab.encode("A bike."))]
        index = len(pieces) - 1
        assert code == 0
        assert f".: index {index} among {' '.join(pieces)}, counted from 0.\n" in err
        assert f"sin({index} / 10000^(0/16))" in out


def test_rows_that_are_left_out_are_told(call: Callable[..., Any]) -> None:
    assert "Rows: one in 22; columns: all." in call("show", "positions", "--len", "2150")[1]
    assert "Rows: every second;" in call("show", "positions", "--len", "200")[1]


@pytest.mark.parametrize("flags", [(), ("--similarity",)])
@pytest.mark.parametrize("suffix", ["svg", "png", "csv"])
def test_a_table_is_written_as_a_file(
    flags: tuple[str, ...], suffix: str, call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    path = tmp_path / f"table.{suffix}"
    assert call("show", "positions", "-m", model, "--len", "9", *flags, "--out", str(path))[0] == 0
    data = path.read_bytes()
    assert {"svg": b"<svg" in data, "png": data[:4] == b"\x89PNG", "csv": True}[suffix]
    if suffix == "csv":
        rows = list(csv.reader(data.decode().splitlines()))
        assert len(rows) == 10
        assert float(rows[1][1]) == (8 if flags else 0)  # |PE|² = d/2; sin 0


def test_rows_of_alibi_are_distances_and_its_similarity_is_a_mean(
    call: Callable[..., Any], tmp_path: Path
) -> None:
    flags, path = ("show", "positions", "--kind", "alibi", "--dim", "4"), tmp_path / "table.csv"
    assert call(*flags, "--out", str(path))[0] == 0
    assert path.read_text().startswith("distance,0,1,2,3\n0,0,0,0,0\n1,-0.25,")
    assert call(*flags, "--similarity", "--out", str(path))[0] == 0
    assert path.read_text().startswith("position,0,1,2,")
    title = "mean over heads of the terms of alibi positions: head h adds −m_h |i − j|"
    assert call(*flags, "--similarity")[1].startswith(title)


def test_wavelengths_go_from_2_pi_on(call: Callable[..., Any], tmp_path: Path) -> None:
    code, out, _ = call("show", "positions", "--wavelengths", "--dim", "4")
    assert code == 0
    assert [line.split() for line in out.splitlines()[1:]] == [
        ["0", "0", "sin", "6.28319"],
        ["1", "0", "cos", "6.28319"],
        ["2", "1", "sin", "628.319"],
        ["3", "1", "cos", "628.319"],
    ]


def test_similarity_and_long_tables_draw_every_nth_row(
    call: Callable[..., Any], model: str
) -> None:
    code, out, _ = call("show", "positions", "--similarity", "--len", "64")
    assert code == 0
    assert "Rows: every second; columns: every second." in out
    assert len(out.splitlines()) == 2 + 1 + 32 + 1


def test_the_end_of_the_training_is_marked(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    bundle = load_bundle(model)
    for name, longest in (("known", {"max_source_tokens": 16}), ("unknown", {})):
        save_bundle(tmp_path / name, replace(bundle, decoding=longest))
    lines = call("show", "positions", "-m", str(tmp_path / "known"))[1].splitlines()
    mark = lines.index("  ── longer than any training sentence ──")
    assert [lines[mark - 1].split()[0], lines[mark + 1].split()[0]] == ["15", "16"]
    assert len(lines) == 2 + 32 + 1 + 1  # twice as many positions as were trained
    assert "longer than" not in call("show", "positions", "-m", str(tmp_path / "unknown"))[1]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--word", "city"], "Give --word and --text together"),
        (["--out", "table.txt"], "--out must end with .svg, .png, .pdf, .csv, but is table.txt."),
        (["--position", "3", "--out", "a.png"], "--out must end with .csv for a list of numbers"),
        (["--position", "300"], "heed: --position must be from 0 to 99, but is 300."),
        (["--kind", "absolute", "--wavelengths"], "absolute positions are not waves"),
        (["--text", "a b", "--word", "c"], "'c' must be one of the tokens, which are a b."),
        (["-m", "run", "--kind", "alibi"], "--kind is for a table without a model: leave it out."),
        (["-m", "run", "--dim", "16"], "--dim is for a table without a model: leave it out."),
        (["--side", "target"], "--side is for a model: give -m too."),
        (["--similarity", "--wavelengths"], "Give either --similarity or --wavelengths, not both."),
        (["--position", "1", "--similarity"], "Give either --position or --similarity, not both."),
    ],
)
def test_what_cannot_be_shown_is_refused(
    flags: list[str], words: str, call: Callable[..., Any]
) -> None:
    code, _, err = call("show", "positions", *flags)
    assert code in (1, 2)
    assert words in err


def test_a_table_of_pieces_has_no_labels_to_choose(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    path = tmp_path / "pieces.csv"
    code, _, err = call("show", "pieces", model, "--out", str(path), "--label", "3")
    assert (code, path.exists()) == (2, False)
    assert "--label is for a drawing: a .csv has the names of all pieces." in err


@pytest.mark.parametrize("suffix", ["svg", "png", "csv"])
def test_a_map_of_pieces_is_written(
    suffix: str, call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    path = tmp_path / f"map.{suffix}"
    code, _, err = call("show", "pieces", model, "--out", str(path))
    assert code == 0
    found = map_of_pieces(piece_tables(load_bundle(model)))
    assert f"{len(found.labels)} pieces; the axes explain " in err
    if suffix == "csv":
        rows = list(csv.reader(path.read_text("utf-8").splitlines()))[1:]
        assert [row[0] for row in rows] == found.labels
        numbers = [[float(x), float(y)] for _, _, x, y in rows]
        assert numbers == pytest.approx(found.points)
    else:
        assert path.read_bytes()[:4] in (b"\x89PNG", b"<?xm")


def test_words_of_a_file_have_a_map(call: Callable[..., Any], tmp_path: Path) -> None:
    words = tmp_path / "words.vec"
    words.write_text("3 2\na 1 0\nb 0 1\nc 1 1\n")
    path = tmp_path / "map.csv"
    code, _, err = call("show", "pieces", str(words), "--out", str(path))
    assert (code, err.startswith("3 pieces")) == (0, True)
    assert [line.split(",")[1] for line in path.read_text().splitlines()[1:]] == ["word"] * 3
    code, _, err = call("show", "pieces", str(words), "--out", "map.txt")
    assert (code, "--out must end with .svg, .png, .pdf, .csv" in err) == (2, True)
