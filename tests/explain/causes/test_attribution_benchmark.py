"""benchmarks/attribution.py on tiny models."""

from collections.abc import Callable
from types import ModuleType

import pytest
from tests.explain.causes.conftest import LINES

from heed.translate.translator import Translator


def test_deletion_agrees_with_itself(
    scripts: dict[str, ModuleType], translator_of: Callable[..., Translator]
) -> None:
    translator = translator_of()
    translator.options = translator.options.__class__(max_length=5)
    found = scripts["attribution"].agreement(translator, LINES[:2])
    correlation, first, gap, _ = found["deletion"]
    assert (correlation, first, gap) == (pytest.approx(1), 1, 0)
    assert all(-1 <= correlation <= 1 for correlation, *_ in found.values())
