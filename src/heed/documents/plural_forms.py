"""Plural forms of gettext catalogs: which numbers a form of a message stands for.

Source: the GNU gettext manual, section 11.2.6 (plural forms).
"""

import re
from dataclasses import dataclass
from gettext import c2py

_DECLARED = re.compile(
    r"^Plural-Forms:[ \t]*nplurals\s*=\s*(\d{1,2})\s*;\s*plural\s*=\s*([^;\n]+)", re.M | re.I
)
_LANGUAGE = re.compile(r"^Language:[ \t]*([A-Za-z]{2,3})(?:[_@-](\w+))?", re.M | re.I)
_COUNTED = 1000
# A form of few numbers may spell them: `One file`. Gettext's check allows the same.
_FEW = 4
_SLAVIC = "n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2"
_RULES = {
    language: f"nplurals={count}; plural={rule};"
    for count, rule, languages in (
        (1, "0", "id ja km ko lo ms my th vi zh"),
        (2, "(n > 1)", "fr pt-br"),
        (2, "(n != 1)", "af bg bn ca da de el en eo es et eu fi gl he hi hu it nb nl nn no pt sq"),
        (2, "(n != 1)", "sv sw ta te tr ur"),
        (3, f"(n%10==1 && n%100!=11 ? 0 : {_SLAVIC})", "be bs hr ru sr uk"),
        (3, f"(n==1 ? 0 : {_SLAVIC})", "pl"),
        (3, "(n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2", "cs sk"),
        (3, "(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2)", "lt"),
        (3, "(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2)", "lv"),
        (3, "(n==1 ? 0 : (n==0 || (n%100 > 0 && n%100 < 20)) ? 1 : 2)", "ro"),
        (4, "(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3)", "sl"),
        (
            6,
            "(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5)",
            "ar",
        ),
    )
    for language in languages.split()
}


@dataclass(frozen=True, slots=True)
class PluralForms:
    """The plural forms of a catalog.

    Attributes:
        count: the number of forms; 0 if it is not known.
        of_one: the form for the number 1; -1 if it is not known.
        has_few: whether that form is only for a few numbers.
        missing: the declaration that the header lacks, if the rule is known.
    """

    count: int = 0
    of_one: int = -1
    has_few: bool = False
    missing: str = ""


def read_plural_forms(header: str, target_lang: str = "") -> PluralForms:
    """The plural forms that a header declares, or else those of its language.

    Args:
        header: the translation of the empty message.
        target_lang: the language of the translations, if the header names none; "" = unknown.
    """
    missing = ""
    declared = _DECLARED.search(header)
    if not declared:
        language = _LANGUAGE.search(header) or _LANGUAGE.search(f"Language: {target_lang}")
        code, region = ("", "") if not language else (language[1], language[2] or "")
        rules = (_RULES.get(key.lower()) for key in (f"{code}-{region}", code))
        missing = next(filter(None, rules), "")
        declared = _DECLARED.search(f"Plural-Forms: {missing}")
    forms = _forms(declared[2]) if declared else []
    if declared is None or not forms or not 0 <= max(forms) < int(declared[1]):
        return PluralForms()
    of_one = forms[1]
    return PluralForms(int(declared[1]), of_one, forms.count(of_one) <= _FEW, missing)


def _forms(rule: str) -> list[int]:
    """The form of each number from 0; empty if the rule is malformed."""
    try:
        form_of = c2py(rule)
        return [form_of(number) for number in range(_COUNTED + 1)]
    except (ValueError, ArithmeticError, RecursionError):
        return []
