"""What a corpus is made of and what is to be learnt from it: the wishes, before a file is opened.

Not here: what becomes of them; read on in `prepare.py`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from heed.data.clean import CleanConfig
from heed.data.mono import Mono
from heed.data.readers import Part
from heed.errors import ConfigError
from heed.text.vocab import TokenizerConfig

_MOST = {"denoise": 100, "back_translate": 100, "back_translate_at": 1}


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Where the sentences are.

    Attributes:
        train: to learn from; one file may be `-`, a table with tabs from standard input.
        dev: to choose by; without it some pairs of `train` are set aside.
        test: to judge by; without it some are set aside only if `DataConfig.test_size` says so.
        mono: text in one of the languages alone, for a model of both directions.
    """

    train: tuple[Part, ...]
    dev: tuple[Part, ...] = ()
    test: tuple[Part, ...] = ()
    mono: tuple[Mono, ...] = ()

    @property
    def files(self) -> list[str]:
        """The names of all files."""
        parts = (*self.train, *self.dev, *self.test)
        return [*(name for part in parts for name in part.files), *(m.file for m in self.mono)]


@dataclass(frozen=True, kw_only=True)
class DataConfig(CleanConfig):
    """What is learnt from, and what is set aside."""

    max_length: int = 256
    """Most pieces a side may have, `<eos>` included; a longer pair is not learnt from."""
    dev_size: int | None = None
    """Pairs set aside for dev if none are given; None: a twentieth of all, 1000 at most."""
    test_size: int = 0
    """Pairs set aside for test if none are given."""
    both_directions: bool = False
    """Learn each pair both ways round, in one model: a tag says which way is wanted."""
    denoise: float = 0.5
    """Sentences of each monolingual text that an epoch restores from gaps, for each pair; 0: none.
    Source: Lewis et al. 2020."""
    back_translate: float = 1.0
    """Most sentences of each monolingual text that the model translates back, for each pair; 0:
    none. Source: Sennrich et al. 2016."""
    back_translate_at: float = 0.5
    """Share of the budget after which it does, at the next epoch."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_length < 2:
            raise ConfigError(f"data.max_length must be at least 2, but is {self.max_length}.")
        if self.dev_size is not None and self.dev_size < 1:
            raise ConfigError(f"data.dev_size must be at least 1, but is {self.dev_size}.")
        if self.test_size < 0:
            raise ConfigError(f"data.test_size must be at least 0, but is {self.test_size}.")
        for name in ("denoise", "back_translate", "back_translate_at"):
            if not 0 <= getattr(self, name) <= _MOST[name]:
                raise ConfigError(
                    f"data.{name} must lie between 0 and {_MOST[name]}, but is "
                    f"{getattr(self, name)}."
                )


def tagged_languages(
    corpus: Corpus, config: DataConfig, tokenizer: TokenizerConfig, known: tuple[str, ...]
) -> tuple[str, ...]:
    """The target languages in order of appearance, if a model needs tags to tell them apart.

    Those that it has tags for already (`known`) come first.

    Raises:
        ConfigError: both directions are wanted, but one vocabulary for both is not, or a file's
            languages are unknown.
    """
    languages = [*known, *(part.target_lang for part in corpus.train)]
    if config.both_directions:
        if not tokenizer.joint:
            raise ConfigError(
                "data.both_directions needs one vocabulary for both languages: set "
                "tokenizer.joint=true, or leave it out."
            )
        for part in (*corpus.train, *corpus.dev, *corpus.test):
            if not part.source_lang or not part.target_lang or part.source_lang == part.target_lang:
                raise ConfigError(
                    f"data.both_directions needs two languages, but {names_of([part])} is "
                    f"{part.source_lang or 'unknown'} and {part.target_lang or 'unknown'}. "
                    "Say which with --source-lang and --target-lang."
                )
        languages += [part.source_lang for part in corpus.train]
    own = {lang for part in corpus.train for lang in (part.source_lang, part.target_lang)}
    if corpus.mono and (not config.both_directions or len(own) > 2):
        raise ConfigError(
            "monolingual text needs pairs of two languages, learnt in both directions: set "
            "data.both_directions=true."
        )
    found = tuple(dict.fromkeys(languages))
    return found if known or len(found) > 1 else ()


def names_of(parts: Iterable[Part]) -> str:
    """All their files, as a person named them."""
    return " and ".join(name for part in parts for name in part.files)
