"""A dictionary of DeepL's glossaries: terms and their translations for one direction."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from heed.errors import DataError
from heed.serve.languages import resolve_pair
from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.shapes.deepl import SOURCE, TARGET, base_pair
from heed.serve.shapes.fields import Field
from heed.serve.shapes.storage import Pair, Terms
from heed.translate.glossary.glossary import Glossary
from heed.translate.glossary.reading import rows_of

NAME = Field(
    name="name", kind="word", about="Name of the glossary.", is_required=True, example="Sports"
)
DIRECTION = (
    replace(
        SOURCE,
        about="Language code of the terms.",
        is_required=True,
        default=None,
        example="en",
    ),
    replace(TARGET, about="Language code of their translations.", example="de"),
)
DICTIONARY = (
    *DIRECTION,
    Field(
        name="entries",
        kind="text",
        about="A term and its translation a line.",
        is_required=True,
        example="bike\tRad",
        is_for_model=False,
    ),
    Field(
        name="entries_format",
        kind="word",
        about="What separates them: tabs or commas.",
        choices=("tsv", "csv"),
        default="tsv",
        example="tsv",
    ),
)


def read_dictionary(service: Service, values: Mapping[str, Any]) -> tuple[Pair, Terms]:
    """The direction and the terms of a client's dictionary.

    Args:
        service: serves the direction.
        values: values of the fields of `DICTIONARY`.

    Raises:
        Refusal: the direction is not served, or the entries are not terms and translations (400);
            there are too many (413).
    """
    source, target = values["source_lang"], values["target_lang"]
    if not _is_served(service, source, target):
        raise Refusal(
            400, "Unsupported glossary source and target language pair.", code="wrong_value"
        )
    terms = _read_terms(values["entries"], values["entries_format"])
    require_few(service, terms)
    return base_pair(source, target), terms


def require_few(service: Service, terms: Terms) -> None:
    """Refuse a dictionary with more terms than the server allows.

    Raises:
        Refusal: it has more (413).
    """
    limit = service.settings.store.glossary_terms
    if len(terms) > limit:
        sentence = f"A glossary must have at most {limit} entries."
        raise Refusal(413, sentence, code="too_large", field="entries")


def _is_served(service: Service, source: str, target: str) -> bool:
    served = [(route.source, route.target) for route in service.routes]
    return resolve_pair(source, target, served) is not None


def _read_terms(entries: str, entries_format: str) -> Terms:
    try:
        rows = list(rows_of(entries, entries_format))
        glossary = Glossary(rows)
    except DataError as error:
        raise Refusal(400, str(error), code="wrong_value", field="entries") from None
    if glossary.banned:
        sentence = "Each line of the glossary must have a source term."
        raise Refusal(400, sentence, code="wrong_value", field="entries")
    # CSV entries may end with their two languages, which are those of the glossary.
    longer = [line for line, *_, rest in rows if rest and entries_format == "tsv"]
    if longer:
        sentence = f"Line {longer[0]} of the glossary has more than two columns."
        raise Refusal(400, sentence, code="wrong_value", field="entries")
    return glossary.entries


def spelled_terms(terms: Terms) -> str:
    """Tab-separated; a tab inside a term, which only CSV allows, becomes a blank."""
    return "\n".join(
        "\t".join(each.replace("\t", " ") for each in entry) for entry in terms.items()
    )
