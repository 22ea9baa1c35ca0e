"""Open a model folder, or several whose models translate together."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from heed.decode.ensemble import Ensemble
from heed.errors import ConfigError, UsageError
from heed.translate.twin import Opened, open_with_twin

Folders = str | Path | Sequence[str | Path]
"""One model folder, or several."""


def open_together(folders: Folders, **ways: Any) -> Opened:
    """Open one model folder, or several as an `Ensemble`.

    Options, memory, alignment and the judgment of several are those of the first.

    Args:
        folders: the folders.
        **ways: the other arguments of `open_with_twin`.

    Raises:
        ConfigError: their vocabularies or languages differ; or as in `open_with_twin`.
        UsageError: there is no folder; or as in `open_with_twin`.
    """
    if isinstance(folders, str | bytes) or not isinstance(folders, Sequence):
        return open_with_twin(folders, **ways)  # refuses what is no path
    if not folders:
        raise UsageError("folder is an empty list; name at least one model folder.")
    found = [open_with_twin(folder, **ways) for folder in folders]
    if len(found) == 1:
        return found[0]
    for other, folder in zip(found[1:], folders[1:], strict=True):
        _require_equal(found[0], folders[0], other, folder)
    longest = [each.max_source_tokens for each in found if each.max_source_tokens is not None]
    return replace(
        found[0],
        model=Ensemble([each.model for each in found]),
        max_source_tokens=min(longest, default=None),
        twin=None,
    )


def _require_equal(
    first: Opened, first_folder: str | Path, other: Opened, folder: str | Path
) -> None:
    """The second reads and writes the same pieces of the same languages as the first."""
    directions = [
        (each.bundle.source_lang, each.bundle.target_langs or (each.bundle.target_lang,))
        for each in (first, other)
    ]
    if directions[0] != directions[1]:
        there, here = (f"from {source} to {' or '.join(into)}" for source, into in directions)
        raise ConfigError(
            f"{folder} translates {here}, but {first_folder} {there}. Models that translate "
            "together need the same languages."
        )
    pairs = [(each.bundle.src_vocab.hash, each.bundle.tgt_vocab.hash) for each in (first, other)]
    if pairs[0] != pairs[1]:
        raise ConfigError(
            f"{folder} has another vocabulary than {first_folder}. Models that translate together "
            f"need the same one: train with tokenizer.vocab_from={first_folder}."
        )
