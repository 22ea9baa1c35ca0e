"""`heed evaluate --survival`: a model's translations of changed copies of a test set."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from heed.cli.command import Session
from heed.cli.terminal import echo
from heed.cli.waiting import Waiting

if TYPE_CHECKING:
    from heed.evaluate.counts import Reading
    from heed.evaluate.survival import Answer, Trial
    from heed.translate.glossary.glossary import Glossary
    from heed.translate.lines import Line
    from heed.translate.result import Translation
    from heed.translate.survival import Original
    from heed.translate.translator import Translator

MOST_TERMS = 2
"""Most terms per line, where terms are found in the test set itself."""


def show_survival(
    session: Session,
    translator: "Translator",
    test: "Original",
    reading: "Reading",
    search: dict[str, Any],
    *,
    glossary: "Glossary | None",
    as_json: bool,
) -> None:
    """Translate each changed copy of the test set and print the scores.

    Args:
        session: of the command.
        translator: the model's translator.
        test: sources and references.
        reading: how they are compared.
        search: arguments of each translation.
        glossary: its terms are looked for; None = terms found in the test set itself.
        as_json: print JSON instead of a table.
    """
    from heed.evaluate.survival import judge
    from heed.translate.survival import make_trials

    trials = make_trials(test)
    with Waiting(session) as waiting:
        answers = [answers_of(translator, trial, search, waiting) for trial in trials]
        glossaries = [glossary] * len(test.sources) if glossary else own_glossaries(test)
        trials.append(trial_of_terms(test, glossaries, is_given=glossary is not None))
        answers.append(answers_with_terms(translator, trials[-1], glossaries, search, waiting))
    found = judge(trials, answers, reading=reading)
    echo(json.dumps(found.as_dict(), ensure_ascii=False, indent=2) if as_json else found.as_text())


def answers_of(
    translator: "Translator", trial: "Trial", search: dict[str, Any], waiting: Waiting
) -> "list[Answer]":
    """The model's translations."""
    from heed.evaluate.survival import Answer
    from heed.translate.doubts.judge import is_doubtful

    found = translated(translator, trial, trial.sources, search, waiting)
    return [Answer(each.text, is_doubted=is_doubtful(each)) for each in found]


def translated(
    translator: "Translator",
    trial: "Trial",
    lines: "Sequence[str | Line]",
    search: dict[str, Any],
    waiting: Waiting,
) -> "Iterator[Translation]":
    """The translations of the lines of a trial; shows how many there are."""
    found = translator.translate_stream(lines, processes=None, **search)
    phase = f"translating {trial.label!r}"
    return waiting.counted(found, phase, of=len(lines), unit="lines")


def own_glossaries(test: "Original") -> "list[Glossary | None]":
    """A glossary for each line: some of its words, with the words of its first reference."""
    from heed.explain.attention.terms import repeated_terms
    from heed.translate.glossary.glossary import Glossary

    found = repeated_terms(test.sources, test.references[0], most=MOST_TERMS)
    return [Glossary.of(terms) if terms else None for terms in found]


def trial_of_terms(
    test: "Original", glossaries: "Sequence[Glossary | None]", *, is_given: bool
) -> "Trial":
    """The trial of the lines that contain terms.

    Args:
        test: sources and references.
        glossaries: one for each source.
        is_given: they come from a file.
    """
    from heed.evaluate.survival import Trial

    numbers = [
        number
        for number, (source, glossary) in enumerate(zip(test.sources, glossaries, strict=True))
        if glossary and any(one.targets for one in glossary.occurrences(source))
    ]
    missing = "the lines contain no term of the glossary"
    if not is_given:
        missing = "no word of the lines is linked twice with the same word of a reference"
    return Trial(
        key="terms",
        label="glossary terms used",
        sources=[test.sources[number] for number in numbers],
        numbers=numbers,
        references=[[lines[number] for number in numbers] for lines in test.references],
        has_terms=True,
        reason="" if numbers else missing,
    )


def answers_with_terms(
    translator: "Translator",
    trial: "Trial",
    glossaries: "Sequence[Glossary | None]",
    search: dict[str, Any],
    waiting: Waiting,
) -> "list[Answer]":
    """The model's translations with terms, and whether each term occurs in its translation."""
    from heed.evaluate.survival import Answer
    from heed.translate.doubts.judge import is_doubtful
    from heed.translate.glossary.honored import find_targets
    from heed.translate.lines import Line

    own = [glossaries[number] for number in trial.numbers]
    lines = [Line(source, glossary=each) for source, each in zip(trial.sources, own, strict=True)]
    answers = []
    translations = translated(translator, trial, lines, search, waiting)
    for line, found in zip(lines, translations, strict=True):
        assert line.glossary is not None
        wanted = [one for one in line.glossary.occurrences(line.text) if one.targets]
        is_large = line.text.isupper() and found.text.isupper()
        places = find_targets(found.text, wanted, is_large=is_large)
        terms = [place is not None for place in places]
        answers.append(Answer(found.text, is_doubted=is_doubtful(found), terms=terms))
    return answers
