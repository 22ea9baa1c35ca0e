"""Valid language codes, names of languages, and the languages that a model reads and writes.

A model trained in both directions counts its source language among its targets.
"""

import re
from collections.abc import Sequence

from heed.errors import ConfigError

_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,34}")
"""Longest code, by RFC 5646, section 4.4.1."""

NAMES = {
    "af": "Afrikaans",
    "am": "Amharic",
    "ar": "Arabic",
    "az": "Azerbaijani",
    "be": "Belarusian",
    "bg": "Bulgarian",
    "bn": "Bengali",
    "bs": "Bosnian",
    "ca": "Catalan",
    "cs": "Czech",
    "cy": "Welsh",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "eo": "Esperanto",
    "es": "Spanish",
    "et": "Estonian",
    "eu": "Basque",
    "fa": "Persian",
    "fi": "Finnish",
    "fr": "French",
    "ga": "Irish",
    "gl": "Galician",
    "gu": "Gujarati",
    "he": "Hebrew",
    "hi": "Hindi",
    "hr": "Croatian",
    "hu": "Hungarian",
    "hy": "Armenian",
    "id": "Indonesian",
    "is": "Icelandic",
    "it": "Italian",
    "ja": "Japanese",
    "ka": "Georgian",
    "kk": "Kazakh",
    "kn": "Kannada",
    "ko": "Korean",
    "ky": "Kyrgyz",
    "la": "Latin",
    "lt": "Lithuanian",
    "lv": "Latvian",
    "mk": "Macedonian",
    "ml": "Malayalam",
    "mn": "Mongolian",
    "mr": "Marathi",
    "ms": "Malay",
    "mt": "Maltese",
    "nb": "Norwegian Bokmål",
    "ne": "Nepali",
    "nl": "Dutch",
    "nn": "Norwegian Nynorsk",
    "no": "Norwegian",
    "pa": "Punjabi",
    "pl": "Polish",
    "pt": "Portuguese",
    "pt-BR": "Portuguese (Brazil)",
    "ro": "Romanian",
    "ru": "Russian",
    "si": "Sinhala",
    "sk": "Slovak",
    "sl": "Slovenian",
    "sq": "Albanian",
    "sr": "Serbian",
    "sv": "Swedish",
    "sw": "Swahili",
    "ta": "Tamil",
    "te": "Telugu",
    "th": "Thai",
    "tl": "Tagalog",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "ur": "Urdu",
    "uz": "Uzbek",
    "vi": "Vietnamese",
    "zh": "Chinese",
    "zh-Hans": "Chinese (simplified)",
    "zh-Hant": "Chinese (traditional)",
    "zu": "Zulu",
}
"""English names of languages by their code."""

_CODES = {name.casefold(): code for code, name in NAMES.items()}


def require_language(code: str) -> None:
    """Refuse an invalid language code.

    A code becomes a column of the prepared corpus, a piece of the vocabulary and a part of file
    names.

    Raises:
        ConfigError: it is not a valid code.
    """
    if not _CODE.fullmatch(code):
        raise ConfigError(
            "a language code, such as de or pt-BR, must start with a letter and have at most 35 "
            f"letters, digits, - and _, but is {code!r}."
        )


def named_language(word: str) -> str | None:
    """The language code, without region, of a code or an English name; None if it is neither.

    `de-AT`, `DE`, `German` and `German (Austria)` mean `de`; `It` is a word, since codes are not
    spelled like that.
    """
    name = word.strip().replace("_", "-")
    without_region = re.sub(r" \([^()]+\)$", "", name)
    named = _CODES.get(name.casefold()) or _CODES.get(without_region.casefold(), name)
    code = named.split("-")[0]
    is_code = code in (code.lower(), code.upper()) and code.lower() in NAMES
    return code.lower() if is_code else None


Directions = tuple[tuple[str, str], ...]
"""Source and target language of each direction."""


def as_directions(value: object) -> Directions | None:
    """Directions from a JSON value: a list of different pairs of codes; None if it is not that."""
    if not isinstance(value, list):
        return None
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2:
            return None
        if not all(isinstance(code, str) and _CODE.fullmatch(code) for code in pair):
            return None
    found = tuple((source, target) for source, target in value)
    return found if len({*found}) == len(found) else None


def known_directions(
    source_lang: str,
    target_lang: str,
    target_langs: Sequence[str],
    directions: Directions = (),
) -> Directions:
    """The directions that a model translates, as far as known.

    Args:
        source_lang: the one its corpus was translated from; "" if unknown or several.
        target_lang: the one its corpus was translated into; "" if unknown or several.
        target_langs: all it writes, if there are several.
        directions: all, where the languages do not imply them; else empty.
    """
    if directions:
        return directions
    if not target_langs:
        return ((source_lang, target_lang),) if source_lang and target_lang else ()
    sources = source_languages(source_lang, target_langs)
    return tuple(
        (source, target) for source in sources for target in target_langs if source != target
    )


def directions_to_store(
    learned: Directions, source_lang: str, target_lang: str, target_langs: Sequence[str]
) -> Directions:
    """The directions that a model has learned, if its languages do not imply them; else none.

    Args:
        learned: the directions.
        source_lang: as in `known_directions`, like all below.
        target_lang: of the model.
        target_langs: of the model.
    """
    implied = known_directions(source_lang, target_lang, target_langs)
    return tuple(dict.fromkeys(learned)) if {*learned} != {*implied} else ()


def source_languages(
    source_lang: str, target_langs: Sequence[str], directions: Directions = ()
) -> tuple[str, ...]:
    """The languages that a model reads, as far as known.

    Args:
        source_lang: the one its corpus was translated from; "" if unknown or several.
        target_langs: all it writes, if there are several.
        directions: all, where the languages do not imply them; else empty.
    """
    if directions:
        return tuple(dict.fromkeys(source for source, _ in directions))
    if source_lang and source_lang in target_langs:
        return (source_lang, *(lang for lang in target_langs if lang != source_lang))
    return (source_lang,) if source_lang else ()


def implied_target(
    asked_source: str,
    source_lang: str,
    target_langs: Sequence[str],
    directions: Directions = (),
) -> str | None:
    """The only language that a two-way model, or one that stores directions, translates into.

    None if `asked_source` can be translated into several.
    """
    if directions:
        targets = [target for source, target in directions if source == asked_source]
        return targets[0] if len(targets) == 1 else None
    is_two_way = len(target_langs) == 2 and source_lang in target_langs
    others = [lang for lang in target_langs if lang != asked_source]
    return others[0] if is_two_way and len(others) == 1 else None


def implied_source(
    asked_target: str,
    source_lang: str,
    target_langs: Sequence[str],
    directions: Directions = (),
) -> str:
    """The language from which a model translates into `asked_target`.

    "" if it is unknown, or one of several and not `source_lang`.
    """
    known = known_directions(source_lang, asked_target, target_langs, directions)
    sources = [source for source, target in known if target == asked_target]
    if not directions and (source_lang in sources or not sources):
        return source_lang
    return sources[0] if len(sources) == 1 else ""


def spelled_direction(
    source_lang: str,
    target_lang: str,
    target_langs: Sequence[str],
    directions: Directions = (),
) -> str:
    """`en → de`; `en ↔ de` for both ways; `en → de, fr` for several; `?` for what is unknown.

    Of a model that stores directions, those of each source: `zh → en; en → fr, zh`.
    """
    if directions:
        targets: dict[str, list[str]] = {}
        for source, target in directions:
            targets.setdefault(source, []).append(target)
        return "; ".join(f"{source} → {', '.join(into)}" for source, into in targets.items())
    if len(target_langs) == 2 and (other := implied_target(source_lang, source_lang, target_langs)):
        return f"{source_lang} ↔ {other}"
    return f"{source_lang or '?'} → {', '.join(target_langs) or target_lang or '?'}"
