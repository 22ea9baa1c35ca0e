"""Text without translations as ids, the end of each file held out.

A language model reads running text: the lines of a file are one sequence. A masked language model
reads line by line.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

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
from heed.data.store import Store
from heed.data.vocabularies import (
    note_shortfall,
    read_vocabs,
    take_over_vocabs,
    write_vocabs,
)
from heed.errors import ConfigError, DataError
from heed.text.normalize import normalize
from heed.text.stream import stream_ids
from heed.text.vocab import TokenizerConfig, Vocab, choose_vocab_size, train_vocab

BLOCK_CHARACTERS = 1 << 16
"""Most characters that are encoded as one text, unless a line is longer."""

CHARACTERS_PER_PAIR = 100
"""Characters of a usual sentence pair, by which the size of a vocabulary is chosen."""

_FORMAT_VERSION = 1


def prepare_text(
    corpus: Corpus,
    directory: Path,
    *,
    config: TextConfig,
    tokenizer: TokenizerConfig,
    is_running: bool = True,
    base: tuple[Vocab, Vocab] | None = None,
    report: Report = silent,
) -> Prepared:
    """Read and encode the text of a corpus into `directory`, unless it is there.

    Args:
        corpus: its `text` is read.
        directory: of all output; made if missing.
        config: the share that is held out, and the maximum length of a line.
        tokenizer: the vocabulary.
        is_running: the lines belong together; else each is a separate row, a long one several.
        base: the vocabularies of a parent model, used unchanged.
        report: gets events of the progress.

    Raises:
        DataError: a file is missing, is not text, or too little is left to learn from.
        ConfigError: the pieces of `base` are not joint.
        RunError: `directory` holds another text or settings: lists the changes.
        FormatError: `directory` is damaged.
    """
    is_prepared = (directory / REPORT_FILE).exists()
    phase(report, "checking that the text is the same" if is_prepared else "reading the text")
    taken = take_over_vocabs(tokenizer.vocab_from) if tokenizer.vocab_from else base
    if taken and taken[0] is not taken[1]:
        raise ConfigError(
            "a language model needs one vocabulary, but the model to take pieces from has two. "
            "Learn new ones, or use another model."
        )
    of_rows = {} if is_running else {"text.context": str(config.context)}
    prepare_once(
        directory,
        corpus.files,
        lambda: _fingerprint(corpus, config, tokenizer, taken) | of_rows,
        lambda: _write_all(corpus, directory, config, tokenizer, taken, report, is_running),
    )
    return open_text(directory)


def open_text(directory: Path) -> Prepared:
    """Open the output of `prepare_text`.

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
    )


def _write_all(
    corpus: Corpus,
    directory: Path,
    config: TextConfig,
    tokenizer: TokenizerConfig,
    taken: tuple[Vocab, Vocab] | None,
    report: Report,
    is_running: bool,
) -> dict[str, Any]:
    """Write everything except the report, which is returned: written last, it marks completion."""
    lines = [counted(read_lines(file), report, f"reading {file}", unit="lines")
             for file in corpus.text]  # fmt: skip
    sizes = [sum(len(line) + 1 for line in of_file) for of_file in lines]
    n_kept = [round((1 - config.dev_share) * size) for size in sizes]
    parts = list(zip(corpus.text, n_kept, strict=True))
    phase(report, f"{'taking over' if taken else 'learning'} the vocabulary")
    vocab = taken[0] if taken else _learn(parts, tokenizer, sum(n_kept))
    if not taken:
        note_shortfall((vocab, vocab), tokenizer, report)
    write_vocabs(directory, (vocab, vocab))
    counts: dict[str, dict[str, int]] = {"characters": {}, "tokens": {}}
    for name, file, wants_dev in (("train", TRAIN_FILE, False), ("dev", DEV_STORE, True)):
        texts = chain.from_iterable(_blocks(_side(part, wants_dev=wants_dev)) for part in parts)
        n_characters = n_tokens = 0
        encoding = f"encoding the {name} text"
        phase(report, encoding)
        with Store.create(directory / file, vocab.hash, vocab.hash) as store:
            for text in texts:
                rows = stream_ids(vocab, [text])
                if not is_running:
                    rows = _rows(vocab, text.split("\n"), config.context - 1)
                for ids in rows:
                    store.add([], ids)
                    n_tokens += len(ids)
                n_characters += len(text)
                phase(report, encoding, done=n_characters, unit="characters")
        if not n_tokens:
            raise DataError(
                f"{' and '.join(corpus.text)} must hold text for training and development, but "
                f"nothing is left for {name}, because a file is split between its lines. Give more "
                "lines, or another text.dev_share."
            )
        counts["characters"][name], counts["tokens"][name] = n_characters, n_tokens
    report({"kind": "note", "text": _spelled(counts)})
    return {
        **counts,
        "train": counts["tokens"]["train"],
        "test": 0,
        "leaks": {"train_in_dev": 0},
        "vocabulary": {"kind": tokenizer.kind, "joint": True, "size": vocab.size},
    }


def _spelled(counts: dict[str, dict[str, int]]) -> str:
    of_train, of_dev = counts["characters"]["train"], counts["characters"]["dev"]
    return (
        f"{of_train + of_dev:,} characters read; {of_train:,} to learn from, the last {of_dev:,} "
        "for development"
    )


def _learn(parts: list[tuple[str, int]], tokenizer: TokenizerConfig, n_characters: int) -> Vocab:
    different: set[str] = set()
    for part in parts:
        for line in _side(part, wants_dev=False):
            different.update(line)
    usual = choose_vocab_size(n_characters // CHARACTERS_PER_PAIR, n_characters=len(different))
    return train_vocab(
        chain.from_iterable(_side(part, wants_dev=False) for part in parts),
        size=tokenizer.vocab_size or usual,
        kind=tokenizer.kind,
        character_coverage=tokenizer.character_coverage,
        split_han=tokenizer.split_han,
    )


def _side(part: tuple[str, int], *, wants_dev: bool) -> Iterator[str]:
    """The lines of a file that begin before a number of characters, or those after them."""
    file, n_kept = part
    n_seen = 0
    for line in read_lines(file):
        if (n_seen >= n_kept) == wants_dev:
            yield line
        n_seen += len(line) + 1


def _rows(vocab: Vocab, lines: list[str], longest: int) -> list[list[int]]:
    """The ids of each line that is not blank, in pieces of at most `longest` ids."""
    rows = vocab.encode_all(line for line in map(normalize, lines) if line)
    return [ids[i : i + longest] for ids in rows for i in range(0, len(ids), longest)]


def _blocks(lines: Iterable[str]) -> Iterator[str]:
    """The same text in blocks of whole lines, line breaks included."""
    waiting: list[str] = []
    size = 0
    for line in lines:
        waiting.append(f"{line}\n")
        size += len(waiting[-1])
        if size >= BLOCK_CHARACTERS:
            yield "".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield "".join(waiting)


def _fingerprint(
    corpus: Corpus,
    config: TextConfig,
    tokenizer: TokenizerConfig,
    taken: tuple[Vocab, Vocab] | None,
) -> dict[str, str]:
    files = {f"text file {i}": file_facts(file) for i, file in enumerate(corpus.text, start=1)}
    pieces = spelled_settings("tokenizer", tokenizer)
    del pieces["tokenizer.vocab_from"]  # its content counts, not its place
    if taken:
        pieces["vocabulary taken over"] = taken[0].hash[:12]
    return {
        "format": str(_FORMAT_VERSION),
        **files,
        "text.dev_share": str(config.dev_share),
        **pieces,
    }
