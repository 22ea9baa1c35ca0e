"""Numbers with their units, identifiers with digits, and emoji.

Share of numbers that are unchanged in a human translation: 90 % of 2,760 in strings of programs,
English to German; 80 % of 2,915 in news, English to Yoruba; 49 % of 306 in captions and 47 % of 512
in conversation. People choose another spelling for three reasons. In each of these cases the
unchanged number is right, too, but a wrong number never is; so all numbers are protected.

- One digit before a word (`2 men`) is often a word in the translation: 32 % are unchanged in
  captions, 94 % in strings of programs. It has its own rule, `count`, which can be turned off.
- Separators differ: `1,234.50` is `1.234,50` in German, as `localize` of `text/numbers.py` writes.
- The unit moves: `25%` is `25 %` in German (60 % unchanged), `$50` is `50 $`. `localize`, too.

Of identifiers (`#48213`, `UTF-8`) 94 % are unchanged in strings of programs, 88 % in news; of
emoji, arrows and the like 98 %.

Not found: ordinals (`1st`; 1 % unchanged), digits in lowercase words (`mp3`), a fraction without
digits (`½`). If the unit is a word (`5 miles`, `7 PM`), the number is found and the word
translated. Numbers with blanks between groups of three digits are one number (`12 000`), even if
they are a list (`100 200`).
"""

import re

from heed.text.protection.pattern import LETTER, LETTER_BEFORE, Pattern

CURRENCY = r"(?:(?:US|CA|AU|NZ|HK|R)?\$|[€£¥₹₩₽₺₴₫฿₪₦])"
_CODES = "EUR|USD|GBP|JPY|CHF|CNY|SEK|NOK|DKK|PLN|CZK|INR|BRL|AUD|CAD"
UNIT = (
    rf"(?:(?:%|{CURRENCY})(?![\w{{(%])|‰|°[CFKR]?|℃|℉|(?:{_CODES}|[kKMGTP]i?B|[kMGT]?bit/s|[kMGT]bps|[kMGT]?Hz|dBA?"
    r"|km/h|m/s²?|[kcmnµμdh]?m[²³]?|[kmµμ]?g|[mcd]?l|[kMGm]?Wh?|k?V|mAh?|[kMh]?Pa|k?cal|k?J|k?Ω"
    rf"|[mnµμ]?s|min|h|px|pt|dpi|ppi|fps|rpm)(?!{LETTER}|\d))"
)
_SIGN = r"[+\-\u2212\u00b1]"
# Before a decimal point there may be no digit: `.5`.
_POINT = r"(?:(?<![^\s(\[\"'„“‚‘«»¿¡$€£¥+\-\u2212\u00b1])[.,](?=\d))?"
RAISED = "\u00b2\u00b3\u00b9\u2070\u2074-\u2079"
"""What stands in an expression for the raised digits."""
FRACTIONS = "\u00bc-\u00be\u2150-\u215e"
"""What stands in an expression for the signs of fractions: `½`."""
# What may follow digits: `1e5`, `10^-5`, `10²`, `2½`.
_POWER = rf"(?:[eE^][+\-\u2212]?\d++|[\u207a\u207b]?[{RAISED}]++|[{FRACTIONS}])?+"
_DIGITS = (
    rf"{_POINT}\d++(?:[ \u00a0\u202f]\d{{3}}(?!\d))*+{_POWER}"
    rf"(?:[.,:'\u2019/x×\u2013\-]\d++{_POWER})*+"
)
# The hyphen of `ב-2011` is not a minus.
_START = rf"(?:(?<!{LETTER})|(?<!{LETTER_BEFORE})(?![\-\u2212]))(?<!\d)(?<!\d[.,:'\u2019/x×\-])"
# A telephone number with its country is one number, `+1 000 000` is another.
_TELEPHONE = r"\+(?!\d{1,3}(?: \d{3})++(?!\d))\d{1,3}(?:[ \-./]\(?\d++\)?(?:\d++)?){2,8}"
# The first character of a number: looking at it first saves almost half of the time.
_FIRST = r"[+\-\u2212\u00b1.,$€£¥₹₩₽₺₴₫฿₪₦A-Z\d]"
_NUMBER = re.compile(
    rf"(?={_FIRST}){_START}(?:{_TELEPHONE}(?!{LETTER})"
    rf"|(?:{_SIGN}?(?:{CURRENCY}|(?:{_CODES})(?=[ \u00a0]))[ \u00a0]?)?{_SIGN}?{_DIGITS}"
    rf"(?:[ \u00a0\u202f]?{UNIT}|(?!{LETTER_BEFORE})))"
)
_COUNT = re.compile(
    rf"(?<![^\s(\"'„“‚‘«»¿¡])(?<![$€£¥₹₩₽₺₴₫฿₪₦][ \u00a0])(?<!(?:{_CODES})[ \u00a0])"
    rf"\d(?= (?!{UNIT})[^\W\dA-Z_]{{2}})"
)
_DIGIT = re.compile(r"\d")

_CODE_PART = "[A-Z0-9]++"
_WORD = rf"(?:{LETTER}|\d)"
# A number, though it has a capital: `1.5E-5`.
_SCIENTIFIC = rf"\d++[.,]?\d*+E[+\-\u2212]?\d++(?![\-_./:]?{_WORD})"
_IDENTIFIER = re.compile(
    # Most places are within words: seeing that first saves a fifth of the time.
    r"(?<![A-Za-z])(?=[#0-9A-Za-fv])(?:"
    rf"(?<!{LETTER_BEFORE})(?<![\d&])#(?:\d{{3,}}(?:{_WORD}|-)*+|[0-9A-Fa-f]{{6,8}}(?!{_WORD})"
    rf"|[A-Za-z_]\w++)|(?<!{LETTER_BEFORE})(?<![\d\-./])(?:"
    rf"[A-Z]{{2}}\d{{2}}(?: [A-Z0-9]{{4}}){{3,7}}(?: [A-Z0-9]{{1,3}})?(?!{_WORD})"
    rf"|[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}(?!{_WORD})"
    rf"|(?=[0-9a-f]*+(?!{_WORD}|-))(?=\d*+[a-f])(?=[a-f]*+\d)[0-9a-f]{{7,64}}"
    rf"|0x[0-9A-Fa-f]++(?!{_WORD})"
    rf"|[vV]\d++(?:\.\d++)*+(?:-{_WORD}++)?(?!{_WORD})"
    rf"|(?!\d++(?:[AP]M|[.,]?\d*+{UNIT})(?!{_WORD}))(?!{_SCIENTIFIC})"
    r"(?=[A-Z\-_./:]*+[0-9])(?=[0-9\-_./:]*+[A-Z])"
    rf"{_CODE_PART}(?:[\-_./:]{_CODE_PART})*+(?!{LETTER})))"
)

_ABOUT_IDENTIFIERS = "identifiers such as #48213, A-113, UTF-8 and x²"
# The square meter of `5 m²` is a part of the number, which is found earlier.
_SQUARE = re.compile(rf"(?<!\w)(?:[A-Za-z]|[kcdmnµμ]m)[\u207a\u207b]?[{RAISED}]++(?!\w)")

_PICTURE = (
    r"[\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299"
    r"\U0001f000-\U0001faff]"
)
# A picture may have a variation, a color of skin, and further pictures that a joiner adds.
_DRAWN = rf"{_PICTURE}[\ufe0e\ufe0f]?[\U0001f3fb-\U0001f3ff]?[\U000e0020-\U000e007f]*+"
_EMOJI = re.compile(
    rf"(?:[\U0001f1e6-\U0001f1ff]{{2}}|[0-9#*]\ufe0f?\u20e3|[©®™‼⁉ℹ]\ufe0f"
    rf"|{_DRAWN}(?:\u200d{_DRAWN})*+)++"
)
PICTURES = _PICTURE[1:-1] + r"\u20e3\ufe0f"
"""What stands in an expression for the characters of which each emoji has one."""

NUMERALS = (
    Pattern("emoji", "emoji, arrows and other pictures", re.compile(f"[{PICTURES}]"), _EMOJI),
    Pattern("identifier", _ABOUT_IDENTIFIERS, re.compile(r"[\d#]"), _IDENTIFIER, True),
    Pattern("count", "one digit before a word, such as 2 men", _DIGIT, _COUNT, True),
    Pattern("number", "numbers with their units, dates and times", _DIGIT, _NUMBER, True),
    Pattern("identifier", _ABOUT_IDENTIFIERS, re.compile(f"[{RAISED}]"), _SQUARE),
)
