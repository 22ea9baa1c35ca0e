"""`heed prune`: a smaller model that every command opens, and what it costs."""

import csv
import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heed.bundle.bundle import load_bundle, save_bundle
from heed.data.corpus import Corpus
from heed.train.recipe.asked import Asked
from heed.train.run.run import run_training

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def run(
    write_corpus: Callable[[Path], Corpus],
    small: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The folder of a translator's run of a few steps; its corpus lies beside it."""
    folder = tmp_path_factory.mktemp("run")
    training = {"max_steps": 12, "validations": 1, "validation_sentences": 2}
    asked = Asked({**small, "training": training})
    run_training(asked, write_corpus(folder), folder / "run", report=lambda event: None)
    return folder / "run"


def test_a_translator_gets_smaller_and_is_compared(call: Call, run: Path, tmp_path: Path) -> None:
    """Claim 63, on a model that has hardly learned; the page on pruning has the figures."""
    out = tmp_path / "smaller"
    code, shown, err = call("prune", str(run), "--keep", "0.5", "--out", str(out))
    assert code == 0, err
    first, *scores = shown.splitlines()
    assert re.match(
        re.escape(f"{out}: 1 of 2 heads and 16 of 32 features a sublayer; ")
        + r"[\d,]+ of [\d,]+ parameters, \d\d% of the multiplications$",
        first,
    )
    assert scores[0].startswith("before  (") and scores[3].startswith("after  (")
    assert scores[6] == "difference, second minus first"
    shape = load_bundle(out).config.to_dict()
    assert [shape[key] for key in ("n_heads", "d_k", "d_v", "d_ff")] == [1, 8, 8, 16]
    assert (out / "model.safetensors").stat().st_size < (run / "model.safetensors").stat().st_size


def test_a_translator_is_compared_where_the_tokenizer_of_its_language_is_missing(
    call: Call, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command has no --tokenize, so BLEU counts characters then, as in training."""
    monkeypatch.setitem(sys.modules, "MeCab", None)
    monkeypatch.delitem(sys.modules, "sacrebleu.tokenizers.tokenizer_ja_mecab", raising=False)
    monkeypatch.chdir(tmp_path)
    japanese, out = tmp_path / "japanese", "smaller"
    save_bundle(japanese, replace(load_bundle(run), target_lang="ja"))
    pairs = ("--src", str(run.parent / "small.de"), "--ref", str(run.parent / "small.xx"))
    code, shown, err = call("prune", str(japanese), "--out", out, *pairs)
    assert code == 0, err
    assert "tok:char" in shown
    assert " lines with smaller …" in err, "the folder as it was typed"


def test_every_command_opens_it(call: Call, run: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "smaller")
    assert call("prune", str(run), "--keep", "0.5", "--out", out)[0] == 0
    src, tgt = str(run.parent / "small.de"), str(run.parent / "small.xx")
    by_torch = call("translate", "-m", out, "--runtime", "torch", "--dtype", "float32", "rot blau")
    assert by_torch[0] == 0
    assert call("translate", "-m", out, "--runtime", "engine", "rot blau") == by_torch
    assert call("models", "verify", out)[0] == 0
    assert call("evaluate", "-m", out, "--src", src, "--ref", tgt)[0] == 0
    assert call("score", "-m", out, "--src", src, "--tgt", tgt)[0] == 0
    assert call("align", "-m", out, "rot blau")[0] == 0
    assert call("quantize", out)[0] == 0
    assert call("translate", "-m", out, "--dtype", "int8", "rot blau")[0] == 0
    tuned = str(tmp_path / "tuned")
    options = ("--src", src, "--tgt", tgt, "--from", out, "--out", tuned, "--max-steps", "3")
    assert call("train", *options)[0] == 0
    assert load_bundle(tuned).config.to_dict()["n_heads"] == 1


def test_what_matters_is_written_as_a_table_and_as_json(
    call: Call, run: Path, tmp_path: Path
) -> None:
    table, records = tmp_path / "units.tsv", tmp_path / "units.json"
    for path in (table, records):
        code, shown, err = call("prune", str(run), "--importance", str(path), "--threads", "1")
        assert (code, shown) == (0, ""), err
    header, *rows = [line.split("\t") for line in table.read_text().splitlines()]
    assert header == [
        *("sublayer", "kind", "unit", "importance"),
        *("loss", "loss_without", "distance"),
    ]
    found = json.loads(records.read_text())["units"]
    assert len(found) == len(rows) == 3 * 2 + 2 * 32
    assert [each["sublayer"] for each in found] == [row[0] for row in rows]
    heads = [each for each in found if each["kind"] == "heads"]
    for each in heads:
        assert each["importance"] > 0
        assert each["loss_without"] != each["loss"]
        assert 0 < each["distance"] < 1
    features = [each for each in found if each["kind"] == "features"]
    assert all("distance" not in each for each in features)
    assert np.mean([each["importance"] for each in features]) > 0
    code, shown, _ = call("prune", str(run), "--what", "heads", "--importance", "-")
    assert code == 0
    assert shown.splitlines() == ["\t".join(row) for row in (header, *rows[:2], *rows[34:38])]


def test_a_language_model_and_a_classifier_are_compared_by_loss(
    call: Call, run: Path, tmp_path: Path
) -> None:
    text, labeled = tmp_path / "text.txt", tmp_path / "labeled.tsv"
    lines = (run.parent / "small.de").read_text().splitlines()
    text.write_text("".join(f"{line}\n" for line in lines * 5))
    labeled.write_text("".join(f"{'even' if len(line) % 2 else 'odd'}\t{line}\n" for line in lines))
    shape = ("model.d_model=16", "model.n_heads=2", "model.d_ff=32", "model.n_layers=1")
    settings = ("tokenizer.kind=char", "text.context=16", "--max-steps", "4", "--threads", "1")
    for task, corpus in (("lm", ("--text", text)), ("classify", ("--labeled", labeled))):
        folder, out = str(tmp_path / task), str(tmp_path / f"{task}-small")
        flags = ("--task", task, corpus[0], str(corpus[1]), "--out", folder)
        assert call("train", *flags, *settings, *shape)[0] == 0
        code, shown, err = call("prune", folder, "--keep", "0.5", "--out", out)
        assert code == 0, err
        losses = shown.splitlines()[1:]
        assert re.match(r"loss of \d+ held-out labels, in nats", losses[0])
        names = [line.split()[0] for line in losses[1:]]
        assert names == ["before", "after", "difference"]
        before, after, difference = (float(line.split()[1]) for line in losses[1:])
        assert difference == pytest.approx(after - before, abs=2e-4)
    assert call("generate", "-m", str(tmp_path / "lm-small"), "rot")[0] == 0
    assert call("classify", "-m", str(tmp_path / "classify-small"), "rot")[0] == 0
    code, _, err = call("prune", folder, "--out", f"{out}2", "--src", str(text), "--ref", str(text))
    assert code == 1
    assert "--src and --ref are for translators, but" in err


def test_a_model_without_its_run_needs_pairs(call: Call, run: Path, tmp_path: Path) -> None:
    once, twice = tmp_path / "once", tmp_path / "twice"
    assert (
        call("prune", str(run), "--keep", "0.7", "--what", "features", "--out", str(once))[0] == 0
    )
    assert load_bundle(once).config.to_dict()["n_heads"] == 2
    code, _, err = call("prune", str(once), "--out", str(twice))
    assert code == 1
    assert "has no training corpus, which is needed" in err
    pairs = ("--src", str(run.parent / "small.de"), "--ref", str(run.parent / "small.xx"))
    assert call("prune", str(once), "--keep", "0.5", "--out", str(twice), *pairs)[0] == 0
    assert load_bundle(twice).config.to_dict()["d_ff"] == 11


def test_files_without_lines_are_refused(call: Call, run: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    pairs = ("--src", str(empty), "--ref", str(empty))
    code, _, err = call("prune", str(run), "--out", str(tmp_path / "out"), *pairs)
    assert code == 1
    assert f"{empty} must have at least one line, but is empty." in err


def test_pairs_that_are_too_long_are_left_out(call: Call, run: Path, tmp_path: Path) -> None:
    once, long = tmp_path / "once", tmp_path / "long.txt"
    assert call("prune", str(run), "--keep", "0.5", "--out", str(once))[0] == 0
    long.write_text("rot " * 300 + "\n")
    pairs = ("--src", str(long), "--ref", str(long))
    code, _, err = call("prune", str(once), "--importance", "-", *pairs)
    assert code == 1
    assert "there is no pair with 254 pieces on each side at most" in err


def test_nothing_is_overwritten(call: Call, run: Path, tmp_path: Path) -> None:
    code, _, err = call("prune", str(run))
    assert code == 2 and err.startswith("heed: Missing --out")
    code, _, err = call("prune", str(run), "--out", str(tmp_path / "x"), "--src", "a")
    assert code == 2 and "Give --src and --ref together" in err
    for share in ("0", "1", "1.5", "nan"):
        code, _, err = call("prune", str(run), "--keep", share, "--out", str(tmp_path / "x"))
        assert code == 2 and "--keep must be above 0 and below 1, but is" in err
    code, _, err = call("prune", str(run), "--out", str(run))
    assert code == 2 and f"{run} is the input folder, which is read. Use another --out" in err
    code, _, err = call("prune", str(run), "--importance", str(run / "model.safetensors"))
    assert code == 2 and "are the same file" in err
    out = tmp_path / "smaller"
    for force, expected in (((), 0), ((), 1), (("--force",), 0)):
        code, _, err = call("prune", str(run), "--keep", "0.5", "--out", str(out), *force)
        assert code == expected, err
    code, _, err = call("prune", str(run), "--keep", "0.9", "--what", "heads", "--out", f"{out}2")
    assert code == 1 and "leaves every head and feature in its place" in err
    assert "Measuring" not in err
    assert not Path(f"{out}2").exists()


def test_what_is_for_the_smaller_model_needs_out(call: Call, run: Path) -> None:
    pairs = ("--src", str(run.parent / "small.de"), "--ref", str(run.parent / "small.xx"))
    for flags, words in (
        (("--keep", "0.75"), "--keep is for the smaller model: give --out too."),
        (("--force",), "--force is for the smaller model: give --out too."),
        (pairs, "--src and --ref compare the smaller model, but"),
    ):
        code, shown, err = call("prune", str(run), "--importance", "-", *flags)
        assert (code, shown) == (2, "")
        assert words in err
        assert "Measuring" not in err


def test_a_table_in_the_folder_that_is_replaced_is_refused(
    call: Call, run: Path, tmp_path: Path
) -> None:
    out = tmp_path / "smaller"
    for table in (out, out / "units.tsv", out / "deep" / "units.tsv"):
        code, _, err = call("prune", str(run), "--out", str(out), "--importance", str(table))
        assert (code, out.exists()) == (2, False)
        assert f"--importance {table} would be replaced by the folder {out}." in err


def test_outputs_that_cannot_be_written_are_refused_before_measuring(
    call: Call, run: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    below = str(tmp_path / "file" / "below")
    for flag in ("--out", "--importance"):
        code, _, err = call("prune", str(run), flag, below)
        assert code == 1 and f"cannot write {below}: Not a directory" in err
        assert "Measuring" not in err
    code, _, err = call("prune", str(run), "--importance", str(tmp_path))
    assert code == 1 and f"cannot write {tmp_path}: the path exists and is not a file." in err
    assert "Measuring" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_table_of_features_switches_off_no_heads_and_a_csv_has_commas(
    call: Call, run: Path, tmp_path: Path
) -> None:
    tables = []
    for name, delimiter in (("units.csv", ","), ("units.CSV", ","), ("units.tsv", "\t")):
        path = tmp_path / name
        code, _, err = call("prune", str(run), "--what", "features", "--importance", str(path))
        assert code == 0, err
        assert "Measuring 64 features" in err and "Switching off" not in err
        with open(path, encoding="utf-8", newline="") as file:
            tables.append(list(csv.reader(file, delimiter=delimiter)))
    assert tables[0] == tables[1] == tables[2]
    assert len(tables[0]) == 1 + 2 * 32
    assert {len(row) for row in tables[0]} == {7}
