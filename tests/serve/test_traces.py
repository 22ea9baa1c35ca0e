"""The inside of a served model over HTTP: the numbers are those of a trace in Python."""

import gc
import time
import weakref
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serve.conftest import Serve, make_model, n_steps_after_leaving

from heed.errors import MissingExtraError
from heed.serve.inside.traces import Traces
from heed.serve.request import Direction
from heed.serve.service import Service
from heed.serve.settings import Inside, Limits, Listen
from heed.serve.work import models as models_module
from heed.serve.work.versions import Opened, open_version
from heed.translate.translator import Translator, load

SENTENCE = "Two dogs play in the snow."
ASKED = {"text": SENTENCE, "source": "en", "target": "de"}


def test_a_trace_over_http_is_that_of_python(serve: Serve, en_de: str) -> None:
    client = serve(en_de)
    answer = client.post("/api/v1/trace", json=ASKED).json()
    trace = load(en_de).trace(SENTENCE)
    assert answer["translation"] == trace.translation
    assert answer["source_tokens"] == trace.source_tokens
    assert [node["name"] for node in answer["nodes"]] == [*trace]
    found = client.get(f"/api/v1/trace/{answer['id']}/logits").content
    np.testing.assert_array_equal(np.frombuffer(found, "<f4"), trace["logits"].ravel())
    query = "ending=attention.weights&dtype=f16"
    several = client.get(f"/api/v1/trace/{answer['id']}?{query}").content
    expected = np.concatenate([each.ravel() for each in trace.named("attention.weights").values()])
    np.testing.assert_array_equal(np.frombuffer(several, "<f2"), expected.astype("<f2"))


def test_a_trace_without_torch_has_a_documented_status(
    serve: Serve, en_de: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trace(*_: Any, **__: Any) -> None:
        raise MissingExtraError("tracing", "train")

    monkeypatch.setattr(Translator, "trace", trace)
    client = serve(en_de)
    assert client.post("/api/v1/trace", json=ASKED).status_code == 501
    described = client.get("/openapi.json").json()["paths"]["/api/v1/trace"]
    assert "501" in described["post"]["responses"]


def test_a_trace_of_a_two_way_model_names_the_languages_of_its_request(
    serve: Serve, tmp_path: Path
) -> None:
    client = serve(make_model(tmp_path / "both", "en", "de", target_langs=("en", "de")))
    asked = {"text": "Zwei Hunde spielen.", "source": "de", "target": "en"}
    answer = client.post("/api/v1/trace", json=asked).json()
    assert (answer["source"], answer["target"]) == ("de", "en")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target_lang": "de"}, "target_lang is not a decoding option"),
        ({"steps": True}, "steps is not a decoding option"),
        ({"beam_size": 1000}, "options.beam_size must be at most 64 in a request"),
        ([], "options must be an object"),
    ],
)
def test_options_that_no_client_may_set_are_refused(
    serve: Serve, en_de: str, options: Any, words: str
) -> None:
    client = serve(en_de)
    answer = client.post("/api/v1/trace", json=ASKED | {"options": options})
    assert answer.status_code == 400, answer.text
    assert words in answer.json()["error"]["sentence"]
    traced = client.post("/api/v1/trace", json=ASKED).json()["id"]
    answer = client.post(f"/api/v1/trace/{traced}/edit", json={"changes": [], "options": options})
    assert answer.status_code == 400, answer.text
    assert words in answer.json()["error"]["sentence"]


def test_a_given_translation_is_traced(serve: Serve, en_de: str) -> None:
    answer = serve(en_de).post("/api/v1/trace", json=ASKED | {"translation": "Schnee"}).json()
    assert answer["translation"] == "Schnee"
    assert len(answer["target_tokens"]) == len(answer["expected_tokens"])


def test_only_the_last_traces_are_kept(serve: Serve, en_de: str) -> None:
    client = serve(en_de, inside=Inside(traces=2))
    ids = [client.post("/api/v1/trace", json=ASKED).json()["id"] for _ in range(3)]
    statuses = [client.get(f"/api/v1/trace/{id}/memory").status_code for id in ids]
    assert statuses == [404, 200, 200]
    assert client.get(f"/api/v1/trace/{ids[2]}/none").json()["error"]["code"] == "no_such_tensor"


def test_a_public_server_shows_no_inside_unless_it_is_allowed(serve: Serve, en_de: str) -> None:
    client = serve(en_de, listen=Listen(host="0.0.0.0"), inside=Inside(enabled="off"))
    assert 'data-inside="off"' in client.get("/").text
    for settings in ({"inside": Inside(enabled="off")}, {"inside": Inside(enabled="on")}):
        answer = serve(en_de, **settings).post("/api/v1/trace", json=ASKED)
        assert answer.status_code == (200 if settings["inside"].enabled == "on" else 403)


def test_weights_and_pieces_of_the_traced_model_are_read(serve: Serve, en_de: str) -> None:
    client = serve(en_de)
    id = client.post("/api/v1/trace", json=ASKED).json()["id"]
    translator = load(en_de)
    pieces = client.get(f"/api/v1/trace/{id}/pieces").json()
    assert pieces == translator.tgt_vocab.pieces(range(translator.tgt_vocab.size))
    name = "encoder.0.feed_forward.expand.weight"
    weight = translator.traced.network.get_parameter(name).detach().numpy()
    whole = client.get(f"/api/v1/trace/{id}/weights/{name}").content
    np.testing.assert_array_equal(np.frombuffer(whole, "<f4"), weight.ravel())
    row = client.get(f"/api/v1/trace/{id}/weights/{name}?row=3").content
    np.testing.assert_array_equal(np.frombuffer(row, "<f4"), weight[3])
    assert client.get(f"/api/v1/trace/{id}/weights/{name}?row=999").status_code == 400
    assert client.get(f"/api/v1/trace/{id}/weights/none").status_code == 404


LINES = [SENTENCE, "A bike.", "Snow."]


def test_a_batch_over_http_is_that_of_python(serve: Serve, en_de: str) -> None:
    client = serve(en_de)
    given = ["", "Schnee.", ""]
    asked = ASKED | {"text": LINES, "translation": given}
    answer = client.post("/api/v1/trace", json=asked).json()
    batch = load(en_de).trace(LINES, [text or None for text in given])
    assert [node["name"] for node in answer["nodes"]] == [*batch]
    assert answer["nodes"][0]["axes"] == ["batch", *batch.sentences[0].nodes[0].axes]
    for found, part in zip(answer["sentences"], batch.sentences, strict=True):
        assert found["translation"] == part.translation
        assert found["source_tokens"] == part.source_tokens
        assert found["source_padding"] == part.n_src_padding
        assert found["target_padding"] == part.n_tgt_padding
    address = f"/api/v1/trace/{answer['id']}"
    name = "decoder.0.cross_attention.weights"
    whole = np.frombuffer(client.get(f"{address}/{name}").content, "<f4")
    np.testing.assert_array_equal(whole, batch[name].ravel())
    one = np.frombuffer(client.get(f"{address}/{name}?batch=1").content, "<f4")
    np.testing.assert_array_equal(one, batch[name][1].ravel())
    several = client.get(f"{address}?ending=attention.weights&batch=2").content
    parts = batch.sentences[2].named("attention.weights").values()
    expected = np.concatenate([each.ravel() for each in parts])
    np.testing.assert_array_equal(np.frombuffer(several, "<f4"), expected)
    assert client.get(f"{address}/{name}?batch=3").status_code == 400


def test_what_looks_into_one_sentence_refuses_a_batch(serve: Serve, en_de: str) -> None:
    client = serve(en_de)
    id = client.post("/api/v1/trace", json=ASKED | {"text": LINES}).json()["id"]
    answer = client.get(f"/api/v1/embeddings/states/{id}").json()
    assert answer["error"]["code"] == "several_sentences"


def test_a_batch_counts_with_its_padding(serve: Serve, en_de: str) -> None:
    """Each sentence takes the memory of the longest."""
    long = ["a" * 40, "b", "c"]
    for chars, status in ((119, 413), (120, 200)):
        client = serve(en_de, limits=Limits(chars=chars))
        assert client.post("/api/v1/trace", json=ASKED | {"text": long}).status_code == status
    client = serve(en_de, limits=Limits(texts=2))
    assert client.post("/api/v1/trace", json=ASKED | {"text": long}).status_code == 413


def test_a_translation_of_each_sentence_is_needed(serve: Serve, en_de: str) -> None:
    client = serve(en_de)
    for text, translation in ((LINES, ["Schnee."]), (LINES, "Schnee."), (SENTENCE, ["Schnee."])):
        asked = ASKED | {"text": text, "translation": translation}
        answer = client.post("/api/v1/trace", json=asked)
        assert answer.status_code == 400
        assert "one entry for each text" in answer.json()["error"]["sentence"]


@pytest.mark.parametrize("texts", [[SENTENCE], LINES])
def test_a_trace_ends_when_its_client_leaves(
    en_de: str, monkeypatch: pytest.MonkeyPatch, texts: list[str]
) -> None:
    async def trace(service: Service) -> Callable[[], Awaitable[object]]:
        traces = Traces(service, is_allowed=True, n_kept=1)
        is_batch, none = len(texts) > 1, [""] * len(texts)
        direction = Direction(source="en", target="de")
        return partial(traces.make, texts, none, direction, options={}, is_batch=is_batch)

    assert n_steps_after_leaving(trace, en_de, monkeypatch) == 1


def test_traces_and_searches_of_a_replaced_model_do_not_keep_it_in_memory(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[weakref.ref[Translator]] = []

    def remembered(*arguments: Any) -> Opened:
        opened = open_version(*arguments)
        loaded.append(weakref.ref(opened.translator))
        return opened

    monkeypatch.setattr(models_module, "open_version", remembered)
    folder = make_model(tmp_path / "en-de", "en", "de", seed=1)
    other = make_model(tmp_path / "de-en", "de", "en", seed=2)
    monkeypatch.setattr(models_module, "CHECK_S", 0.0)
    client = serve(folder, other, listen=Listen(port=0))

    def address_of(kind: str, asked: dict[str, str]) -> str:
        id = client.post(f"/api/v1/{kind}", json=asked).json()["id"]
        return f"/api/v1/{kind}/{id}/pieces"

    back = {"text": SENTENCE, "source": "de", "target": "en"}
    kept = [address_of(kind, back) for kind in ("trace", "search")]
    outdated = [address_of(kind, ASKED) for kind in ("trace", "search")]
    assert {client.get(each).status_code for each in kept + outdated} == {200}
    make_model(tmp_path / "en-de", "en", "de", seed=9)
    deadline = time.monotonic() + 30
    while len(loaded) < 3 or loaded[1]() is not None:
        client.post("/translate", json={"q": SENTENCE, "source": "en", "target": "de"})
        gc.collect()
        assert time.monotonic() < deadline
    assert [client.get(each).status_code for each in outdated] == [404, 404]
    assert [client.get(each).status_code for each in kept] == [200, 200]
    assert client.get(address_of("trace", ASKED)).status_code == 200
