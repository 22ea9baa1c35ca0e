"""`--glossary FILE`: read a glossary and print remarks about its problems."""

from collections.abc import Iterable
from pathlib import Path

from heed.cli.command import Session
from heed.translate.glossary.glossary import Glossary
from heed.translate.result import Translation

MOST_REMARKS = 5
"""Remarks that are printed; of further ones, only the number."""


def open_glossary(session: Session, path: str | None) -> Glossary | None:
    """Read the glossary in a file; None without a file.

    Raises:
        DataError: names the line that is wrong.
    """
    if path is None:
        return None
    glossary = Glossary.open(Path(path))
    for remark in glossary.remarks[:MOST_REMARKS]:
        session.say(f"{path}: {remark}")
    if len(glossary.remarks) > MOST_REMARKS:
        session.say(f"{path}: {len(glossary.remarks) - MOST_REMARKS} more remarks of this kind.")
    return glossary


def note_terms(session: Session, translations: Iterable[Translation]) -> None:
    """Print the terms that could not be followed, each once."""
    sentences = {
        doubt.sentence: None
        for translation in translations
        for doubt in translation.doubts
        if doubt.kind.startswith("glossary_")
    }
    for sentence in [*sentences][:MOST_REMARKS]:
        session.say(f"heed: {sentence}")
    if len(sentences) > MOST_REMARKS:
        session.say(f"heed: {len(sentences) - MOST_REMARKS} more remarks of this kind.")
