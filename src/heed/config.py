"""Settings: frozen dataclasses, checked by their annotations, read from TOML and written to it.

The settings themselves are beside the code that reads them, as in `train/step/config.py`.
"""

import dataclasses
import difflib
import json
import re
import tomllib
import types
import typing
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from heed.errors import ConfigError

T = TypeVar("T")

MAX_BYTES = 1 << 20
SECONDS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
NONE = "none"
"""The spelling of None in a recipe; TOML has no word for it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Range:
    """The numbers that a setting may have: `Annotated[int, Range(1, 1024)]`.

    Attributes:
        low: the smallest.
        high: the largest.
        hint: advice, shown after the message.
        above_low: whether `low` itself is excluded.
        below_high: whether `high` itself is excluded.
    """

    low: float
    high: float
    hint: str = ""
    above_low: bool = False
    below_high: bool = False

    def __str__(self) -> str:
        if not (self.above_low or self.below_high):
            return f"from {_shown(self.low)} to {_shown(self.high)}"
        low = f"{'above' if self.above_low else 'of at least'} {_shown(self.low)}"
        return f"{low} and {'below' if self.below_high else 'at most'} {_shown(self.high)}"

    def holds(self, value: float) -> bool:
        """Whether `value` is in the range; NaN is not."""
        is_above = value > self.low if self.above_low else value >= self.low
        is_below = value < self.high if self.below_high else value <= self.high
        return is_above and is_below


@dataclasses.dataclass(frozen=True, slots=True)
class Choices:
    """The words that a setting may be: `Annotated[str, Choices(TABLE)]`."""

    words: Collection[str]


def check(config: Any, section: str) -> None:
    """Check every field of a dataclass against its annotation; call it in `__post_init__`.

    Args:
        config: the dataclass, whose fields are bool, int, float, str, a `Literal`, a tuple of one
            of these, or any of them `| None`; with `Annotated` a `Range` or `Choices`.
        section: its name in a recipe, for messages.

    Raises:
        ConfigError: names the first field that is wrong, what it must be, and what it is.
    """
    for name, hint in _hints(type(config)).items():
        if mistake := mistake_in(hint, getattr(config, name)):
            raise ConfigError(f"{section}.{name} {mistake}")


def mistake_in(hint: Any, value: Any) -> str:
    """`must be a whole number from 1 to 9, but is 0. Use 1.`; empty if the value fits the hint."""
    kinds, limits, is_optional = _parts_of(hint)
    if value is None and is_optional:
        return ""
    way_out = f" {limits.hint}" if isinstance(limits, Range) and limits.hint else ""
    is_right = any(_is_a(kind, value) for kind in kinds)
    if is_right and isinstance(limits, Range):
        is_right = limits.holds(value)
    elif is_right and isinstance(limits, Choices):
        is_right = value in limits.words
    if is_right:
        return ""
    words = " or ".join(_described(kind, limits) for kind in kinds)
    return f"must be {words}, but is {value!r}.{way_out}"


def described(hint: Any) -> str:
    """The values of an annotation in words: `a whole number from 1 to 9, or none`."""
    kinds, limits, is_optional = _parts_of(hint)
    words = " or ".join(_described(kind, limits) for kind in kinds)
    return f"{words}, or {NONE}" if is_optional else words


def _parts_of(hint: Any) -> tuple[list[Any], Any, bool]:
    """The types of an annotation, its `Range` or `Choices`, and whether None is one of them."""
    limits = None
    if typing.get_origin(hint) is typing.Annotated:
        hint, limits, *_ = typing.get_args(hint)
    members = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    kinds = [kind for kind in members if kind is not types.NoneType]
    return kinds, limits, len(kinds) < len(members)


def _is_a(kind: Any, value: Any) -> bool:
    """Whether a value has this type; a whole number is a float too, but true is not a number."""
    if typing.get_origin(kind) is typing.Literal:
        return isinstance(value, str) and value in typing.get_args(kind)
    if typing.get_origin(kind) is tuple:
        item = typing.get_args(kind)[0]
        return isinstance(value, tuple | list) and not any(mistake_in(item, one) for one in value)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _described(kind: Any, limits: Range | Choices | None) -> str:
    if typing.get_origin(kind) is typing.Literal:
        return f"one of {', '.join(typing.get_args(kind))}"
    if isinstance(limits, Choices):
        return f"one of {', '.join(limits.words)}"
    if typing.get_origin(kind) is tuple:
        return f"a list, each {described(typing.get_args(kind)[0])}"
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}[kind]
    return f"{words} {limits}" if isinstance(limits, Range) else words


def _shown(number: float) -> str:
    return str(number) if isinstance(number, int) else f"{number:g}"


_HINTS: dict[type[Any], dict[str, Any]] = {}


def _hints(cls: type[Any]) -> dict[str, Any]:
    """The annotations of a dataclass, kept: options are checked at every call of a translator."""
    if cls not in _HINTS:
        _HINTS[cls] = typing.get_type_hints(cls, include_extras=True)
    return _HINTS[cls]


def parse_duration(text: str | float) -> float:
    """Seconds from `90s`, `30min`, `60m`, `2h`, `1h30m`, or from a bare number of seconds.

    Raises:
        ConfigError: it is not a duration.
    """
    if isinstance(text, int | float) and abs(text) < 1 << 64:
        return float(text)
    if not isinstance(text, str):  # a file may hold anything
        raise ConfigError(f"a duration is written like 90s, 30min, 2h or 1h30m, but not {text!r}.")
    parts = re.findall(r"(\d+(?:\.\d*)?)\s*([a-z]*)\s*", text.lower())
    spelled = "".join(number + unit for number, unit in parts)
    known = all(unit in SECONDS for _, unit in parts) or [unit for _, unit in parts] == [""]
    if not parts or not known or spelled != re.sub(r"\s", "", text.lower()):
        raise ConfigError(f"a duration is written like 90s, 30min, 2h or 1h30m, but not {text!r}.")
    return sum(float(number) * SECONDS[unit or "s"] for number, unit in parts)


def build_config(
    cls: type[T],
    values: Mapping[str, Any],
    *,
    where: str = "",
    without: Iterable[str] = (),
    also_wrong: Iterable[str] = (),
    sections: Mapping[str, type[Any]] | None = None,
) -> T:
    """Check nested values and make the dataclass of them.

    A setting whose name ends in `_s` is in seconds and may be a duration (`30min`).

    Args:
        cls: the dataclass.
        values: as TOML or JSON gives them.
        where: the file they come from, for messages.
        without: dotted keys that do not come from that file.
        also_wrong: mistakes that the caller found in that file; they are reported with the others.
        sections: by field name, the dataclass of a section whose type the values decide.

    Raises:
        ConfigError: lists every mistake, one a line.
    """
    reader = _Reader(cls, where, frozenset(without), sections or {})
    reader.mistakes += [f"{where}: {mistake}" if where else mistake for mistake in also_wrong]
    config = reader.section(cls, values, ())
    if len(reader.mistakes) > 1:
        listed = "".join(f"\n  {mistake}" for mistake in reader.mistakes)
        raise ConfigError(f"{len(reader.mistakes)} settings are wrong:{listed}")
    if reader.mistakes:
        raise ConfigError(reader.mistakes[0])
    return typing.cast(T, config)


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        ConfigError: it is missing, far too large for settings, or not TOML; names the line.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ConfigError(f"{path} is larger than {MAX_BYTES} bytes: it has no settings.")
        return _parse_toml(data.decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}.") from None
    except RecursionError:
        raise ConfigError(f"{path} is not valid TOML: nested too deeply.") from None
    except ValueError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None


def _parse_toml(text: str) -> dict[str, Any]:
    """The values of a TOML text.

    Raises:
        ValueError: it is not TOML, or holds a whole number of more than 64 bits, which TOML does
            not guarantee and Python may refuse to print.
        RecursionError: it is nested too deeply.
    """
    values = tomllib.loads(text)
    waiting: list[Any] = [values]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            waiting.extend(value.values() if isinstance(value, dict) else value)
        elif isinstance(value, int) and value.bit_length() > 64:
            raise ValueError("a whole number has more than 64 bits")
    return values


def to_toml(config: Any) -> str:
    """Write a dataclass as TOML, from which `read_toml` and `build_config` make an equal one.

    Nested dicts of settings are written as they are.
    """
    return "\n".join(_tables(config, ())).lstrip("\n") + "\n"


def _tables(config: Any, trail: tuple[str, ...]) -> Iterator[str]:
    sections = []
    for name, value in _settings(config):
        is_section = isinstance(value, Mapping) and isinstance(config, Mapping)
        if is_section or dataclasses.is_dataclass(value):
            sections.append((name, value))
        else:
            yield f"{name} = {_toml_value(value)}"
    for name, value in sections:
        yield f"\n[{'.'.join((*trail, name))}]"
        yield from _tables(value, (*trail, name))


def _settings(config: Any) -> Iterator[tuple[str, Any]]:
    """Name and value of each setting, except those that are None by default."""
    if isinstance(config, Mapping):
        yield from config.items()
        return
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if value is not None or field.default is not None:
            yield field.name, NONE if value is None else value


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str | Path):
        # JSON escapes all characters that TOML must escape, except DEL.
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        pairs = (f"{_toml_value(str(key))} = {_toml_value(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, Iterable):
        return "[" + ", ".join(_toml_value(item) for item in value) + "]"
    raise TypeError(f"no TOML for {type(value).__name__}")


def parse_override(text: str) -> tuple[str, Any]:
    """Name and value of one `section.key=value`.

    Raises:
        ConfigError: it has another form.
    """
    name, equals, spelled = (part.strip() for part in text.partition("="))
    if not equals or not all(name.split(".")):
        raise ConfigError(f"an override is written section.key=value, but not {text!r}.")
    return name, _spelled_value(spelled)


def _spelled_value(spelled: str) -> Any:
    try:
        parsed = _parse_toml(f"value = {spelled}")
    except (ValueError, RecursionError):
        return spelled
    # More than one key: the text held a line break, so it is not a single value.
    return parsed["value"] if set(parsed) == {"value"} else spelled


class _Reader:
    """One pass over nested values that collects all mistakes instead of stopping at the first."""

    def __init__(
        self,
        root: type[Any],
        where: str,
        without: frozenset[str],
        sections: Mapping[str, type[Any]],
    ) -> None:
        self.sections = sections
        self.known = list(_dotted_keys(root, (), sections))
        self.where = where
        self.without = without
        self.mistakes: list[str] = []

    def section(self, cls: type[Any], values: Any, trail: tuple[str, ...]) -> Any:
        """The dataclass of these values, or None after a mistake."""
        if not isinstance(values, Mapping):
            self._note(trail, f"{'.'.join(trail)} must be a section, but is {values!r}.")
            return None
        before = len(self.mistakes)
        hints = {**_hints(cls), **({} if trail else self.sections)}
        fields = {field.name: field for field in dataclasses.fields(cls) if field.init}
        for name in values:
            if name not in fields:
                self._note_unknown((*trail, name), list(fields))
        arguments = {}
        for name, field in fields.items():
            inner = _section_type(hints[name])
            if inner and (name in values or hints[name] is inner):
                arguments[name] = self.section(inner, values.get(name, {}), (*trail, name))
            elif name in values:
                arguments[name] = self._setting(hints[name], values[name], (*trail, name))
            elif field.default is field.default_factory is dataclasses.MISSING:
                self._note((*trail, name), f"{'.'.join((*trail, name))} is missing.")
        if len(self.mistakes) > before:
            return None
        try:
            return cls(**arguments)
        except ConfigError as error:
            self._note(trail, str(error))
            return None

    def _setting(self, hint: Any, value: Any, trail: tuple[str, ...]) -> Any:
        key = ".".join(trail)
        try:
            if isinstance(value, str) and value.lower() == NONE and _admits(hint, types.NoneType):
                return None
            if isinstance(value, str) and key.endswith("_s") and _admits(hint, int, float):
                value = parse_duration(value)
        except ConfigError as error:
            self._note(trail, f"{key}: {error}")
            return None
        if mistake := mistake_in(hint, value):
            self._note(trail, f"{key} {mistake}")
            return None
        if isinstance(value, list):
            return tuple(value)
        is_float = _admits(hint, float) and not _admits(hint, int) and type(value) is int
        return float(value) if is_float else value

    def _note_unknown(self, trail: tuple[str, ...], siblings: list[str]) -> None:
        # The same name in another section comes before a similar name in this one.
        nearest = [key for key in self.known if key.split(".")[-1] == trail[-1]]
        near = difflib.get_close_matches(trail[-1], siblings, n=1)
        nearest += [".".join((*trail[:-1], name)) for name in near]
        hint = f"; did you mean {nearest[0]}?" if nearest else f" ({', '.join(siblings)} are)."
        self._note(trail, f"{'.'.join(trail)} is not a setting{hint}")

    def _note(self, trail: tuple[str, ...], mistake: str) -> None:
        is_from_file = self.where and ".".join(trail) not in self.without
        self.mistakes.append(f"{self.where}: {mistake}" if is_from_file else mistake)


def setting_names(cls: type[Any]) -> list[str]:
    """The dotted names of all settings of a dataclass and of its sections."""
    return list(_dotted_keys(cls, (), {}))


def _dotted_keys(
    cls: type[Any], trail: tuple[str, ...], sections: Mapping[str, type[Any]]
) -> Iterator[str]:
    hints = {**_hints(cls), **sections}
    for field in dataclasses.fields(cls):
        inner = _section_type(hints[field.name])
        if inner:
            yield from _dotted_keys(inner, (*trail, field.name), {})
        else:
            yield ".".join((*trail, field.name))


def _section_type(hint: Any) -> type[Any] | None:
    """The dataclass that a field holds, or holds unless it is None."""
    choices = typing.get_args(hint) or (hint,)
    found = (c for c in choices if isinstance(c, type) and dataclasses.is_dataclass(c))
    return next(found, None)


def _admits(hint: Any, *kinds: type[Any]) -> bool:
    """Whether a value of one of these types fits, as in `Annotated[int | None, Range(1, 9)]`."""
    return hint in kinds or any(_admits(part, *kinds) for part in typing.get_args(hint))
