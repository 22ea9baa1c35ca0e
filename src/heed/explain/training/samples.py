"""The sample translations of a run, validation by validation."""

from dataclasses import dataclass, field
from typing import Any

from heed.explain.training.values import number, record, text
from heed.explain.training.words import Piece, differences
from heed.train.step.events import Event

MAX_SETS = 64
"""Validations whose samples are kept; if there are more, every second one is dropped."""

MAX_SENTENCES = 40


@dataclass(frozen=True, kw_only=True)
class SampleSet:
    """The samples of one validation.

    Attributes:
        step: optimizer steps made.
        epoch: passes through the corpus; None = unknown.
        is_best: whether no earlier validation had a better score.
        translations: maps a sentence to its translation and sentence chrF (None = unknown).
    """

    step: int
    epoch: float | None
    is_best: bool
    translations: dict[int, tuple[str, float | None]]


@dataclass
class Samples:
    """All samples.

    Attributes:
        sentences: source and reference of each sentence.
        sets: one for each validation, oldest first.
    """

    sentences: list[tuple[str, str]] = field(default_factory=list)
    sets: list[SampleSet] = field(default_factory=list)

    def add(self, event: Event, *, step: int, epoch: float | None) -> None:
        """Add the samples of a validation."""
        given = event.get("samples")
        if not isinstance(given, list) or not given:
            return
        translations: dict[int, tuple[str, float | None]] = {}
        for i in range(min(len(given), MAX_SENTENCES)):
            sample = record({"sample": given[i]}, "sample")
            sentence = (text(sample, "src"), text(sample, "ref"))
            if sentence not in self.sentences and len(self.sentences) < MAX_SENTENCES:
                self.sentences.append(sentence)
            if sentence in self.sentences:
                place = self.sentences.index(sentence)
                translations[place] = (text(sample, "hyp"), number(sample, "chrf"))
        is_best = event.get("is_best") is True
        self.sets.append(
            SampleSet(step=step, epoch=epoch, is_best=is_best, translations=translations)
        )
        if len(self.sets) > MAX_SETS:
            del self.sets[1:-1:2]

    def changes(self, place: int) -> dict[int, list[Piece]]:
        """Each translation of one set, with the differences from the set before."""
        before = self.sets[place - 1].translations if place else {}
        return {
            sentence: differences(before.get(sentence, ("", None))[0], hyp)
            for sentence, (hyp, _) in self.sets[place].translations.items()
        }

    def as_dict(self) -> dict[str, Any]:
        """As JSON values: each sentence once, and for each set its translation, or None."""
        return {
            "sentences": [{"src": src, "ref": ref} for src, ref in self.sentences],
            "sets": [self._spelled(place) for place in range(len(self.sets))],
        }

    def _spelled(self, place: int) -> dict[str, Any]:
        one, changes = self.sets[place], self.changes(place)
        return {
            "step": one.step,
            "epoch": one.epoch,
            "is_best": one.is_best,
            "translations": [
                {
                    "hyp": one.translations[i][0],
                    "chrf": one.translations[i][1],
                    "changes": [list(piece) for piece in changes[i]],
                }
                if i in one.translations
                else None
                for i in range(len(self.sentences))
            ],
        }
