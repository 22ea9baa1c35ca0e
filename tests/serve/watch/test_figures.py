"""Figures count what happened, and the sample dashboard asks only for figures that exist."""

import json
import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.serve.conftest import Serve

from heed.serve.settings import Metrics
from heed.serve.watch.figures import Figures

DASHBOARD = Path(__file__).resolve().parents[3] / "deploy" / "grafana.json"
QUESTION = {"q": "A man.", "source": "en", "target": "de"}


def value(figures: str, line: str) -> float:
    found = re.findall(rf"^{re.escape(line)} (\S+)$", figures, re.M)
    assert len(found) == 1, figures
    return float(found[0])


@pytest.fixture
def client(serve: Serve, en_de: str) -> TestClient:
    return serve(en_de)


def test_requests_batches_and_the_cache_are_counted(client: TestClient) -> None:
    for _ in range(2):
        client.post("/translate", json=QUESTION)
    client.post("/translate", json={"q": "A", "source": "en", "target": "zz"})
    client.get("/nowhere/at/all")
    text = client.get("/metrics").text
    seconds = "heed_request_seconds_count"
    assert value(text, f'{seconds}{{method="POST",route="/translate",status="200"}}') == 2
    assert value(text, f'{seconds}{{method="POST",route="/translate",status="400"}}') == 1
    assert value(text, f'{seconds}{{method="GET",route="other",status="404"}}') == 1
    assert value(text, "heed_batch_fill_count") == 1  # the second came from the cache
    assert value(text, 'heed_cache_segments_total{result="hit"}') == 1
    assert value(text, 'heed_cache_segments_total{result="miss"}') == 1
    assert value(text, "heed_source_tokens_total") > 0
    assert value(text, "heed_target_tokens_total") > 0
    assert value(text, "heed_search_seconds_total") > 0
    assert value(text, "heed_models_open") == 1
    assert value(text, "heed_requests_in_work") == 1  # this one
    assert value(text, "heed_waiting_characters") == 0
    assert value(text, 'heed_refused_total{code="not_found"}') == 1


def test_doubts_are_counted_by_kind() -> None:
    figures = Figures()
    figures.doubted("loop")
    figures.doubted("loop")
    assert value(figures.text().decode(), 'heed_doubts_total{kind="loop"}') == 2


def test_invented_methods_make_no_labels() -> None:
    figures = Figures()
    for method in ("BREW", "PUSH"):
        figures.began()
        figures.ended(method, "other", 405, 0.1)
    text = figures.text().decode()
    assert value(text, 'heed_request_seconds_count{method="other",route="other",status="405"}') == 2


def test_a_token_is_asked_for(serve: Serve, en_de: str) -> None:
    client = serve(en_de, metrics=Metrics(token="secret"))
    refused = client.get("/metrics", headers={"Authorization": "Bearer wrong"})
    assert refused.status_code in (401, 403)
    assert "metrics.token" in refused.text and "heed_" not in refused.text
    allowed = client.get("/metrics", headers={"Authorization": "Bearer secret"})
    assert "heed_request_seconds" in allowed.text


def test_figures_can_be_turned_off(serve: Serve, en_de: str) -> None:
    assert serve(en_de, metrics=Metrics(enabled=False)).get("/metrics").status_code == 404


def test_the_dashboard_asks_only_for_figures_that_exist(client: TestClient) -> None:
    client.post("/translate", json=QUESTION)
    shown = client.get("/metrics").text
    families = set(re.findall(r"^# TYPE (\S+)", shown, re.M))
    names = set(re.findall(r"^(\w+)[{ ]", shown, re.M)) | families
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    asked = {name for query in queries for name in re.findall(r"(?:heed|process)_\w+", query)}
    assert len(queries) >= 10
    assert not {name for name in asked if name not in names}
    # And what heed counts is shown.
    ours = {re.sub("_(total|created|sum|count|bucket)$", "", name) for name in families}
    shown_there = {re.sub("_(total|sum|count|bucket)$", "", name) for name in asked}
    assert {name for name in ours if name.startswith("heed_")} <= shown_there
