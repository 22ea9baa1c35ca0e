"""`heed check`: the doubtful ones among given pairs."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from itertools import chain, islice
from typing import TYPE_CHECKING

import click

from heed.bundle.outputs import STANDARD, require_not_read
from heed.cli.command import Session, command, options
from heed.cli.corpus import are_exchanged
from heed.cli.models import ModelFlags, load_translator, model_files, model_options
from heed.cli.remarks import assumed_directions
from heed.cli.streams import json_row, open_output
from heed.cli.waiting import Waiting
from heed.errors import UsageError
from heed.translate.doubts.judge import doubts_of_pair
from heed.translate.result import Doubt

if TYPE_CHECKING:
    from heed.data.readers import Pair, ParallelFiles
    from heed.translate.result import Translation
    from heed.translate.translator import Translator

CHECK_EXAMPLES = """
heed check -m run/ memory.tmx
heed check -m run/ --src manual.en --tgt manual.de --json > doubtful.jsonl
heed check -m run/ memory.csv -o doubtful.tsv --clean clean.tsv
"""

option = options("Options")
PORTION = 1024
_BREAKS = re.compile(
    r" *[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029][\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029 ]*"
)


@command("check", "Find doubtful translations in a file.", examples=CHECK_EXAMPLES)
@click.argument("files", nargs=-1)
@option("--src", str, "Source lines.", default=None, metavar="FILE")
@option("--tgt", str, "Their translations.", default=None, metavar="FILE")
@option(
    "--columns",
    str,
    "Columns of a table, such as 2,3 or en,de; default: detected.",
    metavar="SRC,TGT",
)
@option("--json as_json", bool, "Print one JSON object per doubtful pair.")
@option("-o --output", str, "File to write; - is standard output.", default="-", metavar="FILE")
@option("--clean", str, "Also write the other pairs to this .tsv file.", metavar="FILE")
@model_options
@click.pass_obj
def check(
    session: Session,
    /,
    files: tuple[str, ...],
    src: str | None,
    tgt: str | None,
    columns: str | None,
    as_json: bool,
    output: str,
    clean: str | None,
    opening: ModelFlags,
) -> None:
    """List the doubtful pairs of FILES (.tsv, .csv, .tmx, .xliff or .po), or of --src and --tgt.

    Each row names the place of a pair and the kinds of doubt: something left out or added, numbers
    or fields that differ, another language, and so on. Any author may have translated; the model
    compares the translation with its own. A model that was trained on a pair may have learned its
    fault.
    """
    parts = _parts(files, src, tgt, columns)
    outputs = [output, *([clean] if clean else [])]
    if len({*outputs}) < len(outputs):
        raise UsageError("--output and --clean must be two files.")
    for path in outputs:
        inputs = [name for part in parts for name in part.files]
        require_not_read(path, [*inputs, *model_files(opening.model, *opening.beside)])
    translator, target_lang = load_translator(session, opening)
    if not translator.judge.is_learned:
        session.say(
            "heed: the model is not calibrated, so text that is left out, added or in another "
            "language is not found; heed calibrate learns to."
        )
    from heed.data.readers import read_part

    parts = _directed(parts, translator, opening.source_lang, target_lang)
    if remark := assumed_directions(parts):
        session.say(f"heed: {remark}")
    pairs: Iterable[Pair] = chain.from_iterable(map(read_part, parts))
    checked = _Checked(session, as_json=as_json)
    with Waiting(session) as waiting:
        if output != STANDARD:
            pairs = waiting.counted(pairs, "checking", of=0, unit="pairs")
        checked.write(translator, target_lang, pairs, output, clean)
    checked.summarize(output)


def _parts(
    files: tuple[str, ...], src: str | None, tgt: str | None, columns: str | None
) -> "list[ParallelFiles]":
    """The files to read.

    Raises:
        UsageError: there are none, one side is missing, or standard input is named twice.
    """
    from heed.cli.corpus import CorpusFlags, corpus_from

    if bool(src) != bool(tgt):
        raise UsageError("--src and --tgt go together: the sources, and their translations.")
    if not files and not src:
        raise UsageError(
            "Give pairs to check: a .tsv, .csv, .tmx, .xliff or .po file, or --src FILE --tgt FILE."
        )
    given = CorpusFlags(src=(src,) if src else (), tgt=(tgt,) if tgt else (), columns=columns)
    return [*corpus_from(given, [*files]).train]


def _directed(
    parts: "list[ParallelFiles]",
    translator: "Translator",
    source_lang: str | None,
    target_lang: str | None,
) -> "list[ParallelFiles]":
    """The files in the direction of the translator.

    Raises:
        UsageError: the names of two files say the opposite direction.
    """
    source, target = translator.reader.direction(source_lang, target_lang)
    for part in parts:
        if are_exchanged((part.source_lang, part.target_lang), (source, target)):
            src, tgt = part.files
            raise UsageError(
                f"--src {src} and --tgt {tgt} are {target} and {source} by their names, but the "
                f"model translates {source} into {target}. Exchange the files, or rename them."
            )
    return [replace(part, source_lang=source, target_lang=target) for part in parts]


class _Checked:
    """Writes doubtful pairs, counts them, and says how many there are.

    Args:
        session: of the command.
        as_json: write objects instead of rows.
    """

    def __init__(self, session: Session, *, as_json: bool) -> None:
        self._session, self._as_json = session, as_json
        self._kinds: Counter[str] = Counter()
        self._n_pairs = self._n_doubtful = 0

    def write(
        self,
        translator: "Translator",
        target_lang: str | None,
        pairs: "Iterable[Pair]",
        output: str,
        clean: str | None,
    ) -> None:
        """Check all pairs; doubtful ones go to `output`, the others to `clean`."""
        with ExitStack() as stack:
            doubtful = stack.enter_context(open_output(output))
            others = stack.enter_context(open_output(clean)) if clean else None
            reading = iter(pairs)
            while portion := list(islice(reading, PORTION)):
                found = translator.judged(
                    [pair.src for pair in portion],
                    [pair.tgt for pair in portion],
                    target_lang=target_lang,
                )
                for pair, each in zip(portion, found, strict=True):
                    doubts = _doubts(pair, each)
                    if doubts:
                        self._count(doubts)
                        doubtful.write(self._row(pair, doubts))
                    elif others is not None:
                        others.write(f"{_cell(pair.src)}\t{_cell(pair.tgt)}")
                self._n_pairs += len(portion)

    def _count(self, doubts: Sequence[Doubt]) -> None:
        self._n_doubtful += 1
        self._kinds.update({doubt.kind for doubt in doubts})

    def _row(self, pair: "Pair", doubts: Sequence[Doubt]) -> str:
        if self._as_json:
            record = {
                "file": pair.origin,
                "line": pair.line,
                "source": pair.src,
                "text": pair.tgt,
                "doubts": [asdict(doubt) for doubt in doubts],
            }
            return json_row(record)
        kinds = ",".join(dict.fromkeys(doubt.kind for doubt in doubts))
        return "\t".join((f"{pair.origin}:{pair.line}", kinds, _cell(pair.src), _cell(pair.tgt)))

    def summarize(self, output: str) -> None:
        """Say how many pairs are doubtful, and why."""
        counted = f"{self._n_doubtful:,} of {self._n_pairs:,} pairs"
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in self._kinds.most_common())
        verb = "is" if self._n_doubtful == 1 else "are"
        where = f": see {output}" if output != STANDARD and self._n_doubtful else ""
        self._session.say(f"heed: {counted} {verb} doubtful{kinds and f' ({kinds})'}{where}.")


def _doubts(pair: "Pair", found: "Translation") -> list[Doubt]:
    """What is doubtful about a pair; none if both sides are blank."""
    if pair.fault:
        return [Doubt(kind="unreadable", sentence=f"A part could not be read: {pair.fault}.")]
    return doubts_of_pair(pair.src, pair.tgt, found)


def _cell(text: str) -> str:
    """A text as a cell of a row: line breaks and tabs become blanks."""
    return _BREAKS.sub(" ", text).strip(" ")
