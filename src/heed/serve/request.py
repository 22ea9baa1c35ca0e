"""`Request` and `Answer`: what every API sends to the service, and what the service returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from heed.translate.glossary.glossary import Glossary
from heed.translate.result import Translation

AUTO = "auto"
"""Source language code for automatic detection."""

Format = Literal["text", "html", "xml"]
"""The format of the texts of a request."""

Split = Literal["1", "0", "nonewlines"]
"""How a text is split, see `heed.documents.passages.MODES`."""


@dataclass(frozen=True, kw_only=True)
class MarkupOptions:
    """Treatment of the tags of `html` and `xml`: arguments of `documents.markup.parse_markup`.

    Attributes:
        ignore_tags: names of elements that are kept unchanged.
        splitting_tags: names of elements that separate texts.
        non_splitting_tags: names of elements that do not.
        outline_detection: for XML, detect which elements separate texts.
    """

    ignore_tags: Sequence[str] = ()
    splitting_tags: Sequence[str] = ()
    non_splitting_tags: Sequence[str] = ()
    outline_detection: bool = True


@dataclass(frozen=True, kw_only=True)
class Direction:
    """Source and target language, and the model to use.

    Attributes:
        source: language code, or `AUTO`: detected.
        target: language code.
        model: name of the model; None = the first one for the direction.
    """

    source: str = AUTO
    target: str
    model: str | None = None


@dataclass(frozen=True, kw_only=True)
class Request:
    """Texts to translate, with options.

    Attributes:
        texts: each independent of the others.
        source: language code, or `AUTO`: detected for each text.
        target: language code.
        format: format of the texts.
        split: how a text is split into segments; None = `1` for text, `nonewlines` for markup, in
            which a line break has no meaning.
        alternatives: maximum number of other translations of each text.
        alignment: also record cross-attention.
        prefixes: required beginning of the translation of each text's first segment, or None.
        glossary: terms and their translations; None = none.
        markup: treatment of the tags of `html` and `xml`.
        options: fields of `DecodeOptions`, by name.
        model: name of the model; None = the first one for the direction.
        protect: text to keep unchanged, in the form of `Rules.of`; None = heed's own rules.
        localize_numbers: write numbers in the target language's format.
        keep_typos: do not correct misspelled words.
        memory: sources and translations to follow where a sentence is like one of the sources.
    """

    texts: Sequence[str]
    source: str = AUTO
    target: str
    format: Format = "text"
    split: Split | None = None
    alternatives: int = 0
    alignment: bool = False
    prefixes: Sequence[str] | None = None
    glossary: Glossary | None = None
    markup: MarkupOptions = field(default_factory=MarkupOptions)
    options: Mapping[str, Any] = field(default_factory=dict)
    model: str | None = None
    protect: Sequence[str] | None = None
    localize_numbers: bool = False
    keep_typos: bool = False
    memory: Sequence[tuple[str, str]] = ()

    @property
    def direction(self) -> Direction:
        """The direction of all its texts."""
        return Direction(source=self.source, target=self.target, model=self.model)


@dataclass(frozen=True, kw_only=True)
class SegmentAnswer:
    """A part of a text, usually a sentence, and its translation.

    Attributes:
        source: the part, in the source language.
        translation: its translation, with the glossary's terms.
    """

    source: str
    translation: Translation


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """A reason to check a translation, or a place in it.

    Attributes:
        kind: kind of the reason.
        sentence: the reason in words.
        segment: index of the segment; None = the whole text.
        start: start of the place in the translated text; None = no single place.
        end: its end, one past the last character.
    """

    kind: str
    sentence: str
    segment: int | None = None
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One text, translated.

    Attributes:
        text: the translation.
        source: language code of the text, given or detected.
        confidence: probability of the detection, 0 to 1; None if the language was given.
        alternatives: other translations, best first.
        segments: the translation of each part.
        model: name of the model; empty if the text is already in the target language.
        doubts: possible errors in it, in the order of the text.
    """

    text: str
    source: str
    confidence: float | None = None
    alternatives: tuple[str, ...] = ()
    segments: tuple[SegmentAnswer, ...] = ()
    model: str
    doubts: tuple[Doubt, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Language:
    """A language of source or target texts.

    Attributes:
        code: such as `en`.
        name: in English.
        targets: codes of the languages into which it can be translated.
    """

    code: str
    name: str
    targets: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """A served model.

    Attributes:
        name: its name in requests.
        directions: source and target codes that it translates.
        parameters: number of its parameters.
        size_bytes: size of its files that are in memory when it is loaded.
        dtype: number type of its computation, `int8` or `float32`.
        is_loaded: whether it is loaded.
        tokens_per_s: recent speed of a thread; None = it has not been used.
        card: its description, in Markdown.
        version: hash of its manifest.
    """

    name: str
    directions: tuple[tuple[str, str], ...]
    parameters: int
    size_bytes: int
    dtype: str
    is_loaded: bool
    tokens_per_s: float | None
    card: str
    version: str
