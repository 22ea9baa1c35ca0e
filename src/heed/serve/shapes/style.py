"""`Style`: how an API spells its errors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from heed.serve.refusal import Refusal

Spell = Callable[[Refusal, str], Any]
"""The body of an error answer, from the refusal and the request's id."""


@dataclass(frozen=True, kw_only=True)
class Style:
    """The words of an API.

    Attributes:
        missing: a parameter is missing; holds `{name}`.
        wrong: a parameter is not what it must be; holds `{name}` and `{meaning}`.
        not_a_number: a parameter is not a whole number; holds `{name}`; as `wrong` if empty.
        spell: the body of an error answer.
        error: JSON Schema of that body.
        prefixes: of the paths that answer in this style.
        statuses: where the API has another status for an error.
    """

    missing: str
    wrong: str
    not_a_number: str = ""
    spell: Spell
    error: Mapping[str, Any]
    prefixes: tuple[str, ...]
    statuses: Mapping[int, int] = field(default_factory=dict)
