"""The files that `heed train` learns from, as given by flags and arguments."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from heed.errors import UsageError

if TYPE_CHECKING:
    from heed.data.corpus import Corpus
    from heed.data.readers import ParallelFiles

LANGUAGE = re.compile(r"[a-z]{2}([-_]([A-Z]{2}|[A-Z][a-z]{3}))?")


@dataclass(frozen=True, kw_only=True)
class CorpusFlags:
    """The files of the corpus, beside the arguments of the command.

    Attributes:
        src: files of source lines.
        tgt: as many files with their translations.
        dev_src: source lines of the development set.
        dev_tgt: their translations.
        source_lang: code; None = from the names of the files.
        target_lang: code; None = from the names of the files.
        columns: two columns of a table, such as `2,3`; None = detected.
        mono_src: files with more text in the source language.
        mono_tgt: files with more text in the target language.
        text: text files for a language model.
        labeled: files of labeled text for a classifier.
        dev_labeled: labeled text of the development set.
    """

    src: tuple[str, ...] = ()
    tgt: tuple[str, ...] = ()
    dev_src: tuple[str, ...] = ()
    dev_tgt: tuple[str, ...] = ()
    source_lang: str | None = None
    target_lang: str | None = None
    columns: str | None = None
    mono_src: tuple[str, ...] = ()
    mono_tgt: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    labeled: tuple[str, ...] = ()
    dev_labeled: tuple[str, ...] = ()


OWN_FLAGS = {"lm": ("text",), "mlm": ("text",), "classify": ("labeled", "dev_labeled")}
"""For each task, the flags for its text; the other flags are for translation."""


def text_from(texts: CorpusFlags, files: list[str], task: str) -> "Corpus":
    """The text given by flags and arguments, for a task other than translation.

    Raises:
        UsageError: there is no text, or there is text for another task.
    """
    from heed.data.corpus import Corpus

    own, *others = OWN_FLAGS[task]
    given = [field.name for field in fields(texts) if getattr(texts, field.name)]
    if foreign := [name for name in given if name not in (own, *others)]:
        flag = foreign[0].replace("_", "-")
        raise UsageError(f"--{flag} cannot be used with --task {task}; use --{own} FILE.")
    found = {name: getattr(texts, name) for name in (own, *others)}
    found[own] = (*found[own], *files)
    if not found[own]:
        raise UsageError(f"Give text to learn from: --{own} FILE")
    if any("-" in names for names in found.values()):
        raise UsageError(f"--{own} must be a file, because it is read more than once.")
    return Corpus(**found)


def corpus_from(
    texts: CorpusFlags, files: list[str], *, say: Callable[[str], None] = lambda text: None
) -> "Corpus":
    """The corpus given by flags and arguments; `say` receives the use of each file of a folder.

    Raises:
        UsageError: one side of a pair of files is missing, standard input is given as one side or
            twice, there is nothing to learn from, or a language is given by its name.
        ConfigError: a language code is invalid.
    """
    from heed.data.corpus import Corpus
    from heed.data.folder import read_folder
    from heed.data.mono import Mono
    from heed.data.readers import ParallelFiles

    for name in chain.from_iterable(OWN_FLAGS.values()):
        if getattr(texts, name):
            flag = name.replace("_", "-")
            tasks = " or ".join(task for task, names in OWN_FLAGS.items() if name in names)
            raise UsageError(f"--{flag} is not for translation: give --task {tasks} too.")
    languages = {
        "source_lang": texts.source_lang or "",
        "target_lang": texts.target_lang or "",
    }
    for name, code in languages.items():
        _require_code(f"--{name.replace('_', '-')}", code)
    if files.count("-") > 1:
        raise UsageError("Standard input (-) can be read once, but is given twice.")
    train_parts = _parallel_parts(texts, "", texts.src, texts.tgt)
    folders = [read_folder(path, **languages) for path in files if Path(path).is_dir()]
    for found in folders:
        say(str(found))
    train_parts += tuple(part for found in folders for part in found.train)
    train_parts += tuple(
        ParallelFiles(
            files=(path,),
            source_lang=languages["source_lang"],
            target_lang=languages["target_lang"],
        )
        for path in files
        if not Path(path).is_dir()
    )
    if not train_parts:
        raise UsageError(
            "Give text to learn from: --src FILE --tgt FILE, or a .tsv, .csv, .tmx, .xliff or .po "
            "file, or a folder of them (- is TSV from standard input)."
        )
    columns = _columns(texts.columns, train_parts)
    dev = _parallel_parts(texts, "dev-", texts.dev_src, texts.dev_tgt)
    dev = dev or tuple(part for found in folders for part in found.dev)
    test = tuple(part for found in folders for part in found.test)
    mono = [("source_lang", path) for path in texts.mono_src]
    mono += [("target_lang", path) for path in texts.mono_tgt]
    return Corpus(
        train=_with_columns(train_parts, columns),
        dev=_with_columns(dev, columns),
        test=_with_columns(test, columns),
        mono=tuple(Mono(file=path, language=getattr(train_parts[0], side)) for side, path in mono),
    )


def _require_code(flag: str, language: str) -> None:
    """Refuse the name of a language: rules for the language, and clients, know it by its code.

    Raises:
        UsageError: it is a name.
        ConfigError: it is neither a name nor a code.
    """
    from heed.text.languages import named_language, require_language

    if language:
        require_language(language)
    known = named_language(language)
    if known and re.split("[-_]", language)[0].lower() != known:
        raise UsageError(f"{flag} must be a code: for {language}, give {flag} {known}.")


def _columns(asked: str | None, parts: tuple["ParallelFiles", ...]) -> tuple[str, ...]:
    """The two columns of `--columns`; empty if it is not given."""
    if asked is None:
        return ()
    from heed.data.readers import is_table

    columns = tuple(column.strip() for column in asked.split(","))
    if len(columns) != 2 or not all(columns) or columns[0] == columns[1]:
        raise UsageError(
            f"--columns must name two columns of a table, such as 2,3 or en,de, but is {asked!r}."
        )
    if not any(map(is_table, parts)):
        raise UsageError("--columns is for tables (.tsv, .csv or -), but none is given.")
    return columns


def _with_columns(
    parts: tuple["ParallelFiles", ...], columns: tuple[str, ...]
) -> tuple["ParallelFiles", ...]:
    """The parts, with these columns for each table."""
    from heed.data.readers import is_table

    return tuple(replace(part, columns=columns) if is_table(part) else part for part in parts)


def _parallel_parts(
    texts: CorpusFlags, role: str, src: Sequence[str], tgt: Sequence[str]
) -> tuple["ParallelFiles", ...]:
    """Pairs of files of one role: `--src` and `--tgt`, or `--dev-src` and `--dev-tgt`."""
    from heed.data.readers import ParallelFiles

    if len(src) != len(tgt):
        raise UsageError(
            f"--{role}src and --{role}tgt go together, but there are {len(src)} and {len(tgt)}."
        )
    if "-" in (*src, *tgt):
        raise UsageError(
            f"--{role}src and --{role}tgt must be files, but one is standard input (-), which can "
            "only be a table of both languages: heed train - < corpus.tsv"
        )
    for pair in zip(src, tgt, strict=True):
        _require_plain(role, *pair)
        _require_no_exchange(texts, role, *pair)
    return tuple(
        ParallelFiles(
            files=(src_path, tgt_path),
            source_lang=texts.source_lang or language_of(src_path),
            target_lang=texts.target_lang or language_of(tgt_path),
        )
        for src_path, tgt_path in zip(src, tgt, strict=True)
    )


def _require_plain(role: str, *names: str) -> None:
    """Refuse a file of both languages in place of plain text.

    Raises:
        UsageError: names it.
    """
    from heed.data.lines import suffix_of
    from heed.data.readers import BILINGUAL, TABLES

    for name in names:
        suffix = suffix_of(name)
        if suffix in BILINGUAL and suffix not in TABLES:  # a table may have one column only
            way = "two files of plain text" if role else f"it without --src and --tgt: {name}"
            raise UsageError(
                f"--{role}src and --{role}tgt are plain text, but {name} holds both languages. "
                f"Give {way}"
            )


def _require_no_exchange(texts: CorpusFlags, role: str, src: str, tgt: str) -> None:
    """Refuse two files whose names say the languages of the flags in the opposite order.

    Raises:
        UsageError: they do.
    """
    named, given = (language_of(src), language_of(tgt)), (texts.source_lang, texts.target_lang)
    if are_exchanged(named, given):
        raise UsageError(
            f"--{role}src {src} and --{role}tgt {tgt} are {named[0]} and {named[1]} by their "
            f"names, but --source-lang is {given[0]} and --target-lang is {given[1]}. Exchange the "
            "files or the languages."
        )


def are_exchanged(direction: tuple[str | None, ...], other: tuple[str | None, ...]) -> bool:
    """Whether two directions are of the same two languages, and opposite."""
    return direction == other[::-1] and direction != other


def language_of(path: str) -> str:
    """The language code at the end of a file name: `pt-BR` of `train.pt-BR.gz`; or ""."""
    from heed.data.folder import split_name

    stem, language = split_name(Path(path).name)
    return language if stem and LANGUAGE.fullmatch(language) else ""
