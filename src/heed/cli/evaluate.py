"""`heed evaluate` and `heed score`: how good translations are, and how probable.

Not here: the metrics (`evaluate/metrics.py`) or the model. `evaluate` judges text against
references; `score` asks a model for the probability of given pairs.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from heed.bundle.outputs import STANDARD, require_not_read
from heed.cli.command import Session, command, options
from heed.cli.models import checked_search, load_translator, model_files, model_options
from heed.cli.streams import LineWriter, open_output
from heed.cli.terminal import echo
from heed.disk.files import atomic_writer
from heed.errors import ConfigError, DataError, UsageError

if TYPE_CHECKING:
    from heed.evaluate.counts import Reading
    from heed.evaluate.report import Report
    from heed.translate.result import PairScore
    from heed.translate.translator import Translator

EVALUATE_EXAMPLES = """
heed evaluate -m run/ --src test.en --ref test.de
heed evaluate --hyp out.de --ref test.de --json
heed evaluate --hyp old.de --hyp new.de --ref test.de
heed evaluate -m run/ --src test.en --ref test.de --worst 10
heed evaluate -m run/ --src test.en --ref test.de -b 1 --save out.de --metrics bleu,chrf
"""

SCORE_EXAMPLES = """
heed score -m run/ --src test.en --tgt test.de
heed score -m run/ --src test.en --tgt out.de --normalize --word-scores
"""

option = options("Options")
PORTION = 1024


@command("evaluate", "Compare translations with references.", examples=EVALUATE_EXAMPLES)
@click.argument("references", nargs=-1, metavar="[REF]...")
@option("--src", str, "Lines to translate with the model.", metavar="FILE")
@option("--ref", str, "References; more than once for several sets.", multiple=True, metavar="FILE")
@option("-i --hyp --input", str, "To judge; twice: which is better?", multiple=True, metavar="FILE")
@option("--metrics", str, "Of bleu, chrf, ter, wer, exact.", default="bleu,chrf,ter")
@option("-lc --lowercase", bool, "Ignore case.")
@option("-tok --tokenize", str, "BLEU's tokenizer; default: by the language, see -t.")
@option(
    "--worst",
    click.IntRange(min=0),
    "Also show scores by length and the N worst sentences.",
    default=0,
)
@option("--resamples", click.IntRange(min=1), "For confidence intervals.", default=1000)
@option("--save", str, "Also write the model's translations here.", metavar="FILE")
@option("-b --beam-size --beam", int, "Hypotheses that the model keeps at each step.")
@option("--length-penalty --lenpen", float, "More lets the model write longer text.")
@option("--json as_json", bool, "Print JSON.")
@model_options
@click.pass_obj
def evaluate(session: Session, /, references: tuple[str, ...], **flags: Any) -> None:
    """Score a model's or anybody's translations; of two systems, the first is the baseline.

    Scores are sacreBLEU's, with its signatures and 95 % confidence intervals. With -m and --src the
    model translates first. TER counts a pair with a line of more than 400 words without shifts; its
    signature then says so.
    """
    ref_paths = [*references, *flags["ref"]]
    require_sensible(ref_paths, flags)
    require_known_names(flags)
    # All is read before anything is translated or saved.
    systems = {path: read_all(path) for path in flags["hyp"]}
    sources = read_all(flags["src"]) if flags["src"] else []
    known = [read_all(path) for path in ref_paths]
    named = [*zip(ref_paths[1:], known[1:], strict=True), *systems.items()]
    if flags["src"]:
        named.append((flags["src"], sources))
    for path, lines in named:
        if len(lines) != len(known[0]):
            raise DataError(
                f"{path} and {ref_paths[0]} must have as many lines, but have {len(lines)} and "
                f"{len(known[0])}."
            )
    from heed.evaluate.metrics import require_installed
    from heed.evaluate.report import report

    translator = load_translator(session, flags) if flags["src"] else None
    target_lang = flags["target_lang"] or (translator.target_lang if translator else "")
    require_installed(metrics_of(flags), reading_of(flags, target_lang))
    if translator:
        name = flags["model"] or "model"
        name = f"model {name}" if name in systems else name
        systems[name] = translate_all(translator, sources, flags)
    found = report(
        systems,
        known,
        sources=sources or None,
        metrics=metrics_of(flags),
        reading=reading_of(flags, target_lang),
        resamples=flags["resamples"],
        n_worst=flags["worst"],
    )
    show(session, found, as_json=flags["as_json"])


def require_sensible(ref_paths: list[str], flags: dict[str, Any]) -> None:
    """Refuse flags that do not fit together; nothing is read before.

    Raises:
        UsageError: says which flag to change.
    """
    hyp_paths = flags["hyp"]
    inputs = [*ref_paths, *hyp_paths, *([flags["src"]] if flags["src"] else [])]
    if flags["save"]:
        models = model_files(flags["model"]) if flags["src"] else []
        require_not_read(flags["save"], [*inputs, *models])
    if not ref_paths:
        raise UsageError("Give the references: --ref FILE")
    if not flags["src"] and not hyp_paths:
        raise UsageError(
            "Give -m RUN and --src FILE to judge a model, or --hyp FILE to judge a file."
        )
    if flags["save"] and not flags["src"]:
        raise UsageError("--save writes the model's translations: give -m RUN and --src FILE too.")
    if len(hyp_paths) + bool(flags["src"]) > 2:
        raise UsageError("Compare two systems at a time: a baseline and another.")
    if len({os.path.realpath(path) for path in hyp_paths}) < len(hyp_paths):
        raise UsageError(f"Both --hyp are the same file: {hyp_paths[0]}. Give two different ones.")
    if inputs.count(STANDARD) > 1:
        raise UsageError("Standard input can be read only once: give - for one file only.")


def require_known_names(flags: dict[str, Any]) -> None:
    """Refuse metrics and tokenizers that do not exist.

    Raises:
        UsageError: names the nearest that does.
    """
    from heed.evaluate.metrics import require_known

    try:
        require_known(metrics_of(flags), reading_of(flags, ""))
    except ConfigError as error:
        raise UsageError(str(error)) from None


def metrics_of(flags: dict[str, Any]) -> list[str]:
    """The names that `--metrics` gives."""
    return [name.strip() for name in flags["metrics"].split(",") if name.strip()]


def reading_of(flags: dict[str, Any], target_lang: str) -> "Reading":
    """How text in this language is read."""
    from heed.evaluate.counts import Reading

    return Reading(
        target_lang=target_lang, tokenize=flags["tokenize"], lowercase=flags["lowercase"]
    )


def translate_all(translator: "Translator", sources: list[str], flags: dict[str, Any]) -> list[str]:
    """The model's translations, also written to `--save` where it is given."""
    given = {key: flags[key] for key in ("beam_size", "length_penalty") if flags[key] is not None}
    search = checked_search(translator, given)
    texts = []
    with ExitStack() as stack:
        # Opened first: a folder that cannot be written is told before an hour of translating.
        writer = stack.enter_context(open_saved(flags["save"])) if flags["save"] else None
        for found in translator.translate_stream(
            sources, target_lang=flags["target_lang"], **search
        ):
            texts.append(found.text)
            if writer:
                writer.write(found.text)
    return texts


@contextmanager
def open_saved(path: str) -> Iterator[LineWriter]:
    """A file that appears only when all is written; pipes and the like are written as they are."""
    if path == STANDARD or (os.path.exists(path) and not os.path.isfile(path)):
        with open_output(path) as writer:
            yield writer
        return
    with atomic_writer(path) as file:
        yield LineWriter(cast(BinaryIO, file))


def show(session: Session, found: "Report", *, as_json: bool = False) -> None:
    """Print scores; remarks about the text go to standard error."""
    if as_json:
        echo(json.dumps(found.as_dict(), ensure_ascii=False, indent=2))
        return
    for line in found.as_text().split("\n"):
        echo(line)
    for name, each in found.evaluations.items():
        for warning in each.warnings:
            session.say(f"heed: {name}: {warning}")


@command("score", "Log-probability of given translations.", examples=SCORE_EXAMPLES)
@option("--src", str, "Source lines.", required=True, metavar="FILE")
@option("--tgt", str, "Their translations.", required=True, metavar="FILE")
@option("--normalize", bool, "Divide by the number of tokens.")
@option("--word-scores", bool, "Also write each token's log-probability.")
@option("--json as_json", bool, "Print a JSON object a pair.")
@option("-o --output", str, "File to write; - is standard output.", default="-")
@model_options
@click.pass_obj
def score(session: Session, /, src: str, tgt: str, output: str, **flags: Any) -> None:
    """Write log p(translation | source) for each pair: natural logarithm, end of line counted.

    A pair with more than 1,024 tokens on a side (or than the model reads in one piece, if that is
    more) is not scored: its line is nan, in JSON null with the status "too_long".
    """
    require_not_read(output, [src, tgt, *model_files(flags["model"])])
    translator = load_translator(session, flags)
    pairs = paired(src, tgt)
    n_done = 0
    too_long: list[int] = []
    with open_output(output) as writer:
        while portion := list(islice(pairs, PORTION)):
            found = translator.score(
                [pair[0] for pair in portion],
                [pair[1] for pair in portion],
                target_lang=flags["target_lang"],
            )
            for number, each in enumerate(found, n_done + 1):
                writer.write(spell_score(each, flags))
                if each.status == "too_long":
                    too_long.append(number)
            n_done += len(portion)
    if too_long:
        what = "1 pair was" if len(too_long) == 1 else f"{len(too_long)} pairs were"
        session.say(
            f"heed: {what} too long to score (more than {translator.reader.max_whole_tokens} "
            f"tokens on a side) and got {'null' if flags['as_json'] else 'nan'}; "
            f"the first is line {too_long[0]}."
        )


def spell_score(found: "PairScore", flags: dict[str, Any]) -> str:
    """A line of output, as the flags ask for it; JSON knows no NaN and gets null."""
    is_ok = found.status == "ok"
    if flags["as_json"]:
        record: dict[str, Any] = {
            "log_prob": found.log_prob if is_ok else None,
            "score": found.score if is_ok else None,
            "status": found.status,
        }
        if flags["word_scores"]:
            record |= {"tokens": found.tokens, "token_scores": found.token_scores}
        return json.dumps(record, ensure_ascii=False)
    columns = [f"{found.score if flags['normalize'] else found.log_prob:.6f}"]
    if flags["word_scores"]:
        columns.append(" ".join(f"{token:.4f}" for token in found.token_scores))
    return "\t".join(columns)


def read_all(path: str) -> list[str]:
    """All lines of a file."""
    from heed.data.lines import read_lines

    return list(read_lines(path))


def paired(src_path: str, tgt_path: str) -> Iterator[Sequence[str]]:
    """Line n of one file with line n of the other.

    Raises:
        DataError: one file has more lines.
    """
    from heed.data.lines import read_lines

    src, tgt = read_lines(src_path), read_lines(tgt_path)
    number = 0
    for number, src_line in enumerate(src, start=1):
        tgt_line = next(tgt, None)
        if tgt_line is None:
            raise DataError(
                f"{src_path} and {tgt_path} must have as many lines, but {tgt_path} ends after "
                f"line {number - 1}."
            )
        yield src_line, tgt_line
    if next(tgt, None) is not None:
        raise DataError(
            f"{src_path} and {tgt_path} must have as many lines, but {src_path} ends after "
            f"line {number}."
        )
