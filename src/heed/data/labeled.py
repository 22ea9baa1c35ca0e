"""Labeled text, for a classifier: a label and a text in each line."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from heed.data.corpus import Corpus, TextConfig
from heed.data.fingerprint import file_facts, spelled_settings
from heed.data.lines import read_lines
from heed.data.prepared import (
    DEV_STORE,
    REPORT_FILE,
    TRAIN_FILE,
    Prepared,
    prepare_once,
    read_report,
    remedied,
)
from heed.data.progress import Report, counted, phase, silent
from heed.data.split import LARGEST_KNOT, sentence_key
from heed.data.store import Store
from heed.data.vocabularies import (
    note_shortfall,
    read_vocabs,
    take_over_vocabs,
    write_vocabs,
)
from heed.errors import DataError
from heed.text.normalize import normalize
from heed.text.vocab import N_SPECIAL, TokenizerConfig, Vocab, choose_vocab_size, train_vocab

MAX_LABELS = 10_000

_FORMAT_VERSION = 1

Labeled = tuple[str, str]
"""A label and a text."""


def read_labeled(path: str | Path, report: Report = silent) -> Iterator[Labeled]:
    """The lines of a file as label and text, with a tab between them or else the first blank.

    Args:
        path: the file.
        report: gets events of the progress.

    Raises:
        DataError: a line has no text after its label; or the file is missing or not text.
    """
    lines = counted(read_lines(path), report, f"reading {path}", unit="lines")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        label, separator, text = line.partition("\t" if "\t" in line else " ")
        if not separator or not label.strip() or not text.strip():
            raise DataError(
                f"{path} line {number} must be a label, a tab and a text, but is {line!r:.60}."
            )
        yield normalize(label), normalize(text)


def prepare_labeled(
    corpus: Corpus,
    directory: Path,
    *,
    config: TextConfig,
    tokenizer: TokenizerConfig,
    seed: int,
    base: tuple[Vocab, Vocab] | None = None,
    report: Report = silent,
) -> Prepared:
    """Read and encode labeled text into `directory`, unless it is there.

    Args:
        corpus: its `labeled` and `dev_labeled` are read.
        directory: of all output; made if missing.
        config: the share held out without `dev_labeled`, and the maximum length of a text; the end
            of a longer one is not read.
        tokenizer: the vocabulary.
        seed: decides which texts are held out.
        base: the vocabularies of a parent model, used unchanged.
        report: gets events of the progress.

    Raises:
        DataError: a file is missing or malformed, there are fewer than two labels, or a label of
            the development set does not occur in training.
        RunError: `directory` holds another corpus or settings: lists the changes.
        FormatError: `directory` is damaged.
    """
    is_prepared = (directory / REPORT_FILE).exists()
    phase(report, "checking that the text is the same" if is_prepared else "reading the text")
    taken = take_over_vocabs(tokenizer.vocab_from) if tokenizer.vocab_from else base
    prepare_once(
        directory,
        corpus.files,
        lambda: _fingerprint(corpus, config, tokenizer, seed, taken),
        lambda: _write_all(corpus, directory, config, tokenizer, seed, taken, report),
    )
    return open_labeled(directory)


def open_labeled(directory: Path) -> Prepared:
    """Open the output of `prepare_labeled`.

    Raises:
        FormatError: `directory` is damaged.
    """
    report = read_report(directory)
    with remedied(directory):
        vocab, _ = read_vocabs(directory, is_joint=True)
    return Prepared(
        src_vocab=vocab,
        tgt_vocab=vocab,
        train=Store.open(directory / TRAIN_FILE, vocab.hash, vocab.hash),
        dev=[],
        test=None,
        source_lang="",
        target_lang="",
        target_langs=(),
        report=report,
        dev_text=Store.open(directory / DEV_STORE, vocab.hash, vocab.hash),
        labels=tuple(report["labels"]),
    )


def _write_all(
    corpus: Corpus,
    directory: Path,
    config: TextConfig,
    tokenizer: TokenizerConfig,
    seed: int,
    taken: tuple[Vocab, Vocab] | None,
    report: Report,
) -> dict[str, Any]:
    """Write everything except the report, which is returned: written last, it marks completion."""
    train = [row for path in corpus.labeled for row in read_labeled(path, report)]
    dev = [row for path in corpus.dev_labeled for row in read_labeled(path, report)]
    if corpus.dev_labeled and not dev:
        raise DataError(f"There are no labeled texts in {' and '.join(corpus.dev_labeled)}.")
    if not dev:
        train, dev = _held_out(train, config.dev_share, seed)
    labels = sorted({label for label, _ in train})
    names = " and ".join(corpus.labeled)
    if len(labels) < 2:
        raise DataError(f"{names} must hold texts with at least two labels, but has {len(labels)}.")
    if not dev:
        raise DataError(
            f"{names} has one text for each label, equal ones counted once, so none can be held "
            "out for development. Give more texts for a label, or others with --dev-labeled FILE."
        )
    if len(labels) > MAX_LABELS:
        raise DataError(f"{names} has {len(labels):,} labels; at most {MAX_LABELS:,} are possible.")
    if unknown := {label for label, _ in dev} - set(labels):
        raise DataError(f"no training text has the label {min(unknown)!r} of the development set.")
    phase(report, f"{'taking over' if taken else 'learning'} the vocabulary")
    vocab = taken[0] if taken else _learn(train, tokenizer)
    if not taken:
        note_shortfall((vocab, vocab), tokenizer, report)
    write_vocabs(directory, (vocab, vocab))
    numbers = {label: N_SPECIAL + place for place, label in enumerate(labels)}
    n_cut = 0
    for file, rows in ((TRAIN_FILE, train), (DEV_STORE, dev)):
        with Store.create(directory / file, vocab.hash, vocab.hash) as store:
            encoded = vocab.encode_all(text for _, text in rows)
            for (label, _), ids in zip(rows, encoded, strict=True):
                n_cut += len(ids) >= config.context
                store.add(ids[: config.context - 1], [numbers[label]])
    note = f"{len(train):,} texts to learn from, {len(dev):,} for development, {len(labels)} labels"
    if n_cut:
        have, are = ("has", "is") if n_cut == 1 else ("have", "are")
        note += f"; {n_cut:,} {have} more than {config.context - 1} pieces and {are} truncated"
    report({"kind": "note", "text": note})
    return {
        "labels": labels,
        "train": len(train),
        "dev": len(dev),
        "test": 0,
        "leaks": {"train_in_dev": 0},
        "vocabulary": {"kind": tokenizer.kind, "joint": True, "size": vocab.size},
    }


def _held_out(rows: list[Labeled], share: float, seed: int) -> tuple[list[Labeled], list[Labeled]]:
    """Rows for training and for development, drawn at random.

    Training has all labels, and rows of equal texts stay together.
    """
    random = np.random.Generator(np.random.Philox(key=np.array([seed, 1], dtype=np.uint64)))
    n_wanted = max(1, round(share * len(rows)))
    left = Counter(label for label, _ in rows)
    by_text: dict[int, list[int]] = {}
    for place, (_, text) in enumerate(rows):
        by_text.setdefault(sentence_key(text), []).append(place)
    groups = list(by_text.values())
    shuffled = (groups[number] for number in random.permutation(len(groups)).tolist())
    drawn: set[int] = set()
    for group in sorted(shuffled, key=_rank):
        if drawn and len(drawn) + len(group) > n_wanted:
            continue
        labels = Counter(rows[place][0] for place in group)
        if all(left[label] > count for label, count in labels.items()):
            left -= labels
            drawn.update(group)
    dev = [row for place, row in enumerate(rows) if place in drawn]
    return [row for place, row in enumerate(rows) if place not in drawn], dev


def _rank(group: list[int]) -> int:
    """Groups of the usual sizes first, in any order, then larger ones by size."""
    return len(group) if len(group) > LARGEST_KNOT else 0


def _learn(rows: list[Labeled], tokenizer: TokenizerConfig) -> Vocab:
    different = {character for _, text in rows for character in text}
    return train_vocab(
        (text for _, text in rows),
        size=tokenizer.vocab_size or choose_vocab_size(len(rows), n_characters=len(different)),
        kind=tokenizer.kind,
        character_coverage=tokenizer.character_coverage,
        split_han=tokenizer.split_han,
    )


def _fingerprint(
    corpus: Corpus,
    config: TextConfig,
    tokenizer: TokenizerConfig,
    seed: int,
    taken: tuple[Vocab, Vocab] | None,
) -> dict[str, str]:
    found = {"format": str(_FORMAT_VERSION), "seed": str(seed)}
    for role, files in (("labeled", corpus.labeled), ("dev", corpus.dev_labeled)):
        for number, file in enumerate(files, start=1):
            found[f"{role} file {number}"] = file_facts(file)
    pieces = spelled_settings("tokenizer", tokenizer)
    del pieces["tokenizer.vocab_from"]  # its content counts, not its path
    if taken:
        pieces["vocabulary taken over"] = taken[0].hash[:12]
    return {**found, **pieces, "text.context": str(config.context),
            "text.dev_share": str(config.dev_share)}  # fmt: skip
