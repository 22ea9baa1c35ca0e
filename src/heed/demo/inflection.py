"""From a dictionary entry to all forms of a word, in Chinese, English, Spanish and French.

This module knows the regular forms that the built-in corpus needs. Entries in
`corpus/lexicon.toml` list the irregular ones.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

LANGUAGES = ("zh", "en", "es", "fr")
PERSONS = ("1s", "2s", "3s", "1p", "3p")

Table = dict[str, str]
"""Maps agreement to text: `{"pf": "rouges"}` for plural and feminine, `""` for all."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A word or phrase in one language.

    Attributes:
        forms: maps the name of a form to its table; "" is the dictionary form.
        agreement: of the word, one letter each: person 1, 2, 3; number s, p; gender m, f.
    """

    forms: Mapping[str, Table]
    agreement: str = ""

    def text(self, form: str, agreement: str) -> str:
        """The first form whose key has only letters of `agreement`.

        Raises:
            LookupError: there is none, which is a mistake in the corpus files.
        """
        for key, text in self.forms[form].items():
            if not key.strip(agreement):
                return text
        raise LookupError(f"{self.forms[form]} has nothing for agreement {agreement!r}")


def agreeing(cell: str) -> Table:
    """A table by person (`"suis es est sommes sont"`), or by gender and number (`"le/la/les"`)."""
    if len(persons := cell.split()) == len(PERSONS):
        return dict(zip(PERSONS, persons, strict=True))
    masculine, feminine, *plurals = cell.split("/")
    plural = dict(zip(("pm", "pf"), (plurals * 2)[:2], strict=False))
    return plural | {"m": masculine, "f": feminine}


def plural(word: str, language: str) -> str:
    """The regular plural; irregular ones are in the lexicon."""
    if language == "es":
        return word + ("s" if word[-1] in "aeiouéó" else "es")
    if language == "fr":
        return word if word[-1] in "sxz" else word + ("x" if word.endswith("eau") else "s")
    return word + "s"


def _split_notes(cell: str) -> tuple[str, dict[str, str]]:
    """`"eat (past ate)"` → `"eat"` and the forms in brackets: `{"past": "ate"}`."""
    word, _, notes = cell.partition("(")
    pairs = (note.strip().partition(" ") for note in notes.rstrip(") ").split(",") if note.strip())
    return word.strip(), {name: text for name, _, text in pairs}


def _noun(cell: str, language: str) -> Phrase:
    if language == "zh":
        return Phrase({"": {"": cell[2:]}, "classifier": {"": cell[1]}})
    article, singular, *many = cell.replace(",", "").split()
    forms = {"": {"": singular}, "many": {"": many[0] if many else plural(singular, language)}}
    return Phrase(forms, "3s" + ("f" if article in ("una", "une") else "m"))


def _profession(cell: str, language: str) -> Phrase:
    if language == "zh":  # 我是一名学生, but 我们是学生
        return Phrase({"a": {"s": cell, "p": cell[2:]}})
    if language == "en":
        return Phrase({"a": {"s": cell, "p": plural(cell.split()[1], language)}})
    return Phrase({"a": _adjective_table(cell, language)})


def _mass(cell: str, language: str) -> Phrase:
    bare = re.sub("^(el|la|le) ", "", cell)
    some = f"de {cell}" if language == "fr" else bare
    return Phrase({"": {"": bare}, "the": {"": cell}, "some": {"": some}}, "3s")


def _person(cell: str, language: str, agreement: str) -> Phrase:
    # Spanish "me gusta el té", but "a Ana le gusta el té": only a third person is named.
    clitic = dict(zip(PERSONS, ("me", "te", "le", "nos", "les"), strict=True))[agreement[:2]]
    to = f"a {cell} " if cell else ""
    forms = {"": {"": cell}, "dative": {"": to + clitic}, "dative_not": {"": f"{to}no {clitic}"}}
    return Phrase(forms, agreement)


def _adjective_table(cell: str, language: str) -> Table:
    masculine, _, feminine = cell.partition("/")
    feminine = feminine or masculine
    many = {"pm": plural(masculine, language), "pf": plural(feminine, language)}
    return many | {"m": masculine, "f": feminine}


_COPULAS = {
    "estar": ("estoy estás está estamos están", "estaba estabas estaba estábamos estaban"),
    "ser": ("soy eres es somos son", "era eras era éramos eran"),
}


def _adjective(cell: str, language: str) -> Phrase:
    if language == "zh":
        return Phrase({"": {"": cell.removesuffix("的")}, "before": {"": cell}})
    word, notes = _split_notes(cell)
    if language == "en":
        return Phrase({"": {"": word}})
    agreed = _adjective_table(word.removeprefix("_ "), language)
    if language == "fr":
        nothing = {"": ""}
        after = word.startswith("_")
        return Phrase(
            {"": agreed, "pre": nothing if after else agreed, "post": agreed if after else nothing}
        )
    present, past = _COPULAS["estar" if "estar" in notes else "ser"]
    return Phrase({"": agreed, "is": agreeing(present), "was": agreeing(past)})


def _each(table: Table, pattern: str) -> Table:
    return {key: pattern.format(text) for key, text in table.items()}


def _verb_en(verb: str, notes: dict[str, str]) -> Phrase:
    stem = verb.removesuffix("e")
    third = notes.get("present", f"{verb} {verb}s").split()[1]
    return Phrase(
        {
            "": {"": verb},
            "present": {"3s": third, "": verb},
            "present_not": {"3s": f"doesn't {verb}", "": f"don't {verb}"},
            "past": {"": notes.get("past", f"{stem}ed")},
            "gerund": {"": f"{stem}ing"},
        }
    )


_SPANISH_ENDINGS = {
    "ar": ("o as a amos an", "é aste ó amos aron", "ando"),
    "er": ("o es e emos en", "í iste ió imos ieron", "iendo"),
    "ir": ("o es e imos en", "í iste ió imos ieron", "iendo"),
}


def _verb_es(verb: str, notes: dict[str, str]) -> Phrase:
    stem = verb[:-2]
    present, past, gerund = _SPANISH_ENDINGS[verb[-2:]]
    regular = {
        "present": " ".join(stem + ending for ending in present.split()),
        "past": " ".join(stem + ending for ending in past.split()),
        "gerund": stem + gerund,
    }
    forms = regular | notes
    present_table = agreeing(forms["present"])
    return Phrase(
        {
            "": {"": verb},
            "present": present_table,
            "present_not": _each(present_table, "no {}"),
            "past": agreeing(forms["past"]),
            "future": _each(agreeing("voy vas va vamos van"), "{} a " + verb),
            "now": _each(agreeing(_COPULAS["estar"][0]), "{} " + forms["gerund"]),
        }
    )


def _verb_fr(verb: str, notes: dict[str, str]) -> Phrase:
    stem = verb[:-2]
    ours = "eons" if verb.endswith("ger") else "ons"
    present = agreeing(notes.get("present", f"{stem}e {stem}es {stem}e {stem}{ours} {stem}ent"))
    participle = notes.get("participle", f"{stem}é")
    have = agreeing("ai as a avons ont")
    return Phrase(
        {
            "": {"": verb},
            "present": present,
            "present_not": _each(present, "ne {} pas"),
            "past": _each(have, "{} " + participle),
            "past_not": _each(have, "ne {} pas " + participle),
            "future": _each(agreeing("vais vas va allons vont"), "{} " + verb),
        }
    )


def _verb(cell: str, language: str) -> Phrase:
    if language == "zh":
        return Phrase({"": {"": cell}, "past": {"": cell + "了"}})
    verb, notes = _split_notes(cell)
    return {"en": _verb_en, "es": _verb_es, "fr": _verb_fr}[language](verb, notes)


_KINDS: dict[str, Callable[[str, str], Phrase]] = {
    "noun": _noun,
    "profession": _profession,
    "mass": _mass,
    "proper": _mass,
    "adjective": _adjective,
    "determiner": lambda cell, _: Phrase({"": agreeing(cell) if "/" in cell else {"": cell}}),
    "verb": _verb,
    "fixed": lambda cell, _: Phrase({"": {"": cell}}),
}


def inflect(kind: str, row: str) -> dict[str, Phrase]:
    """All forms of one line of the lexicon, by language; a cell "-" has none.

    Args:
        kind: the section of the line: noun, profession, mass, person, proper, ...
        row: English, Chinese, Spanish and French, separated by `|`.
    """
    cells = dict(zip(("en", "zh", "es", "fr"), map(str.strip, row.split("|")), strict=True))
    if kind == "person":
        agreement, cells["en"] = cells["en"].split(" ", 1)
        return {language: _person(cell, language, agreement) for language, cell in cells.items()}
    read = _KINDS[kind]
    return {language: read(cell, language) for language, cell in cells.items() if cell != "-"}


# Patterns and replacements, applied in this order.
_SPELLING = {
    "en": [(r"\b([Aa]) (?=[aeio])", r"\1n ")],
    "es": [(r"\b([aA]) el\b", r"\1l"), (r"\bde el\b", "del"), (r" \?", "?"), (r"¿ ", "¿")],
    "fr": [
        (r"\bce (?=[aeiouéèêœh])", "cet "),
        (r"\b([mts])a (?=[aeiouéèêœh])", r"\1on "),
        (r"\b(j|l|d|n|qu)e (?=[aeiouéèêœhAEIOUÉ])", r"\1'"),
        (r"\bla (?=[aeiouéèêœhAEIOUÉ])", "l'"),
        (r"\bde le\b", "du"),
        (r"\bà le\b", "au"),
    ],
    "zh": [(" ", ""), ("正在在", "正在")],
}


def spell(text: str, language: str) -> str:
    """Join words into a sentence: elision, contraction, spaces and the first capital."""
    text = " ".join(text.split())
    for pattern, replacement in _SPELLING[language]:
        text = re.sub(pattern, replacement, text)
    start = 1 if text.startswith("¿") else 0
    return text[: start + 1].upper() + text[start + 1 :]
