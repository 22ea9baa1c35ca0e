"""Flags that say what a translation must repeat unchanged, and what is read as it stands."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heed.cli.command import as_one, options
from heed.data.lines import read_lines
from heed.text.protected import Rules, Terms

if TYPE_CHECKING:
    from heed.translate.translator import Translator

option = options("Protected spans")


@dataclass(frozen=True, kw_only=True)
class Protection:
    """The values of `protect_options`.

    Attributes:
        wishes: as `Rules.of` takes them.
        terms_path: a file of terms; None = none.
        localize_numbers: whether numbers are written as the target language does.
        keep_typos: whether misspelled words are read as they stand.
    """

    wishes: tuple[str, ...]
    terms_path: str | None
    localize_numbers: bool
    keep_typos: bool

    @property
    def inputs(self) -> list[str]:
        """The files that are read."""
        return [] if self.terms_path is None else [self.terms_path]

    def applied(self, translator: "Translator") -> dict[str, Any]:
        """The arguments of `Translator.translate`; the reader knows of `keep_typos` then.

        Raises:
            ConfigError: an expression is invalid.
            DataError: the file has no terms.
        """
        translator.reader.keep_typos = self.keep_typos
        path = self.terms_path
        terms = None if path is None else Terms.of_lines(read_lines(path), path)
        is_given = bool(self.wishes) or terms is not None
        return {
            "protect": Rules.of(self.wishes, terms) if is_given else None,
            "localize_numbers": self.localize_numbers or None,
        }


def protect_options(function: Any) -> Any:
    """Add the options on protected spans to a command; it gets them as `protection`."""
    for decorate in (
        as_one(Protection, "protection"),
        option("--keep-typos", bool, "Read misspelled words as they stand, not as what is meant."),
        option("--localize-numbers", bool, "Write numbers as the target language does: 1.234,50."),
        option(
            "--protect-terms terms_path",
            str,
            "File of terms that stay as they are, one a line.",
            metavar="FILE",
        ),
        option(
            "--protect wishes",
            str,
            "What must stay as it is, beside fields, tags, URLs, numbers and so on; more than "
            "once for several. none protects nothing, default all of heed's own, -NAME all but "
            "one rule, such as -number.",
            multiple=True,
            metavar="REGEX",
        ),
    ):
        function = decorate(function)
    return function
