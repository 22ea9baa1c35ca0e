# ruff: noqa: T201 (a script speaks to its terminal)
"""Speed of language models in heed and elsewhere: same weights, same prompts, in turn.

    python benchmarks/generate_speed.py --size small
    python benchmarks/generate_speed.py --size base --shapes 1x16,1x256 --json base.json

A shape is the batch and the tokens of each prompt; every row then gets 128 new tokens, greedily.
Tokens a second count the new ones, and the time includes the prompt. The first call installs the
peers from PyPI into virtualenvs of their own (`--peers`, kept); llama.cpp is compiled for this
machine, which takes minutes. Before anything is timed, heed's float32 logits are compared with
Hugging Face's. Not here: the systems (`generators.py`), how they take turns (`translate_speed.py`).
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import peers
import translate_speed

GENERATORS = Path(__file__).resolve().parent / "generators.py"
PACKAGES = {
    "heed": (),
    "CTranslate2": ("ctranslate2==4.8.5", "safetensors"),
    "llama.cpp": ("llama-cpp-python==0.3.16", "gguf", "safetensors"),
    "Hugging Face": peers.TRANSFORMERS,
}
SYSTEMS = (
    *("heed int8", "heed float32", "CTranslate2 int8", "CTranslate2 float32"),
    *("llama.cpp int8", "llama.cpp float32", "Hugging Face float32"),
)
PEERS = ("llama.cpp int8", "CTranslate2 int8", "Hugging Face float32")
ATOL = 1e-4
"""How far heed's log-probs may be from Hugging Face's in float32."""


def require_equal(folder: Path) -> float:
    """The largest difference between heed's log-probs and Hugging Face's at equal weights.

    Raises:
        SystemExit: it is more than `ATOL`.
    """
    import numpy as np
    import torch
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    import generators
    import translators
    from heed.engine.network import Network
    from heed.engine.runtime import Engine
    from heed.model.one_stack.config import DecoderConfig

    config, weights = translators.read_config(folder), translators.read_weights(folder)
    theirs: Any = GPTNeoXForCausalLM(GPTNeoXConfig(**generators.neox_config(config)))
    theirs.eval()
    arrays = generators.neox_weights(config, weights)
    theirs.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
    ours = Engine(Network.of(DecoderConfig(**config), weights))
    ids = np.random.default_rng(3).integers(4, config["src_vocab_size"], (2, 50))
    with torch.no_grad():
        wanted = theirs(torch.from_numpy(ids)).logits.log_softmax(dim=-1).flatten(0, 1).numpy()
    found = ours.teacher_forced(np.zeros((2, 0), np.int64), ids).all_log_probs()
    difference = float(np.abs(found - wanted).max())
    if difference > ATOL:
        sys.exit(f"heed's log-probs must be within {ATOL} of Hugging Face's: {difference:.1e}")
    return difference


def report(results: dict[str, Any]) -> str:
    """A table for each peer that was measured; later ones have its ratios only."""
    names = next(iter(results["rates"].values()))
    here = [peer for peer in PEERS if peer in names] or [translate_speed.EXACT]
    lines = translate_speed.table(results, here[0], "batch x prompt").splitlines()
    for peer in here[1:]:
        ratios = translate_speed.table(results, peer, "batch x prompt").splitlines()
        lines += [line for line in ratios if line.startswith("| heed") and f"/ {peer}" in line]
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    whole = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    whole.add_argument("--size", choices=("small", "base"), default="small")
    whole.add_argument("--systems", default=",".join(SYSTEMS))
    whole.add_argument("--shapes", default="1x16,1x256,32x16,32x256", help="batch x prompt, …")
    whole.add_argument("--threads", type=int, default=1)
    whole.add_argument("--repeat", type=int, default=3)
    whole.add_argument("--peers", type=Path, default=Path("peers"), help="where they are installed")
    whole.add_argument("--json", type=Path, metavar="FILE", help="write every single number there")
    return whole


def main(arguments: list[str]) -> None:
    """Measure, print, write."""
    settings = parser().parse_args(arguments)
    settings.shapes = settings.shapes.split(",")
    names = settings.systems.split(",")
    with tempfile.TemporaryDirectory(prefix="heed-generate-") as folder:
        systems = translate_speed.start(GENERATORS, PACKAGES, names, Path(folder), settings)
        difference = require_equal(Path(folder))
        print(f"heed's log-probs are within {difference:.1e} of Hugging Face's", file=sys.stderr)
        results = translate_speed.measure_all(settings, systems, ("batch", "prompt"))
        for system in systems:
            system.end()
    if settings.json:
        about = {"size": settings.size, "threads": settings.threads, "difference": difference}
        settings.json.write_text(json.dumps({**about, **results}, indent=2), "utf-8")
    print(report(results))


if __name__ == "__main__":
    main(sys.argv[1:])
