"""What README.md and docs/ show is true: their code runs, their links lead somewhere.

Not here: docstrings' examples, which live beside what they document. How a page is read:

- ```python blocks of a page run one after the other in one interpreter, after its commands.
- ```console blocks hold commands after `$ ` and, below each, what it prints; ```sh blocks hold
  commands only. All of a page's blocks share one empty folder, and every command must succeed.
- ```toml and ```json must parse; ```text is a picture; ```diff is applied by
  `test_add_an_attention.py`.
- `<!-- same output -->` before a console block: what it shows is compared, letter by letter.
- `<!-- small corpus -->` before a block: `train.en`, `train.de`, `test.en`, `test.de` and others of
  `SMALL_CORPUS` are in the folder, a training ends after a few steps, and where the page does not
  train a model `run` itself, there is one.
- `<!-- not run: why -->` before a block: it is not run, for the reason given.
"""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.docs.forked import forked_heed

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^(?:<!-- (?P<note>(?:(?!-->).)*) -->\n+)?^```(?P<language>\S*)\n(?P<code>.*?)^```$",
    re.M | re.S,
)
LINK = re.compile(r"\]\((?!https?:|#)(?P<target>[^)#\s]+)")
NOT_RUN = "not run:"
SMALL_CORPUS = "small corpus"
NOTES = ("", "same output", SMALL_CORPUS)
FEW_STEPS = {"HEED_TRAIN_MAX_STEPS": "3", "HEED_DISTILL_MAX_STEPS": "3", "HEED_TRAIN_THREADS": "1"}


@dataclass(frozen=True)
class Block:
    """One fenced block of a page, with the note that stands before it."""

    line: int
    language: str
    code: str
    note: str

    @property
    def is_run(self) -> bool:
        return not self.note.startswith(NOT_RUN)


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            line=text.count("\n", 0, match.start("language")) + 1,
            language=match["language"],
            code=match["code"],
            note=match["note"] or "",
        )
        for match in BLOCK.finditer(text)
    ]


def steps_of(code: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output below it."""
    steps = re.split(r"^\$ ", code, flags=re.M)
    assert not steps[0].strip(), f"a console block opens with `$ `, but this one with {steps[0]!r}"
    pairs = []
    for step in steps[1:]:
        command = re.match(r"(?:.*\\\n)*.*\n", step)
        assert command
        pairs.append((command[0].strip(), step[command.end() :]))
    return pairs


def run(command: list[str], folder: Path) -> str:
    """Run as a reader would: with the `commands`, in a folder of one's own."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={
            **os.environ,
            **FEW_STEPS,
            "NO_COLOR": "1",
            "HEED_HOME": str(folder / "home"),  # no page writes into a home of this machine
        },
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, f"{command[-1]}\n{done.stdout}{done.stderr}"
    return done.stdout


def run_console(block: Block, folder: Path) -> None:
    for command, shown in steps_of(block.code):
        printed = run(["bash", "-euo", "pipefail", "-c", command], folder)
        if block.note == "same output":
            assert printed.rstrip() == shown.rstrip(), command


def run_sh(block: Block, folder: Path) -> None:
    run(["bash", "-euo", "pipefail", "-c", block.code], folder)


def parse_toml(block: Block, _: Path) -> None:
    tomllib.loads(block.code)


def parse_json(block: Block, _: Path) -> None:
    json.loads(block.code)


def look_at(_: Block, __: Path) -> None:
    """A picture says what it says."""


LANGUAGES: dict[str, Callable[[Block, Path], None]] = {
    "console": run_console,
    "sh": run_sh,
    "toml": parse_toml,
    "json": parse_json,
    "text": look_at,
    "diff": look_at,
}


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def small_sentences() -> Iterator[tuple[str, str]]:
    """Pairs of English and German, each once."""
    nouns = {"dog": "Hund", "man": "Mann", "bird": "Vogel", "boy": "Junge"}
    verbs = {"sees": "sieht", "paints": "malt", "likes": "mag"}
    things = {"a house": "ein Haus", "a car": "ein Auto", "a book": "ein Buch"}
    words = {"red": "rot", "new": "neu", "big": "groß"}
    for (noun, hund), (verb, sieht), (thing, haus) in itertools.product(
        nouns.items(), verbs.items(), things.items()
    ):
        yield f"the {noun} {verb} {thing}", f"der {hund} {sieht} {haus}"
        for word, rot in words.items():
            yield (
                f"the {noun} {verb} {thing}; it is {word}",
                f"der {hund} {sieht} {haus}; es ist {rot}",
            )


@pytest.fixture(scope="session")
def commands() -> Iterator[None]:
    """The commands of this environment, of which `heed` imports nothing anew."""
    with forked_heed() as folder, pytest.MonkeyPatch.context() as patch:
        folders = [str(folder), str(Path(sys.executable).parent), os.environ["PATH"]]
        patch.setenv("PATH", os.pathsep.join(folders))
        yield


@pytest.fixture(scope="session")
def small_corpus(tmp_path_factory: pytest.TempPathFactory, commands: None) -> Path:
    """A folder with what blocks of `SMALL_CORPUS` may name, and a model `run`."""
    folder = tmp_path_factory.mktemp("corpus")
    pairs = list(small_sentences())
    test, rest = pairs[::9], [pair for number, pair in enumerate(pairs) if number % 9]
    for name, some in {"train": rest, "test": test, "val": test, "law": rest}.items():
        for side, language in enumerate(("en", "de")):
            lines = "".join(f"{pair[side]}\n" for pair in some)
            (folder / f"{name}.{language}").write_text(lines, encoding="utf-8")
    for language, side in (("en", 0), ("de", 1)):
        lines = "".join(f"{pair[side]} 2\n" for pair in test)
        (folder / f"more.{language}").write_text(lines, encoding="utf-8")
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{en}</seg></tuv><tuv xml:lang="de"><seg>{de}</seg></tuv></tu>'
        for en, de in rest
    )
    (folder / "corpus.tmx").write_text(
        f'<tmx version="1.4"><header/><body>{units}</body></tmx>', encoding="utf-8"
    )
    # After fewer steps a teacher writes broken bytes, from which no student learns.
    command = ["heed", "train", "--src", "train.en", "--tgt", "train.de", "--out", "run"]
    run([*command, "--max-steps", "30"], folder)
    return folder


def trains_run(page: Path) -> bool:
    """Whether a block of a page makes the model `run`."""
    return any(
        re.search(r"heed train .*--out run\b", block.code) and block.note == SMALL_CORPUS
        for block in blocks_of(page)
    )


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("commands")
@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_block_of_a_page_runs(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    python = ""
    if any(block.note == SMALL_CORPUS for block in blocks_of(page)):
        shutil.copytree(request.getfixturevalue("small_corpus"), tmp_path, dirs_exist_ok=True)
        if trains_run(page):
            shutil.rmtree(tmp_path / "run")
    for block in blocks_of(page):
        if block.language == "python":
            # Blank lines put the code on its page's line numbers, for a traceback that helps.
            if block.is_run:
                python += "\n" * (block.line - python.count("\n")) + block.code
        else:
            assert block.language in LANGUAGES, f"{page}:{block.line} is {block.language!r}"
            if block.is_run:
                LANGUAGES[block.language](block, tmp_path)
    if python:
        run(["heed-python", python], tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_a_block_that_is_not_run_says_why(page: Path) -> None:
    for block in blocks_of(page):
        reason = block.note.removeprefix(NOT_RUN).strip()
        assert block.is_run or len(reason) > 10, f"{page}:{block.line} needs a reason"
        assert block.note in NOTES or not block.is_run, (
            f"{page}:{block.line}: {block.note!r} means nothing here"
        )


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    targets = [match["target"] for match in LINK.finditer(page.read_text(encoding="utf-8"))]
    # `make docs` makes the pages of the reference, and checks the links to them.
    made = "reference/"
    assert not [
        target
        for target in targets
        if not (page.parent / target).exists() and not target.startswith(made)
    ]


def test_a_console_block_is_cut_into_commands_and_what_they_print() -> None:
    code = "$ heed train \\\n  --out run\nstep 1\n$ heed doctor\n"
    assert steps_of(code) == [("heed train \\\n  --out run", "step 1\n"), ("heed doctor", "")]


def test_a_block_is_found_with_its_note(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "a\n\n<!-- not run: trains for an hour -->\n```console\n$ x\n```\n\n```text\n```\n"
    )
    first, second = blocks_of(page)
    assert (first.line, first.language, first.is_run) == (4, "console", False)
    assert (second.language, second.is_run) == ("text", True)
