"""`Field`: a parameter of an endpoint, for checking its value and for the documentation."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from heed.serve.refusal import Refusal
from heed.serve.request import AUTO
from heed.serve.shapes.body import Parameters
from heed.serve.shapes.style import Style
from heed.text.normalize import is_unicode

Kind = Literal[
    "text",
    "texts",
    "integer",
    "integers",
    "number",
    "flag",
    "word",
    "words",
    "object",
    "objects",
    "pairs",
    "file",
]
"""`texts`: one or a list. `word`: a name or a code. `words`: a list, or comma-separated. `pairs`:
texts and their translations."""

MEANINGS: dict[Kind, str] = {
    "text": "text",
    "texts": "text or a list of texts",
    "integer": "a whole number",
    "integers": "a list of whole numbers",
    "number": "a number",
    "flag": "true or false",
    "word": "text",
    "words": "a list of names",
    "object": "an object",
    "objects": "a list of objects",
    "pairs": "a list of objects, each with the texts source and target",
    "file": "a file",
}
_TEXT_KINDS = ("text", "texts")
FLAGS = {"true": True, "1": True, "false": False, "0": False}
MAX_WORD_CHARS = 1000
"""Maximum length of a name, a code or a list of names."""


@dataclass(frozen=True, kw_only=True)
class Field:
    """A parameter.

    Attributes:
        name: its name in requests.
        kind: kind of its value.
        about: description in one sentence.
        is_required: the request is refused without it; for a text, also if it is empty.
        default: its value if it is not given.
        choices: the allowed words; empty = any.
        low: the smallest number.
        high: the largest number.
        example: a value for the documentation.
        names_stored: it names an object that the server stores; the response is 404 without it.
        is_for_model: a model reads its text, so it counts toward the limits of a key.
    """

    name: str
    kind: Kind
    about: str
    is_required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    low: float = -math.inf
    high: float = math.inf
    example: Any = None
    names_stored: bool = False
    is_for_model: bool = True


SOURCE = Field(
    name="source",
    kind="word",
    about="Language code of the text, or `auto` to detect it.",
    default=AUTO,
    example="en",
)
TARGET = Field(
    name="target",
    kind="word",
    about="Language code of the translation.",
    is_required=True,
    example="de",
)


def example_of(fields: Sequence[Field]) -> dict[str, Any]:
    """A request that works on every server with these languages."""
    return {each.name: each.example for each in fields if each.example is not None}


def take(fields: Sequence[Field], given: Parameters, style: Style) -> dict[str, Any]:
    """The value of each field, in its type. Unknown parameters are ignored.

    Raises:
        Refusal: a field is missing or invalid.
    """
    return {each.name: _value_of(each, given, style) for each in fields}


def texts_for_model(fields: Sequence[Field], values: Mapping[str, Any]) -> list[list[str]]:
    """The texts for a model, one list for each field.

    Args:
        fields: fields of a request.
        values: their values, from `take`.
    """
    return [
        as_list(value)
        for each in fields
        if each.kind in _TEXT_KINDS and each.is_for_model and (value := values[each.name])
    ]


def as_list(texts: str | list[str]) -> list[str]:
    """The value of a field of texts, with a single text as a list of one."""
    return texts if isinstance(texts, list) else [texts]


def _value_of(field: Field, given: Parameters, style: Style) -> Any:
    value: Any = (given.files if field.kind == "file" else given.values).get(field.name)
    if given.is_form and isinstance(value, list):
        value = value[0] if field.kind not in ("texts", "words") or len(value) == 1 else value
    is_empty = value == "" or (value == [] and field.kind in ("texts", "words"))
    if value is None or is_empty:
        if field.is_required:
            raise Refusal(
                400, style.missing.format(name=field.name), code="missing", field=field.name
            )
        return field.default
    if field.kind == "file":
        return value
    found = _CONVERSIONS[field.kind](value)
    if found is None or not _is_allowed(field, found):
        words = style.wrong
        if found is None and field.kind == "integer":
            words = style.not_a_number or words
        sentence = words.format(name=field.name, meaning=meaning(field))
        raise Refusal(400, sentence, code="wrong_value", field=field.name)
    _require_whole_characters(field, found, style)
    return found


def meaning(field: Field) -> str:
    """The valid values of a field, in words."""
    if field.choices:
        return f"one of {', '.join(field.choices)}"
    words = MEANINGS[field.kind]
    if math.isfinite(field.low) and math.isfinite(field.high):
        return f"{words} from {field.low:g} to {field.high:g}"
    return words


def _is_allowed(field: Field, value: Any) -> bool:
    if field.choices:
        return value in field.choices
    if isinstance(value, int | float):
        return field.low <= value <= field.high
    return True


def _require_whole_characters(field: Field, value: Any, style: Style) -> None:
    """Refuse lone surrogates: neither files nor responses can hold them."""
    texts = value if isinstance(value, list) else [value]
    if field.kind == "pairs":
        texts = [text for pair in value for text in pair]
    if not all(is_unicode(text) for text in texts if isinstance(text, str)):
        sentence = style.wrong.format(name=field.name, meaning="valid Unicode")
        raise Refusal(400, sentence, code="not_unicode", field=field.name)


_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,15}\s*")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and len(value) <= MAX_WORD_CHARS else None


def _texts(value: Any) -> str | list[str] | None:
    if isinstance(value, list):
        return value if all(isinstance(each, str) for each in value) else None
    return _text(value)


def _words(value: Any) -> list[str] | None:
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        return None
    if sum(map(len, found)) > MAX_WORD_CHARS:
        return None
    return [word.strip() for each in found for word in each.split(",") if word.strip()]


def _integer(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return int(value)
    return None


def _integers(value: Any) -> list[int] | None:
    found = [_integer(each) for each in value] if isinstance(value, list) else [None]
    return [each for each in found if each is not None] if None not in found else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e300 else None


def _flag(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return FLAGS.get(str(value).lower()) if isinstance(value, int | str) else None


def _object(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def _objects(value: Any) -> list[dict[str, Any]] | None:
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        return value
    return None


def _pairs(value: Any) -> list[tuple[str, str]] | None:
    objects = _objects(value)
    pairs = [
        (src, tgt)
        for each in objects or []
        if isinstance(src := each.get("source"), str) and isinstance(tgt := each.get("target"), str)
    ]
    return pairs if objects is not None and len(pairs) == len(objects) else None


_CONVERSIONS = {
    "text": _text,
    "texts": _texts,
    "integer": _integer,
    "integers": _integers,
    "number": _number,
    "flag": _flag,
    "word": _word,
    "words": _words,
    "object": _object,
    "objects": _objects,
    "pairs": _pairs,
}
