"""`supervise`: run several server processes on one port, and restart one that dies.

Each process has a socket of its own for the same port. The supervisor keeps all of them open, so
the successor of a killed process answers the clients in its queue. The processes share their
metrics in files. SIGTERM and SIGINT drain all processes; SIGHUP makes all check for changed models.
"""

import gc
import math
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from heed.errors import HeedError
from heed.serve.watch.signals import REPEATED_S, STOP_SIGNALS, ignoring_hang_ups
from heed.serve.watch.systemd import STOPPING, notify

SHARED_FIGURES = "PROMETHEUS_MULTIPROC_DIR"
"""Variable with the folder of prometheus_client; set before the processes import that package."""

Say = Callable[[str], None]
Run = Callable[[socket.socket, socket.socket, Say, Callable[[], None]], int]
"""Serves in a child process until it ends; gets its listener, the parent's link, and `on_ready`."""

PAUSES_S = (0.0, 0.5, 2.0, 10.0)
"""Pauses before a dead process is restarted: the more early deaths, the longer."""
YOUNG_S = 30.0
LAST_S = 5.0
"""Seconds for killed processes to end. One that waits for a disk that does not answer may never."""


@dataclass
class _Child:
    """A child process.

    Attributes:
        pid: process id; 0 = it is not running.
        link: the child reports through it; its end tells the child that the supervisor is gone.
        started_at: `time.monotonic()`.
        n_early_deaths: number of consecutive early deaths.
        start_at: time for the restart.
        is_ready: whether it has translated its first sentence.
    """

    pid: int = 0
    link: socket.socket | None = None
    started_at: float = 0.0
    n_early_deaths: int = 0
    start_at: float = 0.0
    is_ready: bool = False


def supervise(
    run: Run,
    sockets: Sequence[socket.socket],
    say: Say,
    *,
    on_ready: Callable[[], None],
    grace_s: float,
) -> int:
    """Run one process for each socket until a signal arrives; return the exit code.

    Args:
        run: serves in a child process.
        sockets: the listening sockets.
        say: prints a line on standard error.
        on_ready: called when all processes are ready.
        grace_s: seconds for the processes to drain; then they are killed.
    """
    return _Supervisor(run, sockets, say, on_ready, grace_s).serve()


@contextmanager
def shared_figures(n_processes: int) -> Iterator[None]:
    """A folder for shared metrics; it must be entered before prometheus_client is imported.

    Args:
        n_processes: number of processes; one process needs no folder.
    """
    if n_processes == 1:
        yield
        return
    folder = tempfile.mkdtemp(prefix="heed-figures-")
    os.environ[SHARED_FIGURES] = folder
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Supervisor:
    def __init__(
        self,
        run: Run,
        sockets: Sequence[socket.socket],
        say: Say,
        on_ready: Callable[[], None],
        grace_s: float,
    ) -> None:
        self.on_ready = on_ready
        self.run = run
        self.sockets = list(sockets)
        self.say = say
        self.grace_s = grace_s
        self.children = [_Child() for _ in sockets]
        self.stopping_since = 0.0
        self.give_up_at = math.inf
        self.exit_code = 0
        self.was_ready = False
        self.selector = selectors.DefaultSelector()
        self.wake, self.woken = socket.socketpair()

    def serve(self) -> int:
        self.wake.setblocking(False)
        self.woken.setblocking(False)
        self.selector.register(self.wake, selectors.EVENT_READ)
        signals = [*STOP_SIGNALS, signal.SIGHUP, signal.SIGCHLD]
        before = {number: signal.signal(number, lambda *_: None) for number in signals}
        signal.set_wakeup_fd(self.woken.fileno(), warn_on_full_buffer=False)
        try:
            while not self.stopping_since or (self.left() and time.monotonic() < self.give_up_at):
                self.start_missing()
                self.wait()
                self.reap()
                self.kill_late()
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)
        if pids := ", ".join(map(str, self.left())):
            self.say(
                f"heed: killed, but not ended within {LAST_S:g} s, perhaps because a disk does not "
                f"answer: process {pids}."
            )
        return self.exit_code

    def left(self) -> list[int]:
        """The processes that have not ended."""
        return [child.pid for child in self.children if child.pid]

    def start_missing(self) -> None:
        if self.stopping_since:
            return
        for child, listener in zip(self.children, self.sockets, strict=True):
            if not child.pid and time.monotonic() >= child.start_at:
                self.start(child, listener)

    def start(self, child: _Child, listener: socket.socket) -> None:
        ours, theirs = socket.socketpair()
        gc.freeze()  # otherwise a child's first collection would copy all shared pages
        try:
            pid = os.fork()
        except OSError as error:
            ours.close()
            theirs.close()
            if not self.was_ready:
                raise
            self.say(f"heed: no process can be started now: {error.strerror}.")
            child.start_at = time.monotonic() + PAUSES_S[-1]
            return
        if pid == 0:
            os._exit(self.be_child(listener, ours, theirs))
        theirs.close()
        child.pid, child.link, child.started_at = pid, ours, time.monotonic()
        child.is_ready = False
        self.selector.register(ours, selectors.EVENT_READ, child)

    @ignoring_hang_ups()
    def be_child(self, listener: socket.socket, ours: socket.socket, theirs: socket.socket) -> int:
        signal.set_wakeup_fd(-1)
        for number in (*STOP_SIGNALS, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        # Only the supervisor may hold these: they tell processes of the supervisor's end.
        for other in (ours, self.wake, self.woken, *(child.link for child in self.children)):
            if other is not None:
                other.close()
        for each in self.sockets:
            if each is not listener:
                each.close()
        try:
            return self.run(listener, theirs, self.say, lambda: theirs.sendall(b"r"))
        except HeedError as error:
            self.say(f"heed: {error}")
            return 1
        except BaseException as error:
            self.say(f"heed: a process failed: {type(error).__name__}")
            return 1
        finally:
            sys.stderr.flush()

    def wait(self) -> None:
        for key, _ in self.selector.select(self.pause_s()):
            if isinstance(key.data, _Child):
                self.hear(key.data)
                continue
            for number in self.wake.recv(4096):
                self.take(number)

    def pause_s(self) -> float | None:
        now = time.monotonic()
        if self.stopping_since:
            late = self.stopping_since + self.grace_s + 1
            return max(0.05, min(late, self.give_up_at) - now)
        waits = [child.start_at - now for child in self.children if not child.pid]
        return max(0.0, min(waits)) if waits else None

    def hear(self, child: _Child) -> None:
        """Handle a message that a child is ready, or the end of its link."""
        assert child.link is not None
        with suppress(ConnectionResetError):
            if child.link.recv(16):
                child.is_ready = True
                if not self.was_ready and all(each.is_ready for each in self.children):
                    self.was_ready = True
                    self.on_ready()
                return
        self.unlink(child)

    def unlink(self, child: _Child) -> None:
        if child.link is not None:
            self.selector.unregister(child.link)
            child.link.close()
            child.link = None

    def take(self, number: int) -> None:
        if number == signal.SIGHUP:
            self.tell_all(signal.SIGHUP)
        elif number in STOP_SIGNALS and not self.stopping_since:
            self.stopping_since = time.monotonic()
            notify(STOPPING)
            # A copy here would keep the port open after the processes have closed theirs.
            for each in self.sockets:
                each.close()
            self.tell_all(signal.SIGTERM)
        elif number in STOP_SIGNALS and time.monotonic() - self.stopping_since > REPEATED_S:
            self.say("heed: stopped at once.")
            self.kill_all()

    def tell_all(self, number: int) -> None:
        for child in self.children:
            if child.pid:
                with suppress(ProcessLookupError):
                    os.kill(child.pid, number)

    def reap(self) -> None:
        for child in self.children:
            if not child.pid:
                continue
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                self.bury(child, os.waitstatus_to_exitcode(status))

    def bury(self, child: _Child, code: int) -> None:
        forget_process(child.pid)
        pid, child.pid = child.pid, 0
        self.unlink(child)
        if self.stopping_since:
            # A process that still loads its models is ended by the signal itself.
            has_failed = code != 0 and -code not in STOP_SIGNALS
            self.exit_code = self.exit_code or int(has_failed)
            return
        if not child.is_ready and not self.was_ready:
            # An error at the first start would be repeated; its message was printed.
            if code < 0:
                self.say(f"heed: process {pid} was ended by signal {-code} before it was ready.")
            self.exit_code = 1
            self.take(signal.SIGTERM)
            return
        is_young = time.monotonic() - child.started_at < YOUNG_S
        child.n_early_deaths = child.n_early_deaths + 1 if is_young else 0
        pause = PAUSES_S[min(max(0, child.n_early_deaths - 1), len(PAUSES_S) - 1)]
        child.start_at = time.monotonic() + pause
        self.say(f"heed: process {pid} ended unexpectedly; another takes its place.")

    def kill_late(self) -> None:
        if self.stopping_since and time.monotonic() > self.stopping_since + self.grace_s + 1:
            self.kill_all()

    def kill_all(self) -> None:
        self.exit_code = 1
        self.give_up_at = min(self.give_up_at, time.monotonic() + LAST_S)
        self.tell_all(signal.SIGKILL)


def forget_process(pid: int) -> None:
    """Remove the gauges of a dead process from the metrics, whose folder is then there."""
    if not (folder := os.environ.get(SHARED_FIGURES, "")):
        return
    os.makedirs(folder, mode=0o700, exist_ok=True)  # systems delete old temporary folders
    for name in os.listdir(folder):
        if name.startswith("gauge_live") and name.endswith(f"_{pid}.db"):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, name))
