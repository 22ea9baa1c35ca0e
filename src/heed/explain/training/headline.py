"""A run summarized in one sentence."""

from heed.data.prepared import DATA
from heed.explain.training.history import forecast_of
from heed.explain.training.marks import SCORES, best_in_words, main_score, score_in_words
from heed.explain.training.run import TrainingRun
from heed.explain.training.values import number, record, time_in_words
from heed.train.recipe.folder import TEACHERS


def headline(run: TrainingRun) -> str:
    """The result so far of a run, the time left, and the forecast.

    Example: `BLEU 34.1, about 3 minutes left, ends near 37 (35 to 39).`
    """
    words = {
        "empty": _empty,
        "preparing": _preparing,
        "training": _training,
        "paused": _paused,
        "interrupted": _interrupted,
        "finished": _finished,
    }
    return words[run.state](run)


def _empty(run: TrainingRun) -> str:
    if not run.folder.exists():
        return (
            f"There is no folder {run.folder.name}: it was moved or removed, or does not exist yet."
        )
    if n_begun := _n_teachers(run):
        return f"Stopped after teacher {n_begun} began. Repeat the command to continue."
    return "Nothing has been trained here yet."


def _preparing(run: TrainingRun) -> str:
    n_begun = _n_teachers(run)
    if n_begun and not (run.folder / DATA).exists():
        return f"Teacher {n_begun} is at work: {TEACHERS}/teacher-{n_begun} shows its training."
    return "Preparing: reading the corpus and making its vocabulary."


def _n_teachers(run: TrainingRun) -> int:
    """The number of teachers that were begun."""
    return len(list((run.folder / TEACHERS).glob("teacher-*")))


def _training(run: TrainingRun) -> str:
    history, left_s = run.history, run.left_s
    scored = history.latest_validation
    parts = [score_in_words(scored) if scored else _before_the_first(run)]
    if left_s is not None:
        is_ending = number(history.latest_step, "left_s") == 0.0 or left_s < 1.0
        left = "about to end" if is_ending else f"about {time_in_words(left_s)} left"
        parts.append(left)
    if end := expected_in_words(run):
        parts.append(f"ends near {end}")
    return f"{', '.join(parts)}."


def _before_the_first(run: TrainingRun) -> str:
    return "No score yet" if run.history.latest_step else "Training begins"


def expected_in_words(run: TrainingRun) -> str:
    """The forecast of the final score, such as `37 (35 to 39)`; empty before there is one."""
    validation = run.history.latest_validation
    name = forecast_of(validation)
    forecast = record(record(validation, "forecast"), name)
    low, middle, high = (number(forecast, key) for key in ("low", "middle", "high"))
    if low is None or middle is None or high is None:
        return ""
    score = main_score(validation)
    is_other = score is None or score[0] != name
    digits = 2 if name == "loss" else 0
    which = f"{SCORES.get(name, name)} " if is_other else ""
    return f"{which}{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _reached(run: TrainingRun) -> str:
    best = run.history.best_validation
    return best_in_words(best, run.history.metric) if best else "no score yet"


def _paused(run: TrainingRun) -> str:
    return (
        f"Stopped and saved at step {run.history.step:,}: {_reached(run)}. "
        "Repeat the command to continue from there."
    )


def _interrupted(run: TrainingRun) -> str:
    saved = run.saved_step
    begin = f"Ended at step {run.history.step:,} without saving: {_reached(run)}."
    if not saved:  # step 0 is the beginning
        return f"{begin} Repeat the command to start again."
    return f"{begin} Repeat the command to continue from step {saved:,}."


def _finished(run: TrainingRun) -> str:
    seconds = run.history.seconds
    after = f" after {time_in_words(seconds)}" if seconds is not None else ""
    return f"Finished{after}: {_reached(run)}."
