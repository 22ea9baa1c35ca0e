"""`heed generate`, `heed fill` and `heed classify`: models of text that do not translate."""

import dataclasses
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import click

from heed.cli.command import Session, Text, as_one, command, decorated, options
from heed.cli.models import (
    checked_search,
    device_option,
    dtype_option,
    find_model,
    threads_option,
)
from heed.cli.score import require_one_stdin
from heed.cli.terminal import echo
from heed.data.lines import STDIN, read_lines, shown_name
from heed.errors import DataError, UsageError

GENERATE_EXAMPLES = """
heed generate -m run/ "ROMEO:"
heed generate -m run/ "ROMEO:" --length 500 --sample --temperature 0.8 --seed 1
cat beginning.txt | heed generate -m run/ - --sample --top-k 40
"""

FILL_EXAMPLES = """
heed fill -m run/ "New York is a <mask>"
heed fill -m run/ "A <mask> is playing the <mask>." --count 3
"""

CLASSIFY_EXAMPLES = """
heed classify -m run/ "a moving film"
heed classify -m run/ < lines > labels
heed classify -m run/ --json < lines
"""

option = options("Options")
sampling_option = options("Sampling")
model_option = options("Model")


@dataclass(frozen=True, kw_only=True)
class Opening:
    """The values of `opening_options`.

    Attributes:
        model: folder or name; None = not given.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        threads: of a CPU; None = all cores.
        dtype: number type to compute in.
    """

    model: str | None
    device: str
    threads: int | None
    dtype: str

    def arguments(self) -> dict[str, Any]:
        """The arguments of the functions that load a model.

        Raises:
            UsageError: no model is given.
        """
        if not self.model:
            raise UsageError("Give the model: -m RUN")
        folder = find_model(self.model)
        return {
            "folder": folder,
            "device": self.device,
            "threads": self.threads,
            "dtype": self.dtype,
        }


def opening_options(function: Any) -> Any:
    """Add the options of a command that loads a model; they arrive as argument `opening`."""
    decorators = (
        as_one(Opening, "opening"),
        threads_option,
        device_option,
        dtype_option,
        model_option(
            "-m --model",
            str,
            "Run or model folder; default: $HEED_MODEL.",
            metavar="DIR|NAME",
            envvar=["HEED_MODEL"],
        ),
    )
    return decorated(function, decorators)


@command("generate", "Continue a text with a language model.", examples=GENERATE_EXAMPLES)
@click.argument("prompts", type=Text(), nargs=-1, metavar="[PROMPT]...")
@option("--length", click.IntRange(min=1), "Tokens to add.", default=200)
@option("--json as_json", bool, "Print one JSON object per prompt.")
@sampling_option("--sample", bool, "Sample instead of taking the most probable token.")
@sampling_option("--temperature", float, "Below 1 favors probable tokens; above 1, rare ones.")
@sampling_option("--top-k", int, "Sample from the N most probable tokens.")
@sampling_option(
    "--top-p", float, "Sample from the most probable tokens with this total probability."
)
@sampling_option(
    "--min-p", float, "Sample from tokens with at least this share of the highest probability."
)
@sampling_option("--seed", click.IntRange(min=0), "The same seed gives the same text.")
@opening_options
@click.pass_obj
def generate(
    session: Session,
    /,
    prompts: tuple[str, ...],
    length: int,
    as_json: bool,
    opening: Opening,
    **search: Any,
) -> None:
    """Print each PROMPT and the model's continuation; without a PROMPT, a text of the model's own.

    The PROMPT - is read from standard input. Of a PROMPT that fills the model's context, only the
    end is read. The model was trained with heed train --task lm.
    """
    given = _checked(search)
    require_one_stdin(*prompts)
    arguments = opening.arguments()
    texts = [_given(text) for text in prompts or ("",)]
    from heed.translate.language_model import load_language_model

    model = load_language_model(**arguments)
    cut = [number for number, text in enumerate(texts, start=1) if not model.reads_whole(text)]
    if cut:
        what = "1 prompt fills" if len(cut) == 1 else f"{len(cut)} prompts fill"
        session.say(
            f"heed: {what} the context of {model.context} tokens, so only the end is read; the "
            f"first is prompt {cut[0]}."
        )
    found = model.generate(texts, length=length, **given)
    for number, (text, more) in enumerate(zip(texts, found, strict=True)):
        if as_json:
            _echo_json({"prompt": text, "continuation": more})
        else:
            # Into a file or a pipe the text goes as it is.
            is_raw = not sys.stdout.isatty()
            echo(f"{chr(10) if number else ''}{text}{more}", is_drawing=is_raw)


def _given(text: str) -> str:
    """A text, or standard input in place of `-`."""
    return "\n".join(read_lines(STDIN)) if text == STDIN else text


def _checked(search: dict[str, Any]) -> dict[str, Any]:
    """The flags of sampling that were given.

    Raises:
        UsageError: one is out of range, or has no effect without --sample.
    """
    given = {name: value for name, value in search.items() if value is not None}
    if not given.pop("sample"):
        if given:
            flag = next(iter(given)).replace("_", "-")
            raise UsageError(f"--{flag} changes how tokens are drawn: give --sample too.")
        return {}
    from heed.decode.options import DecodeOptions

    return checked_search(DecodeOptions(beam_size=1), given | {"sample": True})


@command("fill", "Fill the gaps of a text.", examples=FILL_EXAMPLES)
@click.argument("text", type=Text())
@option("-k --count", click.IntRange(min=1), "Words for each gap.", default=5)
@option("--json as_json", bool, "Print JSON.")
@opening_options
def fill(text: str, count: int, as_json: bool, opening: Opening) -> None:
    """Print the most probable pieces for each <mask> in TEXT, with their probabilities.

    A piece after … continues the word before the gap. Each gap is predicted independently, so the
    best words of two gaps may not fit together. The TEXT - is read from standard input. The model
    was trained with heed train --task mlm.
    """
    text = _given(text)
    arguments = opening.arguments()
    from heed.translate.masked import load_masked

    found = load_masked(**arguments).fill(text, count)
    if as_json:
        _echo_json([[dataclasses.asdict(one) for one in gap] for gap in found])
        return
    for number, gap in enumerate(found):
        if len(found) > 1:
            echo(f"{chr(10) if number else ''}gap {number + 1}")
        for one in gap:
            bar = "█" * round(20 * one.probability)
            word = f"…{one.word}" if one.continues_word else one.word
            echo(f"{one.probability:8.4f}  {word:<16} {bar}".rstrip())


@command("classify", "Label texts.", examples=CLASSIFY_EXAMPLES)
@click.argument("texts", type=Text(), nargs=-1, metavar="[TEXT]...")
@option("--json as_json", bool, "Print one JSON object per line, with probabilities.")
@opening_options
@click.pass_obj
def classify(session: Session, /, texts: tuple[str, ...], as_json: bool, opening: Opening) -> None:
    """Print the label of each TEXT, or of each line of standard input.

    The end of a text that is longer than the model's context is not read. The model was trained
    with heed train --task classify.
    """
    if STDIN in texts:
        raise UsageError("Standard input (-) is read where no TEXT is given: leave out the -.")
    arguments = opening.arguments()
    if not texts and sys.stdin.isatty():
        session.say("heed: reading lines from standard input; Ctrl-D ends them.")
    lines: Iterable[str] = texts or read_lines(STDIN)
    from heed.translate.classifier import load_classifier

    model = load_classifier(**arguments)
    cut = []
    for number, found in enumerate(model.stream(lines), start=1):
        if found.is_cut:
            cut.append(number)
        if as_json:
            _echo_json(
                {
                    "label": found.label,
                    "probabilities": found.probabilities,
                    "is_cut": found.is_cut,
                }
            )
        else:
            echo(found.label)
    _say_cut(session, cut, model.context)


def _say_cut(session: Session, cut: list[int], context: int) -> None:
    """Say which texts were too long to be read whole."""
    if cut:
        what = "1 text is" if len(cut) == 1 else f"{len(cut)} texts are"
        session.say(
            f"heed: {what} longer than the {context} tokens that the model reads, so the end was "
            f"left out; the first is text {cut[0]}."
        )


def show_text_score(opening: Opening, path: str, *, as_json: bool) -> None:
    """Print how well a language model predicts a text.

    Raises:
        UsageError: no model is given.
        DataError: the file is empty.
    """
    arguments = opening.arguments()
    from heed.translate.language_model import load_language_model

    text = "".join(f"{line}\n" for line in read_lines(path))
    if not text:
        raise DataError(f"{shown_name(path)} must hold text to score, but is empty.")
    model = load_language_model(**arguments)
    found = model.score(text)
    if as_json:
        record = {
            "loss": found.loss,
            "perplexity": found.perplexity,
            "bits_per_character": found.bits,
            "tokens": found.n_tokens,
            "characters": found.n_characters,
            "context": model.context,
        }
        _echo_json(record)
        return
    echo(f"{path}  ({found.n_characters:,} characters, {found.n_tokens:,} tokens)")
    echo(f"  loss        {found.loss:8.4f}  nats a token, in windows of {model.context}")
    echo(f"  perplexity  {found.perplexity:8.2f}")
    echo(f"  bits        {found.bits:8.4f}  a character")


def show_label_scores(
    session: Session, opening: Opening, path: str, resamples: int, *, as_json: bool
) -> None:
    """Print accuracy and mean F1 of a classifier, with confidence intervals.

    Raises:
        UsageError: no model is given.
        DataError: the file is empty, a line has no text, or no label is one of the model's.
    """
    arguments = opening.arguments()
    from heed.data.labeled import read_labeled
    from heed.evaluate.labels import accuracy, interval, mean_f1
    from heed.translate.classifier import load_classifier

    rows = list(read_labeled(path))
    if not rows:
        raise DataError(f"{shown_name(path)} must hold labeled texts, but is empty.")
    right = [label for label, _ in rows]
    model = load_classifier(**arguments)
    _require_known(session, path, right, model.labels)
    answers = model([text for _, text in rows])
    _say_cut(session, [n for n, one in enumerate(answers, start=1) if one.is_cut], model.context)
    found = [one.label for one in answers]
    scores = {
        name: (score(found, right), *interval(score, found, right, resamples=resamples))
        for name, score in (("accuracy", accuracy), ("mean F1", mean_f1))
    }
    if as_json:
        keys = ("score", "low", "high")
        records = {name: dict(zip(keys, values, strict=True)) for name, values in scores.items()}
        _echo_json({"texts": len(rows), **records})
        return
    echo(f"{path}  ({len(rows):,} texts, {len(set(right))} labels)")
    for name, (middle, low, high) in scores.items():
        echo(f"  {name:<10}  {middle:6.2f}  [{low:.2f}, {high:.2f}]")


def _require_known(session: Session, path: str, right: list[str], labels: list[str]) -> None:
    """Say which labels of a file are not the model's.

    Raises:
        DataError: none of them is.
    """
    unknown = [label for label in right if label not in labels]
    known = ", ".join(labels[:10]) + (", …" if len(labels) > 10 else "")
    if len(unknown) == len(right):
        raise DataError(
            f"{path} has no label of this model ({known}); its first label is {unknown[0]!r}. "
            "Each line must be a label, a tab and a text."
        )
    if unknown:
        session.say(
            f"heed: {len(unknown):,} of {len(right):,} texts have a label that is not the model's "
            f"({known}) and count as wrong; the first is {unknown[0]!r}."
        )


def _echo_json(record: Any) -> None:
    echo(json.dumps(record, ensure_ascii=False))
