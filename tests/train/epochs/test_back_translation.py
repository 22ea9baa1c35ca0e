"""Text in one language as training pairs: when it joins, what it is, and that nothing is lost."""

import hashlib
import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heed.data.corpus import Corpus
from heed.data.mono import Mono
from heed.data.prepare import BACK_TRANSLATED
from heed.data.prepared import Prepared, open_prepared
from heed.data.readers import Pair
from heed.data.store import Store
from heed.disk.files import read_json_lines
from heed.errors import ConfigError, DataError, RunError
from heed.text.extend import control_id
from heed.train.epochs import back_translation as backtranslate
from heed.train.epochs.back_translation import JoinedPairs, MonoPairs
from heed.train.recipe.folder import BACK_FILE, FACTS_FILE
from heed.train.step.control import Request, ask
from heed.translate.translator import Translator, load

Run = Callable[..., Any]
Fork = Callable[..., int]
WasKilled = Callable[[int], bool]

SETTINGS = {
    "data": {"both_directions": True, "back_translate": 0.4, "max_ratio": 1e6},
    "tokenizer": {"vocab_size": 340},
    "decoding": {"min_length": 2},
}
STEPS = {
    "max_steps": 32,
    "batch_tokens": 256,
    "validate_every": 16,
    "checkpoint_every": 7,
    "learning_rate": 0.02,
    "matrix_learning_rate": 0.05,
    "warmup_steps": 4,
}
"""Some five epochs; high rates, so that the model finds words by half of it."""


@pytest.fixture
def corpus(small_corpus: Corpus, tmp_path: Path) -> Corpus:
    """The pairs, and forty sentences of the target side alone."""
    chooser = random.Random(1)
    words = ("nie", "iewz", "ierd", "reiv", "tor", "ualb", "dnuh", "suah")
    lines = {" ".join(chooser.choices(words, k=chooser.randint(4, 7))) for _ in range(40)}
    path = tmp_path / "mono.xx"
    path.write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")
    return replace(small_corpus, mono=(Mono(file=str(path), language="xx"),))


def digest(out: Path) -> str:
    last = max(out.glob("checkpoints/step-*"))
    paths = [
        out / "model.safetensors",
        *sorted(last.glob("*.safetensors")),
        out / "data" / BACK_FILE,
    ]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def back(data: Prepared, out: Path) -> Store:
    return Store.open(out / "data" / BACK_FILE, data.src_vocab.hash, data.src_vocab.hash)


def test_past_half_of_the_budget_the_model_learns_from_its_own_translations(
    small_run: Run, corpus: Corpus, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    small_run(out, corpus=corpus, settings=SETTINGS, **STEPS)
    facts = json.loads((out / "data" / FACTS_FILE).read_text())
    data = open_prepared(corpus, out / "data")
    vocab = data.src_vocab
    assert facts["sentences"] == round(0.4 * data.report["train"])
    notes = [e for e in read_json_lines(out / "metrics.jsonl") if e["kind"] == "note"]
    (note,) = [note for note in notes if "sentences translated back" in note["text"]]
    assert STEPS["max_steps"] / 2 <= note["step"] < STEPS["max_steps"]
    assert note["samples"] == facts["samples"] != []
    pairs = back(data, out)
    assert 0 < len(pairs) == facts["pairs"]
    tags = [vocab.language_id("xx"), control_id(vocab, BACK_TRANSLATED)]
    mono = [vocab.decode(data.mono["xx"].tgt(i).tolist()) for i in range(len(data.mono["xx"]))]
    for number in range(len(pairs)):
        assert pairs.src(number)[:2].tolist() == tags
        assert vocab.decode(pairs.tgt(number).tolist()) in mono
    assert isinstance(load(out)("dnuh nie", target_lang="de"), str)


def test_pairs_with_too_many_pieces_are_not_counted_as_learned_from(
    small_run: Run, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = MonoPairs._pairs

    def every_other_long(*arguments: Any) -> Iterator[Pair]:
        for number, pair in enumerate(made(*arguments)):
            yield replace(pair, src="hund " * (20 if number % 2 else 3))

    monkeypatch.setattr(MonoPairs, "_pairs", every_other_long)
    out, settings = tmp_path / "run", {**SETTINGS, "data": {**SETTINGS["data"], "max_length": 20}}
    small_run(out, corpus=corpus, settings=settings, **STEPS)
    facts = json.loads((out / "data" / FACTS_FILE).read_text())
    pairs = back(open_prepared(corpus, out / "data"), out)
    assert facts["dropped"]["too_many_pieces"] == facts["sentences"] // 2
    assert 0 < len(pairs) == facts["pairs"]
    assert facts["sentences"] == facts["pairs"] + sum(facts["dropped"].values())
    notes = [e for e in read_json_lines(out / "metrics.jsonl") if e["kind"] == "note"]
    assert any(note["text"].endswith(f": {len(pairs):,} more pairs") for note in notes)


def test_paused_before_and_after_the_text_joins_equals_undisturbed(
    small_run: Run, corpus: Corpus, tmp_path: Path
) -> None:
    run: dict[str, Any] = {"corpus": corpus, "settings": SETTINGS, **STEPS}
    small_run(tmp_path / "whole", **run)
    for stop_at in (6, 15, 25):
        small_run(tmp_path / "parts", **run, stop_at=stop_at)
    small_run(tmp_path / "parts", **run)
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")


def test_ended_between_translations_and_their_facts_or_just_after_equals_undisturbed(
    small_run: Run, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: dict[str, Any] = {"corpus": corpus, "settings": SETTINGS, **STEPS}
    small_run(tmp_path / "whole", **run)
    out = tmp_path / "parts"

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(backtranslate, "write_atomically", end)
        small_run(out, **run)
    assert (out / "data" / BACK_FILE).exists()
    assert not (out / "data" / FACTS_FILE).exists()

    def end_after(event: dict[str, Any]) -> None:
        if event["kind"] == "step" and (out / "data" / FACTS_FILE).exists():
            end()

    with pytest.raises(KeyboardInterrupt):
        small_run(out, **run, on=end_after)
    written = (out / "data" / FACTS_FILE).stat().st_mtime_ns
    small_run(out, **run)  # goes back to a checkpoint before, and finds what is there in time
    assert (out / "data" / FACTS_FILE).stat().st_mtime_ns == written
    assert digest(out) == digest(tmp_path / "whole")
    notes = [e for e in read_json_lines(out / "metrics.jsonl") if e["kind"] == "note"]
    assert sum("sentences translated back" in note["text"] for note in notes) == 1


def test_a_request_to_stop_ends_back_translation_between_its_portions(
    small_run: Run, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: dict[str, Any] = {"corpus": corpus, "settings": SETTINGS, **STEPS}
    monkeypatch.setattr(backtranslate, "PORTION", 3)
    small_run(tmp_path / "whole", **run)
    out, portions = tmp_path / "parts", []
    translate = Translator.__call__

    def counted(self: Translator, texts: list[str], **options: Any) -> Any:
        if "beam_size" in options:
            portions.append(len(texts))
        return translate(self, texts, **options)

    monkeypatch.setattr(Translator, "__call__", counted)
    outcome, events = small_run(out, **run, stop_if=lambda: len(portions) == 2)
    assert (outcome.is_finished, len(portions)) == (False, 2)
    n_steps = sum(event["kind"] == "step" for event in events)
    assert n_steps == outcome.progress.step  # none after the request
    saved = [event["step"] for event in events if event["kind"] == "checkpoint"]
    assert saved[-1] == n_steps
    assert not (out / "data" / BACK_FILE).exists()
    assert not (out / "data" / FACTS_FILE).exists()
    small_run(out, **run)
    assert digest(out) == digest(tmp_path / "whole")


@pytest.mark.parametrize("way", ["signal", "file"])
def test_a_request_to_stop_ends_back_translation_within_a_portion(
    small_run: Run, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    run: dict[str, Any] = {"corpus": corpus, "settings": SETTINGS, **STEPS}
    out, portions = tmp_path / "run", []
    translate = Translator.__call__

    def asking(self: Translator, texts: list[str], **options: Any) -> Any:
        if "is_wanted" in options:
            portions.append(len(texts))
            if way == "file":
                ask(out, Request.STOP)
        return translate(self, texts, **options)

    monkeypatch.setattr(Translator, "__call__", asking)
    outcome, _ = small_run(out, **run, stop_if=lambda: way == "signal" and len(portions) == 1)
    assert not outcome.is_finished
    assert len(portions) == 1
    assert not (out / "data" / BACK_FILE).exists()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_kill_at_every_ninth_write_changes_no_bit(
    small_run: Run, corpus: Corpus, tmp_path: Path, fork: Fork, was_killed: WasKilled
) -> None:
    """Among others while translations are written, and between them and their facts."""
    run: dict[str, Any] = {"corpus": corpus, "settings": SETTINGS, **STEPS}
    small_run(tmp_path / "whole", **run)
    fault, is_killed = 1, True
    while is_killed:
        out = tmp_path / "killed"
        shutil.rmtree(out, ignore_errors=True)
        is_killed = was_killed(fork(lambda out=out: small_run(out, **run), fault))
        small_run(out, **run)
        assert digest(out) == digest(tmp_path / "whole"), f"killed at point {fault}"
        fault += 9
    assert fault > 100


def test_gaps_alone_need_no_translations(small_run: Run, corpus: Corpus, tmp_path: Path) -> None:
    settings = {**SETTINGS, "data": {"both_directions": True, "back_translate": 0}}
    small_run(tmp_path / "run", corpus=corpus, settings=settings, max_steps=3)
    assert not (tmp_path / "run" / "data" / FACTS_FILE).exists()


def test_sentences_of_dev_are_taken_out_of_the_text(
    small_run: Run, corpus: Corpus, tmp_path: Path
) -> None:
    out, run = tmp_path / "run", {"settings": SETTINGS, "stop_at": 1}
    path = Path(corpus.mono[0].file)
    small_run(out, corpus=corpus, **run)
    known = open_prepared(corpus, out / "data").dev
    dev = tmp_path / "dev.de", tmp_path / "dev.xx"
    for side, file in (("src", dev[0]), ("tgt", dev[1])):
        pairs = known[: len(known) // 2]
        file.write_text("".join(f"{getattr(pair, side)}\n" for pair in pairs), encoding="utf-8")
    path.write_text(path.read_text() + dev[1].read_text(), encoding="utf-8")
    part = replace(corpus.train[0], files=(str(dev[0]), str(dev[1])))
    small_run(tmp_path / "other", corpus=replace(corpus, dev=(part,)), **run)
    report = open_prepared(corpus, tmp_path / "other" / "data").report["mono"]["xx"]
    assert report["dropped"]["in_dev"] == len(known) // 2


def test_text_in_one_language_needs_a_model_of_both(
    small_run: Run, corpus: Corpus, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"set data\.both_directions=true"):
        small_run(tmp_path / "run", corpus=corpus, settings={**SETTINGS, "data": {}})
    Path(corpus.mono[0].file).write_text("\n\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"mono\.xx must hold sentences .* none of 2 lines"):
        small_run(tmp_path / "run", corpus=corpus, settings=SETTINGS)


def test_changed_text_is_refused(small_run: Run, corpus: Corpus, tmp_path: Path) -> None:
    small_run(tmp_path / "run", corpus=corpus, settings=SETTINGS, stop_at=1)
    path = Path(corpus.mono[0].file)
    path.write_text(path.read_text() + "nie nie nie\n", encoding="utf-8")
    with pytest.raises(RunError, match=r"mono file 1 was .*mono\.xx"):
        small_run(tmp_path / "run", corpus=corpus, settings=SETTINGS)


@pytest.mark.parametrize(("key", "value"), [("denoise", -1.0), ("back_translate_at", 1.5)])
def test_impossible_shares_are_refused(
    small_run: Run, tmp_path: Path, key: str, value: float
) -> None:
    with pytest.raises(ConfigError, match=rf"data\.{key} must be a number from 0 to \d+, but is"):
        small_run(tmp_path / "run", settings={"data": {key: value}})


def test_joined_pairs_are_those_of_each_part_in_order() -> None:
    class ParallelFiles:
        def __init__(self, *values: int) -> None:
            self.values = values
            self.src_lengths = self.tgt_lengths = np.array([2] * len(values), dtype=np.int64)

        def src(self, index: int) -> np.ndarray[Any, Any]:
            return np.array([self.values[index]])

        def tgt(self, index: int) -> np.ndarray[Any, Any]:
            return np.array([-self.values[index]])

    joined = JoinedPairs([ParallelFiles(1, 2), ParallelFiles(), ParallelFiles(3)])
    assert [int(joined.src(i)[0]) for i in range(3)] == [1, 2, 3]
    assert [int(joined.tgt(i)[0]) for i in range(3)] == [-1, -2, -3]
    assert joined.src_lengths.tolist() == [2, 2, 2]
