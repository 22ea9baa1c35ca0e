"""Pools of threads end, or it is known that a thread of theirs hangs."""

import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from heed.serve.work.pools import end_pools


def test_pools_end_when_their_work_is_done() -> None:
    first, second = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
    done = first.submit(int), second.submit(int)
    assert end_pools(first, second)
    assert [each.result() for each in done] == [0, 0]


def test_a_thread_that_hangs_is_waited_for_only_so_long() -> None:
    is_over, hanging = threading.Event(), ThreadPoolExecutor(1)
    running, waiting = hanging.submit(is_over.wait), hanging.submit(int)
    assert not end_pools(ThreadPoolExecutor(1), hanging, within_s=0.01)
    with pytest.raises(CancelledError):
        waiting.result(0)
    assert not running.done()
    is_over.set()
    assert end_pools(hanging, within_s=60)
