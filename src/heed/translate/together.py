"""Open a model folder, or several whose models translate together."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from heed.decode.ensemble import Ensemble
from heed.errors import ConfigError, UsageError
from heed.text.languages import Directions, known_directions, source_languages
from heed.translate.lines import MAX_SOURCE_TOKENS
from heed.translate.twin import Opened, open_with_twin

Folders = str | Path | Sequence[str | Path]
"""One model folder, or several."""


def open_together(folders: Folders, **ways: Any) -> Opened:
    """Open one model folder, or several as an `Ensemble`.

    Options, memory, lexicon, alignment and judgment of several are those of the first.

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
    if len(folders) == 1:
        return open_with_twin(folders[0], **ways)
    found = [_open_one(folder, **ways) for folder in folders]
    for other, folder in zip(found[1:], folders[1:], strict=True):
        _require_equal(found[0], folders[0], other, folder)
    return replace(
        found[0],
        model=Ensemble([each.model for each in found]),
        max_source_tokens=min(each.max_source_tokens or MAX_SOURCE_TOKENS for each in found),
        twin=None,
    )


def _open_one(folder: str | Path, **ways: Any) -> Opened:
    """Open one of several folders; an error names it."""
    try:
        return open_with_twin(folder, **ways)
    except ConfigError as error:
        if str(error).startswith(str(folder)):
            raise
        raise ConfigError(f"{folder}: {error}") from None


def _require_equal(
    first: Opened, first_folder: str | Path, other: Opened, folder: str | Path
) -> None:
    """The second reads and writes the same pieces of the same languages as the first."""
    there, here = _directions(first), _directions(other)
    # A side without names is unknown. Only sources of a model with several languages have tags.
    has_tags = [bool(each.bundle.target_langs) for each in (first, other)]
    if has_tags[0] != has_tags[1] or any(
        a and b and {*a} != {*b} for a, b in zip(there, here, strict=True)
    ):
        raise ConfigError(
            f"{folder} translates {_spelled(other)}, but {first_folder} {_spelled(first)}. "
            "Models that translate together need the same languages."
        )
    pairs = [(each.bundle.src_vocab.hash, each.bundle.tgt_vocab.hash) for each in (first, other)]
    if pairs[0] != pairs[1]:
        raise ConfigError(
            f"{folder} has another vocabulary than {first_folder}. Models that translate together "
            f"need the same one: train with tokenizer.vocab_from={first_folder}."
        )


def _directions(opened: Opened) -> tuple[tuple[str, ...], tuple[str, ...], Directions]:
    """The languages that a model reads, those that it writes, and how; empty if unknown."""
    bundle = opened.bundle
    target_langs = bundle.target_langs or ((bundle.target_lang,) if bundle.target_lang else ())
    sources = source_languages(bundle.source_lang, bundle.target_langs, bundle.directions)
    languages = bundle.source_lang, bundle.target_lang, bundle.target_langs
    return sources, target_langs, known_directions(*languages, bundle.directions)


def _spelled(opened: Opened) -> str:
    source_langs, target_langs, known = _directions(opened)
    if opened.bundle.directions:
        return " and ".join(f"from {source} to {target}" for source, target in known)
    return f"from {' or '.join(source_langs) or '?'} to {' or '.join(target_langs) or '?'}"
