"""`heed serve keys`: a key is shown once, then listed without itself, then revoked."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Call = Callable[..., tuple[int, str, str]]


def test_a_key_is_made_listed_and_revoked(call: Call, tmp_path: Path) -> None:
    code, out, err = call("serve", "keys", "add", "weblate", "--per-minute", "60")
    key = out.strip()
    assert code == 0 and key.startswith("heed_weblate_") and "Save it now" in err
    _, out, _ = call("serve", "keys", "list")
    assert out == "weblate\tvalid\t60 texts a minute\tany characters a request\n"
    assert (tmp_path / "home" / "keys.sqlite").exists()
    assert call("serve", "keys", "revoke", "weblate")[0] == 0
    assert call("serve", "keys", "list")[1].startswith("weblate\trevoked\t")
    listed = json.loads(call("serve", "keys", "list", "--json")[1])
    assert (listed[0]["name"], listed[0]["is_valid"]) == ("weblate", False)
    assert key not in json.dumps(listed)


def test_keys_lie_where_the_environment_of_the_server_says(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEED_SERVE_ACCESS_KEYS_FILE", str(tmp_path / "k3"))
    _, _, err = call("serve", "keys", "add", "a")
    assert f"only its hash is stored, in {tmp_path / 'k3'}." in err
    assert call("serve", "keys", "list")[1].startswith("a\tvalid")
    assert not (tmp_path / "home" / "keys.sqlite").exists()


def test_a_key_may_expire(call: Call, tmp_path: Path) -> None:
    file = ("--keys-file", str(tmp_path / "k"))
    call("serve", "keys", "add", "a", "--expires", "90d", *file)
    call("serve", "keys", "add", "b", "--expires", "0s", *file)
    first, second = call("serve", "keys", "list", *file)[1].splitlines()
    assert first.startswith("a\tvalid until 20") and second.startswith("b\texpired 20")


@pytest.mark.parametrize("time", ["9999999d", f"{'9' * 400}d"])
def test_a_key_that_would_never_expire_is_refused(call: Call, tmp_path: Path, time: str) -> None:
    """Its date could not be listed."""
    file = ("--keys-file", str(tmp_path / "k"))
    code, out, err = call("serve", "keys", "add", "a", "--expires", time, *file)
    assert (code, out) == (2, "") and "must end before the year 9999" in err
    assert call("serve", "keys", "list", *file)[0] == 0


def test_an_empty_list_says_how_to_begin(call: Call) -> None:
    assert "heed serve keys add NAME" in call("serve", "keys", "list")[2]


def test_an_empty_list_names_its_file(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "mistyped.sqlite"
    assert f"No keys yet in {path}." in call("serve", "keys", "list", "--keys-file", str(path))[2]


@pytest.mark.parametrize("time", ["soon", ""])
def test_a_wrong_duration_is_refused(call: Call, time: str) -> None:
    """An empty one, as of an unset variable, must not make a key that never expires."""
    code, out, err = call("serve", "keys", "add", "a", "--expires", time)
    assert (code, out) == (2, "") and "a duration is written like" in err
