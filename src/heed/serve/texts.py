"""`Text`: a text of a request, from its segments to its answer."""

from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import Protocol

from heed.documents.passages import split_passage
from heed.documents.segment import Segment
from heed.serve.request import Answer, Request, SegmentAnswer
from heed.serve.work.directions import Route, find_route
from heed.serve.work.translating import Translating
from heed.translate.result import Translation


class Document(Protocol):
    """A text, split into what is to be translated and what is between."""

    @property
    def segments(self) -> Sequence[Segment]:
        """What is to be translated, in order."""
        ...

    def join(self, translations: Sequence[Translation]) -> str:
        """The text with each segment replaced by its translation."""
        ...


class Text:
    """A text on its way.

    Args:
        route: how it is translated.
        document: the text, split.
        first: number of its first segment among all of the request.
    """

    def __init__(self, route: Route, document: Document, first: int) -> None:
        self.route = route
        self.document = document
        self.first = first
        self._translating: dict[int, Translating] = {}

    def take(self, translating: Translating, numbers: Collection[int]) -> None:
        """Where the segments of these numbers come from."""
        for place in range(len(self.document.segments)):
            if self.first + place in numbers:
                self._translating[place] = translating

    async def segment(self, place: int) -> SegmentAnswer:
        """Wait for a segment.

        Raises:
            Refusal: the request failed, or its time is over.
        """
        translation = await self._translating[place].get(self.first + place)
        return SegmentAnswer(source=self.document.segments[place].text, translation=translation)

    async def answer(self) -> Answer:
        """Wait for all segments, and join them.

        Raises:
            Refusal: the request failed, or its time is over.
        """
        segments = [await self.segment(place) for place in range(len(self.document.segments))]
        found = [segment.translation for segment in segments]
        return Answer(
            text=self.document.join(found),
            source=self.route.source,
            alternatives=_alternatives(self.document, found),
            segments=tuple(segments),
            model=self.route.model,
        )


def read_texts(request: Request, routes: Sequence[Route]) -> list[Text]:
    """The texts of a request, split.

    Args:
        request: whose texts.
        routes: the directions that are served.

    Raises:
        Refusal: there is no such direction.
        UsageError: there is no such way to split.
    """
    documents = [split_passage(text, request.split) for text in request.texts]
    firsts = accumulate((len(document.segments) for document in documents), initial=0)
    route = find_route(routes, request.source, request.target, request.model)
    return [
        Text(route, document, first) for document, first in zip(documents, firsts, strict=False)
    ]


def _alternatives(document: Document, found: Sequence[Translation]) -> tuple[str, ...]:
    """The text in other words: the n-th alternative of every segment, joined."""
    n_others = max((len(one.alternatives) for one in found), default=0)
    # A segment with fewer translations than others repeats its last one.
    others = (
        document.join([[one, *one.alternatives][: rank + 1][-1] for one in found])
        for rank in range(1, n_others + 1)
    )
    return tuple(dict.fromkeys(others))
