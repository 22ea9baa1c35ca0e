"""A server that rests gives memory back, once; a busy one now and then."""

import pytest

from heed.serve.work import rest
from heed.serve.work.rest import BUSY_S, IDLE_S, Rest


class Given:
    """Counts what is given back, and tells the time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.n_done = 0.0, 0
        self.what: list[str] = []
        monkeypatch.setattr(rest, "give_back_memory", lambda: self.what.append("batches"))
        monkeypatch.setattr(rest, "give_back_freed_memory", lambda: self.what.append("heap"))
        self.rest = Rest(lambda: self.n_done, clock=lambda: self.now)

    def after(self, seconds: float, *, works: bool) -> list[str]:
        """What is given back in so many seconds, looked at in each."""
        self.what.clear()
        for _ in range(round(seconds)):
            self.now += 1
            self.n_done += works
            self.rest.look()
        return self.what


def test_a_rest_gives_everything_back_once(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Given(monkeypatch)
    assert given.after(IDLE_S - 1, works=False) == []
    assert given.after(1, works=False) == ["batches", "heap"]
    assert given.after(3 * BUSY_S, works=False) == []
    assert given.after(IDLE_S, works=True) == ["heap"]  # the last time is long ago
    assert given.after(IDLE_S - 1, works=False) == []
    assert given.after(1, works=False) == ["batches", "heap"]


def test_under_load_the_heap_is_given_back_and_batches_keep_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Given(monkeypatch).after(3 * BUSY_S, works=True) == ["heap"] * 3
