"""hatch_build.py: what happens where the engine cannot be compiled."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def build() -> Any:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hook(build: Any) -> tuple[Any, list[str]]:
    """The hook as hatchling would make it, and what it warns of."""
    warnings: list[str] = []
    made = build.EngineHook.__new__(build.EngineHook)
    app = type("App", (), {"display_warning": staticmethod(warnings.append)})
    # Both are properties of hatchling's class, where that is installed.
    build.EngineHook.app, build.EngineHook.target_name = app, "wheel"
    return made, warnings


def test_a_failing_compiler_is_quoted(
    build: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiler = tmp_path / "c++"
    compiler.write_text("#!/bin/sh\necho 'no such flag' >&2; exit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(RuntimeError, match="no such flag"):
        build.compile_engine(tmp_path / "lib.so")
    monkeypatch.setenv("CXX", str(tmp_path / "none"))
    with pytest.raises(RuntimeError, match="does not start"):
        build.compile_engine(tmp_path / "lib.so")
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match=r"there is no C\+\+ compiler"):
        build.compile_engine(tmp_path / "lib.so")
    assert not (tmp_path / "lib.so").exists()


@pytest.mark.parametrize(
    ("machine", "source", "flag"),
    [
        ("arm64", "dotprod.cpp", "-march=armv8.2-a+dotprod"),  # as macOS calls it
        ("aarch64", "dotprod.cpp", "-march=armv8.2-a+dotprod"),
        ("x86_64", "avx2.cpp", "-mavx2"),
    ],
)
def test_each_processor_gets_its_own_instructions(
    machine: str,
    source: str,
    flag: str,
    build: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    calls = tmp_path / "calls"
    compiler = tmp_path / "c++"
    compiler.write_text(f'#!/bin/sh\necho "$@" >> {calls}\nfor out; do :; done; touch "$out"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setattr(build.platform, "machine", lambda: machine)
    build.compile_engine(tmp_path / "lib.so")
    special = {line for line in calls.read_text().splitlines() if " -m" in line and " -c " in line}
    assert any(f"{flag} " in line and source in line for line in special)
    others = {"arm64": "-mavx", "aarch64": "-mavx", "x86_64": "-march=armv8"}[machine]
    assert not any(others in line for line in special)


def test_without_a_compiler_heed_is_installed_all_the_same(
    build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, warnings = hook(build)
    monkeypatch.setenv("CXX", "/none")
    data: dict[str, Any] = {"artifacts": [], "pure_python": True}
    made.initialize("standard", data)
    assert data == {"artifacts": [], "pure_python": True}
    assert "installed without its compiled engine" in warnings[0]
    monkeypatch.setenv("HEED_ENGINE", "1")
    with pytest.raises(RuntimeError, match="does not start"):
        made.initialize("standard", data)
    monkeypatch.setenv("HEED_ENGINE", "0")
    made.initialize("standard", data)
    assert len(warnings) == 1


def test_a_compiled_engine_makes_a_wheel_for_this_platform_and_any_python(
    build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, warnings = hook(build)
    monkeypatch.delenv("HEED_ENGINE", raising=False)
    monkeypatch.setattr(build, "compile_engine", lambda target: None)
    data: dict[str, Any] = {"artifacts": []}
    made.initialize("standard", data)
    assert data["artifacts"] == ["src/heed/engine/libheed.so"]
    assert data["tag"].startswith("py3-none-")
    assert not data["pure_python"]
    assert not warnings
