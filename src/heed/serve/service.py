"""`Service`: what every API asks for, in Python: texts in, answers out.

The shapes of requests and answers are in `shapes/`, batches in `work/scheduler.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from heed.serve.refusal import Refusal
from heed.serve.settings import ServeSettings
from heed.serve.work.job import Call, Job
from heed.serve.work.models import Models, Route
from heed.serve.work.scheduler import Scheduler
from heed.translate.lines import Line
from heed.translate.result import Translation

AUTO = "auto"
"""The source language of a request whose language is to be detected."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """Texts to translate, and how.

    Attributes:
        texts: each independent of the others.
        source: language code, or `AUTO`.
        target: language code.
        alternatives: other translations of each text.
        alignment: also record cross-attention.
        options: fields of `DecodeOptions`, by name.
    """

    texts: Sequence[str]
    source: str
    target: str
    alternatives: int = 0
    alignment: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One text, translated.

    Attributes:
        text: the translation.
        source: language code of the text, given or detected.
        confidence: of the detection, 0 to 1; None if the language was given.
        alternatives: other translations.
        segments: the translation of each sentence.
        model: name of the model.
    """

    text: str
    source: str
    confidence: float | None
    alternatives: tuple[str, ...]
    segments: tuple[Translation, ...]
    model: str


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

    async def translate(self, request: Request) -> list[Answer]:
        """Translate all texts of a request, one answer each, in order.

        Raises:
            Refusal: the languages are not served.
        """
        route = self._route(request.source, request.target)
        translator = self.models.open(route.model)
        call = Call(
            target_lang=request.target if translator.reader.target_langs else None,
            alignment=request.alignment,
            alternatives=request.alternatives,
            options=tuple(sorted(request.options.items())),
        )
        lines = [Line(text) for text in request.texts]
        job = Job(translator, call, lines, timeout_s=self.settings.work.timeout_s)
        found = await self._scheduler.run(job)
        return [
            Answer(
                text=one.text,
                source=route.source,
                confidence=None,
                alternatives=tuple(other.text for other in one.alternatives),
                segments=(one,),
                model=route.model,
            )
            for one in found
        ]

    def close(self) -> None:
        """Finish the work and end the threads."""
        self._scheduler.close()

    def _route(self, source: str, target: str) -> Route:
        for route in self.routes:
            if route.source == source and route.target == target:
                return route
        raise Refusal(400, f"{source} to {target} is not served.", code="no_such_direction")
