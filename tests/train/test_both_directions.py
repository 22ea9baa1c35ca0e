"""One model for both ways: what it learns from, how it is chosen, what its folder says."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heed.bundle.bundle import load_bundle
from heed.data.corpus import Corpus
from heed.data.prepared import open_prepared
from heed.disk.files import read_json_lines
from heed.errors import ConfigError, RunError
from heed.train.run.calibrate import development_pairs, learn_doubts
from heed.translate.translator import load

Run = Callable[..., Any]

BOTH = {"data": {"both_directions": True}, "tokenizer": {"vocab_size": 340}}


def digest(out: Path) -> str:
    return hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()


def test_a_model_of_both_directions_translates_either_way_and_says_so(
    small_run: Run, small_corpus: Corpus, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    small_run(out, settings=BOTH)
    bundle = load_bundle(out)
    assert (bundle.source_lang, bundle.target_lang) == ("de", "xx")
    assert bundle.target_langs == bundle.src_vocab.languages == ("xx", "de")
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "# de ↔ xx" in card
    assert '`translator(text, target_lang="xx")` or `translator(text, target_lang="de")`' in card
    assert "chrF2 into de" in card
    translator = load(out)
    assert translator("ein hund") == translator("ein hund", target_lang="xx")
    assert isinstance(translator("nie dnuh", target_lang="de"), str)
    assert len(translator.score(["nie"], ["ein"], target_lang="de")) == 1
    validations = [e for e in read_json_lines(out / "metrics.jsonl") if e["kind"] == "validation"]
    assert set(validations[-1]["by_language"]) == {"xx", "de"}
    data = open_prepared(small_corpus, out / "data")
    assert len(data.train) == 2 * data.report["train"]
    assert len(data.dev) == 2 * data.report["dev"]


def test_both_directions_paused_and_continued_equal_undisturbed(
    small_run: Run, tmp_path: Path
) -> None:
    small_run(tmp_path / "whole", settings=BOTH)
    small_run(tmp_path / "parts", settings=BOTH, stop_at=4)
    small_run(tmp_path / "parts", settings=BOTH)
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")


def test_a_run_of_one_direction_does_not_become_one_of_two(small_run: Run, tmp_path: Path) -> None:
    small_run(tmp_path / "run", settings={**BOTH, "data": {}}, stop_at=1)
    with pytest.raises(RunError, match=r"data\.both_directions = the default, .* sets True"):
        small_run(tmp_path / "run", settings=BOTH)


def test_both_directions_need_one_vocabulary(small_run: Run, tmp_path: Path) -> None:
    settings = {**BOTH, "tokenizer": {"joint": False}}
    with pytest.raises(ConfigError, match=r"set tokenizer\.joint=true, or leave it out"):
        small_run(tmp_path / "run", settings=settings)


def test_each_direction_writes_no_pieces_of_the_other_unless_a_parent_may_have(
    small_run: Run, tmp_path: Path
) -> None:
    small_run(tmp_path / "run", settings=BOTH)
    vocab = load_bundle(tmp_path / "run").tgt_vocab
    to_german, to_reversed = (set(vocab.foreign[vocab.language_id(lang)]) for lang in ("de", "xx"))
    assert to_german and to_reversed and not to_german & to_reversed
    assert to_reversed & {*vocab.encode("ein hund")}
    both = {"data": {"both_directions": True}}
    small_run(tmp_path / "child", settings=both, parent=str(tmp_path / "run"))
    assert load_bundle(tmp_path / "child").tgt_vocab.foreign == {}


def test_doubts_are_learned_from_the_pairs_of_both_directions(
    small_run: Run, tmp_path: Path
) -> None:
    small_run(tmp_path / "run", settings=BOTH)
    translator = load(tmp_path / "run")
    pairs = development_pairs(tmp_path / "run", translator)
    assert {pair.target_lang for pair in pairs[:2]} == {"xx", "de"}
    assert {pair.target_lang for pair in development_pairs(tmp_path / "run", translator, "de")} == {
        "de"
    }
    asked: list[tuple[str | None, str]] = []

    def remember(texts: list[str], **options: Any) -> Any:
        asked.extend((options["target_lang"], text) for text in texts)
        return translate(texts, **options)

    translate = translator.translate
    translator.translate = remember  # type: ignore[method-assign, assignment]
    judgment = learn_doubts(translator, (pairs * 20)[:120], None)
    assert judgment.n_pairs == 120
    assert {(pair.target_lang, pair.src) for pair in pairs} == set(asked)
