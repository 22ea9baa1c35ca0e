import os
import re
import resource
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from heed.cli import doctor
from heed.cli import main as main_module
from heed.cli.command import Session
from heed.cli.doctor import PACKAGES
from heed.cli.main import COMMANDS, explain, run
from heed.engine.library import is_compiled
from heed.errors import DataError, UsageError

ROOT = Path(__file__).resolve().parents[2]
NAMES = [name for group in COMMANDS.values() for name in group]


def test_help_opens_with_examples_and_lists_every_command(call: Callable[..., Any]) -> None:
    code, out, err = call("--help")
    assert (code, err) == (0, "")
    assert out.index("Examples") < out.index("Everyday")
    for name in NAMES:
        assert re.search(rf"^  {name} ", out, re.MULTILINE)


def test_the_list_says_of_each_command_what_the_command_says() -> None:
    for group in COMMANDS.values():
        for name, (_, summary) in group.items():
            found = main_module.heed.get_command(None, name)
            assert found.get_short_help_str(80) == summary


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help_with_its_examples_first(
    call: Callable[..., Any], name: str
) -> None:
    code, out, _ = call(name, "--help")
    assert code == 0
    if name not in ("models", "show", "vectors"):  # groups, whose commands have examples
        assert "Examples:" in out
        assert out.index("Examples:") < out.index("--debug")
    assert all(len(line) <= 100 for line in out.splitlines())


def test_help_and_import_load_nothing_heavy_and_are_quick() -> None:
    program = (
        "import sys, heed\n"
        "from heed.cli.main import run\n"
        "run(['--help'])\n"
        "heavy = {'torch', 'numpy', 'sentencepiece', 'sacrebleu'}\n"
        "sys.exit(' '.join(heavy & set(sys.modules)) or 0)\n"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    # 0.1 s on the machine this was written on; the rest is for a loaded one.
    assert after.ru_utime - before.ru_utime < 0.5


def test_the_version_is_the_packages(call: Callable[..., Any]) -> None:
    import heed

    assert call("--version")[:2] == (0, f"heed {heed.__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tranlsate"], "heed: there is no command 'tranlsate'; did you mean translate?"),
        (["xyzzy"], "heed: there is no command 'xyzzy'."),
        (["translate", "--beem-size", "3"], "no option --beem-size; did you mean --beam-size?"),
        (["translate", "--beem_size=3"], "no option --beem-size; did you mean --beam-size?"),
        (["calibrate", "--src", "a"], "heed: there is no option --src: give SRC without it. See"),
        (["translate", "-b", "many"], "'many' is not a whole number. See heed translate --help."),
        (["translate", "--format", "xml"], "'xml' is not one of 'text', 'tsv', 'moses'"),
        (["translate"], "heed: Which model? Name its folder: -m run/, or set HEED_MODEL."),
        (["score"], "heed: missing option '--src'. See heed score --help."),
        (["evaluate"], "heed: Give the references: --ref FILE"),
        (["show"], "heed: missing command. See heed show --help."),
        (["serve", "keys"], "heed: missing command. See heed serve keys --help."),
        (["completion"], "heed: missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish."),
        (["translate", "-i", ""], "'-i' / '--input': the name is empty. See heed translate"),
        (["translate", "--output="], "'-o' / '--output': the name is empty. See heed translate"),
        (["train", "--src", "a", "--src", ""], "'--src': the name is empty. See heed train --help"),
        (["inspect", "x", "--html", ""], "'--html': the name is empty. See heed inspect --help."),
        (["translate", "-t", "", "x"], "'--to-lang': the name is empty. See heed translate --help"),
        (["translate", "-m", "", "x"], "'-m' / '--model': the name is empty. See heed translate"),
        (["train", "--from", "", "x.tsv"], "'--from': the name is empty. See heed train --help."),
        (["quantize", ""], "heed: The name of the model is empty. Name its folder, such as run/."),
        (["inspect", "long " * 60], "heed: Which model? Name its folder: -m run/, or set"),
        (["inspect", "x", "--tensor", ""], "heed: --tensor needs a value, but is empty."),
        (
            ["train"],
            "heed: Give text to learn from: --src FILE --tgt FILE, or a .tsv, .csv, .tmx,",
        ),
    ],
)
def test_wrong_usage_exits_2_and_names_the_nearest_word(
    call: Callable[..., Any], arguments: list[str], words: str
) -> None:
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_command_names_take_underscores(call: Callable[..., Any]) -> None:
    assert call("spm_train", "--help") == call("spm-train", "--help")


def test_no_command_shows_help_and_is_wrong_usage(call: Callable[..., Any]) -> None:
    code, out, err = call()
    assert code == 2
    assert "Everyday" in out + err


@pytest.mark.parametrize(
    ("error", "words", "code"),
    [
        (DataError("x is wrong."), "x is wrong.", 1),
        (UsageError("say y."), "say y.", 2),
        (FileNotFoundError(2, "No such file", "a.txt"), "a.txt: No such file", 1),
        (
            OSError(28, "No space left on device"),
            "standard output cannot be written: No space left on device.",
            1,
        ),
        (OSError(5, "Input/output error"), "Input/output error", 1),
        (
            MemoryError(),
            "out of memory. Give less at once, such as fewer or shorter lines, a smaller "
            "--batch-size (heed translate) or training.batch_tokens (heed train).",
            1,
        ),
        (
            ModuleNotFoundError("No module named 'torch'", name="torch"),
            "This command needs torch, which is not installed: pip install 'heed[train]'",
            1,
        ),
        (
            ValueError("boo"),
            "internal error: ValueError: boo. This is a bug in heed; rerun with --debug to see "
            "where.",
            1,
        ),
        (click.UsageError("Bad thing."), "bad thing.", 2),
    ],
)
def test_every_error_has_words_and_an_exit_code(error: Any, words: str, code: int) -> None:
    assert explain(error) == (words, code)


@pytest.mark.parametrize("flag", ["--debug", "--traceback"])
def test_the_trace_is_shown_only_when_asked_for(
    call: Callable[..., Any], flag: str, tmp_path: Path
) -> None:
    arguments = ["translate", "-m", str(tmp_path / "no"), "x"]
    assert "Traceback" not in call(*arguments)[2]
    code, _, err = call(*arguments, flag)
    assert code == 1
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("heed: ")


def test_ctrl_c_exits_130_quietly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main_module.heed, "invoke", interrupted)
    assert run(["doctor"]) == 130
    assert capsys.readouterr() == ("", "")


def test_ctrl_c_during_the_imports_exits_130_quietly() -> None:
    # An import hook raises the interrupt at the first import of the command line.
    program = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'heed.cli.main':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from heed.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_installed_program_and_the_module_start_alike() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"heed": "heed.__main__:main"}


def test_a_full_disk_behind_standard_output_is_named() -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "heed", "--help"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "heed: standard output cannot be written: No space left on device.\n"


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15)])
def test_a_signal_ends_a_waiting_translation(model: Any, sent: Any, code: Any) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "heed", "translate", "-m", model, "--buffer-size", "1", "-b1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    process.stdin.write(b"A man\nTwo dogs\n" * 2000)
    process.stdin.flush()
    process.stdout.readline()
    process.send_signal(sent)
    time.sleep(0.1)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert b"Traceback" not in err


def test_remarks_go_to_standard_error_and_quiet_silences_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Session().say("hello")
    Session(is_quiet=True).say("nothing")
    assert capsys.readouterr() == ("", "hello\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_program(call: Callable[..., Any], shell: str) -> None:
    code, out, _ = call("completion", shell)
    assert code == 0
    assert "_HEED_COMPLETE" in out


def test_completion_knows_the_commands() -> None:
    done = subprocess.run(
        ["heed"],
        executable=os.path.join(os.path.dirname(sys.executable), "heed"),
        env={
            **os.environ,
            "_HEED_COMPLETE": "bash_complete",
            "COMP_WORDS": "heed tran",
            "COMP_CWORD": "1",
        },
        capture_output=True,
        timeout=60,
    )
    assert b"translate" in done.stdout


def test_doctor_names_versions_and_machine(call: Callable[..., Any]) -> None:
    code, out, _ = call("doctor")
    assert code == 0
    for word in ("heed", "python", "torch", "cores", "memory", "instructions", "models"):
        assert re.search(rf"^{word} ", out, re.MULTILINE)


def test_doctor_counts_the_cores_that_commands_use(
    call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container with a share of the processor, these are fewer than the process may use."""
    monkeypatch.setattr(doctor, "count_cores", lambda: 321)
    assert re.search(r"^cores +321 usable of ", call("doctor")[1], re.MULTILINE)


def test_doctor_knows_the_packages_of_every_part() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    parts = {"always": project["dependencies"], **project["optional-dependencies"]}
    wanted = {
        re.split(r"[>;\[ ]", package)[0]: part
        for part, packages in parts.items()
        for package in packages
        if part != "dev"
    }
    assert wanted == PACKAGES


def test_doctor_says_how_to_get_what_is_missing(
    call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = {name: "1" for name in PACKAGES if name not in ("regex", "starlette")}
    monkeypatch.setattr(doctor, "_version", versions.get)
    code, out, err = call("doctor")
    assert code == 0
    assert re.search(r"^starlette +not installed \(optional: heed\[serve\]\)$", out, re.MULTILINE)
    assert err.splitlines() == [
        "For the missing part: pip install heed",
        "For the missing part: pip install 'heed[serve]'",
    ]


@pytest.mark.parametrize(
    ("name", "engine"),
    [("portable", "compiled, portable"), ("z80", "compiled, but without z80 (HEED_KERNELS)")],
)
def test_doctor_names_the_kernels_that_were_asked_for(
    call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, name: str, engine: str
) -> None:
    if not is_compiled():
        pytest.skip("the engine is not compiled")
    monkeypatch.setenv("HEED_KERNELS", name)
    assert re.search(rf"^engine +{re.escape(engine)}$", call("doctor")[1], re.MULTILINE)
