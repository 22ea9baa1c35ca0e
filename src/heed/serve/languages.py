"""Language codes of requests: their names, and the served codes they stand for."""

from collections.abc import Collection, Iterable

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
    """The English name of a language, also `English (GB)`; its code if no name is known."""
    base, _, region = code.partition("-")
    regional = f"{NAMES[base]} ({region})" if region and base in NAMES else code
    return NAMES.get(code, regional)


def resolve(code: str, served: Collection[str]) -> str | None:
    """The served code for a request's code, or None.

    Case does not matter, and `-` equals `_`. If no code is equal, shorter ones are looked up
    (`zh-Hant-TW`: `zh-Hant`), then other codes of the same language (`zt`), then the language
    without script and region (`EN-GB`: `en`), then one with them (`pt`: `pt-BR`) if only one such
    code is served.

    Args:
        code: code in a request, such as `EN-GB` or `zh`.
        served: the served codes.

    Source: RFC 4647, section 3.4, for shorter codes.
    """
    if code in served:
        return code
    by_key = {_key(each): each for each in served}
    wanted = _key(code)
    shorter = _shorter(wanted)
    same = next(filter(None, map(_same, shorter)), ())
    for key in (wanted, *shorter[1:-1], *same, shorter[-1], *map(base_of, same)):
        if key in by_key:
            return by_key[key]
    regional = [each for key, each in by_key.items() if base_of(key) == wanted]
    return regional[0] if len(regional) == 1 else None


def resolve_pair(
    source: str, target: str, served: Iterable[tuple[str, str]]
) -> tuple[str, str] | None:
    """The served direction for the codes of a request, or None.

    The source is looked up among the languages that are translated into the target: `EN` to `DE`
    finds `en-GB` to `de` also where `en` is translated into another language only.

    Args:
        source: as in `resolve`.
        target: as in `resolve`.
        served: the served directions.
    """
    targets: dict[str, list[str]] = {}
    for each, code in served:
        targets.setdefault(each, []).append(code)
    reached = {each: resolve(target, codes) for each, codes in targets.items()}
    found = resolve(source, [each for each, into in reached.items() if into is not None])
    into = reached[found] if found is not None else None
    return None if found is None or into is None else (found, into)


def _key(code: str) -> str:
    return code.strip().replace("_", "-").lower()


def _shorter(key: str) -> list[str]:
    """A code without its last parts, longest first: `zh-hant-tw`, `zh-hant`, `zh`."""
    parts = key.split("-")
    return ["-".join(parts[:n]) for n in range(len(parts), 0, -1)]


def base_of(code: str) -> str:
    """The code of a language without its region or script."""
    return code.partition("-")[0]


def _same(key: str) -> tuple[str, ...]:
    return next((group for group in _SAME if key in group), ())
