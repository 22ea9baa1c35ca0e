"""`heed demo`: train a small translator from scratch, test it, and look inside, in two minutes.

Everything it prints has just been computed. `demo/grammar.py` makes the corpus.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heed.cli.command import (
    Session,
    Threads,
    check_duration,
    command,
    naming_flags,
    options,
    typed_flags,
)
from heed.cli.look import draw
from heed.cli.streams import open_output
from heed.cli.terminal import echo
from heed.cli.train import SETTINGS as FLAG_SETTINGS
from heed.demo.inflection import LANGUAGES
from heed.errors import UsageError, in_shell

if TYPE_CHECKING:
    from heed.data.readers import ParallelFiles
    from heed.demo.grammar import Example
    from heed.translate.translator import Translator

SEED = 1
TRAIN_SIZE, DEV_SIZE, TEST_SIZE = 2900, 25, 50
"""Pairs for each direction; development and test pairs are not in the training set."""
TIMES_BY_HEART = 10
"""Copies of each worked sentence and idiom in training: other sentences do not teach them."""

SETTINGS: dict[str, Any] = {
    "data": {"disturb": 0.0, "recombine": 0.0, "keep_duplicates": True, "memory": False},
    "tokenizer": {"kind": "bpe", "vocab_size": 1800, "character_coverage": 1.0},
    "model": {
        "d_model": 128,
        "n_heads": 4,
        "d_ff": 192,
        "activation": "swiglu",
        "positions": "rotary",
        "n_encoder_layers": 2,
        "n_decoder_layers": 1,
        "dropout": 0.05,
    },
    "training": {
        "max_steps": 2700,
        "decay_share": 0.85,
        "batch_tokens": 1024,
        "first_batch_tokens": 256,
        "warmup_steps": 50,
        "matrix_learning_rate": 0.02,
        "learning_rate": 0.004,
        "label_smoothing": 0.05,
        "metric": "loss",
        "validations": 4,
        "validation_sentences": 60,
        "seed": SEED,
    },
}
"""Small batches and high rates: best for a minute of training on short, regular sentences.

At these rates most features of a ReLU network stop firing for good; SwiGLU has a gradient
everywhere. Its three matrices of 192 features are a little larger than ReLU's two of 256; products
are fastest for multiples of 32. Rotary positions learn more in the same number of steps. One
decoder layer learns more in the same time than two. No pair is disturbed, because these sentences
have no typing errors: with a fifth disturbed, two of the well-known ones are translated wrongly.
Weights are chosen by loss, because a model may translate all development sentences before the rates
have fallen. The limit is in steps, so that the result does not depend on the machine's speed.
"""

SEEN_INSIDE = ("纽约是一座城市", "New York is a city")
"""The sentence for the view inside the model, and its translation."""

option = options("Options")


EXAMPLES = """
heed demo
heed demo --write-text demo.en
"""


@command("demo", "Train and try a small translator in two minutes.", examples=EXAMPLES)
@option("--out", str, "Run folder, kept afterwards.", default="heed-demo", metavar="RUN")
@option("--time", str, "Time limit of training.", metavar="DURATION", callback=check_duration)
@option("--threads", Threads(1, 1024), "CPU threads; default: all cores.")
@option(
    "--write-text",
    str,
    "Only write the corpus in one language, to learn word vectors from.",
    metavar="FILE",
)
@option("--language", LANGUAGES, "Language of that text.", default="en")
@click.pass_obj
@naming_flags(FLAG_SETTINGS)
def demo(
    session: Session,
    /,
    out: str,
    time: str | None,
    threads: int | None,
    write_text: str | None,
    language: str,
) -> None:
    """Train a translator on the built-in corpus, and show what it learned.

    It translates zh→en, en→es, en→fr and en→zh. The test sentences are new: each combines words
    that never occur together in training.
    """
    _require_effect(writes_text=write_text is not None)
    if write_text is not None:
        _write_text(write_text, language)
        return
    from heed.cli.train import finish, start
    from heed.data.corpus import Corpus
    from heed.demo.grammar import demo_corpus
    from heed.train.recipe.asked import Asked
    from heed.train.recipe.folder import require_run_folder
    from heed.train.recipe.recipe import draft
    from heed.train.recipe.settings import require_same_asked
    from heed.translate.translator import load

    train, dev, test = demo_corpus(
        SEED,
        train_size=TRAIN_SIZE,
        times_by_heart=TIMES_BY_HEART,
        dev_size=DEV_SIZE,
        test_size=TEST_SIZE,
    )
    session.say(f"The built-in corpus: {len(train):,} sentence pairs in four directions, such as")
    for source_lang, target_lang, src, tgt in train[:3]:
        session.say(f"    {source_lang}→{target_lang}  {src}  →  {tgt}")
    asked = Asked(SETTINGS)
    if time:
        asked = asked.plus("training.time_s", time)
    if threads:
        asked = asked.plus("training.threads", threads)
    draft(asked)  # an error in the settings leaves no folder
    require_run_folder(Path(out))
    # Written before the corpus, so that the folder of a killed demo still counts as a run.
    require_same_asked(Path(out), asked)
    folder = Path(out) / "corpus"
    corpus = Corpus(
        train=tuple(write_parts(folder, "train", train)),
        dev=tuple(write_parts(folder, "dev", dev)),
    )
    outcome, stop_signal = start(session, asked, corpus, out)
    if not outcome.is_finished:
        finish(session, outcome, out, stop_signal)
    translator = load(out, threads=threads)
    for line in (*judged(translator, test), *worked(translator), *foreseen(translator)):
        echo(line)
    echo("\nWhat each target piece (row) read in the source (column):")
    draw(translator.align(*SEEN_INSIDE, target_lang="en"))
    echo(next_steps(out))


def _require_effect(*, writes_text: bool) -> None:
    """Refuse flags that would have no effect.

    Raises:
        UsageError: names the flag.
    """
    for name, flag in typed_flags(click.get_current_context()).items():
        if writes_text and name in ("out", "time", "threads"):
            raise UsageError(f"{flag} is for training: with --write-text leave it out.")
        if name == "language" and not writes_text:
            raise UsageError("--language is for --write-text: give that too.")


def _write_text(path: str, language: str) -> None:
    """Write the sentences of one language, one a line."""
    from heed.demo.grammar import word_text

    with open_output(path) as file:
        for line in word_text(language):
            file.write(line)


NEXT = """
Next:
    heed translate -m {out} -t fr "I am a student"
    heed next-word -m {out} -t en "纽约是一座城市" --prefix "New York is a"
    heed align -m {out} -t es "You are welcome"
    heed inspect -m {out} "I am a student" -t fr --tree
    heed serve -m {out}
    heed train --src your.en --tgt your.de --out run/
"""


def next_steps(out: str) -> str:
    """Commands to try with the model in this folder."""
    return NEXT.format(out=in_shell(out)).rstrip()


def write_parts(
    folder: Path, name: str, examples: "Iterable[Example]"
) -> "Iterator[ParallelFiles]":
    """Write sentences as parallel files, a pair of files for each direction."""
    from heed.data.readers import ParallelFiles
    from heed.disk.files import make_directory, write_atomically

    directions: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for source_lang, target_lang, src, tgt in examples:
        directions.setdefault((source_lang, target_lang), []).append((src, tgt))
    make_directory(folder)
    for (source_lang, target_lang), pairs in directions.items():
        stem = f"{name}.{source_lang}-{target_lang}"
        paths = [folder / f"{stem}.{lang}" for lang in (source_lang, target_lang)]
        for path, lines in zip(paths, zip(*pairs, strict=True), strict=True):
            write_atomically(path, "".join(f"{line}\n" for line in lines).encode())
        yield ParallelFiles(
            files=(str(paths[0]), str(paths[1])), source_lang=source_lang, target_lang=target_lang
        )


def judged(translator: "Translator", test: "list[Example]") -> Iterator[str]:
    """Scores on unseen sentences for each direction."""
    from heed.evaluate.counts import Reading
    from heed.evaluate.metrics import evaluate

    yield "\nUnseen sentences, each a new combination of known words:"
    directions = dict.fromkeys((example[0], example[1]) for example in test)
    for source_lang, target_lang in directions:
        chosen = [example for example in test if example[:2] == (source_lang, target_lang)]
        found = translator([src for _, _, src, _ in chosen], target_lang=target_lang)
        scores = evaluate(
            found,
            [[tgt for _, _, _, tgt in chosen]],
            metrics=("exact", "bleu"),
            reading=Reading(target_lang=target_lang),
        ).scores
        yield (
            f"    {source_lang}→{target_lang}  {len(chosen)} sentences  "
            f"exact match {scores['exact'].value:5.1f} %  BLEU {scores['bleu'].value:5.1f}"
        )


def worked(translator: "Translator") -> Iterator[str]:
    """Translations of well-known sentences from tutorials."""
    from heed.demo.grammar import WORKED

    yield "\nWell-known sentences:"
    for _, target_lang, src, tgt in WORKED:
        found = translator(src, target_lang=target_lang)
        yield f"    {src}  →  {found}{'' if found == tgt else f'  (expected: {tgt})'}"


def foreseen(translator: "Translator") -> Iterator[str]:
    """The most probable next words after a prefix."""
    src, _ = SEEN_INSIDE
    first, *others = translator.next_word(src, "New York is a", k=3, target_lang="en")
    others_shown = ", ".join(f"{n.token} {n.probability:.1%}" for n in others)
    yield f"\np(next | New York is a, {src}): {first.token} {first.probability:.1%}, {others_shown}"
