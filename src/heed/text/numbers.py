"""Numbers as a language writes them: `1,234.50` in English is `1.234,50` in German.

Source: Unicode CLDR 47, number symbols and the formats of percents and currencies.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from heed.errors import ConfigError
from heed.text.protection.numerals import CURRENCY, FRACTIONS, RAISED

_BLANK = "\u00a0"
_NARROW_BLANK = "\u202f"
_BLANKS = f" {_BLANK}{_NARROW_BLANK}"
# Signs between numbers that each have their own separators: `1.5-2.5`, but not `1.5e-5`.
_JOINTS = re.compile(r"((?<![eE^])[\u2013x×\-\u2212+\u00b1])")
_SEPARATOR = re.compile(rf"[.,'\u2019{_BLANKS}]")
_ENDS = rf"\d{RAISED}{FRACTIONS}"
_POWER = re.compile(
    rf"(?:[eE^][+\-\u2212]?\d+|(?<![{RAISED}])[\u207a\u207b]?[{RAISED}]+|[{FRACTIONS}])\Z"
)
_PARTS = re.compile(
    rf"(?P<sign>[+\-\u2212\u00b1]?)(?P<before>(?:{CURRENCY}|[A-Z]{{3}})?)(?P<gap>[{_BLANKS}]?)"
    rf"(?P<digits>[+\-\u2212\u00b1]?[.,]?\d"
    rf"(?:(?:[{_ENDS}.,:'\u2019/\u2013x×\-\u2212\u207a\u207b{_BLANKS}]"
    rf"|[eE^][+\-\u2212]?(?=\d))*[{_ENDS}])?)"
    rf"(?P<blank>[{_BLANKS}]?)(?P<after>\D*)"
)


class _Style(NamedTuple):
    """How a language writes numbers.

    Attributes:
        decimal: sign before the fraction.
        group: sign between thousands.
        percent: the place of the percent sign beside the number, which is `0`.
        currency: the place of the sign of a currency.
    """

    decimal: str
    group: str
    percent: str
    currency: str


# Each row: the signs, and the languages that use them.
_TABLE = (
    (".", ",", "0%", "¤0", "am cy en es-mx fil ga gu hi ig ja ko ms mt ta te th tl ur yo zh zu"),
    (".", ",", "0%", "¤ 0", "ha sw"),
    (".", ",", "0%", "0 ¤", "ar he"),
    (",", ".", "0 %", "0 ¤", "ca da de es gl hr mk ro sl"),
    (",", ".", "0%", "0 ¤", "az bs el is it sr vi"),
    (",", ".", "0%", "¤ 0", "nl pt"),
    (",", ".", "0%", "¤0", "id"),
    (",", ".", "% 0", "0 ¤", "eu"),
    (",", ".", "%0", "¤0", "tr"),
    (",", ".", "0 %", "¤ 0", "de-at"),
    (".", "’", "0%", "¤ 0", "de-ch it-ch"),
    (",", _NARROW_BLANK, "0 %", "0 ¤", "fr"),
    (",", _NARROW_BLANK, "0%", "0 ¤", "fr-ch"),
    (",", _BLANK, "0 %", "0 ¤", "be cs fi fr-ca lt nb nn no ru sk sv"),
    (",", _BLANK, "0%", "0 ¤", "bg et hu hy ka kk lv pl pt-pt sq uk uz"),
    (",", _BLANK, "0%", "¤0", "af"),
)
_STYLES = {
    lang: _Style(decimal, group, percent.replace(" ", _BLANK), currency.replace(" ", _BLANK))
    for decimal, group, percent, currency, langs in _TABLE
    for lang in langs.split()
}
# `1234`, but `12.345`.
_FOUR_DIGITS_STAY_TOGETHER = frozenset(("es", "pl", "pt-pt"))


def localizer(source_lang: str, target_lang: str) -> Callable[[str], str]:
    """`localize` from one language into another.

    Raises:
        ConfigError: the number format of one of the languages is not known here.
    """
    for lang in (source_lang, target_lang):
        if _style_of(lang) is None:
            name = f"{lang} writes them" if lang else "this model's languages write them"
            raise ConfigError(
                "Numbers cannot be localized: heed does not know the number format of "
                f"{name}. Leave out localize_numbers (--localize-numbers)."
            )
    return lambda number: localize(number, source_lang, target_lang)


def localize(number: str, source_lang: str, target_lang: str) -> str:
    """A number of the source as the target language writes it, with its unit.

    Only unambiguous parts change: the separators of thousands and decimals, and the place of the
    signs for percent and currency. The rest stays as it is: dates, times, versions such as
    `3.10.1`, numbers with separators in places that are wrong in the source language (`1.234,5` in
    English), digits of other scripts, and numbers of a language that is not known here. `$5` can be
    a field of a program and stays, too. A version of two numbers (`2.0`) cannot be distinguished
    from a decimal number and changes.

    Args:
        number: a span that the rule `number` or `count` found.
        source_lang: its language, such as `en` or `de-CH`.
        target_lang: the language to write it in.
    """
    source, target = _style_of(source_lang), _style_of(target_lang)
    parts = _PARTS.fullmatch(number)
    if source is None or target is None or source == target or parts is None:
        return number
    if re.fullmatch(r"\$\d", number):
        return number
    is_short = _key(target_lang) in _FOUR_DIGITS_STAY_TOGETHER
    digits = [
        _rewritten(part, source, target, is_short=is_short)
        for part in _JOINTS.split(parts["digits"])
    ]
    known = [part for part in digits if part is not None]
    if len(known) < len(digits):
        return number
    return parts["sign"] + _placed("".join(known), parts, source, target)


def _rewritten(part: str, source: _Style, target: _Style, *, is_short: bool) -> str | None:
    """The digits with the target's separators; None if they are not a number in the source."""
    if not _SEPARATOR.search(part):
        return part
    power = found[0] if (found := _POWER.search(part)) else ""
    group = f"[{_BLANKS}]" if source.group in _BLANKS else re.escape(source.group)
    match = re.fullmatch(
        rf"(?P<whole>[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+|[0-9]*)"
        rf"(?:{re.escape(source.decimal)}(?P<fraction>[0-9]+))?",
        part.removesuffix(power),
    )
    if match is None:
        return None
    whole = re.sub(
        group, "" if is_short and len(match["whole"]) == 5 else target.group, match["whole"]
    )
    return whole + (target.decimal + match["fraction"] if match["fraction"] else "") + power


def _placed(digits: str, parts: re.Match[str], source: _Style, target: _Style) -> str:
    """The digits with the sign of percent or currency in the target's place."""
    before, after = parts["before"], parts["after"]
    sign = before or after
    if sign == "%":
        own, wanted = source.percent, target.percent
    else:
        own, wanted = source.currency, target.currency
    is_sign = sign == "%" or re.fullmatch(CURRENCY, sign)
    if own == wanted or not is_sign or (before and after):
        return before + parts["gap"] + digits + parts["blank"] + after
    if after and _BLANK in wanted:
        # The blank of the source is kept.
        wanted = wanted.replace(_BLANK, parts["blank"] or _BLANK)
    return wanted.replace("0", "\0").replace("¤", sign).replace("\0", digits)


def _key(lang: str) -> str:
    """The entry of the table for a language: `pt-pt` of `pt-PT`, `de` of `de-LU`."""
    key = lang.casefold().replace("_", "-")
    return key if key in _STYLES else key.split("-")[0]


def _style_of(lang: str) -> _Style | None:
    return _STYLES.get(_key(lang))
