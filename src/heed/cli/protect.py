"""Flags for text that a translation must keep unchanged, and for reading text literally."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heed.cli.command import as_one, decorated, options
from heed.data.lines import read_lines
from heed.text.protected import Rules, Terms

if TYPE_CHECKING:
    from heed.translate.translator import Translator

option = options("Protected spans")


@dataclass(frozen=True, kw_only=True)
class Protection:
    """The values of `protect_options`.

    Attributes:
        wishes: in the form of the argument of `Rules.of`.
        terms_path: a file of terms; None = none.
        localize_numbers: whether numbers are written in the target language's format.
        keep_typos: whether misspelled words are read literally.
    """

    wishes: tuple[str, ...]
    terms_path: str | None
    localize_numbers: bool
    keep_typos: bool

    @property
    def inputs(self) -> list[str]:
        """The files to read."""
        return [] if self.terms_path is None else [self.terms_path]

    def apply(self, translator: "Translator") -> None:
        """Read lines without settings of their own in this way.

        Raises:
            ConfigError: an expression is invalid.
            DataError: the file has no terms.
        """
        reader, path = translator.reader, self.terms_path
        reader.keep_typos, reader.localize_numbers = self.keep_typos, self.localize_numbers
        terms = None if path is None else Terms.of_lines(read_lines(path), path)
        if self.wishes or terms is not None:
            reader.rules = Rules.of(self.wishes, terms)


def protect_options(function: Any) -> Any:
    """Add the options on protected spans to a command; they arrive as argument `protection`."""
    decorators = (
        as_one(Protection, "protection"),
        option("--keep-typos", bool, "Do not correct misspelled words in the input."),
        option(
            "--localize-numbers", bool, "Write numbers in the target language's format: 1.234,50."
        ),
        option(
            "--protect-terms terms_path",
            str,
            "File of terms to keep unchanged, one per line.",
            metavar="FILE",
        ),
        option(
            "--protect wishes",
            str,
            "Text to keep unchanged, besides fields, tags, URLs, numbers and so on; may be given "
            "several times. none protects nothing, default heed's own rules, -NAME all but one "
            "rule, such as -number.",
            multiple=True,
            metavar="REGEX",
        ),
    )
    return decorated(function, decorators)
