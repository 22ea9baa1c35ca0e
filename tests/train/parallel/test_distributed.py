"""Several processes train one model: as one would, whoever is killed, wherever they run."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from heed.bundle.bundle import load_bundle
from heed.bundle.find import step_folders
from heed.cli import main
from heed.disk.files import read_json_lines
from heed.errors import DataError, RunError, WorkerError
from heed.machine.threads import process_rank
from heed.train.parallel import distributed
from heed.train.parallel.distributed import Group, join_group

WORDS = ("ein", "zwei", "drei", "vier", "rot", "blau", "hund", "haus", "baum", "maus")
SMALL = [
    "tokenizer.kind=word",
    "tokenizer.vocab_size=330",
    "model.d_model=16",
    "model.n_heads=2",
    "model.d_ff=32",
    "model.n_encoder_layers=1",
    "model.n_decoder_layers=1",
    "training.batch_tokens=64",
    "training.first_batch_tokens=64",
    "training.ema_decay=0.9",
    "training.validate_every=30",
    "training.validation_sentences=2",
    "training.checkpoint_every=5",
]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
PATIENCE_S = 600  # a busy machine is no bug
STEPS = 120  # so many that a run is still at it when it is disturbed

FORKING = """
import sys
import torch.distributed.run
import heed.cli.train, heed.train.run.run, heed.train.tasks.translation
torch.distributed.run.main(sys.argv[1:])
"""
"""torchrun whose workers are forked from it: to import torch costs more than all of their steps."""

WORKER = """
import os
from pathlib import Path
from heed.cli.main import main
Path(__file__).with_name(f"worker {os.environ['RANK']}").write_text(str(os.getpid()))
main()
"""

Command = list[str]


def write_corpus(folder: Path) -> Path:
    """Some hundred sentences; each word is translated by spelling it backwards."""
    chooser = random.Random(0)
    lines = sorted({" ".join(chooser.choices(WORDS, k=chooser.randint(1, 5))) for _ in range(150)})
    backwards = [" ".join(word[::-1] for word in line.split()) for line in lines]
    (folder / "train.de").write_text("".join(f"{line}\n" for line in lines))
    (folder / "train.xx").write_text("".join(f"{line}\n" for line in backwards))
    return folder


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path)


def heed_train(corpus: Path, name: str, max_steps: int, *settings: str) -> Command:
    files = ["--src", str(corpus / "train.de"), "--tgt", str(corpus / "train.xx")]
    limits = ["--max-steps", str(max_steps), "--threads", "1"]
    return ["-m", "heed", "train", *files, *limits, *SMALL, *settings, "--out", str(corpus / name)]


def torchrun(command: Command, *options: str) -> Command:
    launcher = [sys.executable, "-m", "torch.distributed.run"]
    options = options or ("--nproc-per-node", "2")
    # Saving may take longer than torchrun usually grants, on a busy machine.
    return [*launcher, "--shutdown-timeout", str(PATIENCE_S), *options, *command]


def forking(command: Command, *options: str) -> Command:
    """`torchrun(heed_train(…))` without an import of torch in each process that it starts."""
    script = Path(command[-1]).with_name("worker.py")  # beside the run's folder
    script.write_text(WORKER)
    whole = torchrun([str(script), *command[2:]], "--run-path", "--start-method", "fork", *options)
    return [sys.executable, "-c", FORKING, *whole[3:]]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes make of `STEPS` steps when nobody disturbs them."""
    folder = write_corpus(tmp_path_factory.mktemp("undisturbed"))
    command = forking(heed_train(folder, "run", STEPS), "--nproc-per-node", "2")
    subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True, timeout=PATIENCE_S)
    return folder / "run"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a command whose words go to a file; whatever is left is killed in the end."""
    started: list[subprocess.Popen[str]] = []

    def start(command: Command, words: str = "words", **options: Any) -> subprocess.Popen[str]:
        with open(tmp_path / words, "w") as file:
            process = subprocess.Popen(
                command, stdout=file, stderr=file, env=ENVIRONMENT, text=True, **options
            )
        started.append(process)
        return process

    yield start
    for process in started:
        for worker in children(process):
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        process.kill()
        process.wait()


def children(process: subprocess.Popen[str]) -> list[int]:
    """Process ids of what a process has started."""
    with suppress(OSError):
        found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        return [int(child) for child in found.split()]
    return []


def workers(launcher: subprocess.Popen[str]) -> dict[int, int]:
    """Process id → rank of what torchrun has started."""
    found: dict[int, int] = {}
    with suppress(OSError):
        for child in children(launcher):
            variables = Path(f"/proc/{child}/environ").read_text().split("\0")
            ranks = [text.removeprefix("RANK=") for text in variables if text.startswith("RANK=")]
            found.update((child, int(rank)) for rank in ranks)
    return found


def when_saved(out: Path, step: int, process: subprocess.Popen[str]) -> None:
    """Wait until a run has made this checkpoint or a later one, for old ones go."""
    give_up_at = time.monotonic() + PATIENCE_S
    while not any(made >= step for made, _ in step_folders(out)):
        assert process.poll() is None, "the run has ended too early"
        assert time.monotonic() < give_up_at
        time.sleep(0.02)


def weights(out: Path) -> dict[str, NDArray[np.float32]]:
    return load_bundle(out).weights


def events(out: Path, kind: str) -> list[dict[str, Any]]:
    return [event for event in read_json_lines(out / "metrics.jsonl") if event["kind"] == kind]


def progress(out: Path) -> dict[str, Any]:
    _, newest = step_folders(out)[0]
    found: dict[str, Any] = json.loads((newest / "progress.json").read_text())
    return found


def assert_close(one: Path, other: Path) -> None:
    """Weights equal but for the order in which float32 numbers are added."""
    for name, weight in weights(one).items():
        np.testing.assert_allclose(weight, weights(other)[name], rtol=0, atol=1e-6)


def assert_identical(one: Path, other: Path) -> None:
    for name, weight in weights(one).items():
        assert np.array_equal(weight, weights(other)[name]), name


# One process: what needs no company


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("n_batches", [1, 4, 6])
def test_each_batch_of_a_step_is_one_process_own(size: int, n_batches: int) -> None:
    step = [f"batch {number}" for number in range(n_batches)]
    groups = [Group(rank=rank, size=size) for rank in range(size)]
    shares = [group.share(step) for group in groups]
    assert sorted(batch for share in shares for batch in share) == step
    for group, share in zip(groups, shares, strict=True):
        assert [step[place] for place, _ in zip(group.places(), share, strict=False)] == share


def test_a_process_alone_is_a_group_that_agrees_with_itself() -> None:
    with join_group("cpu") as group:
        assert (group.rank, group.size, group.is_leader) == (0, 1, True)
        assert group.sum(0.1, 2.0) == [0.1, 2.0]
        assert group.agree(3.5) == 3.5
        assert group.any(True)
        assert not group.any(False)
        group.require_same(7, "never said")
        group.wait()
        parameter = torch.nn.Parameter(torch.ones(2))
        group.sum_gradients([parameter])
        assert parameter.grad is None


def test_other_settings_than_the_leader_are_refused_in_words() -> None:
    class TwoOfAMind(Group):
        def sum(self, *values: float) -> list[float]:
            return [value + 1 for value in values]

    with pytest.raises(RunError, match="not the same"):
        TwoOfAMind(rank=1, size=2).require_same(7, "not the same")


def test_a_worker_tells_its_own_trouble_with_its_name() -> None:
    with (
        pytest.raises(WorkerError, match=r"process 1 on .*: no such file"),
        Group(rank=1, size=2).on_its_own(),
    ):
        raise DataError("no such file")
    with pytest.raises(DataError, match="^no such file$"), Group().on_its_own():
        raise DataError("no such file")


def test_a_lost_process_and_a_silent_one_are_told_in_words() -> None:
    for words in ("Connection closed by peer", "Connection reset by peer"):
        with (
            pytest.raises(RunError, match="another process of this run has ended"),
            distributed._as_run_error(),
        ):
            raise RuntimeError(words)
    with pytest.raises(WorkerError, match="timed out waiting"), distributed._as_run_error():
        raise RuntimeError("Timed out waiting 5000ms for recv operation to complete")
    with pytest.raises(RuntimeError, match="shapes differ"), distributed._as_run_error():
        raise RuntimeError("shapes differ")


@pytest.mark.parametrize(
    ("variables", "rank"),
    [({}, 0), ({"RANK": "3"}, 0), ({"RANK": "3", "WORLD_SIZE": "4"}, 3)],
)
def test_the_rank_is_what_torchrun_says(
    variables: dict[str, str], rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert process_rank() == rank


def test_a_mistake_in_the_command_is_told_by_the_first_process_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank, n_lines in (("0", 1), ("1", 0)):
        monkeypatch.setenv("RANK", rank)
        assert main.run(["train", "--no-such-flag"]) == 2
        assert len(capsys.readouterr().err.splitlines()) == n_lines


# Two processes


@pytest.mark.timeout(2 * PATIENCE_S)
def test_two_processes_equal_one_with_the_same_batches(
    corpus: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    """Fault D5. Epochs have an odd number of batches: the last step has one for two."""
    together = start(torchrun(heed_train(corpus, "two", 30)))
    one = heed_train(corpus, "one", 30, "training.accumulate=2")
    alone = start([sys.executable, *one], "words of one")
    assert together.wait(PATIENCE_S) == 0, (corpus / "words").read_text()
    assert alone.wait(PATIENCE_S) == 0
    assert any(event["batches"] % 2 for event in events(corpus / "two", "epoch"))
    assert_close(corpus / "two", corpus / "one")
    of_two, of_one = progress(corpus / "two"), progress(corpus / "one")
    for counted in ("src_tokens", "tgt_tokens", "epoch", "batch"):
        assert of_two[counted] == of_one[counted], counted
    assert events(corpus / "two", "start")[0]["environment"]["processes"] == 2
    assert len(events(corpus / "two", "end")) == 1


@pytest.mark.slow
@pytest.mark.timeout(4 * PATIENCE_S)
@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.reliability), 1])
def test_a_killed_worker_comes_back_and_changes_nothing(
    corpus: Path, start: Callable[..., subprocess.Popen[str]], undisturbed: Path, rank: int
) -> None:
    """Fault D4: `kill -9`; torchrun starts all anew, from the newest checkpoint."""
    options = ("--nproc-per-node", "2", "--max-restarts", "2")
    launcher = start(forking(heed_train(corpus, "killed", STEPS), *options))
    when_saved(corpus / "killed", 20, launcher)
    worker = int((corpus / f"worker {rank}").read_text())
    assert worker in children(launcher)
    os.kill(worker, signal.SIGKILL)
    assert launcher.wait(PATIENCE_S) == 0, (corpus / "words").read_text()
    steps = [event["step"] for event in events(corpus / "killed", "start")]
    assert len(steps) == 2
    assert 0 < steps[1] < STEPS
    assert_identical(corpus / "killed", undisturbed)


@pytest.mark.slow
@pytest.mark.reliability
@pytest.mark.timeout(4 * PATIENCE_S)
def test_a_stopped_launcher_pauses_the_run_and_another_number_of_processes_goes_on(
    corpus: Path, start: Callable[..., subprocess.Popen[str]], undisturbed: Path
) -> None:
    """Fault R8. The batches of a step stay what they were when the run began."""
    two = "--nproc-per-node", "2"
    for name, go_on in (
        ("paused", forking(heed_train(corpus, "paused", STEPS), *two)),
        ("alone", [sys.executable, *heed_train(corpus, "alone", STEPS)]),
    ):
        launcher = start(forking(heed_train(corpus, name, STEPS), *two), "paused words")
        when_saved(corpus / name, 20, launcher)
        launcher.send_signal(signal.SIGTERM)
        launcher.wait(PATIENCE_S)
        words = (corpus / "paused words").read_text()
        assert words.count("Paused and saved at step") == 1, words
        assert progress(corpus / name)["step"] < STEPS
        assert start(go_on).wait(PATIENCE_S) == 0, (corpus / "words").read_text()
    assert_identical(corpus / "paused", undisturbed)
    assert_close(corpus / "alone", undisturbed)
    notes = [event["text"] for event in events(corpus / "alone", "note")]
    assert "each step still uses 2 batches, as at the start of the run; processes now: 1" in notes


@pytest.mark.slow
@pytest.mark.reliability
@pytest.mark.timeout(2 * PATIENCE_S)
@pytest.mark.parametrize("trouble", ["corpus", "setting", "disk"])
def test_trouble_of_the_leader_ends_all_and_is_told_once(
    corpus: Path, start: Callable[..., subprocess.Popen[str]], trouble: str
) -> None:
    settings: tuple[str, ...] = ()
    options: dict[str, Any] = {}
    if trouble == "corpus":
        (corpus / "train.xx").write_text("ein\n")
    elif trouble == "setting":
        settings = ("training.learnin_rate=1",)
    else:  # the corpus and the vocabulary fit, a checkpoint does not
        size_bytes = 40_000
        options["preexec_fn"] = lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (size_bytes, size_bytes)
        )
    launcher = start(torchrun(heed_train(corpus, "run", 5000, *settings)), **options)
    assert launcher.wait(PATIENCE_S) == 1
    words = (corpus / "words").read_text()
    assert words.count("heed: ") == 1, words
    expected = {"corpus": "train.xx", "setting": "learnin_rate", "disk": "checkpoints"}
    assert expected[trouble] in words.partition("heed: ")[2].splitlines()[0]


@pytest.mark.slow
@pytest.mark.reliability
@pytest.mark.timeout(2 * PATIENCE_S)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("settings", "the processes of a run must all be started with the same settings"),
        ("corpus", "must all train on one corpus, but found different ones"),
    ],
)
def test_processes_that_differ_are_refused_at_the_start(
    corpus: Path,
    tmp_path_factory: pytest.TempPathFactory,
    start: Callable[..., subprocess.Popen[str]],
    change: str,
    words: str,
) -> None:
    """Fault D7: two hosts, each with a command of its own."""
    other, settings = corpus, ["training.learning_rate=0.5"]
    if change == "corpus":  # a folder that is not shared, but holds a run of the same name
        other, settings = write_corpus(tmp_path_factory.mktemp("other")), []
        (other / "train.de").write_text((other / "train.de").read_text().replace("ein", "kein"))
        once = [sys.executable, *heed_train(other, "run", 1)]
        subprocess.run(once, env=ENVIRONMENT, check=True, capture_output=True)
    commands = [heed_train(corpus, "run", 30), heed_train(other, "run", 30, *settings)]
    launchers = []
    for rank, command in enumerate(commands):
        options = ["--nnodes", "2", "--nproc-per-node", "1", "--node-rank", str(rank)]
        options += ["--master-addr", "127.0.0.1", "--master-port", str(20_000 + os.getpid() % 9000)]
        launchers.append(start(torchrun(command, *options), f"words of {rank}"))
    codes = [launcher.wait(PATIENCE_S) for launcher in launchers]
    said = "".join((corpus / f"words of {rank}").read_text() for rank in (0, 1))
    assert codes == [1, 1], said
    assert words in said
    left = [folder.name for folder in (corpus / "run").glob("checkpoints/step-*")]
    assert left == ["step-000000"]  # no step was made


HANGING = """
import sys, time
from heed.train.parallel.distributed import join_group
with join_group("cpu", timeout_s=5) as group:
    group.wait()
    print("here", flush=True)
    while True:
        group.sum(1.0)
        time.sleep(0.05)
"""


@pytest.mark.slow
@pytest.mark.reliability
@pytest.mark.timeout(PATIENCE_S)
def test_a_process_that_hangs_ends_the_others_in_time(
    corpus: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    """Fault D6: SIGSTOP, as of a machine that answers no more."""
    (corpus / "hanging.py").write_text(HANGING)
    launcher = start(torchrun([str(corpus / "hanging.py")]))
    while (corpus / "words").read_text().count("here") < 2:
        assert launcher.poll() is None
        time.sleep(0.1)
    ranks = {rank: worker for worker, rank in workers(launcher).items()}
    os.kill(ranks[1], signal.SIGSTOP)
    while "WorkerError" not in (corpus / "words").read_text():
        assert launcher.poll() is None
        time.sleep(0.1)
    os.kill(ranks[1], signal.SIGKILL)  # torchrun would ask it to end, and wait
    assert launcher.wait(PATIENCE_S) == 1
    assert "process 0 on" in (corpus / "words").read_text()


# Two hosts


@pytest.fixture
def hosts() -> Iterator[dict[str, str]]:
    """Two network namespaces join_group by a cable: name → address."""
    found = {f"heed-{os.getpid()}-{number}": f"10.77.0.{number}" for number in (1, 2)}
    names = list(found)
    cable = [f"hv{os.getpid() % 100_000}{side}" for side in "ab"]
    commands = [f"ip netns add {name}" for name in names]
    commands.append(f"ip link add {cable[0]} type veth peer name {cable[1]}")
    for name, end, address in zip(names, cable, found.values(), strict=True):
        commands.append(f"ip link set {end} netns {name} name cable")
        commands.append(f"ip -n {name} addr add {address}/24 dev cable")
        commands.append(f"ip -n {name} link set cable up")
        commands.append(f"ip -n {name} link set lo up")
    try:
        for command in commands:
            try:
                subprocess.run(command.split(), check=True, capture_output=True, text=True)
            except (OSError, subprocess.CalledProcessError) as error:
                pytest.skip(f"two hosts need network namespaces, but `{command}` fails: {error}")
        yield found
    finally:
        with suppress(OSError):
            for name in names:
                subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@pytest.mark.slow
@pytest.mark.reliability
@pytest.mark.timeout(4 * PATIENCE_S)
def test_two_hosts_equal_two_processes_on_one(
    corpus: Path, start: Callable[..., subprocess.Popen[str]], hosts: dict[str, str]
) -> None:
    leader_address = next(iter(hosts.values()))
    launchers = []
    for name, address in hosts.items():
        options = ["--nnodes", "2", "--nproc-per-node", "1", "--local-addr", address]
        options += ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"{leader_address}:29400"]
        # torchrun would ask the machine's name, which does not know of namespaces.
        options += ["--rdzv-conf", f"is_host={int(address == leader_address)}"]
        inside = ["ip", "netns", "exec", name, "env", "GLOO_SOCKET_IFNAME=cable"]
        command = forking(heed_train(corpus, "hosts", 30), *options)
        launchers.append(start([*inside, *command], f"words of {address}"))
    for launcher, address in zip(launchers, hosts.values(), strict=True):
        words = corpus / f"words of {address}"
        assert launcher.wait(PATIENCE_S) == 0, words.read_text()
    one_host = forking(heed_train(corpus, "processes", 30), "--nproc-per-node", "2")
    assert start(one_host).wait(PATIENCE_S) == 0, (corpus / "words").read_text()
    assert_identical(corpus / "hosts", corpus / "processes")
