"""Text in one language: read, cleaned and stored.

Training restores it from gaps (`train/epochs/denoise.py`) or translates it back
(`train/epochs/back_translation.py`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from heed.data.clean import CleanConfig, CleanReport, Rule, amount, clean
from heed.data.lines import read_lines
from heed.data.progress import Report, counted, silent
from heed.data.readers import Pair
from heed.data.store import Store
from heed.errors import DataError
from heed.text.vocab import Vocab

MONO_FILES = "mono.*.bin"
"""Pattern of the files that `write_mono` writes."""


@dataclass(frozen=True, kw_only=True)
class Mono:
    """A file of sentences in one language.

    Attributes:
        file: a sentence a line, plain or compressed.
        language: code such as `en`, one of the corpus's two.
    """

    file: str
    language: str


def write_mono(
    texts: tuple[Mono, ...],
    directory: Path,
    vocab: Vocab,
    config: CleanConfig,
    rules: Iterable[Rule],
    max_length: int,
    report: Report = silent,
) -> dict[str, Any]:
    """Store the sentences of each language as ids, all files of a language together.

    Args:
        texts: the files.
        directory: the folder that `open_mono` reads.
        vocab: the pieces.
        config: rules by which sentences are dropped, as for pairs.
        rules: further rules; a sentence is passed to them as a pair with itself.
        max_length: most pieces of a sentence, `<eos>` included.
        report: gets the number of lines read.

    Returns:
        Counts of sentences read, dropped and kept, by language.

    Raises:
        DataError: a file is missing or not text, or none of its sentences can be used.
    """
    found = {}
    for language in dict.fromkeys(text.language for text in texts):
        files = [text.file for text in texts if text.language == language]
        cleaning = CleanReport()
        raw = chain.from_iterable(map(_as_pairs, files))
        lines = counted(raw, report, f"reading and encoding text in {language}", unit="lines")
        # A sentence without a translation is a pair with itself, so copies must be kept.
        kept = clean(lines, replace(config, keep_copies=True), cleaning, extra_rules=rules)
        with Store.create(_path(directory, language), vocab.hash, vocab.hash) as store:
            for pair in kept:
                ids = vocab.encode(pair.tgt)
                if len(ids) + 1 > max_length:
                    cleaning.n_kept -= 1
                    cleaning.drop("too_many_pieces", pair)
                else:
                    store.add([], ids)
            if not cleaning.n_kept:
                raise DataError(
                    f"{' and '.join(files)} must hold sentences to learn from, but none of "
                    f"{amount(cleaning.n_read, 'line')} can be used."
                )
        found[language] = cleaning.to_dict()
    return found


def open_mono(languages: Iterable[str], directory: Path, vocab: Vocab) -> dict[str, Store]:
    """The sentences of each language, as targets of a store whose sources are empty.

    Raises:
        FormatError: a file is missing or damaged.
    """
    return {
        language: Store.open(_path(directory, language), vocab.hash, vocab.hash)
        for language in languages
    }


def _path(directory: Path, language: str) -> Path:
    return directory / f"mono.{language}.bin"


def _as_pairs(file: str) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(file), start=1):
        yield Pair(line, line, number, file)
