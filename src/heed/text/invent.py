"""Invents names and spans that must be copied, at random.

A model cannot know these, so its output shows whether it copies. Not here: how a span is found in a
text.
"""

from collections.abc import Callable, Sequence

import numpy as np

from heed.text.scripts import SPELLED

_CODAS = ("", "", "", "", "", "", "n", "r", "l", "s", "k", "x", "m", "ld", "tz")
_UNITS = ("%", " %", " km", " kg", " MB", " €", "px", "°C", " ms")
_PLACES = ("com", "org", "net", "de", "io", "co.uk", "example")
_ENDINGS = ("txt", "png", "tar.gz", "conf", "py", "desktop")
_CAPITALS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
_CONVERSIONS = ("%s", "%d", "%1$s", "%2$d", "%.2f", "%u", "%ld", "%5.1f", "%@", "%i")
_TAGS = ("b", "i", "u", "em", "strong", "code", "span", "a", "p", "li", "small")
_SINGLE_TAGS = ("<br>", "<br/>", "<hr />", "&amp;", "&nbsp;", "&lt;", "&#8230;", "<img/>")
_EMOJI = "😀😂🙏🎉🚀🔥🐈🌍🍕🏀📦💡🎸🦊🌈🛒"
_JOINED_EMOJI = ("👩‍💻", "👨‍👩‍👧", "🇩🇪", "🇯🇵", "👍🏽", "❤️")


def invent_name(generator: np.random.Generator, script: str = "latin") -> str:
    """A name that is probably in no corpus, with a capital if the script has capitals.

    Args:
        generator: draws the letters.
        script: as `scripts.main_script` calls it; Latin letters for a script without letters here.
    """
    first, rest = SPELLED.get(script, SPELLED["latin"])
    if script == "han":
        return _one(first, generator) + _one(rest, generator) + _one(rest, generator)
    if script == "hangul":
        return _one(first, generator) + "".join(_one(rest, generator) for _ in range(2))
    codas = _CODAS if script == "latin" else ("",)
    sides = (first, rest, codas) * (2 + int(generator.random() * 3))
    name = "".join(_one(side, generator) for side in sides)
    return name if script == "georgian" else name[0].upper() + name[1:]


def invent_tags(generator: np.random.Generator) -> tuple[str, str]:
    """A tag that opens, and the one that closes it."""
    name = _one(_TAGS, generator)
    if name == "a" and generator.random() < 0.7:
        return f'<a href="{_url(generator)}">', "</a>"
    if name == "span" and generator.random() < 0.7:
        return f'<span class="{_word(generator)}">', "</span>"
    return f"<{name}>", f"</{name}>"


def invent_span(kind: str, generator: np.random.Generator) -> str:
    """A span that must be copied unchanged; for pairs of tags see `invent_tags`.

    Args:
        kind: a key of `SPANS`.
        generator: draws the span.
    """
    return SPANS[kind](generator)


def _one(choices: Sequence[str], generator: np.random.Generator) -> str:
    return choices[int(generator.random() * len(choices))]


def _below(n: int, generator: np.random.Generator) -> int:
    return int(generator.random() * n)


def _word(generator: np.random.Generator) -> str:
    return invent_name(generator).lower()


def _number(generator: np.random.Generator) -> str:
    value, form = _below(10 ** (1 + _below(7, generator)), generator), generator.random()
    if form < 0.35:
        return str(value)
    if form < 0.5:
        return f"{value:,}"
    if form < 0.6:
        return f"{value:,}".replace(",", ".")
    if form < 0.75:
        return f"{value:,}.{_below(100, generator):02}"
    if form < 0.85:
        return f"{_below(1000, generator)},{_below(100, generator):02}"
    return f"{_below(1000, generator)}{_one(_UNITS, generator)}"


def _date(generator: np.random.Generator) -> str:
    year, month, day = (n + _below(m, generator) for n, m in ((1950, 100), (1, 12), (1, 28)))
    form = _below(4, generator)
    if form == 0:
        return f"{year}-{month:02}-{day:02}"
    if form == 1:
        return f"{day:02}.{month:02}.{year}"
    if form == 2:
        return f"{month}/{day}/{year}"
    return f"{_below(24, generator):02}:{_below(60, generator):02}"


def _code(generator: np.random.Generator) -> str:
    letters = "".join(_one(_CAPITALS, generator) for _ in range(2 + _below(3, generator)))
    digits = str(_below(10**6, generator))
    form = _below(4, generator)
    if form == 0:
        return f"{letters}-{digits}"
    if form == 1:
        return f"#{digits}"
    if form == 2:
        return f"0x{_below(2**31, generator):x}"
    return f"v{_below(10, generator)}.{_below(20, generator)}.{_below(30, generator)}"


def _email(generator: np.random.Generator) -> str:
    return f"{_word(generator)}@{_word(generator)}.{_one(_PLACES, generator)}"


def _url(generator: np.random.Generator) -> str:
    address = f"https://{_word(generator)}.{_one(_PLACES, generator)}"
    form = _below(4, generator)
    if form == 0:
        return address
    if form == 1:
        return f"{address}/{_word(generator)}"
    if form == 2:
        return f"{address}/{_word(generator)}?q={_below(1000, generator)}&lang={_word(generator)}"
    return f"www.{address[8:]}/{_word(generator)}.html"


def _path(generator: np.random.Generator) -> str:
    name = f"{_word(generator)}.{_one(_ENDINGS, generator)}"
    form = _below(3, generator)
    if form == 0:
        return f"/{_word(generator)}/{_word(generator)}/{name}"
    if form == 1:
        return f"C:\\{_word(generator)}\\{name}"
    return f"~/{_word(generator)}/{name}"


def _field(generator: np.random.Generator) -> str:
    name = _word(generator)
    form = _below(6, generator)
    if form < 2:
        return _one(_CONVERSIONS, generator)
    return (f"{{{name}}}", f"{{{{{name}}}}}", f"${{{name}}}", f"%({name})s")[form - 2]


def _emoji(generator: np.random.Generator) -> str:
    if generator.random() < 0.3:
        return _one(_JOINED_EMOJI, generator)
    return _one(_EMOJI, generator) * (1 + _below(3, generator))


SPANS: dict[str, Callable[[np.random.Generator], str]] = {
    "number": _number,
    "date": _date,
    "code": _code,
    "email": _email,
    "url": _url,
    "path": _path,
    "field": _field,
    "tag": lambda generator: _one(_SINGLE_TAGS, generator),
    "emoji": _emoji,
}
"""Kinds of spans: one function each."""
