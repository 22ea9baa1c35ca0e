import ast
import json
import os
import pty
import select
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import heed.cli
from heed.cli.command import Session
from heed.cli.terminal import echo, visible

COMMANDS = sorted(Path(heed.cli.__file__).parent.glob("*.py"))
BAD = "\x1b]0;title\x07 \u202eright to left\u202c \x9b2J \x7f \r \u2066 \u200f \u061c \udc80"
HIDDEN = set("\x1b\x07\u202e\u202c\x9b\x7f\r\u2066\u200f\u061c\udc80")
SHOWN = (
    r"\x1b]0;title\x07 \u202eright to left\u202c \u009b2J \u007f \x0d \u2066 \u200f \u061c \udc80"
)


def test_control_and_bidirectional_characters_are_made_visible() -> None:
    assert visible(BAD) == SHOWN
    assert visible("two\nlines\tand a tab") == "two\nlines\tand a tab"
    assert visible("纽约 é 👩‍👩‍👧 می‌خواهم") == "纽约 é 👩‍👩‍👧 می‌خواهم"


@given(st.text())
def test_what_is_visible_holds_nothing_that_controls_a_terminal(text: str) -> None:
    shown = visible(text)
    assert not [c for c in shown if ord(c) < 32 and c not in "\n\t"]
    assert not [c for c in shown if 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000]
    assert visible(shown) == shown


@given(st.dictionaries(st.text(max_size=9), st.text()))
def test_json_that_is_made_visible_means_the_same(value: dict[str, str]) -> None:
    assert json.loads(visible(json.dumps(value, ensure_ascii=False))) == value


def test_words_are_escaped_on_both_streams(capsys: pytest.CaptureFixture[str]) -> None:
    echo(BAD)
    echo(BAD, err=True)
    Session().say(BAD)
    assert capsys.readouterr() == (f"{SHOWN}\n", f"{SHOWN}\n{SHOWN}\n")


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_no_command_writes_past_the_place_that_escapes(path: Path) -> None:
    forbidden = {"click.echo", "click.secho", "print", "traceback.print_exc"}
    forbidden |= {"sys.stdout.write", "sys.stderr.write"}
    called = {
        ast.unparse(node.func)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    }
    if path.stem != "terminal":
        assert not called & forbidden


def test_an_error_line_is_escaped(call: Callable[..., Any], tmp_path: Path) -> None:
    name = "a\x1b]0;x\x07\u202e.txt"
    code, _, err = call("score", "-m", str(tmp_path / name), "--src", "a", "--tgt", "b", "--debug")
    assert code == 1
    assert r"There is no model folder" in err
    assert r"a\x1b]0;x\x07\u202e.txt" in err
    assert not set(err) & HIDDEN


def test_metadata_and_names_of_a_model_are_escaped(
    call: Callable[..., Any], model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEED_HOME", str(tmp_path))
    folder = tmp_path / "models" / "a\x1b[2J"
    shutil.copytree(model, folder)
    config = json.loads((folder / "config.json").read_bytes())
    config["source_lang"] = "\x1b]0;x\x07"
    config["target_lang"] = "\u202ede"
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for arguments in (["models"], ["models", "show", str(folder)], ["models", "list", "--json"]):
        code, out, err = call(*arguments)
        assert code == 0, err
        assert not set(out) & HIDDEN
        assert "1b" in out
        assert "202e" in out
    assert r"Delete " in call("models", "rm", "a\x1b[2J", stdin=b"n\n")[2]
    assert not set(call("models", "rm", "a\x1b[2J", stdin=b"n\n")[2]) & HIDDEN


def on_terminal(*arguments: str, env: dict[str, str] | None = None) -> str:
    """What a person sees of `heed` on a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "heed", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.STDOUT,
        env={**os.environ, "OMP_NUM_THREADS": "1", **(env or {})},
    )
    os.close(theirs)
    seen = b""
    try:
        while select.select([ours], [], [], 60)[0]:
            seen += os.read(ours, 1 << 16)
    except OSError:  # the terminal is closed when the last process that writes to it ends
        pass
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return seen.decode()


def test_translations_are_escaped_on_a_terminal_only(
    heed: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    prefix = tmp_path / "prefix"
    prefix.write_text("\u202e\n", encoding="utf-8")
    arguments = ["translate", "-m", model, "-q", "-b1", "--format", "fairseq", "A"]
    arguments += ["--prefix", str(prefix)]
    exact = heed(*arguments).stdout.decode()
    assert "\u202e" in exact
    seen = on_terminal(*arguments)
    assert not set(seen.replace("\r\n", "\n")) & HIDDEN
    assert seen.replace("\r\n", "\n") == visible(exact)


@pytest.mark.parametrize(
    ("command", "code", "out", "err"),
    [
        ("translate -m MODEL <&-", 1, "", "standard input is closed: there is nothing to read."),
        ("translate -m MODEL dog >&-", 1, "", "heed: standard output is closed: nothing can be"),
        ("--help >&-", 1, "", "heed: standard output is closed: nothing can be written to it.\n"),
        ("doctor --wrong 2>&-", 2, "", ""),
        ("translate -m MODEL -q dog <&-", 0, "OUT", ""),
        ("translate -m MODEL dog 2>&- <&-", 0, "OUT", ""),
        ("models show MODEL >&- 2>&- <&-", 1, "", ""),
        ("doctor --wrong 2>/dev/full", 2, "", ""),
        ("translate -m MODEL --threads 999 dog 2>/dev/full", 0, "OUT", ""),
        ("train - --out RUN <&-", 1, "", "standard input"),
    ],
)
def test_closed_or_full_streams_end_in_words_or_do_not_matter(
    model: str, tmp_path: Path, command: str, code: int, out: str, err: str
) -> None:
    command = command.replace("MODEL", model).replace("RUN", str(tmp_path / "run"))
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m heed {command}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=100,
    )
    assert done.returncode == code, done.stderr
    assert err in done.stderr.decode()
    assert bool(err) == bool(done.stderr)
    assert bool(out) == bool(done.stdout)
