"""A whole run: corpus in, model folder out; after an interruption the same call continues.

The run folder holds `recipe.toml` (the resolved recipe; `resolved.toml` is a copy to detect edits),
`asked.json` (the user's settings), `data/`, `metrics.jsonl`, `checkpoints/`, and at the end the
model. `setup.py` makes the files that a run starts from, `artifacts.py` its results.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heed.data.corpus import Corpus
from heed.data.prepared import Prepared
from heed.disk.files import crc32, lock, read_json_lines, to_json
from heed.errors import in_shell
from heed.machine.cpu import prepare_cpu
from heed.machine.device import describe_environment, prepare_gpu
from heed.machine.threads import set_threads, too_many_threads
from heed.model.build import count_parameters
from heed.train.epochs.back_translation import MonoPairs
from heed.train.parallel.distributed import Group, join_group
from heed.train.parallel.shard import require_processes
from heed.train.recipe.asked import Asked
from heed.train.recipe.folder import require_outside, require_run_folder
from heed.train.recipe.recipe import Recipe, draft
from heed.train.recipe.snapshot import decoding_to_store
from heed.train.run.artifacts import RunKeeper, best_validation, finish, validate_trainer
from heed.train.run.limits import how_to_go_on, kept_limits, reached_limits
from heed.train.run.setup import make_trainer, open_set_up, resume, set_up
from heed.train.step.control import CONTROL_FILE, ControlFile, Request, Requests
from heed.train.step.events import EventLog, Report, duration, exact_duration, fan_out
from heed.train.step.loop import train
from heed.train.step.progress import Progress
from heed.train.step.trainer import Trainer
from heed.train.tasks.table import TASKS
from heed.train.watch.observe import Observer

SLOW_START = 0.25
"""Share of the time budget that may pass before the first step without a remark."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a call of `run_training` ended.

    Attributes:
        is_finished: the model is complete; False = paused, and the same call continues.
        was_finished: the run was already finished before the call.
        progress: of the run.
        validation: the best validation's numbers; None if there was none.
        limits: which limits ended the run, in words; "" if it is paused.
        further: how it goes on although this call left a limit out, a sentence; "" if it set all.
        usage: how the model is used, in words.
        teacher: the teacher of the run that `progress` is of, in words; "" = the run itself.
    """

    is_finished: bool
    was_finished: bool
    progress: Progress
    validation: dict[str, Any] | None
    limits: str = ""
    further: str = ""
    usage: str = ""
    teacher: str = ""


def run_training(
    asked: Asked,
    corpus: Corpus,
    out: Path,
    *,
    report: Report,
    should_stop: Callable[[], bool] = lambda: False,
    before_step: Callable[[], None] = lambda: None,
    before_end: Callable[[], None] = lambda: None,
    at_end: Callable[[Path], object] = lambda out: None,
    started_at: float | None = None,
    given_s: float | None = None,
) -> Outcome:
    """Train a model from `corpus` into the folder `out`, or continue.

    Args:
        asked: the user's settings.
        corpus: its files.
        out: the run folder; made if it is not there.
        report: gets every event.
        should_stop: called after each step; True saves and pauses.
        before_step: called before each step, in every process.
        before_end: called after the last step, before the model is completed, in every process.
        at_end: called with `out`, still locked, when the model is written, in one process. A run
            that is killed in it calls it again.
        started_at: `time.monotonic()` at which the time budget starts; None = now.
        given_s: for messages: the time limit that was given, if `asked` has only a rest of it.

    Raises:
        ConfigError: a setting is unknown or impossible.
        DataError: the corpus cannot be read.
        RunError: `out` holds something else or is in use, the recipe changed, or the disk is full.
    """
    started_at = time.monotonic() if started_at is None else started_at
    before = draft(asked)
    _prepare_machine(before.threads, report)
    with join_group(before.device) as group, _held_by_leader(out, corpus, group):
        require_processes(before.shard, group)
        if group.is_leader:
            ControlFile(out).take()  # a request to an earlier start
            recipe, data = set_up(out, asked, before, corpus, group, report)
        group.wait()
        if not group.is_leader:
            with group.on_its_own():
                recipe, data = open_set_up(out, corpus, before)
        _require_same_start(group, asked, data, out)
        require_processes(recipe.training.shard, group)
        trainer = make_trainer(recipe, data, group)
        was_finished, notes = resume(trainer, out, decoding_to_store(data, recipe))
        if not was_finished:
            trainer.started_at = started_at - trainer.progress.elapsed_s
            notes += kept_limits(trainer, asked) + _slow_start(trainer, given_s)
            calls = before_step, before_end, at_end
            _train(trainer, recipe, data, out, notes, report, should_stop, *calls)
        return _outcome(trainer, was_finished, recipe, asked, out, given_s)


def _outcome(
    trainer: Trainer,
    was_finished: bool,
    recipe: Recipe,
    asked: Asked,
    out: Path,
    given_s: float | None,
) -> Outcome:
    return Outcome(
        is_finished=trainer.progress.is_finished,
        was_finished=was_finished,
        progress=trainer.progress,
        validation=best_validation(out),
        limits=reached_limits(trainer, given_s) if trainer.progress.is_finished else "",
        further=how_to_go_on(trainer, asked, given_s),
        usage=TASKS[recipe.task].usage.format(out=in_shell(out)),
    )


def _require_same_start(group: Group, asked: Asked, data: Prepared, out: Path) -> None:
    group.require_same(
        crc32(to_json(asked.values)),
        "the processes of a run must all be started with the same settings, but were not.",
    )
    group.require_same(
        crc32(to_json(data.report)),
        "the processes of a run must all train on one corpus, but found different ones prepared "
        f"in {out}. All hosts must share this folder.",
    )


def _prepare_machine(n_threads: int, report: Report) -> None:
    prepare_cpu()
    prepare_gpu()
    set_threads(n_threads or None)
    if remark := too_many_threads(n_threads):
        report({"kind": "note", "text": f"training.threads: {remark}"})


def _held_by_leader(out: Path, corpus: Corpus, group: Group) -> AbstractContextManager[None]:
    if not group.is_leader:
        return nullcontext()
    require_run_folder(out)
    require_outside(out, corpus.files)
    return lock(out)


def _train(
    trainer: Trainer,
    recipe: Recipe,
    data: Prepared,
    out: Path,
    notes: list[str],
    report: Report,
    should_stop: Callable[[], bool],
    before_step: Callable[[], None],
    before_end: Callable[[], None],
    at_end: Callable[[Path], object],
) -> None:
    """Train to the end or to a pause; at the end write the model into the run folder.

    Only the leader of several processes reports and writes.
    """
    is_leader, control = trainer.group.is_leader, ControlFile(out)
    if is_leader:
        log = EventLog(out)
        log.forget_after(trainer.progress.step or -1)  # at step 0 the log starts over
        observed = TASKS[recipe.task].observe(recipe, data)
        observer = Observer(fan_out(log, report), trainer, observed)
        observer.recall(read_json_lines(log.path) if log.path.exists() else ())
        report, examine = observer, observer.examine
    else:
        report, examine = fan_out(), None
    for note in notes:
        report({"kind": "note", "text": note, "step": trainer.progress.step})
    report(_start_event(trainer, recipe, data))
    requests = Requests(should_stop, lambda: _noted(control, trainer, report))
    if data.mono:
        trainer.pairs = MonoPairs(trainer, data, recipe, out, report, requests.is_stop)
    is_finished = trainer.progress.is_finished or train(
        trainer,
        keeper=RunKeeper(out=out, recipe=recipe, data=data, report=report),
        validate=lambda trainer: validate_trainer(trainer, data, recipe, examine),
        report=report,
        requests=requests.take,
        before_step=before_step,
    )
    if not is_finished:
        progress = trainer.progress
        report({"kind": "pause", "step": progress.step, "elapsed_s": progress.elapsed_s})
    if is_finished:
        before_end()
        whole = trainer.whole()
        if is_leader:
            finish(out, whole, recipe, data, report, at_end)


def _noted(control: ControlFile, trainer: Trainer, report: Report) -> Request:
    """The request in the run folder, which is also logged; with several processes, the leader's."""
    request = control.take() if trainer.group.is_leader else Request.NONE
    if request:
        what = "save" if request == Request.SAVE else "save and stop"
        text = f"asked to {what} by {CONTROL_FILE}"
        report({"kind": "note", "step": trainer.progress.step, "text": text})
    return request


def _slow_start(trainer: Trainer, given_s: float | None) -> list[str]:
    """A remark if little of the time given is left for training itself."""
    time_s, used_s = trainer.config.time_s, trainer.elapsed_s
    if time_s is None or trainer.progress.step or used_s < SLOW_START * time_s:
        return []
    given = f"the {duration(time_s)} given"
    if given_s is not None:
        given = f"the {duration(time_s)} that were left of the {exact_duration(given_s)} given"
    return [
        f"reading the corpus and making its vocabulary took {duration(used_s)} of {given}. To "
        "train longer, run the same command again with more --time: it continues where this run "
        "ends"
    ]


def _start_event(trainer: Trainer, recipe: Recipe, data: Prepared) -> dict[str, Any]:
    return {
        "kind": "start",
        "step": trainer.progress.step,
        "parameters": count_parameters(trainer.model),
        "text": TASKS[recipe.task].counts(data),
        "data": data.report,
        "model": recipe.model.to_dict(),
        "summary": recipe.model.summary(),
        "time_s": recipe.training.time_s,
        "max_steps": recipe.training.max_steps,
        "environment": {**describe_environment(), "processes": trainer.group.size},
    }
