"""Signals that stop a long command: at once in preparation, after the current step in training.

After the last step the command ends by itself, once the model is complete.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)
"""Ctrl-C, a normal shutdown, the warning of a job scheduler before it kills a job, and the end of a
terminal or of an SSH connection. Under nohup the last one is ignored, and stays so."""

STOPPING = "stopping …"
ENDING = "stopping after this step, once it is saved …"
AGAIN = "A second {name} ends heed at once, without saving."
COMPLETING = "training has ended: stopping once the model is complete …"
AGAIN_COMPLETING = "A second {name} ends heed at once; the same command then completes the model."
STOPPED = "Stopped before training began; nothing was lost. To start again, run the same command."

GRACE_S = 0.3
"""Seconds for the main thread to end by itself before the process is killed."""

Say = Callable[[str], None]


class Stopped(SystemExit):
    """Raised in the main thread when a signal ends the command at once; `code` is the exit code."""


class Stop:
    """The signals received so far, and the effect of the next one.

    Attributes:
        received: their numbers, in order.
        is_at_once: True: a signal ends the command. False: it is only appended to `received`.
        is_completing: the last step is made, so that no further one stops the command.
    """

    def __init__(self, say: Say | None) -> None:
        self.received: list[int] = []
        self.is_at_once = say is not None
        self.is_completing = False
        self._say = say
        self._lock = threading.Lock()
        self._said: set[str] = set()

    def only_note(self) -> None:
        """From now on, only record signals: the command checks `received` after each step."""
        self.is_at_once = self.is_completing = False

    def only_complete(self) -> None:
        """From now on, only record signals: after the last step a model is completed in any case.

        A signal that came during that step was told that it stops the command after the step.
        """
        self.is_at_once, self.is_completing = False, True
        for number in self.received[:1]:
            self.tell(*self.answers(number))

    def answers(self, number: int) -> list[str]:
        """What the command does after a signal that is only recorded, in words."""
        first, again = (COMPLETING, AGAIN_COMPLETING) if self.is_completing else (ENDING, AGAIN)
        if number == signal.SIGHUP:  # the second one is ignored
            return [first]
        name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        return [first, again.format(name=name)]

    def tell(self, *messages: str) -> None:
        """Print each message once; may be called from any thread."""
        with (
            self._lock,
            suppress(OSError, ValueError),
        ):  # the reader of standard error may have gone
            for message in messages:
                if self._say and message not in self._said:
                    self._said.add(message)
                    self._say(message)


@contextmanager
def stop_signals(say: Say | None = None) -> Iterator[Stop]:
    """Record stop signals instead of ending; a second one has its usual effect, except SIGHUP.

    The end of a terminal sends SIGHUP twice: by its shell, and by the kernel.

    With `say`, a signal ends the process within a second, until `Stop.only_note` is called. From
    then on it prints at once when the command will end.

    Args:
        say: prints a message, in any thread; None = signals are only recorded.

    Raises:
        Stopped: a signal came that ends the process.
    """
    stop = Stop(say)

    def note(number: int, _: object) -> None:
        stop.received.append(number)
        signal.signal(number, signal.SIG_IGN if number == signal.SIGHUP else before[number])
        if stop.is_at_once:
            raise Stopped(128 + number)

    is_kept = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    taken = [number for number in STOP_SIGNALS if not (is_kept and number == signal.SIGHUP)]
    before: dict[int, Any] = {number: signal.signal(number, note) for number in taken}
    try:
        with _ended_in_time(stop):
            yield stop
    except Stopped:
        stop.only_note()
        stop.tell(STOPPING, STOPPED)
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _ended_in_time(stop: Stop) -> Iterator[None]:
    """Let a second thread answer signals, and end the process if the main thread does not.

    Python runs a signal handler only in the main thread, and only between two bytecode
    instructions. Learning the vocabulary is one call into C++ that can take minutes. Ending is safe
    at any time, because all files are written atomically.
    """
    if not stop.is_at_once:
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    is_over = threading.Event()

    def watch() -> None:
        while number := int.from_bytes(os.read(reader, 1)):  # empty when the pipe is closed
            if number in STOP_SIGNALS and not stop.is_at_once:
                stop.tell(*stop.answers(number))
            elif number in STOP_SIGNALS:
                stop.tell(STOPPING)
                if not is_over.wait(GRACE_S) and stop.is_at_once:
                    stop.tell(STOPPED)
                    os._exit(128 + number)

    watcher = threading.Thread(target=watch, name="stop signals", daemon=True)
    watcher.start()
    previous = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield
    finally:
        is_over.set()
        signal.set_wakeup_fd(previous)
        os.close(writer)
        watcher.join()
        os.close(reader)
