"""`Job`: the lines that one request wants translated, and `Call`, how.

Lines of several jobs share a batch if model and call are equal.
"""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from heed.translate.lines import Line
from heed.translate.result import Translation
from heed.translate.translator import Translator


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """How lines are translated.

    Attributes:
        target_lang: one of the model's target languages; None = its default.
        alignment: also record cross-attention.
        alternatives: other translations of each line.
        options: fields of `DecodeOptions` with their values, sorted by name.
    """

    target_lang: str | None = None
    alignment: bool = False
    alternatives: int = 0
    options: tuple[tuple[str, Any], ...] = ()


class Job:
    """Lines of one request.

    Args:
        translator: the model.
        call: how to translate.
        lines: what to translate.
        timeout_s: seconds until the answer is not wanted any more.

    Attributes:
        waiting: indices of the lines that no batch has taken yet.
        done: set when all results are there, or when the job failed.
    """

    def __init__(
        self, translator: Translator, call: Call, lines: Sequence[Line], *, timeout_s: float
    ) -> None:
        self.translator = translator
        self.call = call
        self.lines = list(lines)
        self.deadline = time.monotonic() + timeout_s
        self.is_abandoned = False
        self.waiting = deque(range(len(self.lines)))
        self.results: list[Translation | None] = [None] * len(self.lines)
        self.done: asyncio.Future[list[Translation]] = asyncio.get_running_loop().create_future()

    @property
    def is_wanted(self) -> bool:
        """Whether somebody still waits for the answer."""
        return not self.is_abandoned and time.monotonic() < self.deadline
