"""Server-sent events: a response whose parts are sent as soon as they are ready.

Source: HTML Standard, section 9.2, server-sent events.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response, StreamingResponse

from heed.serve.refusal import Refusal
from heed.serve.shapes.endpoint import Asked, request_id, within_deadline
from heed.serve.shapes.style import Style
from heed.serve.work.aside import run_aside

HEADERS = {
    "Cache-Control": "no-store",
    # Without this, nginx would buffer the events until the response is complete.
    "X-Accel-Buffering": "no",
}


@dataclass(frozen=True)
class Event:
    """An event.

    Attributes:
        name: its type.
        data: sent as JSON.
        n_chars: encoding it takes about as long as reading this many characters.
    """

    name: str
    data: Any
    n_chars: int = 0

    def encode(self) -> bytes:
        """The event in wire format. JSON has no line break, so the data is one line."""
        data = json.dumps(self.data, ensure_ascii=False, separators=(",", ":"))
        return f"event: {self.name}\ndata: {data}\n\n".encode()


async def event_stream(asked: Asked, style: Style, events: AsyncGenerator[Event]) -> Response:
    """A response of events.

    It waits for the first event, so that an earlier refusal gets its own HTTP status. The time that
    the client has set (`X-Timeout`) ends it with the event `error`.

    Args:
        asked: the request.
        style: format of the event `error`, for a response that has begun and fails.
        events: at least one.

    Raises:
        Refusal: if it is raised before the first event.
    """
    first = await anext(events)

    async def content() -> AsyncIterator[bytes]:
        async with aclosing(events):
            yield await run_aside(first.n_chars, first.encode)
            try:
                while True:
                    async with within_deadline(asked.http):
                        event = await anext(events)
                    yield await run_aside(event.n_chars, event.encode)
            except StopAsyncIteration:
                return
            except Refusal as refusal:
                yield Event("error", style.spell(refusal, request_id(asked.http))).encode()

    return StreamingResponse(content(), media_type="text/event-stream", headers=HEADERS)
