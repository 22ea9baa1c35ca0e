"""A file that a docstring or a comment names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "heed"
NAMED = re.compile(r"`((?:[\w.-]+/)*[\w.-]+\.(?:py|cpp|h|inc|md))`")
SOURCES = [
    path
    for folder, pattern in ((PACKAGE, "*.py"), (ROOT / "tests", "*.py"), (ROOT / "engine", "*"))
    for path in sorted(folder.rglob(pattern))
]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_files_exist(source: Path) -> None:
    """A name is read from the file's own folder, the room above it, the package or the root."""
    places = (source.parent, source.parent.parent, PACKAGE, ROOT, ROOT / "src")
    names = NAMED.findall(source.read_text(encoding="utf-8"))
    assert not [name for name in names if not any((place / name).exists() for place in places)]
