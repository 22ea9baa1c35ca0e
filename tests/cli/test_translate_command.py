import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

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


def test_every_odd_line_gives_one_line_in_order(heed, model):
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
def test_as_many_lines_come_out_as_went_in(model, texts, end):
    data = "".join(text + end for text in texts).encode("utf-8", "replace")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in"), Path(folder, "out")
        source.write_bytes(data)
        arguments = ["translate", "-m", model, "-b", "1", "--max-length", "3", "-q"]
        assert run([*arguments, "-i", str(source), "-o", str(target)]) == 0
        assert target.read_bytes().count(b"\n") == data.count(b"\n")


def test_an_empty_file_gives_no_lines(call, model):
    assert call("translate", "-m", model, stdin=b"") == (0, "", "")


def test_a_very_long_line_is_split_reported_and_harms_no_neighbor(call, model):
    data = b"A man\n" + b"word " * 1000 + b"\nTwo dogs\n"
    code, out, err = call("translate", "-m", model, "-b", "1", "--format", "jsonl", stdin=data)
    records = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [record["status"] == "split" for record in records] == [False, True, False]
    assert "1 line was too long for the model and translated in parts." in err
    _, alone, _ = call("translate", "-m", model, "-b", "1", stdin=b"A man\nTwo dogs\n")
    assert alone.split("\n")[:2] == [records[0]["text"], records[2]["text"]]
    assert call("translate", "-m", model, "-b", "1", "-q", stdin=data)[2] == ""


def test_invalid_bytes_stop_with_the_line_number_or_are_replaced(call, model):
    data = b"good\nbad \xff\xfe\nlast\n"
    assert call("translate", "-m", model, stdin=data)[::2] == (
        1,
        "heed: standard input line 2 is not valid UTF-8 (byte 5). Convert the file, or pass "
        "--encoding-errors replace.\n",
    )
    flags = ["--encoding-errors=replace", "--format=jsonl"]
    code, out, err = call("translate", "-m", model, *flags, stdin=data)
    assert code == 0
    statuses = [json.loads(line)["status"] for line in out.splitlines()]
    assert statuses[1] == "replaced_bytes"
    assert len(statuses) == 3
    assert "1 line was not valid UTF-8" in err


def test_text_may_stand_on_the_command_line(call, model):
    code, out, _ = call("translate", "-m", model, "A man", "Two dogs\nin two lines")
    assert code == 0
    assert out.count("\n") == 3


def test_underscores_and_dashes_are_the_same_in_flags(call, model):
    dashed = call("translate", "-m", model, "A man", "--beam-size", "1", "--max-length", "4")
    assert call("translate", "-m", model, "A man", "--beam_size=1", "--max_length", "4") == dashed
    assert call("translate", "-m", model, "A man", "--beam", "1", "--max-length", "4") == dashed


def test_flags_may_come_from_the_environment(call, model, monkeypatch):
    by_flag = call("translate", "-m", model, "-b1", "--max-length=3", stdin=b"A man\n")
    monkeypatch.setenv("HEED_MODEL", model)
    monkeypatch.setenv("HEED_TRANSLATE_BEAM_SIZE", "1")
    monkeypatch.setenv("HEED_TRANSLATE_MAX_LENGTH", "3")
    assert by_flag[0] == 0
    assert call("translate", stdin=b"A man\n") == by_flag
    assert call("translate", "--max-length=2", stdin=b"A man\n") != by_flag


@pytest.mark.parametrize("name", ["text", "tsv", "moses", "jsonl", "fairseq"])
def test_every_format_is_written(call, model, name):
    code, out, _ = call("translate", "-m", model, "--format", name, "A man", "")
    assert code == 0
    assert out.count("\n") == (8 if name == "fairseq" else 2)


def test_details_choose_a_format_that_holds_them(call, model):
    _, out, _ = call("translate", "-m", model, "--with-scores", "A man")
    assert len(out.rstrip("\n").split("\t")) == 2
    _, out, _ = call("translate", "-m", model, "--n-best", "3", "A man")
    assert [line.split(" ||| ")[0] for line in out.splitlines()] == ["0", "0", "0"]
    _, out, _ = call("translate", "-m", model, "--alignment", "hard", "A man")
    assert all("-" in link for link in out.split("\t")[1].split())
    code, _, err = call("translate", "-m", model, "--format", "text", "--n-best", "2", "A man")
    assert code == 2
    assert "--format text holds one translation a line" in err


def test_a_prefix_file_forces_each_beginning(call, model, tmp_path):
    prefixes = tmp_path / "prefixes"
    prefixes.write_text("Ein Mann\n\n", encoding="utf-8")
    code, out, _ = call("translate", "-m", model, "--prefix", str(prefixes), "A man", "Two")
    assert code == 0
    assert out.startswith("Ein Mann")
    prefixes.write_text("Ein\n", encoding="utf-8")
    code, _, err = call("translate", "-m", model, "--prefix", str(prefixes), "A man", "Two")
    assert code == 1
    assert "one prefix for each line, but line 2 has none" in err


def test_sampling_is_decided_by_its_seed_whatever_the_buffer(call, model):
    flags = ["translate", "-m", model, "--temperature", "2", "--seed", "3", "A man", "Two", "New"]
    code, out, _ = call(*flags)
    assert code == 0
    assert call(*flags, "--buffer-size", "1")[1] == out
    assert call(*flags, "--batch-size", "2", "--batch-type", "sentences")[1] == out
    assert call(*flags, "--batch-size", "50")[1] == out
    assert call(*flags, "--seed", "4")[1] != out


def test_files_and_standard_streams_give_the_same(call, model, tmp_path):
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_bytes(b"A man\r\nTwo dogs\r\n")
    assert call("translate", "-m", model, "-q", "-i", str(source), "-o", str(target)) == (0, "", "")
    piped = call("translate", "-m", model, "-i", "-", "-o", "-", stdin=b"A man\nTwo dogs\n")
    assert target.read_bytes().decode() == piped[1]


@pytest.mark.slow
def test_a_reader_that_stops_early_is_no_error(model, heed):
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
        (["-b", "0", "x"], 1, "decoding.beam_size must be from 1 to 1024, but is 0"),
        (["-t", "fr", "x"], 1, "This model translates into de only, not into fr."),
        (["-s", "fr", "x"], 1, "translates from en, not from fr."),
        (["--device", "tpu", "x"], 1, "device must be auto, cpu, cuda or cuda:N, but is 'tpu'."),
        (["-i", "nowhere"], 1, "nowhere cannot be read: No such file or directory."),
        (["-o", "/nowhere/out", "x"], 1, "/nowhere/out cannot be written: No such file"),
        (["--top-p", "2", "x"], 1, "decoding.top_p must be from 0.0 to 1.0, but is 2.0"),
        (["--n-best", "3", "-b", "2", "x"], 1, "decoding.n_best must be at most"),
    ],
)
def test_wrong_requests_are_told_in_one_line(call, model, flags, code, words):
    found, out, err = call("translate", "-m", model, *flags)
    assert found == code
    assert words in err
    assert err.startswith("heed: ")
    assert err.count("\n") == 1
    assert out == ""
