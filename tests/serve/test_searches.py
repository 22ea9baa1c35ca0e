"""Recorded searches over HTTP: the numbers are those of a record in Python."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serve.conftest import Serve, make_model, n_steps_after_leaving

from heed.explain.decoding.observe import draws_at
from heed.explain.decoding.recorded import record_search
from heed.serve.inside import searches
from heed.serve.inside.searches import Searches
from heed.serve.request import Direction
from heed.serve.service import Service
from heed.serve.settings import Inside, Memory
from heed.translate.translator import load

SENTENCE = "Two dogs play in the snow."
ASKED: dict[str, Any] = {"text": SENTENCE, "source": "en", "target": "de"}
WAYS: list[dict[str, Any]] = [
    {"beam_size": 3, "no_repeat_ngram_size": 1},
    {"beam_size": 1},
    {"sample": True, "top_p": 0.8, "seed": 5},
]


@pytest.mark.parametrize("options", WAYS)
def test_a_search_over_http_is_that_of_python(
    serve: Serve, en_de: str, options: dict[str, Any]
) -> None:
    client = serve(en_de)
    answer = client.post("/api/v1/search", json=ASKED | {"options": options}).json()
    translator = load(en_de)
    found = record_search(translator, SENTENCE, **options)
    assert answer["translation"] == translator.translate([SENTENCE], **options)[0].text
    assert {name: answer[name] for name in found.record.to_dict()} == found.record.to_dict()
    for number, step in enumerate(answer["steps"]):
        content = client.get(f"/api/v1/search/{answer['id']}/step/{number}").content
        both = np.frombuffer(content, "<f4").reshape(2, len(step["rows"]), answer["vocab_size"])
        at = found.at(number)
        np.testing.assert_array_equal(both, np.stack([at.log_probs, at.scores]))
    bare = client.get(f"/api/v1/search/{answer['id']}/step/0?constraints=false").content
    np.testing.assert_array_equal(np.frombuffer(bare, "<f4"), found.at(0).log_probs.ravel())


def test_a_search_names_the_pair_that_guided_it_and_can_do_without(
    serve: Serve, en_de: str, tmp_path: Path
) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(f"{SENTENCE}\tEin Mann\n")
    client = serve(en_de, memory=Memory(files=(str(path),)))
    guided = client.post("/api/v1/search", json=ASKED).json()
    assert guided["match"] == {"similarity": 1.0, "source": SENTENCE, "target": "Ein Mann"}
    traced = client.post("/api/v1/trace", json=ASKED).json()
    assert (traced["match"], traced["translation"]) == (guided["match"], "Ein Mann")
    alone = client.post("/api/v1/search", json=ASKED | {"use_memory": False}).json()
    assert alone["match"] is None
    own = record_search(load(en_de), SENTENCE).record.to_dict()
    assert {name: alone[name] for name in own} == own


def test_steps_that_are_not_in_memory_are_searched_again(
    serve: Serve, en_de: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve(en_de)
    whole = client.post("/api/v1/search", json=ASKED).json()
    monkeypatch.setattr(searches, "KEPT_BYTES", 1)
    again = client.post("/api/v1/search", json=ASKED).json()
    for number in (3, 0, 2):
        first, second = (
            client.get(f"/api/v1/search/{each['id']}/step/{number}").content
            for each in (whole, again)
        )
        assert first == second


def test_a_two_way_model_is_searched_again_in_the_direction_of_the_request(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searches, "KEPT_BYTES", 1)
    client = serve(make_model(tmp_path / "both", "en", "de", target_langs=("en", "de")))
    asked = {"text": "Zwei Hunde spielen.", "source": "de", "target": "en"}
    answer = client.post("/api/v1/search", json=asked).json()
    assert (answer["source"], answer["target"]) == ("de", "en")
    assert client.get(f"/api/v1/search/{answer['id']}/step/0").status_code == 200


def test_pieces_and_draws(serve: Serve, en_de: str) -> None:
    client = serve(en_de)
    answer = client.post("/api/v1/search", json=ASKED).json()
    vocab = load(en_de).tgt_vocab
    path = f"/api/v1/search/{answer['id']}"
    assert client.get(f"{path}/pieces").json() == vocab.pieces(range(vocab.size))
    assert client.get(f"{path}/pieces?first=5&count=2").json() == vocab.pieces([5, 6])
    numbers = client.get(f"{path}/draws?step=2&seed=9&count=7").json()["numbers"]
    assert numbers == draws_at(2, seed=9, count=7)
    assert answer["control_ids"] == list(vocab.control_ids)


def test_a_beginning_may_be_given_as_ids(serve: Serve, en_de: str) -> None:
    client = serve(en_de)
    vocab = load(en_de).tgt_vocab
    begin = vocab.encode("Ein")
    answer = client.post("/api/v1/search", json=ASKED | {"prefix_ids": begin}).json()
    assert answer["prefix"] == begin
    assert answer["finished"][0]["ids"][: len(begin)] == begin
    same = client.post("/api/v1/search", json=ASKED | {"prefix": "Ein"}).json()
    assert same["finished"] == answer["finished"]


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"prefix_ids": "12"}, 400, "prefix_ids must be a list of whole numbers."),
        ({"prefix_ids": [1.5]}, 400, "prefix_ids must be a list of whole numbers."),
        ({"prefix_ids": [99999]}, 400, "prefix_ids must hold ids of pieces of text"),
        ({"options": {"beam_size": 65}}, 400, "options.beam_size must be at most 64"),
        ({"options": {"beams": 2}}, 400, "beams is not a decoding option"),
        ({"options": {"target_lang": "de"}}, 400, "target_lang is not a decoding option"),
        ({"options": {"max_bytes": 1 << 40}}, 400, "max_bytes is not a decoding option"),
        ({"text": " "}, 400, "must be a sentence, but is blank"),
    ],
)
def test_a_wrong_request_is_refused_in_words(
    serve: Serve, en_de: str, change: dict[str, Any], status: int, words: str
) -> None:
    answer = serve(en_de).post("/api/v1/search", json=ASKED | change)
    assert answer.status_code == status, answer.text
    assert words in answer.json()["error"]["sentence"]


def test_what_is_not_there_is_404(serve: Serve, en_de: str) -> None:
    client = serve(en_de, inside=Inside(traces=1))
    first, second = (client.post("/api/v1/search", json=ASKED).json()["id"] for _ in range(2))
    gone = client.get(f"/api/v1/search/{first}/pieces")
    assert gone.status_code == 404
    assert "request it again with POST /api/v1/search" in gone.json()["error"]["sentence"]
    for step in ("x", "²", "9" * 30):
        assert client.get(f"/api/v1/search/{second}/step/{step}").status_code == 404
    assert client.get(f"/api/v1/search/{second}/step/99").status_code == 400


def test_a_server_that_shows_no_inside_records_no_search(serve: Serve, en_de: str) -> None:
    client = serve(en_de, inside=Inside(enabled="off"))
    assert client.post("/api/v1/search", json=ASKED).status_code == 403
    assert client.get("/api/v1/search/x/pieces").status_code == 403


@pytest.mark.parametrize("is_again", [False, True])
def test_a_search_ends_when_its_client_leaves(
    en_de: str, monkeypatch: pytest.MonkeyPatch, is_again: bool
) -> None:
    """Also one that is repeated, because a step is not in memory."""
    monkeypatch.setattr(searches, "KEPT_BYTES", 1)

    async def search(service: Service) -> Callable[[], Awaitable[object]]:
        made = Searches(service, is_allowed=True, n_kept=1)
        direction = Direction(source="en", target="de")
        make = partial(
            made.make, SENTENCE, direction, prefix="", prefix_ids=None, use_memory=True, options={}
        )
        return partial(made.at, (await make()).id, 3) if is_again else make

    assert n_steps_after_leaving(search, en_de, monkeypatch) == 1
