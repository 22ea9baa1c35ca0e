"""The start of a run: folder, recipe, data, and a fresh model or the newest checkpoint.

Each function reuses files of an earlier start and makes only the missing ones.
"""

import math
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from heed.bundle.bundle import load_bundle
from heed.bundle.find import BEST, CHECKPOINTS, CONFIG, step_folders
from heed.data.clean import amount
from heed.data.corpus import Corpus
from heed.data.prepared import DATA, Prepared
from heed.data.progress import phase
from heed.disk.files import read_json_lines
from heed.disk.folders import (
    finish_update,
    read_manifest,
    remove_directory,
    remove_temporaries,
    verify_directory,
)
from heed.errors import FormatError, RunError
from heed.machine.device import ROUNDED, choose_dtype, choose_rounding
from heed.machine.seeds import seed_everything
from heed.model.build import build_model, build_unfilled
from heed.model.families import family_of
from heed.train.parallel.distributed import Group
from heed.train.parallel.shard import fill, shard
from heed.train.recipe.asked import Asked
from heed.train.recipe.cost import measure_gflops
from heed.train.recipe.files import RECIPE_FILE
from heed.train.recipe.folder import OWN_FILES
from heed.train.recipe.recipe import Draft, Recipe, load_recipe
from heed.train.recipe.settings import require_same_asked, settle
from heed.train.run import checkpoint
from heed.train.run.checkpoint import OWN_CHECKPOINTS, Checkpoint
from heed.train.run.limits import has_stopped_early
from heed.train.start.counted import counted_weights
from heed.train.start.embeddings import first_weights, freeze, frozen_in_words, require_way
from heed.train.start.finetune import Parent, inherited, open_parent, require_same_parent
from heed.train.step.averages import copy_into
from heed.train.step.events import METRICS_FILE, EventLog, Report
from heed.train.step.optimizer import Optimizer
from heed.train.step.progress import Progress, training_seconds
from heed.train.step.trainer import Trainer
from heed.train.tasks.table import TASKS
from heed.translate.load import stored_decoding


def set_up(
    out: Path,
    asked: Asked,
    draft: Draft,
    corpus: Corpus,
    group: Group,
    report: Report,
) -> tuple[Recipe, Prepared]:
    """Write the files that training starts from into the run folder, unless they are there."""
    parent = open_parent(draft.parent, asked, draft.task) if draft.parent else None
    require_same_asked(out, asked)
    remove_temporaries(out, OWN_FILES)
    remove_temporaries(out / CHECKPOINTS, OWN_CHECKPOINTS)
    finish_update(out)
    if n_damaged := EventLog(out).mend():
        text = f"{out / METRICS_FILE}: {amount(n_damaged, 'damaged line')} removed"
        report({"kind": "note", "text": text})
    if lost := _lost_checkpoints(out):
        report({"kind": "note", "text": lost})
    best = out / CHECKPOINTS / BEST
    if best.is_dir() and not (step_folders(out) or (out / RECIPE_FILE).exists()):
        remove_directory(best)  # of a recipe that the user removed, with scores of its own
    if not parent and not step_folders(out):
        require_way(draft.first_embeddings)
    if parent:
        require_same_parent(parent, out)
        draft = replace(draft, tokenizer=parent.tokenizer(draft.tokenizer))
    base = parent.vocabs if parent else None
    data = TASKS[draft.task].prepare(corpus, out / DATA, draft, base, report)
    if parent:
        data = data.learns(parent.directions(data))

    def gflops() -> float:
        phase(report, "measuring the speed of this machine")
        return group.size * measure_gflops(group.device)

    recipe = settle(out, asked, data, gflops, parent.settings(data, draft.task) if parent else {})
    if recipe.training.freeze_embeddings:
        report({"kind": "note", "text": frozen_in_words(recipe.model)})
    is_random = recipe.training.first_embeddings == "random"
    is_fresh = is_random and not family_of(recipe.model).counts_texts
    if not step_folders(out) and (parent or not is_fresh):
        phase(report, "computing the initial weights")
        # Only the leader does this; it needs only the state of a fresh trainer.
        trainer = make_trainer(recipe, data, Group(device=group.device))
        _begin(trainer, recipe, data, parent, out, report)
    return recipe, data


def _lost_checkpoints(out: Path) -> str:
    """A remark on a model that a run would continue from, were its checkpoints there; else ""."""
    if step_folders(out):
        return ""
    try:
        step = read_manifest(out).metadata.get("step")
    except FormatError:
        return ""
    return (
        f"{out} holds the model of step {step}, but no checkpoint to continue from: training "
        "starts over, and replaces this model at its end"
        if step
        else ""
    )


def _begin(
    trainer: Trainer,
    recipe: Recipe,
    data: Prepared,
    parent: Parent | None,
    out: Path,
    report: Report,
) -> None:
    """Write the initial weights into the run folder, as the checkpoint of step 0."""
    fresh = {name: weight.detach().cpu() for name, weight in trainer.model.named_parameters()}
    if parent:
        weights = inherited(parent, recipe.model, data, fresh)
    elif family_of(recipe.model).counts_texts:
        weights = {**fresh, **counted_weights(trainer)}
    else:
        way, seed = recipe.training.first_embeddings, recipe.training.seed
        weights = first_weights(fresh, recipe.model, data, way, report, seed=seed)
    checkpoint.save(
        out,
        0,
        model=weights,
        optimizer=trainer.optimizer.state(),
        average={name: weights[name] for name in trainer.averaged},
        progress=asdict(trainer.progress),
    )


def open_set_up(out: Path, corpus: Corpus, draft: Draft) -> tuple[Recipe, Prepared]:
    """Read the recipe and the data that the leader has written.

    Raises:
        RunError: they are not here: this host does not share the folder.
    """
    if not (out / RECIPE_FILE).exists():
        raise RunError(f"{out} must be a folder that all hosts of a run share, but it is not.")
    return load_recipe(out / RECIPE_FILE), TASKS[draft.task].open(corpus, out / DATA)


def make_trainer(recipe: Recipe, data: Prepared, group: Group) -> Trainer:
    """A fresh model and optimizer for this recipe."""
    config, device = recipe.training, group.device
    seed_everything(config.seed, "weights")
    model = build_model(recipe.model)
    if config.freeze_embeddings:
        freeze(model)
    is_sharded = config.shard and group.size > 1
    if is_sharded:
        shard(model, group)
    model.to(device).is_recomputing = config.recompute
    averaged = {}
    if config.ema_decay:
        averaged = {name: p.detach().clone() for name, p in model.named_parameters()}
    vocab, ending = data.tgt_vocab, TASKS[recipe.task].ending(recipe, data)
    return Trainer(
        model=model,
        config=config,
        optimizer=Optimizer(model, config),
        pairs=TASKS[recipe.task].epochs(recipe, data),
        collate=TASKS[recipe.task].collate,
        special_ids={"pad_id": vocab.pad_id, "bos_id": vocab.bos_id, "eos_id": vocab.eos_id},
        device=device,
        group=group,
        dtype=choose_dtype("float32" if config.precision == ROUNDED else config.precision, device),
        rounds=choose_rounding(config.precision, device),
        averaged=averaged,
        time_limit_s=training_seconds(config.time_s, None, ending),
        ending=ending,
        unfilled=partial(build_unfilled, recipe.model) if is_sharded else None,
    )


def resume(trainer: Trainer, out: Path, decoding: Mapping[str, Any]) -> tuple[bool, list[str]]:
    """Load the newest whole checkpoint, if any.

    Args:
        trainer: fresh.
        out: the run folder.
        decoding: decoding options that the model of a finished run must have stored.

    Returns:
        Whether the run is finished already, and remarks for the user.
    """
    group = trainer.group
    with group.on_its_own():
        found = checkpoint.load_newest(out)
    group.require_same(
        found.step if found else 0,
        "the processes of a run must all continue from one checkpoint, but see different ones in "
        f"{out}. All hosts must share this folder.",
    )
    if found is None:
        return False, []
    trainer.progress = progress = Progress.from_checkpoint(found.progress, found.path)
    take_over(trainer, found)
    time_s = trainer.config.time_s
    trainer.time_limit_s = training_seconds(time_s, progress.reserve_s, trainer.ending)
    trainer.started_at = time.monotonic() - progress.elapsed_s
    trainer.tick()
    _recount_validations(trainer)
    if progress.is_finished:
        # A finished run that is given more time or steps continues.
        progress.is_finished = trainer.share >= 1.0 or has_stopped_early(trainer)
    missing = ""
    if progress.is_finished and group.is_leader:
        missing = _missing(out, found.step, decoding)
    is_complete = bool(group.agree(progress.is_finished and not missing))
    notes = [*found.warnings, *([] if is_complete else _forget_lost_best(trainer, out))]
    origin = f"step {found.step}" if found.step else trainer.config.parent
    if progress.is_finished and not is_complete:
        notes.append(f"{out} {missing}: writing it now")
    elif origin and not is_complete:
        notes.append(f"continuing from {origin}")
    if progress.step_batches not in (0, trainer.config.accumulate * group.size):
        notes.append(
            f"each step still uses {amount(progress.step_batches, 'batch', 'batches')}, as at the "
            f"start of the run; processes now: {group.size}"
        )
    return is_complete, notes


def _forget_lost_best(trainer: Trainer, out: Path) -> list[str]:
    """Forget the best validation if its weights are damaged or missing; a remark if so.

    Without them the run could not end. The next validation is then the best, at once if there is
    nothing left to train.
    """
    progress, group, best = trainer.progress, trainer.group, out / CHECKPOINTS / BEST
    lost = ""
    if group.is_leader and progress.best is not None:
        try:
            verify_directory(best)
        except FormatError as error:
            lost = f"{best} is lost: {error} The next validation writes it again"
    if not group.agree(bool(lost)):
        return []
    if group.is_leader and best.is_dir():
        remove_directory(best)
    progress.best, progress.is_finished = None, False
    return [lost]


def _recount_validations(trainer: Trainer) -> None:
    """Count the validations made as those of a longer budget, if the run was given one.

    They are spread over the budget, so those made before lie in a smaller share of it now. With the
    same budget the count stays, so that a paused run validates when an undisturbed one does.
    """
    progress, config = trainer.progress, trainer.config
    is_same = (progress.time_s, progress.max_steps) == (config.time_s, config.max_steps)
    if not (is_same or config.validate_every):
        made = math.floor(trainer.share * config.validations)
        progress.validations = min(progress.validations, made)


def _missing(out: Path, step: int, decoding: Mapping[str, Any]) -> str:
    """The missing part of the run folder, in words; "" if it holds the model of this step."""
    incomplete = f"does not hold the whole model of step {step}"
    try:
        manifest = verify_directory(out)
    except FormatError:
        return incomplete
    # A manifest of heed 0.1 does not say which step the model is of.
    if CONFIG not in manifest.files or manifest.metadata.get("step", step) != step:
        return incomplete
    if not _has_ended(out, step):
        return f"holds the model of step {step}, but the run was killed before its end"
    bundle = load_bundle(out)
    is_same = stored_decoding(bundle) == stored_decoding(replace(bundle, decoding=dict(decoding)))
    return "" if is_same else "holds a model with other decoding settings"


def _has_ended(out: Path, step: int) -> bool:
    """Whether the run came to its end at this step: nothing was logged after that."""
    path = out / METRICS_FILE
    if not path.exists():  # no kill removes it, and without it there is nothing to go by
        return True
    last = deque(read_json_lines(path), maxlen=1)
    return any(event.get("kind") == "end" and event.get("step") == step for event in last)


def has_learned(out: Path) -> bool:
    """Whether a run folder has a checkpoint beyond the initial weights."""
    return any(step for step, _ in step_folders(out))


def take_over(trainer: Trainer, found: Checkpoint) -> None:
    """Load the tensors of a checkpoint."""
    copy_into(trainer.model, found.model)
    trainer.optimizer = Optimizer(trainer.model, trainer.config)  # a fresh state
    trainer.optimizer.load_state(found.optimizer)
    for name in trainer.averaged:
        fill(trainer.averaged[name], found.average[name])
