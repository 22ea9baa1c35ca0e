# ruff: noqa: T201 (a script speaks to its terminal)
"""Training speed of heed and of eole, the fastest peer: same model, same pieces, in turn.

    python benchmarks/train_speed.py --src train.en --tgt train.de --threads 1
    python benchmarks/train_speed.py --preset tiny --src train.en --tgt train.de --json

The first call installs the peer from PyPI into a virtualenv of its own (`--peers`, kept). Both
sides train the preset's network in float32 with about as many target tokens a batch, dropout 0.1
and label smoothing 0.1, on pieces of one vocabulary; heed with its own optimizer (Muon) and with
Adam, as the peer. eole runs as shipped, and with the memory settings that help it most.
Not here: how well the model learns (`time_to_quality.py`), or heed alone (`speed.py`).
"""

import argparse
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import speed

PEER = "eole==0.6.4"
NEEDS = ("aiohttp", "torch")
CONSTRAINTS = Path(__file__).resolve().parent.parent / "constraints.txt"
# Freed memory is kept for the next step instead of being given back to the system.
MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": str(8 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(16 << 30),
    "MALLOC_TOP_PAD_": str(256 << 20),
}
EQUAL = ("model.dropout=0.1", "model.norm=post")
CASES = ("heed", "heed, Adam", "eole", "eole, malloc settings")
REPORTED = re.compile(r"Step (\d+)/.*?(\d+)/(\d+) tok/s")
WARMUP, EVERY = 20, 10


def install_peer(folder: Path) -> Path:
    """The peer's own Python, installed at the first call."""
    python = folder / "eole" / "bin" / "python"
    if not (python.parent / "eole").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / "eole")], check=True)
        command = [str(python), "-m", "pip", "install", "-q", "-c", str(CONSTRAINTS)]
        subprocess.run([*command, PEER, *NEEDS], check=True, stdout=sys.stderr)
    return python


def write_pieces(settings: speed.Settings, folder: Path) -> None:
    """The corpus that heed has prepared, as the peer reads it: pieces with blanks between them."""
    from heed.data.prepare import prepare
    from heed.train.recipe.recipe import draft

    asked, corpus = speed.asked_of(settings)
    before = draft(asked)
    data = prepare(
        corpus,
        Path(settings["folder"]) / "data",
        config=before.data,
        tokenizer=before.tokenizer,
        seed=before.seed,
    )
    vocab = data.src_vocab
    plain = (id for id in range(vocab.size) if not vocab.is_control(id))
    words = vocab.pieces(plain)
    (folder / "vocab").write_text("".join(f"{word}\t1\n" for word in words), "utf-8")
    for side in ("src", "tgt"):
        rows = (getattr(data.train, side)(i) for i in range(len(data.train)))
        text = "".join(f"{' '.join(vocab.pieces(row))}\n" for row in rows)
        (folder / f"train.{side}").write_text(text, "utf-8")


def eole_config(settings: speed.Settings, folder: Path) -> str:
    """The peer's settings for the preset's network, as JSON, which is YAML too."""
    from heed.model.config import PRESETS

    sizes = PRESETS[settings["preset"]]
    files = {"path_src": str(folder / "train.src"), "path_tgt": str(folder / "train.tgt")}
    return json.dumps(
        {
            "src_vocab": str(folder / "vocab"),
            "tgt_vocab": str(folder / "vocab"),
            "share_vocab": True,
            "overwrite": True,
            "data": {"corpus_1": files},
            "report_every": EVERY,
            "training": {
                "model_path": str(folder / "model"),
                "world_size": 1,
                "gpu_ranks": [],
                "num_workers": 0,
                "batch_type": "tokens",
                "batch_size": settings["batch_tokens"],
                "bucket_size": 30_000,
                "accum_count": [1],
                "normalization": "tokens",
                "compute_dtype": "fp32",
                "train_steps": WARMUP + settings["steps"],
                "save_checkpoint_steps": 1_000_000,
                "valid_steps": 1_000_000,
                "optim": "adam",
                "adam_beta2": 0.98,
                "learning_rate": 0.5,
                "decay_method": "noam",
                "warmup_steps": 400,
                "label_smoothing": 0.1,
                "max_grad_norm": 1,
                "dropout": [0.1],
                "dropout_steps": [0],
                "attention_dropout": [0.0],
                "param_init_method": "xavier_uniform",
            },
            "model": {
                "architecture": "transformer",
                "encoder": {"encoder_type": "transformer", "layers": sizes["n_encoder_layers"]},
                "decoder": {"decoder_type": "transformer", "layers": sizes["n_decoder_layers"]},
                "heads": sizes["n_heads"],
                "hidden_size": sizes["d_model"],
                "transformer_ff": sizes["d_ff"],
                "share_embeddings": True,
                "share_decoder_embeddings": True,
                "embeddings": {
                    "word_vec_size": sizes["d_model"],
                    "position_encoding_type": "SinusoidalInterleaved",
                },
            },
        }
    )


def measure_eole(settings: speed.Settings, python: Path, *, has_malloc: bool) -> speed.Numbers:
    """Train the peer for some steps; its own log gives the rate, the system its memory."""
    folder = Path(settings["folder"]) / "eole"
    config = folder / "config.yaml"
    config.write_text(eole_config(settings, folder), "utf-8")
    threads = {"OMP_NUM_THREADS": str(settings["threads"]), "CUDA_VISIBLE_DEVICES": ""}
    environment = {**os.environ, **threads, **(MALLOC if has_malloc else {})}
    command = [str(python.parent / "eole"), "train", "-config", str(config)]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
        log.seek(0)
        said = log.read()
    rates = [int(tgt) for step, _, tgt in REPORTED.findall(said) if int(step) > WARMUP]
    if status or not rates:
        sys.exit(f"eole failed:\n{said[-2000:]}")
    # Each rate is that of as many steps, so the mean over time is the harmonic one.
    return {
        "tgt_tokens_per_s": statistics.harmonic_mean(rates),
        "memory_mb": usage.ru_maxrss * 1024 / 1e6,
    }


def measure_heed(settings: speed.Settings, *overrides: str) -> speed.Numbers:
    """A real heed run of as many steps."""
    asked = [*overrides, *settings["overrides"]]
    found = speed.in_own_process("train", {**settings, "overrides": asked, "warmup": WARMUP})
    return {key: found[key] for key in ("tgt_tokens_per_s", "peak_share", "pad_share", "memory_mb")}


def table(results: dict[str, list[speed.Numbers]]) -> str:
    """Markdown: a row for each side; the ratio is to the peer as shipped, turn by turn."""
    rows = [
        "| | target tokens/s | ratio | of the GEMM peak | memory, MB |",
        "|---|--:|--:|--:|--:|",
    ]
    peer = [run["tgt_tokens_per_s"] for run in results["eole"]]
    for case, runs in results.items():
        rates = [run["tgt_tokens_per_s"] for run in runs]
        ratios = [ours / theirs for ours, theirs in zip(rates, peer, strict=True)]
        shares = [run["peak_share"] for run in runs if "peak_share" in run]
        share = f"{statistics.median(shares):.0%}" if shares else ""
        memory = statistics.median(run["memory_mb"] for run in runs)
        rows.append(
            f"| {case} | {statistics.median(rates):,.0f} | {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f} – {max(ratios):.2f}) | {share} | {memory:,.0f} |"
        )
    return "\n".join(rows)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    whole = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    whole.add_argument("--src", required=True, metavar="FILE")
    whole.add_argument("--tgt", required=True, metavar="FILE")
    whole.add_argument("--preset", default="small", help="tiny or small")
    whole.add_argument("--batch-tokens", type=int, default=2048, metavar="N")
    whole.add_argument("--steps", type=int, default=60, metavar="N")
    whole.add_argument("--threads", type=int, default=1)
    whole.add_argument("--repeat", type=int, default=3)
    whole.add_argument("--peers", type=Path, default=Path("peers"), help="where they are installed")
    whole.add_argument("--json", action="store_true", help="every single number, as JSON")
    return whole


def main(arguments: list[str]) -> None:
    """Install, prepare, measure in turn, print."""
    settings: speed.Settings = vars(parser().parse_args(arguments))
    python = install_peer(settings["peers"].absolute())
    del settings["peers"]
    settings["overrides"] = [*EQUAL, f"training.batch_tokens={settings['batch_tokens']}"]
    results: dict[str, list[speed.Numbers]] = {case: [] for case in CASES}
    with tempfile.TemporaryDirectory(prefix="heed-speed-") as folder:
        settings["folder"] = folder
        (Path(folder) / "eole").mkdir()
        write_pieces(settings, Path(folder) / "eole")
        for turn, case in itertools.product(range(settings["repeat"]), CASES):
            print(f"{case}: {turn + 1} of {settings['repeat']}", file=sys.stderr)
            if case.startswith("heed"):
                kind = "adam" if case.endswith("Adam") else "muon"
                found = measure_heed(settings, f"training.optimizer={kind}")
            else:
                found = measure_eole(settings, python, has_malloc=case != "eole")
            results[case].append(found)
    print(json.dumps(results, indent=2) if settings["json"] else table(results))


if __name__ == "__main__":
    main(sys.argv[1:])
