"""Several processes serve one port: one that is killed is replaced, all drain, figures are one."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path

import pytest
from tests.serve.conftest import make_model
from tests.serve.program import QUESTION, Program, posted, read_all
from tests.serve.test_process import CLIENTS, stopped_under_load

from heed.serve.supervisor import SHARED_FIGURES, forget_process, shared_figures

pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="children are read from /proc")


def children_of(pid: int) -> set[int]:
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


@pytest.fixture(scope="module")
def program(en_de: str) -> Iterator[Program]:
    with Program("-m", en_de, "--processes", "2") as program:
        yield program


def count(program: Program, name: str) -> float:
    figures = program.ask("/metrics")[2].decode()
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", figures, re.M))


def test_any_process_tells_the_figures_of_all(program: Program) -> None:
    name = "heed_batch_requests_count"
    before = count(program, name)
    for number in range(12):
        program.translate(f"Number {number}.")
    # With 12 connections, both processes have had some (all but 1 time in 2,048).
    assert count(program, name) == before + 12


def test_a_killed_process_is_replaced_and_nobody_hangs(program: Program) -> None:
    killed = min(children_of(program.pid))
    outcomes: list[str] = []

    def ask() -> None:
        try:
            outcomes.append(program.translate("Two dogs."))
        except (OSError, HTTPException) as error:
            outcomes.append(type(error).__name__)

    clients = [threading.Thread(target=ask) for _ in range(20)]
    for client in clients:
        client.start()
    os.kill(killed, signal.SIGKILL)
    for client in clients:
        client.join(60)
    assert len(outcomes) == 20
    assert program.ask("/health")[0] == 200
    assert program.wait_for(f"process {killed} ended unexpectedly")
    deadline = time.monotonic() + 60
    while len(children_of(program.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert killed not in children_of(program.pid)
    for _ in range(10):
        program.translate("A man.")


def test_a_process_is_replaced_although_the_folder_of_the_figures_was_deleted(
    en_de: str, tmp_path: Path
) -> None:
    """Systems delete temporary files that nobody has opened for some days."""
    where = {"TMPDIR": str(tmp_path)}
    with Program("-m", en_de, "--processes", "2", environment=where) as program:
        (folder,) = tmp_path.glob("heed-figures-*")
        shutil.rmtree(folder)
        killed = min(children_of(program.pid))
        os.kill(killed, signal.SIGKILL)
        program.wait_for(f"process {killed} ended unexpectedly")
        for number in range(12):
            program.translate(f"Number {number}.")
        assert count(program, "heed_request_seconds_count") > 0
        assert len(children_of(program.pid) - {killed}) == 2
        assert program.stop() == 0


def test_sighup_reaches_all_and_ends_none(program: Program) -> None:
    before = children_of(program.pid)
    program.signal(signal.SIGHUP)
    for _ in range(6):
        program.translate("A man.")
    assert children_of(program.pid) == before


STARTED = """
import os, signal, socket
from heed.serve.supervisor import supervise

def run(listener, link, say, on_ready):
    os.kill(os.getpid(), signal.SIGHUP)
    say("it still loads")
    return 0

with socket.socket() as listener:
    supervise(run, [listener], lambda line: print(line, flush=True),
              on_ready=lambda: None, grace_s=1)
"""


def test_sighup_does_not_end_a_process_that_still_loads_its_models() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STARTED], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "it still loads\n"


ENDING = """
import os, signal, socket, sys
from heed.serve.supervisor import supervise

def run(listener, link, say, on_ready):
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    on_ready()
    signal.sigwait([signal.SIGTERM])
    return int(sys.argv[1])

with socket.socket() as listener:
    sys.exit(supervise(run, [listener], lambda line: print(line, flush=True),
                       on_ready=lambda: os.kill(os.getpid(), signal.SIGTERM), grace_s=5))
"""


def ended(how: str) -> subprocess.CompletedProcess[str]:
    """A supervisor whose only process ends in this way: `killed`, or with this exit code."""
    program = [sys.executable, "-c", ENDING, how]
    return subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("code", [0, 1])
def test_the_exit_code_tells_that_a_process_cut_requests_off(code: int) -> None:
    done = ended(str(code))
    assert (done.returncode, done.stdout) == (code, "")


def test_a_process_that_is_killed_at_the_start_is_told() -> None:
    """The system may kill it because memory ran out, and then it prints nothing itself."""
    done = ended("killed")
    assert re.fullmatch(r"heed: process \d+ was ended by signal 9 before .* ready\.\n", done.stdout)
    assert done.returncode == 1


UNENDING = """
import os, signal, socket, sys
from heed.serve import supervisor

supervisor.LAST_S = 0.2
kill = os.kill
os.kill = lambda pid, number: number == signal.SIGKILL or kill(pid, number)

def run(listener, link, say, on_ready):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    on_ready()
    link.recv(1)  # until the supervisor has ended
    return 0

with socket.socket() as listener:
    sys.exit(supervisor.supervise(run, [listener], lambda line: print(line, flush=True),
                                  on_ready=lambda: kill(os.getpid(), signal.SIGTERM), grace_s=0.1))
"""


def test_a_process_that_cannot_be_killed_is_not_waited_for() -> None:
    """In the kernel, it may wait for a disk that never answers; here no SIGKILL reaches it."""
    done = subprocess.run(
        [sys.executable, "-c", UNENDING], capture_output=True, text=True, timeout=60, check=False
    )
    wanted = r"heed: killed, but not ended within 0\.2 s, .* not answer: process \d+\.\n"
    assert re.fullmatch(wanted, done.stdout)
    assert (done.returncode, done.stderr) == (1, "")


CROWDED = """
import os, signal, socket, sys
from heed.serve import supervisor

supervisor.PAUSES_S = (0.01,)
forks, fork = iter((True, False, True)), os.fork

def fork_or_not():
    if next(forks):
        return fork()
    raise BlockingIOError(11, "Resource temporarily unavailable")

def run(listener, link, say, on_ready):
    on_ready()
    if next(forks, None) is None:  # this is the second process
        os.kill(os.getppid(), signal.SIGTERM)
        signal.pause()
    return 1

os.fork = fork_or_not
with socket.socket() as listener:
    sys.exit(supervisor.supervise(run, [listener], lambda line: print(line, flush=True),
                                  on_ready=lambda: None, grace_s=5))
"""


def test_a_process_that_cannot_be_started_is_tried_again() -> None:
    """Where memory has run out, the system starts none for a while."""
    done = subprocess.run(
        [sys.executable, "-c", CROWDED], capture_output=True, text=True, timeout=60, check=False
    )
    wanted = "heed: no process can be started now: Resource temporarily unavailable."
    assert (done.returncode, done.stdout.splitlines()[1:], done.stderr) == (0, [wanted], "")


def count_allowed(program: Program, n_requests: int) -> int:
    """How many requests of as many connections are answered; all others are refused."""
    question = {"q": "A man.", "source": "en", "target": "de"}
    statuses = [program.ask("/translate", question)[0] for _ in range(n_requests)]
    assert set(statuses) <= {200, 429}
    return statuses.count(200)


def test_processes_count_the_requests_of_a_client_together(en_de: str) -> None:
    """Also with one that took the place of a killed one."""
    limit = ("--processes", "2", "--set", "access.per_minute=10")
    with Program("-m", en_de, *limit) as program:
        begun = time.monotonic()
        n_allowed = count_allowed(program, 30)
        # The limit is 10, and one more for each six seconds that this takes on a busy machine.
        assert 10 <= n_allowed <= 10 + (time.monotonic() - begun) / 6
        before = children_of(program.pid)
        os.kill(min(before), signal.SIGKILL)
        program.wait_for(f"process {min(before)} ended unexpectedly")
        deadline = time.monotonic() + 60
        while len(children_of(program.pid)) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        n_allowed += count_allowed(program, 20)
        assert n_allowed <= 10 + (time.monotonic() - begun) / 6


def test_processes_count_the_characters_of_a_client_together(en_de: str) -> None:
    question = {"text": ["A man."], "source_lang": "EN", "target_lang": "DE"}
    with Program("-m", en_de, "--processes", "2") as program:
        for _ in range(12):  # of 12 connections, both processes have had some
            assert program.ask("/v2/translate", question)[0] == 200
        answers = [program.ask("/v2/usage")[2] for _ in range(12)]
        counts = {json.loads(answer)["character_count"] for answer in answers}
        assert counts == {12 * len("A man.")}


def test_sigterm_drains_all_processes(en_de: str) -> None:
    with Program("-m", en_de, "--processes", "2") as program:
        counts = stopped_under_load(program, n_answers=2 * CLIENTS)
    counts.pop("200")
    assert counts == {"refused": CLIENTS}


def test_a_signal_to_the_whole_group_drains_although_it_comes_twice(en_de: str) -> None:
    with Program("-m", en_de, "--processes", "2") as program, program.connect() as client:
        whole = posted(QUESTION)
        client.sendall(whole[:40])
        program.ask("/health")  # so the half request was read
        for pid in children_of(program.pid):
            os.kill(pid, signal.SIGTERM)
        time.sleep(0.2)  # as if the supervisor had waited for a busy core
        program.signal(signal.SIGTERM)
        time.sleep(0.5)
        client.sendall(whole[40:])
        assert read_all(client).startswith(b"HTTP/1.1 200")
        assert program.wait() == 0


def test_a_second_signal_ends_all_processes_at_once(en_de: str) -> None:
    with Program("-m", en_de, "--processes", "2") as program, program.connect() as client:
        client.sendall(posted(QUESTION)[:-1])
        program.ask("/health")
        program.signal(signal.SIGTERM)
        time.sleep(0.2)
        program.signal(signal.SIGTERM)
        assert program.wait(20) == 1  # it would drain for 30 seconds
        assert program.lines[-1] == "heed: stopped at once."


def test_processes_end_when_the_supervisor_is_killed(en_de: str) -> None:
    with Program("-m", en_de, "--processes", "2") as program:
        orphans = children_of(program.pid)
        program.signal(signal.SIGKILL)
        deadline = time.monotonic() + 60
        while any(_is_running(pid) for pid in orphans):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_model_that_cannot_be_loaded_ends_all(en_de: str, tmp_path: Path) -> None:
    for file in Path(en_de).iterdir():
        data = file.read_bytes()
        (tmp_path / file.name).write_bytes(data[:-9] if file.suffix == ".safetensors" else data)
    with pytest.raises(AssertionError, match="the program ended") as caught:
        Program("-m", str(tmp_path), "--processes", "2")
    assert "safetensors" in str(caught.value)


@pytest.fixture
def big_int8(tmp_path: Path) -> str:
    """A folder of int8 weights of some megabytes."""
    whole = make_model(tmp_path / "whole", "en", "de", d_model=512)
    folder = str(tmp_path / "int8")
    command = [sys.executable, "-m", "heed", "quantize", whole, "--out", folder]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.mark.reliability
@pytest.mark.slow
def test_processes_share_the_mapped_weights(big_int8: str) -> None:
    """What each process has of the weights' file, by its proportional share, adds up to once."""
    with Program("-m", big_int8, "--processes", "3") as program:
        for _ in range(30):
            program.translate("Two dogs.")
        shares = [_share_of_weights(pid) for pid in children_of(program.pid)]
    size = next(Path(big_int8).glob("*.int8.safetensors")).stat().st_size
    assert all(share > 0 for share in shares)
    assert sum(shares) <= 1.05 * size


def _share_of_weights(pid: int) -> int:
    """Bytes of the proportional set size in mappings of a weights file."""
    total, is_weights = 0, False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            is_weights = line.endswith(".safetensors")
        elif is_weights and line.startswith("Pss:"):
            total += int(line.split()[1]) * 1024
    return total


def test_figures_are_shared_only_by_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SHARED_FIGURES, raising=False)
    with shared_figures(1):
        assert SHARED_FIGURES not in os.environ
    monkeypatch.setenv(SHARED_FIGURES, "")
    with shared_figures(2):
        folder = Path(os.environ[SHARED_FIGURES])
        for name in ("gauge_livesum_7.db", "gauge_livesum_8.db", "counter_7.db"):
            (folder / name).write_bytes(b"")
        forget_process(7)
        assert sorted(path.name for path in folder.iterdir()) == [
            "counter_7.db",
            "gauge_livesum_8.db",
        ]
    assert not folder.exists()
