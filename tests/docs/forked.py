"""The program `heed` without the seconds of importing torch, for tests that call it often.

`forked_heed` starts a process that imports torch, and writes a script `heed` which has that process
fork and gives the child its own arguments, folder, environment and streams. So each command is a
process of its own, as ever. Not for tests of imports, signals or kills: those reach the script.
A script `heed-python` beside it runs code that it is given, with warnings as errors.
"""

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from heed.cli.main import run

CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as asking:
    asking.connect({address!r})
    name = os.path.basename(sys.argv[0])
    call = json.dumps([name, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(asking, [len(call).to_bytes(8)], [0, 1, 2])
    asking.sendall(call)
    code = asking.recv(1)
sys.exit(code[0] if code else "the command was killed")
"""


@contextlib.contextmanager
def forked_heed() -> Iterator[Path]:
    """A folder with the scripts `heed` and `heed-python`, which work until the context ends."""
    with tempfile.TemporaryDirectory(prefix="heed") as folder:
        address = f"{folder}/calls"
        for name in PROGRAMS:
            script = Path(folder) / name
            code = CLIENT.format(python=sys.executable, address=address)
            script.write_text(code, encoding="utf-8")
            script.chmod(0o755)
        command = [sys.executable, __file__, address]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe) as forking:
            assert forking.stdout
            assert forking.stdout.readline() == b"ready\n"
            yield Path(folder)


def fork_for_each_call(address: str) -> None:
    """Import what commands need, then listen until standard input ends."""
    for name in (
        "heed.cli.train",
        "heed.train.run.run",
        "heed.translate.translator",
        "heed.explain.figures",
    ):
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        print("ready", flush=True)
        while select.select([listener, sys.stdin], [], [])[0] == [listener]:
            with listener.accept()[0] as asked:
                if os.fork() == 0:
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    answer(asked)


def answer(asked: socket.socket) -> None:
    """Be the command, and say with which code it ended."""
    length, streams, _, _ = socket.recv_fds(asked, 8, 3)
    call = asked.recv(int.from_bytes(length), socket.MSG_WAITALL)
    name, arguments, folder, environment = json.loads(call)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    code = 1
    try:
        code = PROGRAMS[name](arguments)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        asked.sendall(bytes([code]))
        os._exit(code)


def run_code(arguments: list[str]) -> int:
    """Run code as `python -W error -c CODE` does."""
    (code,) = arguments
    warnings.simplefilter("error")
    try:
        exec(compile(code, "<page>", "exec"), {"__name__": "__main__"})
    except Exception:
        traceback.print_exc()
        return 1
    return 0


PROGRAMS: dict[str, Callable[[list[str]], int]] = {"heed": run, "heed-python": run_code}

if __name__ == "__main__":
    fork_for_each_call(sys.argv[1])
