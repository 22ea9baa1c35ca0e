# ruff: noqa: T201 (a script speaks to whoever started it)
"""The systems that `translate_speed.py` compares, each in a process of its own.

    python benchmarks/translators.py make FOLDER base
    PEER/bin/python benchmarks/translators.py export FOLDER CTranslate2
    PEER/bin/python benchmarks/translators.py run FOLDER "CTranslate2 int8" 1

`make` writes one random Transformer as heed's files, `export` as those of a peer; `run` loads such
files and then times what it reads on standard input: a line of JSON for each measurement. All
systems get the same ids and write exactly as many tokens. Pre-norm, because eole has no other
decoder. Not here: how the weights become a peer's (`exports.py`), tables and turns.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import exports

N_TOKENS = 24
"""Length of every source and of every translation."""

Translate = Callable[[NDArray[np.int64], int], list[list[int]]]
"""`(src (n_sources, src_len), beam_size) -> target ids of each source`."""

FLOATS, INTS = "model.safetensors", "model.int8.safetensors"
LAYER_GAIN = 12.0
LOUDER = ("project_out.weight", "contract.weight")

SIZES = {
    "small": {"vocab_size": 8000, "d_model": 256, "n_heads": 4, "d_ff": 1024, "n_layers": 3},
    "base": {"vocab_size": 32000, "d_model": 512, "n_heads": 8, "d_ff": 2048, "n_layers": 6},
}


def shape(size: str) -> dict[str, Any]:
    """The fields of heed's `ModelConfig`."""
    sizes = SIZES[size]
    n_layers, vocab_size = sizes["n_layers"], sizes["vocab_size"]
    return {
        "src_vocab_size": vocab_size,
        "tgt_vocab_size": vocab_size,
        "d_model": sizes["d_model"],
        "n_heads": sizes["n_heads"],
        "d_ff": sizes["d_ff"],
        "n_encoder_layers": n_layers,
        "n_decoder_layers": n_layers,
        "norm": "pre",
        "positions": "sinusoidal_halves",
        "norm_eps": 1e-5,
    }


def make(folder: Path, size: str) -> None:
    """Write the weights, as float32 and as heed rounds them."""
    import torch
    from safetensors.numpy import save_file

    from heed.engine.network import Network
    from heed.engine.packed import to_arrays
    from heed.model.build import build_model
    from heed.model.config import ModelConfig

    torch.manual_seed(1)
    config = ModelConfig(**shape(size))
    weights = {
        # With layers as faint as when training starts, each token would be the one before.
        name: (tensor * (LAYER_GAIN if name.endswith(LOUDER) else 1)).numpy()
        for name, tensor in build_model(config).state_dict().items()
    }
    save_file({name: weight.copy() for name, weight in weights.items()}, folder / FLOATS)
    save_file(to_arrays(Network.of(config, weights, is_quantized=True)), folder / INTS)
    (folder / "config.json").write_text(json.dumps(shape(size)))


def read_config(folder: Path) -> exports.Config:
    """The shape."""
    return dict(json.loads((folder / "config.json").read_text()))


def read_weights(folder: Path) -> exports.Weights:
    """heed's weights."""
    from safetensors.numpy import load_file

    return load_file(folder / FLOATS)


def open_heed(folder: Path, threads: int, *, is_quantized: bool) -> Translate:
    """heed's engine under heed's own search."""
    from safetensors.numpy import load_file

    from heed.engine.network import Network
    from heed.engine.packed import from_arrays
    from heed.engine.runtime import Engine
    from heed.model.config import ModelConfig

    config = ModelConfig(**read_config(folder))
    if is_quantized:
        network = from_arrays(config, load_file(folder / INTS), folder / INTS)
    else:
        network = Network.of(config, read_weights(folder))
    engine = Engine(network, threads=threads, kernels=os.environ.get("HEED_KERNELS", ""))
    return _search(config, engine)


def open_heed_in_torch(folder: Path, threads: int) -> Translate:
    """heed's torch model in bfloat16 under the same search, on a GPU if there is one."""
    import torch

    from heed.machine.device import choose_device, prepare_gpu
    from heed.machine.threads import set_threads
    from heed.model.config import ModelConfig
    from heed.model.decodable import TorchDecodable

    prepare_gpu()
    set_threads(threads)
    config = ModelConfig(**read_config(folder))
    weights = read_weights(folder)
    device = choose_device()
    return _search(config, TorchDecodable.of(config, weights, device=device, dtype=torch.bfloat16))


def _search(config: Any, model: Any) -> Translate:
    from heed.decode.options import DecodeOptions
    from heed.decode.search import decode

    def translate(src: NDArray[np.int64], beam_size: int) -> list[list[int]]:
        options = DecodeOptions(beam_size=beam_size, max_length=N_TOKENS, suppress=(config.eos_id,))
        found = decode(
            model,
            src,
            options,
            bos_id=config.bos_id,
            eos_id=config.eos_id,
            pad_id=config.pad_id,
        )
        return [ranked[0].ids for ranked in found]

    return translate


def export_ctranslate2(folder: Path) -> None:
    """CTranslate2's own description of a model."""
    target = folder / "ctranslate2"
    target.mkdir()
    exports.ctranslate2_spec(read_config(folder), read_weights(folder)).save(str(target))


def open_ctranslate2(folder: Path, threads: int, *, kind: str) -> Translate:
    """CTranslate2, which rounds to int8 as it loads."""
    import ctranslate2

    translator = ctranslate2.Translator(
        str(folder / "ctranslate2"),
        device="cpu",
        compute_type=kind,
        inter_threads=1,
        intra_threads=threads,
    )
    tokens = exports.vocabulary(read_config(folder))
    ids = {token: number for number, token in enumerate(tokens)}

    def translate(src: NDArray[np.int64], beam_size: int) -> list[list[int]]:
        found = translator.translate_batch(
            [[tokens[i] for i in row] for row in src.tolist()],
            beam_size=beam_size,
            max_batch_size=len(src),
            min_decoding_length=N_TOKENS,
            max_decoding_length=N_TOKENS,
        )
        return [[ids[token] for token in each.hypotheses[0]] for each in found]

    return translate


def export_transformers(folder: Path) -> None:
    """A folder of Hugging Face's Pegasus, which is its Marian with the norms before."""
    import torch
    from transformers import PegasusConfig, PegasusForConditionalGeneration

    config, weights = read_config(folder), read_weights(folder)
    model = PegasusForConditionalGeneration(PegasusConfig(**exports.pegasus_config(config)))
    tensors = exports.pegasus_weights(config, weights)
    found = model.load_state_dict(
        {name: torch.from_numpy(tensor) for name, tensor in tensors.items()}, strict=False
    )
    if found.unexpected_keys:
        raise SystemExit(f"Hugging Face has no {found.unexpected_keys}")
    model.save_pretrained(folder / "transformers")


def open_transformers(folder: Path, threads: int, *, in_bfloat16: bool = False) -> Translate:
    """Hugging Face's `generate`; in bfloat16 on a GPU if there is one."""
    import torch
    from transformers import PegasusForConditionalGeneration

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    model: Any = PegasusForConditionalGeneration.from_pretrained(folder / "transformers")
    model.eval()
    if in_bfloat16:
        model = model.to("cuda" if torch.cuda.is_available() else "cpu", torch.bfloat16)

    def translate(src: NDArray[np.int64], beam_size: int) -> list[list[int]]:
        ids = torch.from_numpy(src).to(model.device)
        found = model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            num_beams=beam_size,
            do_sample=False,
            min_new_tokens=N_TOKENS,
            max_new_tokens=N_TOKENS,
        )
        return [row[1:] for row in found.tolist()]

    return translate


def export_eole(folder: Path) -> None:
    """A checkpoint of eole's."""
    from safetensors.numpy import save_file

    config, target = read_config(folder), folder / "eole"
    target.mkdir()
    save_file(exports.eole_weights(config, read_weights(folder)), target / "model.00.safetensors")
    (target / "config.json").write_text(json.dumps(exports.eole_config(config)))
    tokens = exports.vocabulary(config)
    vocab = {"src": tokens, "tgt": tokens, "decoder_start_token": "<s>"}
    (target / "vocab.json").write_text(json.dumps(vocab))


def open_eole(folder: Path, threads: int) -> Translate:
    """eole's own translator, given ids instead of a file; its int8 fails on a CPU in 0.6.4."""
    import logging

    import torch
    from eole.config.run import PredictConfig
    from eole.predict import build_predictor

    torch.set_num_threads(threads)
    config = PredictConfig(
        model_path=str(folder / "eole"),
        src="",
        gpu_ranks=[],
        min_length=N_TOKENS,
        max_length=N_TOKENS,
        fuse_kvq=True,
    )
    quiet = logging.getLogger("quiet")
    quiet.setLevel(logging.ERROR)
    translator = build_predictor(config, device_id=-1, logger=quiet)

    def translate(src: NDArray[np.int64], beam_size: int) -> list[list[int]]:
        translator.beam_size = beam_size
        # Greedy search is what it does when it samples from the best one.
        translator.top_k = 1 if beam_size == 1 else 0
        lengths = torch.full((len(src),), src.shape[1])
        batch = {"src": torch.from_numpy(src), "srclen": lengths}
        found = translator.predict_batch(batch, attn_debug=False)
        return [ranked[0].tolist() for ranked in found["predictions"]]

    return translate


EXPORTS = {
    "CTranslate2": export_ctranslate2,
    "Hugging Face": export_transformers,
    "eole": export_eole,
}

SYSTEMS: dict[str, Callable[[Path, int], Translate]] = {
    "heed int8": lambda folder, threads: open_heed(folder, threads, is_quantized=True),
    "heed float32": lambda folder, threads: open_heed(folder, threads, is_quantized=False),
    "CTranslate2 int8": lambda folder, threads: open_ctranslate2(folder, threads, kind="int8"),
    "CTranslate2 float32": lambda folder, threads: open_ctranslate2(
        folder, threads, kind="float32"
    ),
    "Hugging Face float32": open_transformers,
    "heed bfloat16": open_heed_in_torch,
    "Hugging Face bfloat16": lambda folder, threads: open_transformers(
        folder, threads, in_bfloat16=True
    ),
    "eole float32": open_eole,
}


def run(folder: Path, system: str, threads: int) -> None:
    """Answer measurements until standard input ends."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    translate = SYSTEMS[system](folder, threads)
    vocab_size = read_config(folder)["src_vocab_size"]

    def work(asked: dict[str, int]) -> list[list[int]]:
        random = np.random.default_rng(7)
        src = random.integers(4, vocab_size, (asked["batches"], asked["batch"], N_TOKENS))
        return [ids for batch in src for ids in translate(batch, asked["beam"])]

    serve(system, work, N_TOKENS)


def serve(system: str, work: Callable[[dict[str, int]], list[list[int]]], n_tokens: int) -> None:
    """Time `work` for each line of standard input; each list of ids must have `n_tokens`."""
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        cpu_s, wall_s = time.process_time(), time.perf_counter()
        found = work(asked)
        cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
        if any(len(ids) != n_tokens for ids in found):
            raise SystemExit(f"{system} wrote {sorted({len(ids) for ids in found})} tokens")
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
        answer = {
            "cpu_s": cpu_s,
            "wall_s": wall_s,
            "tokens": len(found) * n_tokens,
            "memory_mb": memory,
            "found": found[: asked["batch"]],
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]), sys.argv[3])
    elif sys.argv[1] == "export":
        EXPORTS[sys.argv[3]](Path(sys.argv[2]))
    else:
        run(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
