"""What every test may rely on: one thread, no network, steady hypothesis, the shared corpora.

Not here: fixtures of one room; those live beside their tests.
"""

import os

# Before torch is imported: small tensors on many threads wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"

import dataclasses
import importlib
import io
import itertools
import random
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from heed.data.corpus import Corpus
from heed.data.readers import ParallelFiles

if TYPE_CHECKING:
    from heed.model.config import ModelConfig
    from heed.model.transformer import Transformer
    from heed.train.run.run import Outcome

ROOT = Path(__file__).resolve().parent.parent

# No deadline: a loaded machine is no bug. Derandomized: the same commit gives the same verdict.
hypothesis.settings.register_profile("heed", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("heed")


def pytest_runtest_call() -> None:
    """Undo what an earlier test's model did to the whole process: tiny numbers became 0."""
    if torch := sys.modules.get("torch"):
        torch.set_flush_denormal(False)


@pytest.fixture(scope="session", autouse=True)
def _no_network() -> Iterator[None]:
    """Make a test that reaches for the network fail and say whom it called."""

    connect = socket.socket.connect

    def refuse(sock: socket.socket, address: Any) -> None:
        if sock.family == socket.AF_UNIX or address[0] in ("127.0.0.1", "::1"):
            return connect(sock, address)  # a server of the test's own
        raise AssertionError(f"no test may use the network, but this one called {address}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        yield


TINY: dict[str, Any] = {
    "src_vocab_size": 13,
    "tgt_vocab_size": 13,
    "d_model": 8,
    "n_heads": 2,
    "d_ff": 12,
    "n_encoder_layers": 2,
    "n_decoder_layers": 2,
    "n_layers": 2,
    "max_positions": 64,
}


@pytest.fixture(scope="session")
def config_of() -> Callable[..., "ModelConfig"]:
    """`config_of(norm="pre")`: the shape of `tiny(norm="pre")`; `family` names another family."""
    from heed.model.families import config_from, family_named

    def make(**changes: Any) -> "Any":
        family = family_named(changes.get("family", "transformer"))
        known = {field.name for field in dataclasses.fields(family.config)}
        return config_from({key: value for key, value in TINY.items() if key in known} | changes)

    return make


@pytest.fixture(scope="session")
def tiny(config_of: Callable[..., "ModelConfig"]) -> Callable[..., "Transformer"]:
    """`tiny(norm="pre")`: a seeded model in eval mode, a few numbers wide.

    Biases and norms are moved off 0 and 1, where a forgotten one would go unseen.
    """
    import torch

    from heed.model.build import build_model

    def make(*, seed: int = 0, **changes: Any) -> "Transformer":
        torch.manual_seed(seed)
        model: Any = build_model(config_of(**changes))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
        transformer: Transformer = model.eval()
        return transformer

    return make


@pytest.fixture(scope="session")
def fork() -> Callable[..., int]:
    """`fork(work, fault=None)`: the number of a process that does `work`, and dies at a fault.

    It exits with 0, or with 1 after an exception; at its `fault`-th point of writing files it kills
    itself, as power or an operator might.
    """
    from heed.disk import files

    def start(work: Callable[[], object], fault: int | None = None) -> int:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                files._fault_points = itertools.count(1)
                if fault is not None:
                    os.environ["HEED_FAULT"] = str(fault)
                work()
                code = 0
            finally:
                os._exit(code)
        return pid

    return start


@pytest.fixture(scope="session")
def was_killed() -> Callable[[int], bool]:
    """`was_killed(pid)`: wait for its end; was it SIGKILL? If not, it must have done its work."""

    def wait(pid: int) -> bool:
        status = os.waitpid(pid, 0)[1]
        if os.WIFSIGNALED(status):
            assert os.WTERMSIG(status) == signal.SIGKILL
            return True
        assert os.WEXITSTATUS(status) == 0
        return False

    return wait


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The real corpora that lie beside the checkout on the project's own machines."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"needs the real corpora, and {folder} does not exist")
    return folder


@pytest.fixture(scope="module")
def scripts() -> Iterator[dict[str, ModuleType]]:
    """The modules of `benchmarks/` by name, imported as they import one another."""
    folder = ROOT / "benchmarks"
    if not folder.is_dir():
        pytest.skip("this is a source distribution, which has no benchmarks")
    names = ["curves", "exports", "families", "machine", "peers", "roofline", "scale", "speed"]
    names += ("attention", "time_to_quality", "train_speed", "translate_speed")
    names += ("generate_speed", "generators", "rnn_speed", "translators", "attribution")
    names += (
        "argos",
        "data_sizes",
        "detect",
        "http_load",
        "new_words",
        "same_steps",
        "serve",
        "survival",
        "widen",
    )
    sys.path.insert(0, str(folder))
    yield {name: importlib.import_module(name) for name in names}
    sys.path.remove(str(folder))
    for name in names:
        del sys.modules[name]


@pytest.fixture
def call(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """The program in this process: `call("doctor", stdin=b"")` → (exit code, stdout, stderr)."""
    from heed.cli.main import run

    monkeypatch.setenv("HEED_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HEED_MODEL", raising=False)

    def run_here(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = run(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return run_here


# A corpus of seventy sentences and the settings of a model that learns it in a second.

WORDS = ("ein", "zwei", "drei", "vier", "rot", "blau", "hund", "haus", "baum", "maus")
SMALL = {
    "tokenizer": {"kind": "word", "vocab_size": 330},
    "model": {
        "d_model": 16,
        "n_heads": 2,
        "d_ff": 32,
        "n_encoder_layers": 1,
        "n_decoder_layers": 1,
        "dropout": 0.3,
    },
}
TRAINING = {"max_steps": 12, "batch_tokens": 64, "validate_every": 5, "validation_sentences": 2}

Events = list[dict[str, Any]]
Run = Callable[..., "tuple[Outcome, Events]"]


@pytest.fixture(scope="session")
def small() -> dict[str, Any]:
    """The settings of that model, by section."""
    return SMALL


@pytest.fixture(scope="session")
def write_corpus() -> Callable[[Path], Corpus]:
    """`write_corpus(folder)`: each word is translated by spelling it backwards."""

    def write(folder: Path) -> Corpus:
        chooser = random.Random(0)
        lines = sorted(
            {" ".join(chooser.choices(WORDS, k=chooser.randint(1, 5))) for _ in range(80)}
        )
        backwards = [" ".join(word[::-1] for word in line.split()) for line in lines]
        src, tgt = folder / "small.de", folder / "small.xx"
        src.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        tgt.write_text("".join(f"{line}\n" for line in backwards), encoding="utf-8")
        return Corpus(
            train=(ParallelFiles(files=(str(src), str(tgt)), source_lang="de", target_lang="xx"),)
        )

    return write


@pytest.fixture
def small_corpus(write_corpus: Callable[[Path], Corpus], tmp_path: Path) -> Corpus:
    """Seventy sentences in a folder of this test."""
    return write_corpus(tmp_path)


@pytest.fixture
def small_run(small_corpus: Corpus) -> Run:
    """`small_run(out, stop_at=None, on=None, **training)`: train, or go on; what happened.

    `on` hears every event as it comes. `stop_if` is asked after each step, too. `at_end` is that of
    `run_training`. `settings`, by section, are laid over the usual ones; a `parent` brings its own
    instead.
    """

    def run(
        out: Path,
        *,
        stop_at: int | None = None,
        on: Callable[[dict[str, Any]], None] | None = None,
        corpus: Corpus = small_corpus,
        settings: Mapping[str, Any] = {},
        stop_if: Callable[[], bool] = lambda: False,
        at_end: Callable[[Path], object] = lambda out: None,
        **training: Any,
    ) -> "tuple[Outcome, Events]":
        # Here, so that tests which train nothing never load torch.
        from heed.train.recipe.asked import Asked, merge
        from heed.train.run.run import run_training

        events: Events = []

        def report(event: dict[str, Any]) -> None:
            events.append(event)
            if on:
                on(event)

        def should_stop() -> bool:
            steps = [event["step"] for event in events if event["kind"] == "step"]
            return stop_if() or (stop_at is not None and steps[-1:] == [stop_at])

        usual = {} if training.get("parent") else SMALL
        asked = merge({**usual, "training": TRAINING}, {**settings, "training": training})
        with pytest.MonkeyPatch.context() as patch:
            # Measuring takes longer than such a run.
            patch.setattr("heed.train.run.setup.measure_gflops", lambda device: 30.0)
            outcome = run_training(
                Asked(asked), corpus, out, report=report, should_stop=should_stop, at_end=at_end
            )
        return outcome, events

    return run


@pytest.fixture(scope="session")
def slots_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model that was trained on text with fields, tags and numbers: `slots_model.py`."""
    from tests.slots_model import train_slots_model

    return train_slots_model(tmp_path_factory.mktemp("slots"))


@pytest.fixture
def hang_ups_end() -> Iterator[None]:
    """SIGHUP ends the process, though `nohup` has it ignored for tests in the background."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
