"""Settings of `heed serve`: a flag beats the environment, which beats the file."""

import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def dump(call: Call, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """The settings of a call."""
    (tmp_path / "model").mkdir()

    def dumped(*arguments: str) -> dict[str, Any]:
        code, out, err = call("serve", "-m", str(tmp_path / "model"), *arguments, "--dump-config")
        assert code == 0, err
        return tomllib.loads(out)

    return dumped


def test_a_flag_beats_the_environment_which_beats_the_file(
    dump: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "serve.toml"
    file.write_text('[listen]\nport = 1\ngrace_s = "1min"\nidle_s = 7\n')
    assert dump()["listen"]["port"] == 5000
    assert dump("--config", str(file))["listen"]["port"] == 1
    monkeypatch.setenv("HEED_SERVE_LISTEN_PORT", "2")
    assert dump("--config", str(file))["listen"]["port"] == 2
    monkeypatch.setenv("HEED_SERVE_PORT", "3")
    assert dump("--config", str(file))["listen"]["port"] == 3
    assert dump("--config", str(file), "--set", "listen.port=4")["listen"]["port"] == 4
    found = dump("--config", str(file), "--port", "5", "--set", "listen.port=4")["listen"]
    assert (found["port"], found["grace_s"], found["idle_s"]) == (5, 60.0, 7.0)


def test_a_variable_that_is_no_setting_is_named(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model").mkdir()
    names = ("PORT", "LISTEN_GRACE_S", "KEYS_ADD_NAME", "LISTN_PORT", "WORKERS")
    for name in names:
        monkeypatch.setenv(f"HEED_SERVE_{name}", "2")
    code, out, err = call("serve", "-m", str(tmp_path / "model"), "--dump-config")
    assert code == 0 and "grace_s = 2" in out
    assert err.count("is not a setting of heed serve and is ignored.") == 2
    assert "HEED_SERVE_LISTN_PORT" in err and "HEED_SERVE_WORKERS" in err


def test_a_wrong_value_from_the_environment_is_named_by_its_variable(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEED_SERVE_PORT", "abc")
    code, _, err = call("serve", "--dump-config")
    assert code == 2
    words = "heed: HEED_SERVE_PORT: invalid value for '--port': 'abc' is not a whole number."
    assert words in err
    # What was typed is not blamed on the environment.
    assert "HEED_SERVE_PORT" not in call("serve", "--port", "x")[2]


def test_models_may_stand_in_front_of_the_flags(call: Call, tmp_path: Path) -> None:
    folders = [str(tmp_path / name) for name in ("a", "b", "c")]
    for folder in folders:
        Path(folder).mkdir()
    first, second, third = folders
    code, out, err = call("serve", first, second, "--port", "1", "-m", third, "--dump-config")
    assert code == 0, err
    assert tomllib.loads(out)["models"] == folders
    code, _, err = call("serve", "--port", "1", first)
    assert code == 2
    assert f"{first!r} comes after the flags" in err


def test_what_is_dumped_is_read_again(
    dump: Callable[..., dict[str, Any]], call: Call, tmp_path: Path
) -> None:
    arguments = ("-m", str(tmp_path / "model"), "--set", 'access.origins=["https://a.org"]')
    _, out, _ = call("serve", *arguments, "--dump-config")
    (tmp_path / "again.toml").write_text(out)
    assert call("serve", "--config", str(tmp_path / "again.toml"), "--dump-config")[1] == out


@pytest.mark.parametrize("section", ["memory", "glossary"])
def test_files_of_pairs_and_of_terms_are_settings(
    dump: Callable[..., dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    section: str,
) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(f'[{section}]\nfiles = ["a.tsv"]\n')
    assert dump()[section]["files"] == []
    assert dump("--config", str(file))[section]["files"] == ["a.tsv"]
    monkeypatch.setenv(f"HEED_SERVE_{section.upper()}", "b c.tsv\nen:de=d.tmx")
    assert dump("--config", str(file))[section]["files"] == ["b c.tsv", "en:de=d.tmx"]
    found = dump(f"--{section}", "e.csv", f"--{section}", "de:en=f.tsv")[section]["files"]
    assert found == ["e.csv", "de:en=f.tsv"]


def test_models_of_a_file_are_relative_to_it(call: Call, tmp_path: Path) -> None:
    (tmp_path / "conf" / "model").mkdir(parents=True)
    file = tmp_path / "conf" / "serve.toml"
    file.write_text('models = ["model"]\n')
    _, out, _ = call("serve", "--config", str(file), "--dump-config")
    assert tomllib.loads(out)["models"] == [str(tmp_path / "conf" / "model")]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes in folders")
def test_a_named_pipe_in_place_of_settings_is_refused(
    call: Call, dump: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    """Nothing would ever be read from it. A shell's `<(...)` is a pipe, too, but ends."""
    pipe = tmp_path / "serve.toml"
    os.mkfifo(pipe)
    code, _, err = call("serve", "--config", str(pipe), "--dump-config")
    assert code != 0 and "serve.toml cannot be read: it is a named pipe, and not a file." in err
    ours, theirs = os.pipe()
    os.write(theirs, b"listen.port = 7")
    os.close(theirs)
    try:
        assert dump("--config", f"/dev/fd/{ours}")["listen"]["port"] == 7
    finally:
        os.close(ours)


@pytest.mark.parametrize(
    ("typed", "meant"), [("--workers=2", "--processes"), ("--api-keys", "--keys")]
)
def test_flags_of_other_servers_are_known(call: Call, typed: str, meant: str) -> None:
    code, _, err = call("serve", typed)
    assert code == 2
    name = typed.partition("=")[0]
    assert f"there is no option {name}; did you mean {meant}? See heed serve --help" in err


def test_unknown_settings_are_named_with_the_nearest(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "serve.toml"
    file.write_text("[listen]\nprot = 1\n[lumits]\nchars = 1\n")
    (tmp_path / "model").mkdir()
    monkeypatch.setenv("HEED_SERVE_WORK_THREAD", "2")
    code, _, err = call("serve", "-m", str(tmp_path / "model"), "--config", str(file))
    assert code == 1
    assert f"{file}: listen.prot is not a setting; did you mean listen.port?" in err
    assert f"{file}: lumits is not a setting; did you mean limits?" in err
    assert "  work.thread is not a setting; did you mean work.threads?" in err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("listen = 5000", "listen must be a section, but is 5000"),
        ("models = 'a'", "models must be a list, each text, but is 'a'"),
        ("models = [1]", "models must be a list, each text"),
        ("models = ['nowhere']", "There is no model folder nowhere"),
    ],
)
def test_files_that_are_wrong_are_refused(
    call: Call, tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(text)
    code, _, err = call("serve", "--config", str(file), "--port", "1")
    assert code == 1
    assert words in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--timeout", "0"], "--timeout, in seconds, must be a number from 0.1 to 86400, but is 0"),
        (["--timeout", "soon"], "invalid value for '--timeout': a duration is written like 90s"),
        (["--per-minute", "2000000000"], "--per-minute must be a whole number from 0 to"),
        (["--certificate", "no.pem"], "--private-key is missing: HTTPS needs a certificate and"),
        (["--private-key", "no.pem"], "--certificate is missing: HTTPS needs a certificate and"),
        (
            ["--certificate", "no.pem", "--private-key", "no.key"],
            "--certificate no.pem is missing",
        ),
        (["--host", "no such host"], "--host no such host is not an address"),
    ],
)
def test_a_wrong_value_of_a_flag_is_named_by_the_flag(
    call: Call, model: str, arguments: list[str], words: str
) -> None:
    code, _, err = call("serve", model, *arguments)
    assert code == 2
    assert err.startswith(f"heed: {words}")


def test_a_wrong_value_of_the_file_is_named_by_its_setting(
    call: Call, model: str, tmp_path: Path
) -> None:
    file = tmp_path / "serve.toml"
    file.write_text('[work]\ntimeout_s = 0\n[listen]\ncertificate = "no.pem"\n')
    code, _, err = call("serve", model, "--config", str(file), "--port", "1")
    assert code == 1
    assert f"  {file}: work.timeout_s must be a number from 0.1" in err
    assert f"  {file}: listen.key is missing: HTTPS needs" in err
    code, _, err = call("serve", model, "--config", str(file), "--timeout", "2d")
    assert "  --timeout, in seconds, must be a number from 0.1" in err


def test_without_a_model_it_asks_for_one(call: Call) -> None:
    code, _, err = call("serve")
    assert code == 2
    assert "Which model?" in err
