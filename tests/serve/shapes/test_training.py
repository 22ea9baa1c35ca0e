"""Training runs over HTTP: the same numbers as in the log, for those who may see them."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.testclient import TestClient
from tests.explain.training.made import epoch, start, step, validation, write
from tests.serve.conftest import Serve

from heed.disk.files import lock
from heed.serve.access.keys import Keys
from heed.serve.app import make_app
from heed.serve.run import make_service
from heed.serve.settings import Access, Inside, Listen, ServeSettings
from heed.serve.shapes import training
from heed.serve.watch.condition import Condition
from heed.train.step.control import CONTROL_FILE, ControlFile, Request

TOKEN = {"X-Heed-Token": "a secret"}
RECIPE = "[training]\nlearning_rate = 0.002\n"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    events = [start(), epoch(0, 0), step(20, 4.0), validation(20, 5.0, "Zwei."), step(40, 3.0)]
    return write(tmp_path / "run", events, RECIPE)


def client_of(serve: Serve, *folders: Path, token: str = "a secret", **settings: Any) -> TestClient:
    return serve(inside=Inside(runs=tuple(map(str, folders)), token=token), **settings)


def events_of(text: str) -> list[tuple[str, Any]]:
    found = []
    for block in text.strip().split("\n\n"):
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_a_run_over_http_has_the_numbers_of_its_log(serve: Serve, run: Path) -> None:
    client = client_of(serve, run)
    (status,) = client.get("/api/v1/runs").json()["runs"]
    assert (status["name"], status["state"], status["step"]) == ("run", "interrupted", 40)
    whole = client.get("/api/v1/runs/run").json()
    assert whole["steps"]["loss"] == [4.0, 3.0]
    assert whole["steps"]["learning_rate"] == [0.001, 0.001]
    assert whole["validations"]["bleu_high"] == [6.5]
    assert whole["samples"]["sets"][0]["translations"][0]["hyp"] == "Zwei."
    assert whole["settings"] == {"training.learning_rate": 0.002}
    assert whole["cursor"] == status["cursor"]


def test_runs_are_named_by_the_server_and_no_path_is_taken(serve: Serve, run: Path) -> None:
    other = write(run.parent / "elsewhere" / "run", [start()])
    strange = write(run.parent / "<b>&'☃ a", [start()])
    client = client_of(serve, run, other, strange, run.parent / "missing")
    names = [each["name"] for each in client.get("/api/v1/runs").json()["runs"]]
    assert names == ["run", "run (2)", "<b>&'☃ a", "missing"]
    for name in names:
        assert client.get(f"/api/v1/runs/{name}").json()["status"]["name"] == name
    for name in ("..%2frun", "%2fetc", "run%00", f"..%2f{run.parent.name}%2frun"):
        assert client.get(f"/api/v1/runs/{name}").status_code == 404
    assert client.get("/api/v1/runs/nothing").json()["error"]["code"] == "no_such_run"


def test_events_tell_what_is_new_since_a_cursor_and_end_with_the_run(
    serve: Serve, run: Path
) -> None:
    client = client_of(serve, run)
    cursor = client.get("/api/v1/runs/run").json()["cursor"]
    write(run, [step(60, 2.5), {"kind": "checkpoint", "step": 60}])
    url = "/api/v1/runs/run/events"
    (name, news), (last, _) = events_of(client.get(url, params={"since": cursor}).text)
    assert (name, last) == ("news", "end")
    assert news["steps"]["loss"] == [2.5]
    assert [mark["kind"] for mark in news["marks"]] == ["checkpoint"]
    for void in ("", "x", "0-0-0-0-0-0", f"{cursor}-1", "9" * 500):
        answer = client.get(url, params={"since": void})
        if void:
            assert events_of(answer.text) == [("anew", {})]
        else:
            assert answer.json()["error"]["field"] == "since"
    assert client.get("/api/v1/runs/no/events", params={"since": "x"}).status_code == 404


@pytest.fixture
def live(run: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Condition]]:
    """A server of the run, which looks often, and its condition."""
    monkeypatch.setattr(training, "LOOK_S", 0.05)
    condition = Condition(is_ready=True)
    service = make_service(ServeSettings(inside=Inside(runs=(str(run),), token="a secret")))
    app = make_app(service, condition)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started and thread.is_alive():
        thread.join(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}/api/v1/runs", condition
    server.should_exit = True
    thread.join()
    service.close()


def test_a_stream_follows_a_run_until_its_process_ends(
    live: tuple[str, Condition], run: Path
) -> None:
    url, _ = live
    with lock(run):
        whole = httpx.get(f"{url}/run").json()
        assert whole["status"]["state"] == "training"
        cursor = {"since": whole["cursor"]}
        with httpx.stream("GET", f"{url}/run/events", params=cursor, timeout=20) as answer:
            lines = answer.iter_lines()
            next(lines)  # the first event: the status
            write(run, [step(60, 1.25)])
            news = next(line for line in lines if "1.25" in line)
            assert '"loss":[1.25]' in news
    rest = events_of(httpx.get(f"{url}/run/events", params=cursor, timeout=20).text)
    assert [name for name, _ in rest] == ["news", "end"]
    assert rest[0][1]["status"]["state"] == "interrupted"


def test_a_stream_ends_when_the_server_drains(live: tuple[str, Condition], run: Path) -> None:
    url, condition = live
    with lock(run):
        cursor = {"since": httpx.get(f"{url}/run").json()["cursor"]}
        threading.Timer(0.3, lambda: setattr(condition, "is_draining", True)).start()
        text = httpx.get(f"{url}/run/events", params=cursor, timeout=20).text
    assert events_of(text)[-1] == ("end", {})


@pytest.mark.parametrize(("action", "request_"), [("save", Request.SAVE), ("stop", Request.STOP)])
def test_saving_and_stopping_need_the_token_and_a_run_that_trains(
    serve: Serve, run: Path, action: str, request_: Request
) -> None:
    client = client_of(serve, run)
    url = f"/api/v1/runs/run/{action}"
    for headers in ({}, {"X-Heed-Token": ""}, {"X-Heed-Token": "ä wrong one".encode()}):
        answer = client.post(url, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "wrong_token")
    refused = client.post(url, headers=TOKEN)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not_training")
    described = client.get("/openapi.json").json()["paths"][f"/api/v1/runs/{{name}}/{action}"]
    assert "409" in described["post"]["responses"]
    assert not (run / CONTROL_FILE).exists()
    with lock(run):
        assert client.post(url, headers=TOKEN).json() == {"asked": action}
        assert ControlFile(run).take() == request_
    assert client.post(f"/api/v1/runs/no/{action}", headers=TOKEN).status_code == 404


def test_a_server_without_a_token_takes_none(serve: Serve, run: Path) -> None:
    client = client_of(serve, run, token="")
    assert client.get("/api/v1/runs").json()["is_controllable"] is False
    with lock(run):
        for token in ("", "a secret"):
            answer = client.post("/api/v1/runs/run/stop", headers={"X-Heed-Token": token})
            assert answer.status_code == 403


def test_settings_that_differ_are_named(serve: Serve, run: Path) -> None:
    other = write(run.parent / "other", [start()], "[training]\nlearning_rate = 0.1\n")
    answer = client_of(serve, run, other).post(
        "/api/v1/runs/differences", json={"names": ["run", "other", "run"]}
    )
    assert answer.json() == {
        "names": ["run", "other"],
        "settings": {"training.learning_rate": [0.002, 0.1]},
    }


def test_with_keys_nothing_of_a_run_is_shown_without_one(
    serve: Serve, run: Path, tmp_path: Path
) -> None:
    file = tmp_path / "keys.sqlite"
    Keys(file).close()
    client = client_of(serve, run, access=Access(keys="on", keys_file=str(file)))
    cursor = {"since": "x"}
    for path in ("/runs", "/runs/run", "/runs/run/events"):
        assert client.get(f"/api/v1{path}", params=cursor).status_code == 401


def test_a_public_server_shows_no_runs_unless_it_is_allowed(serve: Serve, run: Path) -> None:
    client = client_of(serve, run, listen=Listen(host="0.0.0.0"), access=Access(keys="off"))
    for path in ("/runs", "/runs/run", "/runs/run/events?since=x"):
        assert client.get(f"/api/v1{path}").json()["error"]["code"] == "inside_disabled"
    assert 'data-runs="off"' in client.get("/").text


def test_a_page_of_runs_alone_has_no_translator(serve: Serve, run: Path, en_de: str) -> None:
    assert 'data-models="off" data-runs="on"' in client_of(serve, run).get("/").text
    assert 'data-models="on" data-runs="off"' in serve(en_de).get("/").text
