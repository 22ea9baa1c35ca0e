"""`heed generate`: a language model goes on with a text."""

import json
import sys
from typing import Any

import click

from heed.cli.command import Session, Threads, command, options
from heed.cli.models import find_model
from heed.cli.terminal import echo
from heed.errors import UsageError

EXAMPLES = """
heed generate -m run/ "ROMEO:"
heed generate -m run/ "ROMEO:" --length 500 --sample --temperature 0.8 --seed 1
cat beginning.txt | heed generate -m run/ - --sample --top-k 40
"""

option = options("Options")
sampling_option = options("Sampling")
model_option = options("Model")


@command("generate", "Go on with a text, by a language model.", examples=EXAMPLES)
@click.argument("prompts", nargs=-1, metavar="[PROMPT]...")
@option("--length", click.IntRange(min=1), "Tokens to add.", default=200)
@option("--json as_json", bool, "Print a JSON object for each prompt.")
@sampling_option("--sample", bool, "Draw at random instead of taking the likeliest token.")
@sampling_option("--temperature", float, "Below 1 is safer, above 1 wilder.")
@sampling_option("--top-k", int, "Draw among the K likeliest tokens.")
@sampling_option("--top-p", float, "Draw among the likeliest tokens of this total probability.")
@sampling_option("--min-p", float, "Draw among tokens with this share of the best probability.")
@sampling_option("--seed", click.IntRange(min=0), "The same seed draws the same text.")
@model_option("-m --model", str, "Run or model folder.", metavar="DIR|NAME")
@model_option("--device", str, "auto, cpu or cuda.", default="auto")
@model_option("--threads", Threads(1, 1024), "CPU threads; default: all cores.")
@click.pass_obj
def generate(
    session: Session,
    /,
    prompts: tuple[str, ...],
    length: int,
    as_json: bool,
    model: str | None,
    device: str,
    threads: int | None,
    **search: Any,
) -> None:
    """Print each PROMPT and what the model adds to it; without a PROMPT, a text of its own.

    The PROMPT - is read from standard input. The model was trained with heed train --task lm.
    """
    if not model:
        raise UsageError("Give the model: -m RUN")
    given = {name: value for name, value in search.items() if value is not None}
    if not given.pop("sample") and given:
        flag = next(iter(given)).replace("_", "-")
        raise UsageError(f"--{flag} changes how tokens are drawn: give --sample too.")
    if search["sample"]:
        given["sample"] = True
    if prompts.count("-") > 1:
        raise UsageError("Standard input (-) can be read once, but is given twice.")
    texts = [_read_stdin() if text == "-" else text for text in prompts or ("",)]
    from heed.translate.language_model import load_language_model

    found = load_language_model(find_model(model), device=device, threads=threads)
    for number, (text, more) in enumerate(
        zip(texts, found.generate(texts, length=length, **given), strict=True)
    ):
        if as_json:
            record = {"prompt": text, "continuation": more}
            echo(json.dumps(record, ensure_ascii=False))
        else:
            echo(f"{'' if number == 0 else chr(10)}{text}{more}")


def _read_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"standard input must be UTF-8 text, but byte {error.start} is not."
        ) from None
