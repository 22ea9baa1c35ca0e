"""`Request` and `Answer`: what every API asks of the service, and what it gets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from heed.translate.glossary.glossary import Glossary
from heed.translate.result import Translation

AUTO = "auto"
"""The source language of a request whose language is to be detected."""

Format = Literal["text", "html", "xml"]
"""What the texts of a request are."""

Split = Literal["1", "0", "nonewlines"]
"""What splits a text, see `heed.documents.passages.MODES`."""


@dataclass(frozen=True, kw_only=True)
class MarkupOptions:
    """What the tags of `html` and `xml` mean; the arguments of `documents.markup.parse_markup`.

    Attributes:
        ignore_tags: names of elements that are kept as they are.
        splitting_tags: names of elements that part texts.
        non_splitting_tags: names of elements that do not.
        outline_detection: for XML, find out which elements part texts.
    """

    ignore_tags: Sequence[str] = ()
    splitting_tags: Sequence[str] = ()
    non_splitting_tags: Sequence[str] = ()
    outline_detection: bool = True


@dataclass(frozen=True, kw_only=True)
class Direction:
    """From which language into which, and by which model.

    Attributes:
        source: language code, or `AUTO`: detected.
        target: language code.
        model: name of the model; None = the first that translates the direction.
    """

    source: str = AUTO
    target: str
    model: str | None = None


@dataclass(frozen=True, kw_only=True)
class Request:
    """Texts to translate, and how.

    Attributes:
        texts: each independent of the others.
        source: language code, or `AUTO`: detected for each text.
        target: language code.
        format: what the texts are.
        split: what splits a text into segments; None = `1` for text, `nonewlines` for markup,
            in which a line break means nothing.
        alternatives: the largest number of other translations of each text.
        alignment: also record cross-attention.
        prefixes: how the translation of each text's first segment must begin; None leaves all
            free.
        glossary: terms and their translations; None = none.
        markup: which tags of `html` and `xml` mean what.
        options: fields of `DecodeOptions`, by name.
        model: name of the model; None = the first that translates the direction.
        protect: what must stay as it is, as `Rules.of` takes it; None = heed's own rules.
        localize_numbers: write numbers as the target language does.
        keep_typos: read misspelled words as they stand.
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

    @property
    def direction(self) -> Direction:
        """Of all its texts."""
        return Direction(source=self.source, target=self.target, model=self.model)


@dataclass(frozen=True, kw_only=True)
class SegmentAnswer:
    """A part of a text, mostly a sentence, and its translation.

    Attributes:
        source: in the language of the text.
        translation: with the terms of the glossary.
    """

    source: str
    translation: Translation


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """A reason to look at a translation, or at a place in it.

    Attributes:
        kind: which reason.
        sentence: the reason in words.
        segment: index of the segment; None = the whole text.
        start: where the place begins in the text of the answer; None = no one place.
        end: where it ends there, one past its last character.
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
        confidence: of the detection, 0 to 1; None if the language was given.
        alternatives: other translations, best first.
        segments: the translation of each part.
        model: name of the model; empty if the text is in the target language already.
        doubts: what may be wrong with it, in the order of the text.
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
    """A language that texts may be in.

    Attributes:
        code: such as `en`.
        name: in English.
        targets: codes of the languages it is translated into.
    """

    code: str
    name: str
    targets: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """A model that is served.

    Attributes:
        name: by which requests choose it.
        directions: source and target codes of what it translates.
        parameters: numbers it was trained to.
        size_bytes: of its files that are in memory when it is open.
        dtype: the numbers it computes in, `int8` or `float32`.
        is_loaded: whether it is open.
        tokens_per_s: that a thread wrote lately; None = it has not been used.
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
