"""The parameters of a request, from its query and its body: JSON, form or multipart.

`fields.py` checks their values.
"""

import json
import math
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from heed.serve.refusal import Refusal
from heed.serve.work.aside import run_aside

JSON = "application/json"
URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
_MOST_DIGITS = 400  # more than the largest float has
MAX_FIELDS = 2000
"""Maximum number of parameters in a form; each text of a list is one."""

JSON_SHARE = 20
"""Reading a byte of JSON takes less time than this share of reading a character of a form."""


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """The parameters that a client sent.

    Attributes:
        values: by name. Values of a form are lists of strings, because names may be repeated.
        files: by name.
        is_form: the values come from a form or the query, so all of them are strings.
    """

    values: Mapping[str, Any]
    files: Mapping[str, UploadFile] = field(default_factory=dict)
    is_form: bool = False

    async def close(self) -> None:
        """Delete the temporary files."""
        for file in self.files.values():
            await file.close()


def query_of(request: Request) -> dict[str, Any]:
    """The parameters in the URL of a request.

    Raises:
        Refusal: they are not UTF-8, or too many (400).
    """
    return _decoded_form(request.scope["query_string"], "The query")


async def read_parameters(
    request: Request, query: dict[str, Any], max_bytes: int, *, max_multipart_bytes: int
) -> Parameters:
    """Read all parameters; those in the body override those in the query.

    Args:
        request: the request; its body is read here.
        query: its `query_of`.
        max_bytes: maximum size of a body that is parsed as a whole.
        max_multipart_bytes: maximum size of a multipart body.

    Raises:
        Refusal: the body is too long (413), of another type (415), or invalid for its type (400).
    """
    _require_plain(request.headers)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    max_bytes = max_multipart_bytes if kind == MULTIPART else max_bytes
    _require_short(request.headers, max_bytes)
    if kind == MULTIPART:
        return await _read_multipart(request, query, max_bytes)
    data = await _whole_body(request, max_bytes)
    if not data:
        return Parameters(values=query, is_form=True)
    if kind == URLENCODED:
        values = await run_aside(len(data), _decoded_form, data, "The body")
        return Parameters(values={**query, **values}, is_form=True)
    if kind == JSON or kind.endswith("+json") or (not kind and data.lstrip()[:1] in b"{["):
        single = {name: values[0] for name, values in query.items()}
        value = await run_aside(len(data) // JSON_SHARE, decode_json, data)
        return Parameters(values={**single, **_named(value)})
    raise Refusal(
        415,
        f"The body must be {JSON}, {URLENCODED} or {MULTIPART}, and Content-Type must say which.",
        code="unsupported_media_type",
    )


def decode_json(data: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        Refusal: it is not valid JSON, repeats a key, or has a number or text that JSON forbids.
    """
    try:
        text = data.decode(json.detect_encoding(data))
        # A byte order mark is not part of the text; some clients on Windows send one.
        return _DECODER.decode(text.removeprefix("\ufeff"))
    except UnicodeDecodeError:
        raise _not_json("The body is not valid UTF-8.") from None
    except RecursionError:
        raise _not_json("The body is nested too deeply.") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise _not_json(f"The body is not valid JSON: {error.msg} at {where}.") from None
    except ValueError as error:
        raise _not_json(f"The body is not valid JSON: {error}.") from None


def _not_json(sentence: str) -> Refusal:
    return Refusal(400, sentence, code="not_json")


def _named(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    # OpenNMT's API has a list at the top level; its endpoint finds it under this name.
    return {"": value}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has the same key twice")
    return found


def _refuse_number(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


def _whole(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError("a number has too many digits")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is too large")
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_constant=_refuse_number,
    parse_float=_finite,
    parse_int=_whole,
)


def _decoded_form(data: bytes, what: str) -> dict[str, Any]:
    if not data:
        return {}
    try:
        pairs = parse_qsl(
            data.decode("utf-8"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_FIELDS,
        )
    except UnicodeDecodeError:
        raise Refusal(400, f"{what} is not valid UTF-8.", code="not_utf8") from None
    except ValueError:
        sentence = f"{what} must have at most {MAX_FIELDS} parameters."
        raise Refusal(400, sentence, code="too_many_parameters") from None
    return _collected(pairs)


def _collected(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


async def _read_multipart(request: Request, query: dict[str, Any], max_bytes: int) -> Parameters:
    kind = request.headers["content-type"]
    charset = parse_options_header(kind)[1].get(b"charset", b"").decode("latin-1").lower()
    if charset and not charset.startswith(("utf-8", "utf8", "us-ascii")):
        raise _not_utf8()
    # Starlette reads what is not UTF-8 as Latin-1. Latin-1 gives the bytes back, to decode here.
    parser = MultiPartParser(
        Headers({"Content-Type": f"{kind}; charset=latin-1"}),
        _limited(request, max_bytes),
        max_files=1,
        max_fields=MAX_FIELDS,
        max_part_size=max_bytes,
    )
    try:
        form = await parser.parse()
    except MultiPartException as error:
        sentence = f"The body is not a valid form: {error.message}"
        raise Refusal(400, sentence, code="not_a_form") from None
    try:
        return _decoded_multipart(form, query)
    except UnicodeError:
        await form.close()
        raise _not_utf8() from None


def _decoded_multipart(form: FormData, query: dict[str, Any]) -> Parameters:
    """The parameters of a form that was read as Latin-1, and of the query.

    Raises:
        UnicodeError: a text or a name is not UTF-8.
    """
    texts: list[tuple[str, str]] = []
    files: dict[str, UploadFile] = {}
    for name, value in form.multi_items():
        if isinstance(value, str):
            texts.append((_as_utf8(name), _as_utf8(value)))
        else:
            value.filename = _as_utf8(value.filename or "")
            files[_as_utf8(name)] = value
    return Parameters(values={**query, **_collected(texts)}, files=files, is_form=True)


def _as_utf8(text: str) -> str:
    return text.encode("latin-1").decode("utf-8")


def _not_utf8() -> Refusal:
    return Refusal(400, "A form's names and texts must be UTF-8.", code="not_utf8")


def _require_plain(headers: Headers) -> None:
    coding = headers.get("content-encoding", "").strip().lower()
    if coding not in ("", "identity"):
        sentence = f"The body must not be compressed, but its Content-Encoding is {coding!r}."
        raise Refusal(415, sentence, code="unsupported_media_type")


def _require_short(headers: Headers, max_bytes: int) -> None:
    """Refuse a body by its announced length, before any of it is read."""
    announced = headers.get("content-length", "")
    # A length that is not a number is refused by the HTTP parser.
    if announced.isdecimal() and (len(announced) > 18 or int(announced) > max_bytes):
        raise _too_long(max_bytes)


async def _whole_body(request: Request, max_bytes: int) -> bytes:
    """Read a whole body. Most come in one piece, for which a generator costs too much.

    Raises:
        Refusal: it is too long.
        ClientDisconnect: the client disconnected before its end.
    """
    message = await request.receive()
    if not message.get("more_body", False):
        return _piece(message, max_bytes, max_bytes)
    return b"".join([piece async for piece in _limited(request, max_bytes, message)])


async def _limited(
    request: Request, max_bytes: int, message: Message | None = None
) -> AsyncGenerator[bytes, None]:
    """The pieces of a body; `message` is the first one, if it has already arrived."""
    n_left = max_bytes
    while True:
        message = message or await request.receive()
        piece = _piece(message, n_left, max_bytes)
        n_left -= len(piece)
        yield piece
        if not message.get("more_body", False):
            return
        message = None


def _piece(message: Message, n_left: int, max_bytes: int) -> bytes:
    """The bytes of a message, which must be at most `n_left`."""
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    piece: bytes = message.get("body", b"")
    if len(piece) > n_left:
        raise _cut_off(max_bytes)
    return piece


def _cut_off(max_bytes: int) -> Refusal:
    """Refuse a body of unknown length; the connection must be closed."""
    return _too_long(max_bytes, headers={"Connection": "close"})


def _too_long(max_bytes: int, headers: Mapping[str, str] | None = None) -> Refusal:
    sentence = f"The body must have at most {max_bytes} bytes."
    return Refusal(413, sentence, code="too_large", headers=headers)
