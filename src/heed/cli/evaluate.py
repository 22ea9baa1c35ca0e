"""`heed evaluate`: measure the quality of translations by comparing them with references."""

import json
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import click

from heed.bundle.outputs import STANDARD, require_not_read
from heed.cli.command import Session, as_one, command, options, typed_flags
from heed.cli.decoding import show_decoding
from heed.cli.glossary import open_glossary
from heed.cli.models import (
    ModelFlags,
    checked_search,
    find_model,
    languages_of,
    load_translator,
    model_files,
    model_options,
)
from heed.cli.remarks import remark_on_names
from heed.cli.streams import open_saved
from heed.cli.survival import show_survival
from heed.cli.terminal import echo
from heed.cli.texts import Opening, show_label_scores, show_text_score
from heed.cli.waiting import Waiting
from heed.data.lines import read_lines, shown_name
from heed.errors import ConfigError, DataError, UsageError
from heed.machine.threads import choose_threads

if TYPE_CHECKING:
    from heed.evaluate.counts import Reading
    from heed.evaluate.report import Report
    from heed.translate.translator import Translator

EVALUATE_EXAMPLES = """
heed evaluate -m run/ --src test.en --ref test.de
heed evaluate --hyp out.de --ref test.de --json
heed evaluate --hyp old.de --hyp new.de --ref test.de
heed evaluate -m run/ --src test.en --ref test.de --by-length
heed evaluate -m run/ --src test.en --ref test.de --worst 10
heed evaluate -m run/ --src test.en --ref test.de --survival
heed evaluate -m run/ --src test.en --ref test.de --decoding
heed evaluate -m run/ --src test.en --ref test.de -b 1 --save out.de --metrics bleu,chrf
"""

option = options("Options")


@dataclass(frozen=True, kw_only=True)
class Files:
    """The files of `heed evaluate`.

    Attributes:
        ref: references, one file for each set.
        hyp: translations to evaluate.
        src: lines for the model to translate; without a model, the sources of `hyp`; or None.
        save: output file for the model's translations; None = none.
    """

    ref: tuple[str, ...]
    hyp: tuple[str, ...]
    src: str | None
    save: str | None


@dataclass(frozen=True, kw_only=True)
class Searching:
    """Search options of `heed evaluate`; None = the model's default.

    Attributes:
        beam_size: hypotheses kept at each step.
        length_penalty: larger values favor longer text.
    """

    beam_size: int | None
    length_penalty: float | None

    @property
    def wishes(self) -> dict[str, Any]:
        """The options that were given."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Judging:
    """Scoring options of `heed evaluate`.

    Attributes:
        metrics: names, separated by commas.
        tokenize: BLEU's tokenizer; None = chosen by the language.
        lowercase: whether case is ignored.
        resamples: number of resampled sets for confidence intervals.
        by_length: whether to score groups of similar length, too.
        worst: how many of the worst sentences to show.
        survival: whether to score changed copies of the test set instead.
        glossary: file of terms whose use is counted in that case; None = terms of the test set.
        decoding: whether to measure decoding strategies instead.
        seed: seed of the changes.
    """

    metrics: str = "bleu,chrf,ter"
    tokenize: str | None = None
    lowercase: bool = False
    resamples: int = 1000
    by_length: bool = False
    worst: int = 0
    survival: bool = False
    glossary: str | None = None
    decoding: bool = False
    seed: int = 1

    @property
    def names(self) -> list[str]:
        """The metrics as a list."""
        return [name.strip() for name in self.metrics.split(",") if name.strip()]


@command("evaluate", "Compare translations with references.", examples=EVALUATE_EXAMPLES)
@click.argument("references", nargs=-1, metavar="[REF]...")
@option("--src", str, "Lines to translate with the model.", metavar="FILE")
@option(
    "--ref",
    str,
    "References; give it several times for several sets.",
    multiple=True,
    metavar="FILE",
)
@option(
    "-i --hyp --input",
    str,
    "Translations to score; give it twice to compare two systems.",
    multiple=True,
    metavar="FILE",
)
@option(
    "--metrics",
    str,
    "Comma-separated list of bleu, chrf, ter, wer, exact.",
    default=Judging.metrics,
)
@option("-lc --lowercase", bool, "Ignore case.")
@option("-tok --tokenize", str, "BLEU's tokenizer; default: that of the target language, see -t.")
@option("--by-length", bool, "Also show scores by length of source (or reference).")
@option(
    "--worst",
    click.IntRange(min=0),
    "Also show scores by length and the N worst sentences.",
    default=Judging.worst,
)
@option("--survival", bool, "Score the model on changed copies: capitals, typing errors, tags ...")
@option("--glossary", str, "Terms for --survival; default: found in the test set.", metavar="FILE")
@option("--decoding", bool, "Measure loops of each strategy, and exposure bias.")
@option("--seed", int, "Seed of the changes of --survival.", default=Judging.seed)
@option(
    "--resamples",
    click.IntRange(1, 1_000_000),
    "Resampled sets for confidence intervals.",
    default=Judging.resamples,
)
@option("--save", str, "Also write the model's translations here.", metavar="FILE")
@option("-b --beam-size --beam", int, "Hypotheses that the model keeps at each step.")
@option("--length-penalty --lenpen", float, "Larger values favor longer translations.")
@option("--text", str, "Running text, to evaluate a language model.", metavar="FILE")
@option(
    "--labeled --labelled",  # codespell:ignore labelled
    str,
    "Lines of a label and a text, to evaluate a classifier.",
    metavar="FILE",
)
@option("--json as_json", bool, "Print JSON.")
@as_one(Files, "files")
@as_one(Judging, "judging")
@as_one(Searching, "searching")
@model_options
@click.pass_obj
def evaluate(
    session: Session,
    /,
    references: tuple[str, ...],
    files: Files,
    judging: Judging,
    searching: Searching,
    text: str | None,
    labeled: str | None,
    as_json: bool,
    opening: ModelFlags,
) -> None:
    """Score the translations of a model or of files; of two systems, the first is the baseline.

    Scores are sacreBLEU's, with its signatures and 95 % confidence intervals. With -m and --src the
    model translates first; without -m, --src names the sources of --hyp. TER counts a pair with a
    line of more than 400 words without shifts, and prints a warning. With -m and --text, print a
    language model's perplexity and bits per character; with -m and --labeled, accuracy and mean F1.
    """
    files = replace(files, ref=(*references, *files.ref))
    flags = typed_flags(click.get_current_context())
    if text or labeled:
        require_no_translations(files, flags, has_text=text is not None)
        show_other_tasks(session, opening, text, labeled, judging.resamples, as_json=as_json)
        return
    translates = files.src is not None and bool(opening.model or not files.hyp)
    require_sensible(files, judging, opening, translates=translates)
    require_used(files, judging, flags, translates=translates)
    from heed.evaluate.counts import Reading

    reading = Reading(tokenize=judging.tokenize, lowercase=judging.lowercase)
    require_known_names(judging.names, reading)
    # All files are read before anything is translated or saved.
    systems = {path: read_all(path) for path in files.hyp}
    sources = read_all(files.src) if files.src else []
    known = [read_all(path) for path in files.ref]
    require_as_many(files, known, [*systems.values(), *([sources] if files.src else [])])
    from heed.evaluate.metrics import require_installed
    from heed.translate.survival import Original

    loaded = load_translator(session, opening) if translates else (None, opening.target_lang)
    translator, target_lang = loaded
    source_lang, into = languages_of(translator, opening.source_lang, target_lang)
    reading = replace(reading, target_lang=into)
    require_installed(judging.names, reading)
    if translator:
        remark_on_names(session, (files.src or "", files.ref[0]), (source_lang, into))
        name = f"model {opening.names}" if opening.names in systems else opening.names
        search = checked_search(translator.options, searching.wishes) | {"target_lang": target_lang}
        if judging.survival:
            test = Original(sources, known, source_lang, reading.target_lang, judging.seed)
            ways: Any = {"glossary": open_glossary(session, judging.glossary), "as_json": as_json}
            show_survival(session, translator, test, reading, search, **ways)
            return
        if judging.decoding:
            show_decoding(session, translator, sources, known[0], target_lang, as_json=as_json)
            return
        systems[name] = translate_all(session, translator, sources, files.save, search)
    found = report_on(session, (systems, known, sources), judging, reading, source_lang, opening)
    show(session, found, as_json=as_json)


Texts = tuple[dict[str, list[str]], list[list[str]], list[str]]
"""Translations by system, sets of references, and sources if there are any."""


def report_on(
    session: Session,
    texts: Texts,
    judging: Judging,
    reading: "Reading",
    source_lang: str,
    opening: ModelFlags,
) -> "Report":
    """The report, with the given options."""
    from heed.evaluate.report import report

    systems, known, sources = texts
    with Waiting(session) as waiting:

        def show_progress(system: str, metric: str, n_done: int) -> None:
            waiting(f"counting {metric} of {system}", n_done, len(known[0]), "sentences")

        return report(
            systems,
            known,
            sources=sources or None,
            metrics=judging.names,
            reading=reading,
            source_lang=source_lang,
            resamples=judging.resamples,
            by_length=judging.by_length,
            n_worst=judging.worst,
            processes=choose_threads(opening.threads),
            progress=show_progress,
        )


def show_other_tasks(
    session: Session,
    opening: ModelFlags,
    text: str | None,
    labeled: str | None,
    resamples: int,
    *,
    as_json: bool,
) -> None:
    """Evaluate a language model on `text`, or a classifier on `labeled`.

    Raises:
        UsageError: both are given, or no model is.
        ConfigError: the model has another task.
    """
    model = Opening(
        model=opening.model, device=opening.device, threads=opening.threads, dtype=opening.dtype
    )
    if text and labeled:
        raise UsageError("Give either --text (language model) or --labeled (classifier), not both.")
    if model.model:
        require_task(model.model, "lm" if text else "classify")
    if text:
        show_text_score(model, text, as_json=as_json)
    elif labeled:
        show_label_scores(session, model, labeled, resamples, as_json=as_json)


MEASURED_BY = {
    "translate": "is a translator. Measure it with --src FILE and --ref FILE.",
    "lm": "is a language model. Measure it with --text FILE.",
    "classify": "is a classifier. Measure it with --labeled FILE.",
    "mlm": "is a masked language model, which heed evaluate does not measure. Use heed fill.",
}
"""By the task of a model, the end of the error if the flags are for another task."""


def require_task(model: str | None, task: str) -> None:
    """Refuse a model of another task, before it is loaded.

    Raises:
        UsageError: no model is named, and not exactly one is installed.
        ConfigError: there is no such model, or it has another task; names the flags for it.
        FormatError: the folder holds no model.
    """
    from heed.bundle.bundle import task_of

    folder = find_model(model)
    if (found := task_of(folder)) != task:
        raise ConfigError(f"{folder} {MEASURED_BY[found]}")


def require_no_translations(files: Files, flags: Mapping[str, str], *, has_text: bool) -> None:
    """Refuse the options for translations if --text or --labeled is given.

    Args:
        files: files of translations.
        flags: those on the command line.
        has_text: --text is given, for which nothing is resampled.

    Raises:
        UsageError: names the flags.
    """
    if any(asdict(files).values()):
        raise UsageError("--text and --labeled cannot be combined with --src, --ref or --hyp.")
    if has_text and "resamples" in flags:
        raise UsageError("--resamples is for confidence intervals, which --text does not have.")
    of_translations = {each.name for kind in (Judging, Searching) for each in fields(kind)}
    of_translations |= {"beside", "source_lang", "target_lang", "runtime", "shortlist"}
    if others := _are(flags, of_translations - {"resamples"}):
        raise UsageError(
            f"{others} for translations only and cannot be used with --text or --labeled."
        )


def require_used(
    files: Files, judging: Judging, flags: Mapping[str, str], *, translates: bool
) -> None:
    """Refuse flags that would have no effect.

    Raises:
        UsageError: says when the flags have an effect.
    """
    searching = {each.name for each in fields(Searching)}
    of_model = searching | {"beside", "runtime", "dtype", "shortlist", "device"}
    if "ter" not in judging.names:  # which is counted in several processes
        of_model |= {"threads"}
    if not translates and (unused := _are(flags, of_model)):
        raise UsageError(f"{unused} for a model: give -m RUN and --src FILE too.")
    if "seed" in flags and not judging.survival:
        raise UsageError("--seed has an effect only with --survival: give that too.")
    if "tokenize" in flags and "bleu" not in judging.names:
        raise UsageError("--tokenize is for BLEU: leave it out, or add bleu to --metrics.")
    if judging.survival and flags.keys() & {"metrics", "resamples"}:
        raise UsageError(
            "--survival shows BLEU and chrF without intervals: leave out --metrics and --resamples."
        )
    fixed = searching | {"metrics", "tokenize", "lowercase", "resamples"}
    if judging.decoding and (flags.keys() & fixed or files.ref[1:]):
        raise UsageError(
            "--decoding compares strategies with fixed settings and one --ref: leave out "
            "--metrics, --tokenize, --lowercase, --resamples, --beam-size and --length-penalty."
        )


def _are(flags: Mapping[str, str], names: Collection[str]) -> str:
    """Those flags of these names, with a verb: `--by-length and --worst are`; or ""."""
    found = sorted(flag for name, flag in flags.items() if name in names)
    return f"{' and '.join(found)} {'is' if len(found) == 1 else 'are'}" if found else ""


def require_sensible(
    files: Files, judging: Judging, opening: ModelFlags, *, translates: bool
) -> None:
    """Refuse flags that contradict each other or do not fit the model, before texts are read.

    Raises:
        UsageError: says which flag to change.
        ConfigError: the model is no translator.
    """
    inputs = [*files.ref, *files.hyp, *([files.src] if files.src else [])]
    if files.save:
        read = model_files(opening.model, *opening.beside) if translates else []
        require_not_read(files.save, [*inputs, *read])
    if not files.ref:
        raise UsageError("Give the references: --ref FILE")
    if opening.model and not files.src and files.hyp:
        raise UsageError("-m translates --src: give --src FILE too, or leave out -m.")
    if not files.src and not files.hyp:
        raise UsageError(
            "Give -m RUN and --src FILE to judge a model, or --hyp FILE to judge a file."
        )
    if files.save and not translates:
        raise UsageError("--save writes the model's translations: give -m RUN and --src FILE too.")
    own = [name for name in ("survival", "decoding") if getattr(judging, name)]
    if own and (files.hyp or not translates or judging.by_length or judging.worst or own[1:]):
        raise UsageError(
            f"--{own[0]} needs -m RUN, --src and --ref, and cannot be combined with --hyp, "
            "--by-length, --worst or another table."
        )
    if judging.glossary and not judging.survival:
        raise UsageError("--glossary is for --survival, which counts the terms that were used.")
    if own and files.save:
        raise UsageError(f"--{own[0]} translates many times and saves nothing: leave out --save.")
    if len(files.hyp) + translates > 2:
        raise UsageError("Compare two systems at a time: a baseline and another.")
    if len({os.path.realpath(path) for path in files.hyp}) < len(files.hyp):
        raise UsageError(f"Both --hyp are the same file: {files.hyp[0]}. Give two different ones.")
    if inputs.count(STANDARD) > 1:
        raise UsageError("Standard input can be read only once: give - for one file only.")
    if translates:
        require_task(opening.model, "translate")


def require_as_many(
    files: Files, references: Sequence[Sequence[str]], others: Sequence[Sequence[str]]
) -> None:
    """Refuse files whose number of lines differs from that of the first references, or is 0.

    Raises:
        DataError: names the file and both numbers.
    """
    paths = [shown_name(path) for path in (*files.ref, *files.hyp, files.src) if path]
    for path, lines in zip(paths, [*references, *others], strict=True):
        if len(lines) != len(references[0]):
            raise DataError(
                f"{path} and {paths[0]} must have the same number of lines, but have "
                f"{len(lines)} and {len(references[0])}."
            )
    if not references[0]:
        raise DataError(f"There must be sentences, but these are empty: {', '.join(paths)}.")


def require_known_names(metrics: Sequence[str], reading: "Reading") -> None:
    """Refuse unknown metrics and tokenizers.

    Raises:
        UsageError: names the nearest known one.
    """
    from heed.evaluate.metrics import require_known

    try:
        require_known(metrics, reading)
    except ConfigError as error:
        raise UsageError(str(error)) from None


def translate_all(
    session: Session,
    translator: "Translator",
    sources: list[str],
    save: str | None,
    search: dict[str, Any],
) -> list[str]:
    """The model's translations; also written to the file `save`, if it is given."""
    texts: list[str] = []
    with Waiting(session) as waiting, ExitStack() as stack:
        # Open it first, so that an unwritable folder fails before an hour of translating.
        writer = stack.enter_context(open_saved(save)) if save else None
        translations = translator.translate_stream(sources, processes=None, **search)
        for found in waiting.counted(translations, "translating", of=len(sources), unit="lines"):
            texts.append(found.text)
            if writer:
                writer.write(found.text)
    return texts


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


def read_all(path: str) -> list[str]:
    """All lines of a file."""
    return list(read_lines(path))
