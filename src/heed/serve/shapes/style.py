"""`Style`: the format of an API's errors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from heed.serve.refusal import Refusal

Spell = Callable[[Refusal, str], Any]
"""Makes the body of an error response from the refusal and the request's id."""


@dataclass(frozen=True, kw_only=True)
class Style:
    """The error messages of an API.

    Attributes:
        missing: message for a missing parameter; holds `{name}`.
        wrong: message for an invalid parameter; holds `{name}` and `{meaning}`.
        not_a_number: message for a number that is not whole; holds `{name}`; empty = `wrong`.
        spell: makes the body of an error response.
        error: JSON Schema of that body.
        prefixes: prefixes of the paths with this style.
        statuses: maps a status to the API's own, where it differs.
    """

    missing: str
    wrong: str
    not_a_number: str = ""
    spell: Spell
    error: Mapping[str, Any]
    prefixes: tuple[str, ...]
    statuses: Mapping[int, int] = field(default_factory=dict)
