"""Remarks on what is taken for granted: languages, directions, the length of a new run.

Each is "" if there is nothing to say. A run that exists has decided all of it.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from heed.cli.command import Session
from heed.errors import ConfigError, DataError

if TYPE_CHECKING:
    from heed.data.corpus import Corpus
    from heed.data.readers import ParallelFiles
    from heed.train.recipe.asked import Asked


def remarks_on(corpus: "Corpus", asked: "Asked", out: Path) -> list[str]:
    """All remarks on a run that begins now; none if it exists, or another process says them.

    Args:
        corpus: of the run.
        asked: its settings.
        out: its folder.
    """
    from heed.machine.threads import process_rank
    from heed.train.recipe.files import RECIPE_FILE

    if process_rank() != 0 or (out / RECIPE_FILE).exists():
        return []
    parts = (*corpus.train, *corpus.dev, *corpus.test)
    found = [unnamed_languages(corpus), assumed_directions(parts), usual_length(asked)]
    return [text for text in found if text]


def unnamed_languages(corpus: "Corpus") -> str:
    """A warning if the run will give a model whose languages are unknown."""
    from heed.data.readers import needs_languages

    if any(map(needs_languages, corpus.train)):
        return ""  # such a file is refused without languages
    flags = [
        f"--{side}-lang CODE"
        for side in ("source", "target")
        if not all(getattr(part, f"{side}_lang") for part in corpus.train)
    ]
    if not flags:
        return ""
    return (
        "The languages of this corpus are not known, so heed serve will not serve the model. "
        f"To name them, stop and add {' '.join(flags)}"
    )


def assumed_directions(parts: "Iterable[ParallelFiles]") -> str:
    """The direction in which catalogs are read whose headers name no language."""
    parts = [part for part in parts if _is_unnamed(part)]
    if not parts:
        return ""
    first = parts[0]
    source, target = first.source_lang or "the source", first.target_lang or "the translation"
    name = f"{first.files[0]} names no language in its header"
    if parts[1:]:
        name = f"{first.files[0]} and {len(parts) - 1} more name no language in their headers"
    said = f"{name}: msgid is read as {source} and msgstr as {target}."
    if not first.source_lang:
        return said
    return f'{said} If it is the opposite, add the line "Language: {first.source_lang}\\n" there.'


def _is_unnamed(part: "ParallelFiles") -> bool:
    from heed.data.po import names_language
    from heed.data.readers import is_catalog

    # A pipe is refused later, and reading it here would wait for its writer.
    if not is_catalog(part) or not Path(part.files[0]).is_file():
        return False
    try:
        return not names_language(part.files[0])
    except DataError:
        return False  # the fault is told where the corpus is read


def remark_on_names(session: Session, files: tuple[str, str], direction: tuple[str, str]) -> None:
    """Print a remark if two files to evaluate are named against the direction of the model.

    Args:
        session: of the command.
        files: sources and references.
        direction: the languages in which they are read.
    """
    from heed.cli.corpus import are_exchanged, language_of

    named = language_of(files[0]), language_of(files[1])
    if are_exchanged(named, direction):
        session.say(
            f"heed: {files[0]} and {files[1]} are {' and '.join(named)} by their names, but are "
            f"evaluated from {' to '.join(direction)}. For the opposite direction add "
            f"--source-lang {named[0]}, if the model has both; else exchange --src and --ref."
        )


def usual_length(asked: "Asked") -> str:
    """The time for which the size of a model is chosen, if no limit was given."""
    from heed.train.recipe.choose import DEFAULT_TIME_S, has_no_limit, time_limit
    from heed.train.step.events import exact_duration

    if asked.get("task") == "classify":
        return ""  # labeled texts are read a few times, which takes less
    usual = exact_duration(DEFAULT_TIME_S)
    is_sized = asked.is_set("preset") or asked.is_set("training.parent")
    size = "" if is_sized else ", and the size of the model is chosen for "
    try:
        limit, is_endless = time_limit(asked), has_no_limit(asked)
    except ConfigError:
        return ""  # it is refused when all settings are checked
    if is_endless:
        size = f"{size}{usual}: --preset chooses another" if size else ""
        return f"Without a limit the run goes on until you stop it with Ctrl-C{size}."
    if limit is None or asked.is_set("training.time_s"):
        return ""
    size = f"{size}that" if size else ""
    return f"Neither --time nor --max-steps is given: the run takes {usual}{size}."
