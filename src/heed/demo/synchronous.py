"""Generate the built-in corpus: rules that produce the same sentence in four languages at once.

The rules are in `corpus/rules.toml`, the words in `corpus/lexicon.toml`.
"""

import re
import tomllib
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any

from heed.demo.inflection import LANGUAGES, Phrase, agreeing, inflect, spell


@dataclass(frozen=True, slots=True)
class Meaning:
    """A meaning: a word, phrase or sentence in every language.

    Attributes:
        category: the name by which rules select it, such as `np` or `pet`.
        kind: the category of its head word: an `np` about a dog is of kind `pet`.
        words: the lexicon lines it is built from, in the order of the slots.
        phrases: maps a language to the phrase; a language that cannot express it is absent.
    """

    category: str
    kind: str
    words: tuple[str, ...]
    phrases: Mapping[str, Phrase]


@dataclass(frozen=True, slots=True)
class GrammarRule:
    """One rule of `rules.toml`; that file explains the fields."""

    makes: str
    slots: Mapping[str, str]
    templates: Mapping[str, str]
    head: str | None = None
    keep: int | None = None


@dataclass(frozen=True, slots=True)
class Sentence:
    """A finished sentence: the lexicon lines in it, and its text by language."""

    words: tuple[str, ...]
    texts: Mapping[str, str]


Known = Mapping[str, list[Meaning]]
"""Maps a category to its meanings."""

Scope = Mapping[str, Phrase]
"""The names in a template of one language: function words and the fillers of slots."""

# {slot} {slot.form} {slot.form@controller} {slot.form@controller.p}
_REFERENCE = re.compile(r"\{(\w+)(?:\.(\w+))?(?:@(\w+)(\.p)?)?\}")


def _fill(template: str, scope: Scope) -> str:
    """The template with every reference replaced by its form."""

    def replace(reference: re.Match[str]) -> str:
        name, form, controller, plural = reference.groups()
        agreement = scope[controller or name].agreement
        return scope[name].text(form or "", agreement.replace("s", "p") if plural else agreement)

    return _REFERENCE.sub(replace, template)


def _say(template: str, scope: Scope, head: str | None) -> Phrase:
    """The phrase in one language; with a `head`, it has all forms of the head word."""
    if head is None:
        return Phrase({"": {"": _fill(template, scope)}})
    before, place, after = template.partition("{" + head + "}")
    before, after = _fill(before, scope), _fill(after, scope)
    forms = {
        form: {key: before + (text if place else "") + after for key, text in table.items()}
        for form, table in scope[head].forms.items()
    }
    return Phrase(forms, scope[head].agreement)


def _choices(wanted: str, known: Known) -> list[Meaning]:
    """The meanings for a slot such as `"pet farm_animal"`, or `"np:pet"`: an `np` of a pet."""
    found = []
    for choice in wanted.split():
        category, _, kind = choice.partition(":")
        found += [meaning for meaning in known[category] if kind in ("", meaning.kind)]
    return found


def _words(meanings: Iterable[Meaning]) -> tuple[str, ...]:
    return tuple(word for meaning in meanings for word in meaning.words)


def _fillings(rule: GrammarRule, known: Known) -> list[tuple[Meaning, ...]]:
    """All ways to fill the slots without repetition, or a fixed sample of them."""
    choices = (_choices(wanted, known) for wanted in rule.slots.values())
    filled = []
    for meanings in product(*choices):
        words = _words(meanings)
        if len(set(words)) == len(words):
            filled.append((meanings, words))
    if rule.keep is not None and rule.keep < len(filled):
        # A checksum draws the sample: it looks random, and does not depend on other rules.
        salt = rule.templates["en"]
        lots = [zlib.crc32("|".join((salt, *words)).encode()) for _, words in filled]
        limit = sorted(lots)[rule.keep]
        filled = [item for item, lot in zip(filled, lots, strict=True) if lot < limit]
    return [meanings for meanings, _ in filled]


def expand(rule: GrammarRule, known: Known, small: Mapping[str, Scope]) -> list[Meaning]:
    """All meanings of a rule, in a fixed order.

    Args:
        rule: the rule.
        known: the meanings for its slots.
        small: the function words of each language, such as `be`.
    """
    results = []
    for meanings in _fillings(rule, known):
        slots = dict(zip(rule.slots, meanings, strict=True))
        phrases = {}
        for language, template in rule.templates.items():
            if all(language in meaning.phrases for meaning in meanings):
                scope = {name: meaning.phrases[language] for name, meaning in slots.items()}
                phrases[language] = _say(template, {**small[language], **scope}, rule.head)
        kind = slots[rule.head].kind if rule.head else rule.makes
        results.append(Meaning(rule.makes, kind, _words(meanings), phrases))
    return results


def _read_toml(name: str) -> dict[str, Any]:
    return tomllib.loads(files("heed.demo").joinpath("corpus", name).read_text(encoding="utf-8"))


def _lexicon() -> dict[str, list[Meaning]]:
    known = {}
    for kind, categories in _read_toml("lexicon.toml").items():
        for category, rows in categories.items():
            known[category] = [
                Meaning(category, category, (row.split("|")[0].strip(),), inflect(kind, row))
                for row in rows.strip().splitlines()
            ]
    return known


def _grammar() -> tuple[list[GrammarRule], dict[str, Scope]]:
    """The rules in order, and the function words of each language."""
    toml = _read_toml("rules.toml")
    rules = [
        GrammarRule(templates={language: table.pop(language) for language in LANGUAGES}, **table)
        for table in toml["rule"]
    ]
    small: dict[str, Scope] = {
        language: {
            name: Phrase({"": agreeing(cell)})
            for name, cell in toml["words"].get(language, {}).items()
        }
        for language in LANGUAGES
    }
    return rules, small


@cache
def sentences() -> tuple[Sentence, ...]:
    """All sentences of the grammar, in a fixed order, distinct in every language."""
    return _spelled("sentence")


@cache
def portraits() -> tuple[Sentence, ...]:
    """Further sentences, about people and not translated, to learn word vectors from."""
    return _spelled("portrait")


def _spelled(category: str) -> tuple[Sentence, ...]:
    return tuple(
        Sentence(
            meaning.words,
            {
                language: spell(phrase.text("", ""), language)
                for language, phrase in meaning.phrases.items()
            },
        )
        for meaning in _known()[category]
    )


@cache
def _known() -> Known:
    """All meanings that the grammar produces, by category."""
    rules, small = _grammar()
    known = _lexicon()
    for rule in rules:
        known.setdefault(rule.makes, []).extend(expand(rule, known, small))
    return known
