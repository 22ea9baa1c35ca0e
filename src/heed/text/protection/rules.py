"""`Rules` for protected spans: heed's own rules, the user's regular expressions and terms."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property

from heed.errors import ConfigError
from heed.text.protection import icu, markup
from heed.text.protection.addresses import ADDRESSES
from heed.text.protection.expressions import TimeLimit, compiled
from heed.text.protection.fields import FIELDS
from heed.text.protection.numerals import NUMERALS
from heed.text.protection.pattern import Pattern
from heed.text.protection.terms import Terms

PATTERNS: tuple[Pattern, ...] = (*ADDRESSES, *FIELDS, *NUMERALS)
"""Rules of one expression each. If two find spans at one place, the earlier rule wins."""

_ABOUT = {
    "icu": icu.ABOUT,
    **markup.ABOUT,
    **{pattern.rule: pattern.about for pattern in PATTERNS},
}
NAMES = tuple(_ABOUT)


@dataclass(frozen=True)
class Rules:
    """Rules for protected spans; compiled once, immutable, and cheap to pass around and compare.

    Attributes:
        names: of heed's own rules.
        patterns: regular expressions of the user, in the syntax of Python's `regex`.
        terms: of the user.
        is_within_icu: the text is one of an ICU message, where `#` and quotations are protected.
        limit: on the time of the patterns for all texts together; None = none.
    """

    names: tuple[str, ...] = NAMES
    patterns: tuple[str, ...] = ()
    terms: Terms = field(default_factory=Terms)
    is_within_icu: bool = False
    limit: TimeLimit | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.names) - set(NAMES)):
            raise ConfigError(
                f"there is no rule {unknown[0]!r} for protected spans. Use {', '.join(NAMES)}."
            )
        for pattern in self.patterns:
            compiled(pattern)
        # One spelling, so that rules which say the same are equal.
        names = tuple(name for name in NAMES if name in self.names)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "patterns", tuple(dict.fromkeys(self.patterns)))

    @classmethod
    def default(cls) -> "Rules":
        """All of heed's own rules."""
        return _DEFAULT

    @classmethod
    def none(cls) -> "Rules":
        """Nothing is protected."""
        return _NONE

    @classmethod
    def of(cls, settings: Iterable[str], terms: Terms | None = None) -> "Rules":
        r"""The default rules, changed by settings in their order.

        Args:
            settings: `none` removes all rules, `default` adds heed's own, the name of a rule adds
                it and `-` with the name removes it. Anything else is a regular expression whose
                matches are protected, too, such as `ACME-\d+`.
            terms: terms that are protected, too.

        Raises:
            ConfigError: an expression is invalid, matches an empty text, or takes too long; or it
                is nearly the name of a rule after a `-`.
        """
        names, patterns = list(NAMES), list[str]()
        for setting in settings:
            if setting == "none":
                names, patterns = [], list[str]()
            elif setting == "default":
                names = list(NAMES)
            elif setting in NAMES:
                names.append(setting)
            elif setting[:1] == "-" and setting[1:] in NAMES:
                names = [name for name in names if name != setting[1:]]
            else:
                _require_no_typing_error(setting)
                patterns.append(setting)
        rules = cls(tuple(names), tuple(patterns), Terms() if terms is None else terms)
        return _DEFAULT if rules == _DEFAULT else rules

    @cached_property
    def own_patterns(self) -> tuple[Pattern, ...]:
        """The patterns of heed's own rules."""
        return tuple(pattern for pattern in PATTERNS if pattern.rule in self.names)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is protected."""
        return not (self.names or self.patterns or self.terms)

    def within_icu(self) -> "Rules":
        """The same rules for the texts inside an ICU message."""
        return self if self.is_within_icu else replace(self, is_within_icu=True)

    def describe(self) -> list[tuple[str, str]]:
        """The name of each rule, and a description of its spans."""
        lines = [(name, _ABOUT[name]) for name in self.names]
        lines += [("regex", pattern) for pattern in self.patterns]
        if self.terms:
            lines.append(("term", f"{len(self.terms):,} terms"))
        return lines


def _require_no_typing_error(setting: str) -> None:
    close = get_close_matches(setting[1:], NAMES, n=1, cutoff=0.8) if setting[:1] == "-" else []
    if close:
        raise ConfigError(
            f"the protected pattern {setting!r} is not a rule of heed. Did you mean -{close[0]}? "
            rf"To protect these letters themselves, write \{setting}."
        )


_DEFAULT = Rules()
_NONE = Rules(names=())
