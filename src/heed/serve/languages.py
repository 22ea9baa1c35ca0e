"""Language codes of requests: their names, and the served codes they stand for."""

from collections.abc import Collection

from heed.text.languages import NAMES

_SAME = (
    ("zh-hans", "zh", "zh-cn", "zh-sg", "cmn"),
    ("zh-hant", "zt", "zh-tw", "zh-hk", "zh-mo"),
    ("pt-br", "pb"),
    ("nb", "no", "nb-no"),
    ("he", "iw"),
    ("id", "in"),
    ("tl", "fil"),
)
"""Codes of the same language, in lower case: old ones, and those of LibreTranslate and DeepL."""


def name_of(code: str) -> str:
    """The English name of a language; its code if no name is known."""
    return NAMES.get(code, code)


def resolve(code: str, served: Collection[str]) -> str | None:
    """The served code for a request's code, or None.

    Case does not matter, and `-` equals `_`. If no code is equal, another code of the same language
    is taken, then the language without its region (`EN-GB`: `en`), then one with a region (`pt`:
    `pt-BR`) if only one such code is served.

    Args:
        code: code in a request, such as `EN-GB` or `zh`.
        served: the served codes.
    """
    if code in served:
        return code
    by_key = {_key(each): each for each in served}
    wanted = _key(code)
    same = (wanted, *_same(wanted))
    for key in (*same, *map(base_of, same)):
        if key in by_key:
            return by_key[key]
    regional = [each for key, each in by_key.items() if base_of(key) == wanted]
    return regional[0] if len(regional) == 1 else None


def _key(code: str) -> str:
    return code.strip().replace("_", "-").lower()


def base_of(code: str) -> str:
    """The code of a language without its region or script."""
    return code.partition("-")[0]


def _same(key: str) -> tuple[str, ...]:
    return next((group for group in _SAME if key in group), ())
