import gzip
import json
import lzma
import math
from pathlib import Path

import pytest


@pytest.fixture
def files(tmp_path):
    texts = {
        "src": ["A man is riding a bike.", "Two dogs play in the snow.", "New York is a city"],
        "ref": ["Ein Mann fährt Fahrrad.", "Zwei Hunde spielen im Schnee.", "Die Stadt ist groß."],
        "old": ["Ein Mann fährt.", "Zwei Hunde.", "Der Hund ist groß."],
    }
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (tmp_path / "short").write_text("eins\n", encoding="utf-8")
    return {name: str(tmp_path / name) for name in (*texts, "short", "out")}


def test_a_perfect_file_scores_100_with_signatures(call, files):
    code, out, err = call("evaluate", "--hyp", files["ref"], "--ref", files["ref"])
    assert (code, err) == (0, "")
    bleu = next(line for line in out.splitlines() if "BLEU" in line)
    assert "100.00" in bleu
    assert "tok:13a" in bleu


def test_references_may_stand_first_as_sacrebleu_has_it(call, files):
    by_flag = call("evaluate", "--hyp", files["old"], "--ref", files["ref"])
    assert call("evaluate", files["ref"], "-i", files["old"]) == by_flag


@pytest.mark.parametrize("pack", [gzip, lzma], ids=["gz", "xz"])
def test_files_may_be_compressed(call, files, model, pack):
    packed = {}
    for name in ("src", "ref"):
        packed[name] = f"{files[name]}.{'gz' if pack is gzip else 'xz'}"
        Path(packed[name]).write_bytes(pack.compress(Path(files[name]).read_bytes()))
    for flags in (
        ["score", "-m", model, "--src", "src", "--tgt", "ref"],
        ["evaluate", "-m", model, "-b", "1", "--src", "src", "--ref", "ref", "--metrics", "chrf"],
    ):
        plain = call(*(files.get(flag, flag) for flag in flags))
        assert plain[0] == 0, plain
        assert call(*(packed.get(flag, flag) for flag in flags)) == plain


def test_json_holds_the_same_numbers(call, files):
    _, out, _ = call(
        "evaluate", "--hyp", files["ref"], "--ref", files["ref"], "--json", "--metrics", "bleu,ter"
    )
    (system,) = json.loads(out)["systems"]
    assert system["name"] == files["ref"]
    assert system["n_sentences"] == 3
    assert list(system["scores"]) == ["bleu", "ter"]
    assert system["scores"]["bleu"]["value"] == pytest.approx(100)


def test_two_files_are_compared(call, files):
    flags = ["evaluate", "--hyp", files["old"], "--hyp", files["ref"], "--ref", files["ref"]]
    _, out, _ = call(*flags)
    assert "difference, second minus first" in out
    assert " p = " in out
    _, out, _ = call(*flags, "--json", "--resamples", "50")
    record = json.loads(out)
    assert len(record["systems"]) == 2
    assert record["comparison"]["bleu"]["value"] > 0


def test_a_model_translates_and_is_judged(call, files, model):
    flags = ["evaluate", "-m", model, "--src", files["src"], "--ref", files["ref"], "-b", "1"]
    code, out, _ = call(*flags, "--save", files["out"], "--json")
    assert code == 0
    (system,) = json.loads(out)["systems"]
    assert system["name"] == model
    with open(files["out"], "rb") as saved:
        assert saved.read().count(b"\n") == 3


@pytest.mark.parametrize(("flag", "words"), [("-b", "beam_size"), ("--length-penalty", "alpha")])
def test_what_a_search_cannot_do_is_refused(call, files, model, flag, words):
    asked = ["evaluate", "-m", model, "--src", files["src"], "--ref", files["ref"]]
    code, _, err = call(*asked, flag, "-1")
    assert code == 1
    assert words in err


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (["--ref", "REF"], 2, "Give -m RUN and --src FILE to judge a model, or --hyp FILE"),
        (["--ref", "REF", "--src", "SRC"], 2, "Which model? Name its folder: -m run/"),
        (["--ref", "REF", "--hyp", "SHORT"], 1, "but there are 1 translations and 3 lines"),
        (["--ref", "REF", "--hyp", "OLD", "--metrics", "blue"], 1, "Did you mean bleu?"),
        (["--ref", "NO", "--hyp", "OLD"], 1, "NO does not exist."),
    ],
)
def test_wrong_requests_are_told_in_one_line(call, files, flags, code, words):
    names = {"REF": files["ref"], "SRC": files["src"], "SHORT": files["short"], "OLD": files["old"]}
    found, out, err = call("evaluate", *(names.get(flag, flag) for flag in flags))
    assert (found, out) == (code, "")
    assert words in err
    assert err.count("\n") == 1


def test_more_than_two_systems_are_refused(call, files, tmp_path):
    third = tmp_path / "third"
    third.write_bytes(b"a\nb\nc\n")
    hyps = [part for name in (files["old"], files["ref"], str(third)) for part in ("--hyp", name)]
    code, _, err = call("evaluate", "--ref", files["ref"], *hyps)
    assert code == 2
    assert "Compare two systems at a time" in err


def test_score_writes_a_log_probability_a_pair(call, files, model):
    flags = ["score", "-m", model, "--src", files["src"], "--tgt", files["ref"]]
    code, out, _ = call(*flags)
    assert code == 0
    sums = [float(line) for line in out.splitlines()]
    assert len(sums) == 3
    assert all(value < 0 for value in sums)
    _, out, _ = call(*flags, "--json", "--word-scores")
    for line, total in zip(out.splitlines(), sums, strict=True):
        record = json.loads(line)
        assert record["log_prob"] == pytest.approx(total, abs=1e-5)
        assert math.fsum(record["token_scores"]) == pytest.approx(total, abs=1e-4)
        assert len(record["tokens"]) == len(record["token_scores"])
    _, out, _ = call(*flags, "--normalize", "--word-scores")
    for line in out.splitlines():
        mean, tokens = line.split("\t")
        scores = [float(token) for token in tokens.split()]
        assert float(mean) == pytest.approx(sum(scores) / len(scores), abs=1e-3)


def test_score_refuses_files_of_unequal_length(call, files, model):
    for src, tgt, ends in (("src", "short", "short"), ("short", "ref", "short")):
        code, _, err = call("score", "-m", model, "--src", files[src], "--tgt", files[tgt])
        assert code == 1
        assert "must have as many lines, but" in err
        assert f"{files[ends]} ends after line 1." in err


def test_scores_are_not_written_onto_what_is_scored(call, model, tmp_path):
    src, tgt = tmp_path / "src", tmp_path / "tgt"
    src.write_text("A man.\n")
    tgt.write_text("Ein Mann.\n")
    for output in (src, tgt, Path(model) / "config.json"):
        before = output.read_bytes()
        files = ("--src", str(src), "--tgt", str(tgt), "-o", str(output))
        code, _, err = call("score", "-m", model, *files)
        assert code == 2
        assert "are the same file: it would be overwritten while it is read." in err
        assert output.read_bytes() == before
