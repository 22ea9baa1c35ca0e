"""`heed next-word` and `heed align`: probabilities and attention for one sentence."""

import json
import os
import sys
from typing import TYPE_CHECKING

import click

from heed.cli.command import Session, command, options
from heed.cli.models import ModelFlags, load_translator, model_options
from heed.cli.terminal import echo, visible
from heed.explain.render import choose_palette, heatmap

if TYPE_CHECKING:
    from heed.translate.result import Alignment

option = options("Options")

NEXT_EXAMPLES = """
heed next-word -m run/ "纽约是一座城市" --prefix "New York is a"
"""

ALIGN_EXAMPLES = """
heed align -m run/ "纽约是一座城市"
heed align -m run/ "纽约是一座城市" "New York is a city" --layer 0
"""


@command("next-word", "Show the most probable next tokens.", examples=NEXT_EXAMPLES)
@click.argument("text")
@option("--prefix", str, "The translation so far.", default="")
@option("-k --count", click.IntRange(min=1), "How many.", default=10)
@option("--json as_json", bool, "Print JSON.")
@model_options
@click.pass_obj
def next_word(
    session: Session, /, text: str, prefix: str, count: int, as_json: bool, opening: ModelFlags
) -> None:
    """Show p(next | prefix, TEXT): the pieces that may come next; `▁` begins a word.

    TEXT and prefix may have at most 1,024 tokens each, or as many as the model reads in one piece.
    """
    translator, target_lang = load_translator(session, opening)
    found = translator.next_word(text, prefix, k=count, target_lang=target_lang)
    if as_json:
        records = [{"token": n.token, "probability": n.probability} for n in found]
        echo(json.dumps(records, ensure_ascii=False))
        return
    for choice in found:
        bar = "█" * round(20 * choice.probability)
        echo(f"{choice.probability:8.4f}  {choice.token:<16} {bar}".rstrip())


@command("align", "Show attention between text and translation.", examples=ALIGN_EXAMPLES)
@click.argument("text")
@click.argument("translation", required=False)
@option("--layer", int, "Decoder layer, from 0 or from the end.", default=-1)
@option("--json as_json", bool, "Print the weights as JSON.")
@model_options
@click.pass_obj
def align(
    session: Session,
    /,
    text: str,
    translation: str | None,
    layer: int,
    as_json: bool,
    opening: ModelFlags,
) -> None:
    """Draw the cross-attention between TEXT and TRANSLATION (heed's own if not given).

    Both may have at most 1,024 tokens, or as many as the model reads in one piece.
    """
    translator, target_lang = load_translator(session, opening)
    found = translator.align(text, translation, layer=layer, target_lang=target_lang)
    if as_json:
        record = {
            "source_tokens": found.source_tokens,
            "target_tokens": found.target_tokens,
            "weights": found.weights,
        }
        echo(json.dumps(record, ensure_ascii=False))
        return
    draw(found)


def draw(found: "Alignment") -> None:
    """Write an alignment: a row for each target piece, a column for each source piece."""
    palette = choose_palette(
        os.environ, is_terminal=sys.stdout.isatty(), encoding=sys.stdout.encoding
    )
    rows = [visible(token) for token in found.target_tokens]
    columns = [visible(token) for token in found.source_tokens]
    for line in heatmap(found.weights, rows, columns, palette=palette):
        echo(line, is_drawing=True)
