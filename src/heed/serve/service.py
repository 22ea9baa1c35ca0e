"""`Service`: what every API asks for, in Python: texts in, answers out.

The shapes of requests and answers are in `shapes/`, batches in `work/scheduler.py`.
"""

from collections.abc import Sequence
from itertools import islice

from heed.documents.passages import Passage, split_passage
from heed.serve.languages import name_of, resolve
from heed.serve.refusal import Refusal
from heed.serve.request import Answer, Language, Request, SegmentAnswer
from heed.serve.settings import ServeSettings
from heed.serve.work.job import Call, Job
from heed.serve.work.models import Models, Route
from heed.serve.work.scheduler import Scheduler
from heed.translate.lines import Line
from heed.translate.result import Translation


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
        self._scheduler = scheduler

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
            Refusal: the languages are not served.
        """
        route = self._route(request)
        translator = self.models.open(route.model)
        call = Call(
            target_lang=route.target if translator.reader.target_langs else None,
            alignment=request.alignment,
            alternatives=request.alternatives,
            options=tuple(sorted(request.options.items())),
        )
        passages = [split_passage(text, request.split) for text in request.texts]
        lines = [Line(segment.text) for passage in passages for segment in passage.segments]
        job = Job(translator, call, lines, timeout_s=self.settings.work.timeout_s)
        found = iter(await self._scheduler.run(job))
        return [
            _answer(passage, list(islice(found, len(passage.segments))), route)
            for passage in passages
        ]

    def close(self) -> None:
        """Finish the work and end the threads."""
        self._scheduler.close()

    def _route(self, request: Request) -> Route:
        source = resolve(request.source, {route.source for route in self.routes})
        target = resolve(request.target, {route.target for route in self.routes})
        for route in self.routes:
            is_model = request.model in (None, route.model)
            if (route.source, route.target) == (source, target) and is_model:
                return route
        raise Refusal(
            400,
            f"{request.source} to {request.target} is not served.",
            code="no_such_direction",
        )


def _answer(passage: Passage, found: Sequence[Translation], route: Route) -> Answer:
    segments = zip(passage.segments, found, strict=True)
    return Answer(
        text=passage.join(found),
        source=route.source,
        segments=tuple(
            SegmentAnswer(source=segment.text, translation=one) for segment, one in segments
        ),
        alternatives=_alternatives(passage, found),
        model=route.model,
    )


def _alternatives(passage: Passage, found: Sequence[Translation]) -> tuple[str, ...]:
    """The text in other words: the n-th of the alternatives of every segment, joined."""
    n_others = max((len(one.alternatives) for one in found), default=0)
    others = [
        # A segment with fewer translations than others repeats its last one.
        passage.join([[one, *one.alternatives][: rank + 1][-1] for one in found])
        for rank in range(1, n_others + 1)
    ]
    return tuple(others)
