"""From files to everything training needs: nothing lost silently, nothing shared, done once."""

import gzip
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heed.data import prepare as prepare_module
from heed.data import progress
from heed.data.corpus import Corpus, DataConfig, TextConfig
from heed.data.fingerprint import file_facts, require_same
from heed.data.labeled import prepare_labeled
from heed.data.mono import Mono
from heed.data.prepare import prepare
from heed.data.prepared import Prepared
from heed.data.readers import Pair, ParallelFiles
from heed.data.running_text import prepare_text
from heed.data.vocabularies import learn_vocabs
from heed.demo import toy
from heed.errors import ConfigError, DataError, FormatError, RunError
from heed.text.vocab import TokenizerConfig, Vocab, train_vocab

# Characters keep the vocabulary instant; what is tested here does not depend on its kind.
CHARS = TokenizerConfig(kind="char", vocab_size=400, character_coverage=1.0)


def write(folder: Path, name: str, lines: list[str]) -> str:
    path = folder / name
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return str(path)


def plain(
    folder: Path,
    pairs: list[tuple[str, str]],
    name: str = "train",
    source_lang: str = "en",
    target_lang: str = "de",
) -> ParallelFiles:
    files = (
        write(folder, f"{name}.{source_lang}", [src for src, _ in pairs]),
        write(folder, f"{name}.{target_lang}", [tgt for _, tgt in pairs]),
    )
    return ParallelFiles(files=files, source_lang=source_lang, target_lang=target_lang)


def numbered(n_pairs: int, offset: int = 0) -> list[tuple[str, str]]:
    numbers = range(offset, offset + n_pairs)
    return [(f"sentence number {n} here", f"Satz Nummer {n}, hier") for n in numbers]


def run(
    folder: Path,
    train: list[ParallelFiles],
    *,
    dev: list[ParallelFiles] | tuple[Any, ...] = (),
    test: list[ParallelFiles] | tuple[Any, ...] = (),
    tokenizer: TokenizerConfig = CHARS,
    seed: int = 1,
    out: str = "data",
    **settings: Any,
) -> Prepared | None:
    return prepare(
        Corpus(train=tuple(train), dev=tuple(dev), test=tuple(test)),
        folder / out,
        config=DataConfig(**settings),
        tokenizer=tokenizer,
        seed=seed,
    )


def sides(pairs: list[Pair]) -> list[tuple[str, str]]:
    return [(pair.src, pair.tgt) for pair in pairs]


def stored(data: Any) -> list[tuple[str, str]]:
    return [
        (
            data.src_vocab.decode(data.train.src(index).tolist()),
            data.tgt_vocab.decode(data.train.tgt(index).tolist()),
        )
        for index in range(len(data.train))
    ]


def test_what_goes_in_comes_out_in_order(tmp_path: Path) -> None:
    """Claim 21."""
    pairs, dev = numbered(60), numbered(10, offset=500)
    data = run(tmp_path, [plain(tmp_path, pairs)], dev=[plain(tmp_path, dev, "dev")])
    assert stored(data) == pairs
    assert sides(data.dev) == dev
    assert data.test is None
    assert (data.source_lang, data.target_lang, data.target_langs) == ("en", "de", ())
    assert data.src_vocab is data.tgt_vocab
    assert data.report["tokens"] == {
        "source": int(data.train.src_lengths.sum()),
        "target": int(data.train.tgt_lengths.sum()),
    }
    assert json.loads((tmp_path / "data" / "report.json").read_text()) == data.report


def test_dev_and_test_are_set_aside_when_none_are_given(tmp_path: Path) -> None:
    pairs = numbered(100)
    data = run(tmp_path, [plain(tmp_path, pairs)], test_size=7)
    assert (len(data.train), len(data.dev), len(data.test)) == (88, 5, 7)
    assert sorted([*stored(data), *sides(data.dev), *sides(data.test)]) == sorted(pairs)
    assert (data.report["train"], data.report["dev"], data.report["test"]) == (88, 5, 7)


def test_no_sentence_of_dev_is_left_in_training_and_the_leak_is_told(tmp_path: Path) -> None:
    pairs = [*numbered(20), ("A dog.", "Ein Hund!"), ("Woof", "ein hund")]
    data = run(
        tmp_path,
        [plain(tmp_path, pairs)],
        dev=[plain(tmp_path, [("The dog", "Ein Hund."), ("x", "y")], "dev")],
        test=[plain(tmp_path, [("X!", "z")], "test")],
    )
    assert stored(data) == numbered(20)
    assert data.report["leaks"] == {"train_in_dev": 2, "train_in_test": 0, "dev_in_test": 1}


def test_pairs_made_by_a_model_and_sets_that_were_drawn_are_no_leaks(tmp_path: Path) -> None:
    pairs = [*numbered(20), ("A dog.", "Ein Hund!"), ("x", "A cat.")]
    corpus = Corpus(
        train=(plain(tmp_path, pairs),),
        dev=(plain(tmp_path, [("a dog", "Hund"), ("a cat", "Katze")], "dev"),),
        test=(plain(tmp_path, [("X!", "z")], "test"),),
        made=(plain(tmp_path, [("A dog", "Ein Hund"), ("A cat", "y"), ("x", "z")], "made"),),
    )
    for drawn, in_dev, in_test in (((), 1, 1), (("dev",), 0, 1), (("dev", "test"), 0, 0)):
        data = prepare(
            replace(corpus, drawn=drawn),
            tmp_path / f"drawn-{len(drawn)}",
            config=DataConfig(),
            tokenizer=CHARS,
            seed=1,
        )
        assert stored(data) == numbered(20)
        leaks = {"train_in_dev": in_dev, "train_in_test": in_test, "dev_in_test": 0}
        assert data.report["leaks"] == leaks


def test_sentences_drawn_for_dev_and_test_are_taken_out_of_text_in_one_language(
    tmp_path: Path,
) -> None:
    pairs = numbered(60)
    text = write(tmp_path, "mono.de", [*(tgt for _, tgt in pairs), "Etwas ganz anderes"])
    corpus = Corpus(train=(plain(tmp_path, pairs),), mono=(Mono(file=text, language="de"),))
    config = DataConfig(both_directions=True, test_size=4)
    data = prepare(corpus, tmp_path / "data", config=config, tokenizer=CHARS, seed=1)
    assert data.test
    held_out = {side for pair in (*data.dev, *data.test) for side in (pair.src, pair.tgt)}
    store = data.mono["de"]
    kept = {data.src_vocab.decode(store.tgt(number).tolist()) for number in range(len(store))}
    assert len(kept) == 61 - 3 - 4
    assert not kept & held_out
    assert data.report["mono"]["de"]["dropped"] == {"in_dev": 3, "in_test": 4}


def test_every_pair_of_a_dirty_corpus_is_accounted_for(tmp_path: Path) -> None:
    dirty = [("", "leer"), ("nice", "schÃ¶n"), ("same", "same"), ("long " * 90, "lang " * 90)]
    dev = [*numbered(5, offset=900), ("only one side", "")]
    data = run(
        tmp_path,
        [plain(tmp_path, [*numbered(30), *dirty, *numbered(3)])],
        dev=[plain(tmp_path, dev, "dev")],
    )
    pairs = data.report["pairs"]
    assert pairs["read"] == 37
    assert pairs["kept"] == len(data.train) == 30
    assert pairs["dropped"] == {
        "empty": 1,
        "bad_encoding": 1,
        "copy": 1,
        "too_many_pieces": 1,
        "duplicate": 3,
    }
    assert pairs["examples"]["bad_encoding"][0]["line"] == 32
    assert data.report["dev_pairs"]["dropped"] == {"empty": 1}


def test_a_development_pair_as_long_as_a_book_is_left_out_and_a_test_pair_stays(
    tmp_path: Path,
) -> None:
    """Each validation would translate it."""
    book = ("word " * 500, "wort " * 500)
    long = [*numbered(5, offset=900), book]
    part = plain(tmp_path, numbered(30))
    data = run(tmp_path, [part], dev=[plain(tmp_path, long, "dev")])
    assert len(data.dev) == 5
    assert data.report["dev_pairs"]["dropped"] == {"too_long": 1}
    again = run(tmp_path / "wide", [part], dev=[plain(tmp_path, long, "dev")], max_chars=3000)
    assert len(again.dev) == 6
    tested = run(tmp_path / "test", [part], test=[plain(tmp_path, long, "test")])
    assert tested.test is not None and len(tested.test) == 6
    with pytest.raises(DataError, match=r"dev\.de must hold .*Give one sentence per line"):
        run(tmp_path / "none", [part], dev=[plain(tmp_path, [book], "dev")])


def test_a_second_call_opens_what_is_there_and_an_interrupted_one_begins_anew(
    tmp_path: Path,
) -> None:
    part = plain(tmp_path, numbered(60))
    first = run(tmp_path, [part])
    changed = (tmp_path / "data" / "train.bin").stat().st_mtime_ns
    second = run(tmp_path, [part])
    assert (tmp_path / "data" / "train.bin").stat().st_mtime_ns == changed
    assert (stored(second), second.dev, second.report) == (stored(first), first.dev, first.report)
    (tmp_path / "data" / "report.json").unlink()  # it is written last, so a kill leaves none
    left = ("train.bin.tmp-00000000", "spool.tsv.tmp-00000000", "mono.de.bin.tmp-00000000")
    for name in (*left, "mine.tmp-00000000"):
        (tmp_path / "data" / name).touch()
    third = run(tmp_path, [part])
    assert (stored(third), third.dev) == (stored(first), first.dev)
    found = [path.name for path in (tmp_path / "data").glob("*tmp*")]
    assert found == ["mine.tmp-00000000"]


def test_what_is_being_done_is_reported_and_at_the_end_what_was_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY", 50)
    corpus = Corpus(train=(plain(tmp_path, [*numbered(100), ("", "leer")]),))
    tokenizer = replace(CHARS, vocab_size=None)
    choices: dict[str, Any] = {"config": DataConfig(), "tokenizer": tokenizer, "seed": 1}
    events: list[Any] = []
    data = prepare(corpus, tmp_path / "data", **choices, report=events.append)
    *phases, last = events
    assert [(event["phase"], event["done"], event["of"]) for event in phases] == [
        ("reading the corpus", 0, None),
        ("reading the corpus", 0, None),
        ("reading the corpus", 50, None),
        ("reading the corpus", 100, None),
        ("learning the vocabulary", 0, None),
        ("encoding", 0, 95),
        ("encoding", 50, 95),
    ]
    assert last == {"kind": "prepared", "report": data.report}
    assert last["report"]["pairs"]["dropped"] == {"empty": 1}
    again: list[Any] = []
    prepare(corpus, tmp_path / "data", **choices, report=again.append)
    assert [event["phase"] for event in again] == ["checking that the corpus is the same"]


def test_reading_large_sets_for_development_and_test_is_reported(tmp_path: Path) -> None:
    train = plain(tmp_path, numbered(20))
    large = plain(tmp_path, [("a", "b"), ("", "c")] * progress.EVERY, "large")
    events: list[Any] = []
    prepare(
        Corpus(train=(train,), dev=(large,), test=(large,)),
        tmp_path / "data",
        config=DataConfig(),
        tokenizer=CHARS,
        seed=1,
        report=events.append,
    )
    found = [(event.get("phase", ""), event.get("done")) for event in events]
    sizes = progress.EVERY, 2 * progress.EVERY
    for name in ("development", "test"):
        assert [n for phase, n in found if phase == f"reading the {name} pairs"] == [*sizes]


def test_a_large_corpus_gives_its_pieces_from_a_part_of_it_and_keeps_every_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = numbered(120)
    part = plain(tmp_path, pairs)
    monkeypatch.setattr(prepare_module, "MAX_CHARACTERS", 1500)
    monkeypatch.setattr("heed.data.encode._BLOCK_PAIRS", 7)
    learned_from = []

    def learn(sample: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Vocab, Vocab]:
        learned_from.extend(sample())
        return learn_vocabs(sample, *arguments, **options)

    monkeypatch.setattr(prepare_module, "learn_vocabs", learn)
    data = run(tmp_path, [part])
    assert sorted([*stored(data), *sides(data.dev)]) == sorted(pairs)
    n_characters = sum(len(pair.src) + len(pair.tgt) for pair in learned_from)
    assert 1200 < n_characters <= 1500


@pytest.mark.parametrize("is_joint", [True, False])
@pytest.mark.parametrize("has_words", [True, False])
def test_pieces_of_spans_are_learned_where_a_side_has_nothing_else(
    tmp_path: Path, is_joint: bool, has_words: bool
) -> None:
    """Numbers in reverse order: a usual first task, in which all text is protected spans."""
    word = "reversed: " if has_words else ""
    pairs = [(f"{word}{n} {n + 7} {n + 1}", f"{n + 1} {n + 7} {n}") for n in range(10, 70)]
    tokenizer = TokenizerConfig(kind="char", joint=is_joint, slots=True)
    data = run(tmp_path, [plain(tmp_path, pairs)], tokenizer=tokenizer)
    assert sorted([*stored(data), *sides(data.dev)]) == sorted(pairs)
    if not (is_joint and has_words):
        assert {*"0123456789"} <= {*data.tgt_vocab.pieces(range(data.tgt_vocab.size))}


def test_equal_arguments_give_equal_bytes_and_another_seed_another_dev_set(tmp_path: Path) -> None:
    part = plain(tmp_path, numbered(60))
    for out, seed in (("a", 1), ("b", 1), ("c", 2)):
        run(tmp_path, [part], out=out, seed=seed)
    for name in ("train.bin", "dev.tsv", "report.json", "spm.model"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert (tmp_path / "a" / "dev.tsv").read_bytes() != (tmp_path / "c" / "dev.tsv").read_bytes()


def test_a_changed_file_or_setting_is_refused_by_name(tmp_path: Path) -> None:
    part = plain(tmp_path, numbered(60))
    run(tmp_path, [part])
    with pytest.raises(
        RunError,
        match=r"prepared from other data or settings: data\.max_length was 256, but is 99\. Use",
    ):
        run(tmp_path, [part], max_length=99)
    plain(tmp_path, numbered(61))
    with pytest.raises(RunError, match=r"train file 1\.1 was .*train\.en, \d+ bytes, checksum"):
        run(tmp_path, [part])


def test_a_corpus_may_have_another_path(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    pairs = numbered(60)
    before = run(tmp_path, [plain(tmp_path / "a", pairs)])
    moved = plain(tmp_path / "b", pairs, "copy, 1 bytes, checksum 00000000")
    assert len(run(tmp_path, [moved]).train) == len(before.train)
    with pytest.raises(RunError, match=r"train file 1\.1 was \S*/a/train\.en, .* but is .*/b/copy"):
        run(tmp_path, [plain(tmp_path / "b", pairs[1:], "copy")])
    table = [write(tmp_path, f"c.{suffix}", ["a,b\tc,d"] * 9) for suffix in ("csv", "tsv")]
    (facts_of_csv,), (facts_of_tsv,) = ([file_facts(name)] for name in table)
    with pytest.raises(RunError, match=r"file was .*c\.csv, .* but is .*c\.tsv"):
        require_same({"file": facts_of_csv}, {"file": facts_of_tsv}, tmp_path)


def test_a_corpus_that_yields_fewer_pieces_than_asked_for_is_told(tmp_path: Path) -> None:
    part = plain(tmp_path, numbered(60))
    words = write(tmp_path, "words", [f"{n % 2}\tsentence number {n}" for n in range(60)])
    tasks: dict[str, Callable[..., Any]] = {
        "pairs": lambda **given: prepare(Corpus(train=(part,)), config=DataConfig(), **given),
        "labels": lambda **given: prepare_labeled(
            Corpus(labeled=(words,)), config=TextConfig(), **given
        ),
        "text": lambda seed, **given: prepare_text(
            Corpus(text=part.files[:1]), config=TextConfig(), **given
        ),
    }
    for name, prepared in tasks.items():
        for size, n_notes in ((5_000_000, 1), (None, 0)):
            told: list[dict[str, Any]] = []
            tokenizer = TokenizerConfig(kind="char", vocab_size=size)
            folder = tmp_path / f"{name} {size}"
            data = prepared(directory=folder, tokenizer=tokenizer, seed=1, report=told.append)
            text = f"only {data.tgt_vocab.size} pieces: tokenizer.vocab_size is 5,000,000"
            found = [event["text"] for event in told if "pieces" in event.get("text", "")]
            assert found == [f"the corpus yields {text}"] * n_notes


def test_what_decides_only_training_does_not_ask_for_new_data(tmp_path: Path) -> None:
    part = plain(tmp_path, numbered(60))
    small: dict[str, Any] = {"kind": "unigram", "vocab_size": 320}
    run(tmp_path, [part], tokenizer=TokenizerConfig(**small))
    run(tmp_path, [part], tokenizer=TokenizerConfig(**small, subword_alpha=0.1))


@pytest.mark.parametrize("is_joint", [True, False])
def test_pieces_can_be_taken_over_as_they_are(tmp_path: Path, is_joint: bool) -> None:
    kind: dict[str, Any] = {"kind": "char", "vocab_size": 400, "joint": is_joint}
    old = run(tmp_path, [plain(tmp_path, numbered(60))], tokenizer=TokenizerConfig(**kind))
    folder = tmp_path / "data"
    other = plain(tmp_path, [(f"жук {n}", f"Käfer {n}") for n in range(60)], "other")
    taken = TokenizerConfig(**kind, vocab_from=str(folder))
    data = run(tmp_path, [other], tokenizer=taken, out="new")
    assert (data.src_vocab.hash, data.tgt_vocab.hash) == (old.src_vocab.hash, old.tgt_vocab.hash)
    assert (data.src_vocab is data.tgt_vocab) == is_joint
    assert ("жук 7", "Käfer 7") in [*stored(data), *sides(data.dev)]
    folder = folder.rename(tmp_path / "moved")
    taken = TokenizerConfig(**kind, vocab_from=str(folder))
    run(tmp_path, [other], tokenizer=taken, out="new")  # the pieces count, not where they lie
    with pytest.raises(RunError, match="source vocabulary taken over was .*, but is absent"):
        run(tmp_path, [other], tokenizer=TokenizerConfig(**kind), out="new")


def test_the_report_says_where_the_vocabulary_comes_from(tmp_path: Path) -> None:
    pairs, text, labeled = plain(tmp_path, numbered(60)), tmp_path / "text", tmp_path / "labeled"
    text.write_text("ein Wort\n" * 60)
    labeled.write_text("".join(f"gut\tein Wort {n}\nschlecht\tkein Wort {n}\n" for n in range(20)))
    first = run(tmp_path, [pairs])
    taken = TokenizerConfig(kind="char", vocab_size=400, vocab_from=str(tmp_path / "data"))
    base = first.src_vocab, first.tgt_vocab

    def phases(name: str, do: Callable[..., Any], corpus: Corpus, **settings: Any) -> set[str]:
        events: list[Any] = []
        do(corpus, tmp_path / name, report=events.append, **settings)
        found = {event.get("phase", "") for event in events}
        return {phase for phase in found if phase.endswith("vocabulary")}

    def of_pairs(name: str, tokenizer: TokenizerConfig, **others: Any) -> set[str]:
        corpus, choices = Corpus(train=(pairs,)), {"config": DataConfig(), "seed": 1, **others}
        return phases(name, prepare, corpus, tokenizer=tokenizer, **choices)

    assert of_pairs("a", CHARS) == {"learning the vocabulary"}
    assert of_pairs("b", CHARS, base=base) == {"extending the vocabulary"}
    assert of_pairs("c", taken, base=None) == {"taking over the vocabulary"}
    running = {"config": TextConfig(), "tokenizer": CHARS}
    lines, rows = Corpus(text=(str(text),)), Corpus(labeled=(str(labeled),))
    for number, (given, wanted) in enumerate(((None, "learning"), (base, "taking over"))):
        said = {f"{wanted} the vocabulary"}
        assert phases(f"d{number}", prepare_text, lines, base=given, **running) == said
        assert phases(f"e{number}", prepare_labeled, rows, base=given, seed=1, **running) == said


def test_pieces_taken_over_must_tell_the_languages_apart(tmp_path: Path) -> None:
    german = plain(tmp_path, numbered(60), "a")
    run(tmp_path, [german])
    french = plain(tmp_path, [("word", "le mot")], "b", target_lang="fr")
    taken = TokenizerConfig(kind="char", vocab_size=400, vocab_from=str(tmp_path / "data"))
    with pytest.raises(ConfigError, match="needs pieces with a tag for de and fr, but those of"):
        run(tmp_path, [german, french], tokenizer=taken, out="new")


def test_separate_vocabularies_know_their_own_side_only(tmp_path: Path) -> None:
    pairs = [(f"жук {n}", f"xyz {n} {n}") for n in range(60)]
    separate = TokenizerConfig(kind="char", vocab_size=400, character_coverage=1.0, joint=False)
    data = run(tmp_path, [plain(tmp_path, pairs)], tokenizer=separate)
    assert len(data.src_vocab.encode("жук")) < len(data.tgt_vocab.encode("жук"))
    assert data.src_vocab.hash != data.tgt_vocab.hash
    assert sorted([*stored(data), *sides(data.dev)]) == sorted(pairs)
    assert data.report["vocabulary"]["joint"] is False


def test_a_source_is_tagged_with_its_language_when_there_are_several(tmp_path: Path) -> None:
    german = plain(tmp_path, numbered(20), "a")
    french = plain(
        tmp_path, [(f"word {n}", f"le mot {n}") for n in range(30)], "b", target_lang="fr"
    )
    dev = plain(tmp_path, [("some more", "un peu plus")], "dev", target_lang="fr")
    data = run(tmp_path, [german, french], dev=[dev])
    assert data.target_langs == data.src_vocab.languages == ("de", "fr")
    assert (data.source_lang, data.target_lang) == ("en", "")
    tags = [data.train.src(index)[0] for index in range(len(data.train))]
    assert tags == [data.src_vocab.language_id("de")] * 20 + [data.src_vocab.language_id("fr")] * 30
    assert [pair.target_lang for pair in data.dev] == ["fr"]


@pytest.mark.parametrize("role", ["dev", "test"])
@pytest.mark.parametrize(("language", "words"), [("", "an unknown language"), ("it", "it")])
def test_held_out_pairs_in_a_language_that_is_not_learned_are_refused(
    tmp_path: Path, role: str, language: str, words: str
) -> None:
    french = [(f"word {n}", f"le mot {n}") for n in range(30)]
    train = [plain(tmp_path, numbered(30)), plain(tmp_path, french, "b", target_lang="fr")]
    good = plain(tmp_path, [("some more", "un peu plus")], "good", target_lang="fr")
    bad = plain(tmp_path, [("some more", "di più")], "bad", target_lang=language)
    match = rf"bad\.{language} must be translations into .* \(de, fr\), but {words} is none of them"
    with pytest.raises(ConfigError, match=match):
        run(tmp_path, train, **{role: [good, bad]})
    assert run(tmp_path, train, **{role: [good]})
    # A model of one language needs no names.
    assert run(tmp_path, train[:1], **{role: [bad]}, out="one")


def test_a_model_of_several_languages_does_not_read_an_unknown_one(tmp_path: Path) -> None:
    base = train_vocab(["a dog", "ein Hund"], size=400, languages=("de", "en"))
    part = plain(tmp_path, numbered(30), source_lang="", target_lang="")
    with pytest.raises(ConfigError, match=r"language, because the model has several \(de, en\)\."):
        prepare(
            Corpus(train=(part,)), tmp_path / "data",
            config=DataConfig(), tokenizer=CHARS, seed=1, base=(base, base),
        )  # fmt: skip


def test_monolingual_text_does_not_come_from_standard_input(tmp_path: Path) -> None:
    corpus = Corpus(train=(plain(tmp_path, numbered(30)),), mono=(Mono(file="-", language="de"),))
    config = DataConfig(both_directions=True)
    with pytest.raises(ConfigError, match=r"^standard input \(-\) can be given once, as a table"):
        prepare(corpus, tmp_path / "data", config=config, tokenizer=CHARS, seed=1)


def test_held_out_pairs_of_both_directions_are_in_the_two_languages(tmp_path: Path) -> None:
    dev = plain(tmp_path, [("ancora", "noch")], "dev", source_lang="it")
    with pytest.raises(ConfigError, match=r"dev\.de must be .* \(de, en\), but it is none of them"):
        run(tmp_path, [plain(tmp_path, numbered(30))], dev=[dev], both_directions=True)


def test_the_vocabulary_keeps_chinese_characters_apart_unless_told(tmp_path: Path) -> None:
    part = plain(tmp_path, [(f"城市 {n}", f"city {n}") for n in range(60)])
    for is_apart in (True, False):
        bpe = TokenizerConfig(kind="bpe", vocab_size=320, split_han=is_apart)
        vocab = run(tmp_path, [part], tokenizer=bpe, out=f"data-{is_apart}").src_vocab
        is_joined = any("城市" in piece for piece in vocab.pieces(range(vocab.size)))
        assert is_joined is not is_apart


def test_the_vocabulary_is_sized_by_the_corpus_unless_told(tmp_path: Path) -> None:
    part = plain(tmp_path, numbered(60))
    data = run(tmp_path, [part], tokenizer=TokenizerConfig(kind="char"))
    assert data.src_vocab.size < 2000  # so many pieces are asked for, and the corpus has fewer


def test_tables_and_compressed_files_are_corpora_too(tmp_path: Path) -> None:
    path = tmp_path / "corpus.tsv.gz"
    path.write_bytes(gzip.compress("".join(f"{a}\t{b}\n" for a, b in numbered(40)).encode()))
    data = run(tmp_path, [ParallelFiles(files=(str(path),))])
    assert sorted([*stored(data), *sides(data.dev)]) == sorted(numbered(40))


def test_a_toy_task_can_be_prepared(tmp_path: Path) -> None:
    pairs = [(pair.src, pair.tgt) for pair in toy.pairs("copy", 50, seed=1)]
    data = run(tmp_path, [plain(tmp_path, pairs)], keep_copies=True)
    assert len(data.train) + len(data.dev) == len(set(pairs))


def test_an_empty_or_hopeless_corpus_says_why(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"There are no sentence pairs in .*train\.en and .*train\.de"
    ):
        run(tmp_path, [plain(tmp_path, [])])
    with pytest.raises(DataError, match=r"all 3 were dropped \(empty 2, copy 1\)"):
        run(tmp_path, [plain(tmp_path, [("", "a"), ("b", ""), ("c", "c")])])
    with pytest.raises(DataError, match=r"dev\.de must hold usable pairs.*dropped \(empty 1\)"):
        run(tmp_path, [plain(tmp_path, numbered(5))], dev=[plain(tmp_path, [("", "")], "dev")])
    with pytest.raises(DataError, match=r"every pair that .* has more than 3 pieces on a side"):
        run(tmp_path, [plain(tmp_path, numbered(30))], max_length=4)
    assert not (tmp_path / "data" / "report.json").exists()
    assert not list((tmp_path / "data").glob("*spool*"))


def test_missing_files_and_stdin_as_one_side_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.en does not exist"):
        run(
            tmp_path,
            [ParallelFiles(files=(str(tmp_path / "nowhere.en"), str(tmp_path / "nowhere.de")))],
        )
    with pytest.raises(ConfigError, match=r"\(-\) can be given once, as a table of both languages"):
        run(tmp_path, [ParallelFiles(files=("-", "-"))])
    with pytest.raises(ConfigError, match="can be given once"):
        run(tmp_path, [ParallelFiles(files=("-",))], dev=[ParallelFiles(files=("-",))])


def test_a_pipe_that_cannot_be_read_twice_is_refused_with_the_way_out(tmp_path: Path) -> None:
    src, tgt = plain(tmp_path, numbered(20)).files
    os.mkfifo(tmp_path / "fifo.de")
    for files in ((src, str(tmp_path / "fifo.de")), (str(tmp_path / "fifo.de"), tgt)):
        with pytest.raises(DataError, match=r"fifo\.de must be a regular file, .* heed train -"):
            run(tmp_path, [ParallelFiles(files=files)])


def test_the_columns_of_a_table_are_told_and_those_asked_for_belong_to_the_corpus(
    tmp_path: Path,
) -> None:
    path = write(
        tmp_path, "c.tsv", [f"news-{n}\t{a}\t{b}" for n, (a, b) in enumerate(numbered(40))]
    )
    tokenizer = replace(CHARS, vocab_size=None)
    choices = {"config": DataConfig(), "tokenizer": tokenizer, "seed": 1}
    notes = []

    def note(event: dict[str, str]) -> None:
        notes.extend([event["text"]] if event["kind"] == "note" else [])

    def prepared(*columns: Any, out: str = "data") -> Prepared | None:
        corpus = Corpus(train=(ParallelFiles(files=(path,), columns=columns),))
        return prepare(corpus, tmp_path / out, **choices, report=note)

    data = prepared()
    assert sorted([*stored(data), *sides(data.dev)]) == sorted(numbered(40))
    assert notes == [
        f'{path}: source = column 2 ("sentence number 0 here"), '
        'target = column 3 ("Satz Nummer 0, hier")'
    ]
    prepared()
    assert len(notes) == 1
    with pytest.raises(RunError, match=r"train file 1\.1 was .*, but is .*, columns 3 and 2\. Use"):
        prepared("3", "2")
    turned = prepared("3", "2", out="turned")
    assert sorted([*stored(turned), *sides(turned.dev)]) == sorted((b, a) for a, b in numbered(40))
    prepared("3", "2", out="turned")


def test_damage_is_noticed_when_the_data_are_opened_again(tmp_path: Path) -> None:
    part = plain(tmp_path, numbered(60))
    run(tmp_path, [part])
    path = tmp_path / "data" / "train.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FormatError, match=r"train\.bin is damaged"):
        run(tmp_path, [part])


@pytest.mark.parametrize("name", ["dev.tsv", "test.tsv"])
def test_a_changed_dev_or_test_set_is_noticed(tmp_path: Path, name: str) -> None:
    part = plain(tmp_path, numbered(60))
    before = run(tmp_path, [part], test_size=3)
    path = tmp_path / "data" / name
    whole = path.read_bytes()
    for changed in (whole.replace(b"here", b"hare", 1), whole + b"one line more\n"):
        path.write_bytes(changed)
        with pytest.raises(FormatError, match=rf"{name} was changed: its checksum is"):
            run(tmp_path, [part], test_size=3)
    path.write_bytes(whole)
    assert run(tmp_path, [part], test_size=3).dev == before.dev
    report = json.loads((tmp_path / "data" / "report.json").read_text())
    del report["checksums"]  # as heed 0.1 wrote it
    (tmp_path / "data" / "report.json").write_text(json.dumps(report))
    assert run(tmp_path, [part], test_size=3).dev == before.dev


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("vocabulary", None, "vocabulary.joint must be bool, but is None"),
        ("vocabulary", {"joint": 1}, r"vocabulary.joint must be bool, but is 1"),
        ("leaks", [], "leaks.train_in_dev must be int, but is None"),
        ("test", "0", "test must be int, but is '0'"),
    ],
)
def test_a_report_that_lacks_something_is_refused_in_words(
    tmp_path: Path, key: str, value: Any, words: str
) -> None:
    part = plain(tmp_path, numbered(60))
    run(tmp_path, [part])
    path = tmp_path / "data" / "report.json"
    report = {**json.loads(path.read_text()), key: value}
    if value is None:
        del report[key]
    path.write_text(json.dumps(report))
    with pytest.raises(FormatError, match=rf"report\.json is damaged: {words}\. Remove .*/data to"):
        run(tmp_path, [part])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_length": 1}, r"data\.max_length must be a whole number from 2.*, but is 1\."),
        ({"dev_size": 0}, r"data\.dev_size must be a whole number from 1.*, but is 0\."),
        ({"test_size": -1}, r"data\.test_size must be a whole number from 0.*, but is -1\."),
        ({"max_chars": 0}, r"data\.max_chars must be a whole number from 1.*, but is 0\."),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        DataConfig(**settings)


@pytest.mark.slow
def test_multi30k_is_ready_in_seconds(tmp_path: Path, shared_data: Any) -> None:
    folder = shared_data / "multi30k-ende"

    def part(name: Any) -> Any:
        files = (str(folder / f"{name}.en.gz"), str(folder / f"{name}.de.gz"))
        return ParallelFiles(files=files, source_lang="en", target_lang="de")

    started = time.process_time()
    data = run(tmp_path, [part("train")], dev=[part("val")], tokenizer=TokenizerConfig())
    # Nine CPU-seconds on a busy machine, most of them SentencePiece's.
    assert time.process_time() - started < 20
    assert (len(data.train), len(data.dev)) == (28_993, 1014)
    assert data.report["leaks"]["train_in_dev"] == 2


def test_both_directions_turn_every_pair_and_keep_both_ways_of_a_pair_together(
    tmp_path: Path,
) -> None:
    pairs, dev = numbered(30), numbered(5, offset=500)
    data = run(
        tmp_path,
        [plain(tmp_path, [*pairs, ("dev one", dev[0][1])])],
        dev=[plain(tmp_path, dev, "dev")],
        both_directions=True,
    )
    turned = [(tgt, src) for src, tgt in pairs]
    assert stored(data) == [pair for both in zip(pairs, turned, strict=True) for pair in both]
    assert sides(data.dev) == [*dev, *((tgt, src) for src, tgt in dev)]
    assert {(pair.source_lang, pair.target_lang) for pair in data.dev[5:]} == {("de", "en")}
    assert (data.source_lang, data.target_lang, data.target_langs) == ("en", "de", ("de", "en"))
    tags = [data.train.src(index)[0] for index in range(2)]
    assert tags == [data.src_vocab.language_id(code) for code in ("de", "en")]
    assert data.report["leaks"]["train_in_dev"] == 1


def test_both_directions_of_unknown_languages_are_refused(tmp_path: Path) -> None:
    files = plain(tmp_path, numbered(30)).files
    for target_lang, words in (("", "en and unknown"), ("en", "en and en")):
        part = ParallelFiles(files=files, source_lang="en", target_lang=target_lang)
        with pytest.raises(ConfigError, match=rf"{words}\. Say which with --source-lang"):
            run(tmp_path, [part], both_directions=True)
