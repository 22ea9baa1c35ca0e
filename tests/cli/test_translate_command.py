import gzip
import json
import lzma
import math
import os
import pty
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.cli.main import run

ODD_LINES = [
    "A man is riding a bike.",
    "",
    "   ",
    "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg",
    "nul \x00 and bell \x07",
    "lone \r carriage return",
    "👩‍👩‍👧‍👦 👍🏽",
    "שלום עולם \u202eRTL\u202c",
    "\u00a0\u00a0",
    "\ufdd0\uffff\U000e0001",
    "e" + "\u0301" * 200,
    "</s> <pad> <unk> ▁ <2de>",
    "tab\tseparated ||| fields",
    "last",
]


def test_every_odd_line_gives_one_line_in_order(heed: Callable[..., Any], model: str) -> None:
    data = "".join(f"{line}\n" for line in ODD_LINES).encode()
    done = heed("translate", "-m", model, "-b", "1", stdin=data)
    assert done.returncode == 0, done.stderr.decode()
    lines = done.stdout.decode().split("\n")
    assert lines.pop() == ""
    assert len(lines) == len(ODD_LINES)
    assert not any(set(line) & set("\r\x00\u2028\u2029\x85\x0b\x0c\x1c") for line in lines)
    for source, line in zip(ODD_LINES, lines, strict=True):
        if not source.strip():
            assert line == ""


@settings(max_examples=15)
@given(
    texts=st.lists(st.text(max_size=12).filter(lambda t: "\n" not in t), max_size=8),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_as_many_lines_come_out_as_went_in(model: str, texts: list[str], end: str) -> None:
    data = "".join(text + end for text in texts).encode("utf-8", "replace")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in"), Path(folder, "out")
        source.write_bytes(data)
        arguments = ["translate", "-m", model, "-b", "1", "--max-length", "3", "-q"]
        assert run([*arguments, "-i", str(source), "-o", str(target)]) == 0
        assert target.read_bytes().count(b"\n") == data.count(b"\n")


def test_verbose_shows_the_probability_of_each_token_beside_the_output(
    call: Callable[..., Any], model: str
) -> None:
    given = ("translate", "-m", model, "-b", "1", "--max-length", "4")
    code, out, error = call(*given, "--verbose", stdin=b"A man.\n\n")
    assert (code, out) == (0, call(*given, stdin=b"A man.\n\n")[1])
    _, scored, _ = call(*given, "--format", "jsonl", "--word-scores", stdin=b"A man.\n")
    result = json.loads(scored)
    lines = [line.split() for line in error.splitlines() if not line.startswith("heed:")]
    assert [line[1] for line in lines] == result["tokens"]
    for line, log_prob in zip(lines, result["token_scores"], strict=False):
        assert float(line[0]) == pytest.approx(math.exp(log_prob), abs=1e-3)


def test_an_empty_file_gives_no_lines(call: Callable[..., Any], model: str) -> None:
    assert call("translate", "-m", model, stdin=b"") == (0, "", "")


def test_a_very_long_line_is_split_reported_and_harms_no_neighbor(
    call: Callable[..., Any], model: str
) -> None:
    data = b"A man\n" + b"word " * 1000 + b"\nTwo dogs\n"
    code, out, err = call("translate", "-m", model, "-b", "1", "--format", "jsonl", stdin=data)
    records = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [record["status"] == "split" for record in records] == [False, True, False]
    assert "1 line was too long for the model and translated in parts." in err
    assert all({doubt["kind"] for doubt in each["doubts"]} >= {"max_length"} for each in records)
    assert "3 lines were cut off at the longest length allowed (see --max-length)." in err
    _, alone, _ = call("translate", "-m", model, "-b", "1", stdin=b"A man\nTwo dogs\n")
    assert alone.split("\n")[:2] == [records[0]["text"], records[2]["text"]]
    assert call("translate", "-m", model, "-b", "1", "-q", stdin=data)[2] == ""


def test_invalid_bytes_stop_with_the_line_number_or_are_replaced(
    call: Callable[..., Any], model: str
) -> None:
    data = b"good\nbad \xff\xfe\nlast\n"
    assert call("translate", "-m", model, stdin=data)[::2] == (
        1,
        "heed: standard input line 2: must be UTF-8, but byte 5 of the line is 0xFF. Convert the "
        "file: iconv -f ENCODING -t utf-8, where ENCODING is what it was saved in, such as cp1252, "
        "gb18030 or shift_jis. Or pass --encoding-errors replace.\n",
    )
    flags = ["--encoding-errors=replace", "--format=jsonl"]
    code, out, err = call("translate", "-m", model, *flags, stdin=data)
    assert code == 0
    statuses = [json.loads(line)["status"] for line in out.splitlines()]
    assert statuses[1] == "replaced_bytes"
    assert len(statuses) == 3
    assert "1 line was not valid UTF-8" in err


def test_text_may_stand_on_the_command_line(call: Callable[..., Any], model: str) -> None:
    code, out, _ = call("translate", "-m", model, "A man", "Two dogs\nin two lines")
    assert code == 0
    assert out.count("\n") == 3


def test_underscores_and_dashes_are_the_same_in_flags(call: Callable[..., Any], model: str) -> None:
    dashed = call("translate", "-m", model, "A man", "--beam-size", "1", "--max-length", "4")
    assert call("translate", "-m", model, "A man", "--beam_size=1", "--max_length", "4") == dashed
    assert call("translate", "-m", model, "A man", "--beam", "1", "--max-length", "4") == dashed


def test_flags_may_come_from_the_environment(
    call: Callable[..., Any], model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_flag = call("translate", "-m", model, "-b1", "--max-length=3", stdin=b"A man\n")
    monkeypatch.setenv("HEED_MODEL", model)
    monkeypatch.setenv("HEED_TRANSLATE_BEAM_SIZE", "1")
    monkeypatch.setenv("HEED_TRANSLATE_MAX_LENGTH", "3")
    assert by_flag[0] == 0
    assert call("translate", stdin=b"A man\n") == by_flag
    assert call("translate", "--max-length=2", stdin=b"A man\n") != by_flag


@pytest.mark.parametrize("name", ["text", "tsv", "moses", "jsonl", "fairseq"])
def test_every_format_is_written(call: Callable[..., Any], model: str, name: str) -> None:
    code, out, _ = call("translate", "-m", model, "--format", name, "A man", "")
    assert code == 0
    assert out.count("\n") == (8 if name == "fairseq" else 2)


def test_details_choose_a_format_that_holds_them(call: Callable[..., Any], model: str) -> None:
    _, out, _ = call("translate", "-m", model, "--with-scores", "A man")
    assert len(out.rstrip("\n").split("\t")) == 2
    _, out, _ = call("translate", "-m", model, "--n-best", "3", "A man")
    assert [line.split(" ||| ")[0] for line in out.splitlines()] == ["0", "0", "0"]
    _, out, _ = call("translate", "-m", model, "--alignment", "hard", "A man")
    assert all("-" in link for link in out.split("\t")[1].split())
    code, _, err = call("translate", "-m", model, "--format", "text", "--n-best", "2", "A man")
    assert code == 2
    assert "--format text holds one translation a line" in err


def test_a_prefix_file_forces_each_beginning(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    prefixes = tmp_path / "prefixes"
    prefixes.write_text("Ein Mann\n\n", encoding="utf-8")
    code, out, _ = call("translate", "-m", model, "--prefix", str(prefixes), "A man", "Two")
    assert code == 0
    assert out.startswith("Ein Mann")
    prefixes.write_text("Ein\n", encoding="utf-8")
    code, _, err = call("translate", "-m", model, "--prefix", str(prefixes), "A man", "Two")
    assert code == 1
    assert "one prefix for each line, but line 2 has none" in err
    prefixes.write_text("Ein\n\nZwei\n", encoding="utf-8")
    code, _, err = call("translate", "-m", model, "--prefix", str(prefixes), "A man", "Two")
    assert code == 1
    assert "one prefix for each line, but there are more than the 2 lines" in err


def test_sampling_is_decided_by_its_seed_whatever_the_buffer(
    call: Callable[..., Any], model: str
) -> None:
    flags = ["translate", "-m", model, "--temperature", "2", "--seed", "3", "A man", "Two", "New"]
    code, out, _ = call(*flags)
    assert code == 0
    assert call(*flags, "--buffer-size", "1")[1] == out
    assert call(*flags, "--batch-size", "2", "--batch-type", "sentences")[1] == out
    assert call(*flags, "--batch-size", "50")[1] == out
    assert call(*flags, "--seed", "4")[1] != out
    code, out, err = call(*flags, "--beam-size", "5")
    assert (code, out) == (2, "")
    assert "--sample does not use a beam: leave out --beam-size." in err
    code, out, err = call("translate", "-m", model, "--seed", "3", "A man")
    assert (code, out) == (2, "")
    assert "--seed changes how tokens are drawn: give --sample too." in err


def test_files_and_standard_streams_give_the_same(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_bytes(b"A man\r\nTwo dogs\r\n")
    assert call("translate", "-m", model, "-q", "-i", str(source), "-o", str(target)) == (0, "", "")
    piped = call("translate", "-m", model, "-i", "-", "-o", "-", stdin=b"A man\nTwo dogs\n")
    assert target.read_bytes().decode() == piped[1]


def packed(data: bytes, suffix: str) -> bytes:
    if suffix == ".zst":
        return pytest.importorskip("zstandard").compress(data)
    return {".gz": gzip.compress, ".xz": lzma.compress}[suffix](data)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_compressed_files_are_read_as_what_they_hold(
    call: Callable[..., Any], model: str, tmp_path: Path, suffix: str
) -> None:
    plain = call("translate", "-m", model, stdin=b"A man\nTwo dogs\n")
    path, prefixes = tmp_path / f"in{suffix}", tmp_path / f"prefixes{suffix}"
    path.write_bytes(packed(b"A man\nTwo dogs\n", suffix))
    assert call("translate", "-m", model, "-i", str(path)) == plain
    prefixes.write_bytes(packed(b"Ein Mann\n\n", suffix))
    _, out, _ = call("translate", "-m", model, "-i", str(path), "--prefix", str(prefixes))
    assert out.startswith("Ein Mann")
    path.write_bytes(path.read_bytes()[:-6])
    code, _, err = call("translate", "-m", model, "-i", str(path))
    assert code == 1
    assert f"heed: {path} is damaged after line" in err
    assert err.endswith("Copy or download it again.\n")


def test_json_lines_have_wishes_and_names_of_their_own(
    call: Callable[..., Any], model: str
) -> None:
    lines = [
        '"A man"',
        '{"text": "A man", "id": "x-1", "prefix": "Ein Mann", "target_lang": "de"}',
        '{"id": null, "text": "Two\\ndogs", "prefix": null, "score": 3}',
        '{"text": ""}',
    ]
    flags = ["translate", "-m", model, "--json-input"]
    code, out, _ = call(*flags, "--format", "jsonl", stdin="\n".join(lines).encode())
    records = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [record["line"] for record in records] == [1, 2, 3, 4]
    assert [record.get("id", "none") for record in records] == ["none", "x-1", None, "none"]
    assert records[1]["text"].startswith("Ein Mann")
    assert records[3]["status"] == "empty"
    _, plain, _ = call("translate", "-m", model, "A man", "Two dogs")
    assert [records[0]["text"], records[2]["text"]] == plain.splitlines()
    # One line at a time or all at once, from a stream or as arguments: the same.
    texts = [record["text"] for record in records]
    for more in (["--buffer-size", "1"], lines):
        assert call(*flags, *more, stdin="\n".join(lines).encode())[1].splitlines() == texts


def test_an_id_that_is_half_a_character_stays(call: Callable[..., Any], model: str) -> None:
    flags = ["translate", "-m", model, "--json-input", "--format=jsonl"]
    code, out, _ = call(*flags, stdin=b'{"text": "A man", "id": "a\\udfffb"}\n')
    assert code == 0 and json.loads(out)["id"] == "a\udfffb"


def test_what_jsonl_writes_can_be_translated_on(call: Callable[..., Any], model: str) -> None:
    flags = ["translate", "-m", model, "--json-input", "--format=jsonl"]
    first = call(*flags, '{"text": "A", "id": 7}')
    code, out, err = call(*flags, stdin=first[1].encode())
    assert code == 0, err
    assert json.loads(out)["id"] == 7


@pytest.mark.parametrize("flag", ["--prefix", "--protect-terms"])
def test_standard_input_is_read_once(call: Callable[..., Any], model: str, flag: str) -> None:
    """Else the terms would be all of it, and no line would be translated."""
    code, out, err = call("translate", "-m", model, flag, "-", stdin=b"A man\n")
    assert (code, out) == (2, "")
    assert "tandard input" in err and "Name a file" in err


def test_a_json_line_that_is_wrong_is_named(call: Callable[..., Any], model: str) -> None:
    code, _, err = call("translate", "-m", model, "--json-input", stdin=b'"A"\n{"text": "A"\n')
    assert code == 1
    assert err == (
        "heed: standard input line 2 is not JSON (Expecting ',' delimiter, at character 13). "
        'Each line must be a string, or an object such as {"text": "…", "id": 1}.\n'
    )
    code, _, err = call("translate", "-m", model, "--json-input", '{"text": "A"}', '["A"]')
    assert code == 1
    assert err == 'heed: TEXT line 2 must be a JSON string or object, but is ["A"].\n'
    wrong = b'"A"\n{"text": "A", "target_lang": "fr"}\n'
    code, _, err = call("translate", "-m", model, "--json-input", stdin=wrong)
    assert code == 1
    assert err == "heed: Line 2: This model translates into de only, not into fr.\n"


def test_alternatives_are_written_as_n_best_lists_are(call: Callable[..., Any], model: str) -> None:
    # Wide, since this untrained model writes broken bytes that read the same.
    flags = ["translate", "-m", model, "-b", "16", "--alternatives", "2"]
    code, out, _ = call(*flags, "A man", "Two dogs", "")
    rows = [row.split(" ||| ") for row in out.splitlines()]
    assert code == 0
    assert [row[0] for row in rows] == ["0", "0", "0", "1", "1", "1", "2"]
    assert len({row[1] for row in rows[:3]}) == 3
    _, out, _ = call(*flags, "--format", "jsonl", "A man")
    record = json.loads(out)
    texts = [record["text"], *(other["text"] for other in record["alternatives"])]
    assert texts == [row[1] for row in rows[:3]]
    _, plain, _ = call("translate", "-m", model, "-b", "16", "A man")
    assert texts[0] == plain.rstrip("\n")
    assert call(*flags[:-1], "0", "A man")[1] == plain


def test_numbers_of_sixteen_bits_can_be_asked_for(call: Callable[..., Any], model: str) -> None:
    _, exact, _ = call("translate", "-m", model, "--with-scores", "A man")
    code, rounded, err = call(
        "translate", "-m", model, "--with-scores", "--dtype=bfloat16", "A man"
    )
    assert code == 0, err
    assert rounded != exact


def test_the_offset_bounds_what_a_short_line_may_become(
    call: Callable[..., Any], model: str
) -> None:
    flags = ["translate", "-m", model, "--max-length-factor", "0", "--format", "jsonl", "A man"]
    for offset in ("1", "3"):
        _, out, _ = call(*flags, "--word-scores", "--max-length-offset", offset)
        record = json.loads(out)
        assert len(record["token_scores"]) <= int(offset)


@pytest.mark.slow
def test_a_reader_that_stops_early_is_no_error(model: Any, heed: Any) -> None:
    done = subprocess.run(
        f"yes 'A man' | head -n 3000 | {sys.executable} -m heed translate -m {model} -b1 "
        "--max-length 2 --buffer-size 50 | head -n 1; echo ${PIPESTATUS[2]}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=100,
    )
    assert done.stderr == b""
    assert done.stdout.splitlines()[-1] in (b"141", b"0")


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (["-i", "in", "text"], 2, "Give either TEXT or --input, not both."),
        (
            ["-b", "0", "x"],
            2,
            "--beam-size must be a whole number from 1 to 1024, but is 0. Use 1 for greedy",
        ),
        (
            ["--length-penalty", "inf", "x"],
            2,
            "--length-penalty must be a number from 0 to 10, but is",
        ),
        (
            ["--length-penalty", "nan", "x"],
            2,
            "--length-penalty must be a number from 0 to 10, but is",
        ),
        (["--threads", "0", "x"], 2, "'--threads': 0 is not in the range 1<=x<=1024."),
        (
            ["--n-best", "3", "--alternatives", "2", "x"],
            2,
            "Give either --alternatives or --n-best",
        ),
        (
            ["--alternatives", "2", "--format", "text", "x"],
            2,
            "--format text holds one translation",
        ),
        (["--alternatives", "-1", "x"], 2, "-1 is not in the range 0<=x<=1023"),
        (["--prefix", "-"], 2, "The lines to translate and their prefixes cannot both be standard"),
        (["--json-input", "--prefix", "p", '"x"'], 2, 'give each "prefix" in its line instead of'),
        (["--dtype", "int4", "x"], 2, "'int4' is not one of 'auto', 'float32', 'int8', 'bfloat"),
        (["--device=cpu", "--dtype=float16", "x"], 1, "dtype float16 needs a GPU; use float32 or"),
        (["--max-length-offset", "-1", "x"], 2, "--max-length-offset must be a number from 0 to"),
        (["-t", "fr", "x"], 1, "This model translates into de only, not into fr."),
        (["-s", "fr", "x"], 1, "translates from en, not from fr."),
        (["--device", "tpu", "x"], 1, "device must be auto, cpu, cuda or cuda:N, but is 'tpu'."),
        (["-i", "nowhere"], 1, "nowhere does not exist."),
        (["-o", "/nowhere/out", "x"], 1, "/nowhere/out cannot be written: No such file"),
        (["--top-p", "2", "x"], 2, "--top-p must be a number from 0 to 1, but is 2.0"),
        (["--n-best", "3", "-b", "2", "x"], 2, "--n-best must be at most --beam-size (2), but is"),
        (
            ["--n-best", "2000", "x"],
            2,
            "--n-best must be a whole number from 1 to 1024, but is 2000",
        ),
        (["--batch-type", "tokens", "x"], 2, "--batch-type is the unit of --batch-size: give that"),
    ],
)
def test_wrong_requests_are_told_in_one_line(
    call: Callable[..., Any], model: str, flags: list[str], code: int, words: str
) -> None:
    found, out, err = call("translate", "-m", model, *flags)
    assert found == code
    assert words in err
    assert err.startswith("heed: ")
    assert err.count("\n") == 1
    assert out == ""


def test_a_wrong_flag_leaves_an_older_output_alone(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    (tmp_path / "out").write_bytes(b"older")
    assert call("translate", "-m", model, "-b", "0", "-o", str(tmp_path / "out"), "x")[0] == 2
    assert (tmp_path / "out").read_bytes() == b"older"


def test_a_wrong_device_is_named_for_every_kind_of_model(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    small = str(tmp_path / "small")
    assert call("quantize", model, "--out", small)[0] == 0
    for folder in (model, small):
        code, _, err = call("translate", "-m", folder, "--device", "banana", "x")
        assert code == 1
        assert err == "heed: device must be auto, cpu, cuda or cuda:N, but is 'banana'.\n"


def test_a_file_in_the_place_of_a_model_is_refused_for_what_it_is(
    call: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "model.pt").write_bytes(b"x")
    (tmp_path / "text").write_bytes(b"x")
    code, _, err = call("translate", "-m", str(tmp_path / "model.pt"), "x")
    assert code == 1
    assert "model.pt was not opened: files of this kind can run a program" in err
    code, _, err = call("translate", "-m", str(tmp_path / "text"), "x")
    assert code == 1
    assert err.endswith("text is a file; a model is a folder with config.json.\n")


def test_a_bad_byte_in_a_file_of_prefixes_names_no_flag_that_would_not_help(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    (tmp_path / "prefixes").write_bytes(b"\xff\n")
    code, _, err = call("translate", "-m", model, "--prefix", str(tmp_path / "prefixes"), "x")
    assert code == 1
    assert "prefixes line 1: must be UTF-8, but byte 1 of the line is 0xFF. Convert the" in err
    assert "--encoding-errors" not in err


def test_a_number_that_json_cannot_write_is_refused(call: Callable[..., Any], model: str) -> None:
    flags = ["translate", "-m", model, "--json-input", "--format", "jsonl"]
    code, out, err = call(*flags, stdin=b'{"text": "A", "id": 1e999}\n')
    assert (code, out) == (1, "")
    assert "standard input line 1 is not JSON (1e999 is too large for a number)." in err


def test_a_bad_byte_does_not_end_a_session_of_somebody_who_types(model: str) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "heed", "translate", "-m", model, "-b1", "--format", "jsonl"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    os.close(theirs)
    for typed, status in ((b"A \xff man\n", "replaced_bytes"), (b"\n", "empty")):
        os.write(ours, typed)
        assert json.loads(process.stdout.readline())["status"] == status
    os.write(ours, b"\x04")  # Ctrl-D, once
    _, err = process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == 0
    assert b"Type a line and press Enter; Ctrl-D ends." in err
    assert b"1 line was not valid UTF-8" in err


@pytest.mark.parametrize(
    "files",
    [
        ["-o", "again", "-i", "x.txt"],
        ["-o", "again", "--prefix", "x.txt", "-i", "y.txt"],
        ["-o", "M", "-i", "y.txt"],
    ],
)
def test_an_output_that_is_read_is_refused_and_nothing_is_emptied(
    call: Callable[..., Any],
    model: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("x.txt", "y.txt"):
        (tmp_path / name).write_text("A man.\n")
    (tmp_path / "again").hardlink_to("x.txt")
    weights = Path(model) / "model.safetensors"
    before = weights.read_bytes()
    files = [str(weights) if each == "M" else each for each in files]
    code, out, err = call("translate", "-m", model, *files)
    assert (code, out) == (2, "")
    assert "are the same file: it would be overwritten while it is read. Write to another" in err
    assert (tmp_path / "x.txt").read_text() == "A man.\n"
    assert weights.read_bytes() == before


def test_an_output_that_is_redirected_to_the_input_is_refused(
    heed: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.txt"
    path.write_text("A man.\n")
    with path.open("rb") as source:
        done = subprocess.run(
            [sys.executable, "-m", "heed", "translate", "-m", model, "-o", str(path)],
            stdin=source,
            capture_output=True,
        )
    assert done.returncode == 2
    assert b"x.txt and standard input are the same file" in done.stderr
    assert path.read_text() == "A man.\n"


def test_an_older_output_outlives_an_input_that_cannot_be_read(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    (tmp_path / "bad").write_bytes(b"\xff\nA man.\n")
    (tmp_path / "out").write_text("old\n")
    code, _, err = call("translate", "-m", model, "-i", f"{tmp_path}/bad", "-o", f"{tmp_path}/out")
    assert code == 1
    assert "line 1: must be UTF-8" in err
    assert (tmp_path / "out").read_text() == "old\n"
