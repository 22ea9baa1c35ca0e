"""`heed evaluate` and `heed score`: how good translations are, and how probable.

Not here: the metrics (`evaluate/metrics.py`) or the model. `evaluate` judges text against
references; `score` asks a model for the probability of given pairs.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from heed.cli.command import Session, command, options
from heed.cli.models import load_translator, model_files, model_options
from heed.cli.streams import open_output
from heed.errors import DataError, UsageError
from heed.outputs import require_not_read

if TYPE_CHECKING:
    from heed.evaluate.metrics import Difference, Evaluation

EVALUATE_EXAMPLES = """
heed evaluate -m run/ --src test.en --ref test.de
heed evaluate --hyp out.de --ref test.de --json
heed evaluate --hyp old.de --hyp new.de --ref test.de
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
@option("-tok --tokenize", str, "BLEU's tokenizer; default: by the target language.")
@option("--resamples", click.IntRange(min=1), "For confidence intervals.", default=1000)
@option("--save", str, "Also write the model's translations here.", metavar="FILE")
@option("-b --beam-size --beam", int, "Hypotheses that the model keeps at each step.")
@option("--length-penalty --lenpen alpha", float, "More lets the model write longer text.")
@option("--json as_json", bool, "Print JSON.")
@model_options
@click.pass_obj
def evaluate(session: Session, /, references: tuple[str, ...], **flags: Any) -> None:
    """Score a model's or anybody's translations; of two systems, the first is the baseline.

    Scores are sacreBLEU's, with its signatures and 95 % confidence intervals. With -m and --src the
    model translates first.
    """
    ref_paths = [*references, *flags["ref"]]
    if not ref_paths:
        raise UsageError("Give the references: --ref FILE")
    if not flags["src"] and not flags["hyp"]:
        raise UsageError(
            "Give -m RUN and --src FILE to judge a model, or --hyp FILE to judge a file."
        )
    systems = {path: read_all(path) for path in flags["hyp"]}
    target_lang = flags["target_lang"] or ""
    if flags["src"]:
        translator = load_translator(session, flags)
        target_lang = flags["target_lang"] or translator.target_lang
        search = {key: flags[key] for key in ("beam_size", "alpha") if flags[key] is not None}
        stream = translator.translate_stream(
            read_all(flags["src"]), target_lang=flags["target_lang"], **search
        )
        texts = [found.text for found in stream]
        systems[flags["model"] or "model"] = texts
        if flags["save"]:
            with open_output(flags["save"]) as writer:
                for text in texts:
                    writer.write(text)
    if len(systems) > 2:
        raise UsageError("Compare two systems at a time: a baseline and another.")
    judge(session, systems, [read_all(path) for path in ref_paths], target_lang, flags)


def judge(
    session: Session,
    systems: dict[str, list[str]],
    references: list[list[str]],
    target_lang: str,
    flags: dict[str, Any],
) -> None:
    """Score one or two systems and print what was found."""
    from heed.evaluate.counts import Reading
    from heed.evaluate.metrics import compare, evaluate

    wishes: dict[str, Any] = {
        "metrics": [name.strip() for name in flags["metrics"].split(",") if name.strip()],
        "reading": Reading(
            target_lang=target_lang, tokenize=flags["tokenize"], lowercase=flags["lowercase"]
        ),
        "resamples": flags["resamples"],
    }
    found = {name: evaluate(lines, references, **wishes) for name, lines in systems.items()}
    differences = {}
    if len(systems) == 2:
        baseline, other = systems.values()
        differences = compare(baseline, other, references, **wishes)
    if flags["as_json"]:
        record: dict[str, Any] = {
            "systems": [{"name": name, **each.as_dict()} for name, each in found.items()]
        }
        if differences:
            record["comparison"] = {key: each.as_dict() for key, each in differences.items()}
        click.echo(json.dumps(record, ensure_ascii=False, indent=2))
        return
    for line in [*describe(found), *describe_differences(differences)]:
        click.echo(line)
    for name, each in found.items():
        for warning in each.warnings:
            session.say(f"heed: {name}: {warning}")


def describe(found: "dict[str, Evaluation]") -> Iterator[str]:
    """A line for each score of each system."""
    for name, evaluation in found.items():
        yield f"{name}  ({evaluation.n_sentences} sentences)"
        for score in evaluation.scores.values():
            interval = f"[{score.low:.2f}, {score.high:.2f}]"
            yield f"  {score.name:<12} {score.value:6.2f}  {interval:<16}  {score.signature}"


def describe_differences(differences: "dict[str, Difference]") -> Iterator[str]:
    """A line for each metric: how far the second system is from the first."""
    if differences:
        yield "difference, second minus first"
    for each in differences.values():
        interval = f"[{each.low:+.2f}, {each.high:+.2f}]"
        yield f"  {each.name:<12} {each.value:+6.2f}  {interval:<16}  p = {each.p_value:.4f}"


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
    """Write log p(translation | source) for each pair: natural logarithm, end of line counted."""
    require_not_read(output, [src, tgt, *model_files(flags["model"])])
    translator = load_translator(session, flags)
    pairs = paired(src, tgt)
    with open_output(output) as writer:
        while portion := list(islice(pairs, PORTION)):
            found = translator.score(
                [pair[0] for pair in portion],
                [pair[1] for pair in portion],
                target_lang=flags["target_lang"],
            )
            for each in found:
                value = each.score if flags["normalize"] else each.log_prob
                if flags["as_json"]:
                    record: dict[str, Any] = {"log_prob": each.log_prob, "score": each.score}
                    if flags["word_scores"]:
                        record |= {"tokens": each.tokens, "token_scores": each.token_scores}
                    writer.write(json.dumps(record, ensure_ascii=False))
                    continue
                columns = [f"{value:.6f}"]
                if flags["word_scores"]:
                    columns.append(" ".join(f"{token:.4f}" for token in each.token_scores))
                writer.write("\t".join(columns))


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
