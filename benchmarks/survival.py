# ruff: noqa: T201 (a script speaks to its terminal)
"""What survives of text as people write it: heed and its peers, trained on the same pairs as long.

    python benchmarks/survival.py --out survive --time 10m --source-lang en --target-lang de \
        --src train.en.gz --tgt train.de.gz --dev-src val.en.gz --dev-tgt val.de.gz \
        --test-src test.en.gz --test-tgt test.de.gz

Each system translates the copies of the test set that `heed evaluate --survival` makes, by its own
search, and is judged as that command judges. Trainings are those of `time_to_quality.py`: on one
thread by CPU time, the peers' in heed's pieces, and a peer's last moment counts. Finished heed runs
are judged with `--cases "" --run NAME=FOLDER`. Not here: curves over time (`time_to_quality.py`).
"""

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import curves
import peers
import time_to_quality as race
from heed.cli.command import Session
from heed.cli.survival import answers_of
from heed.cli.waiting import Waiting
from heed.evaluate.counts import Reading
from heed.evaluate.survival import Answer, Row, Survival, Trial, judge
from heed.text.normalize import normalize
from heed.translate.survival import Original, make_trials
from heed.translate.translator import load

DEFAULT_CASES = "heed,eole tuned,transformers"


def main(arguments: list[str]) -> None:
    """Train what is not trained, translate, judge, print."""
    settings = parser().parse_args(arguments)
    settings.out, settings.peers = settings.out.absolute(), settings.peers.absolute()
    settings.out.mkdir(parents=True, exist_ok=True)
    original = Original(
        race.read_lines(settings.test_src)[: settings.lines],
        [race.read_lines(settings.test_tgt)[: settings.lines]],
        settings.source_lang,
        settings.target_lang,
    )
    trials = make_trials(original)
    found: dict[str, Survival] = {}
    runs = dict(run.split("=", 1) for run in settings.run)
    for name in [*settings.cases, *runs]:
        if name in runs:
            answers = own_answers(runs[name], trials, settings)
        else:
            answers = answers_of_case(name, trials, settings)
        found[name] = judge(trials, answers, reading=Reading(target_lang=settings.target_lang))
        save(settings.out / "survival.json", found)
    print(table(found))


def save(path: Path, found: dict[str, Survival]) -> None:
    """All tables as JSON."""
    values = {name: each.as_dict() for name, each in found.items()}
    path.write_text(json.dumps(values, ensure_ascii=False, indent=1), "utf-8")


def answers_of_case(
    case: str, trials: Sequence[Trial], settings: argparse.Namespace
) -> list[list[Answer]]:
    """What a system answers, trained first unless it is."""
    job = job_of(case, trials, settings)
    core = min(os.sched_getaffinity(0))
    print(f"{race.describe(job)}: begins", file=sys.stderr)
    race.train(job, core)
    point = race.read_record(job.record).points[-1]
    print(f"{race.describe(job)}: {point.seconds / 60:.1f} minutes of CPU", file=sys.stderr)
    if curves.is_ours(case):
        return own_answers(str(job.task.model), trials, settings)
    output = race.output_of(job.task.run, point)
    lines = race.read_lines(output) if output.exists() else race.translate(job, core, point)
    return split(lines, trials)


def job_of(case: str, trials: Sequence[Trial], settings: argparse.Namespace) -> race.Job:
    """The training of a system, whose test set is all copies one after the other."""
    data = settings.out / "data"
    everything = settings.out / "test.src"
    lines = [normalize(source) for trial in trials for source in trial.sources]
    everything.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    names = ("src", "tgt", "dev_src", "dev_tgt")
    corpus = {name: str(Path(getattr(settings, name)).absolute()) for name in names}
    corpus["test_src"] = str(everything)
    if not (data / "vocab.spm").exists():
        peers.write_pieces(corpus, data)
    system, preset = peers.system_of(case)
    record = curves.Record(case=case, seed=settings.seed, time_s=settings.time, points=[])
    task = peers.Task(
        corpus=corpus,
        data=data,
        run=settings.out / race.slug(record),
        python=peers.install(system.packages, settings.peers),
        time_s=settings.time,
        seed=settings.seed,
        preset=preset,
        threads=1,
        beam_size=settings.beam,
    )
    return race.Job(case=case, task=task, growth=2.0)


def split(lines: Sequence[str], trials: Sequence[Trial]) -> list[list[Answer]]:
    """A peer's lines, trial by trial; it doubts nothing."""
    rest = iter(lines)
    return [[Answer(next(rest)) for _ in trial.sources] for trial in trials]


def own_answers(
    folder: str, trials: Sequence[Trial], settings: argparse.Namespace
) -> list[list[Answer]]:
    """What a run of heed answers, with its doubts."""
    translator = load(folder, device="cpu", threads=1)
    search, silent = {"beam_size": settings.beam}, Waiting(Session(is_quiet=True))
    return [answers_of(translator, trial, search, silent) for trial in trials]


def table(found: dict[str, Survival]) -> str:
    """A line for each trial: of each system BLEU, its share of the unchanged, what is kept."""
    first = next(iter(found.values()))
    lines = [
        "| | lines | " + " | ".join(found) + " |",
        "|---|--:|" + "--:|" * len(found),
    ]
    for number, row in enumerate(first.rows):
        if not row.reason:
            cells = [cell(each.rows[number]) for each in found.values()]
            lines.append(f"| {row.label} | {row.n_lines} | " + " | ".join(cells) + " |")
    lines += [f"\n{row.label}: left out, {row.reason}" for row in first.rows if row.reason]
    return "\n".join(lines)


def cell(row: Row) -> str:
    """Such as `35.20 (92.3 %)` and `kept 99.1 %`."""
    parts = []
    if row.bleu is not None:
        share = "" if row.share is None else f" ({row.share:.1%})"
        parts.append(f"{row.bleu:.2f}{share}")
    if row.kept is not None:
        parts.append(f"kept {row.kept:.1%}")
    return ", ".join(parts)


def cases(text: str) -> list[str]:
    """Cases from their names; none from an empty text."""
    return race.cases(text) if text else []


def parser() -> argparse.ArgumentParser:
    """The command line."""
    whole = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    whole.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="keeps everything")
    for name in ("src", "tgt", "dev-src", "dev-tgt"):
        whole.add_argument(f"--{name}", metavar="FILE")
    for name in ("test-src", "test-tgt"):
        whole.add_argument(f"--{name}", metavar="FILE", required=True)
    whole.add_argument("--source-lang", default="", metavar="CODE")
    whole.add_argument("--target-lang", default="", metavar="CODE")
    whole.add_argument("--cases", type=cases, default=DEFAULT_CASES, help="empty for none")
    whole.add_argument("--run", action="append", default=[], metavar="NAME=FOLDER")
    whole.add_argument("--time", type=lambda text: race.durations(text)[0], default="10m")
    whole.add_argument("--lines", type=int, help="of the test set; default: all")
    whole.add_argument("--seed", type=int, default=1)
    whole.add_argument("--beam", type=int, default=5)
    whole.add_argument("--peers", type=Path, default=Path("peers"), help="where they are installed")
    return whole


def ended(*_: Any) -> None:
    """Ended from outside, it ends what it has started, as after Ctrl-C."""
    for process in race.STARTED:
        if process.poll() is None:
            process.kill()
    sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, ended)
    main(sys.argv[1:])
