"""The user's settings, before anything is known of the corpus.

`recipe.py` has what follows from them: a `Draft` at once, a `Recipe` once the corpus is read.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from heed.errors import ConfigError

TaskName = Literal["translate", "lm", "mlm", "classify"]


@dataclass(frozen=True)
class Asked:
    """The user's settings, not checked yet.

    Attributes:
        values: nested dicts, as in a recipe file; by mistake there may be a value in place of a
            section.
        where: the file they come from, for messages; "" = no file.
        not_there: dotted names of settings that do not come from that file.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""
    not_there: frozenset[str] = frozenset()

    def get(self, name: str, otherwise: Any = None) -> Any:
        """The value of a setting such as `training.metric`, or `otherwise`."""
        section, _, key = name.rpartition(".")
        return (self.section(section) if section else self.values).get(key, otherwise)

    def is_set(self, name: str) -> bool:
        """Whether a setting such as `training.metric` was made."""
        section, _, key = name.rpartition(".")
        return key in (self.section(section) if section else self.values)

    def section(self, name: str) -> Mapping[str, Any]:
        """The settings of a section; empty if there is none."""
        found = self.values.get(name)
        return found if isinstance(found, Mapping) else {}

    def plus(self, name: str, value: Any) -> "Asked":
        """These settings and one more, which wins.

        Raises:
            ConfigError: `name` leads through a value, not a section.
        """
        *trail, key = name.split(".")
        inner: Mapping[str, Any] = self.values
        for section in trail:
            inner = inner.get(section, {})
            if not isinstance(inner, Mapping):
                raise ConfigError(f"{name} is a setting of {section}, which is not a section here.")
        added: Any = {key: value}
        for section in reversed(trail):
            added = {section: added}
        return self.plus_all(added)

    def plus_all(self, values: Mapping[str, Any]) -> "Asked":
        """These settings and others, as nested dicts, which win."""
        return self._with(merge(self.values, values), _names(values))

    def over(self, values: Mapping[str, Any]) -> "Asked":
        """These settings and others, as nested dicts, against which these win."""
        names = {name for name in _names(values) if not self.is_set(name)}
        return self._with(merge(values, self.values), names)

    def without(self, name: str) -> "Asked":
        """These settings without one such as `preset` or `training.time_s`."""
        section, _, key = name.rpartition(".")
        inner = self.section(section) if section else self.values
        rest = {each: value for each, value in inner.items() if each != key}
        return self._with({**self.values, section: rest} if section else rest)

    def _with(self, values: Mapping[str, Any], names: Iterable[str] = ()) -> "Asked":
        return Asked(values, self.where, self.not_there.union(names))


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` updated with the values of `over`, section by section."""
    merged = dict(base)
    for key, value in over.items():
        is_section = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = merge(merged[key], value) if is_section else value
    return merged


def _names(values: Mapping[str, Any], trail: str = "") -> Iterator[str]:
    """The dotted names of settings in nested dicts."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _names(value, f"{trail}{key}.")
        else:
            yield f"{trail}{key}"
