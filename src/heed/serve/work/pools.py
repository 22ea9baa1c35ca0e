"""Threads that may hang, such as for a network disk that does not answer: nobody waits forever."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Found = TypeVar("Found")


def call_aside(function: Callable[[], Found]) -> Future[Found]:
    """Call a function in a thread of its own, which the end of the process does not wait for."""
    done: Future[Found] = Future()

    def call() -> None:
        try:
            done.set_result(function())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=call, name="heed-once", daemon=True).start()
    return done


def end_pools(*pools: ThreadPoolExecutor, within_s: float | None = None) -> bool:
    """Let the threads of pools finish their present work, and end them.

    A thread may wait forever, such as for a network disk that does not answer. Python itself waits
    for the threads of all pools when it ends.

    Args:
        pools: they accept no further work, and drop what has not begun.
        within_s: seconds to wait; None = no limit.

    Returns:
        Whether all threads have ended.
    """
    for pool in pools:
        pool.shutdown(wait=False, cancel_futures=True)

    def wait() -> None:
        for pool in pools:
            pool.shutdown()

    waiting = threading.Thread(target=wait, name="heed-end", daemon=True)
    waiting.start()
    waiting.join(within_s)
    return not waiting.is_alive()
