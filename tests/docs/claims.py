"""The page docs/claims.md: `python tests/docs/claims.py` writes its last column from the tests.

A test proves a claim if its docstring or a comment in it says so: "Claims 45, 46". Statements are
written in the page by hand. So is the reason why a claim has no test, until it has one; once it
has, the reason is gone, and a claim that loses its last test is an error.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "claims.md"
N_CLAIMS = 134
ROW = re.compile(r"^\| (\d+) \| (.*?) \|(?: (.*?) \|)?\n", re.M)
HEAD = """# Claims that tests prove

What papers, lectures and tutorials say of the Transformer, of its ancestors and its descendants, \
and the tests that prove it, below `tests/`. Where sources differ, claims 131 to 134 say which one \
is right. A test cites a claim by its number in its docstring or in a comment; `make claims` \
writes the last column, and `make check` fails if that has not been done or if a claim has lost \
its last test. Tests marked slow run with `make learn`, the others always.

| claim | statement | tests |
|--:|---|---|
"""
REASONS = ("not yet: ", "out of scope: ")
NOT_TESTS = {"claims.py", "test_claims.py", "test_names.py"}
"""They speak of claims and prove none."""


def numbers(text: str, word: str, number: str) -> dict[str, list[int]]:
    """Where each number follows a word, such as in `claims 8, 70 and 71` or `claims 85–88`.

    Returns:
        By number, the lines of the text, from 1.
    """
    found = defaultdict(list)
    for match in re.finditer(rf"\b{word}s? ({number}(?:(?:, | and |–| to ){number})*)", text, re.I):
        line = text.count("\n", 0, match.start()) + 1
        for part in re.split(", | and ", match[1]):
            letter, first, *last = re.findall(r"^\D?|\d+", part)
            for each in range(int(first), int(last[-1] if last else first) + 1):
                found[f"{letter}{each}"].append(line)
    return found


def spans(text: str) -> Iterator[tuple[range, str]]:
    """The lines of each test, its decorators included, and its name behind `::`."""
    tree = ast.parse(text)
    marks = [
        ast.unparse(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            decorators = [ast.unparse(each) for each in node.decorator_list]
            is_slow = any("mark.slow" in mark for mark in (*marks, *decorators))
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            slow = " (slow)" if is_slow else ""
            yield range(first, (node.end_lineno or first) + 1), f"::{node.name}`{slow}"


def tests_of(text: str) -> dict[int, list[str]]:
    """By claim, the tests of a file that cite it; the file itself where it does so outside of one.

    Each as what follows the file's name: `::test_a` with a backtick, or a backtick alone.
    """
    places = list(spans(text))
    return {
        int(number): list(
            dict.fromkeys(
                next((name for lines, name in places if line in lines), "`") for line in cited
            )
        )
        for number, cited in numbers(text, "claim", r"\d+").items()
    }


def cited_tests(folder: Path = ROOT / "tests") -> dict[int, list[str]]:
    """By claim, the tests that cite it, as they stand in the table."""
    found: dict[int, list[str]] = defaultdict(list)
    for path in sorted(folder.rglob("*.py")):
        if path.name not in NOT_TESTS:
            for number, names in tests_of(path.read_text(encoding="utf-8")).items():
                file = f"`{path.relative_to(folder).as_posix()}"
                found[number] += [f"{file}{name}" for name in names]
    return found


def renewed(page: str, tests: Mapping[int, Sequence[str]]) -> str:
    """The page with its last column as the tests have it.

    Rows may stand anywhere and, after a merge, several times.

    Raises:
        ValueError: says what a person has to mend.
    """
    rows: dict[int, tuple[str, str]] = {}
    for number, statement, cell in ((int(row[1]), row[2], row[3]) for row in ROW.finditer(page)):
        known, known_cell = rows.get(number, (statement, ""))
        if known != statement:
            raise ValueError(
                f"docs/claims.md has two rows of claim {number}. Delete the one that is wrong: "
                f'"{known}" or "{statement}".'
            )
        # A row with tests says that the claim once had some.
        has_tests = known_cell and not known_cell.startswith(REASONS)
        rows[number] = (statement, known_cell if has_tests or not cell else cell)
    if wrong := sorted(set(range(1, N_CLAIMS + 1)) ^ set(rows)):
        raise ValueError(f"docs/claims.md must have the claims 1 to {N_CLAIMS}: see {wrong}.")
    if unknown := sorted(set(tests) - set(rows)):
        raise ValueError(f"There is no claim {unknown[0]}, but {tests[unknown[0]][0]} cites it.")
    for number, (statement, cell) in rows.items():
        if number not in tests and not cell.startswith(REASONS):
            raise ValueError(
                f"Claim {number} ({statement}) had a test, {cell}, but now no test cites it. Cite "
                "it in the test that proves it, or write into docs/claims.md why none does: "
                f'"{REASONS[0]}…" or "{REASONS[1]}…".'
            )
    lines = (
        f"| {number} | {statement} | {'<br>'.join(tests.get(number, [cell]))} |\n"
        for number, (statement, cell) in sorted(rows.items())
    )
    return HEAD + "".join(lines)


def main() -> None:
    """Write the page anew; an error is told in one line."""
    try:
        text = renewed(PAGE.read_text(encoding="utf-8"), cited_tests())
    except ValueError as error:
        sys.exit(str(error))
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
