"""`heed inspect` serves one page for this machine and says where it is."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

import pytest
from tests.serve.conftest import make_model

from heed.cli import inspect

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_model(tmp_path_factory.mktemp("inspected") / "en-de", "en", "de")


def test_the_page_opens_with_the_sentence_in_the_address_only(folder: str) -> None:
    text = "Two dogs & <b>snow</b>?"
    command = [sys.executable, "-m", "heed", "inspect", "-m", folder, text, "--no-open"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr is not None
        found = re.fullmatch(
            r"heed: (http://127\.0\.0\.1:\d+/)(#/attention\S*)",
            "".join(program.stderr.readline()).strip(),
        )
        assert found is not None
        url, fragment = found.groups()
        assert parse_qs(urlsplit(fragment.removeprefix("#")).query) == {"text": [text]}
        assert 'data-inside="on"' in urlopen(url).read().decode()
        body = json.dumps({"text": text, "source": "en", "target": "de"}).encode()
        headers = {"Content-Type": "application/json"}
        answer = json.load(urlopen(Request(f"{url}api/v1/trace", body, headers)))
        assert answer["text"] == text
        program.send_signal(signal.SIGINT)
        rest = program.stderr.read()
        assert program.wait(60) == 0
    assert text not in rest


def test_a_folder_in_the_place_of_the_text_is_the_model(
    folder: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    def settings_of(models: tuple[str, ...], port: int) -> None:
        asked.append(models)
        raise KeyboardInterrupt

    monkeypatch.setattr(inspect, "settings_of", settings_of)
    call("inspect", folder)
    call("inspect", "-m", folder, folder)
    assert asked == [(folder,), (folder,)]


def test_a_missing_model_is_named(call: Call, tmp_path: Path) -> None:
    code, _, error = call("inspect", "-m", str(tmp_path / "none"), "A dog.")
    assert code == 1
    assert "There is no model folder" in error
