"""The house holds: walls, budgets, light imports, no way to run a stranger's bytes.

Not what a room does (tests/<room>) nor what its docs claim (tests/docs). Read on in
docs/architecture.md; the walls themselves are written in pyproject.toml.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
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


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path)))


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
        body = ast.parse(path.read_text(encoding="utf-8")).body
        assert all(isinstance(node, ast.Expr) for node in body), (
            f"{path} must hold a docstring only"
        )


def test_nothing_is_called_miscellaneous() -> None:
    homeless = {"utils", "util", "helpers", "common", "misc"}
    assert not [path for path in FILES if path.stem in homeless]


def imports_of(path: Path) -> set[str]:
    """What a file imports when it is imported itself, and names in it: modules or not."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(ast.parse(path.read_text(encoding="utf-8")).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += ast.iter_child_nodes(node)
    return found


def test_modules_do_not_import_each_other_in_a_circle_and_can_be_imported() -> None:
    """What a module needs comes before it, and what needs it does not, so each works alone."""
    paths = {name_of(path): path for path in FILES}
    needs = {name: imports_of(path) & paths.keys() - {name} for name, path in paths.items()}
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
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            n_lines = (node.end_lineno or node.lineno) - node.lineno + 1
            place = f"{path}:{node.lineno} {node.name}"
            assert n_lines <= MAX_FUNCTION_LINES, f"{place} has {n_lines} lines"


@each_file()
def test_a_file_opens_with_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), f"{path} says nothing"


# Nothing a stranger sends can run


@each_file()
def test_no_bytes_are_executed(path: Path) -> None:
    """No pickle under any of its names, no text run as code, no shell."""
    unsafe_modules = {"pickle", "cPickle", "_pickle", "dill", "joblib", "marshal", "shelve"}
    unsafe_builtins = {"eval", "exec", "__import__"}
    unsafe_calls = {"torch.load", "torch.save", "os.system", "os.popen", "yaml.load"}
    unsafe_flags = {"shell", "allow_pickle"}
    for node in nodes(path):
        found: set[str] = set()
        if isinstance(node, ast.Import):
            found = {alias.name.partition(".")[0] for alias in node.names} & unsafe_modules
        elif isinstance(node, ast.ImportFrom):
            found = {(node.module or "").partition(".")[0]} & unsafe_modules
        elif isinstance(node, ast.Attribute):
            found = {ast.unparse(node)} & unsafe_calls
        elif isinstance(node, ast.Call):
            found = {ast.unparse(node.func)} & unsafe_builtins
            found |= {
                keyword.arg
                for keyword in node.keywords
                if keyword.arg in unsafe_flags and ast.unparse(keyword.value) != "False"
            }
        assert not found, f"{path}:{getattr(node, 'lineno', 0)} uses {found}"


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
