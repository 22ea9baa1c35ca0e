"""Input lines in JSON: each is a string, or an object with a text and options of its own.

Unknown keys are ignored, so the output of `--format jsonl` can be translated again.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from heed.disk.files import strict_json
from heed.errors import ConfigError, DataError
from heed.text.protected import Rules

if TYPE_CHECKING:
    from heed.translate.glossary.glossary import Glossary
    from heed.translate.lines import Line

TEXTS = ("target_lang", "prefix")
"""Keys with a string value that an object may have, besides `text` and `id`."""

WISHES = (*TEXTS, "glossary", "protect", "localize_numbers", "keep_typos")
"""Keys that an object may have, besides `text` and `id`."""


def json_lines(
    lines: Iterable[str], name: str, passed_on: "deque[dict[str, Any]]"
) -> "Iterator[Line]":
    """Read `--json-input`.

    Args:
        lines: one JSON value per line.
        name: the name of the input, for errors.
        passed_on: receives an item for each line, to be copied to its output: `{"id": …}` or `{}`.

    Raises:
        DataError: a line is not JSON, or has invalid keys; names the line.
    """
    for number, line in enumerate(lines, start=1):
        value = _parsed(line.removeprefix("\ufeff"), f"{name} line {number}")
        if isinstance(value, str):
            value = {"text": value}
        wanted = _line(value, f"{name} line {number}")
        passed_on.append({"id": value["id"]} if "id" in value else {})
        yield wanted


def _parsed(line: str, where: str) -> Any:
    try:
        return strict_json(line)
    except RecursionError:
        raise DataError(f"{where} is not usable JSON: nested too deeply.") from None
    except ValueError as error:
        problem = str(error)
        if isinstance(error, json.JSONDecodeError):
            problem = f"{error.msg}, at character {error.pos + 1}"
        raise DataError(
            f"{where} is not JSON ({problem}). Each line must be a string, or an object such as "
            '{"text": "…", "id": 1}.'
        ) from None


def _line(value: Any, where: str) -> "Line":
    from heed.translate.lines import Line

    if not isinstance(value, dict):
        raise DataError(
            f"{where} must be a JSON string or object, but is {json.dumps(value)[:40]}."
        )
    for key in value:
        near = get_close_matches(key, ("text", *WISHES), n=1, cutoff=0.8)
        if near and near[0] not in value:
            raise DataError(f'{where}: "{key}" is not a key; did you mean "{near[0]}"?')
    if "text" not in value:
        raise DataError(f'{where} has no "text" to translate.')
    wishes = {key: value[key] for key in TEXTS if value.get(key) is not None}
    for key, text in {"text": value["text"], **wishes}.items():
        if not isinstance(text, str):
            raise DataError(f'{where}: "{key}" must be a string, but is {json.dumps(text)[:40]}.')
    return Line(
        value["text"],
        **wishes,
        **_protection(value, where),
        glossary=_glossary(value.get("glossary"), where),
    )


def _protection(value: dict[str, Any], where: str) -> dict[str, Any]:
    """The settings for a line's text that must stay unchanged."""
    found: dict[str, Any] = {}
    wishes = value.get("protect")
    if wishes is not None:
        listed = [wishes] if isinstance(wishes, str) else wishes
        if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
            raise DataError(
                f'{where}: "protect" must be a string or a list of strings, but is '
                f"{json.dumps(wishes)[:40]}."
            )
        try:
            found["rules"] = Rules.of(listed)
        except ConfigError as error:
            raise DataError(f"{where}: {error}") from None
    for key in ("localize_numbers", "keep_typos"):
        flag = value.get(key)
        if flag is None:
            continue
        if not isinstance(flag, bool):
            raise DataError(
                f'{where}: "{key}" must be true or false, but is {json.dumps(flag)[:40]}.'
            )
        found[key] = flag
    return found


def _glossary(terms: Any, where: str) -> "Glossary | None":
    if terms is None:
        return None
    is_object = isinstance(terms, dict) and all(isinstance(each, str) for each in terms.values())
    if not is_object:
        raise DataError(
            f'{where}: "glossary" must be an object such as {{"dog": "Dackel"}}, but is '
            f"{json.dumps(terms)[:40]}."
        )
    try:
        return _compiled(tuple(terms.items()))
    except DataError as error:
        raise DataError(f"{where}: {error}") from None


@lru_cache(maxsize=16)
def _compiled(terms: tuple[tuple[str, str], ...]) -> "Glossary":
    """A glossary, cached because most lines have the same terms as the line before."""
    from heed.translate.glossary.glossary import Glossary

    return Glossary.of(dict(terms)) if terms else Glossary.empty()
