"""heed's own API: what a translation is made of, and errors in words."""

import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient
from tests.serve.conftest import SENTENCES, Serve
from tests.serve.event_loop import beside_loop

import heed
from heed.bundle.beside import save_beside
from heed.bundle.find import MEMORY
from heed.serve.settings import Glossary, Limits
from heed.serve.shapes import own
from heed.serve.shapes.answers import CELL_CHARS
from heed.serve.shapes.events import Event
from heed.serve.work.aside import SHORT_CHARS

PAIRS = [{"source": SENTENCES[0], "target": "Hunde"}]


@pytest.fixture
def client(serve: Serve, en_de: str, de_en: str) -> TestClient:
    return serve(en_de, de_en, limits=Limits(chars=200, texts=5, alternatives=3, memory_pairs=3))


def translate(client: TestClient, **values: Any) -> httpx.Response:
    sent = {"text": SENTENCES[0], "source": "en", "target": "de", **values}
    return client.post("/api/v1/translate", json=sent)


def test_an_answer_has_what_the_translator_gives(client: TestClient, en_de: str) -> None:
    wanted = heed.load(en_de).translate([SENTENCES[0]], alternatives=2)[0]
    answer = translate(client, alternatives=2).json()
    assert set(answer) == {"translations", "seconds", "n_tokens"}
    assert answer["n_tokens"] == len(wanted.tokens)
    (one,) = answer["translations"]
    assert (one["text"], one["source"], one["confidence"]) == (wanted.text, "en", None)
    assert one["alternatives"] == [
        {"text": other.text, "score": pytest.approx(other.score, abs=1e-6)}
        for other in wanted.alternatives
    ]
    (segment,) = one["segments"]
    assert segment["score"] == pytest.approx(wanted.score, abs=1e-6)
    assert "tokens" not in segment


def test_details_are_the_tokens_in_their_places(client: TestClient, en_de: str) -> None:
    wanted = heed.load(en_de).translate([SENTENCES[0]], alignment=True)[0]
    segment = translate(client, details=True).json()["translations"][0]["segments"][0]
    assert [token["piece"] for token in segment["tokens"]] == wanted.tokens
    for token, score in zip(segment["tokens"], wanted.token_scores, strict=False):
        assert token["probability"] == pytest.approx(math.exp(score), abs=1e-6)
        assert token["text"] == segment["text"][token["start"] : token["end"]]
    source = [token["piece"] for token in segment["source_tokens"]]
    assert source == wanted.source_tokens
    shape = (len(segment["alignment"]), len(segment["alignment"][0]))
    assert shape == (len(wanted.tokens), len(source))


def test_a_very_long_segment_has_no_alignment(serve: Serve, en_de: str) -> None:
    client = serve(en_de, limits=Limits(chars=3000))
    for n_words, is_aligned in ((10, True), (500, False)):  # 2,499 characters without a full stop
        text = " ".join(["dogs"] * n_words)
        (segment,) = translate(client, text=text, details=True).json()["translations"][0][
            "segments"
        ]
        assert bool(segment["alignment"]) is is_aligned
        assert segment["tokens"]


def test_tags_within_a_very_long_segment_are_kept(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heed.serve.service.ALIGNED_CHARS", 10)
    values = {"text": "Two dogs <b>play</b> in the snow.", "format": "html", "details": True}
    found = translate(client, **values).json()["translations"][0]
    assert re.search("<b>.*</b>", found["text"])
    assert found["segments"][0]["alignment"] == []


def test_details_name_the_similarity_of_a_pair(serve: Serve, en_de: str, tmp_path: Path) -> None:
    pair = (SENTENCES[0], "ein anderer Satz .")
    translator = heed.load(en_de)
    heed.remember(translator, [pair])
    folder = tmp_path / "en-de"
    shutil.copytree(en_de, folder)
    save_beside(folder, {MEMORY: translator.reader.memories[-1].to_bytes()}, replaced={MEMORY})
    found = translate(serve(str(folder)), details=True).json()["translations"][0]
    assert found["text"] == translator(SENTENCES[0])
    (segment,) = found["segments"]
    assert segment["memory"] == [1.0]
    plain = translate(serve(en_de), details=True).json()["translations"][0]
    assert plain["text"] != found["text"] and plain["segments"][0]["memory"] == []


def test_pairs_of_a_request_are_followed(client: TestClient) -> None:
    plain = translate(client, details=True).json()["translations"][0]
    guided = translate(client, memory=PAIRS, details=True).json()["translations"][0]
    assert guided["text"] == "Hunde" != plain["text"]
    assert guided["segments"][0]["memory"] == [1.0]
    for memory in ([], None, [{"source": " ", "target": "a"}, {"source": "a", "target": ""}]):
        assert translate(client, memory=memory, details=True).json()["translations"] == [plain]


def test_half_a_character_in_a_pair_is_refused(client: TestClient) -> None:
    sent = {"text": "a", "target": "de", "memory": [{"source": "a", "target": "\ud800"}]}
    answer = client.post("/api/v1/translate", content=json.dumps(sent))
    assert answer.status_code == 400
    assert answer.json()["error"]["sentence"] == "memory must be valid Unicode."


def test_every_text_of_a_list_has_its_answer(client: TestClient) -> None:
    found = translate(client, text=SENTENCES[:3]).json()["translations"]
    alone = [translate(client, text=text).json()["translations"][0] for text in SENTENCES[:3]]
    assert found == alone


def test_a_large_glossary_is_read_beside_the_event_loop(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "_terms", beside_loop(own._terms))
    glossary = {f"term{number}": "Rad" for number in range(1000)}
    assert translate(client, glossary=glossary).status_code == 200


def test_large_alignments_are_spelled_beside_the_event_loop(
    serve: Serve, en_de: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of 100,000 characters held all other requests up for seconds."""
    client = serve(en_de, limits=Limits(chars=3000))
    text = " ".join(["dogs"] * 300)
    small = translate(client, details=True).json()
    monkeypatch.setattr(own, "_detailed", beside_loop(own._detailed))
    monkeypatch.setattr(Event, "encode", beside_loop(Event.encode))
    answer = translate(client, text=text, details=True).json()
    (segment,) = answer["translations"][0]["segments"]
    assert sum(map(len, segment["alignment"])) * CELL_CHARS > SHORT_CHARS
    assert segment.keys() == small["translations"][0]["segments"][0].keys()
    sent = {"text": text, "source": "en", "target": "de", "details": True}
    streamed = client.post("/api/v1/translate/stream", json=sent).text
    (done,) = re.findall("event: done\ndata: (.*)", streamed)
    assert json.loads(done)["translations"] == answer["translations"]


@pytest.mark.parametrize("terms_first", [True, False])
def test_a_glossary_is_only_that_of_its_request(client: TestClient, terms_first: bool) -> None:
    """Also if the text spells a term with combining letters."""
    text, glossary = "A cafe\u0301 here.", {"café": "Zwei"}
    texts = {}
    for has_terms in (terms_first, not terms_first):
        answer = translate(client, text=text, **({"glossary": glossary} if has_terms else {}))
        texts[has_terms] = answer.json()["translations"][0]["text"]
    assert ["Zwei" in texts[has_terms] for has_terms in (True, False)] == [True, False]


def test_a_glossary_of_the_server_is_used_for_every_request(
    serve: Serve, en_de: str, tmp_path: Path
) -> None:
    """In every API and in files; a request's own terms count before those of the server."""
    terms = tmp_path / "terms.tsv"
    terms.write_text("dogs\tRüden\nsnow\tSchnee\n")
    client = serve(en_de, glossary=Glossary(files=(str(terms),)))
    text, values = "Two dogs play in the snow.", {"source": "en", "target": "de"}

    def given(path: str, **sent: Any) -> str:
        return client.post(path, **sent).text

    for answer in (
        given("/translate", json={"q": text, **values}),
        given("/v2/translate", json={"text": [text], "target_lang": "DE"}),
        given("/translator/translate", json=[{"src": text, "id": 1}]),
        given("/api/v1/files", files={"file": ("a.txt", text.encode())}, data=values),
    ):
        assert "Rüden" in answer and "Schnee" in answer
    sent = {"text": text, **values, "glossary": {"Dogs": "Hunde", "dogs": "Köter"}}
    answer = given("/api/v1/translate", json=sent)
    assert "Köter" in answer and "Schnee" in answer and "Rüden" not in answer
    assert "Rüden" in given("/api/v1/translate", json={"text": text, **values})
    (read,) = json.loads(given("/api/v1/translate", json={"text": [" "], **values}))["translations"]
    assert read["text"] == " "


def test_only_so_many_expressions_are_read(client: TestClient) -> None:
    answer = translate(client, protect=["a"] * (own.MAX_PATTERNS + 1))
    assert answer.status_code == 413
    assert "protect must have at most 100 entries" in answer.json()["error"]["sentence"]
    answer = translate(client, protect=["a" * own.MAX_PATTERN_CHARS, "b"])
    assert answer.status_code == 413
    assert "protect must have at most 10000 characters" in answer.json()["error"]["sentence"]


def test_options_change_the_search(client: TestClient) -> None:
    answer = translate(client, options={"max_length": 2}).json()["translations"][0]
    assert answer["segments"][0]["status"] == "max_length"


@pytest.mark.parametrize(
    ("values", "status", "field", "words"),
    [
        ({"text": None}, 400, "text", "text is missing."),
        ({"target": ""}, 400, "target", "target is missing."),
        ({"text": 5}, 400, "text", "text must be text or a list of texts."),
        ({"text": "x" * 201}, 413, "text", "text must have at most 200 characters, but has 201."),
        ({"text": ["x"] * 6}, 413, "text", "text must have at most 5 texts, but has 6."),
        ({"alternatives": 4}, 400, "alternatives", "alternatives must be at most 3."),
        ({"alternatives": -1}, 400, "alternatives", "a whole number from 0 to 100"),
        ({"details": "perhaps"}, 400, "details", "details must be true or false."),
        ({"format": "xml"}, 400, "format", "format must be one of text, html."),
        ({"options": {"n_best": 2}}, 400, "options", "n_best is not an option of a request"),
        ({"options": {"beem_size": 2}}, 400, "options", "did you mean beam_size?"),
        ({"options": {"beam_size": 1000}}, 400, "options", "at most 64 in a request, but is 1000."),
        ({"options": {"beam_size": "x"}}, 400, "options", "options.beam_size must be a whole"),
        ({"options": {"min_length": 100}}, 400, "options", "min_length must be below"),
        ({"options": []}, 400, "options", "options must be an object."),
        *(
            ({"memory": memory}, 400, "memory", "each with the texts source and target.")
            for memory in ("a", {"source": "a"}, ["a"], [{"source": "a"}], [*PAIRS, {"target": 1}])
        ),
        ({"memory": PAIRS * 4}, 413, "memory", "memory must have at most 3 pairs, but has 4."),
        (
            {"memory": [{"source": "x" * 100, "target": "y" * 101}]},
            413,
            "memory",
            "memory must have at most 200 characters, but has 201.",
        ),
    ],
)
def test_errors_name_the_field(
    client: TestClient, values: dict[str, Any], status: int, field: str, words: str
) -> None:
    answer = translate(client, **values)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert set(error) == {"code", "sentence", "field", "request_id"}
    assert error["field"] == field
    assert words in error["sentence"]


def test_an_error_with_half_a_character_can_be_read(client: TestClient) -> None:
    sent = {"text": SENTENCES[0], "source": "en", "target": "de", "options": {"\ud800": 2}}
    answer = client.post("/api/v1/translate", content=json.dumps(sent))
    assert answer.status_code == 400
    assert "\ufffd is not a decoding option" in answer.json()["error"]["sentence"]


def test_a_wrong_address_is_an_error_in_the_same_shape(client: TestClient) -> None:
    assert client.get("/api/v1/nothing").json()["error"]["code"] == "not_found"
    assert client.get("/api/v1/translate").json()["error"]["code"] == "method_not_allowed"


def test_languages_are_listed_with_their_targets(client: TestClient) -> None:
    assert client.get("/api/v1/languages").json()[0] == {
        "code": "en",
        "name": "English",
        "targets": ["de"],
    }
