"""A model folder: saved and loaded is as before, and whatever is wrong with it is said."""

import json
import math
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heed.bundle.beside import save_beside
from heed.bundle.bundle import (
    Bundle,
    bundle_files,
    load_bundle,
    restore_manifest,
    save_bundle,
    save_int8,
)
from heed.bundle.find import MEMORY, find_model_folder
from heed.compress.prune import prunable, pruned
from heed.disk.files import to_json
from heed.disk.folders import (
    Entry,
    Manifest,
    read_manifest,
    update_directory,
    verify_directory,
    write_directory,
)
from heed.disk.tensors import encode_tensors
from heed.engine.packed import save_rounded
from heed.errors import ConfigError, FormatError, RunError
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.families import stored_shapes, ties
from heed.text.known import KnownWords
from heed.text.memory import TranslationMemory
from heed.text.vocab import Vocab, train_vocab

SENTENCES = ["a man rides a bike", "two dogs run in the snow", "ein Mann", "zwei Hunde"]


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return train_vocab(SENTENCES, size=300, languages=("de", "no"))


@pytest.fixture(scope="module")
def small_vocab() -> Vocab:
    return train_vocab(["ein Mann", "zwei Hunde"], size=280, kind="char")


def make(src_vocab: Vocab, tgt_vocab: Vocab, **changes: Any) -> Bundle:
    config = ModelConfig(
        src_vocab_size=src_vocab.size,
        tgt_vocab_size=tgt_vocab.size,
        d_model=8,
        n_heads=2,
        d_ff=16,
        n_encoder_layers=1,
        n_decoder_layers=1,
        tied="three-way" if src_vocab is tgt_vocab else "output",
        pad_id=src_vocab.pad_id,
        bos_id=src_vocab.bos_id,
        eos_id=src_vocab.eos_id,
    )
    torch.manual_seed(1)
    return Bundle(
        config=config,
        weights={name: w.numpy() for name, w in build_model(config).state_dict().items()},
        src_vocab=src_vocab,
        tgt_vocab=tgt_vocab,
        source_lang="en",
        target_lang="de",
        decoding={"beam_size": 5},
        **changes,
    )


@pytest.fixture
def bundle(vocab: Vocab) -> Bundle:
    return make(vocab, vocab)


def assert_same(after: Bundle, before: Bundle) -> None:
    assert after.config == before.config
    assert after.weights.keys() == before.weights.keys()
    assert all(np.array_equal(after.weights[name], before.weights[name]) for name in before.weights)
    assert after.src_vocab.hash == before.src_vocab.hash
    assert after.tgt_vocab.hash == before.tgt_vocab.hash
    names = ("source_lang", "target_lang", "target_langs", "directions", "decoding")
    assert [getattr(after, name) for name in names] == [getattr(before, name) for name in names]


def test_a_model_comes_back_as_it_was(tmp_path: Path, bundle: Bundle) -> None:
    save_bundle(tmp_path / "model", bundle)
    after = load_bundle(tmp_path / "model")
    assert_same(after, bundle)
    assert after.path == tmp_path / "model"
    assert {weights.dtype for weights in after.weights.values()} == {np.dtype(np.float32)}
    assert sorted(os.listdir(tmp_path / "model")) == [
        "README.md",
        "config.json",
        "manifest.json",
        "model.safetensors",
        "spm.model",
    ]


def test_two_vocabularies_come_back_apart(tmp_path: Path, vocab: Vocab, small_vocab: Vocab) -> None:
    before = make(vocab, small_vocab)
    save_bundle(tmp_path / "model", before)
    assert_same(load_bundle(tmp_path / "model"), before)
    assert {"source.spm", "target.spm"} <= set(os.listdir(tmp_path / "model"))


def test_several_target_languages_come_back(tmp_path: Path, vocab: Vocab) -> None:
    before = make(vocab, vocab, target_langs=("de", "no"))
    save_bundle(tmp_path / "model", before)
    assert_same(load_bundle(tmp_path / "model"), before)


def test_directions_come_back_and_are_not_written_where_there_are_none(
    tmp_path: Path, vocab: Vocab
) -> None:
    directions = (("en", "de"), ("en", "no"), ("no", "de"))
    before = make(vocab, vocab, target_langs=("de", "no"), directions=directions)
    save_bundle(tmp_path / "model", before)
    kept = {each.name: np.array([0]) for each in prunable(before.config, "heads")}
    save_bundle(tmp_path / "smaller", pruned(load_bundle(tmp_path / "model"), kept))
    save_rounded(load_bundle(tmp_path / "model"), tmp_path / "int8")
    for name in ("model", "smaller", "int8"):
        assert load_bundle(tmp_path / name, prefer_int8=True).directions == directions
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "# en → de, no; no → de\n" in card
    bare = json.loads(bundle_files(replace(before, directions=()))["config.json"])
    assert "directions" not in bare


def test_a_tied_weight_is_stored_once_and_comes_back_tied(tmp_path: Path, bundle: Bundle) -> None:
    shapes, aliases = stored_shapes(bundle.config), ties(bundle.config)
    assert set(aliases) == {"embed_tgt.tokens.weight", "output.weight"}
    n_numbers = sum(math.prod(shape) for shape in shapes.values())
    save_bundle(tmp_path / "model", bundle)
    size = (tmp_path / "model" / "model.safetensors").stat().st_size
    assert 4 * n_numbers < size < 4 * n_numbers + 8000, "numbers of four bytes, and a header"
    weights = load_bundle(tmp_path / "model").weights
    assert weights["output.weight"] is weights["embed_src.tokens.weight"]


def test_weights_may_come_without_their_further_names(tmp_path: Path, bundle: Bundle) -> None:
    shapes = stored_shapes(bundle.config)
    once = {name: bundle.weights[name] for name in shapes}
    save_bundle(tmp_path / "model", replace(bundle, weights=once))
    assert_same(load_bundle(tmp_path / "model"), bundle)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_weights_of_another_precision_come_back_as_float32(
    tmp_path: Path, bundle: Bundle, dtype: type
) -> None:
    others: Any = {name: weights.astype(dtype) for name, weights in bundle.weights.items()}
    save_bundle(tmp_path / "model", replace(bundle, weights=others))
    after = load_bundle(tmp_path / "model").weights
    assert {weights.dtype for weights in after.values()} == {np.dtype(np.float32)}
    assert all(np.array_equal(after[name], others[name].astype(np.float32)) for name in after)


def test_weights_beyond_float32_are_refused(tmp_path: Path, bundle: Bundle) -> None:
    huge = {name: np.full(weights.shape, 1e39) for name, weights in bundle.weights.items()}
    save_bundle(tmp_path / "model", replace(bundle, weights=huge))
    with pytest.raises(FormatError, match="holds a number out of float32's range"):
        load_bundle(tmp_path / "model")


def test_weights_that_were_read_cannot_be_written_into(tmp_path: Path, bundle: Bundle) -> None:
    """They may be the very bytes that were compared with the manifest, and tied ones are one."""
    save_bundle(tmp_path / "model", bundle)
    for weights in load_bundle(tmp_path / "model").weights.values():
        with pytest.raises(ValueError, match="read-only"):
            weights[...] = 0


def test_a_model_is_read_without_torch(tmp_path: Path, bundle: Bundle) -> None:
    save_bundle(tmp_path / "model", bundle)
    code = """
import sys
import heed.bundle.bundle, heed.machine.threads
heed.bundle.bundle.load_bundle(sys.argv[1])
heed.machine.threads.choose_threads()
sys.exit("torch was imported" if "torch" in sys.modules else 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model")],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_saving_again_replaces_a_model_whole(tmp_path: Path, bundle: Bundle) -> None:
    save_bundle(tmp_path / "model", bundle)
    save_bundle(tmp_path / "model", replace(bundle, target_lang="no"))
    assert load_bundle(tmp_path / "model").target_lang == "no"
    assert os.listdir(tmp_path) == ["model"]


def test_saving_into_a_run_folder_keeps_what_else_is_there(tmp_path: Path, bundle: Bundle) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "log.jsonl").write_bytes(b"{}\n")
    save_bundle(tmp_path, bundle)
    assert_same(load_bundle(tmp_path), bundle)
    assert (tmp_path / "log.jsonl").read_bytes() == b"{}\n"


def test_weights_that_are_not_finite_are_not_saved(tmp_path: Path, bundle: Bundle) -> None:
    name = next(name for name in bundle.weights if name.startswith("encoder."))
    bad = {**bundle.weights, name: np.full_like(bundle.weights[name], np.nan)}
    with pytest.raises(RunError, match=f"{re.escape(name)} holds a number that is not finite"):
        save_bundle(tmp_path / "model", replace(bundle, weights=bad))
    assert not (tmp_path / "model").exists()


def test_the_model_card_names_languages_and_numbers(tmp_path: Path, vocab: Vocab) -> None:
    save_bundle(
        tmp_path / "model",
        make(vocab, vocab, target_langs=("de", "no")),
        numbers={"bleu": 41.23456, "parameters": 7578624, "signature": "nrefs:1"},
    )
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert card.startswith('---\nlanguage:\n- "en"\n- "de"\n- "no"\nlicense: unknown\n')
    assert "library_name: heed\npipeline_tag: translation\n---\n\n# en → de, no\n" in card
    assert "| BLEU on development sentences | 41.23 |\n| parameters | 7,578,624 |\n" in card
    assert "| signature | nrefs:1 |" in card


def test_a_card_without_languages_has_no_empty_list(tmp_path: Path, bundle: Bundle) -> None:
    bare = replace(bundle, source_lang="", target_lang="")
    card = bundle_files(bare)["README.md"].decode()
    assert "language:" not in card
    assert "# ? → ?" in card


def test_the_card_may_be_edited(tmp_path: Path, bundle: Bundle) -> None:
    save_bundle(tmp_path / "model", bundle)
    (tmp_path / "model" / "README.md").write_text("license: mine")
    load_bundle(tmp_path / "model")


LICENSED = b"---\nlicense: mit\n---\n\nMy own words.\n"


def test_an_edited_card_is_neither_overwritten_nor_noticed(tmp_path: Path, bundle: Bundle) -> None:
    for name, others in (("model", ()), ("run", ("log.jsonl",)), ("old", ("log.jsonl",))):
        folder = tmp_path / name
        save_bundle(folder, bundle)
        for other in others:
            (folder / other).write_bytes(b"{}\n")
        if name == "old":  # heed 0.1 listed the card
            manifest = read_manifest(folder)
            files = {**manifest.files, "README.md": Entry.of((folder / "README.md").read_bytes())}
            old = Manifest(files=files, metadata={}).to_bytes()
            (folder / "manifest.json").write_bytes(old)
        (folder / "README.md").write_bytes(LICENSED)
        save_int8(load_bundle(folder), {"a": np.zeros(4, np.float32)})
        save_bundle(folder, bundle, numbers={"bleu": 12.0})
        save_int8(load_bundle(folder), {"a": np.zeros(4, np.float32)}, folder)
        assert (folder / "README.md").read_bytes() == LICENSED
        verify_directory(folder)


def test_a_card_that_nobody_edited_gets_the_new_numbers(tmp_path: Path, bundle: Bundle) -> None:
    card = tmp_path / "README.md"
    (tmp_path / "log.jsonl").write_bytes(b"{}\n")
    for bleu in (12.0, 13.0):
        save_bundle(tmp_path, bundle, numbers={"bleu": bleu})
        assert f"| {bleu:.4g} |" in card.read_text(encoding="utf-8")
    text = b"a card of heed 0.1\n"
    card.write_bytes(text)
    files = {**read_manifest(tmp_path).files, "README.md": Entry.of(text)}
    (tmp_path / "manifest.json").write_bytes(Manifest(files=files, metadata={}).to_bytes())
    save_bundle(tmp_path, bundle, numbers={"bleu": 14.0})
    assert "| 14 |" in card.read_text(encoding="utf-8")


def test_a_model_without_its_manifest_is_restored_from_files_that_fit(
    tmp_path: Path, bundle: Bundle
) -> None:
    """What heed 0.1 left when it was killed while it added int8 weights."""
    save_bundle(tmp_path, bundle)
    save_int8(load_bundle(tmp_path), {"a": np.zeros(4, np.float32)})
    assert not restore_manifest(tmp_path), "there is nothing to restore"
    (tmp_path / "manifest.json").unlink()
    (tmp_path / "model.int8.safetensors.tmp-0123abcd").write_bytes(b"half")
    (tmp_path / "notes.tmp-0123abcd").write_bytes(b"mine")
    words = (
        rf"{tmp_path} has no manifest.json: .* write manifest.json again: heed quantize {tmp_path}"
    )
    with pytest.raises(FormatError, match=words):
        load_bundle(tmp_path)
    assert restore_manifest(tmp_path)
    assert_same(load_bundle(tmp_path), bundle)
    assert "model.int8.safetensors" not in verify_directory(tmp_path).files
    assert [path.name for path in tmp_path.glob("*.tmp-*")] == ["notes.tmp-0123abcd"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("config.json", b"{}", "was not written by heed"),
        ("model.safetensors", b"", "model.safetensors"),
        ("spm.model", b"", "spm.model"),
    ],
)
def test_a_model_without_its_manifest_is_not_restored_from_files_that_do_not_fit(
    tmp_path: Path, bundle: Bundle, name: str, content: bytes, words: str
) -> None:
    save_bundle(tmp_path, bundle)
    (tmp_path / "manifest.json").unlink()
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError, match=words):
        restore_manifest(tmp_path)
    assert not (tmp_path / "manifest.json").exists()


@pytest.mark.parametrize("name", ["spm.model", "source.spm", "target.spm"])
def test_a_manifest_does_not_vouch_for_the_vocabulary_of_another_model(
    tmp_path: Path, name: str
) -> None:
    own, other = (train_vocab([*SENTENCES, sign], size=400, kind="char") for sign in "xy")
    assert own.size == other.size
    bundle = make(own, own if name == "spm.model" else other)
    save_bundle(tmp_path, bundle)
    (tmp_path / "manifest.json").unlink()
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes((own if name == "target.spm" else other).to_bytes())
    with pytest.raises(FormatError, match=r"vocabulary that its weights were not trained with\. R"):
        restore_manifest(tmp_path)
    assert not (tmp_path / "manifest.json").exists()
    (tmp_path / name).write_bytes(whole)
    assert restore_manifest(tmp_path) is True
    (tmp_path / "manifest.json").unlink()
    weights = {name: bundle.weights[name] for name in stored_shapes(bundle.config)}
    (tmp_path / "model.safetensors").write_bytes(encode_tensors(weights))  # as heed 0.1 wrote it
    assert restore_manifest(tmp_path) is False


def test_a_run_without_its_manifest_is_left_to_heed_train(tmp_path: Path, bundle: Bundle) -> None:
    save_bundle(tmp_path / "checkpoints" / "best", bundle)
    save_bundle(tmp_path, bundle)
    (tmp_path / "manifest.json").unlink()
    assert not restore_manifest(tmp_path)
    with pytest.raises(ConfigError, match="Finish the run with the same heed train command, or"):
        save_int8(load_bundle(tmp_path), {"a": np.zeros(4, np.float32)})


def test_any_flipped_bit_is_noticed(tmp_path: Path, bundle: Bundle) -> None:
    save_bundle(tmp_path, bundle)
    names = ("config.json", "manifest.json", "model.safetensors", "spm.model")
    chosen = random.Random(1)
    for _ in range(200):
        path = tmp_path / chosen.choice(names)
        data = bytearray(path.read_bytes())
        place, bit = chosen.randrange(len(data)), 1 << chosen.randrange(8)
        data[place] ^= bit
        path.write_bytes(data)
        with pytest.raises(FormatError, match=re.escape(str(path))):
            load_bundle(tmp_path)
        data[place] ^= bit
        path.write_bytes(data)
    load_bundle(tmp_path)


def test_any_truncation_is_noticed(tmp_path: Path, bundle: Bundle) -> None:
    save_bundle(tmp_path, bundle)
    for name in ("config.json", "manifest.json", "model.safetensors", "spm.model"):
        data = (tmp_path / name).read_bytes()
        for n_bytes in (0, 1, 7, 8, 9, len(data) // 2, len(data) - 1):
            (tmp_path / name).write_bytes(data[:n_bytes])
            with pytest.raises(FormatError, match=re.escape(name)):
                load_bundle(tmp_path)
        (tmp_path / name).unlink()
        with pytest.raises(FormatError, match=re.escape(name)):
            load_bundle(tmp_path)
        (tmp_path / name).write_bytes(data)
    load_bundle(tmp_path)


Change = Callable[[dict[str, Any]], object]

CONFIGS: dict[str, tuple[Change, str]] = {
    "foreign": (lambda c: c.pop("format"), "was not written by heed: format is None"),
    "newer": (lambda c: c.update(format_version=2), "has format_version 2; this heed reads 1"),
    "version": (lambda c: c.update(format_version=True), "has format_version True; this heed"),
    "misspelled": (lambda c: c.update(source_lnag=""), "source_lnag is not .*mean source_lang?"),
    "unknown": (lambda c: c.update(zzz=1), "zzz is not a key of a model."),
    "no model": (lambda c: c.pop("model"), "model must be an object, but is None"),
    "language": (lambda c: c.update(source_lang=3), "source_lang must be a string, but is 3"),
    "languages": (lambda c: c.update(target_langs="de"), "target_langs must be a list of strings"),
    "directions": (lambda c: c.update(directions="en"), "directions must be a list of .*'en'"),
    "no pair": (lambda c: c.update(directions=[["en"]]), r"directions must .*but is \[\['en'\]\]"),
    "elsewhere": (
        lambda c: c.update(directions=[["en", "de"], ["en", "fr"]]),
        "directions leads to fr, but the model's target languages are de",
    ),
    "no tag": (lambda c: c.update(target_langs=["de", "fr"]), "lists the target languages fr"),
    "decoding": (lambda c: c.update(decoding=[]), r"decoding must be an object, but is \[\]"),
    "width": (lambda c: c["model"].update(d_model=2**40), "config.json: model.d_model must be"),
    "layers": (lambda c: c["model"].update(n_encoder_layers=10**9), "model.n_encoder_layers must"),
    "many layers": (lambda c: c["model"].update(n_encoder_layers=999), "lacks .* and 11971 more"),
    "heads": (lambda c: c["model"].update(n_heads=3), "model.n_heads must divide"),
    "key": (lambda c: c["model"].update(d_modle=3), "d_modle is not .* did you mean model.d_model"),
    "vocab": (
        lambda c: c["model"].update(src_vocab_size=9, tgt_vocab_size=9),
        r"the source vocabulary has \d+ pieces, but the model was made for 9",
    ),
    "pad": (lambda c: c["model"].update(pad_id=1), "the source vocabulary and the model have"),
    "shape": (lambda c: c["model"].update(d_ff=17), r"must have the shape .*17.* but has .*16"),
    "more": (lambda c: c["model"].update(norm="pre"), "lacks decoder_norm.bias"),
    "fewer": (lambda c: c["model"].update(bias=False), "holds .*bias.* which the model's config"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "words"), CONFIGS.values(), ids=CONFIGS.keys())
def test_a_config_that_cannot_be_is_refused(
    tmp_path: Path, bundle: Bundle, change: Change, words: str
) -> None:
    files = bundle_files(bundle)
    config = json.loads(files["config.json"])
    change(config)
    write_directory(tmp_path / "model", {**files, "config.json": to_json(config)})
    with pytest.raises(FormatError, match=words):
        load_bundle(tmp_path / "model")


def test_a_folder_without_a_part_is_refused(tmp_path: Path, bundle: Bundle) -> None:
    files = bundle_files(bundle)
    parts = {"model.safetensors": "model.safetensors", "spm.model": "source.spm"}
    for name, missed in parts.items():
        rest = {other: data for other, data in files.items() if other != name}
        write_directory(tmp_path / "model", rest)
        with pytest.raises(FormatError, match=rf"model has no {missed}, or its manifest.json does"):
            load_bundle(tmp_path / "model")


def test_a_pickle_in_disguise_is_refused_and_runs_nothing(tmp_path: Path, bundle: Bundle) -> None:
    ran = []
    is_watching = [True]

    def watch(event: str, _: object) -> None:
        if is_watching[0] and event in ("pickle.find_class", "os.system", "subprocess.Popen"):
            ran.append(event)

    sys.addaudithook(watch)
    # What pickle.dumps gives for an object whose __reduce__ is os.system("touch …").
    order = f"cposix\nsystem\n(Vtouch {tmp_path}/was-run\ntR.".encode()
    for disguised, words in ((b"\x80\x02" + order, "a pickle"), (b"PK\x03\x04" + order, "a zip")):
        write_directory(tmp_path / "m", {**bundle_files(bundle), "model.safetensors": disguised})
        with pytest.raises(FormatError, match=f"model.safetensors is {words}.*could run a program"):
            load_bundle(tmp_path / "m")
    is_watching[0] = False
    assert not ran
    assert not (tmp_path / "was-run").exists()


@pytest.mark.parametrize("name", ["model.pt", "pytorch_model.bin", "best.ckpt", "m.tar", "x.NPZ"])
def test_foreign_weights_are_refused_unread(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    (tmp_path / name).chmod(0)
    for path in (tmp_path, tmp_path / name):
        with pytest.raises(FormatError, match=f"{name} was not opened: .* can run a program"):
            load_bundle(path)


def test_a_foreign_folder_with_a_config_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(FormatError, match=r"has no manifest.json: .* or not by heed\.$"):
        load_bundle(tmp_path)


def test_the_way_to_the_model_is_shown(tmp_path: Path, bundle: Bundle) -> None:
    save_bundle(tmp_path / "deep" / "german", bundle)
    with pytest.raises(FormatError) as caught:
        load_bundle(tmp_path / "deep")
    assert str(caught.value) == (
        f"model folder {tmp_path}/deep has no config.json; did you mean {tmp_path}/deep/german?"
    )
    (tmp_path / "deep" / "germann.log").write_text("a file is no model, and neither is any folder")
    (tmp_path / "deep" / "germans").mkdir()
    with pytest.raises(FormatError, match=r"there is no model folder .*did you mean .*/german\?"):
        load_bundle(tmp_path / "deep" / "germann")
    with pytest.raises(FormatError, match=r"there is no model folder .*/xyz\."):
        load_bundle(tmp_path / "none" / "xyz")
    with pytest.raises(FormatError, match="config.json is a file; a model is a folder with"):
        load_bundle(tmp_path / "deep" / "german" / "config.json")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "inner").mkdir()
    with pytest.raises(FormatError, match="inner has no config.json, so it holds no model"):
        load_bundle(tmp_path / "empty" / "inner")


def test_a_folder_that_cannot_be_read_does_not_hide_that_there_is_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the private folders of services in /tmp."""
    (tmp_path / "private").mkdir()
    is_file = Path.is_file

    def refused(path: Path) -> bool:
        if "private" in path.parts:
            raise PermissionError(13, "Permission denied", str(path))
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", refused)
    with pytest.raises(FormatError, match="has no config.json, so it holds no model"):
        find_model_folder(tmp_path)


def test_an_unfinished_run_stands_in_with_its_best_checkpoint(
    tmp_path: Path, bundle: Bundle
) -> None:
    checkpoints = tmp_path / "checkpoints"
    files = bundle_files(bundle)
    write_directory(checkpoints / "step-000100", files)
    write_directory(checkpoints / "step-000200", files)
    write_directory(checkpoints / "step-1000000", {"progress.json": b"{}"})
    (tmp_path / "config.json").write_text("{}")
    assert find_model_folder(tmp_path) == checkpoints / "step-000200"
    (checkpoints / "step-000200" / "spm.model").write_bytes(b"damaged")
    assert find_model_folder(tmp_path) == checkpoints / "step-000100"
    save_bundle(checkpoints / "best", bundle)
    assert find_model_folder(tmp_path) == checkpoints / "best"
    assert find_model_folder(checkpoints) == checkpoints / "best"
    assert find_model_folder(checkpoints / "step-000100") == checkpoints / "step-000100"
    update_directory(tmp_path, files)
    assert find_model_folder(tmp_path) == tmp_path


def test_a_run_whose_checkpoints_are_all_damaged_says_so(tmp_path: Path, bundle: Bundle) -> None:
    save_bundle(tmp_path / "checkpoints" / "best", bundle)
    (tmp_path / "checkpoints" / "best" / "spm.model").unlink()
    with pytest.raises(
        FormatError, match=r"has no checkpoint that can be used. .*spm.model is missing"
    ):
        load_bundle(tmp_path)


def test_a_checkpoint_translates_with_its_averaged_weights(tmp_path: Path, bundle: Bundle) -> None:
    shapes = stored_shapes(bundle.config)
    averaged = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    files = {**bundle_files(bundle), "average.safetensors": encode_tensors(averaged)}
    write_directory(tmp_path / "checkpoints" / "step-000001", files)
    weights = load_bundle(tmp_path).weights
    assert all((tensor == 1).all() for tensor in weights.values())


def test_known_words_are_kept_with_the_model(tmp_path: Path) -> None:
    vocab = train_vocab(SENTENCES, size=300)
    vocab.known_words = known = KnownWords.learn(lambda: [("two dogs run", "zwei Hunde")] * 2)
    save_bundle(tmp_path / "model", make(vocab, vocab))
    found = load_bundle(tmp_path / "model").src_vocab.known_words
    assert found is not None
    assert found.to_bytes() == known.to_bytes()
    vocab.known_words = None
    save_bundle(tmp_path / "model", make(vocab, vocab))
    assert load_bundle(tmp_path / "model").src_vocab.known_words is None


PAIRS = [("two dogs run", "zwei Hunde"), ("a dog", "ein Hund")]


@pytest.fixture
def remembering(vocab: Vocab) -> Bundle:
    """A bundle with a memory."""
    pairs = [(vocab.encode(src), vocab.encode(tgt)) for src, tgt in PAIRS]
    return make(vocab, vocab, memory=TranslationMemory.of(pairs, (vocab.size, vocab.size)))


def test_a_memory_is_kept_with_the_model(tmp_path: Path, remembering: Bundle) -> None:
    assert remembering.memory is not None
    save_bundle(tmp_path / "model", remembering)
    read = load_bundle(tmp_path / "model")
    assert read.memory is not None and len(read.memory) == len(PAIRS)
    assert read.memory.to_bytes() == remembering.memory.to_bytes()
    # It goes wherever the model goes, and not to a model without one.
    save_bundle(tmp_path / "copy", read)
    copied = load_bundle(tmp_path / "copy").memory
    assert copied is not None and copied.to_bytes() == remembering.memory.to_bytes()
    save_bundle(tmp_path / "copy", replace(read, memory=None))
    assert load_bundle(tmp_path / "copy").memory is None
    assert not (tmp_path / "copy" / MEMORY).exists()


def test_a_memory_may_be_added_beside_the_weights(tmp_path: Path, bundle: Bundle) -> None:
    save_bundle(tmp_path / "model", bundle)
    vocab = bundle.src_vocab
    for pairs in (PAIRS, PAIRS[:1]):
        ids = [(vocab.encode(src), vocab.encode(tgt)) for src, tgt in pairs]
        memory = TranslationMemory.of(ids, (vocab.size, vocab.size))
        save_beside(tmp_path / "model", {MEMORY: memory.to_bytes()}, replaced={MEMORY})
        read = load_bundle(tmp_path / "model")
        assert read.memory is not None and len(read.memory) == len(pairs)
    assert_same(read, bundle)


def test_a_damaged_memory_is_noticed(tmp_path: Path, remembering: Bundle) -> None:
    save_bundle(tmp_path / "model", remembering)
    path = tmp_path / "model" / MEMORY
    data = path.read_bytes()
    for wrong in (data[:-1] + bytes([data[-1] ^ 1]), data[:-1], b""):
        path.write_bytes(wrong)
        with pytest.raises(FormatError, match=rf"{MEMORY}"):
            load_bundle(tmp_path / "model")


def test_the_memory_of_another_model_is_refused(
    tmp_path: Path, bundle: Bundle, small_vocab: Vocab
) -> None:
    """Its ids are those of other vocabularies, though the file is whole."""
    save_bundle(tmp_path / "model", bundle)
    sizes = small_vocab.size, small_vocab.size
    foreign = TranslationMemory.of([([5, 6], [7])], sizes).to_bytes()
    for data in (foreign, encode_tensors({"src": np.zeros(3, np.int32)})):
        save_beside(tmp_path / "model", {MEMORY: data}, replaced={MEMORY})
        with pytest.raises(FormatError, match=rf"{MEMORY} is damaged, or belongs to another model"):
            load_bundle(tmp_path / "model")


def test_a_smaller_model_keeps_the_memory(tmp_path: Path, remembering: Bundle) -> None:
    """In int8, in a folder of its own, and with fewer heads."""
    assert remembering.memory is not None
    save_bundle(tmp_path / "model", remembering)
    read = load_bundle(tmp_path / "model")
    save_rounded(read)
    save_rounded(read, tmp_path / "small")
    kept = {each.name: np.array([0]) for each in prunable(read.config, "heads")}
    save_bundle(tmp_path / "pruned", pruned(read, kept))
    for name in ("model", "small", "pruned"):
        memory = load_bundle(tmp_path / name, prefer_int8=True).memory
        assert memory is not None and memory.to_bytes() == remembering.memory.to_bytes()
