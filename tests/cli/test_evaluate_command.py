import gzip
import json
import lzma
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests import random_bundle
from tests.cli.conftest import SENTENCES

from heed.bundle.bundle import load_bundle, save_bundle
from heed.cli import waiting
from heed.errors import DataError
from heed.evaluate import counts
from heed.evaluate.edits import Row, edits_of
from heed.explain.decoding.prefixes import exposure_bias, exposure_lines
from heed.explain.decoding.strategies import WAYS, allowed_per_step, loop_lines, loop_rates
from heed.machine import threads
from heed.text.vocab import N_SPECIAL, train_vocab
from heed.translate.result import Translation
from heed.translate.translator import load


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    texts = {
        "src": ["A man is riding a bike.", "Two dogs play in the snow.", "New York is a city"],
        "ref": ["Ein Mann fährt Fahrrad.", "Zwei Hunde spielen im Schnee.", "Die Stadt ist groß."],
        "old": ["Ein Mann fährt.", "Zwei Hunde.", "Der Hund ist groß."],
    }
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (tmp_path / "short").write_text("eins\n", encoding="utf-8")
    return {name: str(tmp_path / name) for name in (*texts, "short", "out")}


def test_scores_are_of_the_language_that_a_model_of_several_writes(
    call: Callable[..., Any], files: dict[str, str], model: str, tmp_path: Path
) -> None:
    several = tmp_path / "several"
    languages = {"source_lang": "en", "target_lang": "", "target_langs": ("zh", "de")}
    save_bundle(several, replace(load_bundle(model), **languages))
    flags = ["-m", str(several), "-b", "1", "--src", files["src"], "--ref", files["ref"]]
    for asked, tokenizer in (((), "tok:zh"), (("-t", "de"), "tok:13a")):
        code, out, err = call("evaluate", *flags, *asked)
        assert code == 0, err
        assert tokenizer in out


def test_a_perfect_file_scores_100_with_signatures(
    call: Callable[..., Any], files: dict[str, str]
) -> None:
    code, out, err = call("evaluate", "--hyp", files["ref"], "--ref", files["ref"])
    assert (code, err) == (0, "")
    bleu = next(line for line in out.splitlines() if "BLEU" in line)
    assert "100.00" in bleu
    assert "tok:13a" in bleu


def test_references_may_stand_first_as_sacrebleu_has_it(
    call: Callable[..., Any], files: dict[str, str]
) -> None:
    by_flag = call("evaluate", "--hyp", files["old"], "--ref", files["ref"])
    assert call("evaluate", files["ref"], "-i", files["old"]) == by_flag


@pytest.mark.parametrize("pack", [gzip, lzma], ids=["gz", "xz"])
def test_files_may_be_compressed(
    call: Callable[..., Any], files: dict[str, str], model: str, pack: ModuleType
) -> None:
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


def test_json_holds_the_same_numbers(call: Callable[..., Any], files: dict[str, str]) -> None:
    _, out, _ = call(
        "evaluate", "--hyp", files["ref"], "--ref", files["ref"], "--json", "--metrics", "bleu,ter"
    )
    (system,) = json.loads(out)["systems"]
    assert system["name"] == files["ref"]
    assert system["n_sentences"] == 3
    assert list(system["scores"]) == ["bleu", "ter"]
    assert system["scores"]["bleu"]["value"] == pytest.approx(100)


def test_two_files_are_compared(call: Callable[..., Any], files: dict[str, str]) -> None:
    flags = ["evaluate", "--hyp", files["old"], "--hyp", files["ref"], "--ref", files["ref"]]
    _, out, _ = call(*flags)
    assert "difference, second minus first" in out
    assert " p = " in out
    _, out, _ = call(*flags, "--json", "--resamples", "50")
    record = json.loads(out)
    assert len(record["systems"]) == 2
    assert record["comparison"]["bleu"]["value"] > 0


def test_a_model_translates_and_is_judged(
    call: Callable[..., Any], files: dict[str, str], model: str
) -> None:
    flags = ["evaluate", "-m", model, "--src", files["src"], "--ref", files["ref"], "-b", "1"]
    code, out, _ = call(*flags, "--save", files["out"], "--json")
    assert code == 0
    (system,) = json.loads(out)["systems"]
    assert system["name"] == model
    with open(files["out"], "rb") as saved:
        assert saved.read().count(b"\n") == 3


def test_the_worst_sentences_are_shown_with_their_sources(
    call: Callable[..., Any], files: dict[str, str], model: str
) -> None:
    flags = ["evaluate", "-m", model, "--src", files["src"], "--ref", files["ref"], "-b", "1"]
    code, out, _ = call(*flags, "--worst", "2")
    assert code == 0
    assert out.count("\nline ") == 2
    assert "\n  source     " in out
    assert "\nsource words  sentences  " in out
    record = json.loads(call(*flags, "--worst", "1", "--json")[1])
    assert [line["source"] is not None for line in record["worst"]] == [True]
    assert "worst" not in json.loads(call(*flags, "--json")[1])


def test_scores_are_shown_by_length_of_the_source(
    call: Callable[..., Any], files: dict[str, str], model: str
) -> None:
    flags = ["evaluate", "--src", files["src"], "--ref", files["ref"], "--by-length", "--json"]
    record = json.loads(call(*flags, "-m", model, "-b", "1")[1])
    assert record["length_unit"] == "source words"
    assert {each["label"]: each["n_sentences"] for each in record["by_length"]} == {
        "0-5": 1,
        "6-10": 2,
    }
    assert "worst" not in record


def test_without_a_model_the_sources_are_those_of_the_file(
    call: Callable[..., Any], files: dict[str, str]
) -> None:
    flags = ["evaluate", "--src", files["src"], "--ref", files["ref"], "--hyp", files["old"]]
    code, out, _ = call(*flags, "--by-length", "--worst", "1")
    assert code == 0
    assert "\nsource words  sentences  " in out
    assert "\n  source     " in out
    _, out, _ = call(*flags[:1], *flags[3:], "--by-length")
    assert "\nreference words  sentences  " in out


@pytest.mark.parametrize(
    ("flag", "words"), [("-b", "--beam-size must"), ("--length-penalty", "--length-penalty must")]
)
def test_what_a_search_cannot_do_is_refused(
    call: Callable[..., Any], files: dict[str, str], model: str, flag: str, words: str
) -> None:
    asked = ["evaluate", "-m", model, "--src", files["src"], "--ref", files["ref"]]
    code, _, err = call(*asked, flag, "-1")
    assert code == 2
    assert words in err


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (["--ref", "REF"], 2, "Give -m RUN and --src FILE to judge a model, or --hyp FILE"),
        (["--ref", "REF", "--src", "SRC"], 2, "Which model? Name its folder: -m run/"),
        (["--ref", "REF", "--hyp", "SHORT"], 1, "SHORT and REF must have the same number of"),
        (["--ref", "REF", "--hyp", "OLD", "--metrics", "blue"], 2, "Did you mean bleu?"),
        (["--ref", "NO", "--hyp", "OLD"], 1, "NO does not exist."),
        (["--hyp", "OLD", "--ref", "REF", "--save", "OUT"], 2, "give -m RUN and --src FILE too."),
        (
            ["--hyp", "OLD", "--src", "SRC", "--ref", "REF", "--save", "OUT"],
            2,
            "give -m RUN and --src FILE too.",
        ),
        (["--hyp", "OLD", "--hyp", "OLD", "--ref", "REF"], 2, "Both --hyp are the same file: OLD."),
        (["--hyp", "-", "--ref", "-"], 2, "Standard input can be read only once"),
        (["-m", "x", "--hyp", "OLD", "--ref", "REF"], 2, "give --src FILE too, or leave out -m."),
        (["--hyp", "OLD", "--ref", "REF", "-b", "4"], 2, "--beam-size is for a model: give -m RUN"),
        (
            ["--hyp", "OLD", "--ref", "REF", "--dtype", "int8", "--no-shortlist"],
            2,
            "--dtype and --no-shortlist are for a model: give -m RUN and --src FILE too.",
        ),
        (
            ["--hyp", "OLD", "--ref", "REF", "--metrics", "chrf", "-tok", "char"],
            2,
            "--tokenize is for BLEU: leave it out, or add bleu to --metrics.",
        ),
        (["--hyp", "OLD", "--ref", "REF", "--seed", "4"], 2, "only with --survival: give that"),
        (["-m", "x", "--text", "SRC", "--worst", "1"], 2, "--worst is for translations only"),
        (["-m", "x", "--labeled", "SRC", "-t", "de"], 2, "--target-lang is for translations only"),
        (["-m", "x", "--text", "SRC", "--no-shortlist"], 2, "--no-shortlist is for translations"),
        (
            ["-m", "x", "--text", "SRC", "--resamples", "9"],
            2,
            "--resamples is for confidence intervals, which --text does not have.",
        ),
        (
            ["-m", "x", "--labeled", "SRC", "-b", "1", "--by-length"],
            2,
            "--beam-size and --by-length are for translations",
        ),
    ],
)
def test_wrong_requests_are_told_in_one_line(
    call: Callable[..., Any], files: dict[str, str], flags: list[str], code: int, words: str
) -> None:
    names = {name.upper(): files[name] for name in ("ref", "src", "short", "old", "out")}
    found, out, err = call("evaluate", *(names.get(flag, flag) for flag in flags))
    for name, path in names.items():
        words = words.replace(name, path)
    assert (found, out) == (code, "")
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (["--ref", "NO"], 1, "NO does not exist."),
        (
            ["--ref", "SHORT"],
            1,
            "SRC and SHORT must have the same number of lines, but have 3 and 1.",
        ),
        (
            ["--ref", "REF", "--ref", "SHORT"],
            1,
            "SHORT and REF must have the same number of lines, but have 1",
        ),
        (["--ref", "REF", "--hyp", "SHORT"], 1, "SHORT and REF must have the same number of"),
        (["--ref", "REF", "--metrics", "blue"], 2, "A metric must be one of bleu, chrf,"),
        (
            ["--ref", "REF", "--metrics", ""],
            2,
            "Give at least one metric: bleu, chrf, ter, wer, ex",
        ),
        (["--ref", "REF", "-tok", "13A"], 2, "tokenize must be one of 13a,"),
        (["--ref", "REF", "--hyp", "OLD", "--hyp", "SRC"], 2, "Compare two systems at a time"),
        (["--ref", "REF", "--save", "REF/out"], 1, "REF"),
        (["--ref", "REF", "--save", "out.gz"], 2, "out.gz: the output is not compressed"),
        (["--ref", "REF", "-tok", "ja-mecab"], 1, "The tokenizer ja-mecab is not installed: pip"),
    ],
)
def test_what_can_be_checked_is_checked_before_translating(
    call: Callable[..., Any],
    files: dict[str, str],
    model: str,
    monkeypatch: pytest.MonkeyPatch,
    flags: list[str],
    code: int,
    words: str,
) -> None:
    monkeypatch.setitem(sys.modules, "MeCab", None)
    monkeypatch.delitem(sys.modules, "sacrebleu.tokenizers.tokenizer_ja_mecab", raising=False)
    monkeypatch.setattr(
        "heed.translate.translator.Translator.translate", lambda *_, **__: pytest.fail()
    )
    names = {name.upper(): files[name] for name in ("ref", "src", "short", "old")}
    for name, path in names.items():
        flags = [flag.replace(name, path) for flag in flags]
        words = words.replace(name, path)
    found, out, err = call("evaluate", "-m", model, "--src", files["src"], *flags)
    assert (found, out) == (code, "")
    assert words in err
    assert "mistake in heed" not in err


@pytest.mark.parametrize("read_as", ["--src", "--ref", "--hyp"])
@pytest.mark.parametrize("link", [None, "symlink_to", "hardlink_to"])
def test_saving_onto_a_file_that_is_read_is_refused(
    call: Callable[..., Any],
    files: dict[str, str],
    model: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    read_as: str,
    link: str | None,
) -> None:
    monkeypatch.setattr("heed.cli.evaluate.read_all", lambda *_: pytest.fail())
    paths = {"--src": files["src"], "--ref": files["ref"], "--hyp": files["old"]}
    target = Path(paths[read_as])
    if link:
        target = tmp_path / "link"
        getattr(target, link)(paths[read_as])
    before = target.read_bytes()
    flags = [part for pair in paths.items() for part in pair]
    code, out, err = call("evaluate", "-m", model, *flags, "--save", str(target))
    assert (code, out) == (2, "")
    assert f"{target} and {paths[read_as]} are the same file" in err
    assert target.read_bytes() == before


def test_a_translation_that_fails_leaves_an_older_saved_file_as_it_was(
    call: Callable[..., Any], files: dict[str, str], model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Iterator[Translation]:
        yield Translation(text="eins")
        raise DataError("line 2 cannot be translated")

    monkeypatch.setattr("heed.translate.translator.Translator.translate_stream", fail)
    saved = Path(files["out"])
    saved.write_text("older", encoding="utf-8")
    flags = ["--src", files["src"], "--ref", files["ref"], "--save", files["out"]]
    code, _, err = call("evaluate", "-m", model, *flags)
    assert (code, "line 2 cannot be translated" in err) == (1, True)
    assert saved.read_text(encoding="utf-8") == "older"
    assert [path.name for path in saved.parent.glob("out*")] == ["out"]


def test_translations_may_be_saved_to_standard_output(
    call: Callable[..., Any], files: dict[str, str], model: str
) -> None:
    flags = ["--src", files["src"], "--ref", files["ref"], "-b", "1", "--metrics", "chrf"]
    _, scores, _ = call("evaluate", "-m", model, *flags)
    code, out, _ = call("evaluate", "-m", model, *flags, "--save", "-")
    assert code == 0
    assert out.endswith(scores)
    assert out.count("\n") == scores.count("\n") + 3


def test_thai_is_scored_by_characters_or_with_a_warning(
    call: Callable[..., Any], tmp_path: Path
) -> None:
    lines = ["ผู้ชายกำลังขี่จักรยาน", "สุนัขสองตัวเล่นในหิมะ"]
    thai = tmp_path / "x.th"
    thai.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    flags = ["evaluate", "--hyp", str(thai), "--ref", str(thai), "--json"]
    (known,) = json.loads(call(*flags, "-t", "th")[1])["systems"]
    assert known["scores"]["bleu"]["value"] == pytest.approx(100)
    assert known["warnings"] == []
    (unknown,) = json.loads(call(*flags)[1])["systems"]
    (warning,) = unknown["warnings"]
    assert "BLEU and TER would need blanks to find words. Give the target language" in warning


def test_more_than_two_systems_are_refused(
    call: Callable[..., Any], files: dict[str, str], tmp_path: Path
) -> None:
    third = tmp_path / "third"
    third.write_bytes(b"a\nb\nc\n")
    hyps = [part for name in (files["old"], files["ref"], str(third)) for part in ("--hyp", name)]
    code, _, err = call("evaluate", "--ref", files["ref"], *hyps)
    assert code == 2
    assert "Compare two systems at a time" in err


def test_both_scores_in_json_leave_nothing_to_normalize(
    call: Callable[..., Any], files: dict[str, str], model: str
) -> None:
    flags = ["score", "-m", model, "--src", files["src"], "--tgt", files["ref"], "--json"]
    code, out, err = call(*flags, "--normalize")
    assert (code, out) == (2, "")
    assert "--json writes both scores: leave out --normalize." in err


def test_score_writes_a_log_probability_a_pair(
    call: Callable[..., Any], files: dict[str, str], model: str
) -> None:
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


def test_a_pair_that_is_too_long_to_score_gets_nan_and_a_remark(
    call: Callable[..., Any], files: dict[str, str], model: str, tmp_path: Path
) -> None:
    long = tmp_path / "long"
    text = Path(files["ref"]).read_text(encoding="utf-8").split("\n")
    long.write_text("\n".join([text[0], "Hund " * 10_000, text[2], ""]), encoding="utf-8")
    flags = ["score", "-m", model, "--src", files["src"]]
    _, plain, _ = call(*flags, "--tgt", files["ref"])
    begin = time.process_time()
    code, out, err = call(*flags, "--tgt", str(long))
    assert time.process_time() - begin < 5
    assert code == 0
    first, _, last = plain.splitlines()
    assert out.splitlines() == [first, "nan", last]
    assert err == (
        "heed: 1 pair was too long to score (more than 1024 tokens on a side) and got nan; "
        "the first is line 2.\n"
    )
    _, out, err = call(*flags, "--tgt", str(long), "--json", "--word-scores")
    assert json.loads(out.splitlines()[1]) == {
        "log_prob": None, "score": None, "status": "too_long", "tokens": [], "token_scores": [],
    }  # fmt: skip
    assert json.loads(out.splitlines()[0])["status"] == "ok"
    assert "and got null; the first is line 2." in err


def test_score_refuses_files_of_unequal_length(
    call: Callable[..., Any], files: dict[str, str], model: str
) -> None:
    for src, tgt, ends in (("src", "short", "short"), ("short", "ref", "short")):
        code, _, err = call("score", "-m", model, "--src", files[src], "--tgt", files[tgt])
        assert code == 1
        assert "must have the same number of lines, but" in err
        assert f"{files[ends]} ends after line 1." in err


def test_score_reads_standard_input_once(call: Callable[..., Any], model: str) -> None:
    code, out, err = call("score", "-m", model, "--src", "-", "--tgt", "-", stdin=b"A man.\n")
    assert (code, out) == (2, "")
    assert err == "heed: Standard input (-) can be read once, but is given twice.\n"


@pytest.mark.parametrize(
    ("task", "changes", "words"),
    [
        ("translate", {}, "is a translator. Measure it with --src FILE and --ref FILE."),
        ("lm", {"family": "decoder"}, "is a language model. Measure it with --text FILE."),
        ("classify", {"family": "encoder", "pooling": "mean", "tied": "none"},
         "is a classifier. Measure it with --labeled FILE."),
        ("mlm", {"family": "encoder"},
         "is a masked language model, which heed evaluate does not measure. Use heed fill."),
    ],
)  # fmt: skip
def test_a_model_of_another_task_is_refused_with_its_own_flags(
    call: Callable[..., Any],
    config_of: Callable[..., Any],
    files: dict[str, str],
    tmp_path: Path,
    task: str,
    changes: dict[str, Any],
    words: str,
) -> None:
    labels = ("bad", "good") if task == "classify" else ()
    if labels:
        changes = {**changes, "tgt_vocab_size": N_SPECIAL + len(labels)}
    made = random_bundle.bundle(train_vocab(SENTENCES * 5, size=330), config_of, **changes)
    folder = tmp_path / "model"
    save_bundle(folder, replace(made, task=task, labels=labels))
    wrong = {
        "translate": ["--src", files["src"], "--ref", files["ref"]],
        "lm": ["--text", files["src"]],
        "classify": ["--labeled", files["src"]],
    }
    for flags in (flags for its, flags in wrong.items() if its != task):
        code, out, err = call("evaluate", "-m", str(folder), *flags)
        assert (code, out, err) == (1, "", f"heed: {folder} {words}\n")


def test_scores_are_not_written_onto_what_is_scored(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
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


def test_survival_scores_changed_copies_beside_the_unchanged_lines(
    call: Callable[..., Any], files: dict[str, str], model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "SILENT_S", 1e9)  # however slow the machine is
    flags = ["evaluate", "-m", model, "-b", "1", "--src", files["src"], "--ref", files["ref"]]
    code, out, err = call(*flags, "--survival", "-s", "en", "--json")
    assert (code, err) == (0, "")
    record = json.loads(out)
    rows = {row["key"]: row for row in record["survival"]}
    assert rows["clean"]["n_lines"] == 3
    assert rows["no_end"]["n_lines"] == 2
    assert rows["spans"]["kept"] is not None
    assert call(*flags, "--survival", "-s", "en", "--json")[1] == out
    code, out, _ = call(*flags, "--survival", "--seed", "2")
    assert code == 0
    assert "UPPER CASE, scored without case" in out
    assert "left out: other quotes and dashes" in out


def test_survival_shows_the_progress_of_all_that_it_translates(
    call: Callable[..., Any], files: dict[str, str], model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "SILENT_S", 0.0)
    flags = ["evaluate", "-m", model, "-b", "1", "--src", files["src"], "--ref", files["ref"]]
    shown = call(*flags, "--survival")[2].splitlines()
    assert [shown[0], shown[-1]] == [
        "translating 'unchanged' …",
        "translating 'glossary terms used' …",
    ]
    assert call(*flags, "--survival", "-q")[2] == ""


def test_survival_counts_the_terms_of_a_glossary_or_of_the_test_set(
    call: Callable[..., Any], files: dict[str, str], model: str, tmp_path: Path
) -> None:
    flags = ["evaluate", "-m", model, "-b", "1", "--src", files["src"], "--ref", files["ref"]]
    word = Path(files["src"]).read_text(encoding="utf-8").split()[0]
    terms = tmp_path / "terms.tsv"
    terms.write_text(f"{word}\tDackel\n", encoding="utf-8")
    code, out, _ = call(*flags, "--survival", "--glossary", str(terms), "--json")
    rows = {row["key"]: row for row in json.loads(out)["survival"]}
    assert code == 0
    assert rows["terms"]["n_lines"] >= 1
    assert rows["terms"]["kept"] == 1.0
    terms.write_text("unheardof\tDackel\n", encoding="utf-8")
    _, out, _ = call(*flags, "--survival", "--glossary", str(terms))
    assert "left out: glossary terms used: the lines contain no term of the glossary" in out
    code, _, err = call(*flags, "--glossary", str(terms))
    assert (code, "--glossary is for --survival" in err) == (2, True)


def test_decoding_measures_loops_draws_and_exposure_bias(
    call: Callable[..., Any], files: dict[str, str], model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claims 107, 116 and 117 as a command."""
    monkeypatch.setattr(waiting, "SILENT_S", 1e9)  # however slow the machine is
    flags = ["evaluate", "-m", model, "--src", files["src"], "--ref", files["ref"], "--decoding"]
    code, out, err = call(*flags, "--json")
    assert (code, err) == (0, "")
    record = json.loads(out)
    translator = load(model)
    sources, references = (
        Path(files[name]).read_text("utf-8").splitlines() for name in ("src", "ref")
    )
    assert record["loops"] == [
        asdict(each) | {"rate": each.rate} for each in loop_rates(translator, sources)
    ]
    assert record["allowed"]["per_step"] == allowed_per_step(translator, sources, top_p=0.9)
    bias = exposure_bias(translator, sources, references)
    assert record["exposure_bias"]["total"] == asdict(bias.total)
    code, out, _ = call(*flags)
    assert code == 0
    assert exposure_lines(bias)[-1] in out
    assert loop_lines(loop_rates(translator, sources))[0] in out


def test_decoding_shows_its_progress(
    call: Callable[..., Any], files: dict[str, str], model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes minutes for a thousand lines."""
    monkeypatch.setattr(waiting, "SILENT_S", 0.0)
    flags = ["evaluate", "-m", model, "--src", files["src"], "--ref", files["ref"], "--decoding"]
    code, _, err = call(*flags)
    assert code == 0
    assert [line.partition(":")[0] for line in err.splitlines()] == [
        *(f"translating with {way} …" for way in WAYS),
        "sampling token by token …",
        "comparing with the references …",
    ]
    assert call(*flags, "-q")[2] == ""


@pytest.mark.parametrize(
    "more",
    [["-b", "2"], ["--metrics", "ter"], ["-lc"], ["--ref", "ref"], ["--resamples", "9"]],
)
def test_decoding_refuses_what_it_does_not_read(
    call: Callable[..., Any], files: dict[str, str], model: str, more: list[str]
) -> None:
    flags = ["evaluate", "-m", model, "--src", files["src"], "--ref", files["ref"], "--decoding"]
    code, out, err = call(*flags, *(files.get(flag, flag) for flag in more))
    assert (code, out) == (2, "")
    assert "--decoding compares strategies with fixed settings" in err


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--by-length"], "--survival needs -m RUN, --src and --ref, and cannot"),
        (["--worst", "1"], "--survival needs -m RUN, --src and --ref, and cannot"),
        (["--hyp", "old"], "--survival needs -m RUN, --src and --ref, and cannot"),
        (["--save", "out"], "leave out --save"),
        (["--decoding"], "--worst or another table"),
        (["--metrics", "ter"], "--survival shows BLEU and chrF without intervals: leave out"),
        (["--resamples", "9"], "intervals: leave out --metrics and --resamples."),
    ],
)
def test_survival_refuses_what_it_does_not_do(
    call: Callable[..., Any], files: dict[str, str], model: str, more: list[str], words: str
) -> None:
    flags = ["evaluate", "-m", model, "--src", files["src"], "--ref", files["ref"], "--survival"]
    code, out, err = call(*flags, *(files.get(flag, flag) for flag in more))
    assert (code, out) == (2, "")
    assert words in err


def test_the_number_of_processes_that_count_ter_can_be_limited(
    call: Callable[..., Any], files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []

    def noted(hypotheses: list[str], *others: Any, processes: int, **options: Any) -> list[Row]:
        if len(hypotheses) > 1:  # else only a trial
            given.append(processes)
        return edits_of(hypotheses, *others, **options)

    monkeypatch.setattr(counts, "edits_of", noted)
    monkeypatch.setattr(threads, "count_cores", lambda: 4)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    command = ["evaluate", "--hyp", files["old"], "--ref", files["ref"]]
    assert call(*command) == call(*command, "--threads", "3")
    assert given == [4, 3]
    code, _, err = call(*command, "--threads", "1", "--metrics", "bleu")
    assert (code, err) == (2, "heed: --threads is for a model: give -m RUN and --src FILE too.\n")


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--hyp", "EMPTY", "--ref", "EMPTY"], "EMPTY, EMPTY"),
        (["--hyp", "EMPTY", "--ref", "NONE"], "NONE, EMPTY"),
        (["--hyp", "-", "--ref", "EMPTY"], "EMPTY, standard input"),
        (["-m", "MODEL", "--src", "NONE", "--ref", "EMPTY"], "EMPTY, NONE"),
    ],
)
def test_files_without_lines_are_named(
    call: Callable[..., Any], model: str, tmp_path: Path, flags: list[str], named: str
) -> None:
    names = {name: str(tmp_path / name) for name in ("EMPTY", "NONE")}
    for name, path in names.items():
        Path(path).touch()
        named = named.replace(name, path)
    names["MODEL"] = model
    code, out, err = call("evaluate", *(names.get(flag, flag) for flag in flags), stdin=b"")
    assert (code, out) == (1, "")
    assert err == f"heed: There must be sentences, but these are empty: {named}.\n"
