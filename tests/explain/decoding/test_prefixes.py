import math
from collections.abc import Callable
from typing import Any

import pytest
from tests.translate.test_protect import slotted, vocab

from heed.errors import DataError
from heed.explain.decoding import prefixes
from heed.explain.decoding.prefixes import (
    exposure_bias,
    exposure_lines,
)
from heed.translate.translator import Translator

__all__ = ["slotted", "vocab"]
Make = Callable[..., Translator]
TEXT = "I walk home"
WRONG_START = {
    "": {"A": 0.6, "I": 0.4},
    "A": {"sing": 0.9, "walk": 0.1},
    "I": {"walk": 1.0},
    "A sing": {"home": 0.25, "</s>": 0.75},
    "I walk": {"home": 1.0},
}


def test_exposure_bias_by_hand(written: Make) -> None:
    """Claim 107: after the reference it knows each word, after its own wrong word it does not."""
    found = exposure_bias(written(WRONG_START), [TEXT], ["I walk home"])
    first, second, third = found.positions
    assert first.forced_loss == first.own_loss == pytest.approx(-math.log(0.4))
    assert second.forced_loss == pytest.approx(0.0, abs=1e-6)
    assert second.own_loss == pytest.approx(-math.log(0.1))
    assert third.own_loss == pytest.approx(-math.log(0.25))
    assert (second.forced_accuracy, second.own_accuracy) == (1.0, 0.0)
    # The own translation is "A sing", so there is no fourth position to compare.
    assert found.total.n_tokens == 3
    assert found.loss == pytest.approx(-(math.log(0.1) + math.log(0.25)) / 3)
    assert found.accuracy == pytest.approx(2 / 3)
    assert exposure_lines(found)[-1].split() == ["all", "3", "0.305", "1.535", "66.7%", "0.0%"]


def test_a_model_that_writes_the_reference_has_no_exposure_bias(written: Make) -> None:
    sure = {"": {"I": 1.0}, "I": {"walk": 1.0}, "I walk": {"home": 1.0}}
    found = exposure_bias(written(sure), [TEXT, TEXT], ["I walk home", "I walk home"])
    assert found.loss == found.accuracy == 0.0
    assert found.total.n_tokens == 8


def test_exposure_bias_reads_spans_as_slots(
    slotted: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[list[list[int]]] = []
    losses = prefixes._batch_losses

    def spy(translator: Translator, sources: Any, wanted: Any, greedy: Any) -> Any:
        read.extend([sources, wanted])
        return losses(translator, sources, wanted, greedy)

    monkeypatch.setattr(prefixes, "_batch_losses", spy)
    exposure_bias(slotted, ["The dog sleeps at %s."], ["Der Hund schläft um %s."])
    slots = slotted.src_vocab.slots
    assert slots is not None
    [sources], [wanted] = read
    assert len(set(sources) & set(slots.ids)) == len(set(wanted) & set(slots.ids)) == 1


def test_exposure_bias_needs_pairs(written: Make) -> None:
    with pytest.raises(DataError, match="at least one pair"):
        exposure_bias(written(WRONG_START), [], [])
