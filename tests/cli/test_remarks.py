"""What a new run takes for granted is said once, before it begins."""

from pathlib import Path
from typing import Any

import pytest

from heed.cli.command import Session
from heed.cli.corpus import CorpusFlags, corpus_from
from heed.cli.remarks import (
    assumed_directions,
    remark_on_names,
    remarks_on,
    unnamed_languages,
    usual_length,
)
from heed.data.readers import ParallelFiles
from heed.train.recipe.asked import Asked

PAIR = 'msgid "open"\nmsgstr "öffnen"\n'
HEADER = 'msgid ""\nmsgstr "Language: {}\\n"\n\n'


@pytest.mark.parametrize(
    ("languages", "flags"),
    [
        ({}, "--source-lang CODE --target-lang CODE"),
        ({"source_lang": "en"}, "--target-lang CODE"),
        ({"source_lang": "en", "target_lang": "de"}, ""),
    ],
)
def test_unknown_languages_are_told(languages: dict[str, str], flags: str) -> None:
    for name in ("pairs.tsv", "messages.po"):
        told = unnamed_languages(corpus_from(CorpusFlags(**languages), [name]))
        assert told.endswith(f"add {flags}") if flags else told == ""
    assert unnamed_languages(corpus_from(CorpusFlags(), ["memory.tmx"])) == ""


def test_a_catalog_without_a_language_is_read_in_a_direction_that_is_told(tmp_path: Path) -> None:
    def parts(*names: str) -> list[ParallelFiles]:
        into_english = {"source_lang": "de", "target_lang": "en"}
        return [ParallelFiles(files=(name,), **into_english) for name in names]

    one, two = (str(tmp_path / name) for name in ("one.po", "two.po"))
    Path(one).write_text(PAIR, encoding="utf-8")
    for header in ("", HEADER.format("")):
        Path(two).write_text(header + PAIR, encoding="utf-8")
        assert assumed_directions(parts(two)) == (
            f"{two} names no language in its header: msgid is read as de and msgstr as en. "
            'If it is the opposite, add the line "Language: de\\n" there.'
        )
    assert assumed_directions(parts(one, two)) == (
        f"{one} and 1 more name no language in their headers: msgid is read as de and msgstr as "
        'en. If it is the opposite, add the line "Language: de\\n" there.'
    )
    assert assumed_directions([ParallelFiles(files=(one,))]) == (
        f"{one} names no language in its header: msgid is read as the source and msgstr as the "
        "translation."
    )
    Path(two).write_text(HEADER.format("de") + PAIR, encoding="utf-8")
    assert assumed_directions(parts(two)) == ""
    Path(two).write_text("no catalog", encoding="utf-8")  # refused where it is read
    assert assumed_directions(parts(two, str(tmp_path / "none.po"))) == ""


@pytest.mark.parametrize(
    ("files", "is_told"),
    [
        (("test.en", "test.de"), False),
        (("test.de.gz", "test.en"), True),
        (("test.de", "ref.fr"), False),
        (("source", "reference"), False),
        (("test.de", "reference"), False),
    ],
)
def test_files_named_against_the_direction_of_a_model_are_told(
    capsys: pytest.CaptureFixture[str], files: tuple[str, str], is_told: bool
) -> None:
    remark_on_names(Session(), files, ("en", "de"))
    told = capsys.readouterr().err
    assert (f"{files[0]} and {files[1]} are de and en by their names" in told) is is_told
    assert bool(told) is is_told
    remark_on_names(Session(), files, ("", ""))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "is given: the run takes 30m, and the size of the model is chosen for that."),
        ({"preset": "tiny"}, "Neither --time nor --max-steps is given: the run takes 30m."),
        ({"training": {"time_s": "1m"}}, ""),
        ({"training": {"max_steps": 5}}, ""),
        ({"training": {"time_s": "none", "max_steps": 5}}, ""),
        (
            {"training": {"time_s": "none"}},
            "with Ctrl-C, and the size of the model is chosen for 30m: --preset chooses another.",
        ),
        ({"training": {"max_steps": "none"}}, "is chosen for 30m: --preset chooses another."),
        (
            {"training": {"time_s": "none", "parent": "run"}},
            "Without a limit the run goes on until you stop it with Ctrl-C.",
        ),
        ({"task": "classify"}, ""),
        ({"training": {"time_s": "soon"}}, ""),  # refused with all other settings
    ],
)
def test_the_time_for_which_a_size_is_chosen_is_told(settings: dict[str, Any], words: str) -> None:
    told = usual_length(Asked(settings))
    assert told.endswith(words) and bool(told) == bool(words)


def test_a_run_that_exists_has_decided_all_of_it(tmp_path: Path) -> None:
    corpus = corpus_from(CorpusFlags(), ["pairs.tsv"])
    assert len(remarks_on(corpus, Asked(), tmp_path)) == 2
    (tmp_path / "recipe.toml").touch()
    assert remarks_on(corpus, Asked(), tmp_path) == []
