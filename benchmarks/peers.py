"""The systems that `time_to_quality.py` compares: how each is installed, taught and asked.

Each learns the same pairs, and the peers the same pieces and network: heed's `small`, or the one
that ends the case's name. What a case's recipe is and where it comes from stands beside it. Not
here: running and timing the commands (`time_to_quality.py`); speed alone (`train_speed.py`).
"""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import train_speed

CONSTRAINTS = train_speed.CONSTRAINTS
MARIAN_TRAINER = Path(__file__).resolve().parent / "marian_trainer.py"
PEER_PRESET = "small"
SAVE_EVERY_S = 20
"""About how often each system saves; which of these moments are kept is for the caller to say."""

Command = list[str | Path]


@dataclass(frozen=True, kw_only=True)
class Task:
    """One system's training, or what came of it.

    Attributes:
        corpus: absolute paths by name: `src`, `tgt`, `dev_src`, `dev_tgt`, `test_src`.
        data: the corpus in pieces, as `write_pieces` left it.
        run: a folder of its own; the model grows in `run/model`.
        python: the interpreter of its virtualenv.
        time_s: seconds it may train.
        seed: of weights and order.
        preset: the network by its name in heed; None: heed's own choice, a peer's `PEER_PRESET`.
        threads: CPU threads.
        beam_size: of its search.
    """

    corpus: dict[str, str]
    data: Path
    run: Path
    python: Path
    time_s: float
    seed: int
    preset: str | None
    threads: int
    beam_size: int

    @property
    def sizes(self) -> dict[str, int]:
        """The network of a peer."""
        from heed.model.config import PRESETS

        return PRESETS[self.preset or PEER_PRESET]

    @property
    def model(self) -> Path:
        """Where the training writes."""
        return self.run / "model"


@dataclass(frozen=True, kw_only=True)
class System:
    """A case of the comparison.

    Attributes:
        train: the command that trains until it is stopped; writes its own config first.
        translate: the command that translates the test set: task, model, file to write.
        saved: pattern in the model folder of the last file that a saved moment consists of.
        is_folder: the moment is the folder of that file, not the file alone.
        prints: it translates to standard output.
        packages: what pip installs; none for heed, which is here.
    """

    train: Callable[[Task], Command]
    translate: Callable[[Task, Path, Path], Command]
    saved: str
    is_folder: bool = True
    prints: bool = False
    packages: tuple[str, ...] = ()


def install(packages: Sequence[str], folder: Path) -> Path:
    """The Python of a system's own virtualenv, made at the first call; ours if it needs none."""
    if not packages:
        return Path(sys.executable)
    environment = folder / packages[0].partition("==")[0]
    python, ready = environment / "bin" / "python", environment / "ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        # Of our constraints only torch's: a peer's own pins may contradict the rest.
        torch = [line for line in CONSTRAINTS.read_text().splitlines() if line.startswith("torch=")]
        pinned = environment / "constraints.txt"
        pinned.write_text("\n".join(torch), "utf-8")
        pip = [str(python), "-m", "pip", "install", "-q", "-c", str(pinned)]
        subprocess.run([*pip, *packages], check=True, stdout=sys.stderr)
        ready.touch()
    return python


def write_pieces(corpus: dict[str, str], folder: Path) -> None:
    """Clean and cut the corpus as heed does by default, in the form that the peers read.

    Without slots: these stand for spans that a peer has to spell, and it needs pieces for them.
    """
    from heed.data.corpus import Corpus, DataConfig
    from heed.data.lines import read_lines
    from heed.data.prepare import prepare
    from heed.data.readers import ParallelFiles
    from heed.text.normalize import normalize
    from heed.text.vocab import TokenizerConfig

    def parts(prefix: str) -> tuple[ParallelFiles, ...]:
        return (ParallelFiles(files=(corpus[f"{prefix}src"], corpus[f"{prefix}tgt"])),)

    whole = Corpus(train=parts(""), dev=parts("dev_"))
    data = prepare(
        whole, folder / "heed", config=DataConfig(), tokenizer=TokenizerConfig(slots=False), seed=1
    )
    vocab = data.src_vocab

    def write(name: str, rows: Any) -> None:
        text = "".join(f"{' '.join(vocab.pieces(row))}\n" for row in rows)
        (folder / name).write_text(text, "utf-8")

    for side in ("src", "tgt"):
        write(f"train.{side}", (getattr(data.train, side)(i) for i in range(len(data.train))))
        write(f"dev.{side}", (vocab.encode(getattr(pair, side)) for pair in data.dev))
    write("test.src", (vocab.encode(normalize(line)) for line in read_lines(corpus["test_src"])))
    write("one.src", [data.train.src(0)])
    write("one.tgt", [data.train.tgt(0)])
    pieces = vocab.pieces(id for id in range(vocab.size) if not vocab.is_control(id))
    special = ["<unk>", "<pad>", "<s>", "</s>"]
    (folder / "vocab").write_text("".join(f"{piece}\t1\n" for piece in pieces), "utf-8")
    (folder / "vocab.txt").write_text("\n".join([*special, *pieces]) + "\n", "utf-8")
    (folder / "vocab.spm").write_bytes(vocab.to_bytes())


def text_of(pieces: list[str], data: Path) -> list[str]:
    """What a peer's lines of pieces say."""
    import sentencepiece

    vocab = sentencepiece.SentencePieceProcessor(model_file=str(data / "vocab.spm"))
    return [vocab.decode(line.split(" ")) for line in pieces]


def write_json(path: Path, values: dict[str, Any]) -> Path:
    """Write a config: JSON is YAML, too, but for numbers such as 1e-08."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values, indent=1), "utf-8")
    return path


def save_every(tokens_per_s: float, batch_tokens: int) -> int:
    """Steps that take some `SAVE_EVERY_S` seconds."""
    return max(1, round(SAVE_EVERY_S * tokens_per_s / batch_tokens))


# ---- heed: the files, the time, and nothing else that changes what is learned


def train_heed(task: Task) -> Command:
    """Its schedule ends with the time given, so each time given is a run of its own."""
    names = {"src": "--src", "tgt": "--tgt", "dev_src": "--dev-src", "dev_tgt": "--dev-tgt"}
    files = [word for name, flag in names.items() for word in (flag, task.corpus[name])]
    run: Command = ["--out", task.model, "--time", f"{task.time_s:g}s", "--seed", str(task.seed)]
    fixed = ["--threads", str(task.threads), "--device", "cpu", "-q"]
    saving = f"training.checkpoint_every_s={SAVE_EVERY_S}"
    network = ["--preset", task.preset] if task.preset else []
    return [task.python, "-m", "heed", "train", *files, *run, *fixed, saving, *network]


def translate_heed(task: Task, model: Path, output: Path) -> Command:
    """The search that heed has put into the model, but for the beam."""
    files: Command = ["-m", model, "-i", task.corpus["test_src"], "-o", output]
    search = ["--beam", str(task.beam_size), "--threads", str(task.threads), "-q"]
    return [task.python, "-m", "heed", "translate", *files, *search]


# ---- eole


def train_eole(task: Task, **recipe: Any) -> Command:
    """Adam, `noam`, warm-up, smoothing and dropout as in `recipes/wmt17` of its repository.

    Its batches of 50,000 tokens are for millions of pairs; here they have 4,096.
    """
    batch_tokens = recipe.get("batch_size", 4096)
    settings = {"preset": task.preset or PEER_PRESET, "batch_tokens": batch_tokens, "steps": 10**9}
    config = json.loads(train_speed.eole_config(settings, task.data))
    config["seed"] = task.seed
    config["training"] |= {
        "model_path": str(task.model),
        "save_checkpoint_steps": save_every(1000, batch_tokens),
        "keep_checkpoint": 2,
        "adam_beta2": 0.998,
        "learning_rate": 2.0,
        "warmup_steps": 4000,
        "attention_dropout": [0.1],
        "max_grad_norm": 0.0,
        **recipe,
    }
    path = write_json(task.run / "config.yaml", config)
    return [task.python.parent / "eole", "train", "-config", path]


def train_tuned_eole(task: Task) -> Command:
    """For an hour on one core: small batches, a short warm-up, no statistics of attention."""
    return train_eole(
        task,
        batch_size=1024,
        learning_rate=0.5,
        warmup_steps=400,
        adam_beta2=0.98,
        attention_dropout=[0.0],
        max_grad_norm=1.0,
        log_attention_entropy=False,
    )


def translate_eole(task: Task, model: Path, output: Path) -> Command:
    """Its own defaults, but for the beam."""
    config = {
        "model_path": [str(model)],
        "src": str(task.data / "test.src"),
        "output": str(output),
        "beam_size": task.beam_size,
        "batch_size": 64,
        "world_size": 1,
        "gpu_ranks": [],
    }
    path = write_json(task.run / "translate.yaml", config)
    return [task.python.parent / "eole", "predict", "-config", path]


# ---- JoeyNMT


def joeynmt_network(sizes: dict[str, int]) -> dict[str, Any]:
    """Our sizes; pre-norm, as it was everywhere in JoeyNMT when the recipe was written."""
    stack = {
        "type": "transformer",
        "num_heads": sizes["n_heads"],
        "hidden_size": sizes["d_model"],
        "ff_size": sizes["d_ff"],
        "dropout": 0.1,
        "layer_norm": "pre",
        "embeddings": {"embedding_dim": sizes["d_model"], "scale": True, "dropout": 0.0},
    }
    return {
        "initializer": "xavier_uniform",
        "embed_initializer": "xavier_uniform",
        "bias_initializer": "zeros",
        "tied_embeddings": True,
        "tied_softmax": True,
        "encoder": {**stack, "num_layers": sizes["n_encoder_layers"]},
        "decoder": {**stack, "num_layers": sizes["n_decoder_layers"]},
    }


def joeynmt_config(task: Task) -> dict[str, Any]:
    """As `configs/transformer_iwslt14_deen_bpe.yaml`, which has our widths, with our layers.

    Its dropout of 0.3 is for runs of days; here it is 0.1. It saves only when it validates: on one
    sentence. Its plateau schedule would first wait five times 1,000 steps, and does not run with
    torch 2.13, so the rate is constant.
    """
    side: dict[str, Any] = {"level": "word", "lowercase": False, "max_length": -1}
    side["voc_file"] = str(task.data / "vocab.txt")
    return {
        "name": "race",
        "model_dir": str(task.model),
        "use_cuda": False,
        "random_seed": task.seed,
        "data": {
            "train": str(task.data / "train"),
            "dev": str(task.data / "one"),
            "dataset_type": "plain",
            "src": {"lang": "src", **side},
            "trg": {"lang": "tgt", **side},
        },
        "testing": {
            "beam_size": task.beam_size,
            "beam_alpha": 1.0,
            "batch_size": 64,
            "batch_type": "sentence",
            "max_output_length": 100,
            "eval_metrics": [],
        },
        "training": {
            "optimizer": "adam",
            "normalization": "tokens",
            "adam_betas": [0.9, 0.999],
            "scheduling": "exponential",
            "decrease_factor": 1.0,
            "learning_rate": 0.0003,
            "learning_rate_min": 0.0,
            "label_smoothing": 0.1,
            "batch_size": 4096,
            "batch_type": "token",
            "epochs": 10_000,
            "validation_freq": save_every(800, 4096),
            "logging_freq": 1,
            "keep_best_ckpts": -1,
            "early_stopping_metric": "loss",
            "overwrite": True,
            "print_valid_sents": [],
        },
        "model": joeynmt_network(task.sizes),
    }


def train_joeynmt(task: Task) -> Command:
    """Until it is stopped; no test at the end."""
    path = write_json(task.run / "config.yaml", joeynmt_config(task))
    return [task.python, "-m", "joeynmt", "train", path, "--skip-test"]


def translate_joeynmt(task: Task, model: Path, output: Path) -> Command:
    """From standard input to standard output: writing a file fails in this version."""
    config = joeynmt_config(task)
    config["testing"]["load_model"] = str(model)
    path = write_json(task.run / "translate.yaml", config)
    return [task.python, "-m", "joeynmt", "translate", path]


# ---- Hugging Face


def train_transformers(task: Task) -> Command:
    """`marian_trainer.py` says what it does."""
    config = {
        "sizes": task.sizes,
        "data": str(task.data),
        "model": str(task.model),
        "seed": task.seed,
        "threads": task.threads,
        "save_every_s": SAVE_EVERY_S,
    }
    path = write_json(task.run / "config.json", config)
    return [task.python, MARIAN_TRAINER, "train", path]


def translate_transformers(task: Task, model: Path, output: Path) -> Command:
    """`generate`, in batches of similar length."""
    beam = ("--beam", str(task.beam_size), "--threads", str(task.threads))
    return [task.python, MARIAN_TRAINER, "translate", model, task.data, output, *beam]


EOLE = (train_speed.PEER, "aiohttp")
JOEYNMT = ("joeynmt==2.3.0", "importlib_metadata", "sentencepiece==0.2.0", "setuptools<81")
TRANSFORMERS = ("transformers==5.23.0", "accelerate")

SYSTEMS = {
    "heed": System(
        train=train_heed, translate=translate_heed, saved="checkpoints/step-??????/manifest.json"
    ),
    "eole": System(
        train=train_eole, translate=translate_eole, saved="step_*/config.json", packages=EOLE
    ),
    "eole tuned": System(
        train=train_tuned_eole, translate=translate_eole, saved="step_*/config.json", packages=EOLE
    ),
    "JoeyNMT": System(
        train=train_joeynmt,
        translate=translate_joeynmt,
        saved="[0-9]*.ckpt",
        is_folder=False,
        prints=True,
        packages=JOEYNMT,
    ),
    "transformers": System(
        train=train_transformers,
        translate=translate_transformers,
        saved="checkpoint-*/trainer_state.json",
        packages=TRANSFORMERS,
    ),
}


def system_of(case: str) -> tuple[System, str | None]:
    """The system of a case such as `eole tuned tiny`, and the network if the name ends with one.

    Raises:
        KeyError: there is no such case.
    """
    from heed.model.config import PRESETS

    if case in SYSTEMS:
        return SYSTEMS[case], None
    name, _, preset = case.rpartition(" ")
    if preset not in PRESETS:
        raise KeyError(case)
    return SYSTEMS[name], preset
