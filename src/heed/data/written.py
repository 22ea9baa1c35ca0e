"""Pairs as parallel plain text: two files for each direction, which training reads again."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from heed.data.readers import Pair, ParallelFiles
from heed.disk.files import atomic_writer


def write_parallel(folder: Path, role: str, pairs: Iterable[Pair]) -> list[list[str]]:
    """Write pairs into `folder`; a file appears when the last pair is written.

    Args:
        folder: made if missing.
        role: the beginning of the names: `train` of `train.en-de.src` and `train.en-de.tgt`.
        pairs: a line break in one becomes a blank.

    Returns:
        The source and target language of each pair of files, for `written_parallel`.
    """
    with ExitStack() as stack:
        files: dict[tuple[str, str], list[Any]] = {}
        for pair in pairs:
            direction = pair.source_lang, pair.target_lang
            if direction not in files:
                names = _names(folder, role, *direction)
                files[direction] = [stack.enter_context(atomic_writer(name)) for name in names]
            for file, text in zip(files[direction], (pair.src, pair.tgt), strict=True):
                file.write((" ".join(text.splitlines()) + "\n").encode("utf-8", "replace"))
    return [list(direction) for direction in files]


def written_parallel(
    folder: Path, role: str, directions: Iterable[Sequence[str]]
) -> tuple[ParallelFiles, ...]:
    """The files that `write_parallel` wrote, as a part of a corpus."""
    return tuple(
        ParallelFiles(
            files=_names(folder, role, source_lang, target_lang),
            source_lang=source_lang,
            target_lang=target_lang,
        )
        for source_lang, target_lang in directions
    )


def _names(folder: Path, role: str, source_lang: str, target_lang: str) -> tuple[str, str]:
    stem = f"{role}.{source_lang or 'src'}-{target_lang or 'tgt'}"
    return str(folder / f"{stem}.src"), str(folder / f"{stem}.tgt")
