"""`heed train --dashboard`: a page beside a real training, which can save and stop it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import expect
from tests.serve.conftest import browser  # noqa: F401  the fixture

from heed.data.corpus import Corpus
from heed.disk.files import read_json_lines
from heed.train.run.checkpoint import load_newest

SETTINGS = [
    *("tokenizer.kind=word", "tokenizer.vocab_size=330", "model.d_model=16", "model.n_heads=2"),
    *("model.d_ff=32", "model.n_encoder_layers=1", "model.n_decoder_layers=1"),
    *("training.batch_tokens=64", "training.validate_every=150", "training.max_steps=1000000"),
    *("training.validation_sentences=12", "training.checkpoint_every=100000"),
]


Call = Callable[..., tuple[int, str, str]]


class Training:
    """`heed train --dashboard` on a small corpus, and the address that it printed."""

    def __init__(self, corpus: Path, out: Path, *more: str) -> None:
        command = [sys.executable, "-m", "heed", "train", "--src", f"{corpus}/small.de"]
        command += ["--tgt", f"{corpus}/small.xx", "--out", str(out), "--dashboard", *SETTINGS]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.log = out.with_suffix(".log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([*command, *more], stderr=log, env=environment)
        self.address = self.wait_for(r"Watch it at (\S+)")
        self.url, fragment = self.address.split("#")
        self.token = parse_qs(urlsplit(fragment).query)["token"][0]

    def wait_for(self, pattern: str) -> str:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            if found := re.search(pattern, self.log.read_text(encoding="utf-8")):
                return found[1]
            time.sleep(0.05)
        raise AssertionError(self.log.read_text(encoding="utf-8"))

    def get(self, path: str = "runs/run") -> Any:
        return json.load(urlopen(f"{self.url}api/v1/{path}", timeout=60))

    def post(self, action: str, token: str) -> int:
        headers = {"X-Heed-Token": token} if token else {}
        request = Request(f"{self.url}api/v1/runs/run/{action}", b"", headers, method="POST")
        try:
            return int(urlopen(request, timeout=60).status)
        except HTTPError as error:
            return error.code

    def wait_until(self, is_so: Callable[[Any], bool]) -> Any:
        """The run over HTTP, once it is so."""
        deadline = time.monotonic() + 60
        while not is_so(found := self.get()):
            assert time.monotonic() < deadline, found["status"]
            time.sleep(0.1)
        return found

    def is_serving(self) -> bool:
        try:
            urlopen(f"{self.url}health", timeout=5)
        except URLError:
            return False
        return True


@pytest.fixture
def begun(
    write_corpus: Callable[[Path], Corpus], tmp_path: Path
) -> Iterator[Callable[..., Training]]:
    """`begun(*more)`: a training that goes on until it is stopped."""
    write_corpus(tmp_path)
    trainings: list[Training] = []

    def begin(*more: str) -> Training:
        trainings.append(Training(tmp_path, tmp_path / "run", *more))
        return trainings[-1]

    yield begin
    for training in trainings:
        training.process.kill()
        training.process.wait()


@pytest.mark.slow
@pytest.mark.reliability
@pytest.mark.timeout(300)
def test_a_training_in_the_browser_shows_its_log_and_is_saved_and_stopped(
    begun: Callable[..., Training],
    browser: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    training = begun()
    page = browser.new_context(locale="en-US").new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.extend(elsewhere(request.url, training.url)))
    page.goto(training.address)
    expect(page.locator("[data-curve=score] circle").first).to_be_visible(timeout=60_000)
    expect(page).not_to_have_url(re.compile(re.escape(training.token)))
    page.keyboard.press("?")  # what a translator has keys for is not here
    expect(page.locator("#help dt")).to_have_text(["Esc", "?"])
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Save now").click()
    expect(page.get_by_text(re.compile(r"Saved at step [\d,]+\."))).to_be_visible(timeout=30_000)
    page.get_by_role("button", name="Save and stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Save and stop").click()
    assert training.process.wait(60) == 128 + signal.SIGTERM
    expect(page.get_by_role("heading", level=1)).to_have_text(
        re.compile("^Stopped and saved at step"), timeout=30_000
    )
    events = list(read_json_lines(tmp_path / "run" / "metrics.jsonl"))
    of_kind = {kind: [e for e in events if e["kind"] == kind] for kind in ("step", "validation")}
    for curve, kind, key in (
        ("gradient_norm", "step", "gradient_norm"),
        ("score", "validation", "bleu"),
    ):
        n_values = sum(event[key] is not None for event in of_kind[kind])
        expect(page.locator(f"[data-curve={curve}] svg")).to_have_attribute(
            "aria-label", re.compile(rf"\b{n_values} values?")
        )
    page.locator("[data-curve=loss] summary").click()
    cells = page.locator("[data-curve=loss] tbody tr").last.locator("th, td")
    last = max(of_kind["step"] + of_kind["validation"], key=lambda event: event["step"])
    expect(cells.first).to_have_text(f"step {last['step']:,}")
    shown = cells.all_inner_texts()
    if last["kind"] == "validation":
        assert float(shown[-1]) == pytest.approx(last["loss"], abs=5e-4)
    assert [complaint for complaint in complaints if "ERR_" not in complaint] == []
    page.context.close()
    assert not training.is_serving()
    found = load_newest(tmp_path / "run")
    assert found is not None and found.step == events[-1]["step"] and events[-1]["kind"] == "pause"


def elsewhere(url: str, ours: str) -> list[str]:
    is_ours = urlsplit(url).netloc == urlsplit(ours).netloc or url.startswith(("data:", "blob:"))
    return [] if is_ours else [f"asked {url}"]


@pytest.mark.slow
@pytest.mark.reliability
@pytest.mark.timeout(300)
def test_without_the_token_nothing_is_saved_or_stopped_and_a_stream_ends_with_the_run(
    begun: Callable[..., Training], tmp_path: Path
) -> None:
    training = begun()
    found = training.wait_until(lambda run: run["status"]["state"] == "training")
    for token in ("", "wrong", training.token[:-1]):
        assert training.post("save", token) == training.post("stop", token) == 403
    with urlopen(
        f"{training.url}api/v1/runs/run/events?since={found['cursor']}", timeout=60
    ) as stream:
        assert training.post("save", training.token) == 200
        training.wait_until(lambda run: (run["status"]["saved_step"] or 0) > 0)
        assert training.post("stop", training.token) == 200
        assert stream.read().decode().rstrip().endswith("event: end\ndata: {}")
    assert training.process.wait(60) == 128 + signal.SIGTERM
    notes = [e for e in read_json_lines(tmp_path / "run" / "metrics.jsonl") if e["kind"] == "note"]
    assert [note["text"] for note in notes[-2:]] == [
        "asked to save by control.json",
        "asked to save and stop by control.json",
    ]


@pytest.mark.slow
@pytest.mark.reliability
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_server_ends_with_a_training_that_is_interrupted_or_killed(
    begun: Callable[..., Training], number: signal.Signals
) -> None:
    training = begun()
    training.wait_until(lambda run: run["status"]["state"] == "training")
    training.process.send_signal(number)
    assert training.process.wait(60) == (-number if number == signal.SIGKILL else 128 + number)
    deadline = time.monotonic() + 20
    while training.is_serving():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_port_in_use_is_told_before_training_begins(
    write_corpus: Callable[[Path], Corpus], tmp_path: Path, call: Call
) -> None:
    import socket

    write_corpus(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        src, tgt = f"{tmp_path}/small.de", f"{tmp_path}/small.xx"
        out = str(tmp_path / "run")
        code, _, err = call(
            "train", "--src", src, "--tgt", tgt, "--out", out, "--dashboard", str(port)
        )
    assert code == 1
    assert f"Port {port} of 127.0.0.1 is in use" in err
    assert not (tmp_path / "run").exists()
