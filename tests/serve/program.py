"""`Program`: the real `heed serve`, in a process of its own."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from http.client import HTTPConnection
from typing import Any, Self

START_S = 60
"""Far longer than a start takes, also on a busy machine."""


class Program:
    """`heed serve` on a free port.

    Args:
        *arguments: of the command line, behind `--port 0`.
        environment: more variables.
        is_ready: wait until the program says that it is ready.
        before: Python code that the process runs first.
    """

    def __init__(
        self,
        *arguments: str,
        environment: dict[str, str] | None = None,
        is_ready: bool = True,
        before: str = "",
    ) -> None:
        code = f"{before}\nfrom heed.cli.main import main\nmain()"
        program = ("-c", code) if before else ("-m", "heed")
        self.process = subprocess.Popen(
            [sys.executable, *program, "serve", "--port", "0", *arguments],
            env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})},
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.wait_for("heed: ready." if is_ready else r"heed: https?://")
        except AssertionError:
            self.__exit__()
            raise

    def _read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))

    def wait_for(self, pattern: str) -> str:
        """The first line of the log that has this pattern."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            has_ended = self.process.poll() is not None
            if has_ended:
                self._reader.join(5)
            for line in list(self.lines):
                if re.search(pattern, line):
                    return line
            assert not has_ended, f"the program ended: {self.lines}"
            time.sleep(0.01)
        raise AssertionError(f"{pattern} never came: {self.lines}")

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def url(self) -> str:
        return re.findall(r"https?://[\d.:]+", self.wait_for("heed: https?://"))[0]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def connect(self) -> socket.socket:
        """A connection of bytes."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def ask(
        self,
        path: str,
        body: Any = None,
        *,
        method: str = "",
        headers: dict[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of one answer, on a connection of its own."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            data = None if body is None else json.dumps(body)
            sent = {"Content-Type": "application/json"} if data else {}
            method = method or ("POST" if data else "GET")
            connection.request(method, path, body=data, headers={**sent, **(headers or {})})
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, found, answer.read()
        finally:
            connection.close()

    def translate(self, text: str = "A man.") -> str:
        """The translation of a text from English to German."""
        status, _, body = self.ask("/translate", {"q": text, "source": "en", "target": "de"})
        assert status == 200, body
        translated: str = json.loads(body)["translatedText"]
        return translated

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self, timeout: float = 60) -> int:
        """Wait for the end; the exit code."""
        code = self.process.wait(timeout)
        self._reader.join(5)
        return code

    def stop(self) -> int:
        """End the program as an operator does; the exit code."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        try:
            return self.wait()
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(5)
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                stream.close()


def read_all(connection: socket.socket) -> bytes:
    """Everything until the other side closes."""
    data = b""
    try:
        while chunk := connection.recv(65536):
            data += chunk
    except ConnectionResetError:
        pass
    return data


def posted(body: bytes, *headers: str, path: str = "/translate") -> bytes:
    """The bytes of a POST of JSON."""
    lines: Sequence[str] = [
        f"POST {path} HTTP/1.1",
        "Host: x",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


QUESTION = json.dumps({"q": "A man.", "source": "en", "target": "de"}).encode()
