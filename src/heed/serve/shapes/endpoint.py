"""`Endpoint`: one method of one path, with its parameters, its response and its handler.

Routes and the OpenAPI document are both generated from these objects, so they agree.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from heed.serve.access.gate import IN_BODY, Admission, Gate
from heed.serve.access.keys import Key
from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.settings import Limits
from heed.serve.shapes.body import Parameters, query_of, read_parameters
from heed.serve.shapes.fields import Field, take, texts_for_model
from heed.serve.shapes.json_answer import JsonAnswer
from heed.serve.shapes.keyless import Keyless
from heed.serve.shapes.style import Style
from heed.serve.work.deadline import Deadline

TIMEOUT = "X-Timeout"
"""Header in which a client gives the number of seconds that it waits for the response."""

_SECONDS = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?")

WHEN_LEFT = "when_left"
"""Key, in a request's state, of a function of heed's own connection. It takes a callback to run
when the client leaves, which costs less than a task that waits for that."""

RETRY = {"Retry-After": "1"}
"""Header of a response 503 that has no other estimate."""

CLIENT_CLOSED_REQUEST = 499
"""The client has disconnected, so nobody reads this response."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request to an endpoint.

    Attributes:
        values: values of all its fields, by name.
        given: the parameters as sent by the client.
        http: headers, path and address.
        key: name of the client's key; empty on a server without keys.
        most_chars: the key's limit of characters; 0 = no own limit. For text that is read later,
            such as a file; the gate has already checked the fields.
    """

    values: Mapping[str, Any]
    given: Parameters
    http: HttpRequest
    key: str = ""
    most_chars: int = 0


Handler = Callable[[Service, Asked], Awaitable[Any]]
"""A function that returns a JSON value or a `Response`."""


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One method of one path.

    Attributes:
        method: HTTP method.
        path: path, with `{name}` for a variable part.
        handler: computes the response.
        style: format of errors.
        summary: description in one sentence.
        tag: the API it belongs to.
        fields: its parameters.
        answer: JSON Schema of the response.
        media_type: media type of the response.
        status: status of a successful response.
        errors: descriptions of errors that other endpoints do not return, by status.
        body: JSON Schema of a body that is not an object, and so has no fields.
        texts_of_body: returns the texts for a model in such a body, which may be invalid.
        example: an example of such a body.
        is_private: needs a key even if it is a GET without parameters.
        stores: stores something on the server by a POST. A page of another origin can send that
            without being asked; other methods only where `access.origins` allows it.
    """

    method: str
    path: str
    handler: Handler
    style: Style
    summary: str
    tag: str
    fields: tuple[Field, ...] = ()
    answer: Mapping[str, Any] = field(default_factory=dict)
    media_type: str = "application/json"
    status: int = 200
    errors: Mapping[int, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    texts_of_body: Callable[[Any], list[str]] | None = None
    example: Any = None
    is_private: bool = False
    stores: bool = False

    @property
    def needs_key(self) -> bool:
        """Whether it needs a key on a server with keys.

        A GET without parameters only describes the server, so it needs none.
        """
        return self.is_private or self.method != "GET" or bool(self.fields)


def routes_of(endpoints: Sequence[Endpoint], service: Service) -> list[Route]:
    """One route for each path, which handles all its methods."""
    paths = {endpoint.path: None for endpoint in endpoints}
    return [
        _route(path, [endpoint for endpoint in endpoints if endpoint.path == path], service)
        for path in paths
    ]


def _route(path: str, endpoints: Sequence[Endpoint], service: Service) -> Route:
    by_method = {endpoint.method: endpoint for endpoint in endpoints}
    return Route(path, _Path(by_method, service), methods=list(by_method), name=path)


class _Path:
    """The ASGI application of one path. A function would get a second error handler."""

    def __init__(self, by_method: Mapping[str, Endpoint], service: Service) -> None:
        self._by_method = by_method
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        http = HttpRequest(scope, receive, send)
        endpoint = self._by_method["GET" if http.method == "HEAD" else http.method]
        response = await _answer(http, endpoint, self._service)
        await response(scope, receive, send)


async def _answer(http: HttpRequest, endpoint: Endpoint, service: Service) -> Response:
    query = query_of(http)
    key = await _look(http, endpoint, query) if endpoint.needs_key else None
    given = await _read(http, endpoint, service.settings.limits, query, key)
    try:
        values = take(endpoint.fields, given, endpoint.style)
        admission = await _admit(http, endpoint, key, given, values)
        http.state.headers = admission.headers
        asked = Asked(
            values=values,
            given=given,
            http=http,
            key=admission.key,
            most_chars=admission.most_chars,
        )
        async with _within_own_time(http):
            found = await _while_connected(http, endpoint.handler(service, asked))
    finally:
        await given.close()
    return found if isinstance(found, Response) else JsonAnswer(found, endpoint.status)


async def _look(http: HttpRequest, endpoint: Endpoint, query: Mapping[str, Any]) -> Key | None:
    """The key in the head of a request, which the gate checks before the body is read."""
    return await _gate_of(http).look(
        headers=http.headers,
        query=query,
        in_body=any(each.name in IN_BODY for each in endpoint.fields),
        stores=endpoint.stores,
    )


def _gate_of(http: HttpRequest) -> Gate:
    gate: Gate = http.app.state.gate
    return gate


async def _read(
    http: HttpRequest,
    endpoint: Endpoint,
    limits: Limits,
    query: dict[str, Any],
    key: Key | None,
) -> Parameters:
    """All parameters of a request; without a known key, only if they are not too long."""
    if not endpoint.needs_key:
        return Parameters(values=query, is_form=True)  # it has no fields
    has_file = any(each.kind == "file" for each in endpoint.fields)
    most_bytes = limits.file_bytes if has_file else limits.body_bytes
    if key is not None or not _gate_of(http).needs_keys:
        return await read_parameters(http, query, limits.body_bytes, max_multipart_bytes=most_bytes)
    keyless: Keyless = http.app.state.keyless
    announced = http.headers.get("content-length", "")
    with keyless.counted(http.receive, announced, has_file=has_file) as receive:
        counted = HttpRequest(http.scope, receive)
        return await read_parameters(
            counted, query, limits.body_bytes, max_multipart_bytes=most_bytes
        )


async def _admit(
    http: HttpRequest,
    endpoint: Endpoint,
    key: Key | None,
    given: Parameters,
    values: Mapping[str, Any],
) -> Admission:
    """Check the whole request with the gate."""
    if not endpoint.needs_key:
        return Admission()
    texts = texts_for_model(endpoint.fields, values)
    if endpoint.texts_of_body is not None:
        texts.append(endpoint.texts_of_body(given.values.get("")))
    return await _gate_of(http).admit(
        key=key,
        peer=_peer_of(http),
        headers=http.headers,
        values=given.values,
        n_texts=max([1, *map(len, texts)]),
        n_chars=sum(len(text) for together in texts for text in together),
    )


def owner_of(asked: Asked) -> str:
    """The client to whom the stored data of a request is attributed."""
    return _gate_of(asked.http).owner(
        asked.key, peer=_peer_of(asked.http), headers=asked.http.headers
    )


def _peer_of(http: HttpRequest) -> str:
    """The address of the other end of the connection."""
    return http.client.host if http.client else ""


def _within_own_time(http: HttpRequest) -> AbstractAsyncContextManager[None]:
    """A block with the time limit that the client has set."""
    given = http.headers.get(TIMEOUT)
    if given is None:
        return nullcontext()
    if not _SECONDS.fullmatch(given) or not float(given):
        raise Refusal(
            400,
            f"{TIMEOUT} must be a number of seconds above 0, such as 2.5.",
            code="wrong_value",
            field=TIMEOUT,
        )
    http.state.deadline = Deadline(float(given))
    return within_deadline(http)


def within_deadline(http: HttpRequest) -> AbstractAsyncContextManager[None]:
    """A block that is refused (504) when the time that the client has set is over, if it has."""
    deadline: Deadline | None = getattr(http.state, "deadline", None)
    return nullcontext() if deadline is None else deadline.enforced()


async def _while_connected(http: HttpRequest, work: Awaitable[Any]) -> Any:
    """The result of `work`, which is canceled if the client disconnects."""
    working = asyncio.current_task()
    assert working is not None
    has_left = False

    def leave() -> None:
        nonlocal has_left
        has_left = True
        working.cancel()

    end = _call_when_left(http, leave)
    try:
        return await work
    except asyncio.CancelledError:
        if not has_left:
            raise
        working.uncancel()
        return Response(status_code=CLIENT_CLOSED_REQUEST)
    finally:
        end()


def _call_when_left(http: HttpRequest, leave: Callable[[], object]) -> Callable[[], object]:
    """Call a function when the client leaves; return a function that stops this."""
    when_left = http.scope["state"].pop(WHEN_LEFT, None)
    if when_left is not None:
        when_left(leave)
        return partial(when_left, None)

    async def watch() -> None:
        while (await http.receive())["type"] != "http.disconnect":
            pass
        leave()

    return asyncio.create_task(watch()).cancel


def request_id(http: HttpRequest) -> str:
    """The id of a request in its response and in the log; empty if there is none."""
    return str(getattr(http.state, "request_id", ""))


def error_response(refusal: Refusal, http: HttpRequest, style: Style) -> Response:
    """An error response in the format of the path's API."""
    body = style.spell(refusal, request_id(http))
    status = style.statuses.get(refusal.status, refusal.status)
    headers = RETRY | refusal.headers if status == 503 else refusal.headers
    return JsonAnswer(body, status, headers=headers)
