"""`heed translate`: as many lines out as lines in, in order.

Formats are in `formats.py`, bytes in `streams.py`, translation in `translate/translator.py`.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from heed.bundle.outputs import are_one_file, require_not_read
from heed.cli.command import Session, Text, as_one, command, options, typed_flags
from heed.cli.doubting import Doubtful, Doubting, doubt_option, doubt_options
from heed.cli.formats import FORMATS, Details, choose_format
from heed.cli.glossary import note_terms, open_glossary
from heed.cli.json_input import json_lines
from heed.cli.memory import Memories, memory_options
from heed.cli.models import (
    ModelFlags,
    checked_search,
    model_options,
)
from heed.cli.protect import Protection, protect_options
from heed.cli.streams import LineWriter, decode_lines, open_input, open_output
from heed.cli.traced import token_bars
from heed.data.lines import STDIN, shown_name
from heed.errors import UsageError
from heed.translate.result import Translation

if TYPE_CHECKING:
    from heed.translate.translator import Translator

T = TypeVar("T")

EXAMPLES = r"""
heed translate -m run/ < news.en > news.de
heed translate -m run/ "A man is riding a bike."
heed translate -m run/ -b 10 --n-best 5 -i news.en -o news.nbest
heed translate -m run/ --sample --temperature 0.8 --seed 7 < news.en
heed translate -m run/ --format jsonl --alignment hard < news.en
heed translate -m run/ --alternatives 3 "A man is riding a bike."
heed translate -m run/ --on-doubt source --report doubts.jsonl < news.en > news.de
heed translate -m run/ --protect 'ACME-\d+' --protect-terms names.txt < news.en
heed translate -m run/ --glossary terms.tsv < news.en > news.de
heed translate -m run/ --json-input --format jsonl < news.jsonl > news.de.jsonl
"""


@dataclass(frozen=True, kw_only=True)
class Source:
    """The source of the lines, unless it is TEXT.

    Attributes:
        input_path: `-` = standard input.
        prefix_path: a file of target prefixes; None = none.
        glossary_path: a file of terms; None = none.
        json_input: whether each line is JSON.
        encoding_errors: `strict` or `replace`.
    """

    input_path: str
    prefix_path: str | None
    glossary_path: str | None
    json_input: bool
    encoding_errors: str

    def inputs(self, text: Sequence[str]) -> list[str]:
        """The files to read; with TEXT, only those of prefixes and terms."""
        others = filter(None, [self.prefix_path, self.glossary_path])
        return [*([] if text else [self.input_path]), *others]


@dataclass(frozen=True, kw_only=True)
class Output:
    """The content and destination of the output.

    Attributes:
        output_path: `-` = standard output.
        format_name: one of `FORMATS`; None = the simplest one that can hold the content.
        with_scores: whether each line's score is written.
        with_confidence: whether each line's confidence is written.
        word_scores: whether each token's log-probability is written.
        alignment: `hard` or `soft`; None = not written.
        alternatives: number of distinct translations of a line besides the first.
        verbose: whether each token's probability is shown.
    """

    output_path: str
    format_name: str | None
    with_scores: bool
    with_confidence: bool
    word_scores: bool
    alignment: str | None
    alternatives: int
    verbose: bool

    def details(self, n_best: int | None) -> Details:
        """The content of a line of output."""
        return Details(
            n_best=n_best or self.alternatives + 1,
            has_scores=self.with_scores,
            has_word_scores=self.word_scores,
            alignment=self.alignment,
            has_confidence=self.with_confidence,
        )


@dataclass(frozen=True, kw_only=True)
class Batching:
    """The number of lines read and computed at once; it does not change results.

    Attributes:
        batch_size: None = the translator's default.
        batch_type: unit of `batch_size`: `tokens` or `sentences`.
        buffer_size: lines read before the first is written.
    """

    batch_size: int | None
    batch_type: str
    buffer_size: int


text_option = options("Input and output")
search_option = options("Search")
sampling_option = options("Sampling")
speed_option = options("Speed")
SHAPES = tuple(FORMATS)
POSITIVE = click.IntRange(min=1)
WIDEST = 1024
"""The widest beam."""
MAX_ALTERNATIVES = WIDEST - 1
"""Besides the translation itself."""


@command("translate", "Translate lines of text.", examples=EXAMPLES)
@click.argument("text", type=Text(), nargs=-1)
@text_option(
    "-i --input input_path",
    str,
    "File to read, also .gz, .xz or .zst; - is standard input.",
    default="-",
    metavar="FILE",
)
@text_option(
    "-o --output output_path",
    str,
    "File to write; - is standard output.",
    default="-",
    metavar="FILE",
)
@text_option(
    "--json-input",
    bool,
    'Each line is a JSON string, or an object with "text" and, optionally, "id" (kept in jsonl), '
    '"target_lang", "prefix", "glossary", "protect", "localize_numbers" and "keep_typos".',
)
@text_option(
    "--format format_name",
    SHAPES,
    "Output format; default: the simplest one that can hold the output.",
)
@text_option("--with-scores", bool, "Also write each line's score.")
@text_option("--word-scores", bool, "Also write each token's log-probability.")
@text_option("--alignment", ("hard", "soft"), "Also write the alignment with the source.")
@text_option("-v --verbose", bool, "Show each token's probability, on standard error.")
@text_option(
    "--prefix prefix_path",
    str,
    "File of prefixes, one for each line's translation.",
    metavar="FILE",
)
@text_option(
    "--glossary glossary_path",
    str,
    "File of terms: source term, tab, target term (.csv: comma or semicolon).",
    metavar="FILE",
)
@text_option(
    "--encoding-errors",
    ("strict", "replace"),
    "Stop at bytes that are not UTF-8, or read them as U+FFFD.",
    default="strict",
)
@doubt_options(
    ("keep", "mark", "source", "fail"),
    "Keep a doubtful line, mark it with [?], write its source instead, or stop.",
)
@doubt_option("--with-confidence", bool, "Also write the probability that each line is right.")
@as_one(Source, "source")
@as_one(Output, "output")
@as_one(Batching, "batching")
@model_options
@memory_options
@protect_options
@search_option("-b --beam-size --beam", int, "Hypotheses kept at each step; 1 is greedy.")
@search_option("--n-best --nbest-size --nbest", int, "Translations written for each line.")
@search_option(
    "--alternatives",
    click.IntRange(0, MAX_ALTERNATIVES),
    "Up to N distinct alternative translations of each line.",
    default=0,
)
@search_option(
    "--length-penalty --lenpen --normalize", float, "Larger values favor longer translations."
)
@search_option("--length-formula", ("gnmt", "power", "none"), "Formula of the length penalty.")
@search_option("--early-stopping", ("first", "bound", "never"), "When a beam search may stop.")
@search_option("--max-length", int, "Maximum number of target tokens.")
@search_option("--max-length-factor", float, "Maximum number of target tokens per source token …")
@search_option("--max-length-offset", float, "… plus this number for the whole line.")
@search_option("--min-length", int, "Minimum number of target tokens.")
@search_option("--no-repeat-ngram-size", int, "No n-gram of this size occurs twice.")
@search_option("--repetition-penalty", float, "Above 1 avoids tokens written before.")
@sampling_option(
    "--sample", bool, "Sample instead of searching; implied by the next four options.", default=None
)
@sampling_option("--temperature", float, "Below 1 favors probable tokens; above 1, rare ones.")
@sampling_option("--top-k", int, "Sample from the N most probable tokens.")
@sampling_option(
    "--top-p", float, "Sample from the most probable tokens with this total probability."
)
@sampling_option(
    "--min-p", float, "Sample from tokens with at least this share of the highest probability."
)
@sampling_option("--seed", int, "The same seed gives the same samples.")
@speed_option("--batch-size", POSITIVE, "Amount computed at once; does not change results.")
@speed_option("--batch-type", ("tokens", "sentences"), "Unit of --batch-size.", default="tokens")
@speed_option("--buffer-size", POSITIVE, "Lines read before the first is written.", default=2048)
@click.pass_obj
def translate(
    session: Session,
    /,
    text: tuple[str, ...],
    source: Source,
    output: Output,
    batching: Batching,
    doubting: Doubting,
    opening: ModelFlags,
    protection: Protection,
    memories: Memories,
    **search: Any,
) -> None:
    """Translate standard input, a file, or TEXT, line by line.

    Every input line becomes one output line, or with --n-best or --alternatives several, except
    in jsonl. An empty line stays empty. When the input pauses, the lines read so far are written.
    """
    details = output.details(search["n_best"])
    write = choose_format(output.format_name, details)
    _check_together(text, source, output, batching, search["n_best"])
    is_interactive = not text and source.input_path == "-" and sys.stdin.isatty()
    replaced: set[int] = set()
    passed_on: deque[dict[str, Any]] = deque()
    with ExitStack() as stack:
        # In an interactive session, an invalid byte is no error.
        on_invalid = replaced.add if is_interactive or source.encoding_errors != "strict" else None
        texts, has_paused = _input_lines(stack, text, source.input_path, on_invalid=on_invalid)
        name = "TEXT" if text else shown_name(source.input_path)
        lines = json_lines(texts, name, passed_on) if source.json_input else texts
        glossary = open_glossary(session, source.glossary_path)
        read = source.inputs(text) + protection.inputs + memories.inputs(opening)
        _require_apart(read, output, doubting)
        translator, target_lang = memories.load(session, opening, protection)
        search = _checked_search(translator, search)
        _set_batch_size(translator, batching)
        doubting.apply(translator)
        writer = stack.enter_context(open_output(output.output_path))
        if is_interactive:
            session.say("Type a line and press Enter; Ctrl-D ends.")
        doubtful = Doubtful(doubting, stack)
        results = translator.translate_stream(
            doubtful.reading(_flushing(lines, writer)),
            prefixes=_prefixes(stack, source.prefix_path),
            glossary=glossary,
            buffer_lines=1 if is_interactive else batching.buffer_size,
            has_paused=has_paused,
            processes=None,
            target_lang=target_lang,
            alignment=output.alignment is not None,
            alternatives=output.alternatives,
            **search,
        )
        noted = _noted(session, map(doubtful.looked_at, results), replaced)
        for number, result in enumerate(noted):
            own = replace(details, passed_on=passed_on.popleft()) if passed_on else details
            for row in write(number, result, own):
                writer.write(row)
            _say_tokens(session if output.verbose else None, writer, result)
        doubtful.summarize(session)


def _check_together(
    text: tuple[str, ...],
    source: Source,
    output: Output,
    batching: Batching,
    n_best: int | None,
) -> None:
    """Refuse flags that exclude each other, or lack one that they need."""
    if text and source.input_path != "-":
        raise UsageError("Give either TEXT or --input, not both.")
    if not text and source.input_path == source.prefix_path == "-":
        raise UsageError(
            "The lines to translate and their prefixes cannot both be standard input. Name a file "
            "by --input or --prefix."
        )
    if source.json_input and source.prefix_path:
        raise UsageError('With --json-input, give each "prefix" in its line instead of --prefix.')
    if output.alternatives and n_best is not None:
        raise UsageError("Give either --alternatives or --n-best, not both.")
    if batching.batch_size is None and "batch_type" in typed_flags(click.get_current_context()):
        raise UsageError("--batch-type is the unit of --batch-size: give that too.")


def _require_apart(read: list[str], output: Output, doubting: Doubting) -> None:
    """Refuse to read an input twice or to overwrite it, or to write two outputs to one file."""
    if read.count(STDIN) > 1:
        raise UsageError(
            "Standard input (-) can be read once, but is given twice, as the lines to translate, "
            "--prefix or --protect-terms. Name a file for one of them."
        )
    for path in filter(None, [output.output_path, doubting.report_path]):
        require_not_read(path, read)
    if (report := doubting.report_path) and are_one_file(report, output.output_path):
        raise UsageError(f"--report and --output are both {report}: each needs its own file.")


def _prefixes(stack: ExitStack, path: str | None) -> Iterator[str] | None:
    """The lines of a file of prefixes, if one is given."""
    if not path:
        return None
    return decode_lines(stack.enter_context(open_input(path)), shown_name(path))


def _input_lines(
    stack: ExitStack, text: tuple[str, ...], path: str, on_invalid: Callable[[int], None] | None
) -> tuple[Iterator[str], Callable[[], bool] | None]:
    """The lines to translate, from TEXT or a file; and whether the next has not arrived yet."""
    if text:
        return (line for argument in text for line in argument.split("\n")), None
    source = stack.enter_context(open_input(path))
    lines = decode_lines(
        source,
        shown_name(path),
        on_invalid=on_invalid,
        otherwise=" Or pass --encoding-errors replace.",
    )
    return lines, source.has_paused


def _say_tokens(session: Session | None, writer: LineWriter, result: Translation) -> None:
    """Print the probability of each token, if `session` is given."""
    if session is not None and result.tokens:
        writer.flush()
        session.say("\n".join(token_bars(result)))


def _flushing(lines: Iterable[T], writer: LineWriter) -> Iterator[T]:
    """Pass lines on, but flush the output before each read, which may take long."""
    writer.flush()
    for line in lines:
        yield line
        writer.flush()


def _search_options(search: dict[str, Any]) -> dict[str, Any]:
    """The fields of `DecodeOptions` that were given; the others keep the model's defaults."""
    given = {name: value for name, value in search.items() if value is not None}
    if any(name in given for name in ("temperature", "top_k", "top_p", "min_p")):
        given["sample"] = True
    n_best = given.get("n_best", 1)
    if "beam_size" not in given and n_best > 1 and not given.get("sample"):
        given["beam_size"] = min(WIDEST, max(5, n_best))
    return given


def _checked_search(translator: "Translator", search: dict[str, Any]) -> dict[str, Any]:
    """The search options that were given.

    Raises:
        UsageError: one is invalid or would have no effect; names its flag.
    """
    search = checked_search(translator.options, _search_options(search))
    is_sampled = search.get("sample", translator.options.sample)
    if "seed" in search and not is_sampled:
        raise UsageError("--seed changes how tokens are drawn: give --sample too.")
    if is_sampled and search.get("beam_size", 1) > 1:
        raise UsageError("--sample does not use a beam: leave out --beam-size.")
    return search


def _set_batch_size(translator: "Translator", batching: Batching) -> None:
    if batching.batch_size is None:
        return
    if batching.batch_type == "sentences":
        translator.batch_lines = batching.batch_size
    else:
        translator.batch_tokens = batching.batch_size


def _noted(
    session: Session, results: Iterator[Translation], replaced: set[int]
) -> Iterator[Translation]:
    """Pass results on, and print remarks at the end."""
    of_terms: list[Translation] = []
    counts = dict.fromkeys(("split", "max_length", "replaced_bytes"), 0)
    for number, result in enumerate(results, start=1):
        if number in replaced:
            replaced.remove(number)
            result = replace(result, status="replaced_bytes")
        kinds = {doubt.kind for doubt in result.doubts}
        # A line in parts has the status `split`, even if one of them was cut off.
        counts["max_length"] += "max_length" in kinds
        if result.status in ("split", "replaced_bytes"):
            counts[result.status] += 1
        if any(kind.startswith("glossary_") for kind in kinds):
            of_terms.append(result)
        yield result
    note_terms(session, of_terms)
    for status, meaning in (
        ("split", "too long for the model and translated in parts"),
        ("max_length", "cut off at the longest length allowed (see --max-length)"),
        ("replaced_bytes", "not valid UTF-8; wrong bytes were read as U+FFFD"),
    ):
        if counts[status]:
            n_lines = f"{counts[status]} line{'s were' if counts[status] > 1 else ' was'}"
            session.say(f"heed: {n_lines} {meaning}.")
