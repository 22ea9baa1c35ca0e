"""`heed inspect` serves one page for this machine and says where it is."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

import numpy as np
import pytest
from tests import random_bundle
from tests.serve.conftest import SENTENCES, make_model

import heed
from heed.bundle.bundle import load_bundle, save_bundle
from heed.cli import inspect
from heed.explain.decoding.recorded import record_search
from heed.explain.decoding.strategies import sample_lines
from heed.explain.decoding.tree import tree_lines
from heed.text.memory import TranslationMemory
from heed.text.piece_words import words_of
from heed.text.vocab import N_SPECIAL, train_vocab
from heed.translate.trace import BatchTrace, read_trace

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_model(tmp_path_factory.mktemp("inspected") / "en-de", "en", "de")


def test_the_page_opens_with_the_sentence_in_the_address_only(folder: str) -> None:
    text = "Two dogs & <b>snow</b>?"
    command = [sys.executable, "-m", "heed", "inspect", "-m", folder, text, "--no-open"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr is not None
        found = re.fullmatch(
            r"heed: (http://127\.0\.0\.1:\d+/)(#/attention\S*)",
            "".join(program.stderr.readline()).strip(),
        )
        assert found is not None
        url, fragment = found.groups()
        assert parse_qs(urlsplit(fragment.removeprefix("#")).query) == {"text": [text]}
        assert 'data-inside="on"' in urlopen(url).read().decode()
        body = json.dumps({"text": text, "source": "en", "target": "de"}).encode()
        headers = {"Content-Type": "application/json"}
        answer = json.load(urlopen(Request(f"{url}api/v1/trace", body, headers)))
        assert answer["text"] == text
        program.send_signal(signal.SIGINT)
        rest = program.stderr.read()
        assert program.wait(60) == 0
    assert text not in rest


def test_a_folder_in_the_place_of_the_text_is_the_model(
    folder: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    def settings_of(models: tuple[str, ...], port: int) -> None:
        asked.append(models)
        raise KeyboardInterrupt

    monkeypatch.setattr(inspect, "settings_of", settings_of)
    call("inspect", folder)
    call("inspect", "-m", folder, folder)
    code, out, error = call("inspect", folder, TEXT, "--probabilities")
    assert (code, bool(out)) == (0, True), error
    assert asked == [(folder,), (folder,)]


def test_the_name_of_a_folder_may_have_any_bytes(folder: str, call: Call, tmp_path: Path) -> None:
    named = os.fsdecode(os.fsencode(tmp_path) + b"/mod\xe8le")
    shutil.copytree(folder, named)
    code, out, error = call("inspect", named, TEXT, "--probabilities")
    assert (code, bool(out)) == (0, True), error
    code, out, error = call("inspect", "-m", folder, named, "--probabilities")
    assert (code, out) == (2, "")
    assert "not valid UTF-8" in error


def test_a_missing_model_is_named(call: Call, tmp_path: Path) -> None:
    code, _, error = call("inspect", "-m", str(tmp_path / "none"), "A dog.")
    assert code == 1
    assert "There is no model folder" in error


TEXT = "A dog runs in the snow."


def test_probabilities_and_a_map_are_printed_without_a_page(folder: str, call: Call) -> None:
    code, out, error = call("inspect", "-m", folder, TEXT, "--probabilities", "--attention")
    assert code == 0
    translation = error.removeprefix("heed: ").strip()
    assert translation == heed.load(folder)(TEXT)
    lines = out.splitlines()
    trace = heed.load(folder).trace(TEXT)
    n_tokens = len(trace.expected_tokens)
    assert len(lines) == 2 * n_tokens + 1
    for line, token, id_, row in zip(
        lines, trace.expected_tokens, trace.expected_ids, trace["log_probs"], strict=False
    ):
        assert line.split()[:2] == [f"{np.exp(row[id_]):.4f}", token]
    assert "\x1b" not in out


def test_tensors_are_listed_printed_and_written(folder: str, call: Call, tmp_path: Path) -> None:
    given = ("inspect", "-q", "-m", folder, TEXT, "Ein Hund.")
    code, listed, error = call(*given, "--steps")
    assert (code, error) == (0, "")
    trace = heed.load(folder).trace(TEXT, "Ein Hund.")
    assert [line.split()[0] for line in listed.splitlines()] == [*trace]
    name = "decoder.0.cross_attention.weights"
    code, out, _ = call(*given, "--tensor", name)
    assert (code, out.splitlines()[0].split()[0]) == (0, name)
    array, table, whole = (str(tmp_path / part) for part in ("w.npy", "w.csv", "t.safetensors"))
    for out_path in (array, table):
        assert call(*given, "--tensor", name, "--out", out_path) == (0, "", "")
    np.testing.assert_allclose(np.load(array), trace[name], atol=1e-6)
    assert Path(table).read_text(encoding="utf-8").startswith("head,head label,tgt,tgt label,")
    code, _, error = call("inspect", "-m", folder, TEXT, "--trace", whole, "--every-step")
    assert code == 0
    assert f"tensors are in {whole}." in error
    assert len(read_trace(whole).steps) > 1


def test_several_lines_are_one_batch(folder: str, call: Call, tmp_path: Path) -> None:
    lines = ["Two dogs play in the snow.", "A bike."]
    path, table = tmp_path / "batch.safetensors", tmp_path / "keys.csv"
    name = "encoder.0.self_attention.key"
    asked = ["inspect", "-m", folder, "\n".join(lines), "Ein Mann.\nZwei Hunde spielen im Schnee."]
    shown = ["--attention", "encoder", "--probabilities", "--trace", str(path)]
    code, out, _ = call(*asked, *shown, "--tensor", name, "--out", str(table))
    assert code == 0
    trace = read_trace(path)
    assert isinstance(trace, BatchTrace)
    assert [sentence.source for sentence in trace.sentences] == lines
    first, second = out.split("\n1: A bike.\n")
    assert first.startswith("0: Two dogs play in the snow.\n")
    second_row = trace.sentences[1]
    assert second_row.n_src_padding > 0
    # A column of padding for each, and no row.
    assert len(re.findall(r"^ *<pad>", second, re.MULTILINE)) == 0
    n_rows = len(second_row.without_padding().source_tokens)
    n_tokens = len(second_row.without_padding().expected_tokens)
    assert len(second.splitlines()) >= n_rows + n_tokens
    rows = [line.split(",") for line in table.read_text().splitlines()]
    assert rows[0][:6] == ["batch", "batch label", "head", "head label", "src", "src label"]
    assert rows[1][:6] == ["0", lines[0], "0", "0", "0", trace.sentences[0].source_tokens[0]]
    assert float(rows[-1][-1]) == pytest.approx(float(trace[name][-1, -1, -1, -1]))
    code, _, err = call(*asked[:-1], "--tree")
    assert (code, "--tree works on one sentence" in err) == (2, True)


def test_a_sample_is_listed_with_the_tokens_that_each_step_could_draw(
    folder: str, call: Call
) -> None:
    code, out, error = call("inspect", "-m", folder, TEXT, "--sample", "0.8", "--seed", "3")
    assert (code, error) == (0, "")
    found = record_search(heed.load(folder), TEXT, sample=True, top_p=0.8, seed=3)
    assert out.splitlines() == sample_lines(found.record)
    code, _, error = call("inspect", "-m", folder, TEXT, "Ein Hund.", "--sample", "0.8")
    assert code == 2
    assert "--sample needs a search: leave out TRANSLATION." in error


def test_the_tree_of_a_search_is_drawn(folder: str, call: Call) -> None:
    code, out, error = call("inspect", "-m", folder, TEXT, "--tree", "--beam-size", "2")
    assert (code, error) == (0, "")
    record = record_search(heed.load(folder), TEXT, beam_size=2).record
    assert out.splitlines() == tree_lines(record, is_colored=False)
    assert out.startswith("<s>\n")
    _, out, _ = call("inspect", "-m", folder, TEXT, "--attention", "decoder")
    assert out.split()[0] == "<s>", "a map names the first token as the tree does"
    code, _, error = call("inspect", "-q", "-m", folder, TEXT, "Ein Hund.", "--tree")
    assert code == 2
    assert "--tree needs a search: leave out TRANSLATION." in error


@pytest.mark.parametrize("view", [("--tree",), ("--sample", "0.9"), ("--probabilities",)])
def test_a_guide_is_named_and_left_out_on_request(
    folder: str, call: Call, tmp_path: Path, view: tuple[str, ...]
) -> None:
    bundle = load_bundle(folder)
    encode, sizes = bundle.src_vocab.encode, (bundle.src_vocab.size,) * 2
    memory = TranslationMemory.of([(encode(TEXT), encode("Ein Mann"))], sizes)
    save_bundle(tmp_path / "model", replace(bundle, memory=memory))
    asked = ("inspect", "-m", str(tmp_path / "model"), TEXT, *view)
    _, out, error = call(*asked)
    assert f"Guided by a remembered pair, 100 % similar: {TEXT} → Ein Mann" in out + error
    assert call(*asked, "--no-memory") == call("inspect", "-m", folder, TEXT, *view)


def test_the_layer_and_heads_of_a_map_are_chosen(folder: str, call: Call) -> None:
    given = ("inspect", "-q", "-m", folder, TEXT, "--attention", "encoder")
    drawn = [call(*given, *more)[1] for more in ((), ("--head", "0"), ("--layer", "0"))]
    assert all(drawn)
    pieces = heed.load(folder).trace(TEXT).source_tokens
    by_word = call(*given, "--words")[1].splitlines()
    assert len(by_word) == 1 + len(words_of(pieces)) <= len(drawn[0].splitlines())
    for more, words in (
        (("--layer", "9"), "--layer must lie between -1 and 0, but is 9."),
        (("--layer", "-3"), "--layer must lie between -1 and 0, but is -3."),
        (("--head", "99"), "--head must be below"),
    ):
        code, _, error = call(*given, *more)
        assert code == 2
        assert words in error


@pytest.mark.parametrize(
    ("changes", "use"),
    [({"decoder_attention": "merged"}, "joint"), ({"family": "decoder"}, "decoder")],
)
def test_one_attention_to_both_sides_is_drawn_without_rows_of_padding(
    changes: dict[str, Any],
    use: str,
    call: Call,
    config_of: Callable[..., Any],
    tmp_path: Path,
) -> None:
    vocab, lines = train_vocab(SENTENCES * 5, size=300), ("A man\nTwo dogs play", "Hund\nMann im")
    save_bundle(tmp_path / "m", random_bundle.bundle(vocab, config_of, **changes))
    code, out, err = call("inspect", "-m", str(tmp_path / "m"), *lines, "--attention", use)
    assert code == 0, err
    assert call("inspect", "-m", str(tmp_path / "m"), *lines, "--attention")[1] == out
    drawn = re.split(r"^\d: .*\n", out, flags=re.MULTILINE)[1:]
    for one, src, tgt in zip(drawn, *(text.split("\n") for text in lines), strict=True):
        n_src, n_tgt = (1 + len(vocab.encode(text)) for text in (src, tgt))
        rows = [line.split()[0] for line in one.splitlines()[1:]]
        assert len(rows) == n_tgt + (n_src if use == "decoder" else 0)
        assert "<pad>" not in rows


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--steps",), "Give the TEXT that the model reads."),
        ((TEXT, "--tensor", "nothing"), "This model has no tensor nothing"),
        ((TEXT, "--steps", "-m", "other"), "Text output takes one model only."),
        ((TEXT, "--steps", "--target-lang", "fr"), "fr"),
        (("", "--probabilities"), "TEXT must be a sentence, but is blank."),
        ((" ", "--attention"), "TEXT must be a sentence, but is blank."),
    ],
)
def test_what_cannot_be_shown_is_said_in_words(
    folder: str, call: Call, flags: tuple[str, ...], words: str
) -> None:
    code, out, error = call("inspect", "-q", "-m", folder, *flags)
    assert code
    assert not out
    assert words in error
    assert len(error.splitlines()) == 1


ATTENTION = "has an effect only with --attention."
TENSORS = "--attention, --probabilities, --steps, --tensor or --trace."


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--beam-size", "4"), f"--beam-size has an effect only with --tree, {TENSORS}"),
        (("--html", "x.html", "--beam-size", "4"), "--beam-size has an effect only with --tree,"),
        (("--sample", "0.9", "--beam-size", "4"), "--beam-size has an effect only with --tree,"),
        (("Ein Hund.", "--steps", "--beam-size", "4"), "--beam-size needs a search: leave out"),
        (("--target-lang", "de"), "--target-lang has an effect only with --tree, --sample, "),
        (("--words",), f"--words {ATTENTION}"),
        (("--layer", "0"), f"--layer {ATTENTION}"),
        (("--layer", "-1"), f"--layer {ATTENTION}"),
        (("--steps", "--head", "0"), f"--head {ATTENTION}"),
        (("--tree", "--words"), f"--words {ATTENTION}"),
        (("--out", "w.csv"), "--out has an effect only with --tensor."),
        (("--steps", "--out", "w.csv"), "--out has an effect only with --tensor."),
        (("--steps", "--every-step"), "--every-step has an effect only with --trace."),
        (("Ein Hund.", "--trace", "t", "--every-step"), "--every-step needs a search: leave out"),
        (("--no-memory",), "--no-memory has an effect only with --tree, --sample, "),
        (("Ein Hund.", "--steps", "--no-memory"), "--no-memory needs a search: leave out"),
        (("--tree", "--seed", "0"), "--seed has an effect only with --sample."),
        (("--steps", "--port", "0"), "--port is for the page, which --steps does not open."),
        (("--steps", "--no-open"), "--no-open is for the page, which --steps does not open."),
        (("--html", "x.html", "--screen", "steps"), "--screen is for the page, which --html"),
        (("--html", "x.html", "--steps"), "Give either --html or --steps, not both."),
        (("--training", "--tree"), "Give either --training or --tree, not both."),
        (("--training",), "--training prints the state of runs: leave out TEXT."),
    ],
)
def test_an_option_without_effect_is_refused(
    folder: str, call: Call, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], words: str
) -> None:
    monkeypatch.setattr(inspect, "settings_of", lambda *_: pytest.fail("it went on"))
    code, out, error = call("inspect", "-m", folder, TEXT, *flags)
    assert (code, out) == (2, "")
    assert words in error
    assert len(error.splitlines()) == 1


def test_a_word_behind_attention_that_is_read_as_text_is_named(folder: str, call: Call) -> None:
    kinds = "--attention takes cross, encoder, decoder or joint."
    for given, role in (
        ((TEXT, "--attention", "self"), "TRANSLATION"),
        (("--attention", "self", TEXT), "TEXT"),
    ):
        code, _, err = call("inspect", "-m", folder, *given)
        assert code == 0, err
        assert err.startswith(f"heed: self is read as {role}: {kinds}\n")
    silent: tuple[tuple[str, ...], ...] = (
        (TEXT, "Hund", "--attention"),
        (TEXT, "--attention", "Ein Hund"),
        (TEXT, "Hund", "--attention", "cross"),
        ("--attention", "Dog"),
    )
    for words in silent:
        code, _, err = call("inspect", "-m", folder, *words)
        assert code == 0, err
        assert kinds not in err


def test_an_option_of_the_environment_may_be_without_effect(
    folder: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEED_INSPECT_PORT", "8001")
    monkeypatch.setenv("HEED_INSPECT_SEED", "3")
    code, out, err = call("inspect", "-m", folder, TEXT, "--steps")
    assert code == 0, err
    assert "memory" in out


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--tensor", "memory", "--out", "w.txt"), "w.txt must end with .csv or .npy."),
        (("--tensor", "memory", "--out", "no/file/w.csv"), "/no/file/w.csv: Not a directory."),
        (("--trace", "no"), "cannot write no: the path exists and is not a file."),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_the_model_is_loaded(
    folder: str,
    call: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, ...],
    words: str,
) -> None:
    (tmp_path / "no").mkdir()
    (tmp_path / "no" / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("heed.translate.translator.load", lambda *_: pytest.fail("it loads"))
    code, out, error = call("inspect", "-m", folder, TEXT, *flags)
    assert (code in (1, 2), out) == (True, "")
    assert words in error


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--tree", "--beam-size", "2000"), "--beam-size must be a whole number from 1 to 1024"),
        (("--steps", "--beam-size", "2000"), "--beam-size must be a whole number from 1 to 1024"),
        (("--sample", "0.9", "--seed", "-1"), "--seed must be a whole number from 0 to"),
    ],
)
def test_a_search_option_out_of_range_is_named_as_typed(
    folder: str, call: Call, flags: tuple[str, ...], words: str
) -> None:
    code, _, error = call("inspect", "-m", folder, TEXT, *flags)
    assert code == 2
    assert error.startswith(f"heed: {words}")


@pytest.mark.parametrize("flag", ["--trace", "--html", "--out"])
def test_a_file_of_the_model_is_not_written_over(folder: str, call: Call, flag: str) -> None:
    weights = Path(folder) / "model.safetensors"
    before = weights.read_bytes()
    tensor = ["--tensor", "memory"] if flag == "--out" else []
    code, _, err = call("inspect", "-q", "-m", folder, TEXT, *tensor, flag, str(weights))
    assert code == 2
    assert "are the same file: it would be overwritten" in err
    assert weights.read_bytes() == before


def test_the_usual_model_is_that_of_the_environment(
    folder: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEED_MODEL", folder)
    code, out, err = call("inspect", TEXT, "--steps")
    assert code == 0, err
    assert "memory" in out


@pytest.mark.parametrize(
    ("task", "changes", "shown"),
    [
        ("translate", {"family": "rnn", "attention": "none", "cell": "lstm"}, "forget_gate"),
        ("lm", {"family": "decoder"}, "decoder.0.self_attention.weights"),
        ("mlm", {"family": "encoder"}, "encoder.0.self_attention.weights"),
        ("classify", {"family": "encoder", "pooling": "mean", "tied": "none"}, "log_probs"),
    ],
)
def test_the_trace_of_a_model_of_any_task_is_written(
    task: str,
    changes: dict[str, Any],
    shown: str,
    call: Call,
    config_of: Callable[..., Any],
    tmp_path: Path,
) -> None:
    vocab = train_vocab(SENTENCES * 5, size=300)
    labels = ["good", "bad"] if task == "classify" else []
    if labels:
        changes = {**changes, "tgt_vocab_size": N_SPECIAL + len(labels)}
    made = random_bundle.bundle(vocab, config_of, **changes)
    save_bundle(tmp_path / "model", replace(made, task=task, labels=labels))
    path = tmp_path / "trace.safetensors"
    text = "A man <mask> a bike." if task == "mlm" else "A man is riding a bike."
    code, out, err = call(
        "inspect", "-m", str(tmp_path / "model"), text, "--steps", "--trace", str(path)
    )
    assert code == 0, err
    assert shown in out
    trace = read_trace(path)
    assert any(name.endswith(shown) for name in trace)
    sums = np.exp(trace["log_probs"]).sum(axis=-1)
    np.testing.assert_allclose(sums, 1, rtol=1e-5)


@pytest.mark.parametrize("view", [("--tree",), ("--sample", "0.9")])
def test_a_view_of_a_search_needs_a_translator(
    view: tuple[str, ...], call: Call, config_of: Callable[..., Any], tmp_path: Path
) -> None:
    made = random_bundle.bundle(train_vocab(SENTENCES * 5, size=300), config_of, family="decoder")
    save_bundle(tmp_path / "lm", replace(made, task="lm"))
    code, _, err = call("inspect", "-m", str(tmp_path / "lm"), "A man", *view)
    assert (code, f"{view[0]} needs a translator: " in err) == (2, True)
