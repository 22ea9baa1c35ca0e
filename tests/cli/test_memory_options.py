"""`--memory FILE` and `--no-memory`: pairs that translations of similar sentences follow."""

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heed.bundle.bundle import load_bundle, save_bundle
from heed.text.memory import TranslationMemory

Call = Callable[..., tuple[int, str, str]]

SOURCE, TARGET = "Two dogs play in the snow.", "Zwei Hunde"
OTHER = "A man is riding a bike."
TMX = f"""<?xml version="1.0"?>
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="de"><seg>{TARGET}</seg></tuv><tuv xml:lang="en"><seg>{SOURCE}</seg></tuv></tu>
</body></tmx>
"""
FILES = {
    "pairs.tsv": f"{SOURCE}\t{TARGET}\n",
    "pairs.csv": f'"{SOURCE}","{TARGET}"\n',
    "pairs.tmx": TMX,
}


@pytest.fixture(params=["translate", "translate-file"])
def translate(
    request: pytest.FixtureRequest, call: Call, tmp_path: Path
) -> Callable[..., tuple[int, list[str], str]]:
    """`translate(model, *flags)`: translate SOURCE and OTHER with one of the two commands."""
    source, target = tmp_path / "source.txt", tmp_path / "target.txt"
    source.write_text(f"{SOURCE}\n{OTHER}\n")

    def run(model: str, *flags: str) -> tuple[int, list[str], str]:
        target.unlink(missing_ok=True)
        files = [str(source), str(target)]
        if request.param == "translate":
            files = ["-i", files[0], "-o", files[1], "--max-length", "30"]
        code, _, err = call(request.param, *files, "-m", model, "-b", "1", *flags)
        return code, target.read_text().splitlines() if target.exists() else [], err

    return run


@pytest.fixture
def remembering(model: str, tmp_path: Path) -> str:
    """The model with a memory of one pair, whose translation is TARGET."""
    read = load_bundle(model)
    vocab = read.src_vocab
    memory = TranslationMemory.of(
        [(vocab.encode(SOURCE), vocab.encode(TARGET))], (vocab.size, vocab.size)
    )
    options = {**read.decoding, "max_length": 30}
    save_bundle(tmp_path / "model", replace(read, memory=memory, decoding=options))
    return str(tmp_path / "model")


@pytest.fixture
def plain(remembering: str, tmp_path: Path) -> str:
    """The same model without it."""
    save_bundle(tmp_path / "plain", replace(load_bundle(remembering), memory=None))
    return str(tmp_path / "plain")


@pytest.mark.parametrize("is_compressed", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_a_sentence_of_the_file_gets_its_translation(
    translate: Callable[..., Any], plain: str, tmp_path: Path, name: str, is_compressed: bool
) -> None:
    data = FILES[name].encode()
    path = tmp_path / (f"{name}.gz" if is_compressed else name)
    path.write_bytes(gzip.compress(data) if is_compressed else data)
    before = translate(plain)
    code, lines, err = translate(plain, "--memory", str(path))
    assert (code, before[0]) == (0, 0), err
    assert lines == [TARGET, before[1][1]] != before[1]
    assert f"{path}: 1 pair guides translations of similar sentences." in err


def test_a_pair_that_could_not_be_read_whole_is_left_out(
    translate: Callable[..., Any], plain: str, tmp_path: Path
) -> None:
    path = tmp_path / "pairs.tmx"
    text = TMX.replace("<tmx ", '<!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx ')
    path.write_text(text.replace(TARGET, f"{TARGET} &unknown;"))
    code, lines, err = translate(plain, "--memory", str(path))
    assert (code, lines) == (0, translate(plain)[1])
    assert f"{path}: 0 pairs guide" in err


def test_pairs_are_read_like_lines(
    translate: Callable[..., Any], plain: str, tmp_path: Path
) -> None:
    """With --protect none, tags are words."""
    source, path = tmp_path / "source.txt", tmp_path / "pairs.tsv"
    path.write_text("Two <b>dogs</b>\tZwei <b>Hunde</b>\n")
    source.write_text("Two <b>dogs</b>\n")
    assert translate(plain, "--memory", str(path), "--protect", "none")[1] == ["Zwei <b>Hunde</b>"]


def test_pairs_are_those_of_the_direction_that_is_translated(
    translate: Callable[..., Any], plain: str, tmp_path: Path
) -> None:
    """The model translates both ways; the lines are in its target language."""
    read = load_bundle(plain)
    both = replace(read, source_lang="zh", target_lang="de", target_langs=("de", "zh"))
    save_bundle(tmp_path / "both", both)
    path = tmp_path / "pairs.tmx"
    path.write_text(TMX.replace('"de"', '"zh"').replace('"en"', '"de"'))
    for flags in (("-s", "de"), ("-t", "zh")):
        code, lines, err = translate(str(tmp_path / "both"), *flags, "--memory", str(path))
        assert (code, lines[0]) == (0, TARGET), err


def test_of_several_files_the_last_counts(
    translate: Callable[..., Any], plain: str, tmp_path: Path
) -> None:
    first, second = tmp_path / "first.tsv", tmp_path / "second.csv"
    first.write_text(f"{SOURCE}\tHunde\n{OTHER}\tEin Mann\n")
    second.write_text(FILES["pairs.csv"])
    code, lines, err = translate(plain, "--memory", str(first), "--memory", str(second))
    assert (code, lines) == (0, [TARGET, "Ein Mann"])
    assert f"{first}: 2 pairs" in err and f"{second}: 1 pair " in err
    assert translate(plain, "--memory", str(second), "--memory", str(first))[1][0] == "Hunde"


def test_the_pairs_of_a_model_guide_it_unless_they_are_left_out(
    translate: Callable[..., Any], remembering: str, plain: str, tmp_path: Path
) -> None:
    own = translate(plain)[1]
    assert translate(remembering)[1] == [TARGET, own[1]] != own
    assert translate(remembering, "--no-memory")[1] == own
    path = tmp_path / "other.tsv"
    path.write_text(f"{OTHER}\tEin Mann\n")
    assert translate(remembering, "--memory", str(path))[1] == [TARGET, "Ein Mann"]
    assert translate(remembering, "--no-memory", "--memory", str(path))[1] == [own[0], "Ein Mann"]


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        (
            "pairs.txt",
            2,
            "pairs.txt must be a file of both languages (.tsv, .tab, .csv, .tmx, ",
        ),
        ("gone.tsv", 1, "gone.tsv does not exist"),
        ("", 2, "the name is empty"),
        ("broken.tmx", 1, "broken.tmx"),
        ("broken.tsv.gz", 1, "broken.tsv.gz"),
    ],
)
def test_what_cannot_be_read_is_an_error_in_words(
    translate: Callable[..., Any], plain: str, tmp_path: Path, name: str, code: int, words: str
) -> None:
    for broken in ("pairs.txt", "broken.tmx", "broken.tsv.gz"):
        (tmp_path / broken).write_text("<tmx>a\tb")
    path = str(tmp_path / name) if name else ""
    found, lines, err = translate(plain, "--memory", path)
    assert (found, lines) == (code, []), err
    assert words in err


@pytest.mark.parametrize("command", [("translate", "-i"), ("translate-file",)])
def test_the_file_is_not_overwritten(
    call: Call, model: str, tmp_path: Path, command: tuple[str, ...]
) -> None:
    source, path, link = (tmp_path / name for name in ("a.txt", "pairs.tsv", "link.txt"))
    source.write_text(f"{SOURCE}\n")
    path.write_text(FILES["pairs.tsv"])
    link.symlink_to(path)
    for out in (path, link):
        files = (str(source), "-o", str(out)) if "-i" in command else (str(source), str(out))
        code, _, err = call(*command, *files, "-m", model, "--memory", str(path))
        assert code == 2
        assert f"{out} and {path} are the same file" in err
    assert path.read_text() == FILES["pairs.tsv"]
