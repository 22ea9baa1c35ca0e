"""The limits that end a run, and those that it keeps although a command leaves them out."""

from types import SimpleNamespace
from typing import Any

import pytest

from heed.train.recipe.asked import Asked
from heed.train.run.limits import how_to_go_on, kept_limits, reached_limits


def stand_in(
    *,
    max_steps: int | None = None,
    time_s: float | None = None,
    step: int = 3,
    clock_s: float = 0.0,
    patience: int = 0,
    without_gain: int = 0,
) -> Any:
    """A trainer at a step, for what is said of its limits."""
    return SimpleNamespace(
        config=SimpleNamespace(max_steps=max_steps, time_s=time_s, patience=patience),
        progress=SimpleNamespace(step=step, is_finished=True, without_gain=without_gain),
        clock_s=clock_s,
        time_limit_s=time_s,
    )


def asked(**training: Any) -> Asked:
    return Asked({"training": training})


@pytest.mark.parametrize(
    ("time_s", "spelled"),
    [(0.5, "0.5s"), (90, "90s"), (1800, "30m"), (5400, "1h30m"), (1234567.25, "1234567.25s")],
)
def test_a_limit_of_time_is_told_exactly(time_s: float, spelled: str) -> None:
    trainer = stand_in(time_s=time_s, clock_s=time_s)
    assert reached_limits(trainer) == f"its limit of {spelled} (--time)"


@pytest.mark.parametrize(
    ("stored", "clock_s", "given", "needed"),
    [
        ({"max_steps": 3}, 0, {"max_steps": 3}, ""),
        ({"max_steps": 3}, 0, {"time_s": 900}, "--max-steps of more than 3 steps"),
        ({"time_s": 60, "max_steps": 9}, 60, {"max_steps": 9}, "--time of more than 1m"),
        ({"time_s": 60}, 60, {"time_s": 60, "max_steps": 9}, ""),
        (
            {"time_s": 90, "max_steps": 1},
            90,
            {"max_steps": 1},
            "--time of more than 90s and --max-steps of more than 1 step",
        ),
        ({"patience": 2, "without_gain": 2}, 0, {"patience": 2, "max_steps": 9}, ""),
        (
            {"time_s": 60, "patience": 2, "without_gain": 3},
            60,
            {"time_s": 60},
            "--time of more than 1m and training.patience of more than 3",
        ),
    ],
)
def test_a_limit_that_a_command_leaves_out_is_said_to_hold(
    stored: dict[str, Any], clock_s: float, given: dict[str, Any], needed: str
) -> None:
    trainer = stand_in(**stored, clock_s=clock_s)
    before = "A run keeps its limits until a command sets others. To continue, run the same command"
    assert how_to_go_on(trainer, asked(**given)) == (needed and f"{before} with {needed}.")


def test_the_limit_is_told_as_it_was_given() -> None:
    trainer = stand_in(time_s=31.5, clock_s=31.5)
    assert "--time of more than 2m." in how_to_go_on(trainer, asked(), given_s=120)


def test_a_run_that_goes_on_tells_which_limits_it_keeps() -> None:
    trainer = stand_in(time_s=3600, max_steps=1000)
    assert kept_limits(trainer, asked(time_s=3600, max_steps=1000)) == []
    assert kept_limits(trainer, asked()) == []  # the very command that began it may set none
    assert kept_limits(trainer, asked(max_steps=1000)) == [
        "the run keeps its limit of 1h00m, which this command leaves out: --time changes it"
    ]
    assert kept_limits(trainer, asked(time_s=3600)) == [
        "the run keeps its limit of 1,000 steps, which this command leaves out: --max-steps "
        "changes it"
    ]
    assert kept_limits(stand_in(time_s=60, step=0), asked(max_steps=3)) == []  # it only begins
