"""benchmarks/new_words.py on sentences in which the new words can be counted by eye."""

from pathlib import Path
from types import ModuleType

import pytest


def test_words_are_compared_without_case_and_with_their_hyphens(
    scripts: dict[str, ModuleType],
) -> None:
    known = ["Der Hund spielt E-Gitarre, heute."]
    found = ["Heute spielt der Hundhund.", "Der E-Bass 2 spielt der der!"]
    new, share = scripts["new_words"].new_words(found, known)
    assert new == ["hundhund", "e-bass"]
    assert share == 2 / 9
    assert scripts["new_words"].new_words([], known) == ([], 0.0)


def test_words_of_source_and_reference_are_no_inventions(
    scripts: dict[str, ModuleType], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {
        "train": "ein Hund\n",
        "found": "Ein Rex Hut xyz\n",
        "src": "a Rex hat\n",
        "ref": "Ein Rex Hut\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    arguments = [part for name in texts for part in (f"--{name}", str(tmp_path / name))]
    scripts["new_words"].main(arguments)
    assert capsys.readouterr().out.splitlines() == [
        "translation: 3 words are not in the training text, 75.00%",
        "    rex, hut, xyz",
        "translation, nor in source and reference: 1 words are not in the training text, 25.00%",
        "    xyz",
        "reference: 2 words are not in the training text, 66.67%",
        "    rex, hut",
    ]
