"""Processes share what is left to each client, exactly, also where one is killed."""

import fcntl
import os
import signal
import time
from collections.abc import Callable

import pytest

from heed.serve.access.buckets import N_WAYS, Buckets, Filling
from heed.serve.access.rates import Rates

LIMIT = 5000


def forked(run: Callable[[], object]) -> int:
    """The id of a child that runs a function and ends."""
    pid = os.fork()
    if pid == 0:
        try:
            run()
        finally:
            os._exit(0)
    return pid


def rates_of(buckets: Buckets, clock: Callable[[], float] = lambda: 1000.0) -> Rates:
    """Limits whose clock stands still, so that nothing is refilled."""
    return Rates(buckets=buckets, clock=clock)


def spend_all(rates: Rates, client: str = "a") -> int:
    """Take one by one until that is refused; how many were allowed."""
    n_allowed = 0
    while rates.take(client, 1, per_minute=LIMIT).is_allowed:
        n_allowed += 1
    return n_allowed


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that does much else may let a process stand for longer than the others wait."""
    monkeypatch.setattr("heed.serve.access.buckets.PATIENCE_S", 60.0)


@pytest.mark.usefixtures("patient")
def test_several_processes_allow_exactly_as_many_as_one() -> None:
    rates = rates_of(Buckets(is_shared=True))
    ours, theirs = os.pipe()
    pids = [forked(lambda: os.write(theirs, spend_all(rates).to_bytes(8))) for _ in range(4)]
    for pid in pids:
        os.waitpid(pid, 0)
    spent = [int.from_bytes(os.read(ours, 8)) for _ in pids]
    assert sum(spent) == LIMIT
    assert not rates.take("a", 1, per_minute=LIMIT).is_allowed
    assert rates.take("b", 1, per_minute=LIMIT).remaining == LIMIT - 1


def stopped_in_a_change(buckets: Buckets, client: str) -> int:
    """The id of a child that has taken the lock of a client's set, and does not go on."""
    ours, theirs = os.pipe()

    def stop() -> float:
        os.write(theirs, b"x")
        os.kill(os.getpid(), signal.SIGSTOP)
        return 1000.0

    pid = forked(lambda: rates_of(buckets, stop).take(client, 10, per_minute=LIMIT))
    assert os.read(ours, 1) == b"x"
    assert os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])
    return pid


def ended(pid: int) -> None:
    """Kill a child, stopped or not."""
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_a_process_killed_with_the_lock_leaves_none() -> None:
    buckets = Buckets(is_shared=True, n_sets=1)
    rates_of(buckets).take("a", 10, per_minute=LIMIT)
    pid = stopped_in_a_change(buckets, "a")
    try:
        with pytest.raises(BlockingIOError):
            fcntl.lockf(buckets._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
    finally:
        ended(pid)
    assert rates_of(buckets).take("a", 1, per_minute=LIMIT).remaining == LIMIT - 11


@pytest.mark.reliability
def test_a_stopped_process_neither_blocks_the_others_nor_frees_their_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It stands in the middle of a change; the others wait once, and count on without its lock."""
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    buckets = Buckets(is_shared=True, n_sets=1)
    rates_of(buckets).take("a", 10, per_minute=LIMIT)
    pid = stopped_in_a_change(buckets, "a")
    try:
        others = [rates_of(buckets) for _ in range(2)]
        left = [others[n % 2].take("a", 1, per_minute=LIMIT).remaining for n in range(4)]
        assert left == [LIMIT - 11, LIMIT - 12, LIMIT - 13, LIMIT - 14]
        assert waited
        n_waits = len(waited)
        assert spend_all(others[0]) == LIMIT - 14
        assert not others[1].take("a", 1, per_minute=LIMIT).is_allowed
        assert others[1].take("b", 1, per_minute=LIMIT).remaining == LIMIT - 1
        monkeypatch.setattr(buckets, "_waits_again_at", 0.0)
        others[1].take("a", 1, per_minute=LIMIT)
        assert len(waited) > n_waits, "it never asks for the lock again"
        os.kill(pid, signal.SIGCONT)
        os.waitpid(pid, 0)
    except BaseException:
        ended(pid)
        raise
    # It wrote what it had read before it stood: the counts of one client, no more.
    assert rates_of(buckets).take("a", 1, per_minute=LIMIT).remaining == LIMIT - 21
    assert rates_of(buckets).take("b", 1, per_minute=LIMIT).remaining == LIMIT - 2


@pytest.mark.usefixtures("patient")
def test_processes_killed_at_any_moment_leave_counts_right() -> None:
    """What a killed process was allowed is lost at most for the request it was killed in."""
    n_killed, n_allowed = 20, 0
    rates = rates_of(Buckets(is_shared=True))
    for _ in range(n_killed):
        ours, theirs = os.pipe()

        def spend(pipe: int = theirs) -> None:
            while rates.take("a", 1, per_minute=LIMIT).is_allowed:
                os.write(pipe, b"x")

        pid = forked(spend)
        os.close(theirs)
        n_allowed += len(os.read(ours, 100))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        while more := os.read(ours, 65536):
            n_allowed += len(more)
        os.close(ours)
    n_allowed += spend_all(rates)
    assert LIMIT - n_killed <= n_allowed <= LIMIT


def change_to(left: float, time: float) -> Callable[[Filling | None], Filling]:
    return lambda _: (left, time)


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_full_set_forgets_the_bucket_changed_longest_ago(is_shared: bool) -> None:
    buckets = Buckets(is_shared=is_shared, n_sets=1)
    for number in range(N_WAYS):
        buckets.change(str(number), change_to(number, 100.0 + number))
    buckets.change("0", change_to(50.0, 200.0))
    buckets.change("new", change_to(60.0, 201.0))
    found: dict[str, Filling | None] = {}

    def look(client: str) -> None:
        def keep(filling: Filling | None) -> Filling:
            found[client] = filling
            return filling or (0.0, 0.0)

        buckets.change(client, keep)

    for client in ("0", "2", str(N_WAYS - 1), "new", "1"):
        look(client)
    assert found == {
        "0": (50.0, 200.0),
        "2": (2.0, 102.0),
        str(N_WAYS - 1): (N_WAYS - 1.0, 99.0 + N_WAYS),
        "new": (60.0, 201.0),
        "1": None,
    }


def test_no_name_stands_in_the_table() -> None:
    first, second = Buckets(), Buckets()
    for buckets in (first, second):
        buckets.change("192.0.2.7", change_to(1.0, 1.0))
    tables = [bytes(buckets._table) for buckets in (first, second)]
    assert not any(b"192.0.2" in table for table in tables)
    assert tables[0] != tables[1]  # each server has a secret of its own
