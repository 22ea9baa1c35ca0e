"""`--memory FILE`, `--no-memory`: pairs to follow where a sentence is like one of them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heed.cli.command import Session, as_one, decorated, options
from heed.cli.models import ModelFlags, load_translator, model_files
from heed.cli.protect import Protection

if TYPE_CHECKING:
    from heed.translate.translator import Translator

option = options("Translation memory")


@dataclass(frozen=True, kw_only=True)
class Memories:
    """The values of `memory_options`.

    Attributes:
        memory_paths: files of pairs.
        no_memory: whether the pairs that are stored with the model are left out.
    """

    memory_paths: tuple[str, ...]
    no_memory: bool

    def inputs(self, opening: ModelFlags) -> list[str]:
        """The files to read, those of the models included."""
        return [*self.memory_paths, *model_files(opening.model, *opening.beside)]

    def load(
        self, session: Session, opening: ModelFlags, protection: Protection
    ) -> "tuple[Translator, str | None]":
        """Open a translator, and give it the pairs of the files.

        Args:
            session: of the command.
            opening: the model; pairs stored with it stay unless they are left out.
            protection: settings of the translator, for its lines and the pairs.

        Returns:
            The translator, and the language to translate into.

        Raises:
            ConfigError: an expression of `protection` is invalid.
            DataError: a file cannot be read as pairs, or holds no terms.
            UsageError: it is not a file of both languages.
        """
        translator, target_lang = load_translator(session, opening)
        # First: a pair equals only a line that is read in the same way.
        protection.apply(translator)
        if self.no_memory:
            translator.reader.memories = ()
        if not self.memory_paths:
            return translator, target_lang
        from heed.translate.remember import remember_file

        for path in self.memory_paths:
            n_pairs = remember_file(
                translator, path, source_lang=opening.source_lang or "", target_lang=target_lang
            )
            guide = "pair guides" if n_pairs == 1 else "pairs guide"
            session.say(f"{path}: {n_pairs:,} {guide} translations of similar sentences.")
        return translator, target_lang


def memory_options(function: Any) -> Any:
    """Add the options of translation memories to a command; they arrive as `memories`."""
    decorators = (
        as_one(Memories, "memories"),
        option("--no-memory", bool, "Do not use the training pairs that the model remembers."),
        option(
            "--memory memory_paths",
            str,
            "Translated pairs (.tsv, .csv, .tmx, .xliff, .po) to follow in similar sentences; may "
            "be given several times.",
            multiple=True,
            metavar="FILE",
        ),
    )
    return decorated(function, decorators)
