"""The teachers of a run: their directions and settings, and their shares of the budget.

`docs/log` has the experiments behind the numbers.
"""

from dataclasses import dataclass

from heed.train.recipe.asked import Asked

TRAINING_SHARE, MOST_TRAINING = 0.4, 0.1
"""Shares of the time for the training of all teachers, and at most for that of each."""

TRANSLATING_SHARE, MOST_TRANSLATING = 0.12, 0.03
"""The same for their translating."""

STEPS_SHARE = 1 / 3
"""Steps of each teacher, as a share of the run's own, if it is limited by steps."""

SEEDS = 1 << 31
"""Seeds are below this number."""

INHERITED = ("device", "threads")
"""Settings of the run's own training that hold for its teachers, too."""


@dataclass(frozen=True, kw_only=True)
class Teacher:
    """One of the models.

    Attributes:
        number: from 1.
        is_forward: it translates in the direction of the run; False = in the opposite one.
    """

    number: int
    is_forward: bool

    @property
    def folder(self) -> str:
        """Name of its run folder."""
        return f"teacher-{self.number}"

    @property
    def role(self) -> str:
        """Beginning of the names of the files with its translations."""
        return f"made-{self.number}"


def teachers_of(count: int) -> list[Teacher]:
    """So many teachers, of both directions in turn."""
    return [Teacher(number=number, is_forward=number % 2 == 1) for number in range(1, count + 1)]


def seconds_of_each(time_s: float, count: int) -> tuple[float, float]:
    """The time that each of `count` teachers may train, and translate, of a run of `time_s`."""
    training = min(MOST_TRAINING, TRAINING_SHARE / count)
    translating = min(MOST_TRANSLATING, TRANSLATING_SHARE / count)
    return training * time_s, translating * time_s


def teacher_settings(
    teacher: Teacher, asked: Asked, *, seed: int, time_s: float | None, max_steps: int | None
) -> Asked:
    """The settings of a teacher's run.

    It reads text as the run does, with pieces of its own, and is a Transformer. Its size and rates
    follow from its own budget.

    Args:
        teacher: one of `teachers_of`.
        asked: the settings of the run that learns from it.
        seed: of that run.
        time_s: limit of the teacher's training; None = none.
        max_steps: limit of steps of that run; None = none.
    """
    data = {"teachers": 0, "memory": False, "both_directions": False}
    training = {
        key: asked.section("training")[key] for key in INHERITED if asked.is_set(f"training.{key}")
    }
    training["seed"] = (seed + teacher.number) % SEEDS
    if time_s is not None:
        training["time_s"] = time_s
    if max_steps is not None:
        training["max_steps"] = max(1, round(STEPS_SHARE * max_steps))
    # Teachers need no test set. Given pieces are those of the run's two sides, which the opposite
    # direction exchanges.
    kept = asked.without("data.test_size").without("tokenizer.vocab_from")
    values = {
        "data": {**kept.section("data"), **data},
        "tokenizer": dict(kept.section("tokenizer")),
        "training": training,
    }
    return Asked(values, asked.where, asked.not_there)
