"""A run stores its training pairs with the model if they help to translate similar sentences."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.translate.test_translator import make_translator

from heed.bundle.bundle import load_bundle
from heed.bundle.find import MEMORY
from heed.data.corpus import Corpus
from heed.data.readers import Pair, ParallelFiles
from heed.data.store import Store
from heed.text.extend import with_controls
from heed.text.memory import BONUSES, TranslationMemory
from heed.text.slots import SLOT_PIECES
from heed.text.vocab import Vocab, train_vocab
from heed.train.run import remember
from heed.train.run.remember import LEAST_TRIED, Trial, memory_of, try_memory
from heed.translate.translator import Translator, load

Run = Callable[..., Any]

WORDS = ("ein", "zwei", "drei", "vier", "rot", "blau", "hund", "haus", "baum", "maus")


def lines(n_lines: int, seed: int) -> list[str]:
    """Different lines of eight words."""
    chooser = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < n_lines:
        found[" ".join(chooser.choices(WORDS, k=8))] = None
    return [*found]


def backwards(line: str) -> str:
    return " ".join(word[::-1] for word in line.split())


def changed(line: str) -> str:
    """The line with another last word: the same as a training line but for that."""
    return " ".join([*line.split()[:-1], "rot" if line.split()[-1] != "rot" else "blau"])


@pytest.fixture
def corpus_of(tmp_path: Path) -> Callable[..., Corpus]:
    """`corpus_of(dev)`: sixty training pairs, and these development sentences."""

    def make(dev: list[str]) -> Corpus:
        names: dict[str, tuple[str, str]] = {}
        for name, sources in (("train", lines(60, 0)), ("dev", dev)):
            for suffix, texts in (("de", sources), ("xx", map(backwards, sources))):
                text = "".join(f"{text}\n" for text in texts)
                (tmp_path / f"{name}.{suffix}").write_text(text, encoding="utf-8")
            names[name] = str(tmp_path / f"{name}.de"), str(tmp_path / f"{name}.xx")
        train, held_out = (
            ParallelFiles(files=names[name], source_lang="de", target_lang="xx")
            for name in ("train", "dev")
        )
        return Corpus(train=(train,), dev=(held_out,))

    return make


def notes(events: list[dict[str, Any]]) -> str:
    return "\n".join(event["text"] for event in events if event["kind"] == "note")


def test_pairs_like_the_development_sentences_are_stored(
    small_run: Run, corpus_of: Callable[..., Corpus], tmp_path: Path
) -> None:
    """The model has hardly learned, so the training pairs are worth more than what it knows."""
    sources = lines(60, 0)
    dev = [changed(line) for line in sources[: LEAST_TRIED + 5]]
    out = tmp_path / "run"
    outcome, events = small_run(out, corpus=corpus_of(dev))
    assert outcome.is_finished
    said = "60 training pairs are stored as its memory: they raise BLEU from "
    assert said in notes(events)
    assert f"for {LEAST_TRIED + 5} of {LEAST_TRIED + 5} development sentences." in notes(events)
    memory = load_bundle(out).memory
    assert memory is not None and len(memory) == 60 and memory.bonus in BONUSES
    assert load(out)(sources[0]) == backwards(sources[0])
    assert load(out, memory=False)(sources[0]) != backwards(sources[0])
    settings = {"data": {"memory": False}}
    again = tmp_path / "without"
    _, events = small_run(again, corpus=corpus_of(dev), settings=settings)
    assert "memory" not in notes(events)
    assert load_bundle(again).memory is None and not (again / MEMORY).exists()


def test_too_few_similar_sentences_tell_nothing(
    small_run: Run, corpus_of: Callable[..., Corpus], tmp_path: Path
) -> None:
    dev = [changed(line) for line in lines(60, 0)[: LEAST_TRIED - 1]]
    _, events = small_run(tmp_path / "run", corpus=corpus_of(dev))
    assert "training pairs" not in notes(events)
    assert not (tmp_path / "run" / MEMORY).exists()


def test_pairs_that_do_not_help_are_not_stored(
    small_run: Run,
    corpus_of: Callable[..., Corpus],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remember, "LEAST_GAIN", 101.0)
    dev = [changed(line) for line in lines(60, 0)[: LEAST_TRIED + 5]]
    _, events = small_run(tmp_path / "run", corpus=corpus_of(dev))
    assert "The training pairs do not help to translate the 25 of 25 dev" in notes(events)
    assert not (tmp_path / "run" / MEMORY).exists()


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return train_vocab([*lines(60, 0), *map(backwards, lines(60, 0))], size=330)


@pytest.fixture
def translator(vocab: Vocab) -> Translator:
    return make_translator(vocab, target_lang="xx")


def memory_from(vocab: Vocab, pairs: list[tuple[str, str]]) -> TranslationMemory:
    ids = [(vocab.encode(src), vocab.encode(tgt)) for src, tgt in pairs]
    return TranslationMemory.of(ids, (vocab.size, vocab.size))


def test_the_trial_counts_sentences_with_and_without_the_memory(
    vocab: Vocab, translator: Translator
) -> None:
    pairs = [(line, backwards(line)) for line in lines(60, 0)]
    dev = [Pair(*pair) for pair in pairs[: LEAST_TRIED + 2]]
    dev.insert(3, Pair("?", "?"))  # like none
    found = try_memory(translator, memory_from(vocab, pairs), dev)
    assert found is not None
    assert (found.n_sentences, found.n_read) == (LEAST_TRIED + 2, LEAST_TRIED + 3)
    assert found.guided == {bonus: pytest.approx((100.0, 100.0)) for bonus in BONUSES}
    assert max(found.without) < 50
    assert found.best in BONUSES
    assert translator.reader.memories == ()


def test_there_is_no_trial_with_too_few_similar_sentences(
    vocab: Vocab, translator: Translator
) -> None:
    pairs = [(line, backwards(line)) for line in lines(60, 0)]
    memory = memory_from(vocab, pairs)
    dev = [Pair(*pair) for pair in pairs]
    assert try_memory(translator, memory, dev[: LEAST_TRIED - 1]) is None
    assert try_memory(translator, memory, []) is None
    assert try_memory(translator, memory_from(vocab, []), dev) is None


@pytest.mark.parametrize(
    ("guided", "best"),
    [
        ({16.0: (20.0, 50.5), 5.0: (19.0, 50.0)}, 16.0),
        ({16.0: (21.0, 51.0), 5.0: (22.0, 52.0)}, 5.0),
        ({16.0: (20.0, 50.4), 5.0: (25.0, 50.1)}, None),  # chrF2 gains too little
        ({16.0: (19.9, 60.0), 5.0: (19.9, 59.0)}, None),  # BLEU falls
        ({16.0: (19.9, 60.0), 5.0: (20.1, 51.0)}, 5.0),
        ({16.0: (10.0, 40.0), 5.0: (12.0, 45.0)}, None),
    ],
)
def test_the_bonus_with_the_best_chrf_is_taken_if_it_gains(
    guided: dict[float, tuple[float, float]], best: float | None
) -> None:
    trial = Trial(n_sentences=20, n_read=20, without=(20.0, 50.0), guided=guided)
    assert trial.best == best


def prepared(
    vocab: Vocab, pairs: list[tuple[str, str]], folder: Path, tag: Sequence[int] = ()
) -> Any:
    """What `memory_of` reads of a corpus."""
    with Store.create(folder / "train.bin", vocab.hash, vocab.hash) as store:
        for src, tgt in pairs:
            store.add([*tag, *vocab.encode(src)], vocab.encode(tgt))
    train = Store.open(folder / "train.bin", vocab.hash, vocab.hash)
    return SimpleNamespace(src_vocab=vocab, tgt_vocab=vocab, train=train, n_real=len(train))


def test_of_several_translations_the_most_frequent_is_stored(
    vocab: Vocab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = ["eins", "zwei", "drei", "zwei", "eins", "zwei"]
    pairs = [("rot haus", target) for target in targets] + [("blau", "drei"), ("hund", "eins")]
    data = prepared(vocab, pairs, tmp_path)
    reader = make_translator(vocab).reader
    memory = memory_of(data, reader)
    found = {vocab.decode(memory.src(n)): vocab.decode(memory.tgt(n)) for n in range(len(memory))}
    assert found == {"rot haus": "zwei", "blau": "drei", "hund": "eins"}
    monkeypatch.setattr(remember, "MOST_PAIRS", 7)  # the last one is no longer read
    assert len(memory_of(data, reader)) == 2


def test_common_spans_are_stored_as_slots(vocab: Vocab, tmp_path: Path) -> None:
    """So that a pair matches a source with other fields, and is followed with these."""
    slotted = with_controls(vocab, SLOT_PIECES)
    data = prepared(slotted, [("rot %s haus 12", "12 suah %s tor")], tmp_path)
    translator = make_translator(slotted)
    translator.reader.memories = (memory_of(data, translator.reader),)
    assert translator("rot {name} haus 305") == "305 suah {name} tor"


@pytest.mark.parametrize("has_slots", [False, True])
def test_pairs_in_capitals_are_stored_as_lines_in_capitals_are_read(
    vocab: Vocab, tmp_path: Path, has_slots: bool
) -> None:
    """So that they match these lines, and the same words in small letters."""
    words = with_controls(vocab, SLOT_PIECES) if has_slots else vocab
    pairs = [
        ("ROT HAUS BAUM", "MUAB SUAH"),
        ("ZWEI HUND HAUS", "SUAH"),
        ("Zwei hund haus", "Dnuh"),
    ]
    number = ("BLAU HAUS 12 HUND", "12 DNUH")
    data = prepared(words, [*pairs, number] if has_slots else pairs, tmp_path)
    translator = make_translator(words)
    memory = memory_of(data, translator.reader)
    assert len(memory) == len(data.train) - 1
    translator.reader.memories = (memory,)
    assert translator("ROT HAUS BAUM") == "MUAB SUAH"
    assert translator("Rot haus baum") == "Muab suah"
    # A source in usual case goes before the same one in capitals.
    assert translator(["ZWEI HUND HAUS", "Zwei hund haus"]) == ["DNUH", "Dnuh"]
    if has_slots:
        assert translator("BLAU HAUS 305 HUND") == "305 DNUH"


def test_a_pair_in_capitals_keeps_the_tag_of_its_language(tmp_path: Path) -> None:
    tagged = train_vocab(
        [*lines(60, 0), *map(backwards, lines(60, 0))], size=330, languages=("xx",)
    )
    tag = tagged.language_id("xx")
    data = prepared(tagged, [("ROT HAUS BAUM", "MUAB SUAH")], tmp_path, tag=[tag])
    memory = memory_of(data, make_translator(tagged, target_langs=("xx",)).reader)
    assert memory.src(0).tolist() == [tag, *tagged.encode("Rot haus baum")]
