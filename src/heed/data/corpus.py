"""The user's input before any file is read: the files of a corpus and its settings."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Annotated

from heed.config import Range, check
from heed.data.clean import CleanConfig
from heed.data.mono import Mono
from heed.data.readers import ParallelFiles
from heed.errors import ConfigError
from heed.text.languages import Directions
from heed.text.vocab import TokenizerConfig


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """The files of a corpus.

    Attributes:
        train: training pairs; one file may be `-`, a table with tabs from standard input.
        dev: pairs to choose the best model; without it some pairs of `train` are set aside.
        test: pairs for the final evaluation; without it `DataConfig.test_size` pairs of `train` are
            set aside.
        drawn: those of `dev` and `test` that were drawn from `train` before: their sentences in
            `train` are no leaks.
        made: more training pairs, one side of each translated by a model: not for the vocabulary,
            the known words or the model's memory.
        mono: text in one of the languages alone, for a model of both directions.
        text: files of text, for a language model.
        labeled: files of labeled text, for a classifier.
        dev_labeled: the same, to choose the best model.
        directions: those of `train`, if its files do not name the languages; else empty.
    """

    train: tuple[ParallelFiles, ...] = ()
    dev: tuple[ParallelFiles, ...] = ()
    test: tuple[ParallelFiles, ...] = ()
    drawn: tuple[str, ...] = ()
    made: tuple[ParallelFiles, ...] = ()
    mono: tuple[Mono, ...] = ()
    text: tuple[str, ...] = ()
    labeled: tuple[str, ...] = ()
    dev_labeled: tuple[str, ...] = ()
    directions: Directions = ()

    @property
    def files(self) -> list[str]:
        """The names of all files."""
        parts = (*self.train, *self.dev, *self.test, *self.made)
        pairs = [name for part in parts for name in part.files]
        others = (*self.text, *self.labeled, *self.dev_labeled)
        return [*pairs, *(mono.file for mono in self.mono), *others]


@dataclass(frozen=True, kw_only=True)
class DataConfig(CleanConfig):
    """Which pairs are learned from, and which are set aside.

    Attributes:
        max_chars, max_ratio, keep_copies, keep_duplicates: see `CleanConfig`.
        max_length: most pieces of a side, `<eos>` included; a longer pair is dropped.
        dev_size: pairs set aside for dev if none are given; None = a twentieth of all, at most
            1000.
        test_size: pairs set aside for test if none are given.
        both_directions: learn each pair in both directions, in one model; a tag names the target
            language.
        denoise: sentences of each monolingual text that an epoch restores from gaps, per pair; 0 =
            none. Source: Lewis et al. 2020.
        back_translate: most sentences of each monolingual text that the model translates back, per
            pair; 0 = none. Source: Sennrich et al. 2016.
        back_translate_at: share of the budget after which back-translation starts, at the next
            epoch.
        disturb: share of the pairs of an epoch that are disturbed: typing errors, other case,
            invented names, spans to be copied (`train/epochs/disturb.py`).
        recombine: share of the pairs of an epoch in which phrases are replaced by phrases of other
            pairs (`train/epochs/recombine.py`).
        memory: store the training pairs with the model, if they help it to translate similar
            sentences (`train/run/remember.py`).
        teachers: models that are trained first, and whose translations of the corpus are further
            training pairs (`train/teachers`). Source: Nguyen et al. 2020.

    Raises:
        ConfigError: a value is out of its range.
    """

    max_length: Annotated[int, Range(2, 1_000_000)] = 256
    dev_size: Annotated[int | None, Range(1, 1_000_000_000)] = None
    test_size: Annotated[int, Range(0, 1_000_000_000)] = 0
    both_directions: bool = False
    denoise: Annotated[float, Range(0, 100)] = 0.5
    back_translate: Annotated[float, Range(0, 100)] = 1.0
    back_translate_at: Annotated[float, Range(0, 1)] = 0.5
    disturb: Annotated[float, Range(0, 1)] = 0.0
    recombine: Annotated[float, Range(0, 1)] = 0.0
    memory: bool = True
    teachers: Annotated[int, Range(0, 12)] = 0


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """How a language model or a classifier reads text.

    Attributes:
        context: most tokens that it reads at once.
        dev_share: share held out for development: the end of each file; of labeled texts, some
            drawn at random, unless a development set is given.
        mask_share: share of the pieces that a masked language model predicts. Source: Devlin et
            al. 2019, section 3.1.
        whole_words: mask all pieces of a word or none.

    Raises:
        ConfigError: a value is out of its range.
    """

    context: Annotated[int, Range(8, 4096)] = 256
    dev_share: Annotated[float, Range(0.001, 0.5)] = 0.1
    mask_share: Annotated[float, Range(0.01, 0.9)] = 0.15
    whole_words: bool = False

    def __post_init__(self) -> None:
        check(self, "text")


def learned_directions(corpus: Corpus, config: DataConfig) -> Directions:
    """The directions of the training pairs, in order; none if one of their languages is unknown."""
    found = []
    for part in corpus.train:
        found.append((part.source_lang, part.target_lang))
        if config.both_directions:
            found.append((part.target_lang, part.source_lang))
    is_known = all(code for direction in found for code in direction)
    return corpus.directions or (tuple(dict.fromkeys(found)) if is_known else ())


def tagged_languages(
    corpus: Corpus, config: DataConfig, tokenizer: TokenizerConfig, known: tuple[str, ...]
) -> tuple[str, ...]:
    """The target languages in order of appearance, if a model needs tags to distinguish them.

    Those that already have tags (`known`) come first.

    Raises:
        ConfigError: both directions are wanted, but one vocabulary for both is not, or a file's
            languages are unknown; or dev or test pairs are in a language without a tag, or in the
            opposite direction.
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
            "monolingual text needs pairs of two languages, trained in both directions: set "
            "data.both_directions=true."
        )
    found = tuple(dict.fromkeys(languages))
    if "" in found and len(found) > 1:
        unknown = names_of(part for part in corpus.train if not part.target_lang)
        has_other = any(part.target_lang for part in corpus.train)
        why = f"because the model has several ({', '.join(known)})"
        raise ConfigError(
            f"{unknown or 'a file'} must have a target language, "
            f"{'as other files do' if has_other else why}. Set it with --source-lang and "
            "--target-lang."
        )
    tags = found if known or len(found) > 1 else ()
    held_out = (*corpus.dev, *corpus.test)
    if tags:
        _require_tagged(held_out, tags, both=config.both_directions)
    else:
        _require_same_direction(held_out, {(p.source_lang, p.target_lang) for p in corpus.train})
    return tags


def _require_tagged(parts: Iterable[ParallelFiles], tags: tuple[str, ...], *, both: bool) -> None:
    """Refuse pairs in a language that the model does not translate into.

    Args:
        parts: dev and test files.
        tags: the languages that it translates into.
        both: each pair is used in both directions.

    Raises:
        ConfigError: names the file.
    """
    for part in parts:
        for language in (part.target_lang, part.source_lang) if both else (part.target_lang,):
            if language not in tags:
                raise ConfigError(
                    f"{names_of([part])} must be translations into one of the languages that the "
                    f"model learns ({', '.join(tags)}), but {language or 'an unknown language'} is "
                    "none of them. End the file's name with its language, as in dev."
                    f"{tags[0]}, or leave the file out."
                )


def _require_same_direction(
    parts: Iterable[ParallelFiles], learned: Collection[tuple[str, str]]
) -> None:
    """Refuse pairs in the opposite direction of those that a model learns from.

    Args:
        parts: dev and test files.
        learned: source and target language of each training file.

    Raises:
        ConfigError: names the files.
    """
    for part in parts:
        direction = part.source_lang, part.target_lang
        if direction not in learned and direction[::-1] in learned and all(direction):
            raise ConfigError(
                f"{names_of([part])} must be translated in the direction of the training pairs, "
                f"{' to '.join(direction[::-1])}, but by their names or languages they are "
                f"{' to '.join(direction)}. Exchange the two sides."
            )


def names_of(parts: Iterable[ParallelFiles]) -> str:
    """All their files, as the user named them."""
    return " and ".join(name for part in parts for name in part.files)
