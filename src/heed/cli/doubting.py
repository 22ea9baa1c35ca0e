"""What `heed translate` does with doubtful lines, and `heed calibrate`."""

import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from heed.cli.command import Decorator, Session, as_one, command, options
from heed.cli.models import ModelFlags, find_model, load_translator, one_model_options
from heed.cli.runs import held_if_run
from heed.cli.score import require_one_stdin
from heed.cli.streams import json_row, open_output
from heed.cli.terminal import echo
from heed.errors import DataError, UsageError
from heed.translate.doubts.judge import REMARKS, is_doubtful
from heed.translate.result import Translation, moved

if TYPE_CHECKING:
    from heed.translate.lines import Line
    from heed.translate.translator import Translator

_LINE_BREAK = re.compile(r"\r\n|[\r\n]")
MARK = "[?] "
"""Prefix of a doubtful line with `--on-doubt mark`."""

EXAMPLES = """
heed calibrate -m run/
heed calibrate -m run/ dev.en dev.de
"""

option = options("Options")
doubt_option = options("Doubtful lines")


@dataclass(frozen=True, kw_only=True)
class Doubting:
    """The treatment of doubtful lines.

    Attributes:
        on_doubt: `keep`, `mark`, `source` or `fail`.
        report_path: a file for all doubtful lines; None = none.
        second_search: whether a doubtful line is searched again; None = the model's setting.
    """

    on_doubt: str
    report_path: str | None
    second_search: bool | None

    def apply(self, translator: "Translator") -> None:
        """Set the translator's second search, if it is given."""
        if self.second_search is not None:
            translator.searches_again = self.second_search


def doubt_options(on_doubt: tuple[str, ...], about: str) -> Decorator:
    """Add the options on doubtful lines to a command; they arrive as argument `doubting`.

    Args:
        on_doubt: the choices of `--on-doubt`.
        about: these choices, as the help describes them.
    """

    def decorate(function: Any) -> Any:
        for add in (
            as_one(Doubting, "doubting"),
            doubt_option(
                "--second-search/--no-second-search",
                bool,
                "Search again for a doubtful line; default: if the model is calibrated.",
                default=None,
            ),
            doubt_option(
                "--report report_path",
                str,
                "Also write what is doubtful to this file, as JSON.",
                metavar="FILE",
            ),
            doubt_option("--on-doubt", on_doubt, about, default="keep"),
        ):
            function = add(function)
        return function

    return decorate


class Doubtful:
    """Reports and marks doubtful translations as they are written.

    Args:
        wanted: the treatment.
        stack: closes the report at the end.
        unit: the word for one of them.
    """

    def __init__(self, wanted: Doubting, stack: ExitStack, *, unit: str = "line") -> None:
        self._wanted = wanted
        self._unit = unit
        path = wanted.report_path
        self._report = None if path is None else stack.enter_context(open_output(path))
        self._sources: deque[str] = deque()
        self._kinds: Counter[str] = Counter()
        self._n_lines = self._n_doubtful = 0

    def reading(self, lines: "Iterable[str | Line]") -> "Iterator[str | Line]":
        """The same lines; each is remembered until its translation arrives."""
        for line in lines:
            self._sources.append(line if isinstance(line, str) else line.text)
            yield line

    def looked_at(self, found: Translation) -> Translation:
        """The translation of the next line, in the form to be written.

        Raises:
            DataError: it is doubtful, and `--on-doubt fail` is set.
        """
        source = self._sources.popleft()
        self._n_lines += 1
        if not is_doubtful(found):
            return found
        self._n_doubtful += 1
        self._kinds.update({doubt.kind for doubt in found.doubts} - REMARKS)
        if self._report is not None:
            self._report.write(self._reported(source, found))
        return self._changed(source, found)

    def summarize(self, session: Session) -> None:
        """Print the number of doubtful lines, if there are any."""
        if not self._n_doubtful:
            return
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in self._kinds.most_common())
        path = self._wanted.report_path
        where = f"see {path}" if path else "--report FILE lists them"
        verb = "is" if self._n_doubtful == 1 else "are"
        units = self._unit + "s" * (self._n_lines > 1)
        counted = f"{self._n_doubtful:,} of {self._n_lines:,} {units}"
        session.say(f"heed: {counted} {verb} doubtful ({kinds}): {where}.")

    def _reported(self, source: str, found: Translation) -> str:
        record = {
            "line": self._n_lines,
            "source": source,
            "text": found.text,
            "confidence": found.confidence,
            "doubts": [asdict(doubt) for doubt in found.doubts],
        }
        return json_row(record)

    def _changed(self, source: str, found: Translation) -> Translation:
        if self._wanted.on_doubt == "fail":
            reasons = " ".join(f"{doubt.kind}: {doubt.sentence}" for doubt in found.doubts)
            raise DataError(
                f"{self._unit.capitalize()} {self._n_lines} is doubtful ({reasons}), and "
                f"--on-doubt is fail. Its translation is: {found.text}"
            )
        if self._wanted.on_doubt == "mark":
            doubts = tuple(moved(doubt, len(MARK)) for doubt in found.doubts)
            return replace(found, text=MARK + found.text, doubts=doubts)
        if self._wanted.on_doubt == "source":
            doubts = tuple(replace(doubt, start=None, end=None) for doubt in found.doubts)
            # A line of JSON may hold line breaks, which would add lines to the output.
            text = _LINE_BREAK.sub(" ", source) if self._unit == "line" else source
            return replace(found, text=text, doubts=doubts)
        return found


@command("calibrate", "Learn when translations are doubtful.", examples=EXAMPLES)
@click.argument("src", required=False)
@click.argument("tgt", required=False)
@option("--dry-run", bool, "Only measure; store nothing.")
@option("--json as_json", bool, "Print JSON.")
@one_model_options
@click.pass_obj
def calibrate(
    session: Session,
    /,
    src: str | None,
    tgt: str | None,
    dry_run: bool,
    as_json: bool,
    opening: ModelFlags,
) -> None:
    """Learn from SRC and TGT which translations are doubtful, and how likely each is right.

    Without files, the development pairs of the run are used; heed train does this at its end.
    Afterwards heed translate detects text that is left out, added or in another language, searches
    again for such lines, and can give a confidence. It needs at least 100 pairs that the model was
    not trained on, and reads the first 1,000. It learns word translations from the training pairs
    in the run folder.
    """
    from heed.bundle.doubts import save_judgment
    from heed.data.readers import read_parallel
    from heed.train.run.calibrate import counted_pairs, development_pairs, learn_doubts

    if src is not None and tgt is None:
        raise UsageError("missing argument 'TGT': the translations of SRC.")
    require_one_stdin(src or "", tgt or "")
    folder = find_model(opening.model)
    translator, target_lang = load_translator(session, opening)
    if src is None or tgt is None:
        pairs = development_pairs(folder, translator, target_lang)
    else:
        pairs = list(read_parallel(src, tgt, target_lang=target_lang or ""))
    training = counted_pairs(folder, translator)
    found = learn_doubts(translator, pairs, training)
    stored = None
    if not dry_run:
        with held_if_run(folder):
            stored = save_judgment(folder, found)
    if as_json:
        record: dict[str, Any] = {
            "n_pairs": found.n_pairs,
            "kinds": sorted({name.partition(".")[0] for name in found.fits}),
            "right": found.right,
            "calibration_error": found.error,
            "low_confidence": found.low_confidence,
        }
        echo(json.dumps(record))
        return
    echo(
        f"{found.n_pairs} pairs: confidence that sentence chrF2 is at least {found.right:.0f}, "
        f"with a calibration error of {found.error:.3f}."
    )
    if not found.fits:
        echo("There are no training pairs, so omissions and additions are not detected.")
    if stored is not None:
        echo(f"Stored in {stored}.")
