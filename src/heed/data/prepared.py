"""A corpus ready for training: its contents, the names of its files, and how to open it.

`prepare.py`, `running_text.py` and `labeled.py` make it.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from heed.data.corpus import Corpus
from heed.data.fingerprint import require_same, unchanged
from heed.data.mono import MONO_FILES, open_mono
from heed.data.readers import Pair
from heed.data.spool import read_pairs
from heed.data.store import Store
from heed.data.vocabularies import VOCAB_FILES, read_vocabs
from heed.disk.files import make_directory, parse_json, read_bytes, to_json, write_atomically
from heed.disk.folders import remove_temporaries
from heed.errors import FormatError
from heed.text.known import KnownWords
from heed.text.languages import Directions, as_directions, directions_to_store
from heed.text.vocab import N_SPECIAL, Vocab

DATA = "data"
"""The prepared corpus, in the run folder."""
REPORT_FILE = "report.json"
TRAIN_FILE = "train.bin"
DEV_FILE = "dev.tsv"
TEST_FILE = "test.tsv"
DEV_STORE = "dev.bin"
STDIN_FILE = "stdin.tsv"
WORDS_FILE = "words.dat"
SPOOL_FILE = "spool.tsv"
OWN_FILES = (
    *(REPORT_FILE, TRAIN_FILE, DEV_FILE, TEST_FILE, DEV_STORE, STDIN_FILE, MONO_FILES, SPOOL_FILE),
    *VOCAB_FILES,
    WORDS_FILE,
)
"""Names of all files written here; `*` stands for any characters."""
_REPORT_KEYS = {"vocabulary.joint": bool, "train": int, "test": int, "leaks.train_in_dev": int}
"""The keys of a report that are read, and the type of each value."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A corpus ready for training.

    Attributes:
        src_vocab: pieces of the sources.
        tgt_vocab: pieces of the targets; the same object as `src_vocab` if joint.
        train: the training pairs as ids; with several target languages, each source begins with
            the tag of its own.
        dev: normalized pairs that training never reads.
        test: the same; None if there are none.
        source_lang: code of the language the corpus translates from; "" if unknown or several.
        target_lang: code of the language it translates into; "" if unknown or several.
        target_langs: all codes, if the model is to learn several target languages; else empty.
        directions: all that the model is to learn, if the languages above do not imply them.
        report: counts of pairs read, dropped and kept, as JSON values.
        mono: sentences in one language, by language, as targets of empty sources.
        dev_text: of a language model, whose `train` is text as targets of empty sources: text that
            training never reads; of a classifier, texts and the ids of their labels.
        labels: of a classifier: the labels, which are the targets of `train`.
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
    mono: dict[str, Store] = field(default_factory=dict)
    dev_text: Store | None = None
    labels: tuple[str, ...] = ()
    directions: Directions = ()

    def learns(self, directions: Directions) -> "Prepared":
        """The same for a model that translates in these directions; none = not known."""
        languages = self.source_lang, self.target_lang, self.target_langs
        return replace(self, directions=directions_to_store(directions, *languages))

    @property
    def learned(self) -> Directions:
        """The directions of the training pairs; empty if unknown."""
        # A report of an older heed does not have this entry.
        return as_directions(self.report.get("directions", [])) or ()

    @property
    def n_real(self) -> int:
        """The number of rows of `train`, its first ones, that no model has translated."""
        # A report of an older heed does not have this entry.
        return len(self.train) - int(self.report.get("made", 0))

    @property
    def n_outputs(self) -> int:
        """The number of ids that the model chooses from."""
        return N_SPECIAL + len(self.labels) if self.labels else self.tgt_vocab.size


def open_prepared(corpus: Corpus, directory: Path | str) -> Prepared:
    """Open the output of `prepare` in `directory`, without reading the corpus' own files.

    Raises:
        FormatError: `directory` is damaged.
    """
    directory = Path(directory)
    report = read_report(directory)
    words = directory / WORDS_FILE
    with remedied(directory):
        src_vocab, tgt_vocab = read_vocabs(directory, is_joint=report["vocabulary"]["joint"])
        # A report of heed 0.1 does not have this entry.
        if report.get("words", words.exists()):
            src_vocab.known_words = KnownWords.from_bytes(read_bytes(words), words)
    source_langs = {part.source_lang for part in corpus.train}
    target_langs = {part.target_lang for part in corpus.train}
    data = Prepared(
        src_vocab=src_vocab,
        tgt_vocab=tgt_vocab,
        train=Store.open(directory / TRAIN_FILE, src_vocab.hash, tgt_vocab.hash),
        dev=read_held_out(directory, DEV_FILE),
        test=read_held_out(directory, TEST_FILE) if report["test"] else None,
        source_lang=source_langs.pop() if len(source_langs) == 1 else "",
        target_lang=target_langs.pop() if len(target_langs) == 1 else "",
        target_langs=src_vocab.languages,
        report=report,
        mono=open_mono(report.get("mono", ()), directory, src_vocab),
    )
    return data.learns(data.learned)


def prepare_once(
    directory: Path,
    files: Iterable[str],
    facts: Callable[[], dict[str, str]],
    write: Callable[[], dict[str, Any]],
) -> dict[str, Any] | None:
    """Prepare a corpus, unless it is prepared.

    Args:
        directory: of all output; made if missing.
        files: of the corpus.
        facts: returns those that the corpus depends on, of its settings and files.
        write: writes all but the report, and returns that. Written last, it marks completion.

    Returns:
        The report; None if the corpus was prepared before.

    Raises:
        DataError: a file changes meanwhile.
        RunError: `directory` holds another corpus or settings: lists the changes.
        FormatError: `directory` is damaged.
    """
    is_prepared = (directory / REPORT_FILE).exists()
    with unchanged(files):
        wanted = facts()
        if is_prepared:
            require_same(read_report(directory).get("fingerprint"), wanted, directory)
            return None
        make_directory(directory)
        remove_temporaries(directory, OWN_FILES)
        report = write()
    report["fingerprint"] = wanted
    write_atomically(directory / REPORT_FILE, to_json(report))
    return report


@contextmanager
def remedied(directory: Path) -> Iterator[None]:
    """Add to an error about a file of a prepared folder what to do.

    Raises:
        FormatError: instead of the one that ended the block.
    """
    try:
        yield
    except FormatError as error:
        raise FormatError(f"{error} Remove {directory} to prepare the corpus again.") from error


def read_report(directory: Path) -> dict[str, Any]:
    """The report of a prepared folder.

    Raises:
        FormatError: it is missing or damaged.
    """
    path = directory / REPORT_FILE
    with remedied(directory):
        report = parse_json(read_bytes(path), path)
        for key, kind in _REPORT_KEYS.items():
            value: Any = report
            for name in key.split("."):
                value = value.get(name) if isinstance(value, dict) else None
            if type(value) is not kind:
                raise FormatError(
                    f"{path} is damaged: {key} must be {kind.__name__}, but is {value!r}."
                )
    return report


def read_held_out(directory: Path, name: str) -> list[Pair]:
    """The pairs of `DEV_FILE` or `TEST_FILE`, compared with the checksum in the report.

    Raises:
        FormatError: the file is missing, or was changed since it was written.
    """
    has_report = (directory / REPORT_FILE).exists()
    sums = read_report(directory).get("checksums") if has_report else None
    # Reports of heed 0.1 have no checksums.
    return list(read_pairs(directory / name, sums.get(name) if isinstance(sums, dict) else None))
