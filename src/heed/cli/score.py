"""`heed score`: the log-probabilities of given pairs."""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from heed.bundle.outputs import require_not_read
from heed.cli.command import Session, command, options
from heed.cli.models import ModelFlags, load_translator, model_files, model_options
from heed.cli.streams import open_output
from heed.data.lines import STDIN
from heed.errors import DataError, UsageError

if TYPE_CHECKING:
    from heed.translate.result import PairScore

SCORE_EXAMPLES = """
heed score -m run/ --src test.en --tgt test.de
heed score -m run/ --src test.en --tgt out.de --normalize --word-scores
"""

option = options("Options")
PORTION = 1024


@command("score", "Log-probability of given translations.", examples=SCORE_EXAMPLES)
@option("--src", str, "Source lines.", required=True, metavar="FILE")
@option("--tgt", str, "Their translations.", required=True, metavar="FILE")
@option("--normalize", bool, "Divide by the number of tokens.")
@option("--word-scores", bool, "Also write each token's log-probability.")
@option("--json as_json", bool, "Print one JSON object per pair.")
@option("-o --output", str, "File to write; - is standard output.", default="-", metavar="FILE")
@model_options
@click.pass_obj
def score(
    session: Session,
    /,
    src: str,
    tgt: str,
    output: str,
    normalize: bool,
    word_scores: bool,
    as_json: bool,
    opening: ModelFlags,
) -> None:
    """Write the natural logarithm of p(translation | source) for each pair, the end token included.

    A pair with more than 1,024 tokens on a side (or more than the model reads in one piece, if
    that is larger) is not scored: its line is nan, or in JSON null with the status "too_long".
    """
    require_one_stdin(src, tgt)
    if normalize and as_json:
        raise UsageError("--json writes both scores: leave out --normalize.")
    require_not_read(output, [src, tgt, *model_files(opening.model, *opening.beside)])
    translator, target_lang = load_translator(session, opening)
    pairs = paired(src, tgt)
    n_done = 0
    too_long: list[int] = []
    with open_output(output) as writer:
        while portion := list(islice(pairs, PORTION)):
            found = translator.score(
                [pair[0] for pair in portion],
                [pair[1] for pair in portion],
                target_lang=target_lang,
            )
            for number, each in enumerate(found, n_done + 1):
                writer.write(
                    score_json(each, has_tokens=word_scores)
                    if as_json
                    else score_columns(each, has_tokens=word_scores, is_normalized=normalize)
                )
                if each.status == "too_long":
                    too_long.append(number)
            n_done += len(portion)
    if too_long:
        what = "1 pair was" if len(too_long) == 1 else f"{len(too_long)} pairs were"
        session.say(
            f"heed: {what} too long to score (more than {translator.reader.max_whole_tokens} "
            f"tokens on a side) and got {'null' if as_json else 'nan'}; "
            f"the first is line {too_long[0]}."
        )


def score_json(found: "PairScore", *, has_tokens: bool) -> str:
    """A pair's scores as a JSON object; NaN becomes null, because JSON has no NaN."""
    is_ok = found.status == "ok"
    record: dict[str, Any] = {
        "log_prob": found.log_prob if is_ok else None,
        "score": found.score if is_ok else None,
        "status": found.status,
    }
    if has_tokens:
        record |= {"tokens": found.tokens, "token_scores": found.token_scores}
    return json.dumps(record, ensure_ascii=False)


def score_columns(found: "PairScore", *, has_tokens: bool, is_normalized: bool) -> str:
    """A pair's score, and each token's after a tab."""
    columns = [f"{found.score if is_normalized else found.log_prob:.6f}"]
    if has_tokens:
        columns.append(" ".join(f"{token:.4f}" for token in found.token_scores))
    return "\t".join(columns)


def require_one_stdin(*paths: str) -> None:
    """Refuse to read standard input for more than one file.

    Raises:
        UsageError: - is given twice.
    """
    if paths.count(STDIN) > 1:
        raise UsageError("Standard input (-) can be read once, but is given twice.")


def all_paired(src_path: str, tgt_path: str) -> list[Sequence[str]]:
    """All pairs of lines of two files.

    Raises:
        UsageError: both are standard input.
        DataError: they are empty, or one has more lines.
    """
    require_one_stdin(src_path, tgt_path)
    if pairs := list(paired(src_path, tgt_path)):
        return pairs
    raise DataError(f"{src_path} must have at least one line, but is empty.")


def paired(src_path: str, tgt_path: str) -> Iterator[Sequence[str]]:
    """Yield line n of one file with line n of the other.

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
                f"{src_path} and {tgt_path} must have the same number of lines, but {tgt_path} "
                f"ends after line {number - 1}."
            )
        yield src_line, tgt_line
    if next(tgt, None) is not None:
        raise DataError(
            f"{src_path} and {tgt_path} must have the same number of lines, but {src_path} ends "
            f"after line {number}."
        )
