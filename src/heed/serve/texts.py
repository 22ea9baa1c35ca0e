"""`Text`: a text of a request, from its segments to its translation."""

from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import Protocol

from heed.documents.passages import Passage, split_passage
from heed.documents.segment import Segment
from heed.errors import DataError
from heed.serve.detect import Detector
from heed.serve.doubts import find_doubts
from heed.serve.request import Answer, Request, SegmentAnswer
from heed.serve.source import Source, find_source
from heed.serve.work.aside import run_aside
from heed.serve.work.directions import Route
from heed.serve.work.translating import Translating
from heed.translate.result import Translation


class Document(Protocol):
    """A text, split into segments and the text between them."""

    @property
    def segments(self) -> Sequence[Segment]:
        """The segments to translate, in order."""
        ...

    def join(self, translations: Sequence[Translation]) -> str:
        """The text with each segment replaced by its translation."""
        ...


class Text:
    """A text in progress.

    Args:
        source: its language and route.
        document: the text, split.
        first: number of its first segment among all segments of the request.
    """

    def __init__(self, source: Source, document: Document, first: int) -> None:
        self.source = source
        self.document = document
        self.first = first
        self._translating: dict[int, Translating] = {}

    def take(self, translating: Translating, numbers: Collection[int]) -> None:
        """Set the source of the translations of these segments."""
        for place in range(len(self.document.segments)):
            if self.first + place in numbers:
                self._translating[place] = translating

    async def segment(self, place: int) -> SegmentAnswer:
        """Wait for a segment.

        Raises:
            Refusal: the request failed or timed out.
        """
        translation = await self._translating[place].get(self.first + place)
        return SegmentAnswer(source=self.document.segments[place].text, translation=translation)

    async def answer(self) -> Answer:
        """Wait for all segments, and join them.

        Raises:
            Refusal: the request failed or timed out.
        """
        segments = [await self.segment(place) for place in range(len(self.document.segments))]
        return await run_aside(sum(len(each.source) for each in segments), self._joined, segments)

    def needs_alignment(self, place: int) -> bool:
        """Whether something must be placed in the translation of a segment."""
        return self.document.segments[place].needs_alignment

    def _joined(self, segments: Sequence[SegmentAnswer]) -> Answer:
        found = [segment.translation for segment in segments]
        text = self.document.join(found)
        return Answer(
            text=text,
            source=self.source.code,
            confidence=self.source.confidence,
            alternatives=_alternatives(self.document, found, text),
            segments=tuple(segments),
            model=self.source.route.model if self.source.route else "",
            doubts=(*self.source.doubts, *find_doubts(text, segments)),
        )


def read_texts(request: Request, routes: Sequence[Route], detector: Detector) -> list[Text]:
    """The texts of a request, split, each with its language.

    Args:
        request: the request with the texts.
        routes: the served directions.
        detector: detects the served languages.

    Raises:
        Refusal: the direction is not served.
        DataError: XML is malformed; says in which text, if there are several.
        UsageError: the format or the way to split is unknown.
    """
    documents = [_document(place, request) for place in range(len(request.texts))]
    sources = [
        find_source(
            " ".join(segment.text for segment in document.segments) or text,
            request.direction,
            routes=routes,
            detector=detector,
        )
        for text, document in zip(request.texts, documents, strict=True)
    ]
    for place, source in enumerate(sources):
        if source.route is None:  # it stays unchanged
            documents[place] = Passage([], [request.texts[place]])
    firsts = accumulate((len(document.segments) for document in documents), initial=0)
    return [Text(*each) for each in zip(sources, documents, firsts, strict=False)]


def _document(place: int, request: Request) -> Document:
    """The text at a place of the request, split."""
    text, count = request.texts[place], len(request.texts)
    if request.format == "text":
        return split_passage(text, request.split or "1")
    from heed.documents.markup import parse_markup

    try:
        return parse_markup(
            text,
            request.format,
            split_sentences=request.split or "nonewlines",
            ignore_tags=request.markup.ignore_tags,
            splitting_tags=request.markup.splitting_tags,
            non_splitting_tags=request.markup.non_splitting_tags,
            outline_detection=request.markup.outline_detection,
        )
    except DataError as error:
        if count == 1:
            raise
        raise DataError(f"Text {place + 1} of {count}: {error}") from None


def _alternatives(document: Document, found: Sequence[Translation], text: str) -> tuple[str, ...]:
    """Alternatives of the text: the n-th alternative of every segment, joined."""
    n_others = max((len(one.alternatives) for one in found), default=0)
    # A segment with fewer alternatives than others repeats its last one.
    others = dict.fromkeys(
        document.join([[one, *one.alternatives][: rank + 1][-1] for one in found])
        for rank in range(1, n_others + 1)
    )
    return tuple(other for other in others if other != text)
