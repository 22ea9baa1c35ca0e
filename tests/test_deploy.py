"""What `deploy/` has fits the program: commands, options, files; the service is really notified."""

import json
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import click
import pytest
import yaml
from tests.serve.conftest import make_model
from tests.serve.program import Program

from heed.cli.serve import serve
from heed.config import build_config
from heed.serve.access.hosts import is_answered, names_of
from heed.serve.settings import ServeSettings

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
CONTAINERFILE = (DEPLOY / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
IGNORED = (ROOT / ".dockerignore").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
UNIT = (DEPLOY / "heed.service").read_text(encoding="utf-8")


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} (.*)$", CONTAINERFILE, re.M)


def parsed(arguments: list[str]) -> dict[str, object]:
    """The options of a command line; an unknown one is an error."""
    context = click.Context(serve, info_name="serve")
    serve.parse_args(context, list(arguments))
    return context.params


def test_the_image_runs_the_program_with_options_that_exist() -> None:
    assert json.loads(instructions("ENTRYPOINT")[0]) == ["heed", "serve"]
    found = parsed(json.loads(instructions("CMD")[0]))
    assert found["models"] == ("/models/model",) and found["host"] == "0.0.0.0"


def test_the_image_copies_files_that_exist_and_is_not_run_by_root() -> None:
    copied = [word for line in instructions("COPY") for word in line.split()[:-1]]
    own = [word for word in copied if not word.startswith(("--", "/"))]
    assert "src" in own and not [word for word in own if not (ROOT / word).exists()]
    assert instructions("USER") == ["10001"]
    kept = [line[1:] for line in IGNORED.splitlines() if line.startswith("!")]
    assert sorted(kept) == sorted(own) and "*" in IGNORED.splitlines()


def test_the_health_check_is_python_that_compiles() -> None:
    command = re.search(r"HEALTHCHECK .*? CMD (\[.*\])", CONTAINERFILE)
    assert command
    program, flag, code = json.loads(command[1])
    assert (program, flag) == ("python", "-c") and "/ready" in code
    compile(code, "health", "exec")


def test_compose_is_locked_down_and_its_options_exist() -> None:
    service = COMPOSE["services"]["heed"]
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).exists()
    assert parsed(service["command"])["host"] == "0.0.0.0"
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_compose_has_no_keys_and_refuses_public_host_names(
    call: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = COMPOSE["services"]["heed"]
    for name, value in service["environment"].items():
        monkeypatch.setenv(name, value)
    given = [str(tmp_path / word[1:]) if word[0] == "/" else word for word in service["command"]]
    (tmp_path / "models/model").mkdir(parents=True)
    code, out, err = call("serve", *given, "--dump-config")
    assert code == 0 and "is not a setting" not in err
    settings = build_config(ServeSettings, tomllib.loads(out))
    names = names_of(settings)
    assert not settings.needs_keys and names is not None
    assert not is_answered("evil.example", names)
    # By the published port, in the health check, and from another container.
    assert all(is_answered(f"{name}:5000", names) for name in ("localhost", "127.0.0.1", "heed"))


def test_the_unit_starts_the_program_and_waits_longer_than_it_drains() -> None:
    command = re.search(r"^ExecStart=(.*)$", UNIT, re.M)
    assert command
    program, name, *arguments = shlex.split(command[1])
    assert (Path(program).name, name) == ("heed", "serve")
    assert parsed(arguments)["config"] == "/etc/heed/serve.toml"
    stop = re.search(r"^TimeoutStopSec=(\d+)$", UNIT, re.M)
    assert stop and int(stop[1]) > 30


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd here")
def test_systemd_understands_the_unit_and_finds_it_hardened(tmp_path: Path) -> None:
    unit = tmp_path / "heed.service"
    unit.write_text(UNIT.replace("/opt/heed/bin/heed", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-500:]


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_service_manager_is_told_when_it_is_ready_and_when_it_stops(
    tmp_path: Path, processes: str
) -> None:
    model = make_model(tmp_path / "model", "en", "de")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        with Program("-m", model, "--processes", processes, environment=environment) as program:
            assert manager.recv(100) == b"READY=1"
            program.signal(signal.SIGTERM)
            assert manager.recv(100) == b"STOPPING=1"
            assert program.wait() == 0
