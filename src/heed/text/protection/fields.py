"""Fields that a program fills in, such as `%s`, `{name}` and `$(ARG1)`, escapes, and entities.

Of 4,100 fields in 50,000 strings of programs, 99.7 % are unchanged in the German translation, and
90 % of 191 parts of dates such as `%H:%M`, which some languages write in other ways. Of 59 entities
51 are; `&amp;` is an exception, for people write `und`.

Not found: `100 % of`, `50% done`, text in braces with blanks (`{Broken Image}`), and accelerators
(`&File`, `_File`), which move to another letter.
"""

import re

from heed.text.protection.pattern import Pattern

# A flag `-` must have a width after it, or `%-Angabe` would be a field. After a width, letters that
# begin a word are none: `%1custom`.
_FLAGS = r"(?:-(?=\d)|[+0#'])*+(?:\*|\d{1,3})?(?:\.(?:\*|\d{1,3}))?(?:hh|ll|[hlLqjzt])?"
_NAMED = r"(?:\d{1,2}\$|\(\w{1,60}\)|<\w{1,60}>)"
_PRINTF = re.compile(
    rf"(?=[%~])(?:(?<![\d%])%(?:{_NAMED}?{_FLAGS}"
    r"(?:[dsuxXfF@]|[ciopaAeEgG](?![A-Za-z]))"
    r"|[A-Z][A-Z_]{2,}\d*|[a-z]\w{0,40}%|L?\d{1,2}(?![.,]?\d)|n(?![A-Za-z])"
    r"|[BbHIjmMpSUwWyYZ](?![A-Za-z])|%)"
    rf"|(?<=\d)%(?:[ds](?![A-Za-z])|%|{_NAMED}{_FLAGS}[dsuxXfF@](?![A-Za-z]))"
    r"|~%|(?<![A-Za-z\d~])~[asd](?![A-Za-z]))"
)
_IN_TURN = re.compile(rf"%{_FLAGS}[dsuxXfF@ciopaAeEgG]")
_BRACES = re.compile(
    r"\{\{\{[^{}]*+\}\}\}|\{\{[^{}]*+\}\}|\{%(?:[^{}%]|%(?!\}))*+%\}"
    r"|[$#%@]\{[^{}\s]{1,100}+\}|\$\([A-Za-z_]\w*+\)"
    r"|\{(?:[\w.\-]++|\[\w*+\])*+(?:![rsa])?(?::[^{}\s]{0,40}+|(?:,\s?[\w.:#/\-]++){0,4}+)\}"
    r"|\$[A-Za-z_]\w*+\$?"
)
# Escapes of strings; those in paths of Windows are not found, because paths are found first.
_ESCAPE = re.compile(r"\\(?:[nrt\"'\\]|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2})")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")

FIELDS = (
    Pattern("printf", "fields such as %s, %1$d and %(name)s", re.compile("[%~]"), _PRINTF),
    Pattern(
        "braces", "fields such as {}, {name}, {{name}} and $(NAME)", re.compile("[{$]"), _BRACES
    ),
    Pattern("escape", r"escapes of strings such as \n and \u00e4", re.compile(r"\\"), _ESCAPE),
    Pattern("entity", "entities such as &amp; and &#160;", re.compile("&"), _ENTITY),
)


def is_field(text: str) -> bool:
    """Whether a text is one field, such as `%s` or `{name}`, and nothing else."""
    return any(field.fullmatch(text) for field in (_PRINTF, _BRACES))


def fields_in_turn(text: str) -> list[str]:
    """The fields without a name or a number, such as `%s`, which are filled in their order."""
    if "%" not in text:
        return []
    fields = (match[0] for match in _PRINTF.finditer(text))
    return [field for field in fields if _IN_TURN.fullmatch(field)]
