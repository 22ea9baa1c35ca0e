"""Edits between translations and references: those of TER by sacreBLEU, and the edit distance.

sacreBLEU searches for shifts in Python, which takes minutes for thousands of long lines. So several
processes count; each is `python -m heed.evaluate.edits`.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import IO, Any

MAX_SHIFTED_WORDS = 400
"""Longer lines get TER without shifts, for which sacreBLEU would need many seconds a line."""

MAX_EXACT_WORDS = 10_000
"""The edit distance of longer lines is summed over stretches of at most this length."""

ALONE_S = 2.0
"""Seconds of counting after which other processes help; each takes half a second to start."""

MOST_PROCESSES = 16
"""Each needs 50 MB of memory."""

Row = tuple[float, float, bool]
"""Of a sentence: edits, mean number of reference words, and whether it is counted without shifts,
because it has more than `MAX_SHIFTED_WORDS`."""


def edits_of(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    is_asian: bool = False,
    processes: int = 1,
    progress: Callable[[int], None] = lambda n_done: None,
) -> list[Row]:
    """The edits of TER of each sentence; the same numbers with any number of processes.

    Args:
        hypotheses: translations.
        references: one or more reference sets, each with a line for every translation.
        is_asian: split Chinese and Japanese into characters.
        processes: the largest number of processes that count at the same time.
        progress: called with the number of sentences done.
    """
    pairs = list(zip(hypotheses, zip(*references, strict=True), strict=True))
    row_of = _sacrebleu_edits(is_asian)
    rows: list[Row] = []
    started_at = time.monotonic()
    for pair in pairs:
        if processes > 1 and time.monotonic() >= started_at + ALONE_S:
            break
        rows.append(row_of(*pair))
        progress(len(rows))
    for row in _rows_of_helpers(pairs[len(rows) :], is_asian, processes):
        rows.append(row or row_of(*pairs[len(rows)]))
        progress(len(rows))
    return rows


Pairs = Sequence[tuple[str, Sequence[str]]]
"""Translations, each with its references."""


def _sacrebleu_edits(is_asian: bool) -> Callable[[str, Sequence[str]], Row]:
    """The function that counts the edits of a translation with its references."""
    from sacrebleu.metrics import TER

    metric = TER(normalized=is_asian, asian_support=is_asian)

    def row_of(hypothesis: str, known: Sequence[str]) -> Row:
        (reference,) = metric._cache_references([[line] for line in known])
        text, expected = metric._preprocess_segment(hypothesis), reference["ref_words"]
        said = text.split()
        if max(map(len, [said, *expected])) <= MAX_SHIFTED_WORDS:
            n_edits, n_words = metric._compute_segment_statistics(text, reference)
            return n_edits, n_words, False
        fewest = min(edit_distance(said, words) for words in expected)
        return fewest, sum(map(len, expected)) / len(expected), True

    return row_of


def _rows_of_helpers(pairs: Pairs, is_asian: bool, count: int) -> Iterator[Row | None]:
    """The rows of pairs, counted by other processes; None for a pair that none has counted.

    Each process gets every `count`-th pair, and answers with a line for each.
    """
    count = min(count, len(pairs), MOST_PROCESSES)
    with ExitStack() as stack:
        helpers = [_Helper(stack) for _ in range(count)]
        for number, helper in enumerate(helpers):
            helper.send({"is_asian": is_asian, "pairs": pairs[number::count]})
        for number in range(len(pairs)):
            yield helpers[number % count].receive()


class _Helper:
    """Another process that counts; it ends with the stack."""

    def __init__(self, stack: ExitStack) -> None:
        self._pipes: tuple[IO[str], IO[str]] | None = None
        with suppress(OSError):  # there is no memory, or no interpreter
            process = subprocess.Popen(
                # -P: Python does not import modules from the current folder.
                [sys.executable, "-P", "-m", "heed.evaluate.edits"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,  # Ctrl-C reaches the main process, which ends this one
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            assert process.stdin and process.stdout
            self._pipes = process.stdin, process.stdout

    def send(self, work: dict[str, Any]) -> None:
        """Give it its work, which it reads before it answers."""
        if self._pipes:
            with suppress(BrokenPipeError), self._pipes[0] as stdin:
                json.dump(work, stdin)

    def receive(self) -> Row | None:
        """Its next row; None if it has ended."""
        line = self._pipes[1].readline() if self._pipes else ""
        return tuple(json.loads(line)) if line.endswith("\n") else None


def _help() -> None:
    """Count the edits of the pairs on standard input; print a line for each."""
    work = json.load(sys.stdin)
    row_of = _sacrebleu_edits(work["is_asian"])
    for pair in work["pairs"]:
        sys.stdout.write(f"{json.dumps(row_of(*pair))}\n")
        sys.stdout.flush()


def edit_distance(a: Sequence[str], b: Sequence[str]) -> int:
    """The fewest insertions, deletions and replacements from `a` to `b` (Levenshtein 1966).

    Longer lines than `MAX_EXACT_WORDS` are cut into stretches, as many in both, and the distances
    of the stretches are added. This is an upper bound, in linear instead of quadratic time.
    """
    n_stretches = -(-max(len(a), len(b)) // MAX_EXACT_WORDS)
    return sum(
        _exact_distance(
            *(x[len(x) * i // n_stretches : len(x) * (i + 1) // n_stretches] for x in (a, b))
        )
        for i in range(n_stretches)
    )


def _exact_distance(a: Sequence[str], b: Sequence[str]) -> int:
    """The edit distance, computed one row of its table at a time, as bits of integers.

    Bit `j` of `rises` means that the distance grows by one from prefix `j` of `b` to the next; bit
    `j` of `falls`, that it shrinks by one.

    Source: Myers 1999; Hyyrö 2003, figure 3.
    """
    if not b:
        return len(a)
    places: dict[str, int] = {}
    for j, word in enumerate(b):
        places[word] = places.get(word, 0) | 1 << j
    full, last = (1 << len(b)) - 1, 1 << len(b) - 1
    distance, rises, falls = len(b), full, 0
    for word in a:
        equal = places.get(word, 0)
        diagonal = (((equal & rises) + rises) ^ rises) | equal | falls
        grows = falls | full & ~(diagonal | rises)
        shrinks = rises & diagonal
        distance += bool(grows & last) - bool(shrinks & last)
        grows = grows << 1 | 1
        rises = full & (shrinks << 1 | ~(diagonal | grows))
        falls = full & grows & diagonal
    return distance


if __name__ == "__main__":
    _help()
