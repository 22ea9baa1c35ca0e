"""Events reported while a corpus is prepared, like those of `train/step/events.py`."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

Item = TypeVar("Item")
Report = Callable[[dict[str, Any]], None]

EVERY = 2000
"""Items from one event to the next: some twenty events a second."""


def silent(event: dict[str, Any]) -> None:
    """Report nothing."""


def phase(
    report: Report, name: str, *, done: int = 0, of: int | None = None, unit: str = "pairs"
) -> None:
    """Report a phase of the preparation.

    Args:
        report: gets the event.
        name: what is being done, such as `encoding`.
        done: how many pairs or lines are done so far.
        of: how many there are; None if that is unknown.
        unit: what is counted.
    """
    report({"kind": "prepare", "phase": name, "done": done, "of": of, "unit": unit})


def counted(
    items: Iterable[Item],
    report: Report,
    name: str,
    *,
    of: int | None = None,
    unit: str = "pairs",
) -> Iterator[Item]:
    """The items, with an event before the first one and after every `EVERY`-th."""
    phase(report, name, of=of, unit=unit)
    for number, item in enumerate(items, start=1):
        yield item
        if number % EVERY == 0:
            phase(report, name, done=number, of=of, unit=unit)
