"""What prose names exists: files, names of the code, commands, options, settings, claims."""

import ast
import io
import re
import tokenize
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

import click
import pytest
from tests.docs.claims import PAGE, cited_tests, numbers, renewed

from heed.cli.main import heed
from heed.train.recipe.recipe import sections

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "heed"
SOURCES = [
    path
    for folder, pattern in ((PACKAGE, "*.py"), (ROOT / "tests", "*.py"), (ROOT / "engine", "*"))
    for path in sorted(folder.rglob(pattern))
]
MODULES = sorted(PACKAGE.rglob("*.py"))
# Not the log and the changelog: they tell of what is gone, too.
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
]

NAMED_FILE = re.compile(r"`((?:[\w.-]+/)*[\w.-]+\.(?:py|cpp|h|inc|md))`")
NAME = re.compile(r"`([A-Za-z_]\w*(?:\.\w+)*)(?:\(\))?`")
FILE = re.compile(r".*\.(?:py|cpp|h|inc|md|toml|json|jsonl|txt|safetensors)")
FOREIGN = {"cp", "NCCL_SOCKET_IFNAME"}
"""A command of Unix, a variable of NCCL."""
SECTIONS = sections()
SETTING = re.compile(rf"`(({'|'.join(SECTIONS)})\.[a-z]\w*)(?:`| ?=)")
COMMAND = re.compile(r"(?<![\"\w])heed [a-z]+(?:-[a-z]+)*(?: [^\n`|>]*)?")

by_path = pytest.mark.parametrize("path", [*MODULES, *PAGES], ids=lambda path: path.name)


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_files_exist(source: Path) -> None:
    """A name is read from the file's own folder, the room above it, the package or the root."""
    places = (source.parent, source.parent.parent, PACKAGE, ROOT, ROOT / "src")
    names = NAMED_FILE.findall(text_of(source))
    assert not [name for name in names if not any((place / name).exists() for place in places)]


@dataclass(frozen=True)
class Parts:
    """What a file of Python says, and in which words."""

    words: frozenset[str]
    """Names, and words of the texts that are no docstring."""
    prose: str
    """Docstrings and comments."""


@cache
def parts_of(path: Path) -> Parts:
    """A file is taken apart once: that takes most of the time of these tests."""
    docstrings = docstrings_of(text_of(path))
    names: set[str] = set()
    texts: list[str] = []
    comments: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(text_of(path)).readline):
        if token.type == tokenize.NAME:
            names.add(token.string)
        elif token.type == tokenize.STRING and token.start[0] not in docstrings:
            texts.append(token.string)
        elif token.type == tokenize.COMMENT:
            comments.append(token.string)
    words = names.union(re.findall(r"\w+", " ".join(texts)))
    return Parts(frozenset(words), "\n".join([*docstrings.values(), *comments]))


def docstrings_of(text: str) -> dict[int, str]:
    """By line, the text of each docstring, also of those below a constant."""
    found: dict[int, str] = {}
    waiting: list[ast.AST] = [ast.parse(text)]
    for node in waiting:
        match node:
            case ast.Expr(value=ast.Constant(value=str(docstring))):
                found[node.lineno] = docstring
            case ast.expr():
                pass  # no statement stands inside an expression
            case _:
                waiting += ast.iter_child_nodes(node)
    return found


@cache
def words_of_code() -> frozenset[str]:
    """All words of code, texts and build files, but no word of a docstring or a comment."""
    found: set[str] = set()
    for path in [*SOURCES, *(ROOT / "benchmarks").glob("*.py"), ROOT / "hatch_build.py"]:
        if path.suffix == ".py":
            found |= parts_of(path).words
        else:
            found |= set(re.findall(r"\w+", re.sub(r"//.*", "", text_of(path))))
    for name in ("Makefile", "pyproject.toml", "constraints.txt", ".ci/run"):
        found |= set(re.findall(r"\w+", text_of(ROOT / name)))
    return frozenset(found)


def prose(path: Path) -> str:
    """What is written for a reader: a page without its code blocks; docstrings and comments."""
    if path.suffix == ".md":
        return re.sub(r"```.*?```", "", text_of(path), flags=re.DOTALL)
    return parts_of(path).prose


@by_path
def test_a_name_of_the_code_occurs_in_the_code(path: Path) -> None:
    names = [name for name in NAME.findall(prose(path)) if not FILE.fullmatch(name)]
    known = words_of_code()
    words = {word for name in names for word in name.split(".")} - FOREIGN
    assert known.issuperset(words), words - known


@by_path
def test_a_setting_exists(path: Path) -> None:
    text = prose(path) if path.suffix == ".py" else text_of(path)
    settings = {name for name, _ in SETTING.findall(text) if not FILE.fullmatch(name)}
    assert not {name for name in settings if not (is_setting(name) or is_module(name))}


def is_setting(name: str) -> bool:
    section, _, key = name.partition(".")
    return key in {field.name for config in SECTIONS[section] for field in fields(config)}


def is_module(name: str) -> bool:
    return (PACKAGE / f"{name.replace('.', '/')}.py").exists()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_commands_and_their_options_exist(path: Path) -> None:
    text = text_of(path).replace("\\\n", " ")
    spans = re.findall(r"`([^`\n]+)`", text)
    spans += re.findall(r"```(?:sh|console)\n(.*?)```", text, re.DOTALL)
    mistakes = []
    for call in (call for span in spans for call in COMMAND.findall(span)):
        command: click.Command | None = heed
        _, *arguments = call.split()
        while isinstance(command, click.Group) and arguments and arguments[0][0].isalpha():
            below = command.get_command(click.Context(command), arguments.pop(0))
            if below is None and command.invoke_without_command:
                break  # it takes words of its own
            command = below
        if command is None:
            mistakes.append(call)
            continue
        known = {flag for param in command.params for flag in (*param.opts, *param.secondary_opts)}
        known |= {"--help", "--debug", "--quiet", "-q", "-h"}
        given = [each.split("=")[0] for each in arguments if re.match("--?[a-z]", each)]
        mistakes += [f"{call}: {flag}" for flag in given if flag not in known]
    assert not mistakes


@pytest.mark.parametrize(
    ("page", "word", "number"),
    [
        ("faults.md", "fault", r"[RD]\d+"),
        ("faults.md", "check", r"N\d+"),
    ],
)
def test_a_number_stands_in_its_table_and_has_a_test(page: str, word: str, number: str) -> None:
    table = text_of(ROOT / "docs" / page)
    known = set(re.findall(rf"^\| ({number}) \|", table, re.M))
    tests = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    texts = (text_of(path) for path in tests)
    assert set().union(*(numbers(text, word, number) for text in texts)) == known


def test_the_table_of_claims_has_the_tests_that_cite_them() -> None:
    page = PAGE.read_text(encoding="utf-8")
    if page != renewed(page, cited_tests()):
        pytest.fail("docs/claims.md does not have the tests that cite the claims. Run: make claims")
