"""Reads lines and cuts them into parts that fit a model, as ids.

The ids of a part: a language tag if the model has several target languages, pieces, `<eos>`.
`text/segment.py` decides where a line may be cut.
"""

import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from heed.errors import ConfigError, DataError, UsageError
from heed.text.languages import Directions, implied_source
from heed.text.memory import TranslationMemory
from heed.text.normalize import normalize
from heed.text.numbers import localizer
from heed.text.protected import Rules
from heed.text.vocab import Vocab
from heed.translate.arguments import (
    require_callable,
    require_flag,
    require_language,
    require_text,
    require_whole,
    texts_of,
)
from heed.translate.glossary.glossary import Glossary
from heed.translate.parts import Chunk, PartCutter, with_terms

Protect = Rules | str | Sequence[str]
"""Protected spans: rules, or arguments of `Rules.of`."""

MAX_SOURCE_TOKENS = 256
"""Longest source translated as a whole, unless the model folder sets another limit.

A translation has room for as many tokens (`DecodeOptions.max_length`).
"""

MIN_SOURCE_TOKENS = 64
"""Shortest limit: even a model of short sentences gets sources of this length whole.

Most sentences of most texts fit; cutting them would lose more than the unknown positions do.
"""

MAX_WHOLE_TOKENS = 1024
"""Longest side of a pair that is scored or aligned; the time grows with the square.

It is more if the model folder allows longer sources.
"""

PARTS_PER_LINE = 1 << 24
"""Distance between the keys of two lines: more parts than any line can be cut into."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line to translate, with options of its own.

    Attributes:
        text: in the source language.
        prefix: required beginning of the translation; "" = none.
        target_lang: one of the model's target languages; None = that of the call.
        rules: rules for protected spans; None = those of the translator.
        localize_numbers: write its numbers as the target language does; None = as the translator
            does.
        glossary: terms and their translations; None = that of the call, `Glossary.empty()` = none.
        keep_typos: do not correct misspelled words; None = as the translator does.

    Raises:
        UsageError: a value is of a wrong type.
    """

    text: str
    prefix: str = ""
    target_lang: str | None = None
    rules: Rules | None = None
    localize_numbers: bool | None = None
    glossary: Glossary | None = None
    keep_typos: bool | None = None

    def __post_init__(self) -> None:
        require_text(text=self.text, prefix=self.prefix)
        require_language(self.target_lang)
        if not isinstance(self.rules, Rules | None):
            raise UsageError(
                f"rules must be Rules, but is {reprlib.repr(self.rules)}. Make them: "
                'Rules.of(["none"]).'
            )
        _require_glossary(self.glossary)
        require_flag(self.localize_numbers, "localize_numbers")
        require_flag(self.keep_typos, "keep_typos")


class LineReader:
    """Turns lines into the ids that a model reads.

    `localize_numbers` and `keep_typos` apply to lines without their own setting. `directions` are
    those of the model, where its languages do not imply them.

    Args:
        src_vocab: pieces of the source side.
        tgt_vocab: pieces of the target side.
        target_lang: default language of the translation.
        target_langs: all target languages of a model that has several.
        max_source_tokens: a line of more pieces is cut.
        rules: rules for protected spans in lines without their own.
        source_lang: language of the lines, if known.
        length_limit: most tokens of a side that the model reads, with special ones; None = any.
        memories: translated pairs; the one most like a part guides its search.

    Raises:
        ConfigError: `max_source_tokens` is not such a number.
    """

    def __init__(
        self,
        src_vocab: Vocab,
        tgt_vocab: Vocab,
        *,
        target_lang: str = "",
        target_langs: Sequence[str] = (),
        max_source_tokens: int = MAX_SOURCE_TOKENS,
        rules: Rules | None = None,
        source_lang: str = "",
        length_limit: int | None = None,
        memories: Sequence[TranslationMemory] = (),
    ) -> None:
        if type(max_source_tokens) is not int or max_source_tokens < 1:
            raise ConfigError(
                "max_source_tokens must be a whole number from 1, but is "
                f"{max_source_tokens!r}. {MAX_SOURCE_TOKENS} suits most models."
            )
        self.src_vocab, self.tgt_vocab = src_vocab, tgt_vocab
        self.target_lang = target_lang
        self.target_langs = tuple(target_langs)
        self.directions: Directions = ()
        self.max_source_tokens = max_source_tokens
        self.rules = Rules.default() if rules is None else rules
        self.localize_numbers = False
        self.keep_typos = False
        self.source_lang = source_lang
        self.length_limit = length_limit
        self.memories = tuple(memories)

    def line(self, text: str, target_lang: str) -> Line:
        """A line in this target language, if the model has several."""
        return Line(text, target_lang=target_lang if self.target_langs else None)

    def tag(self, target_lang: str | None) -> list[int]:
        """The tag in front of a source, if the model has several target languages; else empty.

        Raises:
            ConfigError: the model does not translate into `target_lang`.
        """
        require_language(target_lang)
        if not self.target_langs:
            if target_lang not in (None, "", self.target_lang):
                raise ConfigError(
                    f"This model translates into {self.target_lang or 'one language'} only, "
                    f"not into {target_lang}."
                )
            return []
        _, lang = self.direction(None, target_lang)
        if lang not in self.target_langs:
            raise ConfigError(
                f"This model translates into {', '.join(self.target_langs)}, not into {lang}."
            )
        return [self.src_vocab.language_id(lang)]

    def source_into(self, target_lang: str) -> str:
        """The language of the lines that are translated into `target_lang`; "" if not known."""
        return implied_source(target_lang, self.source_lang, self.target_langs, self.directions)

    def direction(self, source_lang: str | None, target_lang: str | None) -> tuple[str, str]:
        """The languages of given pairs, as asked or else as usual here; "" if not known."""
        target = target_lang or self.target_lang or next(iter(self.target_langs), "")
        return source_lang or self.source_into(target), target

    def src_ids(self, text: str, tag: list[int]) -> list[int]:
        """The ids of a whole source, however long."""
        return [*tag, *self.src_vocab.encode(normalize(text)), self.src_vocab.eos_id]

    @property
    def max_whole_tokens(self) -> int:
        """Longest source, translation or prefix that is read whole."""
        most = max(MAX_WHOLE_TOKENS, self.max_source_tokens)
        return most if self.length_limit is None else max(1, min(most, self.length_limit - 2))

    def src_tokens(self, src_ids: list[int]) -> list[str]:
        """The pieces of a source, without the tag and `<eos>`."""
        return self.src_vocab.pieces(i for i in src_ids if not self.src_vocab.is_control(i))

    def tgt_ids(self, text: str) -> list[int]:
        """The ids of a translation or of its beginning, without `<bos>` and `<eos>`."""
        text = normalize(text)
        return self.tgt_vocab.encode(text) if text else []

    def require_whole(self, what: str, n_tokens: int) -> None:
        """Refuse a text that is too long to be read as a whole.

        Raises:
            DataError: it has more than `max_whole_tokens`; `what` names it.
        """
        if n_tokens > self.max_whole_tokens:
            raise DataError(
                f"The {what} must have at most {self.max_whole_tokens} tokens to be read in one "
                f"piece, but has {n_tokens}. Give one sentence of it."
            )

    def all_parts(
        self, lines: Sequence[Line], first_line: int, target_lang: str | None, max_length: int
    ) -> list[list[Chunk]]:
        """The parts of each line.

        Args:
            lines: of a call.
            first_line: number of the first in the stream.
            target_lang: of lines without one of their own.
            max_length: most tokens of a translation.

        Raises:
            ConfigError: the model does not translate into the language.
            DataError: the same for the language of a line, or a prefix leaves no room.
        """
        tag = self.tag(target_lang)
        found = []
        for number, line in enumerate(lines, first_line):
            found.append(self.parts(line, number, tag))
            require_room(found[-1], number, max_length, length_limit=self.length_limit)
        return found

    def parts(self, line: Line, number: int, tag: list[int]) -> list[Chunk]:
        """The parts of a line: one, several if it is too long, none if it is blank.

        Args:
            line: the line.
            number: its place in the stream, from 0.
            tag: in front of the source, unless the line has a language of its own.

        Raises:
            ConfigError: an expression of the user takes too long for it.
            DataError: the model does not translate into the line's own language.
        """
        if line.target_lang:
            try:
                tag = self.tag(line.target_lang)
            except ConfigError as error:
                raise DataError(f"Line {number + 1}: {error}") from None
        rules = self.rules if line.rules is None else line.rules
        localizes = (
            self.localize_numbers if line.localize_numbers is None else line.localize_numbers
        )
        cutter = self.cutter(
            tag,
            rules,
            write_number=localizer(*self._languages(tag)) if localizes else str,
            keep_typos=line.keep_typos,
            glossary=line.glossary,
        )
        try:
            found = cutter.parts(line.text, line.prefix, count(number * PARTS_PER_LINE))
        except ConfigError as error:  # an expression of the user takes too long
            raise ConfigError(f"Line {number + 1}: {error}") from None
        return with_terms(found, line.glossary) if line.glossary else found

    def cutter(
        self,
        tag: list[int],
        rules: Rules,
        *,
        write_number: Callable[[str], str] = str,
        max_source_tokens: int | None = None,
        keep_typos: bool | None = None,
        glossary: Glossary | None = None,
    ) -> PartCutter:
        """Makes the parts of a line.

        Args:
            tag: in front of each source.
            rules: what is protected.
            write_number: a number → its form in the translation.
            max_source_tokens: a text of more pieces is cut; None = as the reader does.
            keep_typos: do not correct misspelled words; None = as the reader does.
            glossary: terms, which are never corrected.
        """
        return PartCutter(
            src_vocab=self.src_vocab,
            tgt_vocab=self.tgt_vocab,
            max_source_tokens=max_source_tokens or self.max_source_tokens,
            tag=tag,
            rules=rules,
            write_number=write_number,
            keep_typos=self.keep_typos if keep_typos is None else keep_typos,
            glossary=glossary,
            memories=self.memories,
            source_lang=self._languages(tag)[0],
        )

    def _languages(self, tag: list[int]) -> tuple[str, str]:
        """The languages of lines with this tag, and of their translations; "" = not known."""
        langs = {self.src_vocab.language_id(lang): lang for lang in self.target_langs}
        target = langs[tag[0]] if tag else self.target_lang
        return self.source_into(target), target


def with_glossary(lines: Iterable[Line], glossary: Glossary | None) -> list[Line]:
    """Lines, with this glossary unless they have their own; UsageError if it is not a glossary."""
    _require_glossary(glossary)
    return [replace(line, glossary=glossary) if line.glossary is None else line for line in lines]


def _require_glossary(glossary: object) -> None:
    if not isinstance(glossary, Glossary | None):
        raise UsageError(
            f"glossary must be a Glossary, but is {reprlib.repr(glossary)}. Make one: "
            "heed.Glossary.read(FILE), or heed.Glossary.of({source term: target term})."
        )


def require_room(
    parts: Sequence[Chunk], number: int, max_length: int, *, length_limit: int | None = None
) -> None:
    """Refuse the prefix of a line that leaves no room for its translation.

    Args:
        parts: of the line.
        number: its place in the stream, from 0.
        max_length: most tokens of a translation.
        length_limit: most tokens of a side that the model reads, with `<bos>`; None = any.

    Raises:
        DataError: names the line and the length of its prefix.
    """
    most, limit = max_length, "max_length"
    if length_limit is not None and length_limit - 1 < max_length:
        most, limit = length_limit - 1, "the longest text that the model can write"
    if parts and len(parts[0].prefix) >= most:
        raise DataError(
            f"The prefix of line {number + 1} must be shorter than {limit} "
            f"({most}), but has {len(parts[0].prefix)} tokens."
        )


def lines_of(texts: Iterable[str | Line], prefixes: Iterable[str] | None = None) -> list[Line]:
    """All lines of a list of texts, each with its prefix if prefixes are given.

    Raises:
        DataError: there are not as many prefixes as texts.
        UsageError: the texts or prefixes are not lists of strings.
    """
    texts = list(texts_of(texts, "texts", kinds=(str, Line)))
    if prefixes is not None:
        prefixes = list(texts_of(prefixes, "prefixes"))
        if len(prefixes) != len(texts):
            raise DataError(
                f"There must be one prefix for each line, but there are {len(texts)} lines "
                f"and {len(prefixes)} prefixes."
            )
    return list(with_prefixes(texts, prefixes))


def protected(
    lines: Sequence[Line], protect: Protect | None, localize_numbers: bool | None
) -> list[Line]:
    """Lines with the settings of a call, unless they have their own.

    Args:
        lines: of the call.
        protect: rules, or arguments of `Rules.of`; None = the translator's.
        localize_numbers: write numbers as the target language does; None = as the translator does.

    Raises:
        ConfigError: an expression is invalid.
        UsageError: an argument is of a wrong type.
    """
    require_flag(localize_numbers, "localize_numbers")
    rules = rules_of(protect)
    if rules is None and localize_numbers is None:
        return list(lines)
    return [
        replace(
            line,
            rules=rules if line.rules is None else line.rules,
            localize_numbers=(
                localize_numbers if line.localize_numbers is None else line.localize_numbers
            ),
        )
        for line in lines
    ]


def rules_of(protect: Protect | None) -> Rules | None:
    """The rules of a `protect` argument; None stays None.

    Raises:
        ConfigError: an expression is invalid.
        UsageError: it is something else.
    """
    if protect is None or isinstance(protect, Rules):
        return protect
    wishes = [protect] if isinstance(protect, str) else protect
    return Rules.of(texts_of(wishes, "protect"))


def pairs_of(src: Iterable[str], tgt: Iterable[str]) -> tuple[list[str], list[str]]:
    """Sources, and a target for each.

    Raises:
        DataError: there are not as many targets as sources.
        UsageError: they are not lists of strings.
    """
    sources, targets = list(texts_of(src, "src")), list(texts_of(tgt, "tgt"))
    if len(sources) != len(targets):
        raise DataError(
            f"There must be one target for each source, but there are {len(sources)} sources "
            f"and {len(targets)} targets."
        )
    return sources, targets


def with_prefixes(
    texts: Iterable[str | Line], prefixes: Iterable[str] | None = None, *, name: str = "texts"
) -> Iterator[Line]:
    """Each text as a `Line`, with its prefix if given; errors call the texts `name`.

    Raises:
        DataError: there are fewer prefixes than texts, or more.
        UsageError: the texts or prefixes are not lists of strings.
    """
    number = 0
    remaining = None if prefixes is None else texts_of(prefixes, "prefixes")
    for number, text in enumerate(texts_of(texts, name, kinds=(str, Line)), start=1):
        line = text if isinstance(text, Line) else Line(text)
        if remaining is None:
            yield line
            continue
        prefix = next(remaining, None)
        if prefix is None:
            raise DataError(
                f"There must be one prefix for each line, but line {number} has none: there are "
                f"only {number - 1}. Use an empty line for no prefix."
            )
        yield replace(line, prefix=prefix)
    if remaining is not None and next(remaining, None) is not None:
        raise DataError(
            f"There must be one prefix for each line, but there are more than the {number} lines."
        )


def buffers(
    lines: Iterable[Line],
    *,
    max_lines: int,
    max_chars: int,
    has_paused: Callable[[], bool] | None = None,
) -> Iterator[list[Line]]:
    """Gather a stream into portions; `has_paused`, called after each line, ends one early.

    Raises:
        UsageError: a limit is not a whole number from 1, or `has_paused` is not a function.
    """
    require_whole(max_lines, "buffer_lines", 1)
    require_whole(max_chars, "buffer_chars", 1)
    require_callable(has_paused, "has_paused")
    portion: list[Line] = []
    n_chars = 0
    for line in lines:
        portion.append(line)
        n_chars += len(line.text)
        is_full = len(portion) >= max_lines or n_chars >= max_chars
        if is_full or (has_paused and has_paused()):
            yield portion
            portion, n_chars = [], 0
    if portion:
        yield portion
