"""Copy, reverse, sort: artificial pairs with a known answer, learned in a minute.

A model that cannot learn these has a bug between the batch and the optimizer; see `tests/learn/`.
"""

from collections.abc import Callable, Iterator

import numpy as np

from heed.data.readers import Pair
from heed.errors import ConfigError

TASKS: dict[str, Callable[[list[str]], list[str]]] = {
    "copy": list,
    "reverse": lambda words: words[::-1],
    "sort": sorted,
}


def pairs(
    task: str, n_pairs: int, *, seed: int, n_words: int = 20, max_length: int = 10
) -> Iterator[Pair]:
    """Random sentences of made-up words, each with the task's output.

    Args:
        task: a name of `TASKS`.
        n_pairs: number of pairs.
        seed: decides the sentences.
        n_words: number of different words, `w00` and so on.
        max_length: words in the longest sentence; each length from 1 is equally likely.

    Raises:
        ConfigError: there is no such task.
    """
    if task not in TASKS:
        raise ConfigError(f"task must be one of {', '.join(TASKS)}, but is {task!r}.")
    random = np.random.Generator(np.random.Philox(seed))
    for line in range(1, n_pairs + 1):
        length = int(random.integers(1, max_length + 1))
        words = [f"w{word:02}" for word in random.integers(n_words, size=length)]
        yield Pair(" ".join(words), " ".join(TASKS[task](words)), line, f"toy {task}")
