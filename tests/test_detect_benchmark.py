"""benchmarks/detect.py: its words belong to one language only, and its answers are counted."""

from pathlib import Path
from types import ModuleType

import pytest

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


@pytest.fixture
def detect(scripts: dict[str, ModuleType]) -> ModuleType:
    return scripts["detect"]


def test_words_are_in_small_letters_and_have_three_of_them(detect: ModuleType) -> None:
    assert detect.words_of(["Ein Hund, 12 Hunde an der Straße."]) == {
        "ein",
        "hund",
        "hunde",
        "der",
        "straße",
    }


@pytest.mark.skipif(not DATA.is_dir(), reason="the corpora are not beside the checkout")
def test_texts_are_of_all_kinds(detect: ModuleType) -> None:
    texts = detect.texts()
    assert {kind: len(items) for kind, items in texts.items()} == {
        "sentences": 5000,
        "words": 2000,
        "another language": 1000,
    }
    assert ("en", "dog") not in texts["sentences"]


def test_a_row_counts_what_is_certain_and_wrong(
    detect: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {"a": ("en", 0.9), "b": ("en", 0.9), "c": ("de", 0.5), "d": ("en", 0.1)}
    items = [("en", "a"), ("de", "b"), ("de", "c"), ("de", "d")]
    monkeypatch.setattr(detect, "texts", lambda: {"words": items})
    monkeypatch.setattr(detect, "SERVED", {"2": ("en", "de")})
    monkeypatch.setitem(
        detect.DETECTORS,
        "fake",
        lambda served: lambda text: answers["a"] if text not in answers else answers[text],
    )
    detect.measure("fake")
    assert capsys.readouterr().out.startswith("| fake | 2 | words | 50.0 | 50.0 | 25.0 |")
