"""Requests as no client means them: made from the table of endpoints, and spoiled."""

import json
from typing import Any

from hypothesis import strategies as st

from heed.serve.shapes.endpoint import Endpoint
from heed.serve.shapes.fields import Field
from heed.serve.shapes.table import ENDPOINTS

ODD_TEXTS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            "",
            " ",
            "\x00",
            "\ud800",
            "<b>Two</b> <i>dogs",
            "<script>alert(1)</script>",
            "]]>",
            "&#x110000;",
            "‮abc",
            "😀",
            "e\u0301" * 20,
            "A man. " * 30,
            "../../etc/passwd",
            "9" * 30,
            "NaN",
            "auto",
            "en",
            "de",
        ]
    ),
)
ODD_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        ODD_TEXTS,
        st.none(),
        st.booleans(),
        st.integers(),
        st.sampled_from([10**30, -1, 2**63, 0]),
        st.floats(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=8,
)
GOOD = {
    "text": st.sampled_from(
        ["A man is riding a bike.", "<p>Two dogs</p>", "Zwei Hunde.\nIm Schnee"]
    ),
    "texts": st.lists(st.sampled_from(["A man.", "Two dogs", "", "😀"]), min_size=1, max_size=3),
    "integer": st.integers(0, 5),
    "number": st.floats(0, 1),
    "flag": st.booleans(),
    "word": st.sampled_from(["en", "de", "EN-GB", "auto", "html", "x"]),
    "words": st.lists(st.sampled_from(["b", "i", "p"]), max_size=3),
    "integers": st.lists(st.integers(0, 400), max_size=3),
    "object": st.dictionaries(
        st.sampled_from(["beam_size", "sample", "max_length", "bike"]),
        st.integers(0, 4),
        max_size=2,
    ),
    "objects": st.lists(st.dictionaries(st.sampled_from(["kind", "head"]), ODD_VALUES), max_size=2),
    "pairs": st.lists(
        st.fixed_dictionaries({"source": ODD_TEXTS, "target": ODD_TEXTS}), max_size=2
    ),
    "file": st.just("a file"),
}
CONTENT_TYPES = st.sampled_from(
    [
        "application/json",
        "application/json; charset=utf-16",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "multipart/form-data",
        "text/plain",
        "application/xml",
        "",
        "x" * 200,
        "application/json, application/json",
    ]
)
METHODS = st.sampled_from(["POST", "GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE"])


def value_of(field: Field) -> st.SearchStrategy[Any]:
    """Mostly what a field is for, sometimes anything."""
    good: st.SearchStrategy[Any] = GOOD[field.kind]
    if field.choices:
        good = st.sampled_from(field.choices)
    elif field.example is not None:
        good = st.one_of(st.just(field.example), good)
    return st.one_of(good, good, good, ODD_VALUES)


def body_of(endpoint: Endpoint) -> st.SearchStrategy[Any]:
    """A JSON value, mostly an object with the fields of the endpoint."""
    if endpoint.body is not None:
        item = st.fixed_dictionaries({}, optional={"id": ODD_VALUES, "src": ODD_TEXTS})
        return st.one_of(st.just(endpoint.example), st.lists(item, max_size=3), ODD_VALUES)
    required = {each.name: value_of(each) for each in endpoint.fields if each.is_required}
    optional = {each.name: value_of(each) for each in endpoint.fields if not each.is_required}
    whole = st.fixed_dictionaries(required, optional=optional)
    parts = st.fixed_dictionaries({}, optional={**required, **optional})
    return st.one_of(whole, whole, whole, parts, ODD_VALUES)


@st.composite
def requests_made(draw: st.DrawFn) -> dict[str, Any]:
    """Method, path, query, headers and body."""
    endpoint = draw(st.sampled_from(ENDPOINTS))
    path = endpoint.path
    while "{" in path:
        before, _, after = path.partition("{")
        path = (
            before
            + draw(st.sampled_from(["x", "..%2f..", "%00", "docs.js", "é"]))
            + after.partition("}")[2]
        )
    value = draw(body_of(endpoint))
    method = draw(st.one_of(st.just(endpoint.method), METHODS))
    made: dict[str, Any] = {"method": method, "path": path, "query": {}, "headers": {}, "body": b""}
    kind = draw(st.sampled_from(["json", "json", "form", "query", "spoiled"]))
    if kind in ("form", "query") and isinstance(value, dict):
        made["query" if kind == "query" else "form"] = {
            _encodable(name): [_encodable(each) for each in part]
            if isinstance(part, list)
            else _encodable(part)
            for name, part in value.items()
        }
        return made
    body = json.dumps(value).encode()
    if kind == "spoiled":
        body = draw(
            st.one_of(st.binary(max_size=60), st.just(body[: len(body) // 2]), st.just(body))
        )
        made["headers"]["Content-Type"] = draw(CONTENT_TYPES)
    else:
        made["headers"]["Content-Type"] = "application/json"
    made["body"] = body
    return made


def _encodable(value: Any) -> str:
    """As a form can hold it: half of a character has no bytes."""
    return str(value).encode("utf-8", "replace").decode()
