"""A run that starts from a model: what it takes over, what it adds, what it refuses."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heed.bundle.bundle import load_bundle
from heed.data.corpus import Corpus
from heed.data.readers import ParallelFiles
from heed.disk.files import read_json_lines
from heed.errors import ConfigError, FormatError, RunError
from heed.text.extend import new_spellings
from heed.train.recipe.choose import FINE_TUNING_RATE
from heed.train.run.artifacts import best_validation
from heed.train.start.finetune import grown_weights
from heed.translate.translator import load

Run = Callable[..., Any]

CHARS = {"tokenizer": {"kind": "char"}}


def digest(out: Path) -> str:
    return hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()


def listing(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


@pytest.fixture
def parent(small_run: Run, tmp_path: Path) -> str:
    small_run(tmp_path / "parent", settings=CHARS, max_steps=8)
    return str(tmp_path / "parent")


@pytest.fixture
def corpus(small_corpus: Corpus, tmp_path: Path) -> Corpus:
    """The parent's sentences and some with letters that it has never seen."""
    (src, tgt) = map(Path, small_corpus.train[0].files)
    files = []
    for side, path in (("de", src), ("xx", tgt)):
        lines = path.read_text(encoding="utf-8").splitlines()
        new = [line.replace("a", "ä").replace("ei", "øi") for line in lines]
        files.append(tmp_path / f"new.{side}")
        files[-1].write_text("".join(f"{line}\n" for line in new), encoding="utf-8")
    return Corpus(
        train=(
            ParallelFiles(files=(str(files[0]), str(files[1])), source_lang="de", target_lang="xx"),
        )
    )


def test_a_child_has_the_shape_of_its_parent_and_pieces_for_new_letters(
    small_run: Run, parent: str, corpus: Corpus, tmp_path: Path
) -> None:
    before = listing(Path(parent))
    out = tmp_path / "child"
    _, events = small_run(out, corpus=corpus, parent=parent, ema_decay=0.9)
    assert listing(Path(parent)) == before
    old, new = load_bundle(parent), load_bundle(out)
    assert new.config.d_model == 16
    added = new.src_vocab.pieces(range(old.src_vocab.size, new.src_vocab.size))
    assert set(added) == {"ä", "ø"}
    assert new.config.src_vocab_size == new.src_vocab.size == old.src_vocab.size + 2
    assert isinstance(load(out)("øin hund"), str)
    recipe = (out / "recipe.toml").read_text()
    assert f"matrix_learning_rate = {FINE_TUNING_RATE * 0.01}\n" in recipe
    assert f"\nlearning_rate = {FINE_TUNING_RATE * 0.008}\n" in recipe
    assert 'kind = "char"' in recipe
    validations = [event for event in events if event["kind"] == "validation"]
    assert [event["step"] for event in validations] == [0, 5, 10, 12]
    assert validations[0]["is_best"]


def test_a_new_piece_starts_as_the_mean_of_those_that_spelt_it(
    small_run: Run, parent: str, corpus: Corpus, tmp_path: Path
) -> None:
    small_run(tmp_path / "child", corpus=corpus, parent=parent, stop_at=1)
    old, vocab = load_bundle(parent), load_bundle(tmp_path / "child").src_vocab
    rows = grown_weights(old, vocab, vocab)["embed_src.tokens.weight"]
    table = torch.tensor(old.weights["embed_src.tokens.weight"])
    assert torch.equal(rows[: len(table)], table)
    assert old.src_vocab.pieces(new_spellings(old.src_vocab, vocab)[0]) == ["<0xC3>", "<0xA4>"]
    for row, ids in zip(rows[len(table) :], new_spellings(old.src_vocab, vocab), strict=True):
        assert torch.equal(row, table[ids].mean(dim=0))


def test_a_child_begins_where_its_parent_stands(
    small_run: Run, parent: str, tmp_path: Path
) -> None:
    """On the same corpus nothing is new, so the first validation finds the parent's very loss."""
    _, events = small_run(tmp_path / "child", parent=parent, stop_at=1)
    first = next(event for event in events if event["kind"] == "validation")
    best = best_validation(Path(parent))
    assert best and first["loss"] == pytest.approx(best["loss"], rel=1e-5)


def test_paused_before_and_after_the_first_step_equals_undisturbed(
    small_run: Run, parent: str, corpus: Corpus, tmp_path: Path
) -> None:
    run: dict[str, Any] = {"corpus": corpus, "settings": {}, "parent": parent}
    small_run(tmp_path / "whole", **run)

    def fail(event: dict[str, Any]) -> None:
        if event["kind"] == "step":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small_run(tmp_path / "parts", **run, on=fail)
    small_run(tmp_path / "parts", **run, stop_at=3)
    small_run(tmp_path / "parts", **run)
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")
    events = read_json_lines(tmp_path / "parts" / "metrics.jsonl")
    assert [e["step"] for e in events if e["kind"] == "validation"] == [0, 5, 10, 12]


def test_a_child_of_one_direction_can_learn_the_other(
    small_run: Run, parent: str, tmp_path: Path
) -> None:
    out = tmp_path / "child"
    small_run(out, settings={"data": {"both_directions": True}}, parent=parent, max_steps=2)
    assert load_bundle(out).target_langs == ("xx", "de")
    grandchild = tmp_path / "grandchild"
    small_run(grandchild, parent=str(out), max_steps=2)  # tags stay
    assert load_bundle(grandchild).target_langs == ("xx", "de")
    assert load_bundle(grandchild).directions == (), "those of its parent, which are both"
    assert load_bundle(grandchild).src_vocab.hash == load_bundle(out).src_vocab.hash


def test_a_changed_parent_is_refused(small_run: Run, parent: str, tmp_path: Path) -> None:
    small_run(tmp_path / "child", parent=parent, stop_at=1)
    facts = json.loads((tmp_path / "child" / "parent.json").read_text())
    assert facts["folder"] == parent
    shutil.rmtree(parent)
    small_run(Path(parent), settings=CHARS, max_steps=8, seed=2)
    with pytest.raises(
        RunError, match=rf"was started from .* hash was {facts['sha256'][:12]}, but now"
    ):
        small_run(tmp_path / "child", parent=parent)
    shutil.rmtree(parent)
    with pytest.raises(FormatError, match="there is no model folder"):
        small_run(tmp_path / "child", parent=parent)


def test_a_child_may_be_deeper_or_shallower_than_its_parent(
    small_run: Run, parent: str, tmp_path: Path
) -> None:
    deep, rates = {"n_encoder_layers": 2}, {"learning_rate": 0.0, "matrix_learning_rate": 0.0}
    child, grandchild = tmp_path / "child", tmp_path / "grandchild"
    small_run(child, settings={"model": deep}, parent=parent, stop_at=1, **rates)
    old, new = load_bundle(parent).weights, load_bundle(child).weights
    for name, weight in new.items():
        assert np.array_equal(weight, old[name.replace("encoder.1.", "encoder.0.")])
    shallow = {"n_encoder_layers": 1}
    small_run(grandchild, settings={"model": shallow}, parent=str(child), stop_at=1, **rates)
    assert load_bundle(grandchild).weights.keys() == old.keys()


def test_a_child_may_read_its_target_without_its_parents_self_attention(
    small_run: Run, parent: str, tmp_path: Path
) -> None:
    """As a student does: all other weights stay."""
    rates = {"learning_rate": 0.0, "matrix_learning_rate": 0.0}
    settings = {"model": {"decoder_self": "ssru"}}
    small_run(tmp_path / "child", settings=settings, parent=parent, stop_at=1, **rates)
    old, new = load_bundle(parent).weights, load_bundle(tmp_path / "child").weights
    assert {name for name in new if name not in old} == {
        f"decoder.0.self_attention.cell.{name}" for name in ("weight", "bias")
    }
    gone = {name for name in old if name not in new}
    assert all(name.startswith("decoder.0.self_attention.") for name in gone)
    for name in old.keys() & new.keys():
        assert np.array_equal(old[name], new[name])


def test_the_parents_very_pieces_can_be_kept(
    small_run: Run, parent: str, corpus: Corpus, tmp_path: Path
) -> None:
    kept: dict[str, Any] = {"tokenizer": {"vocab_from": parent}}
    run: dict[str, Any] = {"corpus": corpus, "settings": kept, "parent": parent, "stop_at": 1}
    small_run(tmp_path / "child", **run)
    assert load_bundle(tmp_path / "child").src_vocab.hash == load_bundle(parent).src_vocab.hash
    small_run(tmp_path / "other", corpus=corpus, settings=CHARS, stop_at=1)
    kept["tokenizer"]["vocab_from"] = str(tmp_path / "other" / "data")
    with pytest.raises(ConfigError, match=r"tokenizer\.vocab_from cannot be set with --from"):
        small_run(tmp_path / "third", **run)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"model": {"d_model": 32}}, r"model\.d_model cannot be set with --from: .* where it is 16\."),
    ({"tokenizer": {"kind": "bpe"}}, r"tokenizer\.kind cannot be set with --from: it comes from"),
    ({"preset": "tiny"}, "preset cannot be chosen with --from: the model keeps the shape of"),
]


def test_another_shape_than_the_parents_is_refused(
    small_run: Run, parent: str, tmp_path: Path
) -> None:
    for settings, words in REFUSED:
        with pytest.raises(ConfigError, match=words):
            small_run(tmp_path / "child", settings=settings, parent=parent)
    assert not (tmp_path / "child" / "asked.json").exists()
    free = {"model": {"dropout": 0.4, "d_model": 16}, "tokenizer": {"kind": "char"}}
    small_run(tmp_path / "child", settings=free, parent=parent, stop_at=1)
