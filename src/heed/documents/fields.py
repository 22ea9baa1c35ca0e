r"""Fields of messages, such as `%s`, `%1$d` and `{name}`, which a program fills in.

A mark takes the place of each field while the text around it is translated. A program fills fields
such as `%s` and `{}` in the order of the text. If they change places, they get numbers where the
format of the message has some (`%2$s`, `{1}`); else they keep the order of the source.

Source: the GNU gettext manual, section 15.3 (formats by programming language).
"""

import re
from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass

from heed.text.protection.icu import find_messages

FIELD = re.compile(
    r"%(?:\([^()\s%]+\)|\d+\$|<\w+>)?(?:-(?=\d)|[+0#'])*+(?:\*|\d++)?+(?:\.(?:\*|\d++))?+"
    r"(?:hh|ll|[hlLqjzt])?[diouxXeEfgGcrsaup@]"
    r"|%%|%\d+|\$\{[^{}\s]*\}|\{\{[^{}]*\}\}|\{[^{}\s]*\}|\{\w+(?:,\s*[\w.:#/\-]+){1,4}\}"
)
"""Fields of C, Python, Qt, shells and templates, of messages whose format is not declared."""

# Noncharacters, so no text contains them.
_MARK = re.compile("\ufdd0([0-9]+)\ufdd1")
_ICU = re.compile(r"\{[^{},]+,\s*(?:plural|select)")
_BRACES = r"\{\{|\}\}|\{(?:[^{}]|\{[^{}]*\})*\}"
# Zeros are flags and digits: both are possessive, because a search would try every border.
_WIDTH = r"(?:\*(?:\d++\$)?|\d++)?+(?:\.(?:\*(?:\d++\$)?|\d++)?+)?+"
_C = (
    rf"%(?:\d+\$)?[-+ #0'I]*+{_WIDTH}(?:hh|ll|I64|I32|[hlLqjzt])?"
    r"(?:[diouxXeEfFgGaAcCsSpnm%@]|<PRI\w+>)"
)
_GCC = r"%(?:\d+\$)?[-+#q\d.*lwzt]*[A-Za-z<>'{}%]"
_LISP = r"~[-+\d,'@:#vV]*[A-Za-z%&~{}\[\]();<>^]"
_FILLED_BY_PLACE = r"%(?![%(<{|]|m\Z|\d+(?:\$|\Z))|\{[:!}]"
_NEVER = r"(?!)"


@dataclass(frozen=True, slots=True)
class Format:
    """The fields of a format.

    Attributes:
        field: matches each field.
        in_turn: matches a field that is filled by its place, without a name or a number.
        numbered: such a field with its number, counted from 1; None if the format has no numbers.
        quotes_twice: whether an apostrophe is written twice.
    """

    field: re.Pattern[str] = FIELD
    in_turn: re.Pattern[str] = re.compile(_FILLED_BY_PLACE)
    numbered: Callable[[str, int], str] | None = None
    quotes_twice: bool = False


def _with_dollar(field: str, number: int) -> str:
    return f"%{number}${field[1:]}"


def _in_braces(field: str, number: int) -> str:
    return f"{{{number - 1}{field[1:]}"


def _format(
    fields: str,
    in_turn: str = _FILLED_BY_PLACE,
    numbered: Callable[[str, int], str] | None = None,
    *,
    quotes_twice: bool = False,
) -> Format:
    field = re.compile(f"{fields}|{FIELD.pattern}")
    return Format(field, re.compile(in_turn), numbered, quotes_twice)


PLAIN = Format()
"""The format of a text that declares none."""
IN_DOLLARS = _format(r"\$[\w@]+\$", _NEVER)
"""The format of a browser's extensions: `$NAME$`."""
IN_JSON = _format(
    r"\$t\([^()]*\)|@(?:\.\w+)?:(?:[\w.-]*\w|\{[^{}]*\}|\([\w.]*\))|(?<![\w:]):[A-Za-z_]\w+(?![\w:])"
)
"""The format of texts in JSON, also for what libraries fill in by a name: `:name` (Laravel) and
other texts, `$t(key)` (i18next) and `@:key` (vue-i18n)."""
_LIKE_C = _format(_C, r"%(?![%(]|m\Z|\d+(?:\$|\Z)|<(?!PRI))", _with_dollar)
_NUMBERED = Format(numbered=_with_dollar)
_PLACES = _format(r"%L?(?:\d{1,2}|n)", _NEVER)
_FORMATS = {
    "c": _LIKE_C,
    "objc": _LIKE_C,
    "gcc-internal": _format(_GCC, r"%(?![%<>'{}]|[mRr]\Z|\d+\$)", _with_dollar),
    "gfc-internal": _format(_GCC, r"%(?![%<>'{}]|m\Z|\d+\$)", _with_dollar),
    "php": _NUMBERED,
    "perl": _NUMBERED,
    "sh-printf": _NUMBERED,
    "awk": _NUMBERED,
    "tcl": _NUMBERED,
    "java-printf": _format(
        r"%(?:\d+\$|<)?[-#+ 0,(]*+\d*+(?:\.\d++)?(?:[tT][A-Za-z]|[A-Za-z%])",
        r"%(?![%n]\Z|<|\d+\$)",
        _with_dollar,
    ),
    "java": _format(rf"'[{{}}][^']*'|{_BRACES}", _NEVER, quotes_twice=True),
    "csharp": _format(_BRACES, _NEVER),
    "python": _format(r"%\([^()]*\)[-+ #0]*+" + _WIDTH + r"[hlL]?[A-Za-z]"),
    "python-brace": _format(_BRACES, r"\{[:!}]", _in_braces),
    "rust": _format(_BRACES, r"\{[:}]", _in_braces),
    "qt": _PLACES,
    "qt-plural": _PLACES,
    "kde": _PLACES,
    "smalltalk": _PLACES,
    "sh": _format(r"\$\w+|\$\{[^{}]*\}", _NEVER),
    "ruby": _format(r"%[-+ #0*\d.$]*<\w+>[-+ #0*\d.]*[A-Za-z]|%\{\w+\}"),
    "boost": _format(r"%\d+%|%\|[^|]*\|", _NEVER),
    "lisp": _format(_LISP, r"~(?![~%&])"),
    "scheme": _format(_LISP, r"~(?![~%&])"),
    "object-pascal": _format(r"%\d+:[-\d.*]*[A-Za-z]", r"%(?!%|\d+:)"),
}
"""Formats by the name that gettext's flags give them: `c` in `c-format`."""


def format_of(flags: str) -> Format:
    """The format that an entry of a catalog declares.

    Args:
        flags: its flags, such as `fuzzy, c-format`.
    """
    names = (flag.strip().removesuffix("-format") for flag in flags.split(","))
    return next((_FORMATS[name] for name in names if name in _FORMATS), PLAIN)


@dataclass(frozen=True, slots=True)
class Masked:
    """A text with marks for its fields.

    Attributes:
        text: the text; a mark is `MARK`.
        fields: the fields, in order.
        format: their format.
        quotes_twice: whether each apostrophe stands for two.
    """

    text: str
    fields: list[str]
    format: Format
    quotes_twice: bool

    def restored(self, text: str) -> str:
        """A translation of the text, with the fields for its marks."""
        if not self.fields:
            return text
        order = [int(number) for number in _MARK.findall(text)]
        turn = [n for n in order if self.format.in_turn.match(self.fields[n])]
        written = dict(enumerate(self.fields))
        if turn != sorted(turn):
            numbered = self._numbered()
            plain = [self.fields[n] for n in sorted(turn)]
            written |= numbered or dict(zip(turn, plain, strict=True))
        text = text.replace("'", "''") if self.quotes_twice else text
        return _MARK.sub(lambda mark: written[int(mark[1])], text)

    def _numbered(self) -> dict[int, str]:
        """Numbers for the fields that are filled by their places; empty if they cannot have any."""
        numbered, is_in_turn = self.format.numbered, self.format.in_turn.match
        places = [n for n, field in enumerate(self.fields) if is_in_turn(field)]
        others = [field for field in self.fields if not is_in_turn(field)]
        # A width or precision given as `*` or `{}` is filled in turn, too.
        is_simple = not any("*" in field or "{" in field[1:] for field in self.fields)
        if numbered is None or not is_simple or any(re.match(r"%\d+\$|\{\d", f) for f in others):
            return {}
        return {n: numbered(self.fields[n], turn) for turn, n in enumerate(places, 1)}


MARK = _MARK
"""Matches a mark in a `Masked` text."""


def mask(text: str, format: Format) -> Masked:
    """Replace the fields of a text by marks; those inside ICU messages stay."""
    messages = list(find_messages(text)) if _ICU.search(text) else []
    starts = [one.start for one in messages]
    fields: list[str] = []
    parts: list[str] = []
    start = 0
    for match in format.field.finditer(text):
        before = bisect(starts, match.start())
        is_within = before > 0 and match.start() < messages[before - 1].end
        if is_within or "\ufdd0" in text:
            continue
        parts += (text[start : match.start()], f"\ufdd0{len(fields)}\ufdd1")
        fields.append(match[0])
        start = match.end()
    masked = "".join([*parts, text[start:]])
    apostrophes = re.findall("'+", masked)
    quotes_twice = format.quotes_twice and bool(fields) and set(apostrophes) <= {"''"}
    if quotes_twice:
        masked = masked.replace("''", "'")
    return Masked(masked, fields, format, quotes_twice)


def has_same_fields(first: str, second: str, format: Format) -> bool:
    """Whether two texts have the same fields, in any order."""
    found = (sorted(format.field.findall(text)) for text in (first, second))
    return next(found) == next(found)
