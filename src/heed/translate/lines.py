"""Lines as parts that fit a model: everything before the first tensor.

The ids of a part: a language tag if the model has several target languages, pieces, `<eos>`.
`text/segment.py` decides where a line may be cut.
"""

import functools
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from heed.errors import ConfigError, DataError, UsageError
from heed.text.capitals import in_small_letters, is_in_capitals
from heed.text.normalize import normalize
from heed.text.protected import Rules, Span, find_spans
from heed.text.segment import cut
from heed.text.slots import encode_with
from heed.text.vocab import Vocab
from heed.translate.source import (
    Source,
    make_source,
    prefix_marks,
    stretches_around,
    within,
)

Text = TypeVar("Text", bound="str | Line")

MAX_SOURCE_TOKENS = 256
"""Longest source translated in one piece when the model folder does not say otherwise.

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
        prefix: how the translation must begin; "" leaves it free.
        target_lang: one of the model's target languages; None = that of the call.
        rules: what is protected in it; None = what the translator protects.

    Raises:
        UsageError: the text or the prefix is not a string.
    """

    text: str
    prefix: str = ""
    target_lang: str | None = None
    rules: Rules | None = None

    def __post_init__(self) -> None:
        require_text(text=self.text, prefix=self.prefix)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of one line that is translated in one piece.

    Attributes:
        src_ids: input of the encoder.
        prefix: target ids that the translation must begin with.
        key: of the part in the stream; seeds its random draws.
        source: the part with its protected spans; None = it has none, and was not in capitals.
        begun: the prefix as text, where there are protected spans.
    """

    src_ids: list[int]
    prefix: list[int]
    key: int
    source: Source | None = None
    begun: str = ""

    @property
    def question(self) -> tuple[object, ...]:
        """Equal for parts that a search without sampling translates equally."""
        return tuple(self.src_ids), tuple(self.prefix), self.source

    @property
    def is_copied(self) -> bool:
        """Whether it is its own translation: there is nothing but protected spans and signs."""
        return self.source is not None and not self.prefix and not self.source.has_words


class LineReader:
    """Turns lines into the ids that a model reads.

    Args:
        src_vocab: pieces of the source side.
        tgt_vocab: pieces of the target side.
        target_lang: language of the translation if a call names none.
        target_langs: all target languages of a model that has several.
        max_source_tokens: a line of more pieces is cut.
        rules: what is protected in lines that do not say it themselves.

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
    ) -> None:
        if type(max_source_tokens) is not int or max_source_tokens < 1:
            raise ConfigError(
                "max_source_tokens must be a whole number from 1, but is "
                f"{max_source_tokens!r}. {MAX_SOURCE_TOKENS} suits most models."
            )
        self.src_vocab = src_vocab
        self.tgt_vocab = tgt_vocab
        self.target_lang = target_lang
        self.target_langs = tuple(target_langs)
        self.max_source_tokens = max_source_tokens
        self.rules = Rules.default() if rules is None else rules
        slots = src_vocab.slots, tgt_vocab.slots
        self._slots = None if slots[0] is None or slots[1] is None else (slots[0], slots[1])

    def line(self, text: str, target_lang: str) -> Line:
        """A line in this target language, if the model has several."""
        return Line(text, target_lang=target_lang if self.target_langs else None)

    def tag(self, target_lang: str | None) -> list[int]:
        """The tag in front of a source, if the model has several target languages; else empty.

        Raises:
            ConfigError: the model does not translate into `target_lang`.
        """
        if not self.target_langs:
            if target_lang not in (None, "", self.target_lang):
                raise ConfigError(
                    f"This model translates into {self.target_lang or 'one language'} only, "
                    f"not into {target_lang}."
                )
            return []
        lang = target_lang or self.target_lang or self.target_langs[0]
        if lang not in self.target_langs:
            raise ConfigError(
                f"This model translates into {', '.join(self.target_langs)}, not into {lang}."
            )
        return [self.src_vocab.language_id(lang)]

    def src_ids(self, text: str, tag: list[int]) -> list[int]:
        """The ids of a whole source, however long."""
        return [*tag, *self.src_vocab.encode(normalize(text)), self.src_vocab.eos_id]

    @property
    def max_whole_tokens(self) -> int:
        """Longest source, translation or prefix that is read whole."""
        return max(MAX_WHOLE_TOKENS, self.max_source_tokens)

    def src_tokens(self, src_ids: list[int]) -> list[str]:
        """The pieces of a source that a person typed."""
        return self.src_vocab.pieces(i for i in src_ids if not self.src_vocab.is_control(i))

    def tgt_ids(self, text: str) -> list[int]:
        """The ids of a translation or of its beginning, without `<bos>` and `<eos>`."""
        text = normalize(text)
        return self.tgt_vocab.encode(text) if text else []

    def whole_src(self, text: str, tag: list[int]) -> list[int]:
        """The ids of a text that has to be read in one piece.

        Raises:
            DataError: it has more than `max_whole_tokens`.
        """
        ids = self.src_ids(text, tag)
        self._require_whole("source", len(ids) - len(tag) - 1)
        return ids

    def whole_tgt(self, text: str, what: str) -> list[int]:
        """The ids of a translation, or of its prefix, that has to be read in one piece.

        Raises:
            DataError: it has more than `max_whole_tokens`; `what` names it.
        """
        ids = self.tgt_ids(text)
        self._require_whole(what, len(ids))
        return ids

    def _require_whole(self, what: str, n_tokens: int) -> None:
        if n_tokens > self.max_whole_tokens:
            raise DataError(
                f"The {what} must have at most {self.max_whole_tokens} tokens to be read in one "
                f"piece, but has {n_tokens}. Give one sentence of it."
            )

    def parts(self, line: Line, number: int, tag: list[int]) -> list[Chunk]:
        """The parts of a line: one, several if it is too long, none if it is blank.

        Args:
            line: the line.
            number: its place in the stream, from 0.
            tag: in front of the source, unless the line has a language of its own.

        Raises:
            DataError: the model does not translate into the line's own language.
        """
        if line.target_lang:
            try:
                tag = self.tag(line.target_lang)
            except ConfigError as error:
                raise DataError(f"Line {number + 1}: {error}") from None
        text = normalize(line.text)
        if not text:
            return []
        rules = self.rules if line.rules is None else line.rules
        spans = find_spans(text, rules)
        begun = normalize(line.prefix)
        key = number * PARTS_PER_LINE
        # The translation would not begin with this prefix any more if it were put in capitals.
        small = None if begun else self._in_small_letters(text, spans)
        if spans or small is not None:
            sources = self._sources(small or text, spans, rules, in_capitals=small is not None)
            return [
                self._chunk(source, tag, "" if part else begun, key + part)
                for part, source in enumerate(sources)
            ]
        whole = self.src_vocab.encode(text)
        fits = len(whole) <= self.max_source_tokens
        return [
            Chunk(
                [*tag, *ids, self.src_vocab.eos_id],
                [] if part else self.tgt_ids(begun),
                key + part,
            )
            for part, ids in ([(0, whole)] if fits else self._stretches(text))
        ]

    def _chunk(self, source: Source, tag: list[int], begun: str, key: int) -> Chunk:
        """A part with protected spans, ready to be searched."""
        ids = encode_with(self.src_vocab, source.read, source.marks)
        prefix = encode_with(self.tgt_vocab, begun, prefix_marks(begun, source)) if begun else []
        return Chunk([*tag, *ids, self.src_vocab.eos_id], prefix, key, source, begun)

    def _in_small_letters(self, text: str, spans: list[Span]) -> str | None:
        """A line in capitals as the model reads it; None if it is not, or reads better so."""
        kept = [(span.start, span.end) for span in spans]
        if not is_in_capitals(text, kept):
            return None
        small = in_small_letters(text, kept)
        if small is None or len(self.src_vocab.encode(small)) >= len(self.src_vocab.encode(text)):
            return None  # the model has learned from text in capitals
        return small

    def _sources(
        self, text: str, spans: list[Span], rules: Rules, *, in_capitals: bool
    ) -> list[Source]:
        """The parts of a text with protected spans, or in capitals; no span is cut."""
        whole = make_source(text, spans, rules, self._slots, in_capitals=in_capitals)
        if len(encode_with(self.src_vocab, whole.read, whole.marks)) <= self.max_source_tokens:
            return [whole]
        encoded = functools.cache(lambda stretch: self.src_vocab.encode(stretch))
        stretches = cut(
            text,
            max_length=self.max_source_tokens,
            length=lambda stretch: len(encoded(stretch.strip())),
        )
        return [
            make_source(
                text[start:end],
                within(spans, start, end),
                rules,
                self._slots,
                in_capitals=in_capitals,
            )
            for start, end in stretches_around(text, stretches, spans)
        ]

    def _stretches(self, text: str) -> list[tuple[int, list[int]]]:
        """The number and ids of each part of a text that is too long; blank ones are left out."""
        # Each stretch is encoded once: to be measured, and then to be read.
        encoded = functools.cache(lambda stretch: self.src_vocab.encode(stretch))
        stretches = cut(
            text,
            max_length=self.max_source_tokens,
            length=lambda stretch: len(encoded(stretch.strip())),
        )
        return [
            (part, encoded(stretch.strip()))
            for part, stretch in enumerate(stretches)
            if stretch.strip()
        ]


def require_room(parts: Sequence[Chunk], number: int, max_length: int) -> None:
    """Refuse the prefix of a line that leaves no room for its translation.

    Args:
        parts: of the line.
        number: its place in the stream, from 0.
        max_length: most tokens of a translation.

    Raises:
        DataError: says which line, and how long its prefix is.
    """
    if parts and len(parts[0].prefix) >= max_length:
        raise DataError(
            f"The prefix of line {number + 1} must be shorter than max_length "
            f"({max_length}), but has {len(parts[0].prefix)} tokens."
        )


def require_text(**arguments: object) -> None:
    """Refuse values that are not strings; each is given by its name.

    Raises:
        UsageError: says what it is.
    """
    for name, value in arguments.items():
        if not isinstance(value, str):
            raise UsageError(f"{name} must be a string, but is {reprlib.repr(value)}.")


def require_whole(value: object, name: str, least: int) -> None:
    """Refuse values that are not whole numbers from `least`.

    Raises:
        UsageError: says what it is.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UsageError(
            f"{name} must be a whole number from {least}, but is {reprlib.repr(value)}."
        )


def texts_of(
    values: Iterable[Text],
    name: str,
    *,
    kinds: tuple[type, ...] = (str,),
    wanted: str = "a list of strings",
) -> Iterator[Text]:
    """The items of what must be several texts, each checked when it is read.

    Args:
        values: the texts. A single string is refused: it would be taken for its characters.
        name: their name in errors.
        kinds: what each may be.
        wanted: what errors say they must be.

    Raises:
        UsageError: they are something else.
    """
    if isinstance(values, str | bytes | Line) or not isinstance(values, Iterable):
        hint = " For one text give a list of one." if isinstance(values, str) else ""
        raise UsageError(f"{name} must be {wanted}, but is {reprlib.repr(values)}.{hint}")
    for number, value in enumerate(values, start=1):
        if not isinstance(value, kinds):
            raise UsageError(
                f"{name} must be {wanted}, but number {number} of them is {reprlib.repr(value)}."
            )
        yield value


def lines_of(texts: Iterable[str | Line], prefixes: Iterable[str] | None = None) -> list[Line]:
    """All lines of a list of texts, each with its prefix where there are any.

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
    """Each text as a `Line`, with its prefix where there are any; errors call the texts `name`.

    Raises:
        DataError: there are fewer prefixes than texts.
        UsageError: the texts or prefixes are not lists of strings.
    """
    remaining = None if prefixes is None else texts_of(prefixes, "prefixes")
    for number, text in enumerate(texts_of(texts, name, kinds=(str, Line)), start=1):
        line = text if isinstance(text, Line) else Line(text)
        if remaining is None:
            yield line
            continue
        prefix = next(remaining, None)
        if prefix is None:
            raise DataError(
                f"There must be one prefix for each line, but line {number} has none: "
                f"there are only {number - 1}. Use empty lines where anything may come first."
            )
        yield replace(line, prefix=prefix)


def buffers(
    lines: Iterable[Line],
    *,
    max_lines: int,
    max_chars: int,
    has_paused: Callable[[], bool] | None = None,
) -> Iterator[list[Line]]:
    """Gather a stream into portions; `has_paused`, asked after each line, ends one early."""
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
