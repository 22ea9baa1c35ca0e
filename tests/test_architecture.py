"""The house holds: walls, budgets, light imports, no way to run a stranger's bytes.

Not what a room does (tests/<room>) nor what its docs claim (tests/docs). Read on in
docs/architecture.md; the walls themselves are written in pyproject.toml.
"""

import ast
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from importlib import metadata
from pathlib import Path

import pytest

import heed

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "heed"
FILES = sorted(PACKAGE.rglob("*.py"))
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
EXTRAS = ["torch", "sacrebleu", "zstandard", "tensorboard", "matplotlib"]


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def each_file() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", FILES, ids=name_of)


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@dataclass(frozen=True)
class Facts:
    """What the tests ask of a file."""

    docstring: str | None
    imports: frozenset[str]
    functions: tuple[tuple[int, str, int], ...]
    """Of each, its first line, its name and its number of lines."""
    unsafe: tuple[tuple[int, frozenset[str]], ...]
    """Lines, and what they use that could run bytes."""


@cache
def facts_of(path: Path) -> Facts:
    """A file is parsed and walked once for all tests."""
    tree = parsed(path)
    functions: list[tuple[int, str, int]] = []
    unsafe: list[tuple[int, frozenset[str]]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            n_lines = (node.end_lineno or node.lineno) - node.lineno + 1
            functions.append((node.lineno, node.name, n_lines))
        elif found := unsafe_in(node):
            unsafe.append((getattr(node, "lineno", 0), frozenset(found)))
    return Facts(ast.get_docstring(tree), imports_of(tree), tuple(functions), tuple(unsafe))


def run_python(code: str) -> None:
    """Run `code` in a fresh interpreter; its last words are the failure's message."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


# The walls


def test_every_import_points_down() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    done = subprocess.run(
        [*command, "--no-cache"], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_room_has_an_empty_init() -> None:
    for path in PACKAGE.glob("*/__init__.py"):
        body = parsed(path).body
        assert all(isinstance(node, ast.Expr) for node in body), (
            f"{path} must hold a docstring only"
        )


def test_nothing_is_called_miscellaneous() -> None:
    homeless = {"utils", "util", "helpers", "common", "misc"}
    assert not [path for path in FILES if path.stem in homeless]


def imports_of(tree: ast.Module) -> frozenset[str]:
    """What a file imports when it is imported itself, and names in it: modules or not."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.expr):
            waiting += ast.iter_child_nodes(node)
    return frozenset(found)


def test_modules_do_not_import_each_other_in_a_circle_and_can_be_imported() -> None:
    """What a module needs comes before it, and what needs it does not, so each works alone."""
    paths = {name_of(path): path for path in FILES}
    needs = {name: facts_of(path).imports & paths.keys() - {name} for name, path in paths.items()}
    order = list(TopologicalSorter(needs).static_order())
    assert order.index("heed.text.vocab") < order.index("heed.translate.translator")
    run_python(f"for name in {order}: __import__(name)")


def test_importing_heed_and_its_command_line_loads_nothing_heavy() -> None:
    heavy = [*EXTRAS, "sentencepiece", "safetensors"]
    run_python(f"""
import sys
import heed, heed.cli.main
loaded = sorted(set({heavy}) & set(sys.modules))
sys.exit(f"`import heed, heed.cli.main` loads {{loaded}}" if loaded else 0)
""")


def test_help_works_without_any_extra() -> None:
    run_python(f"""
import sys
sys.modules.update(dict.fromkeys({EXTRAS}))  # None: an import of it fails
import heed.cli.main
sys.argv = ["heed", "--help"]
heed.cli.main.main()
""")


# The budgets


@each_file()
def test_a_file_can_be_read_in_one_sitting(path: Path) -> None:
    n_lines = len(path.read_text(encoding="utf-8").splitlines())
    assert n_lines <= MAX_FILE_LINES, f"{path} has {n_lines} lines, the budget is {MAX_FILE_LINES}"


@each_file()
def test_a_function_fits_on_a_screen(path: Path) -> None:
    for line, name, n_lines in facts_of(path).functions:
        assert n_lines <= MAX_FUNCTION_LINES, f"{path}:{line} {name} has {n_lines} lines"


@each_file()
def test_a_file_opens_with_what_it_is(path: Path) -> None:
    assert facts_of(path).docstring, f"{path} says nothing"


# Nothing a stranger sends can run

UNSAFE_MODULES = {"pickle", "cPickle", "_pickle", "dill", "joblib", "marshal", "shelve"}
UNSAFE_BUILTINS = {"eval", "exec", "__import__"}
UNSAFE_CALLS = {"torch.load", "torch.save", "os.system", "os.popen", "yaml.load"}
UNSAFE_FLAGS = {"shell", "allow_pickle"}


def unsafe_in(node: ast.AST) -> set[str]:
    """Which of these a node names; nodes below it are asked themselves."""
    match node:
        case ast.Import():
            return {alias.name.partition(".")[0] for alias in node.names} & UNSAFE_MODULES
        case ast.ImportFrom():
            return {(node.module or "").partition(".")[0]} & UNSAFE_MODULES
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return {f"{module}.{name}"} & UNSAFE_CALLS
        case ast.Call():
            called = {node.func.id} if isinstance(node.func, ast.Name) else set()
            return (called & UNSAFE_BUILTINS) | {
                keyword.arg
                for keyword in node.keywords
                if keyword.arg in UNSAFE_FLAGS and ast.unparse(keyword.value) != "False"
            }
    return set()


@each_file()
def test_no_bytes_are_executed(path: Path) -> None:
    """No pickle under any of its names, no text run as code, no shell."""
    for line, found in facts_of(path).unsafe:
        pytest.fail(f"{path}:{line} uses {', '.join(found)}")


# What others rely on


def test_package_changelog_and_installation_tell_one_version() -> None:
    headings = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")
    assert headings[1].split()[0] == heed.__version__
    assert metadata.version("heed") == heed.__version__, "install again: pip install -e ."


def test_public_names_exist() -> None:
    for name in heed.__all__:
        assert getattr(heed, name) is not None
        assert name in dir(heed)


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = {
        re.split(r">=|\[", requirement)[0]
        for requirement in [*project["dependencies"], *extras["train"], *extras["dev"]]
        if not requirement.startswith("heed[")
    }
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert wanted <= {line.partition("==")[0] for line in lines}
    assert "torch==2.13.0" in lines
