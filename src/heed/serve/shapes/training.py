"""heed's own API, training runs: curves, samples, and events as they happen."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from starlette.responses import Response

from heed.serve.inside.runs import TOKEN_HEADER, Runs
from heed.serve.service import Service
from heed.serve.shapes import schemas
from heed.serve.shapes.endpoint import Asked, Endpoint
from heed.serve.shapes.events import Event, event_stream
from heed.serve.shapes.fields import Field
from heed.serve.shapes.own import PREFIX, STYLE, TAG
from heed.train.step.control import Request

LOOK_S = 1.0
"""Seconds between two checks of a run that a client watches."""

ALIVE_S = 15.0
"""Seconds of silence before a stream sends a sign of life, for proxies that would close it."""

LAST_LOOK_S = 0.2
"""Seconds for a training process to release its folder, if this process drains at its end."""

_SINCE = Field(
    name="since",
    kind="word",
    about="The `cursor` of an earlier answer.",
    is_required=True,
    example="1f2e3d4c-1-0-31-10-12",
)
_NAMES = Field(
    name="names",
    kind="words",
    about="Names of runs, as a list or with commas.",
    is_required=True,
    names_stored=True,
)


def _runs_of(asked: Asked) -> Runs:
    runs: Runs = asked.http.app.state.runs
    return runs


async def _list(service: Service, asked: Asked) -> dict[str, Any]:
    runs = _runs_of(asked)
    return {"runs": await runs.statuses(), "is_controllable": runs.is_controllable}


async def _show(service: Service, asked: Asked) -> dict[str, Any]:
    return await _runs_of(asked).whole(asked.http.path_params["name"])


async def _events(service: Service, asked: Asked) -> Response:
    events = _watched(_runs_of(asked), asked.http.path_params["name"], asked.values["since"])
    return await event_stream(asked, STYLE, events)


async def _watched(runs: Runs, name: str, cursor: str) -> AsyncGenerator[Event]:
    """Events after a cursor, until no process works on the run."""
    before, silent_s = None, 0.0
    while True:
        is_last = runs.condition.is_draining
        if is_last:
            await asyncio.sleep(LAST_LOOK_S)
        found, is_alive = await runs.news(name, cursor)
        if found is None:
            yield Event("anew", {})
            return
        # The time left changes constantly; a relevant change also changes the headline.
        now = {**found["status"], "left_s": None}
        if found["cursor"] != cursor or now != before:
            yield Event("news", found)
            cursor, before, silent_s = found["cursor"], now, 0.0
        elif silent_s >= ALIVE_S:
            yield Event("alive", {})
            silent_s = 0.0
        if is_last or not is_alive:
            yield Event("end", {})
            return
        await asyncio.sleep(LOOK_S)
        silent_s += LOOK_S


async def _differences(service: Service, asked: Asked) -> dict[str, Any]:
    from heed.explain.training.recipes import differing

    runs, names = _runs_of(asked), list(dict.fromkeys(asked.values["names"]))
    settings = [(await runs.whole(name))["settings"] for name in names]
    return {"names": names, "settings": differing(settings)}


async def _save(service: Service, asked: Asked) -> dict[str, Any]:
    return await _control(asked, Request.SAVE)


async def _stop(service: Service, asked: Asked) -> dict[str, Any]:
    return await _control(asked, Request.STOP)


async def _control(asked: Asked, request: Request) -> dict[str, Any]:
    token = asked.http.headers.get(TOKEN_HEADER, "")
    await _runs_of(asked).control(asked.http.path_params["name"], request, token)
    return {"asked": request.name.lower()}


_OBJECT = {"type": "object"}
_STATUS = schemas.record(
    name=schemas.TEXT,
    state=schemas.TEXT,
    headline=schemas.TEXT,
    step=schemas.INTEGER,
    epoch=schemas.NUMBER_OR_NULL,
    seconds=schemas.NUMBER_OR_NULL,
    share=schemas.NUMBER_OR_NULL,
    left_s=schemas.NUMBER_OR_NULL,
    loss=schemas.NUMBER_OR_NULL,
    tokens_per_s=schemas.NUMBER_OR_NULL,
    memory_mb=schemas.NUMBER_OR_NULL,
    metric=schemas.TEXT,
    score=schemas.NUMBER_OR_NULL,
    saved_step=schemas.INTEGER_OR_NULL,
)
_ASKED = schemas.record(asked=schemas.TEXT)
ENDPOINTS = (
    Endpoint(
        method="GET",
        path=f"{PREFIX}/runs",
        handler=_list,
        style=STYLE,
        tag=TAG,
        summary="Name the training runs that this server shows, and where each stands.",
        answer=schemas.record(runs=schemas.listed(_STATUS), is_controllable=schemas.FLAG),
        is_private=True,
    ),
    Endpoint(
        method="POST",
        path=f"{PREFIX}/runs/differences",
        handler=_differences,
        style=STYLE,
        tag=TAG,
        summary="Name the settings in which training runs differ.",
        fields=(_NAMES,),
        answer=schemas.record(names=schemas.listed(schemas.TEXT), settings=_OBJECT),
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/runs/{{name}}",
        handler=_show,
        style=STYLE,
        tag=TAG,
        summary="Show all of a training run so far: curves, events, sample translations, settings.",
        answer=schemas.record(
            status=_STATUS,
            steps=_OBJECT,
            validations=_OBJECT,
            marks=schemas.listed(_OBJECT),
            samples=_OBJECT,
            settings=_OBJECT,
            cursor=schemas.TEXT,
        ),
        is_private=True,
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/runs/{{name}}/events",
        handler=_events,
        style=STYLE,
        tag=TAG,
        summary="Send what is new in a training run as it comes, until it ends.",
        fields=(_SINCE,),
        media_type="text/event-stream",
        answer=schemas.TEXT,
    ),
    *(
        Endpoint(
            method="POST",
            path=f"{PREFIX}/runs/{{name}}/{action}",
            handler=handler,
            style=STYLE,
            tag=TAG,
            summary=f"{summary}; needs the header {TOKEN_HEADER}.",
            answer=_ASKED,
            errors={409: "The run is not training."},
        )
        for action, handler, summary in (
            ("save", _save, "Make a training run save a checkpoint after its step"),
            ("stop", _stop, "Make a training run save and stop after its step"),
        )
    ),
)
