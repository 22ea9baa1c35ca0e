"""`heed quantize`: write int8 weights beside a model's own, or into a smaller folder.

`engine/matrices.py` does the rounding.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heed.cli.command import Session, Share, Threads, command, options, typed_flags
from heed.cli.models import find_model
from heed.cli.runs import held_if_run
from heed.cli.terminal import echo
from heed.errors import ConfigError, DataError, UsageError

if TYPE_CHECKING:
    from heed.bundle.bundle import Bundle

EXAMPLES = """
heed quantize run/
heed quantize run/ --src test.en --ref test.de
heed quantize run/ --shortlist
heed quantize run/ --out small/
heed quantize lm/ --text test.txt
"""

DEV_LINES = 1000
"""Largest number of development sentences for testing a shortlist."""

option = options("Options")


@command("quantize", "Round a model to int8: small and fast.", examples=EXAMPLES)
@click.argument("model")
@option("--out", str, "Write a separate model folder, without float32 weights.", metavar="FOLDER")
@option("--force", bool, "Replace the model that FOLDER holds.")
@option("--no-memory", bool, "Leave the training pairs that MODEL stores out of FOLDER.")
@option("--source-lang", str, "Name the source language in FOLDER.", metavar="CODE")
@option("--target-lang", str, "Name the target language in FOLDER.", metavar="CODE")
@option("--src", str, "Lines to translate before and after …", metavar="FILE")
@option("--ref", str, "… and their references, to compare the scores.", metavar="FILE")
@option("--text", str, "Text that a language model predicts before and after.", metavar="FILE")
@option("--shortlist", bool, "Also learn a shortlist of target pieces for each source; faster.")
@option(
    "--max-changed",
    Share(),
    "Share of translations that the shortlist may change.",
    default=0.02,
)
@option(
    "--threads",
    Threads(1, 1024),
    "CPU threads of --shortlist and of comparisons (--src, --text); default: all cores.",
)
@option("--layers", bool, "Also print the error of every matrix.")
@click.pass_obj
def quantize(
    session: Session,
    /,
    model: str,
    out: str | None,
    force: bool,
    no_memory: bool,
    source_lang: str | None,
    target_lang: str | None,
    src: str | None,
    ref: str | None,
    text: str | None,
    shortlist: bool,
    max_changed: float,
    threads: int | None,
    layers: bool,
) -> None:
    """Round the weights of MODEL to int8, with one scale per output channel.

    Afterwards `heed translate` and `heed.load` use them on a CPU; --dtype float32 selects the exact
    weights. A folder made with --out can translate, but not be trained further; --out MODEL is the
    same as no --out. A translation memory holds text that MODEL was trained on: --no-memory leaves
    it out. --source-lang and --target-lang name the languages of a model that was trained without
    names, which `heed serve` needs.

    --shortlist learns from the pairs of a run folder which target pieces translate a source. It
    keeps the smallest list that changes no more than --max-changed of the development set's
    translations, and none if every list changes more. --no-shortlist translates without it.
    """
    _require_sensible(src, ref, has_shortlist=shortlist, has_out=out is not None)
    from heed.bundle.bundle import load_bundle, restore_manifest
    from heed.engine.network import relative_errors
    from heed.engine.packed import save_rounded

    folder = find_model(model)
    if out is None and (has_hashes := restore_manifest(folder)) is not None:
        session.say(
            f"{folder} had no manifest.json. Its config, vocabulary and weights fit together, so "
            "it was written again; a changed number in the weights would not be detected"
            + ("." if has_hashes else ", nor the vocabulary of another model.")
        )
    place = _place(folder, out, [path for path in (src, ref, text) if path], is_forced=force)
    changes = {"source_lang": source_lang, "target_lang": target_lang}
    bundle = _changed(load_bundle(folder), changes, no_memory=no_memory, is_copy=place is not None)
    given = {"--src": src, "--shortlist": shortlist, "--text": text}
    _require_task(bundle.task, [flag for flag, value in given.items() if value])
    pairs, lines = _texts(src, ref, text)
    with held_if_run(place or folder):
        target, network = save_rounded(bundle, place)
    before, after = (_megabytes(bundle.path, "float"), _megabytes(target, "int8"))
    echo(f"{out or target}: {after:.1f} MB of int8 instead of {before:.1f} MB of float32")
    _show_errors(relative_errors(network, bundle.weights), of_each=layers)
    if shortlist:
        _add_shortlist(session, Path(folder), target, max_changed, threads)
    if pairs:
        _compare(session, bundle, target, pairs, threads)
    if lines:
        _compare_losses(session, bundle.path, target, lines, threads)


def _changed(
    bundle: "Bundle", languages: Mapping[str, str | None], *, no_memory: bool, is_copy: bool
) -> "Bundle":
    """The model without its memory, or with names for its languages, if the user wants that.

    Raises:
        UsageError: it is not written into a folder of its own, or has several target languages.
    """
    given: dict[str, Any] = {name: code for name, code in languages.items() if code is not None}
    flags = [*(f"--{name.replace('_', '-')}" for name in given), *["--no-memory"] * no_memory]
    if flags and not is_copy:
        raise UsageError(f"{flags[0]} needs --out with a folder other than that of MODEL.")
    if given and (bundle.target_langs or bundle.directions):
        raise UsageError(f"{flags[0]} is for models of two languages; this one has several.")
    changed = replace(bundle, **given)
    return replace(changed, memory=None) if no_memory else changed


def _show_errors(errors: Mapping[str, float], *, of_each: bool) -> None:
    """Print the rounding errors of the matrices."""
    worst = max(errors, key=errors.__getitem__)
    mean = sum(errors.values()) / len(errors)
    echo(
        f"rounding error of a weight matrix, root mean square: {mean:.2%} on average, "
        f"{errors[worst]:.2%} at most ({worst})"
    )
    if of_each:
        for role, error in errors.items():
            echo(f"  {role:<24} {error:.2%}")


def _require_sensible(
    src: str | None, ref: str | None, *, has_shortlist: bool, has_out: bool
) -> None:
    """Refuse flags that do not go together.

    Raises:
        UsageError: names the missing flag.
    """
    if (src is None) != (ref is None):
        raise UsageError("Give --src and --ref together, or neither.")
    typed = typed_flags(click.get_current_context())
    if "force" in typed and not has_out:
        raise UsageError("--force replaces the model in --out: give --out too, or leave it out.")
    if "max_changed" in typed and not has_shortlist:
        raise UsageError("--max-changed is for --shortlist: give --shortlist too, or leave it out.")


def _texts(
    src: str | None, ref: str | None, text: str | None
) -> tuple[list[Sequence[str]], list[str]]:
    """Pairs and lines for the comparison; read before anything is written.

    Raises:
        DataError: a file is empty, or the files of a pair differ in length.
    """
    from heed.cli.evaluate import read_all
    from heed.cli.score import all_paired

    pairs = all_paired(src, ref) if src and ref else []
    lines = read_all(text) if text else []
    if text and not lines:
        raise DataError(f"{text} must have at least one line, but is empty.")
    return pairs, lines


def _require_task(task: str, flags: list[str]) -> None:
    """Refuse a flag for models of another task.

    Raises:
        UsageError: names the flag.
    """
    for flag in flags:
        wanted = "lm" if flag == "--text" else "translate"
        if task != wanted:
            raise UsageError(
                f"{flag} is for a model that was trained with --task {wanted}, but this one was "
                f"trained with --task {task}."
            )


def _place(model: Path, out: str | None, texts: list[str], *, is_forced: bool) -> Path | None:
    """The folder of the int8 weights; None = the model's own folder."""
    from heed.bundle.find import find_model_folder
    from heed.bundle.outputs import require_replaceable

    source = find_model_folder(model)
    if out is None or any(os.path.exists(out) and path.samefile(out) for path in (model, source)):
        # None even if --out names the model itself: else a run folder would lose its checkpoints.
        return None
    # A file of the model may be a link to another folder.
    files = [str(path) for path in source.iterdir() if path.is_file()]
    return require_replaceable(out, [str(model), *files, *texts], is_forced=is_forced)


def _megabytes(folder: Path | None, kind: str) -> float:
    from heed.bundle.find import AVERAGE, INT8, WEIGHTS

    assert folder is not None
    names = (INT8,) if kind == "int8" else (AVERAGE, WEIGHTS)
    found = [folder / name for name in names if (folder / name).exists()]
    return found[0].stat().st_size / 1e6


def _add_shortlist(
    session: Session, run: Path, target: Path, max_changed: float, threads: int | None
) -> None:
    """Find a shortlist for the int8 weights in a folder, and write it there if one is accepted."""
    from heed.compress.choose_shortlist import try_shortlists
    from heed.compress.lexicon import Lexicon
    from heed.data.prepared import DATA, DEV_FILE, TRAIN_FILE, read_held_out
    from heed.data.store import Store
    from heed.engine.shortlist import save_shortlist
    from heed.translate.translator import load

    if not (run / DATA / TRAIN_FILE).exists():
        raise ConfigError(
            f"{run} has no training pairs, which a shortlist needs. Name the run folder that heed "
            "train wrote."
        )
    translator = load(target, device="cpu", dtype="int8", threads=threads, shortlist=False)
    vocabs = translator.src_vocab, translator.tgt_vocab
    pairs = Store.open(run / DATA / TRAIN_FILE, *(vocab.hash for vocab in vocabs))
    session.say(f"Learning translations of pieces from {len(pairs):,} pairs …")
    lexicon = Lexicon.learn(pairs, *vocabs)
    dev = read_held_out(run / DATA, DEV_FILE)
    chosen = [dev[i * len(dev) // DEV_LINES] for i in range(DEV_LINES)]
    lines = [
        translator.reader.line(pair.src, pair.target_lang)
        for pair in (chosen if len(dev) > DEV_LINES else dev)
    ]
    session.say(f"Translating {len(lines)} development sentences without and with a shortlist …")
    kept = None
    for shortlist, is_kept in try_shortlists(translator, lexicon.shortlists(), lines, max_changed):
        kept = shortlist if is_kept else None
        n_changed, n_done = shortlist.changed
        echo(
            f"shortlist of {len(shortlist.common_ids):,} pieces for all, and those of the source: "
            f"{n_changed} of {n_done} translations change{'' if is_kept else ', too many'}"
        )
    with held_if_run(target):
        save_shortlist(target, kept)
    if kept is None:
        echo(
            f"no shortlist: every faster one changes more than {max_changed:.2%} of the "
            "translations (--max-changed)"
        )


def _compare(
    session: Session,
    bundle: "Bundle",
    target: Path,
    pairs: Sequence[Sequence[str]],
    threads: int | None,
) -> None:
    """Translate with both weights; print the scores, their difference and its interval."""
    from heed.cli.evaluate import show
    from heed.evaluate.counts import reading_here
    from heed.evaluate.report import report
    from heed.translate.translator import load

    lines, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    systems, target_lang = {}, ""
    # Without its memory both, if the copy has none: else that would be the difference.
    ways: Any = {"device": "cpu", "threads": threads, "memory": bundle.memory is not None}
    for name, path in (("float32", bundle.path), ("int8", target)):
        assert path is not None
        translator = load(path, dtype=name, shortlist=name == "int8", **ways)
        _, target_lang = translator.reader.direction(None, None)
        session.say(f"Translating {len(lines)} lines with {name} …")
        systems[name] = [found.text for found in translator.translate_stream(lines, processes=None)]
    reading = reading_here(target_lang)
    show(session, report(systems, [references], metrics=("bleu", "chrf"), reading=reading))


def _compare_losses(
    session: Session, folder: Path | None, target: Path, lines: list[str], threads: int | None
) -> None:
    """Print how well both weights predict a text."""
    from heed.translate.language_model import load_language_model

    text = "".join(f"{line}\n" for line in lines)
    for name, place in (("float32", folder), ("int8", target)):
        assert place is not None
        session.say(f"Reading {len(text):,} characters with {name} …")
        model = load_language_model(place, device="cpu", dtype=name, threads=threads)
        found = model.score(text)
        echo(f"{name:<8} loss {found.loss:.4f} nats a token, {found.bits:.4f} bits a character")
