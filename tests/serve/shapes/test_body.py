"""What clients send is read within limits, and what cannot be read is refused in words."""

import asyncio
import gzip
import json
import math
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.serve.conftest import Serve
from tests.serve.event_loop import beside_loop

from heed.serve.refusal import Refusal
from heed.serve.request import Answer, Request
from heed.serve.service import Service
from heed.serve.settings import Limits
from heed.serve.shapes import body, endpoint
from heed.serve.shapes.body import decode_json

Post = Callable[..., httpx.Response]
JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def post(serve: Serve, en_de: str) -> Post:
    """`post(content=…, headers=…)` of `/translate` on a server with small limits."""
    client = serve(en_de, limits=Limits(body_bytes=2000, chars=200, texts=5))
    return lambda **sent: client.post("/translate", **sent)


def refused(answer: httpx.Response) -> str:
    """The sentence of an error answer."""
    assert 400 <= answer.status_code < 500
    assert answer.headers["content-type"] == "application/json"
    return str(answer.json()["error"])


def test_json_form_query_and_multipart_give_the_same_answer(post: Post) -> None:
    values = {"q": "A man is riding a bike.", "source": "en", "target": "de"}
    files = {name: (None, value) for name, value in values.items()}
    answers = [post(json=values), post(data=values), post(params=values), post(files=files)]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert len({answer.text for answer in answers}) == 1


def test_long_forms_and_json_are_read_beside_the_event_loop(
    serve: Serve, en_de: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decoding a megabyte of %C3%BC takes 0.4 s."""
    for name in ("_decoded_form", "decode_json"):
        monkeypatch.setattr(body, name, beside_loop(getattr(body, name)))
    monkeypatch.setattr(endpoint, "query_of", lambda request: {})
    client = serve(en_de)
    values = {"q": "ü" * 50_000, "source": "en"}
    for answer in (client.post("/translate", data=values), client.post("/translate", json=values)):
        assert "missing target" in refused(answer)


def test_json_without_a_content_type_is_read(post: Post) -> None:
    sent = json.dumps({"q": "Two dogs", "source": "en", "target": "de"})
    assert post(content=sent).status_code == 200


def test_a_byte_order_mark_is_no_part_of_the_json(post: Post) -> None:
    sent = json.dumps({"q": "Two dogs", "source": "en", "target": "de"})
    for encoding in ("utf-8-sig", "utf-16"):
        assert post(content=sent.encode(encoding), headers=JSON).status_code == 200


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"q": ', "not valid JSON"),
        (b'{"q": "\xff\xfe"}', "not valid UTF-8"),
        (b"[" * 1900, "nested too deeply"),
        (b'{"q": NaN}', "is not a JSON number"),
        (b'{"q": 1e999}', "too large"),
        (b'{"q": "a", "q": "b"}', "the same key twice"),
        (b'{"q": "\\ud83d", "source": "en", "target": "de"}', "q parameter must be valid Unicode"),
        (b'{"q": 5, "source": "en", "target": "de"}', "must be text or a list of texts"),
        (b'{"q": [null], "source": "en", "target": "de"}', "must be text or a list of texts"),
        (b'{"q": "a", "source": {}, "target": "de"}', "source parameter must be text"),
        (b'["q"]', "missing q"),
        (b"null", "missing q"),
        (b"", "missing q"),
    ],
)
def test_json_that_cannot_be_read_is_refused_in_words(
    post: Post, content: bytes, words: str
) -> None:
    assert words in refused(post(content=content, headers=JSON))


def test_a_number_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(Refusal, match="not valid JSON: a number has too many digits."):
        decode_json(b"9" * 5000)
    assert decode_json(b"9" * 300) == 10**300 - 1


def test_a_compressed_body_is_refused(post: Post) -> None:
    packed = gzip.compress(b'{"q": "a", "source": "en", "target": "de"}')
    answer = post(content=packed, headers={**JSON, "Content-Encoding": "gzip"})
    assert answer.status_code == 415
    assert "must not be compressed, but its Content-Encoding is 'gzip'." in refused(answer)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"q=%ff&source=en&target=de", "not valid UTF-8"),
        (b"q=\xff&source=en&target=de", "not valid UTF-8"),
        (b"&".join([b"a=1"] * 400), "missing q"),
    ],
)
def test_a_form_that_cannot_be_read_is_refused_in_words(
    post: Post, content: bytes, words: str
) -> None:
    assert words in refused(post(content=content, headers=FORM))


def test_a_form_with_thousands_of_parameters_is_refused(serve: Serve, en_de: str) -> None:
    answer = serve(en_de).post("/translate", content=b"a=1&" * 2500, headers=FORM)
    assert "at most 2000 parameters" in refused(answer)


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("multipart/form-data", b"--x\r\n"),
        ("multipart/form-data; boundary=x", b"no boundary here"),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data\r\n\r\na\r\n"),
    ],
)
def test_a_multipart_body_that_cannot_be_read_is_refused(
    post: Post, kind: str, content: bytes
) -> None:
    assert "not a valid form" in refused(post(content=content, headers={"Content-Type": kind}))


def test_a_multipart_form_in_another_encoding_is_refused(post: Post) -> None:
    kind = "multipart/form-data; boundary=x; charset=utf-16"
    assert "must be UTF-8" in refused(post(content=b"--x--", headers={"Content-Type": kind}))


@pytest.mark.parametrize("boundary", ["charset=x", '"a charset=latin-1"'])
def test_a_boundary_names_no_encoding(post: Post, boundary: str) -> None:
    pairs = {"q": "a", "source": "en", "target": "de"}
    line = boundary.strip('"')
    part = '--{}\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    content = "".join(part.format(line, *pair) for pair in pairs.items()) + f"--{line}--\r\n"
    kind = f"multipart/form-data; boundary={boundary}"
    answer = post(content=content.encode(), headers={"Content-Type": kind})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    "part",
    ['name="q"\r\n\r\nGr\xfc\xdfe', 'name="\xfc"\r\n\r\na', 'name="f"; filename="\xfc"\r\n\r\na'],
)
@pytest.mark.parametrize("kind", ["boundary=x", "boundary=x; charset=utf-8", 'boundary="x'])
def test_a_multipart_form_that_is_not_utf_8_is_refused(post: Post, kind: str, part: str) -> None:
    """Before, it was read as Latin-1."""
    headers = {"Content-Type": f"multipart/form-data; {kind}"}
    form = f"--x\r\nContent-Disposition: form-data; {part}\r\n--x--\r\n"
    direction = {"source": "en", "target": "de"}
    answer = post(content=form.encode("latin-1"), headers=headers, params=direction)
    words = "not a valid form" if kind == 'boundary="x' else "names and texts must be UTF-8"
    assert words in refused(answer)
    assert answer.status_code == 400


def test_a_multipart_form_is_read_as_utf_8(serve: Serve, en_de: str) -> None:
    client = serve(en_de)
    values = {"source": "en", "target": "de"}
    whole = client.post("/translate", json={**values, "q": "Größe 日本"}).json()
    files = {name: (None, value) for name, value in {**values, "q": "Größe 日本"}.items()}
    assert client.post("/translate", files=files).json() == whole
    sent = {"file": ("bä.txt", b"Two dogs")}
    answer = client.post("/api/v1/files", files=sent, data=values)
    assert "filename*=UTF-8''b%C3%A4.de.txt" in answer.headers["content-disposition"]


def test_another_content_type_is_refused_with_those_there_are(post: Post) -> None:
    answer = post(content=b"<q>a</q>", headers={"Content-Type": "text/xml"})
    assert answer.status_code == 415
    assert "application/json" in refused(answer)


@pytest.mark.parametrize(
    "headers", [JSON, FORM, {"Content-Type": "multipart/form-data; boundary=x"}]
)
def test_a_body_is_too_long_by_its_announced_length(post: Post, headers: dict[str, str]) -> None:
    answer = post(content=b"x" * 2001, headers=headers)
    assert answer.status_code == 413
    assert "at most 2000 bytes" in refused(answer)


def test_a_body_that_does_not_say_its_length_is_read_no_further_than_the_limit(post: Post) -> None:
    n_sent = 0

    def chunks() -> Any:
        nonlocal n_sent
        for _ in range(100):
            n_sent += 1
            yield b"x" * 100

    answer = post(content=chunks(), headers=JSON)
    assert answer.status_code == 413
    assert answer.headers["connection"] == "close"


def post_in_pieces(content: bytes, size: int) -> Any:
    return (content[start : start + size] for start in range(0, len(content), size))


@pytest.mark.parametrize("size", [1, 7, 2000])
@pytest.mark.parametrize("n_more", [0, 1])
def test_the_limit_counts_all_pieces_and_takes_its_last_byte(
    post: Post, size: int, n_more: int
) -> None:
    values = json.dumps({"q": "Two dogs", "source": "en", "target": "de"}).encode()
    form = b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\nTwo dogs\r\n--x--'
    kinds = {
        "application/json": values + b" " * (2000 + n_more - len(values)),
        "multipart/form-data; boundary=x": form + b" " * (2000 + n_more - len(form)),
    }
    for kind, content in kinds.items():
        sent = post_in_pieces(content, size)
        query = {} if kind == "application/json" else {"source": "en", "target": "de"}
        answer = post(content=sent, params=query, headers={"Content-Type": kind})
        assert answer.status_code == (413 if n_more else 200), kind


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON_VALUES)
def test_valid_json_is_read_as_python_reads_it(value: Any) -> None:
    assert decode_json(json.dumps(value).encode()) == value
    assert decode_json(json.dumps(value, ensure_ascii=False).encode("utf-8")) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        value = decode_json(data)
    except Refusal as refusal:
        assert refusal.status == 400
    else:
        assert not (isinstance(value, float) and math.isnan(value))


@pytest.mark.parametrize("seconds", ["", "0", "0.0", "-1", "nan", "1e3", "1 s", "9999999"])
def test_a_timeout_that_is_no_number_of_seconds_is_refused(post: Post, seconds: str) -> None:
    values = {"q": "A man is riding a bike.", "source": "en", "target": "de"}
    answer = post(json=values, headers={"X-Timeout": seconds})
    assert refused(answer) == "X-Timeout must be a number of seconds above 0, such as 2.5."


def test_a_client_may_set_a_shorter_time(
    serve: Serve, en_de: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve(en_de)
    values = {"q": "A man is riding a bike.", "source": "en", "target": "de"}
    assert client.post("/translate", json=values, headers={"X-Timeout": "30"}).status_code == 200

    async def never(service: Service, request: Request) -> list[Answer]:
        await asyncio.sleep(60)
        return []

    monkeypatch.setattr(Service, "translate", never)
    answer = client.post("/translate", json=values, headers={"X-Timeout": "0.05"})
    assert answer.status_code == 504
    assert "was not ready in time" in answer.json()["error"]
