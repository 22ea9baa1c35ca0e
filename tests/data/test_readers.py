"""Pairs stay pairs: lines and rows are matched by number, and a mismatch is never silent."""

import csv
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.data import readers
from heed.data.readers import (
    Pair,
    ParallelFiles,
    read_parallel,
    read_part,
    read_table,
    read_tmx,
    table_columns,
)
from heed.errors import ConfigError, DataError

TROUBLE = ["", " ", "\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\0", "a\rb", "\ufeff"]


def write(path: Path, lines: list[str]) -> Path:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


def texts(pairs: Iterator[Any] | list[Pair]) -> list[tuple[str, str]]:
    return [(pair.src, pair.tgt) for pair in pairs]


def test_line_n_is_paired_with_line_n_whatever_stands_on_either_side(tmp_path: Path) -> None:
    draw = random.Random(7)
    src = [f"L{n} {draw.choice(TROUBLE)}" for n in range(200)]
    tgt = [f"L{n} {draw.choice(TROUBLE)}" for n in range(200)]
    pairs = list(read_parallel(write(tmp_path / "a", src), write(tmp_path / "b", tgt)))
    assert len(pairs) == 200
    for number, pair in enumerate(pairs, start=1):
        assert pair.src.split()[0] == pair.tgt.split()[0] == f"L{number - 1}"
        assert (pair.line, pair.origin) == (number, str(tmp_path / "a"))


@settings(max_examples=25)
@pytest.mark.parametrize("cut_side", ["src", "tgt"])
@given(where=st.integers(10, 189), n_missing=st.integers(1, 3))
def test_unequal_files_are_refused_with_both_counts_and_where_they_part(
    tmp_path_factory: pytest.TempPathFactory, cut_side: str, where: int, n_missing: int
) -> None:
    draw = random.Random(where)
    words = [draw.randint(3, 30) for _ in range(200)]
    sides = {
        "src": ["woord " * n + "x" * draw.randint(0, 5) for n in words],
        "tgt": ["word " * n + "x" * draw.randint(0, 5) for n in words],
    }
    del sides[cut_side][where : where + n_missing]
    n_left = len(sides[cut_side])
    folder = tmp_path_factory.mktemp("unequal")
    src, tgt = (write(folder / side, lines) for side, lines in sides.items())
    counts = f"{n_left} and 200" if cut_side == "src" else f"200 and {n_left}"
    with pytest.raises(DataError, match=f"equally many lines, but have {counts}") as error:
        list(read_parallel(src, tgt))
    near = int(str(error.value).split("near line ")[1].split(":")[0])
    # Neighbors of like length can hide the very line; a few lines are easily looked through.
    assert abs(near - (where + 1)) <= 5


def test_an_empty_file_beside_a_full_one_is_refused(tmp_path: Path) -> None:
    full, nothing = write(tmp_path / "full", ["a", "b"]), write(tmp_path / "empty", [])
    for two in ((full, nothing), (nothing, full)):
        with pytest.raises(DataError, match=r"empty has no lines, but \S*full has 2: they must"):
            list(read_parallel(*two))


def test_tabs_divide_and_quotes_mean_nothing_in_tsv(tmp_path: Path) -> None:
    path = write(tmp_path / "c.tsv", ['"Hi" he said\t"Hallo', "", "a\tb"])
    assert texts(read_table(path)) == [('"Hi" he said', '"Hallo'), ("", ""), ("a", "b")]
    assert [pair.line for pair in read_table(path)] == [1, 2, 3]


def test_quotes_commas_newlines_and_odd_signs_live_in_csv(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_bytes('"Yes, ""you""","Ja,\nSie"\r\na\x0cb\rc,d\u2028\0\n'.encode())
    pairs = list(read_table(path))
    assert texts(pairs) == [('Yes, "you"', "Ja,\nSie"), ("a\x0cb c", "d\u2028\0")]
    assert [pair.line for pair in pairs] == [1, 3]


def test_an_open_quote_is_refused_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path / "c.csv", ["a,b", '"c,d', "e,f"])
    with pytest.raises(
        DataError, match=r"c\.csv line 2: not valid CSV: a quote that opens in this"
    ):
        list(read_table(path))


@pytest.mark.parametrize(
    "row", ['"Hello", "Hallo, du"', 'a 5" disk,eine Diskette', 'Hello,Hallo "du', '"a", "b\nc"']
)
def test_a_quote_inside_an_unquoted_cell_is_refused_with_its_line(tmp_path: Path, row: str) -> None:
    path = write(tmp_path / "c.csv", ["a,b", '"c","d\ne"', row])
    with pytest.raises(DataError) as error:
        list(read_table(path))
    assert str(error.value) == (
        f"{path} line 4: not valid CSV: a quote stands inside a cell that does not begin with one. "
        "Begin quoted cells right after the comma, and write a quote inside them twice "
        '(""); or save the table as .tsv, where quotes mean nothing.'
    )


cells = st.text(st.characters(exclude_characters="\r", exclude_categories=["Cs"]), max_size=8)


@given(rows=st.lists(st.tuples(cells, cells), min_size=1))
def test_what_a_csv_writer_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.mktemp("csv") / "c.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerow(("source", "target"))
        csv.writer(file).writerows(rows)
    expected = [pair if any(pair) else ("", "") for pair in rows]
    assert texts(read_table(path)) == expected


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;"])
def test_a_first_line_that_declares_the_delimiter_is_no_row(tmp_path: Path, first: str) -> None:
    path = write(tmp_path / "c.csv", [first, "a, b;x, y", '"c;d";e'])
    pairs = [(pair.src, pair.tgt, pair.line) for pair in read_table(path)]
    assert pairs == [("a, b", "x, y", 2), ("c;d", "e", 3)]
    path = write(tmp_path / "d.csv", ["sep=|", "a|b", 'c|d "e"'])
    with pytest.raises(DataError, match=r"d\.csv line 3: .* right after the \|, and write"):
        list(read_table(path))
    path = write(tmp_path / "e.csv", ["sep=;,de", "a,b"])
    assert [pair.src for pair in read_table(path)] == ["sep=;", "a"]


def test_a_long_cell_of_a_csv_is_a_cell(tmp_path: Path) -> None:
    limit = csv.field_size_limit()
    path = write(tmp_path / "c.csv", ["a" * 200_000 + ",b", '"c","' + "d\n" * 100_000 + '"'])
    assert texts(read_table(path)) == [("a" * 200_000, "b"), ("c", "d\n" * 100_000)]
    assert csv.field_size_limit() == limit


def test_a_row_of_a_csv_that_never_ends_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "MAX_LINE_BYTES", 1000)
    for open_end in ('"c', '"c","'):
        path = write(tmp_path / "c.csv", ["a,b", open_end, *["d,e"] * 500])
        with pytest.raises(
            DataError,
            match=r"c\.csv line 2: a row must have at most 1000 characters, but has more\. Is a "
            r"quote left open\?",
        ):
            list(read_table(path))


def test_a_pair_with_an_unknown_entity_has_a_fault(tmp_path: Path) -> None:
    memory = tmp_path / "m.tmx"
    memory.write_text(
        '<!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx><tu><tuv xml:lang="en"><seg>a&foo;b</seg></tuv>'
        '<tuv xml:lang="de"><seg>b</seg></tuv></tu></tmx>'
    )
    (pair,) = read_tmx(memory, "en", "de")
    assert (pair.src, pair.tgt, pair.fault) == ("a b", "b", "unknown_entity")


def test_a_header_names_the_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "c.tsv", ["id\tDE\tEN", "1\tja\tyes"])
    assert texts(read_table(path, source_lang="en", target_lang="de")) == [("yes", "ja")]
    path = write(tmp_path / "c.tsv", ["target\tsource", "ja\tyes"])
    assert texts(read_table(path, source_lang="en", target_lang="de")) == [("yes", "ja")]


@pytest.mark.parametrize(
    ("header", "is_one"),
    [("en\tde", True), ("English\tGerman", True), ("EN-us\tde_AT", True), ("it\tGerman", True),
     ("German\tDeutsch", False), ("German\tgerman", False), ("It\tEs", False), ("en\tja!", False)],
)  # fmt: skip
def test_a_first_row_of_two_languages_is_a_header(
    tmp_path: Path, header: str, is_one: bool
) -> None:
    path = write(tmp_path / "c.tsv", [header, "yes\tja"])
    expected = [("yes", "ja")] if is_one else [tuple(header.split("\t")), ("yes", "ja")]
    assert texts(read_table(path)) == expected
    assert texts(read_table(path, columns=("1", "2"))) == expected
    path = write(tmp_path / "d.tsv", [f"id\tnote\t{header}", "1\tso\tyes\tja"])
    by_number = texts(read_table(path, columns=("3", "4")))
    assert by_number == expected


def test_a_header_of_languages_finds_those_that_are_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "c.tsv", ["note\tGerman\tEnglish", "so\tja\tyes"])
    assert texts(read_table(path, source_lang="en-GB", target_lang="de")) == [("yes", "ja")]


def test_columns_named_after_both_languages_go_before_source_and_target(tmp_path: Path) -> None:
    """Elsewhere `source` is the origin of a row."""
    path = write(tmp_path / "c.tsv", ["source\tGerman\ten", "tatoeba\tja\tyes"])
    assert texts(read_table(path, source_lang="en", target_lang="de")) == [("yes", "ja")]
    path = write(tmp_path / "d.tsv", ["source\ttarget\tde", "yes\tja\tso"])
    assert texts(read_table(path, source_lang="en", target_lang="de")) == [("yes", "ja")]


@pytest.mark.parametrize("sign", [";", "\t"])
def test_other_signs_may_part_the_cells_of_a_csv(tmp_path: Path, sign: str) -> None:
    lines = [f"en{sign}de", f"Well, you{sign}Nun, du", f'"a{sign}b, ""c"""{sign}1,5', f"{sign}"]
    path = write(tmp_path / "c.csv", lines)
    pairs = [("Well, you", "Nun, du"), (f'a{sign}b, "c"', "1,5"), ("", "")]
    assert texts(read_table(path)) == pairs
    path = write(tmp_path / "d.csv", [f"Well, X{sign}Nun, Y"] * 3)
    assert texts(read_table(path)) == [("Well, X", "Nun, Y")] * 3
    path = write(tmp_path / "e.csv", [f"a{sign}b", f'a 5" disk{sign}c'])
    name = {";": "semicolon", "\t": "tab"}[sign]
    with pytest.raises(DataError, match=f"Begin quoted cells right after the {name}, and"):
        list(read_table(path))


def test_without_header_the_columns_with_letters_are_taken(tmp_path: Path) -> None:
    tatoeba = write(tmp_path / "c.tsv", ["1276\tTry!\t5350\tVersuch es!", "1277\t1\t5351\t1."])
    assert texts(read_table(tatoeba)) == [("Try!", "Versuch es!"), ("1", "1.")]
    anki = write(tmp_path / "c.tsv", ["Go.\tGeh.\tCC-BY 2.0 (France)", "Hi.\tHallo!\tCC-BY"])
    assert texts(read_table(anki)) == [("Go.", "Geh."), ("Hi.", "Hallo!")]


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (["news-1\tHi.\tHallo.", "news-2\tYes.\tJa."], (1, 2)),
        (["news-1\tHi.\tHallo."], (1, 2)),
        (["1\ten\tHi.\tde\tHallo.", "2\ten\tYes.\tde\tJa."], (2, 4)),
        (["Hi.\tHallo.\t0.98\thttps://x.org/1", "Yes.\tJa.\t1e-05\thttps://x.org/2"], (0, 1)),
        (["纽约\t1\tNew York", "你好\t2\tHello"], (0, 2)),
        (["no-1\tno-2", "no-3\tno-4"], (0, 1)),
        (["1\t2", "3\t4"], (0, 1)),
    ],
)
def test_columns_of_labels_are_not_taken_for_text(
    tmp_path: Path, rows: list[str], columns: tuple[int, int]
) -> None:
    path = write(tmp_path / "c.tsv", rows)
    assert texts(read_table(path)) == [
        tuple(row.split("\t")[column] for column in columns) for row in rows
    ]


@pytest.mark.parametrize("n_text", [1, 3])
def test_a_table_whose_columns_are_unclear_is_refused_with_the_way_out(
    tmp_path: Path, n_text: int
) -> None:
    row = {1: "1\t2\tHi.", 3: "Hi.\tHallo.\tSalut."}[n_text]
    path = write(tmp_path / "c.tsv", [row])
    words = rf"c\.tsv: which two of its 3 columns hold the sentences\? {n_text} may\. Say which, "
    with pytest.raises(
        DataError, match=words + r"for example: --columns 1,2 .* 3 \"(Hi|Salut)\.\""
    ):
        list(read_table(path))
    assert texts(read_table(path, columns=("3", "1"))) == [(row.split("\t")[2], row.split("\t")[0])]


def test_the_example_is_of_columns_that_hold_text(tmp_path: Path) -> None:
    for header, columns in (("id\tEnglish (US)\tnote\tde-AT", "2,4"), ("id\ta\tb\tc", "2,3")):
        path = write(tmp_path / "c.tsv", [header, *["1\tHi there.\tso far\tHallo da."] * 9])
        with pytest.raises(DataError, match=f"for example: --columns {columns} "):
            list(read_table(path))
    path = write(tmp_path / "c.tsv", ["Note\tEnglish (US)\tGerman (Germany)", "so\tyes\tja"])
    assert texts(read_table(path, source_lang="de", target_lang="en")) == [("ja", "yes")]


def test_columns_can_be_named_by_the_header(tmp_path: Path) -> None:
    path = write(tmp_path / "c.tsv", ["id\tEnglish\tnote\tGerman", "x\tyes\tso\tja"])
    assert texts(read_table(path, columns=("German", "English"))) == [("ja", "yes")]
    path = write(tmp_path / "c.tsv", ["note\ten\tde", "so\tyes\tja"])
    by_number = read_table(path, source_lang="en", target_lang="de", columns=("1", "3"))
    assert texts(by_number) == [("so", "ja")]  # the header is seen to be one
    for wrong in ("4", "0", "fr"):
        with pytest.raises(ConfigError, match=rf"from 1 to 3 or names .* but one is '{wrong}'"):
            list(read_table(path, columns=("1", wrong)))


@pytest.mark.parametrize(
    ("languages", "needed"),
    [
        (("fr", "it"), "the source must be fr and the target must be it"),
        (("de", "it"), "the source must be de and the target must be it"),
        (("hsb", "de"), "the source must be hsb and the target must be de"),
        (("de", ""), "the source must be de"),
    ],
)
def test_a_header_of_other_languages_is_refused(
    tmp_path: Path, languages: tuple[str, str], needed: str
) -> None:
    path = write(tmp_path / "c.csv", ["id,en,de", "7,yes,ja", "8,no way,nein"])
    with pytest.raises(DataError) as error:
        list(read_table(path, source_lang=languages[0], target_lang=languages[1]))
    assert str(error.value) == (
        f"{path}: {needed}, but its first line names the columns en and de. Set --source-lang and "
        "--target-lang to languages that it names, or choose its columns, for example: "
        "--columns 2,3"
    )


@pytest.mark.parametrize("languages", [("", ""), ("en", "de"), ("en-GB", "de_AT"), ("", "de")])
@pytest.mark.parametrize("header", ["en,de", "en-US,de-DE", "English,German"])
def test_a_header_of_the_same_languages_fits(
    tmp_path: Path, languages: tuple[str, str], header: str
) -> None:
    path = write(tmp_path / "c.csv", [header, "yes,ja"])
    found = read_table(path, source_lang=languages[0], target_lang=languages[1])
    assert texts(found) == [("yes", "ja")]
    asked = read_table(path, source_lang="fr", target_lang="it", columns=("1", "2"))
    assert texts(asked) == [("yes", "ja")]


def test_the_columns_taken_can_be_told(tmp_path: Path) -> None:
    path = str(write(tmp_path / "c.tsv", ["1\tde\ten", "1\tja\tyes"]))
    named = ParallelFiles(files=(path,), source_lang="en", target_lang="de")
    assert str(table_columns(named)) == "source = column 3 (en), target = column 2 (de)"
    path = str(write(tmp_path / "d.tsv", ["A very long sentence that goes on\tHallo"]))
    assert str(table_columns(ParallelFiles(files=(path,)))) == (
        'source = column 1 ("A very long sentence that goes…"), target = column 2 ("Hallo")'
    )
    assert table_columns(ParallelFiles(files=(path, path))) is None
    assert table_columns(ParallelFiles(files=(str(write(tmp_path / "e.tsv", [])),))) is None


@pytest.mark.parametrize("asked", [(), ("2", "3")])
def test_a_first_line_that_may_be_a_header_is_told(tmp_path: Path, asked: tuple[str, ...]) -> None:
    rows = [f"{n}\tTwo dogs run in the park.\tZwei Hunde rennen im Park." for n in range(5)]
    path = str(write(tmp_path / "c.tsv", ["id\tText en\tText_de", *rows]))
    part = ParallelFiles(files=(path,), columns=asked)
    told = str(table_columns(part))
    assert told.startswith('source = column 2 ("Text en"), target = column 3 ("Text_de"); ')
    assert told.endswith("If it names the columns, add --columns 'Text en,Text_de'")
    assert texts(read_part(part))[0] == ("Text en", "Text_de")
    named = replace(part, columns=("Text en", "Text_de"))
    assert str(table_columns(named)).endswith("(Text_de)")
    assert len(texts(read_part(named))) == 5


@pytest.mark.parametrize(
    "first",
    [
        "0\tTwo dogs run in a park.\tZwei Hunde rennen.",
        "0\tYes.\tJa.",
        "id\tsource\ttarget",
        "0\tTwo dogs run and one man sleeps\tZwei",
    ],
)
def test_a_first_line_that_is_a_pair_or_a_header_is_not_doubted(tmp_path: Path, first: str) -> None:
    rows = [f"{n}\tTwo dogs run in the park.\tZwei Hunde rennen im Park." for n in range(5)]
    path = str(write(tmp_path / "c.tsv", [first, *rows]))
    part = ParallelFiles(files=(path,), columns=("2", "3"))
    assert "--columns" not in str(table_columns(part))


def test_empty_lines_before_the_first_row_are_skipped(tmp_path: Path) -> None:
    path = write(tmp_path / "c.tsv", ["", "", "en\tde", "a\tb"])
    assert [(pair.src, pair.tgt, pair.line) for pair in read_table(path)] == [("a", "b", 4)]
    assert texts(read_table(write(tmp_path / "d.csv", ["", "en,de", "a,b"]))) == [("a", "b")]
    assert texts(read_table(write(tmp_path / "e.tsv", ["", ""]))) == []


def test_a_table_that_begins_with_very_many_empty_lines_is_refused_without_reading_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were all read, twice, before anything was reported."""
    monkeypatch.setattr(readers, "MOST_EMPTY", 3)
    assert texts(read_table(write(tmp_path / "a.tsv", ["", "", "", "a\tb"]))) == [("a", "b")]
    path = write(tmp_path / "b.tsv", ["", "\t", "", "", "a\tb", "a\tb\tc"])
    words = r"b\.tsv begins with more than 3 empty lines\. Remove them, or give another file\."
    with pytest.raises(DataError, match=words):
        list(read_table(path))
    with pytest.raises(DataError, match=words):
        table_columns(ParallelFiles(files=(str(path),)))


def test_a_row_of_other_width_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "c.tsv", ["a\tb", "c\td\te"])
    with pytest.raises(DataError, match=r"line 2: must have 2 columns like the first .* has 3"):
        list(read_table(path))
    path = write(tmp_path / "c.tsv", ["just one"])
    with pytest.raises(DataError, match=r"line 1: must have a column for each of two .* has 1"):
        list(read_table(path))


def test_a_part_is_read_by_the_name_of_its_file(tmp_path: Path) -> None:
    memory = tmp_path / "m.tmx"
    memory.write_text(
        "<tmx><body><tu><tuv xml:lang='en'><seg>a</seg></tuv>"
        "<tuv xml:lang='de'><seg>b</seg></tuv></tu></body></tmx>"
    )
    tsv = str(write(tmp_path / "c.TSV", ["a\tb"]))
    csv = str(write(tmp_path / "c.csv", ["a,b"]))
    plain = str(write(tmp_path / "a", ["a"])), str(write(tmp_path / "b", ["b"]))
    for files in ((str(memory),), (tsv,), (csv,), plain):
        assert texts(read_part(ParallelFiles(files=files, source_lang="en", target_lang="de"))) == [
            ("a", "b")
        ]
    assert list(read_tmx(memory, "en", "de")) == [Pair("a", "b", 1, str(memory), "en", "de")]


def test_plain_text_alone_and_a_memory_without_languages_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"train\.en must end in \.tsv, \.csv, \.tmx, \.xliff or \.po.* --tgt"
    ):
        read_part(ParallelFiles(files=("train.en",)))
    with pytest.raises(ConfigError, match=r"m\.tmx may hold many languages: .* --target-lang\.$"):
        read_part(ParallelFiles(files=("m.tmx",), source_lang="en"))


@pytest.mark.parametrize("side", ["source_lang", "target_lang"])
def test_a_part_of_a_corpus_has_a_language_code_or_none(side: str) -> None:
    assert ParallelFiles(files=("a.tsv",)).source_lang == ""
    with pytest.raises(ConfigError, match=r"a language code, .* but is 'a\\tb'"):
        ParallelFiles(files=("a.tsv",), **{side: "a\tb"})
