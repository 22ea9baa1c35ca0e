"""`heed show positions` and `heed show pieces`: drawings of a model's tables."""

import csv
import io
import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from heed.bundle.outputs import require_not_read
from heed.cli.command import Session, Text, as_one, command, naming_flags, options, typed_flags
from heed.cli.look import terminal_palette
from heed.cli.models import find_model
from heed.cli.terminal import echo
from heed.disk.files import atomic_writer
from heed.errors import DataError, UsageError
from heed.explain.render import heatmap

if TYPE_CHECKING:
    from heed.bundle.bundle import Bundle
    from heed.explain.figures import Plot
    from heed.explain.positions import Floats, PositionTable, Side

POSITIONS_EXAMPLES = """
heed show positions
heed show positions --len 50 --dim 512 --out positions.png
heed show positions --text "New York is a city" --word city
heed show positions -m run/ --similarity
"""
KINDS = ("sinusoidal", "sinusoidal_halves", "rotary", "alibi", "absolute", "seed1")
"""Kinds of position encodings that are computed, not learned."""
PIECES_EXAMPLES = """
heed show pieces run/ --out pieces.png
heed show pieces news.vec --label 200 --out words.svg
heed show pieces run/ --out pieces.csv
"""
FORMATS = (".svg", ".png", ".pdf", ".csv")
MOST_ROWS = 100
"""Rows drawn on a terminal; from a longer table, only every second, third … row is drawn."""

WAYS = ("position", "word", "similarity", "wavelengths")
"""Flags that show something else than the whole table."""

option = options("Options")
table_option = options("Table")


@dataclass(frozen=True, kw_only=True)
class TableFlags:
    """The table to show: the flags of these names.

    Attributes:
        model: folder or name; None = a table of `kind`.
        side: side of a model.
        kind: kind of the table without a model.
        length: number of positions; None = the usual number.
        dim: number of dimensions without a model.
        normalize: whether rows are divided by their lengths, without a model.
    """

    model: str | None
    side: "Side"
    kind: str
    length: int | None
    dim: int
    normalize: bool


@command("positions", "Draw a table of positions, or write one out.", examples=POSITIONS_EXAMPLES)
@table_option(
    "-m --model", str, "Model whose table is drawn; default: a table of --kind.", metavar="DIR|NAME"
)
@table_option("--side", ("source", "target"), "Side of the model.", default="source")
@table_option("--kind", KINDS, "Kind of the table without a model.", default="sinusoidal")
@table_option("--len length", click.IntRange(1, 100_000), "Number of positions; default: 100.")
@table_option(
    "--dim", click.IntRange(1, 65_536), "Number of dimensions without a model.", default=16
)
@table_option("--normalize", bool, "Without a model: divide each row by its length.")
@option("--position", int, "Write out this position, term by term.")
@option("--word", Text(), "Write out the position of this word of --text.")
@option("--text", Text(), "A sentence; with a model, positions count the pieces that it reads.")
@option("--similarity", bool, "PE·PEᵀ instead of the table: how alike two positions are.")
@option("--wavelengths", bool, "List the wavelength of each dimension.")
@option(
    "--out", str, "Write a file instead of the terminal: .svg, .png, .pdf or .csv.", metavar="FILE"
)
@as_one(TableFlags, "flags")
@click.pass_obj
@naming_flags({"position": "position"})
def positions(
    session: Session,
    /,
    flags: TableFlags,
    position: int | None,
    word: str | None,
    text: str | None,
    similarity: bool,
    wavelengths: bool,
    out: str | None,
) -> None:
    """Draw a table of positions: a row for each position, a column for each dimension.

    Without a model it is the table of --kind, such as the paper's "sinusoidal". With --word and
    --text, the numbers of one position are written out with their formulas.
    """
    from heed.explain import positions as tables

    _require_effect(typed_flags(click.get_current_context()), has_model=flags.model is not None)
    if (word is None) != (text is None):
        raise UsageError("Give --word and --text together: a word and the sentence it occurs in.")
    if out is not None:
        _require_format(out)
    table, tokens = _opened(flags, text)
    if word is not None:
        found = tables.tokens_with(word, tokens)
        position = found[0]
        behind_bos = f" ({position + 1} if <bos> comes first, as in a decoder's input)"
        session.say(
            f"{word}: index {position} among {' '.join(tokens)}, counted from 0"
            f"{behind_bos if flags.model is None else ''}."
        )
    if position is not None:
        _write_out(table, position, out)
    elif wavelengths:
        _write_wavelengths(table, out)
    else:
        _draw(table, out, is_similarity=similarity)
    if out is not None:
        session.say(f"{table.kind} positions: {out}")


@command("pieces", "Draw a map of embeddings.", examples=PIECES_EXAMPLES)
@click.argument("vectors", metavar="V")
@option("--out", str, "File to write: .svg, .png, .pdf or .csv.", metavar="FILE", required=True)
@option(
    "--label",
    click.IntRange(0),
    "Maximum number of labels; none overlaps another.",
    default=60,
)
@click.pass_obj
def pieces(session: Session, /, vectors: str, out: str, label: int) -> None:
    """Draw the pieces of a model, or words of a file, on the two principal axes of their vectors.

    V is a model folder or a file of word vectors, as for heed vectors nearest. If a model has one
    table for each side, both are drawn.
    """
    from heed.explain.embeddings import map_of_pieces, map_of_words
    from heed.vectors.formats import read_vectors
    from heed.vectors.pieces import load_exact, piece_tables

    _require_format(out)
    is_table = Path(out).suffix.lower() == ".csv"
    if is_table and "label" in typed_flags(click.get_current_context()):
        raise UsageError("--label is for a drawing: a .csv has the names of all pieces.")
    if Path(vectors).is_file():
        require_not_read(out, [vectors])
        found = map_of_words(read_vectors(vectors))
    else:
        found = map_of_pieces(piece_tables(load_exact(find_model(vectors)), vectors))
    shares = " and ".join(f"{share:.1%}" for share in found.projection.shares)
    if is_table:
        rows = zip(found.labels, found.groups, found.points.tolist(), strict=True)
        numbers = [[name, group, f"{x:.9g}", f"{y:.9g}"] for name, group, (x, y) in rows]
        _write_csv(out, [["piece", "side", "x", "y"], *numbers])
    else:
        from heed.explain.plots import embedding_map

        title = f"{Path(vectors).name}: {shares} of the variance"
        with _remarks(session):
            plot = embedding_map(
                found.points, found.labels, found.groups, n_labels=label, title=title
            )
            _write_plot(out, plot)
    session.say(f"{len(found.labels):,} pieces; the axes explain {shares} of the variance: {out}")


@click.group(
    "show",
    commands=[positions, pieces],
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
def show() -> None:
    """Draw a model's tables of positions and pieces."""


def _require_effect(typed: Mapping[str, str], *, has_model: bool) -> None:
    """Refuse flags of another table, and more than one way to show it.

    Raises:
        UsageError: names the flags.
    """
    for name in ("kind", "dim", "normalize") if has_model else ("side",):
        if name in typed:
            where = "a table without a model: leave it out" if has_model else "a model: give -m too"
            raise UsageError(f"{typed[name]} is for {where}.")
    ways = [typed[name] for name in WAYS if name in typed]
    if len(ways) > 1:
        raise UsageError(f"Give either {ways[0]} or {ways[1]}, not both.")


def _opened(flags: TableFlags, text: str | None) -> "tuple[PositionTable, list[str]]":
    """The table, and the tokens of the text: pieces that a model reads, or words."""
    from heed.explain.positions import model_positions, position_table

    if flags.model is None:
        table = position_table(
            flags.kind, flags.length or 100, flags.dim, is_normalized=flags.normalize
        )
        return table, (text or "").split()
    from heed.bundle.bundle import load_bundle

    bundle = load_bundle(find_model(flags.model), prefer_int8=True)
    tokens = _pieces_read(bundle, text, flags.side) if text else []
    return model_positions(bundle, flags.length, side=flags.side), tokens


def _pieces_read(bundle: "Bundle", text: str, side: "Side") -> list[str]:
    """The pieces of a text in the order in which one side of a model reads them."""
    from heed.text.normalize import normalize

    is_target = side == "target" or bundle.task == "lm"
    vocab = bundle.tgt_vocab if is_target else bundle.src_vocab
    first = []
    if is_target:
        first = [vocab.bos_id]
    elif languages := bundle.target_langs:
        first = [vocab.language_id(bundle.target_lang or languages[0])]
    return vocab.pieces([*first, *vocab.encode(normalize(text))])


def _write_out(table: "PositionTable", position: int, out: str | None) -> None:
    from heed.explain.positions import written_out

    terms = written_out(table, position)
    rows = [
        [
            str(term.dimension),
            "" if term.wave is None else str(term.wave.pair),
            "" if term.wave is None else f"{term.wave.wavelength:.6g}",
            f"{term.value:.6f}",
            term.formula,
        ]
        for term in terms
    ]
    _write_rows(["dimension", "i", "wavelength", "value", "formula"], rows, out)


def _write_wavelengths(table: "PositionTable", out: str | None) -> None:
    if not table.waves:
        raise DataError(f"{table.kind} positions are not waves, so they have no wavelengths.")
    rows = [
        [str(dimension), str(wave.pair), wave.function, f"{wave.wavelength:.6g}"]
        for dimension, wave in enumerate(table.waves)
    ]
    _write_rows(["dimension", "i", "function", "wavelength"], rows, out)


def _write_rows(head: list[str], rows: list[list[str]], out: str | None) -> None:
    """Write a table: on the terminal in columns, to a file as CSV."""
    if out is not None:
        if Path(out).suffix.lower() != ".csv":
            raise UsageError(f"--out must end with .csv for a list of numbers, but is {out}.")
        _write_csv(out, [head, *rows])
        return
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        cells = [cell.rjust(width) for cell, width in zip(row[:-1], widths[:-1], strict=True)]
        echo("  ".join([*cells, row[-1]]).rstrip())


def _draw(table: "PositionTable", out: str | None, *, is_similarity: bool) -> None:
    from heed.explain.positions import similarity

    values = similarity(table) if is_similarity else table.values
    row, column = table.axes
    what, measure = "", ""
    if is_similarity:
        what, measure = "PE·PEᵀ of", "product"
        if table.kind == "alibi":
            what, measure, row = "mean over heads of the terms of", "term", "position"
    title = " ".join(filter(None, [what, table.kind, "positions"]))
    title += f" of {table.name}" if table.name else ""
    if out is None:
        _draw_on_terminal(table, values, title, is_similarity=is_similarity)
        return
    if Path(out).suffix.lower() == ".csv":
        columns = table.positions if is_similarity else range(values.shape[1])
        numbers = [[f"{value:.9g}" for value in each] for each in values]
        rows = [[str(p), *each] for p, each in zip(table.positions, numbers, strict=True)]
        _write_csv(out, [[row, *map(str, columns)], *rows])
        return
    from heed.explain import plots

    plot = (
        plots.similarity_matrix(
            values, first=table.first, axis_label=row, value_label=measure, title=title
        )
        if is_similarity
        else plots.position_heatmap(
            values,
            first=table.first,
            trained_len=table.trained_len,
            labels=(row, column),
            title=title,
        )
    )
    _write_plot(out, plot)


def _draw_on_terminal(
    table: "PositionTable", values: "Floats", title: str, *, is_similarity: bool
) -> None:
    palette = terminal_palette()
    every = math.ceil(len(values) / (32 if is_similarity else MOST_ROWS))
    across = math.ceil(values.shape[1] / 32)
    low, high = float(values.min()), float(values.max())
    shown = (values[::every, ::across] - low) / ((high - low) or 1)
    rows = [str(position) for position in table.positions[::every]]
    names = table.positions if is_similarity else range(values.shape[1])
    columns = [str(name) for name in names[::across]]
    echo(f"{title}: {table.formula}")
    if every > 1 or across > 1:
        echo(f"Rows: {_every(every)}; columns: {_every(across)}. --out FILE.csv has all.")
    for place, line in enumerate(heatmap(shown.tolist(), rows, columns, palette=palette)):
        if place and table.trained_len is not None:
            _mark_end(table, place - 1, every)
        echo(line, is_drawing=True)
    scale = "".join(palette(step / 8, 2) for step in range(9))
    echo(f"{low:.4g} {scale} {high:.4g}", is_drawing=True)


def _mark_end(table: "PositionTable", row: int, every: int) -> None:
    """Draw a line before the first position that is beyond any training sentence."""
    here, before = table.first + row * every, table.first + (row - 1) * every
    if before < (table.trained_len or 0) <= here:
        echo("  ── longer than any training sentence ──")


def _every(n: int) -> str:
    return {1: "all", 2: "every second", 3: "every third"}.get(n, f"one in {n}")


def _require_format(out: str) -> None:
    if Path(out).suffix.lower() not in FORMATS:
        raise UsageError(f"--out must end with {', '.join(FORMATS)}, but is {out}.")


@contextmanager
def _remarks(session: Session) -> Iterator[None]:
    """Print warnings, such as a missing font, as remarks."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for words in dict.fromkeys(str(warning.message) for warning in caught):
        session.say(f"heed: {words}.")


def _write_plot(path: str, plot: "Plot") -> None:
    image = io.BytesIO()
    plot.savefig(image, format=Path(path).suffix[1:].lower(), dpi=144)
    with atomic_writer(path, follow_links=True) as file:
        file.write(image.getvalue())


def _write_csv(path: str, rows: list[list[str]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    with atomic_writer(path, follow_links=True) as file:
        file.write(text.getvalue().encode())
