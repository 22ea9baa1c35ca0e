"""Converts recipes of older versions of heed to today's names."""

from collections.abc import Mapping
from typing import Any

from heed.decode import options

REMOVED: dict[tuple[str, str], Any] = {
    ("training", "packed"): False,
    ("training", "compile"): False,
}
"""Removed settings, with the value that had no effect; another value is an unknown setting."""

RENAMED_WORDS: dict[tuple[str, str], dict[str, str]] = {
    ("training", "first_embeddings"): {"company": "cooccurrence"},
}
"""Values of a setting that have a new name."""


def with_new_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of nested settings with today's names, without removed ones."""
    return {
        section: _section(section, inner) if isinstance(inner, Mapping) else inner
        for section, inner in values.items()
    }


def _section(section: str, values: Mapping[str, Any]) -> dict[str, Any]:
    if section == "decoding":
        values = options.with_new_names(values)
    renamed = {}
    for key, value in values.items():
        if (section, key) in REMOVED and REMOVED[section, key] == value:
            continue
        words = RENAMED_WORDS.get((section, key), {})
        renamed[key] = words.get(value, value) if isinstance(value, str) else value
    return renamed
