"""`heed vectors`: learn word vectors, and print neighbors and analogies in any vectors."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from heed.bundle.outputs import require_not_read
from heed.cli.command import Session, Text, Threads, command, options, typed_flags
from heed.cli.models import find_model, installed
from heed.cli.terminal import echo
from heed.data.lines import STDIN
from heed.data.progress import Report, counted, silent
from heed.disk.files import require_writable_file
from heed.errors import ConfigError, UsageError, in_shell
from heed.vectors.config import Kind, VectorsConfig

if TYPE_CHECKING:
    from heed.vectors.table import Neighbor, WordVectors

TRAIN_EXAMPLES = """
heed vectors train --text news.en --out news.vec
heed vectors train --text a.txt.gz --text b.txt --out v.vec --kind cbow --size 300 --lowercase
"""
NEAREST_EXAMPLES = """
heed vectors nearest news.vec city
heed vectors nearest run/ city --side target
"""
ANALOGY_EXAMPLES = """
heed vectors analogy news.vec king man woman
heed vectors analogy glove.6B.100d.txt.gz king man woman --count 1
"""

OF_WORD2VEC = ("negative", "epochs", "sample", "learning_rate", "threads")
"""Settings that counts do not have."""

option = options("Options")
learning_option = options("Learning")


@command("train", "Learn word vectors from text.", examples=TRAIN_EXAMPLES)
@option(
    "--text", str, "File to learn from; may be given several times.", multiple=True, metavar="FILE"
)
@option("--out", str, "File to write, in word2vec's text format.", metavar="V", required=True)
@option("--force", bool, "Replace word vectors that V holds.")
@option("--lowercase", bool, "Convert the text to lower case.")
@option("--split-punctuation", bool, "Treat punctuation marks as words.")
@learning_option("--kind", get_args(Kind), "counts = PPMI and SVD.", default=VectorsConfig.kind)
@learning_option("--size", int, "Numbers in a vector.", default=VectorsConfig.size)
@learning_option(
    "--window", int, "Maximum number of words on each side.", default=VectorsConfig.window
)
@learning_option(
    "--negative", int, "Random words drawn for each target word.", default=VectorsConfig.negative
)
@learning_option("--epochs", int, "Passes over the text.", default=VectorsConfig.epochs)
@learning_option("--min-count", int, "Leave out rarer words.", default=VectorsConfig.min_count)
@learning_option(
    "--sample",
    float,
    "Leave out at random words with a larger share of the text.",
    default=VectorsConfig.sample,
)
@learning_option(
    "--learning-rate", float, "Learning rate at the start.", default=VectorsConfig.learning_rate
)
@learning_option(
    "--threads",
    Threads(1, 1024),
    "CPU threads; with more than 1, results differ from run to run.",
    default=VectorsConfig.threads,
)
@learning_option("--seed", int, "The same seed gives the same vectors.", default=VectorsConfig.seed)
@click.pass_obj
def train(
    session: Session,
    /,
    text: tuple[str, ...],
    out: str,
    force: bool,
    lowercase: bool,
    split_punctuation: bool,
    **settings: Any,
) -> None:
    """Learn a vector for each word of a text, and write them to V.

    Words are separated by blanks; each line is read separately. Text without blanks between words
    can be split with heed spm-encode.
    """
    from heed.cli.progress import Display
    from heed.vectors.corpus import split_words
    from heed.vectors.formats import require_replaceable, write_vectors
    from heed.vectors.learn import learn_vectors
    from heed.vectors.native import is_compiled

    config = _config(settings)
    _require_effect(config.kind)
    if not text:
        raise UsageError("Give text to learn from: --text FILE")
    if text.count(STDIN) > 1:
        raise UsageError("Standard input (-) can be read once, but is given twice.")
    require_replaceable(out, is_forced=force)
    require_not_read(out, text)
    require_writable_file(out)
    if config.kind != "counts" and not is_compiled():
        session.say("heed: the engine is not compiled here, so NumPy is used, which is slow.")
    display = None if session.is_quiet else Display("loss")
    report: Report = display or silent
    words = split_words(
        _lines(text, report), lowercase=lowercase, split_punctuation=split_punctuation
    )
    try:
        vectors = learn_vectors(words, config, report)
    finally:
        if display:
            display.close()
    write_vectors(out, vectors)
    session.say(f"{len(vectors.words):,} vectors of {config.size} numbers: {out}")
    word = vectors.words[len(vectors.words) // 2]
    if word.isprintable():
        session.say(f"    heed vectors nearest {in_shell(out)} {in_shell(word)}")


@command("nearest", "Print the words nearest to a word.", examples=NEAREST_EXAMPLES)
@click.argument("vectors", metavar="V")
@click.argument("word", type=Text())
@option("-k --count", click.IntRange(min=1), "Number of words to print.", default=10)
@option("--side", ("source", "target"), "Side of a model whose embeddings are used.")
@option("--json as_json", bool, "Print JSON.")
def nearest(vectors: str, word: str, count: int, side: str | None, as_json: bool) -> None:
    """Print the words whose vectors have the nearest directions, with the cosines of the angles.

    V is a file of word vectors (in the text format of word2vec or GloVe, compressed or not) or a
    model folder, whose embeddings are read.
    """
    from heed.vectors import table

    _show(table.nearest(open_vectors(vectors, side), word, count), as_json=as_json)


@command("analogy", "Print the words nearest to A − B + C.", examples=ANALOGY_EXAMPLES)
@click.argument("vectors", metavar="V")
@click.argument("word", type=Text(), metavar="A")
@click.argument("minus", type=Text(), metavar="B")
@click.argument("plus", type=Text(), metavar="C")
@option("-k --count", click.IntRange(min=1), "Number of words to print.", default=10)
@option("--side", ("source", "target"), "Side of a model whose embeddings are used.")
@option("--json as_json", bool, "Print JSON.")
def analogy(
    vectors: str, word: str, minus: str, plus: str, count: int, side: str | None, as_json: bool
) -> None:
    """Print the words nearest to A − B + C, without these three: king man woman gives queen.

    V is a file of word vectors or a model folder, as for heed vectors nearest.
    """
    from heed.vectors import table

    found = table.analogy(open_vectors(vectors, side), word, minus, plus, count)
    _show(found, as_json=as_json)


@click.group(
    "vectors",
    commands=[train, nearest, analogy],
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
def vectors() -> None:
    """Learn word vectors; print neighbors and analogies."""


def open_vectors(name: str, side: str | None) -> "WordVectors":
    """The vectors of a file, or the embeddings of a model.

    Raises:
        UsageError: `side` is given, but the vectors come from a file.
        DataError: the file is missing or malformed.
        FormatError: the folder holds no model.
    """
    if Path(name).is_dir() or name in installed():
        from heed.vectors.pieces import model_vectors

        return model_vectors(find_model(name), "target" if side == "target" else "source")
    if side:
        raise UsageError(f"--side is for a model, but {name} is a file.")
    from heed.vectors.formats import read_vectors

    return read_vectors(name)


def _config(settings: dict[str, Any]) -> VectorsConfig:
    """The settings given by flags; an error in one names its flag."""
    assert settings.keys() == {field.name for field in fields(VectorsConfig)}
    try:
        return VectorsConfig(**settings)
    except ConfigError as error:
        words = re.sub(r"vectors\.(\w+)", lambda key: f"--{key[1].replace('_', '-')}", str(error))
        raise UsageError(words) from None


def _require_effect(kind: Kind) -> None:
    """Refuse settings that this kind does not have.

    Raises:
        UsageError: names the flag.
    """
    for name, flag in typed_flags(click.get_current_context()).items():
        if kind == "counts" and name in OF_WORD2VEC:
            raise UsageError(f"{flag} has no effect with --kind counts: leave it out.")


def _lines(files: Sequence[str], report: Report) -> Iterable[str]:
    from heed.data.lines import read_lines

    for file in files:
        yield from counted(read_lines(file), report, f"reading {file}", unit="lines")


def _show(found: "list[Neighbor]", *, as_json: bool) -> None:
    if as_json:
        records = [{"word": one.word, "cosine": round(one.cosine, 6)} for one in found]
        echo(json.dumps(records, ensure_ascii=False))
        return
    for one in found:
        echo(f"{one.cosine:8.4f}  {one.word}")
