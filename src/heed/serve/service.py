"""`Service`: the operations behind every API, in Python: texts in, translations out.

The formats of requests and responses are in `shapes/`, batches in `work/scheduler.py`.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TypeVar
from weakref import WeakValueDictionary

from heed.errors import FormatError, HeedError
from heed.serve.describe import Descriptions, languages_of
from heed.serve.detect import Detection, Detector
from heed.serve.languages import name_of
from heed.serve.refusal import Refusal
from heed.serve.request import AUTO, Answer, Direction, Language, ModelInfo, Request, SegmentAnswer
from heed.serve.settings import ServeSettings
from heed.serve.source import Source, find_source
from heed.serve.texts import Text, read_texts
from heed.serve.work.aside import run_aside
from heed.serve.work.cache import Cache
from heed.serve.work.deadline import Deadline, require_wanted
from heed.serve.work.directions import Route, no_models
from heed.serve.work.failures import refusal_of, refusal_of_model
from heed.serve.work.job import Errand
from heed.serve.work.models import Models, Use
from heed.serve.work.results import Results
from heed.serve.work.scheduler import Scheduler
from heed.serve.work.translating import InWork, Translating, call_of
from heed.serve.work.versions import Opened
from heed.text.protected import Rules
from heed.text.protection.expressions import TimeLimit
from heed.translate.lines import Line
from heed.translate.result import Alignment, Continuation, NextToken, PairScore
from heed.translate.translator import Translator

PATTERN_CHARS = 10_000
"""Checking a regular expression, and searching a text for it, may take a second."""

PATTERNS_S = 5.0
"""Time that the regular expressions of a request may take for all of its texts and pairs."""

TEXT_CHARS = 50
"""Handling a text takes about as long as reading this many characters of it."""

DETECTION_CHARS = 1000
"""So does detecting its language."""

PAIR_CHARS = 1000
"""Reading a remembered pair takes about as long as this many characters of text."""

ALIGNED_CHARS = 2000
"""A longer segment gets no alignment: one of 25,000 tokens on both sides would take 5 GB."""

FILE_THREADS = 2
"""Files that are read at the same time. A web page of 10 MB can take minutes and gigabytes."""

WAITING_FILE_BYTES = 64 << 20
"""Limit on the bytes of all files that wait to be read."""

Found = TypeVar("Found")
IsWanted = Callable[[], bool]


class Service:
    """Translates for all clients.

    Args:
        models: the served models.
        scheduler: searches lines.
        settings: settings of the server.
        on_answered: called with the answers of each request, for statistics.
    """

    def __init__(
        self,
        models: Models,
        scheduler: Scheduler,
        settings: ServeSettings,
        *,
        on_answered: Callable[[Sequence[Answer]], None] | None = None,
    ) -> None:
        self._on_answered = on_answered
        self.models = models
        self.settings = settings
        self.cache = Cache(settings.work.cache_mb << 20)
        self._in_work: InWork = WeakValueDictionary()
        self.scheduler = scheduler
        # Threads of their own: files must not block searches, nor the end of the process.
        self._files = Scheduler(
            n_threads=FILE_THREADS,
            batch_tokens=1,
            max_waiting_chars=WAITING_FILE_BYTES,
            thread_name="heed-file",
        )
        self._descriptions = Descriptions(models, scheduler.speeds)
        self._languages = languages_of(models.routes)
        self._detector = Detector([code for r in models.routes for code in (r.source, r.target)])

    @property
    def routes(self) -> tuple[Route, ...]:
        """The served directions."""
        return self.models.routes

    def languages(self) -> list[Language]:
        """The source languages, each with its target languages."""
        return [language for language in self._languages.values() if language.targets]

    def all_languages(self) -> Mapping[str, Language]:
        """Every language by its code; those that are only targets have no targets themselves."""
        return self._languages

    def require_models(self) -> None:
        """Refuse a request that needs a model on a server without models.

        Raises:
            Refusal: there are none (404).
        """
        if not self.routes:
            raise no_models()

    async def translate(self, request: Request) -> list[Answer]:
        """Translate all texts of a request, one answer each, in order.

        Raises:
            Refusal: the request is not valid, cannot be served now, or took too long.
        """
        async with _Begun(self, request) as texts:
            return self._counted(await _answers(texts))

    async def stream(
        self, request: Request
    ) -> AsyncGenerator[tuple[int, int, SegmentAnswer] | list[Answer], None]:
        """Translate, and yield each segment as soon as it is ready, in order.

        Yields:
            The index of a text, the index of a segment in it, and the segment; finally all answers.

        Raises:
            Refusal: as in `translate`.
        """
        async with _Begun(self, request) as texts:
            for index, text in enumerate(texts):
                for place in range(len(text.document.segments)):
                    yield index, place, await text.segment(place)
            yield self._counted(await _answers(texts))

    async def detect(self, text: str) -> Detection:
        """The probability of each served language for a text.

        Raises:
            Refusal: no language is served.
        """
        self.require_models()
        return await asyncio.to_thread(self._detector.detect, text)

    async def models_info(self) -> list[ModelInfo]:
        """The served models; raises a refusal if they cannot be described in time (504)."""
        return await self._descriptions.read(self.settings.work.timeout_s)

    async def next_words(
        self, text: str, prefix: str, direction: Direction, *, k: int
    ) -> list[NextToken]:
        """The most probable next pieces of a translation.

        Args:
            text: one sentence.
            prefix: its translation so far.
            direction: languages and model.
            k: number of pieces.

        Raises:
            Refusal: as in `translate`; or the text is too long to be read in one piece.
        """

        def run(translator: Translator, route: Route, is_wanted: IsWanted) -> list[NextToken]:
            return translator.next_word(text, prefix, k, target_lang=route.target)

        return await self.with_model(run, text, direction, given=prefix)

    async def continuations(
        self, text: str, prefix: str, direction: Direction, *, k: int
    ) -> list[Continuation]:
        """The most probable next pieces, each with the best translation that continues with it.

        Args: as in `next_words`.

        Raises:
            Refusal: as in `next_words`.
        """

        def run(translator: Translator, route: Route, is_wanted: IsWanted) -> list[Continuation]:
            return translator.continuations(
                text, prefix, k, target_lang=route.target, is_wanted=is_wanted
            )

        return await self.with_model(run, text, direction, given=prefix)

    async def score(self, text: str, translation: str, direction: Direction) -> PairScore:
        """The log-probability of a given translation.

        Args:
            text: one sentence.
            translation: its translation.
            direction: languages and model.

        Raises:
            Refusal: as in `translate`.
        """

        def run(translator: Translator, route: Route, is_wanted: IsWanted) -> PairScore:
            return translator.score([text], [translation], target_lang=route.target)[0]

        return await self.with_model(run, text, direction, given=translation)

    async def align(self, text: str, translation: str, direction: Direction) -> Alignment:
        """The attention of each token of a given translation to the source tokens.

        Args: as in `score`.

        Raises:
            Refusal: as in `translate`; or a side is too long to be read in one piece.
        """

        def run(translator: Translator, route: Route, is_wanted: IsWanted) -> Alignment:
            return translator.align(text, translation, target_lang=route.target)

        return await self.with_model(run, text, direction, given=translation)

    def close(self, within_s: float | None = None) -> bool:
        """Finish the work and end the threads; return whether Python can end, too.

        Args:
            within_s: seconds after which unfinished work is abandoned; None = no such limit.
        """
        self.scheduler.close(within_s)
        self._files.close(within_s)
        return self.models.close(within_s)  # Python waits for this thread, not for the others

    def _counted(self, answers: list[Answer]) -> list[Answer]:
        if self._on_answered is not None:
            self._on_answered(answers)
        return answers

    async def _started(self, request: Request, begun: "_Begun") -> list[Text]:
        """Queue the texts of a request; `begun` abandons unfinished ones."""
        self.require_models()
        text_chars = DETECTION_CHARS if request.source.lower() == AUTO else TEXT_CHARS
        n_chars = sum(map(len, request.texts)) + text_chars * len(request.texts)
        n_chars += PATTERN_CHARS * len(request.protect or ())
        check = partial(require_wanted, lambda: begun.is_wanted)
        await self._prepare_detection(request.source)
        texts = await run_aside(n_chars, read_texts, request, self.routes, self._detector)
        # Get each model once, so that a response does not mix two versions.
        names = dict.fromkeys(route.model for route in _routes_of(texts))
        models = {name: await begun.use(name) for name in names}
        groups = await run_aside(n_chars, _groups, texts, request, models, check)
        for (model, alignment), lines in groups.items():
            call = call_of(
                models[model],
                options=request.options,
                alternatives=request.alternatives,
                alignment=alignment,
            )
            translating = await run_aside(
                n_chars, Translating, models[model], call, lines, request.memory
            )
            begun.translating.append(translating)
            translating.look(self.cache)
            await run_aside(n_chars + PAIR_CHARS * len(request.memory), translating.read, check)
            translating.start(self.scheduler, self._in_work, timeout_s=begun.deadline.left_s)
            for text in texts:
                text.take(translating, lines)
        return texts

    async def _prepare_detection(self, source: str) -> None:
        """Load the detector's model in a thread, if it is needed and not loaded yet."""
        if source.lower() == AUTO and not self._detector.is_read:
            await asyncio.to_thread(self._detector.read)

    async def source_of(self, text: str, direction: Direction) -> Source:
        """The language of a text, and its route; errors as of `find_source`."""
        await self._prepare_detection(direction.source)
        return find_source(text, direction, routes=self.routes, detector=self._detector)

    async def with_model(
        self,
        run: Callable[[Translator, Route, IsWanted], Found],
        text: str,
        direction: Direction,
        *,
        given: str = "",
    ) -> Found:
        """Call a function with a model in a search thread.

        Args:
            run: receives the model, the direction, and a check whether the result is wanted.
            text: in the source language, which may have to be detected.
            direction: languages and model.
            given: other text of the request, in the target language.

        Raises:
            Refusal: as in `translate`; or any error of `run`, as a refusal.
        """
        self.require_models()
        deadline = Deadline(self.settings.work.timeout_s)
        async with AsyncExitStack() as stack:
            async with deadline.enforced():
                found = await self.source_of(text, direction)
                if (route := found.route) is None:
                    raise Refusal(
                        400, f"The text is in {name_of(found.code)} already.", code="same_language"
                    )
                opened = await stack.enter_async_context(self.models.use(route.model))
            folder = self.models.folders[route.model]

            def call(is_wanted: IsWanted) -> Found:
                try:
                    return run(opened.translator, route, is_wanted)
                except (FormatError, OSError) as error:  # `run` may read more of the folder
                    raise refusal_of_model(error, route.model, folder) from error

            n_chars = len(text) + len(given)
            return await _in_a_thread(self.scheduler, call, n_chars, deadline.left_s)

    async def in_a_thread(self, run: Callable[[IsWanted], Found], n_chars: int) -> Found:
        """Call a function in a search thread.

        Args:
            run: receives a check whether the result is still wanted.
            n_chars: number of characters that it reads.

        Raises:
            Refusal: the server is busy or the time is over; or any error of `run`, as a refusal.
        """
        return await _in_a_thread(self.scheduler, run, n_chars, self.settings.work.timeout_s)

    async def read_file(self, read: Callable[[IsWanted], Found], n_bytes: int) -> Found:
        """Call a function that reads a file of `n_bytes`, in a thread for files.

        Args and raises: as in `in_a_thread`.
        """
        return await _in_a_thread(self._files, read, n_bytes, self.settings.work.timeout_s)


async def _in_a_thread(
    scheduler: Scheduler, run: Callable[[IsWanted], Found], n_chars: int, timeout_s: float
) -> Found:
    results: Results[Found] = Results(1, timeout_s=timeout_s)
    try:
        scheduler.submit(Errand(run, n_chars=n_chars, results=results))
        return await results.get(0)
    finally:
        results.abandon()


class _Begun:
    """The texts of a request in progress; leaving the block abandons unfinished ones.

    It is a class because a generator with an exit stack costs more.

    Args:
        service: translates.
        request: the request with the texts.
    """

    def __init__(self, service: Service, request: Request) -> None:
        self._service = service
        self._request = request
        self._uses: list[Use] = []
        self.deadline = Deadline(service.settings.work.timeout_s)
        self.translating: list[Translating] = []
        self.is_wanted = True

    async def __aenter__(self) -> list[Text]:
        """Queue the texts."""
        try:
            async with self.deadline.enforced():
                return await self._service._started(self._request, self)
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise

    async def use(self, name: str) -> Opened:
        """Load a model, which stays open until the block ends."""
        use = self._service.models.use(name)
        opened = await use.__aenter__()
        self._uses.append(use)
        return opened

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Abandon unfinished work.

        Raises:
            Refusal: instead of an error that the client should know about.
        """
        self.is_wanted = False
        try:
            for translating in self.translating:
                translating.abandon()
        finally:
            await self._give_back()
        if isinstance(error, HeedError):
            raise refusal_of(error) from error

    async def _give_back(self) -> None:
        """Release every model, even if releasing one fails."""
        if self._uses:
            try:
                await self._uses.pop().__aexit__()
            finally:
                await self._give_back()


async def _answers(texts: Sequence[Text]) -> list[Answer]:
    """The answer of each text; other requests can run between two of them."""
    answers: list[Answer] = []
    for text in texts:
        if answers:
            await asyncio.sleep(0)
        answers.append(await text.answer())
    return answers


def _routes_of(texts: Sequence[Text]) -> list[Route]:
    """The directions of the texts that are not blank."""
    routes = (text.source.route for text in texts if text.document.segments)
    return list(dict.fromkeys(route for route in routes if route is not None))


def _groups(
    texts: list[Text],
    request: Request,
    models: Mapping[str, Opened],
    check: Callable[[], None],
) -> dict[tuple[str, bool], dict[int, Line]]:
    """The segments of all texts, grouped by model and by whether they need an alignment.

    Args:
        texts: of the request.
        request: with the rules for protected spans.
        models: by name; they have terms for all requests.
        check: as in `_rules`.
    """
    groups: dict[tuple[str, bool], dict[int, Line]] = {}
    rules = None if request.protect is None else _rules(request.protect, check)
    glossaries = {
        route: models[route.model].glossary(route.source, route.target, request.glossary)
        for route in _routes_of(texts)
    }
    for index, text in enumerate(texts):
        if (route := text.source.route) is None:
            continue
        prefix = request.prefixes[index] if request.prefixes else ""
        glossary = glossaries.get(route)
        for place, segment in enumerate(text.document.segments):
            alignment = request.alignment or text.needs_alignment(place)
            alignment = alignment and len(segment.text) <= ALIGNED_CHARS
            group = groups.setdefault((route.model, alignment), {})
            group[text.first + place] = Line(
                segment.text,
                prefix="" if place else prefix,
                target_lang=route.target,
                rules=rules,
                localize_numbers=request.localize_numbers or None,
                keep_typos=request.keep_typos or None,
                glossary=glossary,
            )
    return groups


def _rules(wishes: Sequence[str], check: Callable[[], None]) -> Rules:
    """Rules for protected spans, with a limit on the time of a client's expressions.

    Args:
        wishes: of the client.
        check: called before each wish is read; raises an error if no client waits.

    Raises:
        ConfigError: an expression is invalid, or they take too long.
    """
    limit = TimeLimit(PATTERNS_S)
    for wish in wishes:
        check()
        with limit.counted():
            Rules.of([wish])  # an expression is compiled once, and kept
    return replace(Rules.of(wishes), limit=limit)
