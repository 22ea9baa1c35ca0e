"""The script that a character is written in, and the letters and keys of some scripts.

`disturb.py` and `invent.py` use the letters and keys. Not here: the language of a text.
"""

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import cache

_RANGES = (
    (0x0041, "latin"),
    (0x0370, "greek"),
    (0x0400, "cyrillic"),
    (0x0530, "armenian"),
    (0x0590, "hebrew"),
    (0x0600, "arabic"),
    (0x0700, "other"),
    (0x0750, "arabic"),
    (0x0780, "other"),
    (0x08A0, "arabic"),
    (0x0900, "devanagari"),
    (0x0980, "other"),
    (0x0E00, "thai"),
    (0x0E80, "other"),
    (0x10A0, "georgian"),
    (0x1100, "hangul"),
    (0x1200, "other"),
    (0x1C80, "cyrillic"),
    (0x1C90, "georgian"),
    (0x1CC0, "other"),
    (0x1D00, "latin"),
    (0x1F00, "greek"),
    (0x2000, "other"),
    (0x212A, "latin"),
    (0x212C, "other"),
    (0x2C60, "latin"),
    (0x2C80, "other"),
    (0x2D00, "georgian"),
    (0x2D30, "other"),
    (0x2DE0, "cyrillic"),
    (0x2E00, "other"),
    (0x2E80, "han"),
    (0x3000, "other"),
    (0x3005, "han"),
    (0x3008, "other"),
    (0x3041, "kana"),
    (0x3100, "other"),
    (0x3130, "hangul"),
    (0x3190, "other"),
    (0x31F0, "kana"),
    (0x3200, "other"),
    (0x3400, "han"),
    (0x4DC0, "other"),
    (0x4E00, "han"),
    (0xA000, "other"),
    (0xA640, "cyrillic"),
    (0xA6A0, "other"),
    (0xA722, "latin"),
    (0xA800, "other"),
    (0xA960, "hangul"),
    (0xA980, "other"),
    (0xAC00, "hangul"),
    (0xD800, "other"),
    (0xF900, "han"),
    (0xFB00, "latin"),
    (0xFB13, "armenian"),
    (0xFB1D, "hebrew"),
    (0xFB50, "arabic"),
    (0xFE00, "other"),
    (0xFE70, "arabic"),
    (0xFEFF, "other"),
    (0xFF21, "latin"),
    (0xFF66, "kana"),
    (0xFFA0, "hangul"),
    (0xFFE0, "other"),
    (0x20000, "han"),
    (0x323B0, "other"),
)
"""First code of each range, and its script; ranges are as coarse as the scripts allow."""

_STARTS = [start for start, _ in _RANGES]

ROWS: dict[str, tuple[str, ...]] = {
    "latin": ("qwertyuiop", "asdfghjkl", "zxcvbnm"),
    "latin-qwertz": ("qwertzuiopü", "asdfghjklöä", "yxcvbnm"),
    "cyrillic": ("йцукенгшщзхъ", "фывапролджэ", "ячсмитьбю"),
    "greek": ("ςερτυθιοπ", "ασδφγηξκλ", "ζχψωβνμ"),
    "hebrew": ("קראטוןםפ", "שדגכעיחלךף", "זסבהנמצתץ"),
    "arabic": ("ضصثقفغعهخحجد", "شسيبلاتنمكط", "ئءؤرىةوزظ"),
}
"""Rows of keys: a slip hits the next key of the row, or a key of the row above or below."""

_LATIN_BEGINS = (
    *"bcdfghjklmnpqrstvwxz",
    *"bdgklmnprstv",
    *["br", "dr", "gr", "kr", "tr", "st", "sk", "ch", "sh", "th"],
)
_LATIN_VOWELS = (*"aeiouy", *"aeio", "ai", "ou", "ee", "ia")

SPELLED: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "latin": (_LATIN_BEGINS, _LATIN_VOWELS),
    "cyrillic": ("бвгдзклмнпрстхш", "аеиоу"),
    "greek": ("βγδζθκλμνπρστφχ", "αεηιου"),
    "armenian": ("բգդզթլկհմնպռստր", "աեիոու"),
    "georgian": ("ბგდვზთკლმნპრსტ", "აეიოუ"),
    "hebrew": ("בגדזחטלמנסעפקרש", "אוי"),
    "arabic": ("بتجحدرزسشفقكلمن", "اوي"),
    "devanagari": ("कगचजटडतदनपबमरलसह", "ािीुूेो"),
    "thai": ("กขคงจชดตนบปมรลสห", "ะาิีุู"),
    "hangul": ("가나다라마바사아자카타파하", "민준서진호영수현지은희찬"),
    "kana": ("カキクケコサシスセソタテトナニノ", "マミムメモラリルレロワンバビブド"),
    "han": ("王李张刘陈杨赵黄周吴徐孙朱马胡林", "若晨嘉怡博宇涵梓轩霖翊曦彤睿琪珩"),
}
"""By script, the letters that begin a syllable and those that go on."""


def script_of(character: str) -> str:
    """The script of a letter, such as `latin`; `other` for rare scripts and other characters."""
    if not character.isalpha():
        return "other"
    return _RANGES[bisect_right(_STARTS, ord(character)) - 1][1]


def main_script(text: str) -> str:
    """The script of most letters of a text; `other` if it has no letters of a script known here.

    Text with kana is `kana` even if it has more Chinese characters, as Japanese often does.
    """
    if text.isascii():
        return "latin" if any(map(str.isalpha, text)) else "other"
    counts = Counter(map(script_of, text))
    del counts["other"]
    if not counts:
        return "other"
    if counts["kana"] and counts["kana"] + counts["han"] > sum(counts.values()) / 2:
        return "kana"
    return max(counts, key=lambda script: counts[script])


@cache
def neighbors(layout: str) -> dict[str, str]:
    """The keys beside each key of a layout in `ROWS`."""
    rows = ROWS[layout]
    beside: dict[str, str] = {}
    for number, row in enumerate(rows):
        for place, key in enumerate(row):
            near = row[max(0, place - 1) : place] + row[place + 1 : place + 2]
            for other in (*rows[max(0, number - 1) : number], *rows[number + 1 : number + 2]):
                near += other[place : place + 1]
            beside[key] = near
    return beside


SOLID = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff"
)
"""Characters of scripts without blanks between words, for a regular expression."""

_SOLID_CHARACTER = re.compile(f"[{SOLID}]")


def is_solid(character: str) -> bool:
    """Whether the script of a character has no blanks between words."""
    return _SOLID_CHARACTER.fullmatch(character) is not None


SOLID_SCRIPTS = ("CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "FULLWIDTH", "THAI", "LAO", "KHMER")
"""Scripts without a blank between sentences: beginnings of Unicode names."""


def is_written_solid(character: str) -> bool:
    """Whether a character's script has no blank between sentences."""
    return unicodedata.name(character, "").startswith(SOLID_SCRIPTS)
