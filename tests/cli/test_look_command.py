import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run


def test_next_word_shows_probabilities_from_large_to_small(
    call: Callable[..., Any], model: str
) -> None:
    """Claim 3."""
    code, out, _ = call("next-word", "-m", model, "纽约是一座城市", "--prefix", "New", "-k", "4")
    assert code == 0
    chances = [float(line.split()[0]) for line in out.splitlines()]
    assert len(chances) == 4
    assert chances == sorted(chances, reverse=True)
    records = json.loads(call("next-word", "-m", model, "纽约是一座城市", "--json")[1])
    assert len(records) == 10
    assert set(records[0]) == {"token", "probability"}


def test_align_draws_a_row_per_target_piece(call: Callable[..., Any], model: str) -> None:
    """Claim 65."""
    code, out, _ = call("align", "-m", model, "纽约是一座城市", "New York")
    assert code == 0
    record = json.loads(call("align", "-m", model, "纽约是一座城市", "New York", "--json")[1])
    assert len(out.splitlines()) == 1 + len(record["target_tokens"])
    assert len(record["weights"]) == len(record["target_tokens"])
    assert {len(row) for row in record["weights"]} == {len(record["source_tokens"])}


def test_the_weight_of_special_tokens_is_left_out_of_an_alignment(
    call: Callable[..., Any], model: str
) -> None:
    record = json.loads(call("align", "-m", model, "纽约是一座城市", "New York", "--json")[1])
    sums = [sum(row) for row in record["weights"]]
    assert "</s>" not in record["source_tokens"]
    assert sums
    assert max(sums) < 0.99
    help_of_it = " ".join(call("align", "--help")[1].split())
    assert "columns of </s> and language tags are left out, so a row sums to less" in help_of_it


def test_text_of_any_locale_is_read_as_utf_8(call: Callable[..., Any], model: str) -> None:
    """Python gives bytes that it could not decode as lone surrogates."""
    good, bad = "ein mädchen".encode().decode("ascii", "surrogateescape"), "ein m\udce4dchen"
    expected = call("align", "-m", model, "a", "ein mädchen")
    assert expected[0] == 0
    assert call("align", "-m", model, "a", good) == expected
    code, _, err = call("align", "-m", model, "a", bad)
    assert code == 2
    assert "'[TRANSLATION]': it is not valid UTF-8 (byte 6)" in err
    code, _, err = call("next-word", "-m", model, "a", "--prefix", bad)
    assert code == 2
    assert "'--prefix': it is not valid UTF-8 (byte 6)" in err


def test_json_is_the_same_in_every_locale(heed: Run, model: str) -> None:
    asked = "next-word", "-m", model, "纽约是一座城市 😀", "--json"
    expected, found = (
        heed(*asked, env={"PYTHONIOENCODING": encoding}) for encoding in ("utf-8", "latin-1")
    )
    assert (found.returncode, found.stderr) == (0, expected.stderr)
    assert json.loads(found.stdout) == json.loads(expected.stdout)
    assert found.stdout.isascii() and not expected.stdout.isascii()


def test_align_refuses_a_layer_that_is_not_there(call: Callable[..., Any], model: str) -> None:
    code, _, err = call("align", "-m", model, "A", "B", "--layer", "7")
    assert code == 2
    assert err == "heed: --layer must lie between -1 and 0, but is 7.\n"
    code, _, err = call("align", "-m", model, "A", "B", "--head", "9")
    assert code == 2
    assert err == "heed: --head must lie between 0 and 1, but is 9.\n"


@pytest.mark.parametrize("command", ["choose-heads", "calibrate"])
def test_files_of_unequal_length_are_named(
    call: Callable[..., Any], model: str, tmp_path: Path, command: str
) -> None:
    src, tgt = tmp_path / "a.en", tmp_path / "a.de"
    src.write_text("a dog\na cat\n")
    tgt.write_text("ein Hund\n")
    code, _, err = call(command, "-m", model, str(src), str(tgt))
    assert code == 1
    assert f"{src} and {tgt} must have equally many lines, but have 2 and 1." in err


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["next-word", "LONG"], "source"),
        (["next-word", "A", "--prefix", "LONG"], "prefix"),
        (["align", "LONG"], "source"),
        (["align", "A", "LONG"], "translation"),
    ],
)
def test_a_text_too_long_to_be_read_in_one_piece_is_refused(
    call: Callable[..., Any], model: str, arguments: list[str], what: str
) -> None:
    long = "city " * 10_000
    arguments = [long if argument == "LONG" else argument for argument in arguments]
    code, out, err = call(*arguments, "-m", model)
    assert (code, out) == (1, "")
    assert (
        f"heed: The {what} must have at most 1024 tokens to be read in one piece, but has " in err
    )
    assert "Give one sentence of it." in err


@pytest.mark.parametrize("name", ["next-word", "align"])
def test_a_text_is_needed(call: Callable[..., Any], name: str) -> None:
    code, _, err = call(name)
    assert code == 2
    assert "missing argument 'TEXT'" in err


def test_align_shows_words_heads_and_links(call: Callable[..., Any], model: str) -> None:
    arguments = "align", "-m", model, "A man is riding a bike.", "Ein Mann."
    pieces = json.loads(call(*arguments, "--json", "--head", "1")[1])
    code, out, _ = call(*arguments, "--words", "--json", "--head", "1")
    assert code == 0
    words = json.loads(out)
    assert words["source_tokens"] == ["A", "man", "is", "riding", "a", "bike", "."]
    assert words["target_tokens"] == ["Ein", "Mann", "."]
    # The last word is one piece on both sides.
    assert words["weights"][-1][-1] == pytest.approx(pieces["weights"][-1][-1], abs=1e-6)
    links = [max(range(7), key=row.__getitem__) for row in words["weights"]]
    out = call(*arguments, "--words", "--pharaoh", "--head", "1")[1]
    assert out.strip() == " ".join(f"{source}-{target}" for target, source in enumerate(links))
    code, out, err = call(*arguments, "--pharaoh", "--json")
    assert (code, out) == (2, "")
    assert "Give either --pharaoh or --json, not both." in err


def test_heads_are_chosen_and_read_from_then_on(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    folder = shutil.copytree(model, tmp_path / "model")
    (tmp_path / "dev.en").write_text("A man is riding a bike .\nTwo dogs .\n", encoding="utf-8")
    (tmp_path / "dev.de").write_text("Ein Mann .\nZwei Hunde .\n", encoding="utf-8")
    (tmp_path / "gold").write_text("0-0 1-1 6-2\n0-0 1?1 2-2\n")
    files = str(tmp_path / "dev.en"), str(tmp_path / "dev.de")
    gold = "--gold", str(tmp_path / "gold")
    code, out, _ = call("choose-heads", "-m", str(folder), *files, *gold, "--dry-run")
    assert code == 0
    assert out.startswith("2 pairs; AER against alignments made by hand:\n")
    assert "  best\n" in out and "  used so far\n" in out and "Stored" not in out
    assert not (folder / "alignment.json").exists()
    code, out, _ = call("choose-heads", "-m", str(folder), *files, "--json")
    assert code == 0
    best = json.loads(out)["best"]
    stored = json.loads((folder / "alignment.json").read_text())
    assert stored == {"format": "heed alignment heads 1", **best}
    _, out, _ = call("choose-heads", "-m", str(folder), *files, "--dry-run")
    assert out.splitlines()[1].endswith("  best, used so far"), "the stored ones are the best"


def test_heads_need_pairs(call: Callable[..., Any], model: str, tmp_path: Path) -> None:
    code, _, err = call("choose-heads", "-m", model)
    assert code == 1
    assert "has no development pairs; name files: SRC TGT." in err
    code, _, err = call("choose-heads", "-m", model, "-", "-")
    assert (code, err) == (2, "heed: Standard input (-) can be read once, but is given twice.\n")
    code, _, err = call("choose-heads", "-m", model, str(tmp_path / "dev.en"))
    assert code == 2
    assert "missing argument 'TGT': the translations of SRC." in err
