"""heed's own API tells what the model thinks, as the translator does in Python."""

import json
import shutil
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient
from tests.serve.conftest import SENTENCES, Serve, n_steps_after_leaving

import heed
from heed.bundle.doubts import WORD_ARRAYS, Judgment, save_judgment
from heed.serve.request import Direction
from heed.serve.service import Service
from heed.serve.settings import Inside, Limits
from heed.serve.shapes import own_models
from heed.translate.doubts.judge import NOT_OF_PAIRS
from heed.translate.doubts.words import N_VALUES

ASKED = {"text": SENTENCES[0], "source": "en", "target": "de"}


@pytest.fixture
def client(serve: Serve, en_de: str, de_en: str) -> TestClient:
    return serve(en_de, de_en, limits=Limits(chars=200))


def post(client: TestClient, path: str, **values: Any) -> Any:
    answer = client.post(f"/api/v1/{path}", json=values)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_next_pieces_are_those_of_the_translator(client: TestClient, en_de: str) -> None:
    wanted = heed.load(en_de).next_word(SENTENCES[0], "Ein", 3)
    found = post(client, "next-word", **ASKED, prefix="Ein", k=3)["choices"]
    assert [each["piece"] for each in found] == [one.token for one in wanted]
    for each, one in zip(found, wanted, strict=True):
        assert each["probability"] == pytest.approx(one.probability, abs=1e-6)
        assert each["text"] == one.token.replace("▁", " ")


def test_choices_have_whole_translations(client: TestClient, en_de: str) -> None:
    wanted = heed.load(en_de).continuations(SENTENCES[0], "Ein", 2)
    found = post(client, "continue", **ASKED, prefix="Ein", k=2)["choices"]
    assert [each["translation"] for each in found] == [one.translation.text for one in wanted]
    assert all(each["translation"].startswith("Ein") for each in found)


def test_a_pair_is_scored_as_the_translator_does(client: TestClient, en_de: str) -> None:
    (wanted,) = heed.load(en_de).score([SENTENCES[0]], [SENTENCES[1]])
    pair = {"source_text": SENTENCES[0], "target_text": SENTENCES[1]}
    found = post(client, "score", **pair, source="en", target="de")
    assert found["log_prob"] == pytest.approx(wanted.log_prob, abs=1e-5)
    assert [each["piece"] for each in found["tokens"]] == wanted.tokens
    assert found["status"] == "ok"


def test_a_pair_that_is_too_long_has_no_score(serve: Serve, en_de: str) -> None:
    pair = {"source_text": "a b " * 2000, "target_text": "a"}
    found = post(serve(en_de), "score", **pair, source="en", target="de")
    assert (found["status"], found["log_prob"], found["tokens"]) == ("too_long", None, [])


def test_a_given_translation_is_doubted_as_heed_check_does(client: TestClient, en_de: str) -> None:
    pair = {"source_text": "In 2007 he left.", "target_text": " 2008" + " ging er" * 5}
    (judged,) = heed.load(en_de).judged([pair["source_text"]], [pair["target_text"]])
    wanted = [doubt for doubt in judged.doubts if doubt.kind not in NOT_OF_PAIRS]
    assert {"numbers", "loop"} <= {doubt.kind for doubt in wanted}
    found = post(client, "score", **pair, source="en", target="de", doubts=True)
    assert [(each["kind"], each["sentence"]) for each in found["doubts"]] == [
        (doubt.kind, doubt.sentence) for doubt in wanted
    ]
    (place,) = ((each["start"], each["end"]) for each in found["doubts"] if each["kind"] == "loop")
    (own,) = (doubt for doubt in wanted if doubt.kind == "loop")
    assert pair["target_text"][slice(*place)] == judged.text[own.start : own.end] != ""
    assert found["log_prob"] is not None
    assert "doubts" not in post(client, "score", **pair, source="en", target="de")


def test_of_an_empty_translation_only_that_is_doubted(client: TestClient) -> None:
    pair = {"source_text": "In 2007 he left.", "target_text": " "}
    (doubt,) = post(client, "score", **pair, source="en", target="de", doubts=True)["doubts"]
    assert (doubt["kind"], doubt["sentence"]) == ("empty", "The translation is empty.")


def test_the_model_stops_translating_a_doubted_pair_when_its_client_leaves(
    en_de: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(shutil.copytree(en_de, tmp_path / "en-de"))
    size = heed.load(folder).tgt_vocab.size
    words = {name: np.zeros(0, np.int32) for name in WORD_ARRAYS[:3]}
    words |= {name: np.zeros((size, N_VALUES), np.float32) for name in WORD_ARRAYS[3:]}
    save_judgment(folder, Judgment(words=words))

    async def doubts(service: Service) -> Callable[[], Awaitable[object]]:
        direction = Direction(source="en", target="de")
        return partial(own_models._doubts, service, SENTENCES[0], SENTENCES[1], direction)

    assert n_steps_after_leaving(doubts, folder, monkeypatch) == 1


@pytest.mark.parametrize("field", ["source_text", "target_text"])
def test_a_long_pair_is_not_doubted(serve: Serve, en_de: str, field: str) -> None:
    pair = {"source_text": "a", "target_text": "a"} | {field: "a b " * 501}
    asked = {**pair, "source": "en", "target": "de", "doubts": True}
    answer = serve(en_de).post("/api/v1/score", json=asked)
    assert answer.status_code == 413
    words = f"{field} must have at most 2000 characters"
    assert answer.json()["error"]["sentence"].startswith(words)


def test_a_language_is_detected_with_its_name(client: TestClient) -> None:
    found = post(client, "detect", text="Zwei Hunde spielen im Schnee.")
    best = found["languages"][0]
    assert (best["code"], best["name"]) == ("de", "German")
    assert (found["is_doubtful"], found["other"]) == (False, None)
    assert post(client, "detect", text="ok")["is_doubtful"]


def test_libretranslate_detects_in_hundredths(client: TestClient) -> None:
    found = client.post("/detect", data={"q": "Zwei Hunde spielen im Schnee."}).json()
    assert [each["language"] for each in found] == ["de", "en"]
    assert found[0]["confidence"] > 90
    both = {"q": ["Two dogs play in the snow.", "Zwei Hunde spielen im Schnee."]}
    answer = client.post("/translate", json={**both, "source": "auto", "target": "de"}).json()
    assert [each["language"] for each in answer["detectedLanguage"]] == ["en", "de"]
    assert answer["translatedText"][1] == both["q"][1]


def test_models_are_described(client: TestClient, en_de: str) -> None:
    first, second = client.get("/api/v1/models").json()
    assert first["directions"] == [["en", "de"]]
    assert second["directions"] == [["de", "en"]]
    assert first["name"] == Path(en_de).name
    weights = json.loads((Path(en_de) / "config.json").read_text(encoding="utf-8"))
    assert weights["source_lang"] == "en"
    assert first["size_bytes"] > 0
    assert first["parameters"] > 0


def test_a_model_keeps_its_description_while_its_folder_is_damaged(
    serve: Serve, en_de: str, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(en_de, folder)
    client = serve(str(folder))
    described = client.get("/api/v1/models").json()
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["model"]["n_heads"] = 3
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with (folder / "manifest.json").open("a", encoding="utf-8") as manifest:
        manifest.write("\n")
    assert client.get("/api/v1/models").json() == described


@pytest.mark.parametrize(
    ("method", "path", "values"),
    [
        ("POST", "/api/v1/detect", {"text": "a"}),
        ("POST", "/api/v1/translate", {"text": "a", "target": "de"}),
        ("POST", "/api/v1/score", {"source_text": "a", "target_text": "b", "target": "de"}),
        ("POST", "/detect", {"q": "a"}),
        ("GET", "/frontend/settings", None),
        ("GET", "/api/v1/positions", None),
        ("GET", "/api/v1/embeddings", None),
    ],
)
def test_a_server_without_models_says_so(
    serve: Serve, tmp_path: Path, method: str, path: str, values: Any
) -> None:
    """A server for training runs has none."""
    client = serve(inside=Inside(runs=(str(tmp_path),)))
    answer = client.request(method, path, json=values)
    assert answer.status_code == 404
    assert "This server has no models." in answer.text


@pytest.mark.parametrize(
    ("path", "values", "status", "words"),
    [
        ("continue", {"k": 0}, 400, "k must be a whole number from 1 to 100."),
        ("continue", {"target": None}, 400, "target is missing."),
        ("continue", {"text": "x" * 201}, 413, "text must have at most 200 characters"),
        ("next-word", {"prefix": "x" * 190}, 413, "text must have at most 200 characters"),
        ("next-word", {"text": ["a"]}, 400, "text must be text."),
        ("score", {"source_text": "a"}, 400, "target_text is missing."),
        ("detect", {"text": "x" * 201}, 413, "text must have at most 200 characters"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    client: TestClient, path: str, values: dict[str, Any], status: int, words: str
) -> None:
    answer = client.post(f"/api/v1/{path}", json={**ASKED, **values})
    assert answer.status_code == status
    assert words in answer.json()["error"]["sentence"]


@pytest.mark.parametrize("glossary", [{"a": 5}, {"": "b"}, {"a": " "}])
def test_a_glossary_holds_texts(client: TestClient, glossary: Any) -> None:
    answer = client.post("/api/v1/translate", json={**ASKED, "glossary": glossary})
    assert answer.status_code == 400
    assert "as texts that are not blank" in answer.json()["error"]["sentence"]
