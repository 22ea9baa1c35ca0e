"""`heed evaluate --survival`: a model's translations of a test set as people may write it."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from heed.cli.terminal import echo

if TYPE_CHECKING:
    from heed.evaluate.counts import Reading
    from heed.evaluate.survival import Answer
    from heed.translate.survival import Original
    from heed.translate.translator import Translator


def show_survival(
    translator: "Translator",
    test: "Original",
    reading: "Reading",
    search: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    """Translate each changed copy of the test set and print what became of it."""
    from heed.evaluate.survival import judge
    from heed.translate.survival import make_trials

    trials = make_trials(test)
    answers = [answers_of(translator, trial.sources, search) for trial in trials]
    found = judge(trials, answers, reading=reading)
    echo(json.dumps(found.as_dict(), ensure_ascii=False, indent=2) if as_json else found.as_text())


def answers_of(
    translator: "Translator", sources: Sequence[str], search: dict[str, Any]
) -> "list[Answer]":
    """The model's translations."""
    from heed.evaluate.survival import Answer
    from heed.translate.doubts.judge import is_doubtful

    found = translator.translate_stream(sources, **search)
    return [Answer(each.text, is_doubted=is_doubtful(each)) for each in found]
