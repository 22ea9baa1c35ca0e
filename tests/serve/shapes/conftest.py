"""The real program: `heed serve` in a process of its own."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

START_S = 60.0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def program(en_de: str, de_en: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server of both directions, such as `http://127.0.0.1:40001`."""
    folder: Path = tmp_path_factory.mktemp("home")
    address = f"http://127.0.0.1:{(port := _free_port())}"
    command = [sys.executable, "-m", "heed", "serve", "-m", en_de, "-m", de_en]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--port", str(port), "--threads", "1"],
            env={**os.environ, "HEED_HOME": str(folder)},
            stdout=log,
            stderr=log,
        )
    try:
        _wait(address, process, folder / "log")
        yield address
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(address: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text(encoding="utf-8", errors="replace")
        try:
            if httpx.get(f"{address}/health").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError(log.read_text(encoding="utf-8", errors="replace"))
