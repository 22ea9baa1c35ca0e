"""`Service`: what every API asks for, in Python: texts in, answers out.

The shapes of requests and answers are in `shapes/`, batches in `work/scheduler.py`.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from heed.errors import HeedError
from heed.serve.languages import name_of
from heed.serve.request import Answer, Language, Request, SegmentAnswer
from heed.serve.settings import ServeSettings
from heed.serve.texts import Text, read_texts
from heed.serve.work.aside import run_aside
from heed.serve.work.cache import Cache
from heed.serve.work.directions import Route
from heed.serve.work.failures import refusal_of
from heed.serve.work.models import Models
from heed.serve.work.scheduler import Scheduler
from heed.serve.work.translating import Translating, call_of
from heed.translate.lines import Line


class Service:
    """Translates for all clients.

    Args:
        models: what is served.
        scheduler: where lines are searched.
        settings: of the server.
    """

    def __init__(self, models: Models, scheduler: Scheduler, settings: ServeSettings) -> None:
        self.models = models
        self.settings = settings
        self.cache = Cache(settings.work.cache_mb << 20)
        self.scheduler = scheduler

    @property
    def routes(self) -> tuple[Route, ...]:
        """The directions that are served."""
        return self.models.routes

    def languages(self) -> list[Language]:
        """The languages that can be translated, and into which."""
        targets: dict[str, dict[str, None]] = {}
        for route in self.routes:
            targets.setdefault(route.source, {})[route.target] = None
        return [
            Language(code=code, name=name_of(code), targets=tuple(into))
            for code, into in targets.items()
        ]

    async def translate(self, request: Request) -> list[Answer]:
        """Translate all texts of a request, one answer each, in order.

        Raises:
            Refusal: the request is not valid, cannot be served now, or takes too long.
        """
        async with self._begun(request) as texts:
            return [await text.answer() for text in texts]

    async def stream(
        self, request: Request
    ) -> AsyncGenerator[tuple[int, int, SegmentAnswer] | list[Answer]]:
        """Translate, and give each segment as soon as it is there, in order.

        Yields:
            The index of a text, that of a segment in it, and the segment; at last all answers.

        Raises:
            Refusal: as `translate`.
        """
        async with self._begun(request) as texts:
            for index, text in enumerate(texts):
                for place in range(len(text.document.segments)):
                    yield index, place, await text.segment(place)
            yield [await text.answer() for text in texts]

    def close(self, within_s: float | None = None) -> None:
        """Finish the work and end the threads.

        Args:
            within_s: seconds after which the rest is given up; None = no such limit.
        """
        self.scheduler.close(within_s)
        self.models.close()

    @asynccontextmanager
    async def _begun(self, request: Request) -> AsyncIterator[list[Text]]:
        """The texts of a request on their way; leaving the block abandons what is unfinished."""
        n_chars = sum(map(len, request.texts))
        async with AsyncExitStack() as stack:
            try:
                texts = await run_aside(n_chars, read_texts, request, self.routes)
                for (model, alignment), lines in _groups(texts, request).items():
                    opened = await stack.enter_async_context(self.models.use(model))
                    call = call_of(
                        opened,
                        options=request.options,
                        alternatives=request.alternatives,
                        alignment=alignment,
                    )
                    translating = await run_aside(n_chars, Translating, opened, call, lines)
                    stack.callback(translating.abandon)
                    translating.start(
                        self.scheduler, self.cache, timeout_s=self.settings.work.timeout_s
                    )
                    for text in texts:
                        text.take(translating, lines)
                yield texts
            except HeedError as error:
                raise refusal_of(error) from error


def _groups(texts: list[Text], request: Request) -> dict[tuple[str, bool], dict[int, Line]]:
    """The segments of all texts, by the model and whether they need an alignment."""
    groups: dict[tuple[str, bool], dict[int, Line]] = {}
    for index, text in enumerate(texts):
        prefix = request.prefixes[index] if request.prefixes else ""
        for place, segment in enumerate(text.document.segments):
            alignment = request.alignment or segment.needs_alignment
            group = groups.setdefault((text.route.model, alignment), {})
            group[text.first + place] = Line(
                segment.text, prefix="" if place else prefix, target_lang=text.route.target
            )
    return groups
