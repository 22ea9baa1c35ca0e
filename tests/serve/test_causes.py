"""What follows from a change of a traced model, over HTTP, is what Python says."""

from typing import Any

import numpy as np
import pytest
from tests.serve.conftest import Serve

from heed.explain.causes.attribution import METHODS
from heed.explain.causes.effects import attention_under, effect_on, importance
from heed.explain.causes.lens import logit_lens
from heed.explain.causes.pair import Pair
from heed.explain.causes.parts import Feature, Head, Layer, source_readings, sublayers_of
from heed.serve.shapes import causes
from heed.translate.translator import Translator, load

TEXT, OTHER = "Two dogs.", "A man is riding a bike."


@pytest.fixture(scope="module")
def translator(en_de: str) -> Translator:
    return load(en_de, threads=1)


def traced(client: Any, text: str = TEXT) -> str:
    answer = client.post("/api/v1/trace", json={"text": text, "source": "en", "target": "de"})
    id: str = answer.json()["id"]
    return id


def test_an_edit_is_that_of_python(serve: Serve, en_de: str, translator: Translator) -> None:
    client = serve(en_de)
    path = f"/api/v1/trace/{traced(client)}/edit"
    name = "decoder.0.cross_attention"
    changes = [
        {"kind": "head", "attention": name, "head": 1},
        {"kind": "layer", "name": "encoder.0", "scale": 0.5},
        {"kind": "feature", "feed_forward": "decoder.0.feed_forward", "feature": 3, "scale": 2},
    ]
    answer = client.post(path, json={"changes": changes, "options": {"beam_size": 2}})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    expected = effect_on(
        Pair.of_trace(translator, translator.trace(TEXT), beam_size=2),
        [
            Head(attention=name, head=1),
            Layer(name="encoder.0", scale=0.5),
            Feature(feed_forward="decoder.0.feed_forward", feature=3, scale=2.0),
        ],
    )
    assert found["tokens"] == expected.tokens
    assert found["before"] == pytest.approx(expected.before, abs=1e-5)
    assert found["after"] == pytest.approx(expected.after, abs=1e-5)
    assert found["likeliest"] == expected.likeliest
    assert found["translation"] == expected.translation
    assert found["new_translation"] == expected.new_translation


def test_the_attention_of_a_changed_model_is_that_of_python(
    serve: Serve, en_de: str, translator: Translator
) -> None:
    client = serve(en_de)
    path = f"/api/v1/trace/{traced(client)}/attention"
    name = "decoder.0.cross_attention"
    changes = [{"kind": "layer", "name": "encoder.0", "scale": 0}]
    answer = client.post(path, json={"changes": changes, "attention": name})
    assert answer.status_code == 200, answer.text
    trace = translator.trace(TEXT)
    pair = Pair.of_trace(translator, trace)
    after = attention_under(pair, [Layer(name="encoder.0")], name)
    np.testing.assert_allclose(answer.json()["before"], trace[f"{name}.weights"], atol=1e-5)
    np.testing.assert_allclose(answer.json()["after"], after, atol=1e-5)
    assert np.abs(after - trace[f"{name}.weights"]).max() > 1e-4
    answer = client.post(path, json={"changes": changes, "attention": "encoder.9.self_attention"})
    assert answer.status_code == 400
    assert "no attention encoder.9.self_attention" in answer.json()["error"]["sentence"]


def test_positions_and_patches(serve: Serve, en_de: str, translator: Translator) -> None:
    client = serve(en_de)
    path = f"/api/v1/trace/{traced(client)}/edit"
    found = client.post(path, json={"changes": [{"kind": "position", "position": 1}]}).json()
    pair = Pair.of(translator, TEXT)
    expected = effect_on(pair, source_readings(pair, 1))
    assert found["after"] == pytest.approx(expected.after, abs=1e-5)
    patch = {"kind": "patch", "name": "memory", "trace": traced(client), "positions": {"0": 0}}
    found = client.post(path, json={"changes": [patch]}).json()
    assert found["after"] == pytest.approx(found["before"], abs=1e-5)
    patch |= {"trace": traced(client, OTHER)}
    found = client.post(path, json={"changes": [patch]}).json()
    assert found["after"] != pytest.approx(found["before"], abs=1e-3)


def test_importance_attribution_and_lens(serve: Serve, en_de: str, translator: Translator) -> None:
    client, pair = serve(en_de), Pair.of(translator, TEXT)
    path = f"/api/v1/trace/{traced(client)}"
    found = client.get(f"{path}/importance", params={"features": 2}).json()
    expected = importance(pair, n_features=2)
    for each, (name, lost) in zip(found["heads"], expected.heads.items(), strict=True):
        assert each["name"] == name
        assert np.ravel(each["lost"]) == pytest.approx(lost.ravel(), abs=1e-4)
    assert [each["name"] for each in found["sublayers"]] == sublayers_of(pair)
    assert [each["feature"] for each in found["features"]] == [
        feature.feature for feature, _ in expected.features
    ]
    assert (*METHODS,) == causes.METHODS
    for method in METHODS:
        found = client.get(f"{path}/attribute", params={"method": method}).json()
        expected_ = METHODS[method](pair)
        assert np.ravel(found["source"]) == pytest.approx(expected_.source.ravel(), abs=1e-3)
        assert found["expected_tokens"] == pair.expected_tokens
    found = client.get(f"{path}/lens", params={"k": 2}).json()
    last = logit_lens(pair, k=2)[-1]
    assert found["decoder"][-1]["pieces"] == last.pieces
    assert found["decoder"][-1]["own"] == pytest.approx(last.own, abs=1e-5)
    assert len(found["encoder"][0]["pieces"]) == len(pair.source_tokens)


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ([{"kind": "heart"}], 400, "kind must be one of head, sublayer"),
        ([{"kind": "head", "head": 1}], 400, "attention is missing"),
        ([{"kind": "layer", "name": "decoder.9"}], 400, "no layers named decoder.9; did you mean"),
        ([{"kind": "layer", "name": "encoder.0", "scale": "x"}], 400, "scale must be a number"),
        ([{"kind": "patch", "name": "memory", "trace": "x"}], 404, "no longer kept"),
        ("encoder", 400, "changes must be a list of objects"),
        ([{}] * 257, 400, "changes must have at most 256 entries"),
    ],
)
def test_a_wrong_change_is_refused(
    serve: Serve, en_de: str, changes: Any, status: int, words: str
) -> None:
    client = serve(en_de)
    answer = client.post(f"/api/v1/trace/{traced(client)}/edit", json={"changes": changes})
    assert answer.status_code == status
    assert words in answer.json()["error"]["sentence"]


def test_positions_of_a_patch_are_numbers(serve: Serve, en_de: str) -> None:
    client = serve(en_de)
    id = traced(client)
    patch = {"kind": "patch", "name": "memory", "trace": id, "positions": {"first": 0}}
    answer = client.post(f"/api/v1/trace/{id}/edit", json={"changes": [patch]})
    assert answer.status_code == 400
    assert "positions must be whole numbers" in answer.json()["error"]["sentence"]
