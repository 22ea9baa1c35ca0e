"""`write_page`: the page that looks into one sentence, as one HTML file that needs no server.

The answers in the file are those of the server's own app, which is asked here without a socket.
"""

import asyncio
import base64
import gzip
import json
from collections.abc import MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
from starlette.types import ASGIApp

from heed import __version__
from heed.disk.files import write_atomically
from heed.errors import HeedError, RunError
from heed.serve.app import make_app
from heed.serve.page.single import single_page
from heed.serve.run import make_service
from heed.serve.settings import ServeSettings

MAX_BYTES = 2_000_000
"""Of a file, so that it can be sent by mail."""

SCREENS = ("attention", "steps", "decoding", "causes", "positions")
"""Screens of a file about one sentence."""

BATCHED = ("attention", "steps")
"""Those of a file about several."""

SEARCH: dict[str, Any] = {
    "n_best": 1,
    "sample": False,
    "temperature": 1,
    "top_k": 0,
    "top_p": 1,
    "min_p": 0,
}
"""The options of the search that the screen of decoding begins with: `decoding-search.js`."""

CAUSES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("importance", {"features": 12}),
    # Each of the other methods computes the sentence many times.
    ("attribute", {"method": "erasure"}),
    ("attribute", {"method": "gradient"}),
    ("lens", {"k": 8}),
)
"""What the screen of causes asks about a trace: `causes-*.js`."""

FIRST = ("attention.weights", "attention.scores", "attention.masked", "attention.products")
"""Endings of the tensors that a file holds before all others; then the smaller ones."""

N_POSITIONS = 64
"""Rows of the table of positions in a file."""


PATIENCE_S = 3600


class _Inner:
    """Asks an application in this process.

    Args:
        app: of the server.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def json(self, path: str, body: Any = None, **query: Any) -> Any:
        """The answer of GET, or of POST if there is a body."""
        return json.loads(await self.bytes(path, body, **query))

    async def bytes(self, path: str, body: Any = None, **query: Any) -> bytes:
        """The same as bytes.

        Raises:
            RunError: the answer is an error; has its sentence.
        """
        sent = b"" if body is None else json.dumps(body).encode()
        messages: list[MutableMapping[str, Any]] = []

        async def receive() -> MutableMapping[str, Any]:
            if not waiting:
                await asyncio.Event().wait()  # the client stays
            return waiting.pop()

        async def send(message: MutableMapping[str, Any]) -> None:
            messages.append(message)

        waiting: list[MutableMapping[str, Any]] = [
            {"type": "http.request", "body": sent, "more_body": False}
        ]
        address = f"/api/v1/{path}"
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET" if body is None else "POST",
            "scheme": "http",
            "path": address,
            "raw_path": quote(address).encode(),
            "query_string": urlencode(query).encode(),
            "root_path": "",
            "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
            "client": ("127.0.0.1", 0),
            "server": ("127.0.0.1", 80),
        }
        await self._app(scope, receive, send)
        content = b"".join(message.get("body", b"") for message in messages)
        if messages[0]["status"] >= 400:
            raise RunError(json.loads(content)["error"]["sentence"])
        return content


def write_page(
    path: str | Path,
    settings: ServeSettings,
    text: str,
    translation: str | None = None,
    *,
    target: str | None = None,
) -> int:
    """Write the page that looks into one sentence as one HTML file.

    It holds the attention of all layers and heads and as many other tensors as fit into two
    megabytes, as numbers of 16 bits.

    Args:
        path: of the file.
        settings: of a server of the model.
        text: the sentence, or several, one a line, which are read as one batch.
        translation: of the same; None = the model's own.
        target: code of the language to translate into; None = the first.

    Returns:
        Bytes of the file.

    Raises:
        RunError: the model cannot trace the sentence, or the file cannot be written.
    """
    # A client of a server does not wait as long as a person who wants a file.
    patient = replace(settings, work=replace(settings.work, timeout_s=PATIENCE_S))
    service = make_service(patient)
    try:
        asked = _held(_Inner(make_app(service)), text, translation or "", target)
        # In a thread of its own: a notebook runs an event loop already.
        with ThreadPoolExecutor(1) as thread:
            held = thread.submit(asyncio.run, asked).result()
        char_limit = settings.limits.chars
    finally:
        service.close()
    tensors = held.pop("tensors")
    room = MAX_BYTES - len(_page(held, char_limit).encode()) - 1000
    places, numbers = _fitting(held["answers"]["trace"]["nodes"], tensors, room)
    nodes = [node for node in held["answers"]["trace"]["nodes"] if node["name"] in places]
    held["answers"]["trace"]["nodes"] = nodes
    page = _page(held | {"places": places, "numbers": numbers}, char_limit).encode()
    write_atomically(path, page)
    return len(page)


def _page(held: dict[str, Any], char_limit: int) -> str:
    trace, model = held["answers"]["trace"], held["answers"]["models"][0]["name"]
    count = len(trace.get("sentences", [trace]))
    first, _, _ = held["text"].partition("\n")
    what = "One sentence" if count == 1 else f"{count} sentences, read as one batch,"
    note = (
        f"{what} in {model}, with heed {__version__}. Numbers have 16 bits. This file asks no "
        "network."
    )
    return single_page(
        SCREENS if count == 1 else BATCHED,
        held,
        title=f"{first} · heed",
        note=note,
        char_limit=char_limit,
    )


async def _held(inner: _Inner, text: str, translation: str, target: str | None) -> dict[str, Any]:
    languages = await inner.json("languages")
    models = await inner.json("models")
    source = languages[0]
    into = target or source["targets"][0]
    lines = [line for line in text.split("\n") if line.strip()]
    is_batch = len(lines) > 1
    given = translation.split("\n") if is_batch and translation else translation
    asked = {"text": lines if is_batch else text, "source": source["code"], "target": into}
    trace = await inner.json("trace", asked | ({"translation": given} if given else {}))
    answers = {
        "languages": [source | {"targets": [into]}],
        "models": models[:1],
        "trace": trace,
    }
    id = trace["id"]
    searches: list[dict[str, Any]] = []
    steps: dict[str, bytes] = {}
    if not is_batch:
        answers |= await _of_one(inner, id)
        searches, steps = await _searches(inner, asked)
    pieces = f"trace/{id}/pieces"
    for side in ("src", "tgt"):
        answers |= await _optional(inner, pieces, side=side)
    same = {f"search/{found['answer']['id']}/pieces": f"{pieces}?side=tgt" for found in searches}
    if answers[f"{pieces}?side=src"] == answers[f"{pieces}?side=tgt"]:
        same[f"{pieces}?side=src"] = f"{pieces}?side=tgt"
        del answers[f"{pieces}?side=src"]
    tensors = {
        node["name"]: await inner.bytes(f"trace/{trace['id']}/{node['name']}", dtype="f16")
        for node in trace["nodes"]
    }
    return {
        "text": "\n".join(lines) if is_batch else text,
        "forced": translation,
        "answers": answers,
        "same": same,
        "searches": searches,
        "tensors": tensors | steps,
    }


async def _of_one(inner: _Inner, id: str) -> dict[str, Any]:
    """What is asked about the trace of one sentence besides its tensors."""
    found: dict[str, Any] = {}
    for side in ("source", "target"):
        found |= await _optional(inner, f"embeddings/states/{id}", side=side)
    for path, query in CAUSES:
        found |= await _optional(inner, f"trace/{id}/{path}", **query)
    found |= await _optional(inner, f"trace/{id}/edit", {"changes": []})
    with suppress(HeedError):  # a model without positions
        found["positions"] = await inner.json("positions", length=N_POSITIONS)
    return found


async def _searches(
    inner: _Inner, asked: dict[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """The search that the screen of decoding begins with, and greedy search.

    Returns:
        Each with its options, and by address the distributions of the steps, with 16 bits.
    """
    searches: list[dict[str, Any]] = []
    steps: dict[str, bytes] = {}
    for options in (SEARCH, SEARCH | {"beam_size": 1}):
        answer = await inner.json("search", asked | {"options": options})
        searches.append({"options": options, "answer": answer})
    first = searches[0]["answer"]
    for number, step in enumerate(first["steps"]):
        path = f"search/{first['id']}/step/{number}"
        numbers = np.frombuffer(await inner.bytes(path), "<f4")
        # What constraints leave stands beside what the model says: gzip sees that it is the same.
        pairs = numbers.reshape(2, len(step["rows"]), -1).swapaxes(0, 1)
        steps[path] = pairs.astype("<f2").tobytes()
    return searches, steps


async def _optional(inner: _Inner, path: str, body: Any = None, **query: Any) -> dict[str, Any]:
    """An answer by its address, if the model has what is asked for."""
    key = f"{path}?{urlencode(query)}" if query else path
    try:
        return {key: await inner.json(path, body, **query)}
    except HeedError:
        return {}


def _fitting(
    nodes: list[dict[str, Any]], tensors: dict[str, bytes], room: int
) -> tuple[dict[str, list[int]], str]:
    """The tensors that fit: the start and length of each among the numbers, and these in base64."""

    def rank(name: str) -> tuple[int, int]:
        endings = [place for place, ending in enumerate(FIRST) if name.endswith(ending)]
        return (endings[0] if endings else len(FIRST), len(tensors[name]))

    kept: set[str] = set()
    size = 0.0
    for name in sorted(tensors, key=rank):
        # Of a part by itself gzip saves less than of the whole: the sum is never too small.
        size += len(gzip.compress(tensors[name], 6)) * 4 / 3 + len(name) + 24
        if size > room:
            break
        kept.add(name)
    places: dict[str, list[int]] = {}
    start = 0
    order = [node["name"] for node in nodes]
    for name in [*order, *(name for name in tensors if name not in order)]:
        if name in kept:
            count = len(tensors[name]) // 2
            places[name] = [start, count]
            start += count
    numbers = gzip.compress(b"".join(tensors[name] for name in places), 9, mtime=0)
    return places, base64.b64encode(numbers).decode()
