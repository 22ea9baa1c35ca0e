"""The limits of a run in words: which ended it, and which it keeps that a command leaves out.

The time budget itself is in `train/step/trainer.py`.
"""

from heed.data.clean import amount
from heed.train.recipe.asked import Asked
from heed.train.step.events import exact_duration
from heed.train.step.trainer import Trainer


def reached_limits(trainer: Trainer, given_s: float | None = None) -> str:
    """The limits that ended a run, in words; `given_s` is the time limit that the user gave."""
    progress, config = trainer.progress, trainer.config
    reached = []
    if _has_made_all_steps(trainer):
        is_beyond = progress.step > (config.max_steps or 0)
        at = f"step {progress.step}, beyond its limit" if is_beyond else "its limit"
        reached.append(f"{at} of {_limit(trainer, 'max_steps')} (--max-steps)")
    if _has_used_its_time(trainer):
        reached.append(f"its limit of {_limit(trainer, 'time_s', given_s)} (--time)")
    if has_stopped_early(trainer):
        without = amount(progress.without_gain, "validation")
        reached.append(f"{without} without a better score (training.patience)")
    return " and ".join(reached)


def how_to_go_on(trainer: Trainer, asked: Asked, given_s: float | None = None) -> str:
    """What continues a run that ended at a limit which a command leaves out; "" if it sets all.

    Args:
        trainer: of the run.
        asked: the settings of the command.
        given_s: the time limit that the user gave.
    """
    reached = {
        "time_s": _has_used_its_time(trainer),
        "max_steps": _has_made_all_steps(trainer),
        "patience": has_stopped_early(trainer),
    }
    found = [key for key, is_reached in reached.items() if is_reached]
    if not trainer.progress.is_finished or all(asked.is_set(f"training.{key}") for key in found):
        return ""
    names = {**_FLAGS, "patience": "training.patience"}
    needed = [f"{names[key]} of more than {_limit(trainer, key, given_s)}" for key in found]
    return (
        "A run keeps its limits until a command sets others. To continue, run the same command "
        f"with {' and '.join(needed)}."
    )


def kept_limits(trainer: Trainer, asked: Asked) -> list[str]:
    """A remark on each limit that a command leaves out, though it seems to replace it by another.

    Args:
        trainer: of a run that goes on or begins.
        asked: the settings of the command.
    """
    if not trainer.progress.step:
        return []
    sets = {key: asked.is_set(f"training.{key}") for key in _FLAGS}
    return [
        f"the run keeps its limit of {_limit(trainer, key)}, which this command leaves out: "
        f"{_FLAGS[key]} changes it"
        for key in _FLAGS
        if any(sets.values()) and not sets[key] and getattr(trainer.config, key) is not None
    ]


def has_stopped_early(trainer: Trainer) -> bool:
    """Whether so many validations in a row were no better that the run has ended."""
    patience = trainer.config.patience
    return bool(patience) and trainer.progress.without_gain >= patience


_FLAGS = {"time_s": "--time", "max_steps": "--max-steps"}


def _has_made_all_steps(trainer: Trainer) -> bool:
    most = trainer.config.max_steps
    return bool(most) and trainer.progress.step >= (most or 0)


def _has_used_its_time(trainer: Trainer) -> bool:
    return trainer.config.time_s is not None and trainer.clock_s >= trainer.time_limit_s


def _limit(trainer: Trainer, key: str, given_s: float | None = None) -> str:
    """A limit of the run in words: `30m`, `1,000 steps`, `5`."""
    config = trainer.config
    if key == "patience":
        return str(trainer.progress.without_gain)
    if key == "max_steps":
        return amount(config.max_steps or 0, "step")
    time_s = config.time_s if given_s is None else given_s
    return exact_duration(time_s or 0.0)
