"""`write_page`: the page that looks into one sentence, as one HTML file that needs no server.

The answers in the file are those of the server's own app, which is asked here without a socket.
"""

import asyncio
import base64
import gzip
import json
from collections.abc import MutableMapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

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

SCREENS = ("attention", "steps", "positions")
"""Screens that need nothing but a trace, its vocabulary and tables."""

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
    # Positions are those of one sentence.
    screens = SCREENS if count == 1 else [name for name in SCREENS if name != "positions"]
    return single_page(
        screens,
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
        **await _optional(inner, "positions", "positions", length=N_POSITIONS),
    }
    states, pieces = f"embeddings/states/{trace['id']}", f"trace/{trace['id']}/pieces"
    for path, sides in ((states, ("source", "target")), (pieces, ("src", "tgt"))):
        for side in sides:
            answers |= await _optional(inner, path, f"{path}?side={side}", side=side)
    same = {}
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
        "tensors": tensors,
    }


async def _optional(inner: _Inner, path: str, key: str, **query: Any) -> dict[str, Any]:
    """An answer by its key, if the model has what is asked for."""
    try:
        return {key: await inner.json(path, **query)}
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
    for node in nodes:
        if (name := node["name"]) in kept:
            count = len(tensors[name]) // 2
            places[name] = [start, count]
            start += count
    numbers = gzip.compress(b"".join(tensors[name] for name in places), 9, mtime=0)
    return places, base64.b64encode(numbers).decode()
