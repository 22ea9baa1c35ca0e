"""Positions and embeddings over HTTP: the numbers are those of Python."""

import base64
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serve.conftest import Serve, make_model
from tests.serve.event_loop import beside_loop

from heed.bundle.bundle import load_bundle
from heed.explain import embeddings as embeddings_module
from heed.explain import positions as positions_module
from heed.explain.embeddings import map_of_pieces, trajectories
from heed.explain.positions import model_positions, similarity
from heed.serve.inside import tables
from heed.serve.settings import Inside
from heed.translate.translator import load
from heed.vectors.pieces import piece_tables
from heed.vectors.table import analogy, nearest


def floats(packed: str, *shape: int) -> np.ndarray[Any, Any]:
    return np.frombuffer(base64.b64decode(packed), "<f4").reshape(shape)


def test_positions_over_http_are_those_of_python(serve: Serve, en_de: str) -> None:
    answer = serve(en_de).get("/api/v1/positions?length=9").json()
    table = model_positions(load_bundle(en_de), 9)
    assert (answer["kind"], answer["shape"], answer["model"]) == ("sinusoidal", [9, 16], "en-de")
    np.testing.assert_array_equal(floats(answer["values"], 9, 16), table.values)
    np.testing.assert_array_equal(floats(answer["similarity"], 9, 9), similarity(table))
    assert [wave["wavelength"] for wave in answer["waves"]] == [w.wavelength for w in table.waves]


def test_positions_are_read_once_for_each_version_and_one_at_a_time(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reading holds all weights in memory."""
    n_reading, counts = 0, []

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal n_reading
        n_reading += 1
        counts.append(n_reading)
        time.sleep(0.05)
        found = load_bundle(*arguments, **named)
        n_reading -= 1
        return found

    monkeypatch.setattr(tables, "load_bundle", counted)
    folder = tmp_path / "en-de"
    client = serve(make_model(folder, "en", "de"))
    paths = [f"/api/v1/positions?length={length}" for length in (3, 4, 5)] * 3
    with ThreadPoolExecutor(9) as pool:
        answers = list(pool.map(client.get, paths))
    assert [each.json()["shape"][0] for each in answers] == [3, 4, 5] * 3
    assert counts == [1, 1, 1]
    make_model(folder, "en", "de", seed=2, d_model=32)
    assert client.get(paths[0]).json()["shape"] == [3, 32]
    for length in range(1, 21):
        client.get(f"/api/v1/positions?length={length}")
    assert len(counts) == 3 + 1 + 19
    client.get(paths[0])
    assert len(counts) == 3 + 1 + 19 + 1  # few are kept


def test_numbers_are_computed_beside_the_event_loop(
    serve: Serve, en_de: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The states of 1,500 tokens take 0.3 s and more, for each layer."""
    for module, name in ((positions_module, "similarity"), (embeddings_module, "trajectories")):
        monkeypatch.setattr(module, name, beside_loop(getattr(module, name)))
    client = serve(en_de)
    asked = {"text": "Two dogs play.", "source": "en", "target": "de"}
    id = client.post("/api/v1/trace", json=asked).json()["id"]
    for path in ("positions", f"embeddings/states/{id}"):
        assert client.get(f"/api/v1/{path}").status_code == 200


def test_a_map_over_http_is_that_of_python(serve: Serve, en_de: str, de_en: str) -> None:
    client = serve(en_de, de_en)
    for folder in (en_de, de_en, en_de):
        name = folder.rpartition("/")[2]
        answer = client.get(f"/api/v1/embeddings?model={name}").json()
        found = map_of_pieces(piece_tables(load_bundle(folder)))
        n = len(found.labels)
        assert answer["pieces"] == found.labels
        assert answer["sides"] == [{"side": "shared", "count": n}]
        np.testing.assert_array_equal(floats(answer["points"], n, 2), found.points)
        assert answer["shares"] == pytest.approx(list(found.projection.shares), abs=1e-6)


@pytest.mark.parametrize("path", ["positions", "embeddings", "embeddings/neighbors?piece=a"])
def test_a_model_whose_folder_is_gone_is_refused_in_words(
    serve: Serve, en_de: str, tmp_path: Path, path: str
) -> None:
    folder = shutil.copytree(en_de, tmp_path / "mine")
    client = serve(str(folder))
    shutil.rmtree(folder)
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 400
    assert "The folder of the model 'mine' is gone" in answer.json()["error"]["sentence"]


def test_a_model_whose_folder_is_gone_still_translates_and_is_not_traced(
    serve: Serve, en_de: str, de_en: str, tmp_path: Path
) -> None:
    folder = shutil.copytree(en_de, tmp_path / "mine")
    client = serve(str(folder), de_en)
    wanted = {"source": "en", "target": "de"}
    translated = client.post("/api/v1/translate", json={"text": "a man", **wanted}).json()
    shutil.rmtree(folder)
    again = client.post("/api/v1/translate", json={"text": "a man", **wanted})
    assert again.json()["translations"] == translated["translations"]
    traced = client.post("/api/v1/trace", json={"text": "a man", **wanted})
    assert traced.status_code == 400
    assert "The folder of the model 'mine' is gone" in traced.json()["error"]["sentence"]
    # It was never described, so nothing is known of it.
    models = client.get("/api/v1/models").json()
    assert [each["name"] for each in models] == [Path(de_en).name]


def test_neighbors_and_analogies_over_http_are_those_of_python(serve: Serve, en_de: str) -> None:
    client = serve(en_de)
    (table,) = piece_tables(load_bundle(en_de))
    # One that begins a word is found as a person types it.
    words = sorted(table.vectors.words, key=lambda word: not word[1:] or word[0] != "▁")[:3]
    typed = words[0].removeprefix("▁")
    answer = client.get("/api/v1/embeddings/neighbors", params={"piece": typed, "k": 4}).json()
    assert answer["piece"] == words[0]
    expected = nearest(table.vectors, words[0], 4)
    assert [one["piece"] for one in answer["neighbors"]] == [one.word for one in expected]
    asked = dict(zip(("word", "minus", "plus"), words, strict=True))
    ranking = client.get("/api/v1/embeddings/analogy", params=asked | {"k": 5}).json()["ranking"]
    assert {one["piece"] for one in ranking if one["is_query"]} == set(words)
    others = [one for one in ranking if not one["is_query"]]
    word, minus, plus = words
    expected = analogy(table.vectors, word, minus, plus, 5)
    assert [one["piece"] for one in others] == [one.word for one in expected]
    cosines = [one["cosine"] for one in ranking]
    assert cosines == sorted(cosines, reverse=True)


@pytest.mark.parametrize("side", ["source", "target"])
def test_states_over_http_are_those_of_python(serve: Serve, en_de: str, side: str) -> None:
    client = serve(en_de)
    asked = {"text": "Two dogs play.", "source": "en", "target": "de"}
    id = client.post("/api/v1/trace", json=asked).json()["id"]
    answer = client.get(f"/api/v1/embeddings/states/{id}?side={side}").json()
    trace = load(en_de).trace("Two dogs play.")
    tokens = trace.target_tokens if side == "target" else trace.source_tokens
    found = trajectories(trace, tokens, side="tgt" if side == "target" else "src")
    assert (answer["names"], answer["tokens"]) == (found.names, found.tokens)
    np.testing.assert_allclose(answer["points"], found.points, atol=1e-5)


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("positions?model=xx", 400, "There is no model 'xx' here."),
        ("positions?length=0", 400, "length must be a whole number from 1 to 1024."),
        ("embeddings/neighbors?piece=zzzz", 400, "has no vector of 'zzzz'"),
        ("embeddings/analogy?word=zzzz&minus=a&plus=a", 400, "has no vector of 'zzzz'"),
        ("embeddings/states/none", 404, "This trace is no longer kept"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    serve: Serve, en_de: str, path: str, status: int, words: str
) -> None:
    answer = serve(en_de).get(f"/api/v1/{path}")
    assert answer.status_code == status
    assert words in answer.json()["error"]["sentence"]


@pytest.mark.parametrize("path", ["positions", "embeddings", "embeddings/neighbors?piece=a"])
def test_a_server_that_shows_no_inside_shows_no_tables(serve: Serve, en_de: str, path: str) -> None:
    answer = serve(en_de, inside=Inside(enabled="off")).get(f"/api/v1/{path}")
    assert answer.status_code == 403
