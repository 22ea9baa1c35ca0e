"""From files of sentences to all that training needs, once: vocabulary, ids, dev, test, a report.

Not here: what a rule means (`clean.py`) or how pieces are learnt (`text/vocab.py`). Memory stays
bounded: pairs pass through a file on disk, and some 50 bytes of each stay. Read on in `batch.py`.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heed.data.clean import CleanConfig, CleanReport, Rule, clean, empty
from heed.data.lines import STDIN, read_lines, require_file
from heed.data.readers import Pair, Part, read_part
from heed.data.split import DEV, TEST, TRAIN, sentence_key, shared_with, split
from heed.data.stdin import keep_stdin
from heed.data.store import Store
from heed.errors import ConfigError, DataError, RunError
from heed.files import (
    TEMPORARY,
    atomic_writer,
    crc32,
    make_directory,
    parse_json,
    read_bytes,
    to_json,
    write_atomically,
)
from heed.text.normalize import normalize
from heed.text.vocab import TokenizerConfig, Vocab, choose_vocab_size, train_vocab

REPORT_FILE = "report.json"
TRAIN_FILE = "train.bin"
DEV_FILE = "dev.tsv"
TEST_FILE = "test.tsv"
JOINT_VOCAB_FILE = "spm.model"
SRC_VOCAB_FILE = "source.spm"
TGT_VOCAB_FILE = "target.spm"
STDIN_FILE = "stdin.tsv"
_SPOOL_FILE = "pairs.tsv"
_FORMAT_VERSION = 1
_COUNTED_PAIRS = 200_000


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Where the sentences are.

    Attributes:
        train: to learn from; one file may be `-`, a table with tabs from standard input.
        dev: to choose by; without it some pairs of `train` are set aside.
        test: to judge by; without it some are set aside only if `DataConfig.test_size` says so.
    """

    train: tuple[Part, ...]
    dev: tuple[Part, ...] = ()
    test: tuple[Part, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DataConfig(CleanConfig):
    """What is learnt from, and what is set aside."""

    max_length: int = 256
    """Most pieces a side may have, `<eos>` included; a longer pair is not learnt from."""
    dev_size: int | None = None
    """Pairs set aside for dev if none are given; None: a twentieth of all, 1000 at most."""
    test_size: int = 0
    """Pairs set aside for test if none are given."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_length < 2:
            raise ConfigError(f"data.max_length must be at least 2, but is {self.max_length}.")
        if self.dev_size is not None and self.dev_size < 1:
            raise ConfigError(f"data.dev_size must be at least 1, but is {self.dev_size}.")
        if self.test_size < 0:
            raise ConfigError(f"data.test_size must be at least 0, but is {self.test_size}.")


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A corpus ready for training.

    Attributes:
        src_vocab: pieces of the sources.
        tgt_vocab: pieces of the targets; the same object as `src_vocab` if joint.
        train: the training pairs as ids; with several target languages, each source begins with
            the tag of its own.
        dev: normalized pairs that training never sees.
        test: the same; None if there are none.
        source_lang: code of the language translated from; "" if unknown or several.
        target_lang: code of the language translated into; "" if unknown or several.
        target_langs: the codes, if there are several target languages; else empty.
        report: what was read, dropped and kept, as JSON takes it.
    """

    src_vocab: Vocab
    tgt_vocab: Vocab
    train: Store
    dev: list[Pair]
    test: list[Pair] | None
    source_lang: str
    target_lang: str
    target_langs: tuple[str, ...]
    report: dict[str, Any]


def prepare(
    corpus: Corpus,
    directory: Path | str,
    *,
    config: DataConfig,
    tokenizer: TokenizerConfig,
    seed: int,
) -> Prepared:
    """Read, clean, split and encode a corpus into `directory`, or find it there already.

    Equal arguments and files give equal bytes. Interrupted, the same call begins anew; complete, it
    opens what is there.

    Args:
        corpus: the files.
        directory: where everything is written; made if missing.
        config: cleaning and splitting.
        tokenizer: the vocabulary.
        seed: decides what is set aside.

    Raises:
        DataError: a file is missing or cannot be read as what it is; or nothing is left of it.
        ConfigError: the files need another setting.
        RunError: `directory` holds another corpus or settings: says what has changed.
        FormatError: `directory` is damaged.
    """
    directory = Path(directory)
    report_path, kept_stdin = directory / REPORT_FILE, directory / STDIN_FILE
    is_prepared = report_path.exists()
    stdin = keep_stdin(kept_stdin, is_kept=is_prepared) if _has_stdin(corpus) else ""
    fingerprint = _fingerprint(corpus, config, tokenizer, seed, stdin)
    if is_prepared:
        report = parse_json(read_bytes(report_path), report_path)
        _require_same(report.get("fingerprint"), fingerprint, directory)
    else:
        make_directory(directory)
        report = _write_all(_from_file(corpus, kept_stdin), directory, config, tokenizer, seed)
        report["fingerprint"] = fingerprint
        write_atomically(report_path, to_json(report))
    return open_prepared(corpus, directory)


def _has_stdin(corpus: Corpus) -> bool:
    """Whether standard input is to be read; the other files are seen to be there before it is."""
    roles = (corpus.train, corpus.dev, corpus.test)
    names = [name for parts in roles for part in parts for name in part.files]
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
    """The corpus with a file in the place of standard input."""
    return replace(
        corpus,
        train=tuple(
            replace(part, files=(str(path),)) if part.files == (STDIN,) else part
            for part in corpus.train
        ),
    )


def open_prepared(corpus: Corpus, directory: Path | str) -> Prepared:
    """Open what `prepare` has put into `directory`; the corpus' own files are not looked at.

    Raises:
        FormatError: `directory` is damaged.
    """
    directory = Path(directory)
    report = parse_json(read_bytes(directory / REPORT_FILE), directory / REPORT_FILE)
    if report["vocabulary"]["joint"]:
        src_vocab = tgt_vocab = Vocab.load(directory / JOINT_VOCAB_FILE)
    else:
        src_vocab = Vocab.load(directory / SRC_VOCAB_FILE)
        tgt_vocab = Vocab.load(directory / TGT_VOCAB_FILE)
    source_langs = {part.source_lang for part in corpus.train}
    target_langs = _target_langs(corpus)
    return Prepared(
        src_vocab=src_vocab,
        tgt_vocab=tgt_vocab,
        train=Store.open(directory / TRAIN_FILE, src_vocab.hash, tgt_vocab.hash),
        dev=list(_read_pairs(directory / DEV_FILE)),
        test=list(_read_pairs(directory / TEST_FILE)) if report["test"] else None,
        source_lang=source_langs.pop() if len(source_langs) == 1 else "",
        target_lang="" if target_langs else corpus.train[0].target_lang,
        target_langs=target_langs,
        report=report,
    )


def _target_langs(corpus: Corpus) -> tuple[str, ...]:
    """Every target language in order of appearance, if there are several."""
    found = tuple(dict.fromkeys(part.target_lang for part in corpus.train))
    return found if len(found) > 1 else ()


def _write_all(
    corpus: Corpus, directory: Path, config: DataConfig, tokenizer: TokenizerConfig, seed: int
) -> dict[str, Any]:
    """Everything but the report, which is returned: it goes last, and says that all is there."""
    for left_over in directory.glob(f"*{TEMPORARY}*"):
        left_over.unlink()
    dev, dev_reading = _held_out(corpus.dev)
    test, test_reading = _held_out(corpus.test)
    rules = [shared_with(pairs, name) for pairs, name in ((dev, "dev"), (test, "test")) if pairs]
    cleaning = CleanReport()
    spool = directory / _SPOOL_FILE
    try:
        facts = _spool(corpus, spool, config, rules, cleaning)
        parts = _split(facts, config, seed, needs_dev=not dev, needs_test=not test)
        kept = _Kept(spool, parts)
        dev, test = dev or list(kept.part(DEV)), test or list(kept.part(TEST))
        n_train = int((parts == TRAIN).sum())
        languages = _target_langs(corpus)
        vocabs = _learn_vocabs(kept, tokenizer, n_train, facts, languages, directory)
        tokens = _encode(kept, vocabs, directory, config, cleaning, is_tagged=bool(languages))
    finally:
        spool.unlink(missing_ok=True)
    _write_pairs(directory / DEV_FILE, dev)
    if test:
        _write_pairs(directory / TEST_FILE, test)
    src_vocab, tgt_vocab = vocabs
    return {
        "pairs": cleaning.to_dict(),
        "train": cleaning.n_kept - int((parts != TRAIN).sum()),
        "dev": len(dev),
        "test": len(test),
        "dev_pairs": dev_reading.to_dict(),
        "test_pairs": test_reading.to_dict(),
        "leaks": {
            "train_in_dev": cleaning.n_dropped.get("in_dev", 0),
            "train_in_test": cleaning.n_dropped.get("in_test", 0),
            "dev_in_test": sum(map(bool, map(shared_with(test, "test"), dev))),
        },
        "tokens": tokens,
        "vocabulary": {
            "kind": tokenizer.kind,
            "joint": src_vocab is tgt_vocab,
            "source_size": src_vocab.size,
            "target_size": tgt_vocab.size,
        },
    }


class _Facts(NamedTuple):
    """What is remembered of each kept pair, and the characters of both sides."""

    src_keys: "array[int]"  # subscripted by type checkers only before Python 3.12
    tgt_keys: "array[int]"
    src_characters: Counter[str]
    tgt_characters: Counter[str]


def _spool(
    corpus: Corpus, path: Path, config: DataConfig, rules: list[Rule], report: CleanReport
) -> _Facts:
    """Write the clean pairs to one file, whose lines no pair can break: they are normalized."""
    facts = _Facts(array("Q"), array("Q"), Counter(), Counter())
    raw = chain.from_iterable(map(_read_part, corpus.train))
    with atomic_writer(path) as file:
        for pair in clean(raw, config, report, extra_rules=rules):
            file.write(_as_row(pair))
            facts.src_keys.append(sentence_key(pair.src))
            facts.tgt_keys.append(sentence_key(pair.tgt))
            if report.n_kept <= _COUNTED_PAIRS:
                facts.src_characters.update(pair.src)
                facts.tgt_characters.update(pair.tgt)
    if report.n_read == 0:
        raise DataError(f"{_names(corpus.train)} must hold sentence pairs, but holds none.")
    if report.n_kept == 0:
        reasons = ", ".join(f"{reason} {count}" for reason, count in report.n_dropped.items())
        raise DataError(
            f"{_names(corpus.train)} must hold usable pairs, but all {report.n_read} were "
            f"dropped ({reasons})."
        )
    return facts


def _split(
    facts: _Facts, config: DataConfig, seed: int, *, needs_dev: bool, needs_test: bool
) -> NDArray[np.uint8]:
    n_pairs = len(facts.src_keys)
    usual_size = min(1000, max(1, n_pairs // 20))
    dev_size = (config.dev_size or usual_size) if needs_dev else 0
    parts = split(
        np.asarray(facts.src_keys),
        np.asarray(facts.tgt_keys),
        dev_size=dev_size,
        test_size=config.test_size if needs_test else 0,
        seed=seed,
    )
    if needs_dev and not (parts == DEV).any():
        raise DataError(
            f"No dev set can be drawn from {n_pairs} pairs that share their sentences. "
            "Give one with --dev-src and --dev-tgt."
        )
    if not (parts == TRAIN).any():
        raise DataError(
            f"Nothing is left to learn from: of {n_pairs} usable pairs all went to dev and test. "
            "Lower data.dev_size and data.test_size, or give more pairs."
        )
    return parts


class _Kept(NamedTuple):
    """The clean pairs on disk and the part each belongs to; each reading starts over."""

    path: Path
    parts: NDArray[np.uint8]

    def part(self, part: int) -> Iterator[Pair]:
        for pair, number in zip(_read_pairs(self.path), self.parts, strict=True):
            if number == part:
                yield pair


def _learn_vocabs(
    kept: _Kept,
    tokenizer: TokenizerConfig,
    n_pairs: int,
    facts: _Facts,
    languages: tuple[str, ...],
    directory: Path,
) -> tuple[Vocab, Vocab]:
    def learn(sentences: Iterable[str], characters: Counter[str]) -> Vocab:
        n_characters = _n_usual(characters, tokenizer.character_coverage)
        usual_size = choose_vocab_size(n_pairs, n_characters=n_characters)
        return train_vocab(
            sentences,
            size=tokenizer.vocab_size or usual_size,
            kind=tokenizer.kind,
            character_coverage=tokenizer.character_coverage,
            split_han=tokenizer.split_han,
            languages=languages,
        )

    if tokenizer.joint:
        both = (text for pair in kept.part(TRAIN) for text in (pair.src, pair.tgt))
        vocab = learn(both, facts.src_characters + facts.tgt_characters)
        write_atomically(directory / JOINT_VOCAB_FILE, vocab.to_bytes())
        return vocab, vocab
    src_vocab = learn((pair.src for pair in kept.part(TRAIN)), facts.src_characters)
    tgt_vocab = learn((pair.tgt for pair in kept.part(TRAIN)), facts.tgt_characters)
    write_atomically(directory / SRC_VOCAB_FILE, src_vocab.to_bytes())
    write_atomically(directory / TGT_VOCAB_FILE, tgt_vocab.to_bytes())
    return src_vocab, tgt_vocab


def _n_usual(characters: Counter[str], coverage: float) -> int:
    """How many different characters make up this share of a text."""
    counts = np.cumsum([count for _, count in characters.most_common()])
    return int(np.searchsorted(counts, coverage * counts[-1])) + 1 if len(counts) else 0


def _encode(
    kept: _Kept,
    vocabs: tuple[Vocab, Vocab],
    directory: Path,
    config: DataConfig,
    report: CleanReport,
    *,
    is_tagged: bool,
) -> dict[str, int]:
    """Write the training pairs as ids; returns how many tokens they have, `<eos>` included."""
    src_vocab, tgt_vocab = vocabs
    tokens = {"source": 0, "target": 0}
    with Store.create(directory / TRAIN_FILE, src_vocab.hash, tgt_vocab.hash) as store:
        for pair in kept.part(TRAIN):
            tag = [src_vocab.language_id(pair.target_lang)] if is_tagged else []
            src_ids = [*tag, *src_vocab.encode(pair.src)]
            tgt_ids = tgt_vocab.encode(pair.tgt)
            if max(len(src_ids), len(tgt_ids)) + 1 > config.max_length:
                report.n_kept -= 1
                report.drop("too_long", pair)
                continue
            store.add(src_ids, tgt_ids)
            tokens["source"] += len(src_ids) + 1
            tokens["target"] += len(tgt_ids) + 1
        if not tokens["target"]:
            raise DataError(
                f"Nothing is left to learn from: every pair has more than {config.max_length} "
                "pieces on a side. Raise data.max_length."
            )
    return tokens


def _held_out(parts: tuple[Part, ...]) -> tuple[list[Pair], CleanReport]:
    """The pairs of a given dev or test set: only those with an empty side are left out."""
    pairs, report = [], CleanReport()
    for raw in chain.from_iterable(map(_read_part, parts)):
        report.n_read += 1
        pair = replace(raw, src=normalize(raw.src), tgt=normalize(raw.tgt))
        if reason := empty(pair):
            report.drop(reason, raw)
        else:
            pairs.append(pair)
    report.n_kept = len(pairs)
    if parts and not pairs:
        raise DataError(f"{_names(parts)} must hold sentence pairs, but holds none.")
    return pairs, report


def _read_part(part: Part) -> Iterator[Pair]:
    for pair in read_part(part):
        yield replace(pair, source_lang=part.source_lang, target_lang=part.target_lang)


def _as_row(pair: Pair) -> bytes:
    fields = (
        pair.source_lang,
        pair.target_lang,
        str(pair.line),
        " ".join(pair.origin.split()),
        pair.src,
        pair.tgt,
    )
    return ("\t".join(fields) + "\n").encode("utf-8", "replace")


def _write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    with atomic_writer(path) as file:
        file.writelines(map(_as_row, pairs))


def _read_pairs(path: Path) -> Iterator[Pair]:
    for line in read_lines(path):
        source_lang, target_lang, number, origin, src, tgt = line.split("\t")
        yield Pair(src, tgt, int(number), origin, source_lang, target_lang)


def _names(parts: Iterable[Part]) -> str:
    return " and ".join(name for part in parts for name in part.files)


def _fingerprint(
    corpus: Corpus, config: DataConfig, tokenizer: TokenizerConfig, seed: int, stdin: str
) -> dict[str, Any]:
    """What decides the result, as JSON gives it back."""
    files: dict[str, str] = {}
    for role, parts in (("train", corpus.train), ("dev", corpus.dev), ("test", corpus.test)):
        for number, part in enumerate(parts):
            for side, name in enumerate(part.files):
                facts = stdin if name == STDIN else _facts(name)
                languages = f"{part.source_lang}-{part.target_lang}"
                files[f"{role} file {number + 1}.{side + 1}"] = f"{facts}, {languages}"
    data = {f"data.{key}": str(value) for key, value in asdict(config).items()}
    pieces = {f"tokenizer.{key}": str(value) for key, value in asdict(tokenizer).items()}
    del pieces["tokenizer.subword_alpha"]  # decides how training reads, not what is written
    return {"format": str(_FORMAT_VERSION), "seed": str(seed), **files, **data, **pieces}


def _facts(name: str) -> str:
    return f"{name}, {Path(name).stat().st_size} bytes, checksum {crc32(name):08x}"


def _require_same(found: Any, wanted: Mapping[str, str], directory: Path) -> None:
    if found == wanted:
        return
    before = found if isinstance(found, dict) else {}
    changes = [
        f"{key} was {before.get(key, 'absent')}, but is {wanted.get(key, 'absent')}"
        for key in sorted({*before, *wanted})
        if before.get(key) != wanted.get(key)
    ]
    raise RunError(
        f"{directory} was prepared from something else: {'; '.join(changes)}. "
        "Use another --out, or go back to what it was."
    )
