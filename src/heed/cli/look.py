"""`heed next-word`, `heed align` and `heed choose-heads`: probabilities and attention."""

import json
import os
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from heed.cli.command import Session, Text, as_one, command, naming_flags, options
from heed.cli.models import (
    ModelFlags,
    find_model,
    load_translator,
    model_options,
    one_model_options,
)
from heed.cli.runs import held_if_run
from heed.cli.score import require_one_stdin
from heed.cli.terminal import echo, visible
from heed.errors import UsageError
from heed.explain.render import Palette, bar, choose_palette, heatmap

if TYPE_CHECKING:
    from heed.translate.result import Alignment

option = options("Options")

SHOWN = 5
"""Number of candidates that are printed."""

NEXT_EXAMPLES = """
heed next-word -m run/ "纽约是一座城市" --prefix "New York is a"
"""

ALIGN_EXAMPLES = """
heed align -m run/ "纽约是一座城市"
heed align -m run/ "纽约是一座城市" "New York is a city" --layer 0 --head 3 --words
"""

CHOOSE_EXAMPLES = """
heed choose-heads -m run/
heed choose-heads -m run/ dev.en dev.de
heed choose-heads -m run/ dev.en dev.de --gold dev.align --dry-run
"""


@dataclass(frozen=True, kw_only=True)
class Choosing:
    """Options of `heed align`.

    Attributes:
        layer: decoder layer; None = the model's alignment heads.
        head: heads of that layer; none = all.
        words: show words instead of pieces.
        pharaoh: print links instead of a drawing.
    """

    layer: int | None
    head: tuple[int, ...]
    words: bool
    pharaoh: bool


@command("next-word", "Show the most probable next tokens.", examples=NEXT_EXAMPLES)
@click.argument("text", type=Text())
@option("--prefix", Text(), "The translation so far.", default="")
@option("-k --count", click.IntRange(min=1), "Number of tokens to show.", default=10)
@option("--json as_json", bool, "Print JSON.")
@model_options
@click.pass_obj
def next_word(
    session: Session, /, text: str, prefix: str, count: int, as_json: bool, opening: ModelFlags
) -> None:
    """Show p(next | prefix, TEXT): the most probable next pieces; `▁` begins a word.

    TEXT and prefix may have at most 1,024 tokens each, or as many as the model reads in one piece.
    """
    translator, target_lang = load_translator(session, opening)
    found = translator.next_word(text, prefix, k=count, target_lang=target_lang)
    if as_json:
        records = [{"token": n.token, "probability": n.probability} for n in found]
        echo(json.dumps(records, ensure_ascii=False))
        return
    for choice in found:
        echo(bar(choice.probability, choice.token))


@command("align", "Show attention between text and translation.", examples=ALIGN_EXAMPLES)
@click.argument("text", type=Text())
@click.argument("translation", type=Text(), required=False)
@option(
    "--layer",
    int,
    "Decoder layer, from 0 or from the end; default: that of heed choose-heads, else -1.",
)
@option("--head", int, "Head of that layer, from 0; several: their mean.", multiple=True)
@option("--words", bool, "Show words instead of pieces.")
@option("--pharaoh", bool, "Print only the links, source-target from 0.")
@option("--json as_json", bool, "Print the weights as JSON.")
@as_one(Choosing, "choosing")
@model_options
@click.pass_obj
@naming_flags({"layer": "layer", "head": "head"})
def align(
    session: Session,
    /,
    text: str,
    translation: str | None,
    choosing: Choosing,
    as_json: bool,
    opening: ModelFlags,
) -> None:
    """Draw the cross-attention between TEXT and TRANSLATION (default: heed's own translation).

    The columns of </s> and language tags are left out, so a row sums to less than 1. For words, the
    weights of a source word's pieces are added, and those of a target word's pieces averaged. Both
    texts may have at most 1,024 tokens, or as many as the model reads in one piece.
    """
    if choosing.pharaoh and as_json:
        raise UsageError("Give either --pharaoh or --json, not both.")
    translator, target_lang = load_translator(session, opening)
    found = translator.align(
        text, translation, layer=choosing.layer, heads=choosing.head, target_lang=target_lang
    )
    if choosing.words:
        from heed.explain.attention.words import aligned_words

        found = aligned_words(found)
    if choosing.pharaoh:
        echo(" ".join(f"{source}-{target}" for source, target in found.links()))
    elif as_json:
        record = {
            "source_tokens": found.source_tokens,
            "target_tokens": found.target_tokens,
            "weights": found.weights,
        }
        echo(json.dumps(record, ensure_ascii=False))
    else:
        draw(found)


@command("choose-heads", "Find and store the heads that align best.", examples=CHOOSE_EXAMPLES)
@click.argument("src", required=False)
@click.argument("tgt", required=False)
@option("--gold", str, "Manual alignments, 0-0 1?2 … or in NAACL format.", metavar="FILE")
@option("--dry-run", bool, "Only measure; store nothing.")
@option("--json as_json", bool, "Print JSON.")
@one_model_options
@click.pass_obj
def choose_heads(
    session: Session,
    /,
    src: str | None,
    tgt: str | None,
    gold: str | None,
    dry_run: bool,
    as_json: bool,
    opening: ModelFlags,
) -> None:
    """Find the layer and heads of a model that align SRC and TGT best, and store them.

    Without files, the development pairs of the run are used; heed train does this at its end.

    Afterwards heed align and the page use them. Tags and terms are placed by the mean of a layer;
    that layer is chosen too. The measure is the alignment error rate: against --gold, with words
    separated by blanks, or else against a statistical aligner. That aligner is trained in both
    directions, on these lines and 2,000 training pairs of the run folder.
    """
    from heed.bundle.alignment import save_alignment_heads
    from heed.data.readers import read_parallel
    from heed.explain.attention.choice import choose, held_out, trained_on
    from heed.explain.attention.links import read_gold

    if src is not None and tgt is None:
        raise UsageError("missing argument 'TGT': the translations of SRC.")
    require_one_stdin(src or "", tgt or "")
    folder = find_model(opening.model)
    translator, target_lang = load_translator(session, opening)
    if src is None or tgt is None:
        sources, targets = held_out(folder, translator, target_lang)
    else:
        pairs = list(read_parallel(src, tgt))
        sources, targets = [pair.src for pair in pairs], [pair.tgt for pair in pairs]
    wanted = None if gold is None else read_gold(gold, len(sources))
    more = trained_on(folder, translator, target_lang) if gold is None else []
    choice = choose(translator, sources, targets, gold=wanted, more=more, target_lang=target_lang)
    stored = None
    if not dry_run:
        with held_if_run(folder):
            stored = save_alignment_heads(folder, choice.best)
    if as_json:
        tried = [asdict(heads) for heads in choice.tried]
        best = asdict(choice.best)
        echo(json.dumps({"n_pairs": choice.n_pairs, "best": best, "tried": tried}))
        return
    echo(f"{choice.n_pairs} pairs; AER against {choice.best.measure}:")
    for heads in dict.fromkeys([*choice.tried[:SHOWN], choice.before]):
        marked = (("best", choice.tried[0]), ("used so far", choice.before))
        marks = ", ".join(mark for mark, one in marked if one == heads)
        rate = "       " if heads.error_rate is None else f"{heads.error_rate:7.4f}"
        echo(f"{rate}  {heads}  {marks}".rstrip())
    layer = choice.best.documents_layer
    which = "the last layer" if layer < 0 else f"layer {layer}"
    echo(f"Tags and terms are placed by the mean of {which}.")
    if stored is not None:
        echo(f"Stored in {stored}.")


def draw(found: "Alignment") -> None:
    """Draw an alignment: a row for each target piece, a column for each source piece."""
    draw_weights(found.weights, found.target_tokens, found.source_tokens)


def draw_weights(weights: list[list[float]], rows: list[str], columns: list[str]) -> None:
    """Draw a matrix of weights: a line for each row, with its token."""
    palette = terminal_palette()
    shown = ([visible(token) for token in tokens] for tokens in (rows, columns))
    for line in heatmap(weights, *shown, palette=palette):
        echo(line, is_drawing=True)


def terminal_palette() -> Palette:
    """The most detailed palette that standard output can show."""
    encoding = sys.stdout.encoding
    return choose_palette(os.environ, is_terminal=sys.stdout.isatty(), encoding=encoding)
