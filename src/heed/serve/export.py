"""`write_page`: the inspection page for one sentence, as one HTML file that needs no server.

The responses in the file are those of the server's own app, called here without a socket.
"""

import asyncio
import base64
import gzip
import json
from collections.abc import MutableMapping, Set
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
"""Maximum size of a file, so that it can be sent by mail."""

SCREENS = ("attention", "steps", "decoding", "causes", "positions")
"""Screens of a file for one sentence."""

BATCHED = ("attention", "steps")
"""Screens of a file for a batch of sentences."""

SEARCH: dict[str, Any] = {
    "n_best": 1,
    "sample": False,
    "temperature": 1,
    "top_k": 0,
    "top_p": 1,
    "min_p": 0,
}
"""The initial search options on the decoding screen: `decoding-search.js`."""

CAUSES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("importance", {"features": 12}),
    # Each of the other methods runs the model on the sentence many times.
    ("attribute", {"method": "erasure"}),
    ("attribute", {"method": "gradient"}),
    ("lens", {"k": 8}),
)
"""The requests about a trace from the screen of causes: `causes-*.js`."""

FIRST = ("attention.weights", "attention.scores", "attention.masked", "attention.products")
"""Suffixes of the tensors that a file stores first; the others follow, the smaller ones first."""

WEIGHTS = "weights/"
"""Prefix of the names of weights and their rows in the stored numbers."""

SEARCHED = "search/"
"""Prefix of the names of distributions."""

N_LIKELIEST = 128
"""Pieces stored of each distribution if whole distributions do not fit."""

MAX_SWITCHED_TOKENS = 1200
"""Total number of target tokens computed to measure the effect of switching off parts."""
MAX_SWITCHED = 96
"""Maximum number of parts that are switched off in turn, including source tokens."""

N_POSITIONS = 64
"""Rows of the table of positions in a file."""


PATIENCE_S = 3600


class _Inner:
    """Calls an application in this process.

    Args:
        app: the server's application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def json(self, path: str, body: Any = None, **query: Any) -> Any:
        """The response to GET, or to POST if there is a body."""
        return json.loads(await self.bytes(path, body, **query))

    async def bytes(self, path: str, body: Any = None, **query: Any) -> bytes:
        """The response as bytes.

        Raises:
            RunError: the response is an error; holds its sentence.
        """
        sent = b"" if body is None else json.dumps(body).encode()
        messages: list[MutableMapping[str, Any]] = []

        async def receive() -> MutableMapping[str, Any]:
            if not waiting:
                await asyncio.Event().wait()  # the client never disconnects
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
    """Write the inspection page for one sentence as one HTML file.

    It holds the attention of all layers and heads, and as many other tensors as fit into two
    megabytes, as numbers of 16 bits.

    Args:
        path: path of the file.
        settings: settings of a server for the model.
        text: the sentence, or several, one per line, which are read as one batch.
        translation: its translation; None = the model's own.
        target: code of the target language; None = the first.

    Returns:
        The size of the file in bytes.

    Raises:
        RunError: the model cannot trace the sentence, or the file cannot be written.
    """
    # Writing a file may take longer than a request to a server.
    patient = replace(settings, work=replace(settings.work, timeout_s=PATIENCE_S))
    service = make_service(patient)
    try:
        asked = _held(_Inner(make_app(service)), text, translation or "", target)
        # In a new thread, because a notebook already runs an event loop.
        with ThreadPoolExecutor(1) as thread:
            held = thread.submit(asyncio.run, asked).result()
        char_limit = settings.limits.chars
    finally:
        service.close()
    tensors, later = held.pop("tensors"), held.pop("later")
    room = MAX_BYTES - len(_page(held, char_limit).encode()) - 1000
    nodes = held["answers"]["trace"]["nodes"]
    places, numbers = _fitting(nodes, tensors, room, later)
    if any(name.startswith(SEARCHED) for name in tensors.keys() - places.keys()):
        held["likeliest"] = N_LIKELIEST
        short = _shortened(held["searches"], tensors)
        places, numbers = _fitting(nodes, short, room, later, is_short=True)
    held["answers"]["trace"]["nodes"] = [node for node in nodes if node["name"] in places]
    page = _page(held | {"places": places, "numbers": numbers}, char_limit).encode()
    write_atomically(path, page, follow_links=True)
    return len(page)


def _page(held: dict[str, Any], char_limit: int) -> str:
    trace, model = held["answers"]["trace"], held["answers"]["models"][0]["name"]
    count = len(trace.get("sentences", [trace]))
    first, _, _ = held["text"].partition("\n")
    what = "One sentence" if count == 1 else f"{count} sentences, read as one batch,"
    note = (
        f"{what} in {model}, with heed {__version__}. Numbers have 16 bits. This file needs no "
        "network."
    )
    if "likeliest" in held:
        note += (
            f" Of each step of the search it has the {held['likeliest']} likeliest pieces; the "
            "others share the rest of the probability evenly."
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
    sentences, given = _sentences(text, translation)
    is_batch = len(sentences) > 1
    asked = {
        "text": sentences if is_batch else "".join(sentences),
        "source": source["code"],
        "target": into,
    }
    forced = {"translation": given if is_batch else given[0]} if any(given) else {}
    trace = await inner.json("trace", asked | forced)
    answers = {
        "languages": [source | {"targets": [into]}],
        "models": models[:1],
        "trace": trace,
    }
    id = trace["id"]
    searches: list[dict[str, Any]] = []
    steps: dict[str, bytes] = {}
    switched: list[dict[str, Any]] = []
    later: set[str] = set()
    pieces = f"trace/{id}/pieces"
    for side in ("src", "tgt"):
        answers |= await _optional(inner, pieces, side=side)
    if not is_batch:
        answers |= await _of_one(inner, id)
        searches, steps = await _searches(inner, asked)
        switched = await _switched(inner, trace, answers)
        weights = await _weights(inner, trace, heads=slice(1))
        others = await _weights(inner, trace, heads=slice(1, None))
        later = others.keys() - weights.keys()
        steps |= weights | others
    same = {f"search/{found['answer']['id']}/pieces": f"{pieces}?side=tgt" for found in searches}
    if answers[f"{pieces}?side=src"] == answers[f"{pieces}?side=tgt"]:
        same[f"{pieces}?side=src"] = f"{pieces}?side=tgt"
        del answers[f"{pieces}?side=src"]
    tensors = {
        node["name"]: await inner.bytes(f"trace/{trace['id']}/{node['name']}", dtype="f16")
        for node in trace["nodes"]
    }
    return {
        "text": "\n".join(sentences),
        "forced": "\n".join(given),
        "answers": answers,
        "same": same,
        "searches": searches,
        "switched": switched,
        "tensors": tensors | steps,
        "later": later,
    }


def _sentences(text: str, translation: str) -> tuple[list[str], list[str]]:
    """The sentences and their given translations, as the page reads them: `looked.js`.

    Returns:
        The lines of the text that are not blank, without surrounding blanks; and the lines of the
        translation, joined if there is one sentence only.
    """
    sentences = [line.strip() for line in text.split("\n") if line.strip()]
    given = [line.strip() for line in translation.split("\n")]
    return sentences, given if len(sentences) > 1 else [" ".join(filter(None, given))]


async def _of_one(inner: _Inner, id: str) -> dict[str, Any]:
    """The responses about the trace of one sentence, except its tensors."""
    found: dict[str, Any] = {}
    for side in ("source", "target"):
        found |= await _optional(inner, f"embeddings/states/{id}", side=side)
    for path, query in CAUSES:
        found |= await _optional(inner, f"trace/{id}/{path}", **query)
    found |= await _optional(inner, f"trace/{id}/edit", {"changes": []})
    try:
        found["positions"] = await inner.json("positions", length=N_POSITIONS)
    except HeedError as error:  # a model without positions; the file says so, too
        found["positions"] = {"error": {"sentence": str(error)}}
    return found


async def _switched(
    inner: _Inner, trace: dict[str, Any], answers: dict[str, Any]
) -> list[dict[str, Any]]:
    """The effect of switching off one part, for the most important parts.

    Returns:
        Each change, with the fields in which its response differs from that of no change.
    """
    id, n_tokens = trace["id"], len(trace["expected_tokens"])
    found = answers.get(f"trace/{id}/importance?{urlencode(CAUSES[0][1])}")
    if found is None:
        return []
    parts = [
        ({"kind": "head", "attention": each["name"], "head": head}, lost)
        for each in found["heads"]
        for head, lost in enumerate(each["lost"])
    ]
    for kind in ("sublayer", "layer"):
        parts += [({"kind": kind, "name": one["name"]}, one["lost"]) for one in found[f"{kind}s"]]
    parts += [
        ({"kind": "feature", "feed_forward": one["name"], "feature": one["feature"]}, one["lost"])
        for one in found["features"]
    ]
    parts.sort(key=lambda part: -abs(sum(part[1])))
    sources = [{"kind": "position", "position": at} for at in range(len(trace["source_tokens"]))]
    count = min(MAX_SWITCHED, MAX_SWITCHED_TOKENS // n_tokens)
    changes = [*sources[: count // 2], *(change for change, _ in parts)][:count]
    switched = []
    for change in changes:
        whole = change | {"scale": 0}
        answer = await inner.json(f"trace/{id}/edit", {"changes": [whole]})
        new = {name: answer[name] for name in ("new_translation", "likeliest")}
        numbers = {
            name: [round(number, 4) for number in answer[name]]
            for name in ("after", "likeliest_log_probs")
        }
        switched.append({"change": whole, "answer": new | numbers})
    return switched


async def _weights(inner: _Inner, trace: dict[str, Any], *, heads: slice) -> dict[str, bytes]:
    """The weights with which the screen of steps explains numbers: `steps-worked.js`.

    From a matrix these are the rows that compute the first number of each head in `heads`, and the
    rows of the tokens and of the positions; vectors are whole.
    """
    names: dict[str, None] = {}
    for node in trace["nodes"]:
        for name in node["inputs"]:
            if name.endswith(".bias") or name.endswith("norm.weight"):
                names[name] = None
            elif name.endswith(".weight"):
                names |= dict.fromkeys(f"{name}?row={row}" for row in _rows(node, trace, heads))
        if node["kind"] == "embedding.sum":
            table = f"{node['name'].removesuffix('sum')}positions.table"
            names |= dict.fromkeys(f"{table}?row={row}" for row in range(node["shape"][0]))
    found: dict[str, bytes] = {}
    for name in names:
        path, _, row = name.partition("?row=")
        query = {"row": row} if row else {}
        with suppress(HeedError):  # the model has no such table
            content = await inner.bytes(f"trace/{trace['id']}/weights/{path}", dtype="f16", **query)
            found[WEIGHTS + name] = content
    return found


def _rows(node: dict[str, Any], trace: dict[str, Any], heads: slice) -> list[int]:
    """The rows of a node's matrix that compute its first numbers.

    Embedding rows are found by id, because a protected span's token is its text, not a piece.
    """
    shape, kind = node["shape"], node["kind"]
    part = kind.removeprefix("attention.")
    if part in (fused := ("query", "key", "value")):
        n_heads, _, width = shape
        return [(fused.index(part) * n_heads + head) * width for head in range(n_heads)[heads]]
    if kind == "network.logits":
        return list(trace["expected_ids"])
    if kind.startswith("embedding."):
        if node["axes"][0] == "src":
            return list(trace["source_ids"])
        return list(trace["target_ids"])
    return [0]


async def _searches(
    inner: _Inner, asked: dict[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """The initial search of the decoding screen, and greedy search.

    Returns:
        Each search with its options; and by address the distributions of the steps, in 16 bits.
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
        # Model and constrained scores are adjacent, because gzip then detects that they are equal.
        pairs = numbers.reshape(2, len(step["rows"]), -1).swapaxes(0, 1)
        steps[path] = pairs.astype("<f2").tobytes()
    return searches, steps


async def _optional(inner: _Inner, path: str, body: Any = None, **query: Any) -> dict[str, Any]:
    """A response by its address, or an empty one if the model does not support it."""
    key = f"{path}?{urlencode(query)}" if query else path
    try:
        return {key: await inner.json(path, body, **query)}
    except HeedError:
        return {}


def _shortened(searches: list[dict[str, Any]], tensors: dict[str, bytes]) -> dict[str, bytes]:
    """The tensors, with each distribution reduced to its most probable pieces.

    For each row: the low and high halves of the ids; the model's log-probs; those after
    constraints; and both for each other piece.
    """
    found = dict(tensors)
    answer = searches[0]["answer"]
    for number, step in enumerate(answer["steps"]):
        name = f"{SEARCHED}{answer['id']}/step/{number}"
        pairs = np.frombuffer(tensors[name], "<f2").astype(np.float32)
        rows = []
        for both in pairs.reshape(len(step["rows"]), 2, -1):
            ids = np.sort(np.argsort(-both[0], kind="stable")[:N_LIKELIEST])
            is_other = np.ones(both.shape[1], bool)
            is_other[ids] = False
            with np.errstate(divide="ignore"):
                others = np.log(np.exp(both[:, is_other]).mean(axis=1))
            halves = np.concatenate([ids & 0xFFFF, ids >> 16]).astype("<u2")
            numbers = np.concatenate([both[0, ids], both[1, ids], others]).astype("<f2")
            rows.append(halves.tobytes() + numbers.tobytes())
        found[name] = b"".join(rows)
    return found


def _fitting(
    nodes: list[dict[str, Any]],
    tensors: dict[str, bytes],
    room: int,
    later: Set[str],
    *,
    is_short: bool = False,
) -> tuple[dict[str, list[int]], str]:
    """The tensors that fit: the start and length of each in the data, and the data in base64.

    Args:
        nodes: nodes of the trace, in order.
        tensors: by name, as numbers of 16 bits.
        room: available bytes.
        later: names of weights that are stored last, if there is room.
        is_short: whether the distributions are short; they then come before most tensors.
    """

    def rank(name: str) -> tuple[int, int]:
        endings = [place for place, ending in enumerate(FIRST) if name.endswith(ending)]
        if name.startswith(WEIGHTS):
            return (len(FIRST) + (1 if name in later else -1), 0)
        if is_short and name.startswith(SEARCHED):
            return (len(FIRST) - 1, 1)
        return (endings[0] if endings else len(FIRST), len(tensors[name]))

    kept: set[str] = set()
    size = 0.0
    for name in sorted(tensors, key=rank):
        # gzip saves less on one part than on the whole, so the sum is never too small.
        more = len(gzip.compress(tensors[name], 6)) * 4 / 3 + len(name) + 24
        if size + more > room:
            continue
        size += more
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
