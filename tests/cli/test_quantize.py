"""`heed quantize`: a folder of a quarter of the size, and what it costs."""

import resource
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import random_bundle
from tests.cli.conftest import SENTENCES

from heed.bundle.bundle import load_bundle, save_bundle, save_int8
from heed.data.readers import Pair
from heed.data.spool import write_pairs
from heed.data.store import Store
from heed.disk.folders import read_manifest, verify_directory
from heed.disk.tensors import decode_tensors, encode_tensors
from heed.text.memory import TranslationMemory
from heed.text.vocab import N_SPECIAL, train_vocab


@pytest.fixture
def own(model: str, tmp_path: Path) -> Path:
    """A copy of the model that may be written into."""
    return Path(shutil.copytree(model, tmp_path / "own"))


def test_int8_goes_beside_the_weights_and_is_used_from_then_on(
    call: Callable[..., Any], own: Path
) -> None:
    code, out, _ = call("quantize", str(own))
    assert code == 0
    assert "MB of int8 instead of" in out
    assert "rounding error of a weight matrix" in out
    assert (own / "model.int8.safetensors").exists()
    small = (own / "model.int8.safetensors").stat().st_size
    assert small < (own / "model.safetensors").stat().st_size / 2
    by_default = call("translate", "-m", str(own), "A man is riding a bike.")
    assert by_default[0] == 0
    assert by_default == call(
        "translate", "-m", str(own), "--dtype", "int8", "A man is riding a bike."
    )


def test_a_folder_of_its_own_translates(
    call: Callable[..., Any], own: Path, tmp_path: Path
) -> None:
    small = tmp_path / "small"
    assert call("quantize", str(own), "--out", str(small), "--layers")[0] == 0
    assert not (small / "model.safetensors").exists()
    assert not (own / "model.int8.safetensors").exists()
    assert call("translate", "-m", str(small), "A man.")[0] == 0
    code, _, err = call("translate", "-m", str(small), "--dtype", "float32", "A man.")
    assert code == 1
    assert "holds int8 weights only" in err


def test_a_folder_with_other_files_is_left_alone(
    call: Callable[..., Any], own: Path, tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    (docs / "thesis").mkdir(parents=True)
    (docs / "thesis" / "1.txt").write_text("mine")
    for force in ([], ["--force"]):
        code, _, err = call("quantize", str(own), "--out", str(docs), *force)
        assert code == 1
        assert err == (
            f"heed: {docs} must be a new folder, but holds thesis, which is not part of a heed "
            "model. Use another --out.\n"
        )
        code, _, err = call("quantize", str(own), "--out", str(tmp_path), *force)
        assert code == 2
        assert (
            err == f"heed: {tmp_path} holds {own}, which this command reads. Use another --out.\n"
        )
    assert (docs / "thesis" / "1.txt").read_text() == "mine"
    assert not (own / "model.int8.safetensors").exists()


def test_a_model_that_is_there_is_replaced_with_force(
    call: Callable[..., Any], own: Path, tmp_path: Path
) -> None:
    small = tmp_path / "small"
    assert call("quantize", str(own), "--out", str(small))[0] == 0
    inode = small.stat().st_ino
    code, _, err = call("quantize", str(own), "--out", str(small))
    assert code == 1
    assert err.startswith(f"heed: {small} holds a model already. Replace it with --force")
    assert small.stat().st_ino == inode
    assert call("quantize", str(own), "--out", str(small), "--force")[0] == 0
    assert small.stat().st_ino != inode
    assert call("translate", "-m", str(small), "A man.")[0] == 0


@pytest.mark.parametrize("name", ["own", "link", "."])
def test_the_model_as_its_own_out_gets_int8_beside_its_weights(
    call: Callable[..., Any], own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "link").symlink_to(own)
    (own / "notes.txt").write_text("mine")
    before = {path.name for path in own.iterdir()}
    monkeypatch.chdir(own if name == "." else tmp_path)
    code, out, err = call("quantize", str(own), "--out", name)
    assert code == 0, err
    assert out.startswith(f"{name}: ")
    assert {path.name for path in own.iterdir()} == before | {"model.int8.safetensors"}
    assert (tmp_path / "link").is_symlink()


def test_the_current_folder_is_not_replaced(
    call: Callable[..., Any], own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path / "docs")
    code, _, err = call("quantize", "../own", "--out", ".")
    assert code == 2
    assert err.startswith("heed: . is the current folder, which cannot be replaced.")


def test_a_model_behind_links_is_not_deleted_by_its_copy(
    call: Callable[..., Any], own: Path, tmp_path: Path
) -> None:
    """The files of one model folder are links into another."""
    links = tmp_path / "links"
    links.mkdir()
    for path in own.iterdir():
        (links / path.name).symlink_to(path)
    code, _, err = call("quantize", str(links), "--out", str(own), "--force")
    assert code == 2
    assert f"{own} holds {links}" in err
    assert call("translate", "-m", str(links), "A man.")[0] == 0


@pytest.mark.parametrize("task", ["classify", "mlm"])
def test_a_model_that_cannot_be_rounded_is_refused_without_flags_of_other_commands(
    call: Callable[..., Any], config_of: Callable[..., Any], tmp_path: Path, task: str
) -> None:
    labels = ("bad", "good") if task == "classify" else ()
    changes = {"pooling": "mean", "tied": "none", "tgt_vocab_size": N_SPECIAL + 2} if labels else {}
    vocab = train_vocab(SENTENCES * 5, size=330)
    made = random_bundle.bundle(vocab, config_of, family="encoder", **changes)
    save_bundle(tmp_path / "model", replace(made, task=task, labels=labels))
    code, _, err = call("quantize", str(tmp_path / "model"))
    assert code == 1
    assert err.endswith("It runs with torch, in float32: use it as it is.\n")
    assert "--runtime" not in err


def test_the_cost_is_told_with_its_interval(
    call: Callable[..., Any], own: Path, tmp_path: Path
) -> None:
    for name, lines in (
        ("src", ["A man.", "Two dogs play."]),
        ("ref", ["Ein Mann.", "Zwei Hunde."]),
    ):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = ("--src", str(tmp_path / "src"), "--ref", str(tmp_path / "ref"))
    code, out, err = call("quantize", str(own), *files)
    assert code == 0
    assert "Translating 2 lines with float32" in err
    assert "difference, second minus first" in out
    assert out.count("chrF2") == 3


def test_the_cost_is_told_where_the_tokenizer_of_the_language_is_missing(
    call: Callable[..., Any], own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command has no --tokenize, so BLEU counts characters then, as in training."""
    monkeypatch.setitem(sys.modules, "MeCab", None)
    monkeypatch.delitem(sys.modules, "sacrebleu.tokenizers.tokenizer_ja_mecab", raising=False)
    save_bundle(own, replace(load_bundle(own), target_lang="ja"))
    (tmp_path / "src").write_text("A man.\n")
    (tmp_path / "ref").write_text("男。\n", encoding="utf-8")
    files = ("--src", str(tmp_path / "src"), "--ref", str(tmp_path / "ref"))
    code, out, err = call("quantize", str(own), *files)
    assert code == 0, err
    assert "tok:char" in out


def test_one_file_without_the_other_is_a_mistake(call: Callable[..., Any], own: Path) -> None:
    code, _, err = call("quantize", str(own), "--src", "x")
    assert code == 2
    assert "Give --src and --ref together, or neither." in err


@pytest.mark.parametrize(
    ("src", "ref", "words"),
    [
        ("gone", "two", "gone does not exist"),
        ("two", "one", "one ends after line 1"),
        ("none", "none", "none must have at least one line, but is empty"),
    ],
)
def test_wrong_files_are_told_before_anything_is_written(
    call: Callable[..., Any], own: Path, tmp_path: Path, src: str, ref: str, words: str
) -> None:
    for name, text in (("two", "A man.\nA dog.\n"), ("one", "Ein Mann.\n"), ("none", "")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    before = sorted(own.iterdir())
    files = ("--src", str(tmp_path / src), "--ref", str(tmp_path / ref))
    code, out, err = call("quantize", str(own), *files)
    assert (code, out) == (1, "")
    assert words in err
    assert sorted(own.iterdir()) == before


def test_force_without_a_folder_to_replace_is_refused(call: Callable[..., Any], own: Path) -> None:
    before = sorted(own.iterdir())
    code, out, err = call("quantize", str(own), "--force")
    assert (code, out) == (2, "")
    assert "--force replaces the model in --out: give --out too, or leave it out." in err
    assert sorted(own.iterdir()) == before


def test_a_copy_without_the_training_pairs(
    call: Callable[..., Any], own: Path, tmp_path: Path
) -> None:
    bundle = load_bundle(own)
    sizes = bundle.src_vocab.size, bundle.tgt_vocab.size
    memory = TranslationMemory.of([([5, 6], [7])], sizes)
    save_bundle(own, replace(bundle, memory=memory))
    for name, flags in (("with", []), ("without", ["--no-memory"])):
        code, _, err = call("quantize", str(own), "--out", str(tmp_path / name), *flags)
        assert code == 0, err
        has_memory = name == "with"
        assert (tmp_path / name / "memory.safetensors").exists() is has_memory
        assert (load_bundle(tmp_path / name, prefer_int8=True).memory is not None) is has_memory
        card = (tmp_path / name / "README.md").read_text("utf-8")
        assert ("memory.safetensors" in card) is has_memory
    for flags in ([], ["--out", str(own)]):
        code, _, err = call("quantize", str(own), "--no-memory", *flags)
        assert code == 2
        assert "--no-memory needs --out with a folder other than that of MODEL." in err
    assert load_bundle(own).memory is not None


def test_a_copy_names_the_languages_of_a_model_that_was_trained_without_names(
    call: Callable[..., Any], own: Path, tmp_path: Path
) -> None:
    from heed.serve.work.directions import read_routes

    save_bundle(own, replace(load_bundle(own), source_lang="", target_lang=""))
    names = ["--source-lang", "en", "--target-lang", "de"]
    code, _, err = call("quantize", str(own), *names)
    assert code == 2
    assert "--source-lang needs --out with a folder other than that of MODEL" in err
    copy = tmp_path / "named"
    assert call("quantize", str(own), "--out", str(copy), *names)[0] == 0
    (route,) = read_routes([str(copy)])[1]
    assert (route.source, route.target) == ("en", "de")
    several = {"target_langs": ("de", "zh")}, {"directions": (("en", "de"), ("zh", "de"))}
    for changes in several:
        save_bundle(own, replace(load_bundle(own), target_langs=(), target_lang="de"))
        save_bundle(own, replace(load_bundle(own), **changes))
        code, _, err = call("quantize", str(own), "--out", str(tmp_path / "other"), *names)
        assert code == 2
        assert "--source-lang is for models of two languages; this one has several." in err


def test_a_copy_without_the_training_pairs_is_compared_with_the_model_without_them(
    call: Callable[..., Any], own: Path, tmp_path: Path
) -> None:
    """So that the difference is that of the weights."""
    read, (source, target) = load_bundle(own), SENTENCES[2:4]
    vocab, decoding = read.src_vocab, {**read.decoding, "max_length": 30}
    pairs = [(vocab.encode(source), vocab.encode(target))]
    memory = TranslationMemory.of(pairs, (vocab.size, vocab.size))
    save_bundle(own, replace(read, memory=memory, decoding=decoding))
    for name, text in (("src", source), ("ref", target)):
        (tmp_path / name).write_text(f"{text}\n")
    files = ["--src", str(tmp_path / "src"), "--ref", str(tmp_path / "ref")]
    for name, flags, n_right in (("with", [], 2), ("without", ["--no-memory"], 0)):
        out = ["--out", str(tmp_path / name)]
        code, found, err = call("quantize", str(own), *out, *flags, *files)
        assert code == 0, err
        assert found.count("BLEU         100.00 ") == n_right, found


def test_a_share_without_a_shortlist_is_refused(
    call: Callable[..., Any], own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(own.iterdir())
    code, out, err = call("quantize", str(own), "--max-changed", "0.5")
    assert (code, out) == (2, "")
    assert "--max-changed is for --shortlist: give --shortlist too, or leave it out." in err
    assert sorted(own.iterdir()) == before
    monkeypatch.setenv("HEED_QUANTIZE_MAX_CHANGED", "0.5")
    assert call("quantize", str(own))[0] == 0


def test_a_share_is_a_number(call: Callable[..., Any], own: Path) -> None:
    code, _, err = call("quantize", str(own), "--shortlist", "--max-changed", "nan")
    assert code == 2
    assert "'--max-changed': 'nan' is not a number." in err


@pytest.fixture
def run(own: Path) -> Path:
    """The model with the pairs that a run folder holds."""
    vocab = load_bundle(own).src_vocab
    pairs = [Pair("A man is riding a bike.", "Ein Mann fährt Fahrrad.", target_lang="de")] * 20
    (own / "data").mkdir()
    with Store.create(own / "data" / "train.bin", vocab.hash, vocab.hash) as writer:
        for pair in pairs:
            writer.add(vocab.encode(pair.src), vocab.encode(pair.tgt))
    write_pairs(own / "data" / "dev.tsv", pairs[:2])
    return own


def test_a_shortlist_is_learned_measured_and_used(call: Callable[..., Any], run: Path) -> None:
    code, out, err = call("quantize", str(run), "--shortlist", "--max-changed", "1")
    assert code == 0
    assert "from 20 pairs" in err
    assert "2 of 2 translations change\n" in out
    file = run / "shortlist.safetensors"
    assert file.exists()
    sentence = ("translate", "-m", str(run), "A man is riding a bike.")
    _, short, _ = call(*sentence)
    _, whole, _ = call(*sentence, "--no-shortlist")
    # The model is random and says anything; with the list, only what is in the pairs.
    known = {*"A man is riding a bike.", *"Ein Mann fährt Fahrrad."}
    assert {*short.strip()} <= known
    assert not {*whole.strip()} <= known
    file.write_bytes(file.read_bytes()[:-1])
    code, _, err = call(*sentence)
    assert code == 1
    assert "shortlist.safetensors is cut short" in err
    assert call(*sentence, "--no-shortlist")[0] == 0


def test_a_shortlist_that_changes_too_much_is_not_kept(call: Callable[..., Any], run: Path) -> None:
    assert call("quantize", str(run), "--shortlist", "--max-changed", "1")[0] == 0
    code, out, _ = call("quantize", str(run), "--shortlist", "--max-changed", "0")
    assert code == 0
    assert "1 of 1 translations change, too many" in out
    assert "no shortlist: every faster one changes more than 0.00%" in out
    _, short, _ = call("translate", "-m", str(run), "A man.")
    assert short == call("translate", "-m", str(run), "A man.", "--no-shortlist")[1]


def test_a_shortlist_goes_with_a_folder_of_its_own(
    call: Callable[..., Any], run: Path, tmp_path: Path
) -> None:
    small = tmp_path / "small"
    wish = ("--shortlist", "--max-changed", "1", "--out", str(small))
    assert call("quantize", str(run), *wish)[0] == 0
    assert (small / "shortlist.safetensors").exists()
    assert not (run / "shortlist.safetensors").exists()


def test_without_pairs_there_is_no_shortlist(call: Callable[..., Any], own: Path) -> None:
    code, _, err = call("quantize", str(own), "--shortlist")
    assert code == 1
    assert "has no training pairs, which a shortlist needs" in err


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.slow
@pytest.mark.reliability
def test_a_kill_at_any_point_leaves_a_model_and_the_same_command_finishes(
    call: Any, run: Any, tmp_path: Path, fork: Any, was_killed: Any
) -> None:
    from heed.cli.main import run as run_command

    (run / "README.md").write_bytes(b"license: mine\n")
    # A model that was rounded before to other numbers: both files are replaced.
    save_int8(load_bundle(run), {"other": np.zeros(4, np.float32)})
    wish = ("--shortlist", "--max-changed", "1", "--threads", "1")
    n_faults, expected, found = 0, None, set()
    sentence = "A man is riding a bike."
    for fault in (None, *range(1, 100)):
        folder = Path(shutil.copytree(run, tmp_path / "copy"))
        died = was_killed(fork(lambda f=folder: run_command(("quantize", str(f), *wish)), fault))
        verify_directory(folder)
        found.add(frozenset(read_manifest(folder).files))
        assert call("translate", "-m", str(folder), "--dtype", "float32", sentence)[0] == 0
        if died:
            n_faults += 1
            assert call("quantize", str(folder), *wish)[0] == 0
        expected = expected or files_of(folder)
        assert files_of(folder) == expected
        assert call("translate", "-m", str(folder), sentence)[0] == 0
        shutil.rmtree(folder)
        if fault and not died:
            break
    assert n_faults >= 15
    assert len(found) == 2, "without the shortlist, and with it"
    assert expected["README.md"] == b"license: mine\n"


def test_a_full_disk_leaves_the_model_as_it_was(heed: Callable[..., Any], own: Path) -> None:
    before = files_of(own)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))

    done = heed("quantize", str(own), preexec_fn=limit)
    assert done.returncode == 1
    assert b"Raise that limit, or use another disk." in done.stderr
    assert files_of(own) == before
    assert heed("quantize", str(own)).returncode == 0
    assert verify_directory(own).files.keys() > {"model.int8.safetensors"}


def test_a_model_that_lost_its_manifest_is_restored_with_a_remark(
    call: Callable[..., Any], own: Path
) -> None:
    (own / "manifest.json").unlink()
    code, _, err = call("translate", "-m", str(own), "A man.")
    assert code == 1
    assert f"again: heed quantize {own}" in err
    code, _, err = call("quantize", str(own))
    assert code == 0
    assert f"{own} had no manifest.json. Its config, vocabulary and weights fit together" in err
    assert err.splitlines()[0].endswith("in the weights would not be detected.")
    assert call("translate", "-m", str(own), "A man.")[0] == 0


def test_a_model_of_heed_0_1_is_restored_though_its_vocabulary_cannot_be_checked(
    call: Callable[..., Any], own: Path
) -> None:
    (own / "manifest.json").unlink()
    weights = own / "model.safetensors"
    tensors = decode_tensors(weights.read_bytes(), weights)
    weights.write_bytes(encode_tensors(tensors))
    code, _, err = call("quantize", str(own))
    assert code == 0
    assert "would not be detected, nor the vocabulary of another model.\n" in err


def test_a_link_to_a_file_outside_is_replaced_not_followed(
    call: Callable[..., Any], own: Path, tmp_path: Path
) -> None:
    (tmp_path / "victim").write_bytes(b"mine")
    (own / "model.int8.safetensors").symlink_to("../victim")
    assert call("quantize", str(own))[0] == 0
    assert (tmp_path / "victim").read_bytes() == b"mine"
    assert not (own / "model.int8.safetensors").is_symlink()
