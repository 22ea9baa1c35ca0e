import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heed.cli.models import find_model
from heed.disk.files import lock
from heed.disk.home import home
from heed.errors import ConfigError, UsageError


@pytest.fixture
def installed(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEED_HOME", str(tmp_path / "home"))
    folder = tmp_path / "home" / "models"
    shutil.copytree(model, folder / "en-de")
    return folder


def test_an_installed_model_is_listed_shown_and_deleted(
    call: Callable[..., Any], installed: Path
) -> None:
    assert call("models", "list")[:2] == (0, "en-de\ten→de\n")
    assert call("models")[:2] == (0, "en-de\ten→de\n")
    assert json.loads(call("models", "list", "--json")[1])["en-de"]["target_lang"] == "de"
    _, out, _ = call("models", "show", "en-de")
    assert "en → de" in out
    assert "model.safetensors" in out
    assert json.loads(call("models", "show", "en-de", "--json")[1])["format"] == "heed"
    code, _, err = call("models", "rm", "en-de", "--yes")
    assert (code, err) == (0, f"Deleted {installed / 'en-de'}.\n")
    assert call("models", "list")[1] == ""


def test_a_model_is_verified_by_its_checksums(call: Callable[..., Any], installed: Path) -> None:
    code, out, _ = call("models", "verify", "en-de")
    assert code == 0
    sums = dict(reversed(line.split("  ")) for line in out.splitlines())
    path = installed / "en-de" / "model.safetensors"
    assert sums["model.safetensors"] == hashlib.sha256(path.read_bytes()).hexdigest()
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    code, out, err = call("models", "verify", "en-de")
    assert (code, out) == (1, "")
    assert "model.safetensors is damaged" in err


def test_deleting_a_link_keeps_what_it_points_to(
    call: Callable[..., Any], installed: Path, model: str
) -> None:
    (installed / "linked").symlink_to(model)
    assert call("models", "rm", "linked", "--yes")[0] == 0
    assert Path(model, "config.json").exists()


def test_deleting_asks_first(call: Callable[..., Any], installed: Path) -> None:
    assert call("models", "rm", "en-de", stdin=b"n\n")[0] == 130
    assert (installed / "en-de").exists()


def test_deleting_without_an_answer_is_told_what_to_give(
    call: Callable[..., Any], installed: Path
) -> None:
    code, _, err = call("models", "rm", "en-de", stdin=b"")
    assert code == 2
    assert err.splitlines()[1] == (
        "heed: there is no answer on standard input: give --yes to delete without a question."
    )
    assert (installed / "en-de").exists()


def test_a_run_in_which_a_process_trains_is_not_deleted(
    call: Callable[..., Any], installed: Path
) -> None:
    folder = installed / "en-de"
    (installed / "linked").symlink_to(folder)
    with lock(folder):
        code, _, err = call("models", "rm", "en-de", "--yes")
        assert code == 1
        assert err == (
            f"heed: another process (pid {os.getpid()}) is training in {folder}. Wait for it, or "
            "stop it, before you delete the model.\n"
        )
        assert call("models", "rm", "linked", "--yes")[0] == 0
    assert call("models", "rm", "en-de", "--yes")[0] == 0


def test_a_model_with_a_file_of_a_person_in_it_is_not_deleted(
    call: Callable[..., Any], installed: Path
) -> None:
    notes = installed / "en-de" / "notes" / "mine.txt"
    notes.parent.mkdir()
    notes.write_text("mine")
    code, _, err = call("models", "rm", "en-de", "--yes")
    assert code == 1
    assert "holds notes/mine.txt, which heed did not write. Move that file" in err
    assert notes.read_text() == "mine"
    notes.unlink()
    assert call("models", "rm", "en-de", "--yes")[0] == 0


def test_only_installed_models_can_be_deleted(
    call: Callable[..., Any], installed: Path, model: str
) -> None:
    code, _, err = call("models", "rm", "en-fr", "--yes")
    assert code == 1
    assert "There is no installed model en-fr; did you mean en-de?" in err
    assert "There is no installed model" in call("models", "rm", model, "--yes")[2]
    assert Path(model, "config.json").exists()


def test_a_model_is_found_by_path_by_name_or_alone(installed: Path, model: str) -> None:
    assert find_model(model) == Path(model)
    assert find_model("en-de") == installed / "en-de"
    assert find_model(None) == installed / "en-de"


def test_without_a_name_two_models_are_too_many(installed: Path) -> None:
    shutil.copytree(installed / "en-de", installed / "en-fr")
    with pytest.raises(UsageError, match=r"Which model\?.*Installed: en-de, en-fr\."):
        find_model(None)


def test_a_wrong_name_gets_the_nearest_model_or_folder(installed: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no model folder en-dee; did you mean en-de"):
        find_model("en-dee")
    for name in ("run-multi30k", "run-multi2k", "run-multi-log"):
        (tmp_path / name).mkdir()
    (tmp_path / "run-multi3k.log").write_text("finished")
    with pytest.raises(ConfigError, match="no model folder .*run-multi3k. Train one with"):
        find_model(str(tmp_path / "run-multi3k"))
    (tmp_path / "run-multi30k" / "checkpoints").mkdir()  # a run that has just begun
    with pytest.raises(ConfigError, match=r"did you mean .*run-multi30k\?"):
        find_model(str(tmp_path / "run-multi3k"))
    (tmp_path / "run-multi30k" / "checkpoints").rmdir()
    (tmp_path / "run-multi2k" / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"did you mean .*run-multi2k\?"):
        find_model(str(tmp_path / "run-multi3k"))
    with pytest.raises(ConfigError, match="There is no model folder qqq. Train one with"):
        find_model("qqq")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "is not valid JSON"),
        (b"[]", "must hold a JSON object"),
        (None, "has no config.json, so it holds no model."),
        (b"[" * 100_000, "is not valid JSON: nested too deeply."),
        (b" " * (1 << 21), "has 2097152 bytes; the limit is 1048576."),
        ({"model": []}, "config.json: model must be an object, but is []."),
        ({"target_langs": 5}, "config.json: target_langs must be a list of strings."),
        ({"target_langs": [5]}, "config.json: target_langs must be a list of strings."),
        ({"source_lang": None}, "config.json: source_lang must be a string, but is None."),
    ],
)
def test_a_damaged_config_is_told(
    call: Callable[..., Any],
    model: str,
    tmp_path: Path,
    content: bytes | dict[str, Any] | None,
    words: str,
) -> None:
    if isinstance(content, dict):
        good = json.loads(Path(model, "config.json").read_bytes())
        content = json.dumps({**good, **content}).encode()
    if content is not None:
        (tmp_path / "config.json").write_bytes(content)
    code, _, err = call("models", "show", str(tmp_path))
    assert code == 1
    assert words in err


def test_the_best_checkpoint_of_an_unfinished_run_is_shown(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    best = tmp_path / "run" / "checkpoints" / "best"
    shutil.copytree(model, best)
    code, out, err = call("models", "show", str(tmp_path / "run"))
    assert code == 0, err
    assert out.startswith(f"folder     {best}\nlanguages  en → de\n")


def test_models_live_in_heed_home_or_the_xdg_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEED_HOME", "/a")
    assert home() == Path("/a")
    monkeypatch.delenv("HEED_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", "/b")
    assert home() == Path("/b/heed")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", "/c")
    assert home() == Path("/c/.local/share/heed")


@pytest.fixture(scope="module")
def two_way(model: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    from heed.bundle.bundle import load_bundle, save_bundle

    folder = tmp_path_factory.mktemp("models") / "both"
    bundle = load_bundle(model)
    save_bundle(folder, replace(bundle, source_lang="zh", target_langs=("de", "zh")))
    return str(folder)


def test_of_a_two_way_model_the_source_language_tells_the_target(
    call: Callable[..., Any], two_way: str, tmp_path: Path
) -> None:
    assert "languages  zh ↔ de" in call("models", "show", two_way)[1]
    lines = {}
    for flags in ((), ("-t", "de"), ("-t", "zh"), ("-s", "zh"), ("-s", "de")):
        code, lines[flags], err = call("translate", "-m", two_way, *flags, "A dog. New York")
        assert code == 0, err
    assert lines[()] == lines[("-t", "de")] == lines[("-s", "zh")] != lines[("-t", "zh")]
    assert lines[("-s", "de")] == lines[("-t", "zh")]
    text = tmp_path / "text"
    text.write_text("纽约\n", encoding="utf-8")
    judged = call("evaluate", "-m", two_way, "-s", "de", "--src", str(text), "--ref", str(text))
    assert "tok:zh" in judged[1], judged[2]


def test_languages_that_do_not_fit_a_two_way_model_are_told(
    call: Callable[..., Any], two_way: str
) -> None:
    assert (
        "translates from zh and de, not from fr."
        in call("score", "-m", two_way, "-s", "fr", "--src", "a", "--tgt", "b")[2]
    )
    said = call("translate", "-m", two_way, "-s", "de", "-t", "de", "a")[2]
    assert "--source-lang and --target-lang are both de." in said


def test_a_model_that_stores_directions_translates_no_others(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    from heed.bundle.bundle import load_bundle, save_bundle

    folder = str(tmp_path / "three")
    names = {"source_lang": "", "target_lang": "", "target_langs": ("de", "zh")}
    directions = (("zh", "de"), ("de", "zh"), ("en", "zh"))
    save_bundle(folder, replace(load_bundle(model), **names, directions=directions))
    assert "languages  zh → de; de → zh; en → zh" in call("models", "show", folder)[1]
    lines = {}
    for flags in (("-t", "de"), ("-t", "zh"), ("-s", "zh"), ("-s", "en"), ("-s", "en", "-t", "zh")):
        code, lines[flags], err = call("translate", "-m", folder, *flags, "A dog. New York")
        assert code == 0, err
    assert lines[("-t", "de")] == lines[("-s", "zh")] != lines[("-t", "zh")]
    assert lines[("-t", "zh")] == lines[("-s", "en")] == lines[("-s", "en", "-t", "zh")]
    for asked, words in {
        ("-s", "fr"): "three translates from zh and de and en, not from fr.",
        ("-s", "en", "-t", "de"): "three translates en into zh, not into de. Choose one of these",
        ("-s", "zh", "-t", "zh"): "three translates zh into de, not into zh.",
    }.items():
        code, _, err = call("translate", "-m", folder, *asked, "a")
        assert code == 1
        assert words in err


def test_a_broken_model_hides_no_other(call: Callable[..., Any], installed: Path) -> None:
    (installed / "bad").mkdir()
    (installed / "bad" / "config.json").write_bytes(b"{")
    code, out, _ = call("models")
    bad, good = out.splitlines()
    assert code == 0
    assert bad.startswith(f"bad\tbroken: {installed / 'bad' / 'config.json'} is not valid JSON: ")
    assert good == "en-de\ten→de"
    listed = json.loads(call("models", "list", "--json")[1])
    assert listed["en-de"]["target_lang"] == "de"
    assert "is not valid JSON" in listed["bad"]["error"]


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without a home folder, as in `docker run -u 12345`."""

    def unknown(_: int) -> None:
        raise KeyError("uid not found")

    for name in ("HOME", "HEED_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)


def test_a_user_without_a_home_translates_with_a_folder(
    call: Callable[..., Any], nobody: Any, model: str
) -> None:
    code, out, err = call("translate", "-m", model, "-q", "dog")
    assert (code, err) == (0, "")
    assert out
    code, _, err = call("translate", "-m", "nothing", "dog")
    assert code == 1
    assert "There is no model folder nothing. Train one with" in err
    words = "This user has no home folder, so there is no folder of installed models. Set HEED_HOME"
    code, _, err = call("models")
    assert code == 1
    assert words in err
    assert words in call("doctor")[1]
