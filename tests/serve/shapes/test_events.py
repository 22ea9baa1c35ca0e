"""A long text is answered sentence by sentence, and an error at any time is told."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient
from tests.serve.conftest import SENTENCES, Serve

from heed.serve.refusal import Refusal
from heed.serve.request import SegmentAnswer
from heed.serve.service import Service
from heed.serve.shapes.body import Parameters
from heed.serve.shapes.endpoint import Asked
from heed.serve.shapes.events import Event, event_stream
from heed.serve.shapes.own import STYLE
from heed.translate.result import Translation

ASKED = Asked(values={}, given=Parameters(values={}), http=Request({"type": "http", "state": {}}))


def read_events(text: str) -> list[tuple[str, Any]]:
    """Names and data of the events of an answer."""
    found = []
    for block in text.removesuffix("\n\n").split("\n\n"):
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


@pytest.fixture
def client(serve: Serve, en_de: str) -> TestClient:
    return serve(en_de)


def test_segments_come_in_order_and_at_last_the_whole_answer(client: TestClient) -> None:
    asked = {
        "text": [f"{SENTENCES[0]} {SENTENCES[2]}", SENTENCES[2]],
        "source": "en",
        "target": "de",
        "details": True,
    }
    answer = client.post("/api/v1/translate/stream", json=asked)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *segments, (last, whole) = read_events(answer.text)
    assert last == "done"
    assert [name for name, _ in segments] == ["segment"] * 3
    places = [(each["text_index"], each["segment_index"]) for _, each in segments]
    assert places == [(0, 0), (0, 1), (1, 0)]
    at_once = client.post("/api/v1/translate", json=asked).json()
    assert whole["translations"] == at_once["translations"]
    for (_, each), (text, segment) in zip(segments, places, strict=True):
        wanted = whole["translations"][text]["segments"][segment]
        assert {name: each[name] for name in wanted} == wanted


def test_what_is_refused_at_once_has_its_own_status(client: TestClient) -> None:
    answer = client.post("/api/v1/translate/stream", json={"text": "a", "target": "zz"})
    assert answer.status_code == 400
    assert answer.json()["error"]["sentence"]


def test_an_error_after_the_first_event_is_an_event() -> None:
    async def events() -> AsyncGenerator[Event]:
        yield Event("segment", 1)
        raise Refusal(504, "Too late.", code="timeout")

    async def sent() -> str:
        answer: Any = await event_stream(ASKED, STYLE, events())
        return b"".join([chunk async for chunk in answer.body_iterator]).decode()

    (_, first), (name, error) = read_events(asyncio.run(sent()))
    assert (first, name) == (1, "error")
    assert error["error"]["sentence"] == "Too late."


def test_a_stream_ends_after_the_time_that_its_client_has_set(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stream(service: Service, request: Any) -> AsyncGenerator[Any]:
        yield 0, 0, SegmentAnswer(source="a dog", translation=Translation(text="ein Hund"))
        await asyncio.sleep(5)
        yield []

    monkeypatch.setattr(Service, "stream", stream)
    asked = {"text": "a dog", "source": "en", "target": "de"}
    answer = client.post("/api/v1/translate/stream", json=asked, headers={"X-Timeout": "0.2"})
    (first, _), (name, error) = read_events(answer.text)
    assert (first, name) == ("segment", "error")
    assert error["error"]["code"] == "timeout"


def test_data_is_one_line_whatever_it_holds() -> None:
    sent = Event("segment", "a\nb\r\u2028").encode().decode()
    assert sent == 'event: segment\ndata: "a\\nb\\r\u2028"\n\n'
