"""Results of a long job, saved portion by portion, so that after an interruption none is lost."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from heed.disk.files import parse_json, read_bytes, to_json, write_atomically
from heed.disk.folders import remove_temporaries

PORTIONS = "portion-*.json"
"""The names of the files; `*` stands for any characters."""


class Portions:
    """The portions saved in a folder, in order.

    Args:
        folder: made with the first portion.

    Attributes:
        n_done: number of results in all of them.
        seconds: time spent on them, over all starts of the job.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.n_done, self.seconds = 0, 0.0
        for portion in self._read():
            self.n_done += len(portion["translations"])
            self.seconds = portion["seconds"]

    def add(self, results: Sequence[Any], seconds: float) -> None:
        """Save one more portion.

        Args:
            results: as JSON values.
            seconds: time spent on all portions until now.
        """
        path = self.folder / PORTIONS.replace("*", f"{self.n_done:010}")
        values = {"seconds": seconds, "translations": list(results)}
        write_atomically(path, to_json(values, indent=None))
        self.n_done, self.seconds = self.n_done + len(results), seconds

    def results(self) -> Iterator[Any]:
        """All results, in order."""
        for portion in self._read():
            yield from portion["translations"]

    def remove(self) -> None:
        """Remove the files, also those of a killed write, and the folder if it is empty then."""
        remove_temporaries(self.folder, (PORTIONS,))
        for path in self._files():
            path.unlink()
        with suppress(OSError):
            self.folder.rmdir()

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob(PORTIONS))

    def _read(self) -> Iterator[dict[str, Any]]:
        return (parse_json(read_bytes(path), path) for path in self._files())
