"""From text files to the data for training: vocabulary, ids, dev and test sets, a report.

Memory is bounded: pairs are kept in a file on disk, and about 50 bytes of each stay in memory.
"""

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heed.data.clean import CleanReport, Rule, clean, empty, too_long
from heed.data.corpus import Corpus, DataConfig, learned_directions, names_of, tagged_languages
from heed.data.encode import encode_train
from heed.data.exchanged import SAMPLE, note_exchanged
from heed.data.fingerprint import file_facts, spelled_settings
from heed.data.lines import STDIN, require_file
from heed.data.mono import write_mono
from heed.data.none_left import all_dropped, require_drawn
from heed.data.prepared import (
    DEV_FILE,
    REPORT_FILE,
    SPOOL_FILE,
    STDIN_FILE,
    TEST_FILE,
    TRAIN_FILE,
    WORDS_FILE,
    Prepared,
    open_prepared,
    prepare_once,
    read_report,
)
from heed.data.progress import EVERY, Report, counted, phase, silent
from heed.data.readers import Pair, ParallelFiles, read_part, table_columns
from heed.data.split import DEV, MADE, TEST, TRAIN, sentence_key, shared_with, split
from heed.data.spool import Spool, write_pairs
from heed.data.stdin import keep_stdin
from heed.data.vocabularies import (
    extend_vocabs,
    learn_vocabs,
    note_shortfall,
    require_tags,
    take_over_vocabs,
    write_vocabs,
)
from heed.disk.files import (
    crc32,
    temporary_beside,
    write_atomically,
)
from heed.errors import ConfigError, DataError
from heed.text.extend import with_controls
from heed.text.known import KnownWords
from heed.text.normalize import normalize
from heed.text.vocab import MAX_CHARACTERS, TokenizerConfig, Vocab

BACK_TRANSLATED = "<bt>"
READING = "reading the corpus"
_FORMAT_VERSION = 1
_COUNTED_PAIRS = 200_000


def prepare(
    corpus: Corpus,
    directory: Path | str,
    *,
    config: DataConfig,
    tokenizer: TokenizerConfig,
    seed: int,
    base: tuple[Vocab, Vocab] | None = None,
    report: Report = silent,
) -> Prepared:
    """Read, clean, split and encode a corpus into `directory`, unless it is there.

    Equal arguments and files give equal bytes. After an interruption the same call
    starts over; a complete folder is opened.

    Args:
        corpus: the files.
        directory: of all output; made if missing.
        config: cleaning and splitting.
        tokenizer: the vocabulary.
        seed: decides which pairs are set aside.
        base: the vocabularies of a parent model, the same object twice if joint: they are extended,
            and a model that has language tags keeps them.
        report: gets events of the progress (`prepare` events) and, when a corpus was prepared by
            this call, the counts of pairs read and dropped (a `prepared` event).

    Raises:
        DataError: a file is missing or cannot be read in its format; or no pairs are left.
        ConfigError: the files need another setting.
        RunError: `directory` holds another corpus or settings: lists the changes.
        FormatError: `directory` is damaged.
    """
    directory = Path(directory)
    report_path, kept_stdin = directory / REPORT_FILE, directory / STDIN_FILE
    is_prepared, has_stdin = report_path.exists(), _has_stdin(corpus)
    phase(report, "checking that the corpus is the same" if is_prepared else READING)
    stdin = keep_stdin(kept_stdin, is_kept=is_prepared) if has_stdin else ""
    taken = take_over_vocabs(tokenizer.vocab_from) if tokenizer.vocab_from else None

    def facts() -> dict[str, str]:
        wanted = _fingerprint(corpus, config, tokenizer, seed, stdin)
        if is_prepared and "tokenizer.slots" not in read_report(directory).get("fingerprint", {}):
            del wanted["tokenizer.slots"]  # an older heed prepared it, without slots
        for side, vocab in zip(("source", "target"), base or (), strict=False):
            wanted[f"{side} vocabulary extended"] = vocab.hash[:12]
        for side, vocab in zip(("source", "target"), taken or (), strict=False):
            wanted[f"{side} vocabulary taken over"] = vocab.hash[:12]
        return wanted

    def write() -> dict[str, Any]:
        files = _from_file(corpus, kept_stdin)
        for part in (*files.train, *files.dev, *files.test, *files.made):
            if columns := table_columns(part):
                report({"kind": "note", "text": f"{part.files[0]}: {columns}"})
        return _write_all(files, directory, config, tokenizer, seed, taken or base, report)

    if found := prepare_once(directory, corpus.files, facts, write):
        report({"kind": "prepared", "report": found})
    return open_prepared(corpus, directory)


def _has_stdin(corpus: Corpus) -> bool:
    """Whether standard input is to be read; checks first that the other files exist."""
    roles = (corpus.train, corpus.dev, corpus.test, corpus.made)
    names = [name for parts in roles for part in parts for name in part.files]
    names += [text.file for text in corpus.mono]
    for name in names:
        if name != STDIN:
            require_file(name)
    is_table = any(part.files == (STDIN,) for part in corpus.train)
    if names.count(STDIN) > is_table:
        raise ConfigError(
            f"standard input ({STDIN}) can be given once, as a table of both languages to learn "
            "from. Save anything else to a file."
        )
    return is_table


def _from_file(corpus: Corpus, path: Path) -> Corpus:
    """The corpus with standard input replaced by a file."""
    return replace(
        corpus,
        train=tuple(
            replace(part, files=(str(path),)) if part.files == (STDIN,) else part
            for part in corpus.train
        ),
    )


def swapped(pair: Pair) -> Pair:
    """The pair in the opposite direction."""
    return replace(
        pair,
        src=pair.tgt,
        tgt=pair.src,
        source_lang=pair.target_lang,
        target_lang=pair.source_lang,
    )


def _write_all(
    corpus: Corpus,
    directory: Path,
    config: DataConfig,
    tokenizer: TokenizerConfig,
    seed: int,
    base: tuple[Vocab, Vocab] | None,
    report: Report,
) -> dict[str, Any]:
    """Write everything except the report, which is returned: written last, it marks completion."""
    languages = tagged_languages(corpus, config, tokenizer, base[0].languages if base else ())
    dev, dev_reading = _held_out(corpus.dev, "development", config, report, most=config.max_chars)
    test, test_reading = _held_out(corpus.test, "test", config, report)
    cleaning = CleanReport()
    # A temporary name, so that no file of the user is overwritten or removed.
    spool = temporary_beside(directory / SPOOL_FILE)
    try:
        facts = _spool(corpus, spool, config, _not_held_out(dev, test), cleaning, report)
        parts = _split(facts, config, seed, cleaning, needs_dev=not dev, needs_test=not test)
        n_made = cleaning.n_kept - len(parts)
        kept = Spool(spool, np.append(parts, np.full(n_made, MADE, dtype=np.uint8)))
        dev, test = dev or list(kept.pairs(DEV)), test or list(kept.pairs(TEST))
        note_exchanged(kept.pairs(TRAIN, at_most=SAMPLE), report)
        phase(report, f"{_origin(base, tokenizer)} the vocabulary")
        vocabs = _make_vocabs(base, kept, tokenizer, facts, languages, report)
        if corpus.mono:
            vocabs = (with_controls(vocabs[0], [BACK_TRANSLATED]),) * 2
        write_vocabs(directory, vocabs)
        if has_words := tokenizer.slots and (base is None or bool(tokenizer.vocab_from)):
            _write_words(kept, directory, config)
        rules = _not_held_out(dev, test)  # by now also the sentences that were drawn
        mono = write_mono(
            corpus.mono, directory, vocabs[0], config, rules, config.max_length, report
        )
        path = directory / TRAIN_FILE
        tokens, n_made_rows = encode_train(kept, vocabs, path, config, cleaning, report)
    finally:
        spool.unlink(missing_ok=True)
    checksums = _write_held_out(directory, {DEV_FILE: dev, TEST_FILE: test}, config)
    return {
        "pairs": cleaning.to_dict(),
        "words": has_words,
        "directions": list(map(list, learned_directions(corpus, config))),
        "train": cleaning.n_kept - int((parts != TRAIN).sum()),
        "made": n_made_rows,
        "dev": len(dev),
        "test": len(test),
        "dev_pairs": dev_reading.to_dict(),
        "test_pairs": test_reading.to_dict(),
        "leaks": _leaks(facts, corpus.drawn, dev, test),
        "tokens": tokens,
        "mono": mono,
        "checksums": checksums,
        "vocabulary": {
            "kind": tokenizer.kind,
            "joint": vocabs[0] is vocabs[1],
            "source_size": vocabs[0].size,
            "target_size": vocabs[1].size,
        },
    }


def _leaks(
    facts: "_Facts", drawn: tuple[str, ...], dev: list[Pair], test: list[Pair]
) -> dict[str, int]:
    """Pairs that share a sentence with another set, by both sets; those of train were dropped.

    Pairs that a model has translated do not count, nor those of a set that was drawn from train.
    """
    return {
        "train_in_dev": 0 if "dev" in drawn else facts.dropped["in_dev"],
        "train_in_test": 0 if "test" in drawn else facts.dropped["in_test"],
        "dev_in_test": sum(map(bool, map(shared_with(test, "test"), dev))),
    }


def _not_held_out(dev: list[Pair], test: list[Pair]) -> list[Rule]:
    """Rules against text that shares a sentence with dev or test."""
    return [shared_with(pairs, name) for pairs, name in ((dev, "dev"), (test, "test")) if pairs]


def _write_held_out(
    directory: Path, sets: Mapping[str, list[Pair]], config: DataConfig
) -> dict[str, str]:
    """Write dev and test; returns the CRC-32 of each file."""
    checksums = {}
    for name, pairs in sets.items():
        if pairs:
            both = [*pairs, *map(swapped, pairs)] if config.both_directions else pairs
            write_pairs(directory / name, both)
            checksums[name] = f"{crc32(directory / name):08x}"
    return checksums


class _Facts(NamedTuple):
    """What is kept in memory of the real pairs: keys, and counts of characters and of drops."""

    src_keys: "array[int]"  # subscripted by type checkers only before Python 3.12
    tgt_keys: "array[int]"
    src_characters: Counter[str]
    tgt_characters: Counter[str]
    dropped: Counter[str]


def _spool(
    corpus: Corpus,
    path: Path,
    config: DataConfig,
    rules: list[Rule],
    cleaning: CleanReport,
    report: Report,
) -> _Facts:
    """Write the clean pairs to one file, those that a model has translated last."""
    facts = _Facts(array("Q"), array("Q"), Counter(), Counter(), Counter())

    def read() -> Iterator[Pair]:
        yield from chain.from_iterable(map(read_part, corpus.train))
        facts.dropped.update(cleaning.n_dropped)
        yield from chain.from_iterable(map(read_part, corpus.made))

    raw = counted(read(), report, READING)
    made = {part.files[0] for part in corpus.made}

    def noted() -> Iterator[Pair]:
        for pair in clean(raw, config, cleaning, extra_rules=rules):
            if pair.origin in made:
                yield pair
                continue
            facts.src_keys.append(sentence_key(pair.src))
            facts.tgt_keys.append(sentence_key(pair.tgt))
            if cleaning.n_kept <= _COUNTED_PAIRS:
                facts.src_characters.update(pair.src)
                facts.tgt_characters.update(pair.tgt)
            yield pair

    write_pairs(path, noted())
    if cleaning.n_read == 0:
        raise DataError(f"There are no sentence pairs in {names_of(corpus.train)}.")
    if cleaning.n_kept == 0:
        raise all_dropped(names_of(corpus.train), cleaning, config)
    return facts


def _split(
    facts: _Facts,
    config: DataConfig,
    seed: int,
    cleaning: CleanReport,
    *,
    needs_dev: bool,
    needs_test: bool,
) -> NDArray[np.uint8]:
    keys = np.asarray(facts.src_keys), np.asarray(facts.tgt_keys)
    usual_size = min(1000, max(1, len(keys[0]) // 20))
    dev_size = (config.dev_size or usual_size) if needs_dev else 0
    parts = split(
        *keys,
        dev_size=dev_size,
        test_size=config.test_size if needs_test else 0,
        seed=seed,
    )
    require_drawn(parts, keys, config, cleaning, needs_dev=needs_dev, needs_test=needs_test)
    return parts


def _origin(base: tuple[Vocab, Vocab] | None, tokenizer: TokenizerConfig) -> str:
    """What is done to get the vocabularies, for the report."""
    if base is None:
        return "learning"
    return "taking over" if tokenizer.vocab_from else "extending"


def _make_vocabs(
    base: tuple[Vocab, Vocab] | None,
    kept: Spool,
    tokenizer: TokenizerConfig,
    facts: _Facts,
    languages: tuple[str, ...],
    report: Report,
) -> tuple[Vocab, Vocab]:
    if base and tokenizer.vocab_from:
        require_tags(base[0], languages, tokenizer.vocab_from)
        return base
    n_counted = min(len(facts.src_keys), _COUNTED_PAIRS)
    n_characters = facts.src_characters.total() + facts.tgt_characters.total()
    n_enough = max(1, MAX_CHARACTERS * n_counted // n_characters)

    def sample() -> Iterator[Pair]:
        return kept.pairs(TRAIN, at_most=n_enough)

    if base:
        return extend_vocabs(base, sample, tokenizer, languages=languages)
    vocabs = learn_vocabs(
        sample,
        tokenizer,
        n_pairs=int((kept.splits == TRAIN).sum()),
        characters=(facts.src_characters, facts.tgt_characters),
        languages=languages,
    )
    note_shortfall(vocabs, tokenizer, report)
    return vocabs


def _write_words(kept: Spool, directory: Path, config: DataConfig) -> None:
    """Write the words of the sources; not for a run from a model, which has learned others too."""

    def pairs() -> Iterator[tuple[str, str]]:
        for pair in kept.pairs(TRAIN):
            yield pair.src, pair.tgt
            if config.both_directions:
                yield pair.tgt, pair.src

    write_atomically(directory / WORDS_FILE, KnownWords.learn(pairs).to_bytes())


def _held_out(
    parts: tuple[ParallelFiles, ...],
    name: str,
    config: DataConfig,
    report: Report,
    *,
    most: float = math.inf,
) -> tuple[list[Pair], CleanReport]:
    """The pairs of a given dev or test set, except those with an empty or a very long side.

    Each validation translates development pairs, so one of a whole book would take all the time.

    Args:
        parts: its files.
        name: of the set, for progress.
        config: limits, for the message if no pair is left.
        report: gets progress.
        most: characters of a side.
    """
    is_long = too_long(most)
    pairs, cleaning = [], CleanReport()
    for raw in chain.from_iterable(map(read_part, parts)):
        cleaning.n_read += 1
        if cleaning.n_read % EVERY == 0:  # most of these sets are small, and read at once
            phase(report, f"reading the {name} pairs", done=cleaning.n_read)
        pair = replace(raw, src=normalize(raw.src), tgt=normalize(raw.tgt))
        if reason := empty(pair) or is_long(pair):
            cleaning.drop(reason, raw)
        else:
            pairs.append(pair)
    cleaning.n_kept = len(pairs)
    if cleaning.n_dropped and not pairs:
        raise all_dropped(names_of(parts), cleaning, config)
    if parts and not pairs:
        raise DataError(f"There are no sentence pairs in {names_of(parts)}.")
    return pairs, cleaning


def _fingerprint(
    corpus: Corpus, config: DataConfig, tokenizer: TokenizerConfig, seed: int, stdin: str
) -> dict[str, str]:
    """Everything that decides the result, as JSON values."""
    roles = {"train": corpus.train, "dev": corpus.dev, "test": corpus.test, "made": corpus.made}
    files = {
        f"{role} file {number + 1}.{side + 1}": ", ".join(
            (
                stdin if name == STDIN else file_facts(name),
                f"{part.source_lang}-{part.target_lang}",
                *((f"columns {' and '.join(part.columns)}",) if part.columns else ()),
            )
        )
        for role, parts in roles.items()
        for number, part in enumerate(parts)
        for side, name in enumerate(part.files)
    }
    pieces = spelled_settings("tokenizer", tokenizer)
    del pieces["tokenizer.subword_alpha"]  # changes how training reads, not what is written
    del pieces["tokenizer.vocab_from"]  # its content counts, not its path
    settings = spelled_settings("data", config)
    for name in ("recombine", "disturb", "memory", "teachers"):
        del settings[f"data.{name}"]  # the prepared corpus is the same
    return {
        "format": str(_FORMAT_VERSION),
        "seed": str(seed),
        **files,
        **{
            f"mono file {number + 1}": f"{file_facts(text.file)}, {text.language}"
            for number, text in enumerate(corpus.mono)
        },
        **settings,
        **pieces,
    }
