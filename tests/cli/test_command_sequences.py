"""Random sequences of commands over one folder that also holds a person's files.

After each command: only its own output has changed, no file of a person has, every model opens (or
says why, if a person wrote onto one of its files), and no error is one of heed itself.
"""

import io
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SEEDS = range(8)
N_COMMANDS = 30
TINY = (
    *("--threads", "1", "--vocab-size", "330", "model.d_model=16", "model.n_heads=2"),
    *("model.d_ff=16", "model.n_encoder_layers=1", "model.n_decoder_layers=1"),
    *("training.validation_sentences=2", "--max-steps", "1"),
)
MISTAKE = "internal error: "

MODELS = (
    *("run", "run", "model", "model", "small", "tiny", "link-run", "docs/to-model"),
    *("run/checkpoints/best", "docs", "link-docs", "text.txt", "nowhere"),
)
FOLDERS = (
    *("new-1", "new-2", "new-3/deep", "empty", ".", "..", "run", "model", "small", "docs", "proj"),
    *("corpus", "link-run", "link-docs", "link-small", "docs/to-model", "broken", "text.txt"),
    *("run/data", "run/checkpoints", "run/checkpoints/best", "run/new", "model/../small", "app"),
)
FILES = (
    *("text.en", "text.de", "text.txt", "again.txt", "link.txt", "docs/README.md", "proj/notes"),
    *("run/notes.txt", "run/README.md", "model/config.json", "model/model.safetensors"),
    *("docs/weights", "small/model.int8.safetensors", "corpus/x.en", "proj/data/pairs.tsv"),
)
OUTPUTS = (*FILES, *FILES, "new.txt", "docs/new.txt", "docs", "broken", "nowhere/x", "/dev/null")

Snapshot = dict[str, tuple[str, object]]


@dataclass
class Command:
    """One command line.

    Attributes:
        arguments: of `heed`.
        inputs: files and folders that it reads.
        outputs: files that it is told to write.
        out: the folder that it is told to write; "" = none.
        removed: the folder or link that it is told to remove; "" = none.
        stdin: the file behind standard input.
        stdout: the file behind standard output.
    """

    arguments: list[str]
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    out: str = ""
    removed: str = ""
    stdin: str = "/dev/null"
    stdout: str = "/dev/null"

    def __str__(self) -> str:
        return f"heed {' '.join(self.arguments)} < {self.stdin} > {self.stdout}"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


class World:
    """The folder, and what is known of it."""

    def __init__(self, folder: Path, run_command: Callable[[Command], tuple[int, str]]) -> None:
        self.folder = folder
        self.run_command = run_command
        self.owned = {self.real(name) for name in ("run", "model", "small", "home/models/tiny")}
        self.models = set(self.owned)
        self.snapshot = self.take()
        heed_made = set(self.snapshot)
        self.add_files_of_a_person()
        self.snapshot = self.take()
        self.foreign = set(self.snapshot) - heed_made

    def real(self, name: str) -> str:
        return os.path.realpath(self.folder / name)

    def add_files_of_a_person(self) -> None:
        for name in ("text.en", "text.de", "text.txt", "docs/README.md", "docs/thesis/1.txt"):
            write(self.folder / name, "The cat sees the dog.\nThe dog likes the cow.\n")
        for name in ("proj/notes", "run/notes.txt", "model/notes.txt", "run/data/mine.tsv"):
            write(self.folder / name, "mine\n")
        for name in ("docs/config.json", "docs/manifest.json", "app/manifest.json"):
            write(self.folder / name, '{"name": "mine"}\n')
        for name in ("", "run/", "run/data/", "run/checkpoints/", "proj/data/", "docs/"):
            write(self.folder / f"{name}foo.tmp-12345678", "mine\n")
        (self.folder / "run/checkpoints/bar.tmp-12345678").mkdir()
        write(self.folder / "run/data/pairs.tsv", "mine\tmy own\n")
        pairs = zip(*(read(self.folder / f"corpus/x.{lang}") for lang in ("en", "de")), strict=True)
        table = "".join(f"{src}\t{tgt}\n" for src, tgt in pairs)
        write(self.folder / "proj/data/pairs.tsv", table)
        write(self.folder / "run/mine/pairs.tsv", table)
        (self.folder / "empty").mkdir()
        for name, target in (
            ("link-run", "run"),
            ("link-docs", "docs"),
            ("link-small", "small"),
            ("link.txt", "text.en"),
            ("broken", "gone"),
            ("docs/to-model", "../model"),
            ("run/to-docs", "../docs"),
            ("home/models/link", "../../model"),
        ):
            (self.folder / name).symlink_to(target)
        (self.folder / "again.txt").hardlink_to(self.folder / "text.en")
        (self.folder / "docs/weights").hardlink_to(self.folder / "model/model.safetensors")

    def take(self) -> Snapshot:
        return dict(entries(str(self.folder)))

    def identity(self, name: str) -> tuple[int, int] | None:
        """Which file it is, under any name; None for what is no file."""
        path = self.folder / name
        if not path.is_file():
            return None
        status = path.stat()
        return status.st_dev, status.st_ino

    def read_by(self, command: Command) -> set[tuple[int, int] | None]:
        """The identities of all files that a command reads."""
        found = {self.identity(name) for name in command.inputs}
        for name in command.inputs:
            folder = self.folder / name
            if folder.is_dir():
                found |= {self.identity(f"{name}/{inner.name}") for inner in folder.iterdir()}
        return found - {None}

    def play(self, command: Command) -> int:
        """Run a command and compare what changed with what may change; its exit code."""
        before, read_before = self.snapshot, self.read_by(command)
        outputs = [name for name in command.outputs if self.identity(name) not in read_before]
        allowed = {self.real(name) for name in outputs}
        written = {self.identity(name) for name in outputs} - {None}
        allowed |= {path for path in before if self.identity(path) in written}
        if command.removed:
            removed = str(self.folder / command.removed)
            allowed |= {path for path in before if path == removed or is_below(path, removed)}
        root = self.real(command.out) if command.out else ""
        if root not in self.owned and not is_new_or_empty(root):
            root = ""
        code, said = self.run_command(command)
        self.snapshot = after = self.take()
        story = f"{command}\nexit {code}\n{said}"
        assert MISTAKE not in said, story
        assert "Traceback" not in said, story
        assert code in (0, 1, 2), story
        changed = {
            path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
        }
        for path in sorted(changed):
            is_own = root and (path == root or is_below(path, root)) and path not in self.foreign
            is_parent_of_new = path not in before and is_below(root, path)
            assert path in allowed or is_own or is_parent_of_new, f"{path} has changed\n{story}"
        self.foreign |= allowed & changed
        if os.path.isdir(root):
            self.owned.add(root)
            if code == 0:
                self.models.add(root)
        # Only where a person wrote onto a file of a model, or removed it, may it be damaged.
        self.models -= {m for m in self.models for path in allowed & changed if is_below(path, m)}
        self.require_open(
            {m for m in self.owned if any(is_below(path, m) for path in changed)}, story
        )
        return code

    def require_open(self, folders: Iterable[str], story: str) -> None:
        for folder in sorted(folders):
            code, said = self.run_command(Command(["translate", "-m", folder, "The cat."]))
            assert code == 0 or folder not in self.models, f"{folder}: {said}\n{story}"
            assert code in (0, 1) and MISTAKE not in said, f"{folder}: {said}\n{story}"


def read(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def is_below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")


def is_new_or_empty(path: str) -> bool:
    return not os.path.lexists(path) or (os.path.isdir(path) and not os.listdir(path))


def entries(folder: str) -> Iterator[tuple[str, tuple[str, object]]]:
    """Path → what it is: the bytes of a file, the target of a link."""
    for entry in os.scandir(folder):
        if entry.is_symlink():
            yield entry.path, ("link", os.readlink(entry.path))
        elif entry.is_dir():
            yield entry.path, ("folder", None)
            yield from entries(entry.path)
        else:
            yield entry.path, ("file", Path(entry.path).read_bytes())


class Person:
    """Types commands at random."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def model(self) -> str:
        return self.random.choice(MODELS)

    def sometimes(self, *arguments: str) -> list[str]:
        return list(arguments) if self.random.random() < 0.5 else []

    def types(self) -> Command:
        makers = {
            self.quantize: 8,
            self.train: 3,
            self.distill: 1,
            self.translate: 6,
            self.score: 3,
            self.evaluate: 3,
            self.spm: 3,
            self.models: 2,
        }
        return self.random.choices(list(makers), weights=list(makers.values()))[0]()

    def quantize(self) -> Command:
        model = self.model()
        arguments = ["quantize", model, "--threads", "1", *self.sometimes("--force")]
        if model in ("run", "link-run") and self.random.random() < 0.2:
            arguments += ["--shortlist", "--max-changed", "1"]
        if self.random.random() < 0.25:
            return Command(arguments, out=installed(model))
        out = self.random.choice(FOLDERS)
        return Command([*arguments, "--out", out], inputs=[installed(model)], out=out)

    def train(self) -> Command:
        corpus = self.random.choice(
            [
                ["--src", "corpus/x.en", "--tgt", "corpus/x.de"],
                ["proj/data/pairs.tsv"],
                ["run/mine/pairs.tsv"],
                ["run/data/pairs.tsv"],
                ["run/data/dev.tsv"],
            ]
        )
        out = self.random.choice(FOLDERS)
        return Command(["train", *corpus, "--out", out, *TINY], out=out)

    def distill(self) -> Command:
        out = self.random.choice(FOLDERS)
        settings = [text for text in TINY if text not in ("--vocab-size", "330")]
        return Command(["distill", self.model(), "--out", out, *settings], out=out)

    def translate(self) -> Command:
        model, source = self.model(), self.random.choice(FILES)
        arguments = ["translate", "-m", model, "--encoding-errors", "replace", "--max-length", "4"]
        inputs = [installed(model), source]
        if self.random.random() < 0.3:
            prefix = self.random.choice(FILES)
            arguments += ["--prefix", prefix]
            inputs.append(prefix)
        if self.random.random() < 0.5:
            arguments += ["-i", source]
            source = "/dev/null"
        output = self.random.choice(OUTPUTS)
        if self.random.random() < 0.2:
            return Command(arguments, inputs, [output], stdin=source, stdout=output)
        return Command([*arguments, "-o", output], inputs, [output], stdin=source)

    def score(self) -> Command:
        model, src, tgt = self.model(), self.random.choice(FILES), self.random.choice(FILES)
        output = self.random.choice(OUTPUTS)
        arguments = ["score", "-m", model, "--src", src, "--tgt", tgt, "-o", output]
        return Command(arguments, [installed(model), src, tgt], [output])

    def evaluate(self) -> Command:
        model, src, ref = self.model(), self.random.choice(FILES[:5]), self.random.choice(FILES[:5])
        output = self.random.choice(OUTPUTS)
        arguments = ["evaluate", "-m", model, "--src", src, "--ref", ref, "--save", output]
        arguments += ["--metrics", "chrf", "--resamples", "2"]
        return Command(arguments, [installed(model), src, ref], [output])

    def spm(self) -> Command:
        if self.random.random() < 0.4:
            text = self.random.choice(FILES[:6])
            prefix = self.random.choice(["spm-1", "docs/x", "text.en", "proj/data/pairs"])
            arguments = [f"--input={text}", f"--model_prefix={prefix}", "--model_type=char"]
            arguments += ["--vocab_size=40", "--hard_vocab_limit=false", "--minloglevel=2"]
            outputs = [f"{prefix}.model", f"{prefix}.vocab"]
            return Command(["spm-train", *arguments], [text], outputs)
        kind = self.random.choice(["spm-encode", "spm-decode"])
        source, output = self.random.choice(FILES), self.random.choice(OUTPUTS)
        pieces = self.random.choice(["run/spm.model", "docs/x.model", "text.txt"])
        arguments = [kind, f"--model={pieces}", "-i", source, "-o", output]
        return Command(arguments, [pieces, source], [output])

    def models(self) -> Command:
        if self.random.random() < 0.7:
            return Command(["models", *self.sometimes("show", self.model())])
        name = self.random.choice(["tiny", "link", "run", "docs", "../../docs"])
        is_known = name in ("tiny", "link")
        removed = f"home/models/{name}" if is_known else ""
        return Command(["models", "rm", "--yes", name], removed=removed)


def installed(model: str) -> str:
    return "home/models/tiny" if model == "tiny" else model


@pytest.fixture(scope="module")
def run_command(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[int, str]]:
    """`run_command(folder, command)`: its exit code and what it said, from a fork of this one."""
    import sacrebleu  # noqa: F401 - loaded here once, not in each fork

    import heed.compress.distill
    import heed.train.run.run
    import heed.translate.translator  # noqa: F401
    from heed.cli.main import run

    log = tmp_path_factory.mktemp("log") / "said"

    def child(folder: Path, command: Command) -> int:
        os.chdir(folder)
        os.environ["HEED_HOME"] = str(folder / "home")
        os.environ.pop("HEED_MODEL", None)
        said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            streams = os.open(command.stdin, os.O_RDONLY), os.open(command.stdout, os.O_WRONLY)
        except OSError:
            return 1  # the shell says so
        for number, descriptor in enumerate((*streams, said)):
            os.dup2(descriptor, number)
        sys.stdin, sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.FileIO(number, mode, closefd=False))
            for number, mode in enumerate("rww")
        )
        try:
            return run(command.arguments)
        except SystemExit as end:
            return int(str(end.code))
        finally:
            sys.stderr.flush()

    def start(folder: Path, command: Command) -> tuple[int, str]:
        pid = os.fork()
        if pid == 0:
            code = 99
            try:
                code = child(folder, command)
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return code, log.read_text(encoding="utf-8", errors="replace")

    return start


@pytest.fixture(scope="module")
def made_by_heed(
    model: str,
    tmp_path_factory: pytest.TempPathFactory,
    run_command: Callable[..., tuple[int, str]],
) -> Path:
    """A model, a run and a small model, and a corpus."""
    folder = tmp_path_factory.mktemp("made")
    animals, verbs = ["cat", "dog", "bird", "horse", "cow"], ["sees", "likes", "hears"]
    pairs = [
        (f"The {a} {verb} the {b}.", f"{verb[::-1]} {a[::-1]} {b[::-1]}!")
        for a in animals
        for b in animals
        for verb in verbs
    ]
    for side, lang in enumerate(("en", "de")):
        write(folder / f"corpus/x.{lang}", "".join(f"{pair[side]}\n" for pair in pairs))
    shutil.copytree(model, folder / "model")
    shutil.copytree(model, folder / "home/models/tiny")
    train = ["train", "--src", "corpus/x.en", "--tgt", "corpus/x.de", "--out", "run", *TINY]
    for arguments in (train, ["quantize", "run", "--out", "small"]):
        code, said = run_command(folder, Command(arguments))
        assert code == 0, said
    return folder


@pytest.mark.reliability
@pytest.mark.parametrize("seed", SEEDS)
def test_no_sequence_of_commands_changes_a_file_of_a_person(
    seed: int, made_by_heed: Path, run_command: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    folder = tmp_path / "world" / "here"
    shutil.copytree(made_by_heed, folder)
    world = World(folder, lambda command: run_command(folder, command))
    person = Person(seed)
    codes = [world.play(person.types()) for _ in range(N_COMMANDS)]
    world.require_open(world.models, "at the end")
    assert codes.count(0) > N_COMMANDS / 10, "most commands are to be refused, but not all"
