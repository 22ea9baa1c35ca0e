"""`end_pools`: end pools of threads, without waiting forever for a thread that hangs."""

import threading
from concurrent.futures import ThreadPoolExecutor


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
