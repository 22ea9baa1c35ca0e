"""Valid language codes, and the languages that a model reads and writes.

A model trained in both directions counts its source language among its targets.
"""

import re
from collections.abc import Sequence

from heed.errors import ConfigError

_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,34}")
"""Longest code, by RFC 5646, section 4.4.1."""


def require_language(code: str) -> None:
    """Refuse an invalid language code.

    A code becomes a column of the prepared corpus, a piece of the vocabulary, part of a file name.

    Raises:
        ConfigError: it is not a valid code.
    """
    if not _CODE.fullmatch(code):
        raise ConfigError(
            "a language code must be letters, digits, - and _, such as de or pt-BR, at most 35 of "
            f"them and a letter first, but is {code!r}."
        )


def source_languages(source_lang: str, target_langs: Sequence[str]) -> tuple[str, ...]:
    """The languages that a model reads, as far as known.

    Args:
        source_lang: the one its corpus was translated from; "" if unknown or several.
        target_langs: all it writes, if there are several.
    """
    if source_lang and source_lang in target_langs:
        return (source_lang, *(lang for lang in target_langs if lang != source_lang))
    return (source_lang,) if source_lang else ()


def implied_target(asked_source: str, source_lang: str, target_langs: Sequence[str]) -> str | None:
    """The language a two-way model translates `asked_source` into; None if that is ambiguous."""
    is_two_way = len(target_langs) == 2 and source_lang in target_langs
    others = [lang for lang in target_langs if lang != asked_source]
    return others[0] if is_two_way and len(others) == 1 else None


def spelled_direction(source_lang: str, target_lang: str, target_langs: Sequence[str]) -> str:
    """`en → de`; `en ↔ de` for both ways; `en → de, fr` for several; `?` for what is unknown."""
    if len(target_langs) == 2 and (other := implied_target(source_lang, source_lang, target_langs)):
        return f"{source_lang} ↔ {other}"
    return f"{source_lang or '?'} → {', '.join(target_langs) or target_lang or '?'}"
