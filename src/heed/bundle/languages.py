"""The languages in a model's `config.json`, checked when it is read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heed.errors import FormatError
from heed.text.languages import as_directions
from heed.text.vocab import Vocab


def check_languages(values: Mapping[str, Any], where: Path) -> None:
    """Refuse languages that heed has not written.

    Args:
        values: of `config.json`; the lists may be missing.
        where: that file.

    Raises:
        FormatError: a value is of the wrong kind, or a direction leads to another language.
    """
    for key in ("source_lang", "target_lang"):
        if not isinstance(values.get(key), str):
            raise FormatError(f"{where}: {key} must be a string, but is {values.get(key)!r}.")
    target_langs = values.get("target_langs", [])
    if not isinstance(target_langs, list) or not all(isinstance(x, str) for x in target_langs):
        raise FormatError(f"{where}: target_langs must be a list of strings.")
    directions = as_directions(values.get("directions", []))
    if directions is None:
        raise FormatError(
            f"{where}: directions must be a list of different pairs of language codes, such as "
            f'[["en", "de"], ["fr", "de"]], but is {values["directions"]!r}.'
        )
    written = target_langs or [values["target_lang"]]
    if unknown := {target for _, target in directions} - {*written}:
        raise FormatError(
            f"{where}: directions leads to {', '.join(sorted(unknown))}, but the model's target "
            f"languages are {', '.join(written) or 'unknown'}."
        )


def language_fields(values: Mapping[str, Any], src_vocab: Vocab, where: Path) -> dict[str, Any]:
    """The fields of a `Bundle` that name languages.

    Args:
        values: of `config.json`, checked.
        src_vocab: must have a tag for each target language, if there are several.
        where: that file.

    Raises:
        FormatError: a tag is missing; names the language.
    """
    target_langs = tuple(values.get("target_langs", ()))
    if unknown := {*target_langs} - {*src_vocab.languages}:
        raise FormatError(
            f"{where} lists the target languages {', '.join(sorted(unknown))}, which the source "
            "vocabulary has no tags for."
        )
    return {
        "source_lang": values["source_lang"],
        "target_lang": values["target_lang"],
        "target_langs": target_langs,
        "directions": as_directions(values.get("directions", [])),
    }
