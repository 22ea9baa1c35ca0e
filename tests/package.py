"""Build heed as it is released, install it into an empty environment, and use it.

`make package` runs this. It is no test of pytest: it needs the network, for pip. The wheel is made
from the source archive, so that both are proven.
"""

import json
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

import heed

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden" / "0.1.0"
NEEDED = ("README.md", "LICENSE", "CHANGELOG.md", "constraints.txt", "Makefile", "mkdocs.yml")
"""What a source archive holds beside the code."""

USE = """
import sys
import heed

assert "torch" not in sys.modules
print(heed.__version__, heed.load(sys.argv[1])("zwei rot haus"), sep="\\n")
assert "torch" not in sys.modules
"""


def build(out: Path) -> tuple[Path, Path]:
    """The source archive, and the wheel made from it."""
    command = [sys.executable, "-m", "build", "--outdir", str(out), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (archive,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return archive, wheel


def check_contents(archive: Path, wheel: Path) -> None:
    """Both hold what they should, and no file of this checkout's own builds."""
    with tarfile.open(archive) as file:
        names = {name.split("/", 1)[-1] for name in file.getnames()}
    missing = [name for name in (*NEEDED, "engine/model.cpp") if name not in names]
    assert not missing, f"{archive.name} lacks {missing}"
    built = [name for name in names if name.endswith((".so", ".pyc"))]
    assert not built, f"{archive.name} holds {built}"
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
    missing = [name for name in ("heed/py.typed", "heed/engine/libheed.so") if name not in names]
    assert not missing, f"{wheel.name} lacks {missing}"
    outside = [name for name in names if not name.startswith(("heed/", "heed-"))]
    assert not outside, f"{wheel.name} holds {outside}"


def install(wheel: Path, folder: Path) -> Path:
    """A fresh environment with the wheel and the libraries that it asks for; its programs."""
    venv.create(folder, with_pip=True)
    programs = folder / "bin"
    pip = [str(programs / "python"), "-m", "pip", "install", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), str(wheel)], check=True)
    return programs


def use(programs: Path, folder: Path) -> None:
    """Translate with the models that heed 0.1.0 wrote, by the command and in Python."""

    def output(*command: str, text: str = "") -> str:
        program = str(programs / command[0])
        run = subprocess.run(
            [program, *command[1:]], input=text, capture_output=True, text=True, cwd=folder
        )
        assert run.returncode == 0, f"{command} failed: {run.stderr}"
        return run.stdout

    assert output("heed", "--version").split()[-1] == heed.__version__
    wanted = json.loads((GOLDEN / "translations.json").read_text(encoding="utf-8"))
    text = "".join(f"{line}\n" for line in wanted["texts"])
    for model in ("model", "int8"):
        options = ("--beam-size", "2", "--threads", "1")
        found = output("heed", "translate", "-m", str(GOLDEN / model), *options, text=text)
        assert found.splitlines() == [line["text"] for line in wanted[model]]
    found = output("python", "-c", USE, str(GOLDEN / "model"))
    assert found.split("\n")[:2] == [heed.__version__, wanted["model"][1]["text"]]


def main() -> None:
    """Build, look into the archives, install, use."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        archive, wheel = build(folder / "dist")
        check_contents(archive, wheel)
        use(install(wheel, folder / "venv"), folder)
        print(f"{archive.name} and {wheel.name} install, and translate as heed 0.1.0 did.")


if __name__ == "__main__":
    main()
