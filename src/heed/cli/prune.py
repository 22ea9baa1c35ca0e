"""`heed prune`: remove the least important heads and features, and measure the effect.

`compress/importance.py` measures, `compress/prune.py` removes.
"""

import csv
import io
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heed.bundle.outputs import STANDARD, require_not_read, require_replaceable
from heed.cli.command import Session, Threads, as_one, command, options, typed_flags
from heed.cli.models import find_model
from heed.cli.terminal import echo
from heed.disk.files import require_writable_file, to_json, write_atomically
from heed.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from heed.bundle.bundle import Bundle
    from heed.compress.importance import Scores, Sublayer
    from heed.compress.sequences import Sequences
    from heed.data.readers import Pair
    from heed.model.network import TorchNetwork

EXAMPLES = """
heed prune run/ --keep 0.75 --out smaller/
heed prune run/ --keep 0.5 --what features --out smaller/ --src test.en --ref test.de
heed prune run/ --importance heads.tsv
"""

option = options("Options")


@dataclass(frozen=True, kw_only=True)
class PruneFlags:
    """The flags of `heed prune`.

    Attributes:
        keep: share of units to keep.
        what: `heads`, `features` or `both`.
        out: folder of the smaller model, or None.
        force: an existing model may be replaced.
        src: lines to translate before and after, or None.
        ref: their references.
        importance: file for a table of all units; `-` is standard output.
        threads: CPU threads; None = all cores.
    """

    keep: float
    what: str
    out: str | None
    force: bool
    src: str | None
    ref: str | None
    importance: str | None
    threads: int | None


@command("prune", "Remove the least important heads and features.", examples=EXAMPLES)
@click.argument("model")
@option(
    "--keep", float, "Share of the heads and features of each sublayer that stays.", default=0.75
)
@option("--what", ("heads", "features", "both"), "What to remove.", default="both")
@option("--out", str, "Folder for the smaller model.", metavar="FOLDER")
@option("--force", bool, "Replace the model that FOLDER holds.")
@option("--src", str, "Lines to translate before and after …", metavar="FILE")
@option("--ref", str, "… and their references, to compare the scores.", metavar="FILE")
@option(
    "--importance",
    str,
    "Write the importance of each head and feature (.json, .csv, else with tabs; - prints).",
    metavar="FILE",
)
@option("--threads", Threads(1, 1024), "CPU threads; default: all cores.")
@click.pass_obj
@as_one(PruneFlags, "flags")
def prune(session: Session, /, model: str, flags: PruneFlags) -> None:
    """Remove attention heads and feed-forward features of MODEL that hardly change its loss.

    A unit's importance is the mean size of the loss's gradient with respect to a gate on its
    output. It is measured on training sequences of a run folder, or else on --src and --ref. Each
    sublayer keeps its most important units, the same number as every other sublayer. The smaller
    model is compared with MODEL on --src and --ref, or on the development set of its run.

    --importance also gives, for each head, the loss without it, and how much its attention differs
    from that of the other heads of its sublayer.
    """
    if (flags.src is None) != (flags.ref is None):
        raise UsageError("Give --src and --ref together, or neither.")
    if not 0 < flags.keep < 1:
        raise UsageError(f"--keep must be above 0 and below 1, but is {flags.keep}.")
    if flags.out is None:
        _require_no_model(flags, typed_flags(click.get_current_context()))
    from heed.bundle.bundle import load_bundle, save_bundle
    from heed.compress import prune as pruning
    from heed.compress.importance import importance
    from heed.machine.threads import choose_threads, set_threads

    folder = find_model(model)
    place = _place(folder, flags)
    bundle = load_bundle(folder)
    chosen = pruning.prunable(bundle.config, flags.what)
    if place is not None:
        pruning.require_effect(chosen, flags.keep)
    set_threads(choose_threads(flags.threads))
    sequences = _sequences(folder, bundle, flags)
    network, pad_id = pruning.opened(bundle), bundle.config.pad_id
    units = "heads and features" if flags.what == "both" else flags.what
    session.say(f"Measuring {sum(each.n_units for each in chosen):,} {units} …")
    scores = importance(network, sequences.training, chosen, pad_id=pad_id)
    if flags.importance is not None:
        _write(flags.importance, _records(session, network, chosen, scores, sequences, pad_id))
    if place is None:
        return
    kept = pruning.most_important(scores, flags.keep)
    smaller = pruning.pruned(bundle, kept)
    pruning.require_same_as_gated(bundle, smaller, kept, sequences.held_out[0])
    save_bundle(place, smaller)
    _show_size(str(flags.out), bundle, smaller)
    if bundle.task == "translate":
        place = Path(str(flags.out))  # as it was typed
        _compare_translations(session, folder, place, sequences.pairs, flags.threads)
    else:
        _compare_losses(network, pruning.opened(smaller), sequences, pad_id)


def _require_no_model(flags: PruneFlags, typed: Mapping[str, str]) -> None:
    """Refuse, without --out, what is for the smaller model.

    Raises:
        UsageError: says to give --out.
    """
    if flags.importance is None:
        raise UsageError("Missing --out: where to write the smaller model, e.g. --out smaller/")
    for name in ("keep", "force"):
        if name in typed:
            raise UsageError(f"{typed[name]} is for the smaller model: give --out too.")


def _place(folder: Path, flags: PruneFlags) -> Path | None:
    """The folder of the smaller model; checks that it and the table can be written.

    Raises:
        UsageError: an output is an input.
        RunError: an output cannot be written, the path of the table is not that of a file, or the
            folder holds something else.
    """
    from heed.bundle.find import find_model_folder

    texts = [path for path in (flags.src, flags.ref) if path]
    source = find_model_folder(folder)
    files = [str(path) for path in source.iterdir() if path.is_file()]
    if (table := flags.importance) not in (None, STANDARD):
        require_not_read(str(table), [*files, *texts])
        if flags.out and Path(os.path.realpath(flags.out)) in _with_parents(str(table)):
            raise UsageError(
                f"--importance {table} would be replaced by the folder {flags.out}. Write it to "
                "another place."
            )
        require_writable_file(str(table))
    if flags.out is None:
        return None
    return require_replaceable(flags.out, [str(folder), *files, *texts], is_forced=flags.force)


def _with_parents(path: str) -> list[Path]:
    """A path without links, and the folders that it is in."""
    real = Path(os.path.realpath(path))
    return [real, *real.parents]


def _sequences(folder: Path, bundle: "Bundle", flags: PruneFlags) -> "Sequences":
    """The sequences to test the model on.

    Raises:
        ConfigError: there is neither a run nor pairs, or pairs are given but no translator.
        UsageError: pairs are given for a comparison, but no smaller model is made.
    """
    from dataclasses import replace

    from heed.compress.sequences import has_run, sequences_of_files, sequences_of_run

    if flags.src and bundle.task != "translate":
        raise ConfigError(
            f"--src and --ref are for translators, but {folder} has the task {bundle.task}. Leave "
            "them out: it is compared on the development set of its run."
        )
    pairs = _pairs(flags.src, flags.ref) if flags.src and flags.ref else []
    if has_run(folder):
        if pairs and flags.out is None:
            raise UsageError(
                f"--src and --ref compare the smaller model, but {folder} is measured on its own "
                "corpus: give --out too, or leave them out."
            )
        found = sequences_of_run(folder, bundle)
        return replace(found, pairs=pairs) if pairs else found
    if pairs:
        return sequences_of_files(bundle, pairs)
    raise ConfigError(
        f"{folder} has no training corpus, which is needed to measure heads and features. Name "
        "the run folder that heed train wrote, or pairs with --src and --ref."
    )


def _pairs(src: str, ref: str) -> "list[Pair]":
    from heed.cli.score import all_paired
    from heed.data.readers import Pair

    return [Pair(source, target) for source, target in all_paired(src, ref)]


def _records(
    session: Session,
    network: "TorchNetwork",
    chosen: "list[Sublayer]",
    scores: "dict[str, Scores]",
    sequences: "Sequences",
    pad_id: int,
) -> list[dict[str, Any]]:
    """One record per unit; for heads, also the loss without it and its distance from the others."""
    from heed.compress.importance import ablation, sequence_losses
    from heed.explain.heads import distances_by_sublayer

    heads = [each for each in chosen if each.kind == "heads"]
    without: dict[str, Scores] = {}
    distances: dict[str, Any] = {}
    loss = math.nan
    if heads:
        session.say(f"Switching off {sum(each.n_units for each in heads)} heads, one at a time …")
        nll, n_tokens = sequence_losses(network, sequences.held_out, pad_id=pad_id)
        loss = nll.sum() / n_tokens.sum()
        without = ablation(network, sequences.held_out, heads, pad_id=pad_id)
        distances = distances_by_sublayer(network, sequences.singles)
    records = []
    for each in chosen:
        for unit, score in enumerate(scores[each.name]):
            record = {"sublayer": each.name, "kind": each.kind, "unit": unit, "importance": score}
            if each.name in without:
                others = distances[each.name][unit].sum().item()
                record["loss"] = loss
                record["loss_without"] = without[each.name][unit]
                record["distance"] = others / max(1, each.n_units - 1)
            records.append(record)
    return records


def _write(path: str, records: list[dict[str, Any]]) -> None:
    """Write records as JSON or as a table, with commas in a `.csv` and else with tabs."""
    suffix = Path(path).suffix.lower()
    if suffix == ".json":
        write_atomically(path, to_json({"units": records}), follow_links=True)
        return
    columns = ("sublayer", "kind", "unit", "importance", "loss", "loss_without", "distance")
    text = io.StringIO()
    writer = csv.writer(text, delimiter="," if suffix == ".csv" else "\t", lineterminator="\n")
    writer.writerows([columns, *(_cells(record, columns) for record in records)])
    if path == STANDARD:
        echo(text.getvalue().removesuffix("\n"))
    else:
        write_atomically(path, text.getvalue().encode(), follow_links=True)


def _cells(record: dict[str, Any], columns: tuple[str, ...]) -> list[str]:
    values = (record.get(name, "") for name in columns)
    return [f"{value:.6g}" if isinstance(value, float) else str(value) for value in values]


def _show_size(out: str, bundle: "Bundle", smaller: "Bundle") -> None:
    from heed.compress.importance import sublayers
    from heed.model.families import plan
    from heed.model.plan import operations

    before = {each.kind: each.n_units for each in sublayers(bundle.config)}
    after = {each.kind: each.n_units for each in sublayers(smaller.config)}
    units = " and ".join(f"{after[kind]} of {before[kind]} {kind}" for kind in before)
    whole, small = plan(bundle.config), plan(smaller.config)
    n_whole, n_small = (
        sum(weight.size for weight in weights if weight.tied_to is None)
        for weights in (whole, small)
    )
    share = sum(operations(small)) / sum(operations(whole))
    echo(
        f"{out}: {units} a sublayer; {n_small:,} of {n_whole:,} parameters, {share:.0%} of the "
        "multiplications"
    )


def _compare_translations(
    session: Session, folder: Path, place: Path, pairs: "list[Pair]", threads: int | None
) -> None:
    """Translate with both models; print the scores, their difference and its interval."""
    from heed.cli.evaluate import show
    from heed.evaluate.counts import reading_here
    from heed.evaluate.report import report
    from heed.translate.translator import load

    systems, target_lang = {}, ""
    for name, path in (("before", folder), ("after", place)):
        translator = load(path, device="cpu", dtype="float32", threads=threads, shortlist=False)
        _, target_lang = translator.reader.direction(None, None)
        lines = [
            translator.reader.line(pair.src, pair.target_lang or target_lang) for pair in pairs
        ]
        session.say(f"Translating {len(lines)} lines with {os.fspath(path)} …")
        systems[name] = [found.text for found in translator.translate_stream(lines, processes=None)]
    references = [[pair.tgt for pair in pairs]]
    reading = reading_here(*(pair.target_lang or target_lang for pair in pairs))
    show(session, report(systems, references, metrics=("bleu", "chrf"), reading=reading))


def _compare_losses(
    before: "TorchNetwork", after: "TorchNetwork", sequences: "Sequences", pad_id: int
) -> None:
    """Print the held-out losses, and their difference with its interval."""
    from heed.compress.importance import difference_of_losses, sequence_losses

    nll, n_tokens = sequence_losses(before, sequences.held_out, pad_id=pad_id)
    other, _ = sequence_losses(after, sequences.held_out, pad_id=pad_id)
    value, low, high = difference_of_losses(nll, other, n_tokens)
    echo(f"loss of {n_tokens.sum():,.0f} held-out labels, in nats")
    echo(f"  before      {nll.sum() / n_tokens.sum():8.4f}")
    echo(f"  after       {other.sum() / n_tokens.sum():8.4f}")
    echo(f"  difference  {value:+8.4f}  [{low:+.4f}, {high:+.4f}]")
