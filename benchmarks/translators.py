# ruff: noqa: T201 (a script speaks to whoever started it)
"""The systems that `translate_speed.py` compares, each in a process of its own.

    python benchmarks/translators.py make FOLDER base
    PEER/bin/python benchmarks/translators.py run FOLDER "CTranslate2 int8" 1

`make` writes one random post-norm Transformer as heed's files; `run` makes a system of these
weights ready and then times what it reads on standard input: a line of JSON for each measurement.
All systems get the same ids and write exactly as many tokens. Not here: tables and turns.
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

N_TOKENS = 24
"""Length of every source and of every translation."""

Weights = dict[str, NDArray[np.float32]]
Translate = Callable[[NDArray[np.int64], int], list[list[int]]]
"""`(src (n_sources, src_len), beam_size) -> target ids of each source`."""

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
        "positions": "sinusoidal_halves",
        "norm_eps": 1e-5,
    }


def make(folder: Path, size: str) -> None:
    """Write the weights."""
    import torch
    from safetensors.numpy import save_file

    from heed.model.build import build_model
    from heed.model.config import ModelConfig

    torch.manual_seed(1)
    model = build_model(ModelConfig(**shape(size)))
    save_file(
        {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()},
        folder / "model.safetensors",
    )
    (folder / "config.json").write_text(json.dumps(shape(size)))


def read(folder: Path) -> tuple[dict[str, Any], Weights]:
    """Shape and weights."""
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text())
    return config, load_file(folder / "model.safetensors")


def open_heed(folder: Path, threads: int, *, is_quantized: bool, kernels: str = "") -> Translate:
    """heed's engine under heed's own search."""
    from heed.decode.options import DecodeOptions
    from heed.decode.search import decode
    from heed.engine.network import Network
    from heed.engine.runtime import Engine
    from heed.model.config import ModelConfig

    values, weights = read(folder)
    config = ModelConfig(**values)
    network = Network.of(config, weights, is_quantized=is_quantized)
    engine = Engine(network, threads=threads, kernels=kernels)

    def translate(src: NDArray[np.int64], beam_size: int) -> list[list[int]]:
        options = DecodeOptions(beam_size=beam_size, max_length=N_TOKENS, suppress=(config.eos_id,))
        found = decode(
            engine,
            src,
            options,
            bos_id=config.bos_id,
            eos_id=config.eos_id,
            pad_id=config.pad_id,
        )
        return [ranked[0].ids for ranked in found]

    return translate


def open_ctranslate2(folder: Path, threads: int, *, kind: str) -> Translate:
    """CTranslate2 with our weights put into its own description of a model."""
    import ctranslate2

    target = folder / "ctranslate2"
    if not target.exists():
        config, weights = read(folder)
        spec = ctranslate2_spec(config, weights)
        target.mkdir()
        spec.save(str(target))
    translator = ctranslate2.Translator(
        str(target), device="cpu", compute_type=kind, inter_threads=1, intra_threads=threads
    )

    tokens = vocabulary(read(folder)[0])
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


def ctranslate2_spec(config: dict[str, Any], weights: Weights) -> Any:
    """The model in CTranslate2's terms."""
    from ctranslate2.specs import common_spec, transformer_spec

    layers = (config["n_encoder_layers"], config["n_decoder_layers"])
    spec = transformer_spec.TransformerSpec.from_config(
        layers, config["n_heads"], pre_norm=False, activation=common_spec.Activation.RELU
    )
    width = config["d_model"]

    def linear(to: Any, name: str, rows: slice = slice(None)) -> None:
        to.weight = np.ascontiguousarray(weights[f"{name}.weight"][rows])
        to.bias = np.ascontiguousarray(weights[f"{name}.bias"][rows])

    def norm(to: Any, name: str) -> None:
        to.gamma, to.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]

    for side, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        embeddings = stack.embeddings[0] if side == "encoder" else stack.embeddings
        embeddings.weight = weights["embed_src.tokens.weight"]
        stack.scale_embeddings = True
        for number, layer in enumerate(stack.layer):
            name = f"{side}.{number}"
            linear(layer.self_attention.linear[0], f"{name}.self_attention.project_in")
            linear(layer.self_attention.linear[1], f"{name}.self_attention.project_out")
            norm(layer.self_attention.layer_norm, f"{name}.around_self.norm")
            if side == "decoder":
                cross = f"{name}.cross_attention"
                linear(layer.attention.linear[0], f"{cross}.project_in", slice(width))
                linear(layer.attention.linear[1], f"{cross}.project_in", slice(width, None))
                linear(layer.attention.linear[2], f"{cross}.project_out")
                norm(layer.attention.layer_norm, f"{name}.around_cross.norm")
            linear(layer.ffn.linear_0, f"{name}.feed_forward.expand")
            linear(layer.ffn.linear_1, f"{name}.feed_forward.contract")
            norm(layer.ffn.layer_norm, f"{name}.around_feed_forward.norm")
    spec.decoder.projection.weight = weights["output.weight"]
    spec.decoder.projection.bias = np.zeros(len(weights["output.weight"]), np.float32)
    spec.register_source_vocabulary(vocabulary(config))
    spec.register_target_vocabulary(vocabulary(config))
    spec.config.add_source_eos = False
    spec.validate()
    spec.optimize(quantization="float32")
    return spec


def vocabulary(config: dict[str, Any]) -> list[str]:
    """A token for each id."""
    return [
        "<blank>",
        "<unk>",
        "<s>",
        "</s>",
        *(f"t{i}" for i in range(4, config["src_vocab_size"])),
    ]


def open_transformers(folder: Path, threads: int) -> Translate:
    """Hugging Face's Marian with our weights."""
    import torch
    from transformers import MarianConfig, MarianMTModel

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    config, weights = read(folder)
    depth, heads = config["n_encoder_layers"], config["n_heads"]
    model = MarianMTModel(
        MarianConfig(
            vocab_size=config["src_vocab_size"],
            d_model=config["d_model"],
            encoder_layers=depth,
            decoder_layers=depth,
            encoder_attention_heads=heads,
            decoder_attention_heads=heads,
            encoder_ffn_dim=config["d_ff"],
            decoder_ffn_dim=config["d_ff"],
            activation_function="relu",
            max_position_embeddings=512,
            scale_embedding=True,
            pad_token_id=0,
            bos_token_id=2,
            eos_token_id=3,
            decoder_start_token_id=2,
            forced_eos_token_id=None,
        )
    ).eval()
    model.load_state_dict(marian_weights(config, weights), strict=False)

    def translate(src: NDArray[np.int64], beam_size: int) -> list[list[int]]:
        ids = torch.from_numpy(src)
        found = model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            num_beams=beam_size,
            do_sample=False,
            min_new_tokens=N_TOKENS,
            max_new_tokens=N_TOKENS,
            bad_words_ids=[[0], [1], [2]],
        )
        return [row[1:] for row in found.tolist()]

    return translate


def marian_weights(config: dict[str, Any], weights: Weights) -> dict[str, Any]:
    """Our weights by Marian's names."""
    import torch

    width = config["d_model"]
    found = {}

    def put(name: str, ours: str, rows: slice = slice(None)) -> None:
        for part in ("weight", "bias"):
            found[f"{name}.{part}"] = torch.from_numpy(weights[f"{ours}.{part}"][rows].copy())

    thirds = {
        name: slice(i * width, (i + 1) * width)
        for i, name in enumerate(("q_proj", "k_proj", "v_proj"))
    }
    for side in ("encoder", "decoder"):
        for number in range(config[f"n_{side}_layers"]):
            theirs, ours = f"model.{side}.layers.{number}", f"{side}.{number}"
            attentions = {"self_attn": ("self_attention", "self_attn_layer_norm", "around_self")}
            if side == "decoder":
                norm = ("cross_attention", "encoder_attn_layer_norm", "around_cross")
                attentions["encoder_attn"] = norm
            for name, (attention, norm_name, around) in attentions.items():
                for third, rows in thirds.items():
                    put(f"{theirs}.{name}.{third}", f"{ours}.{attention}.project_in", rows)
                put(f"{theirs}.{name}.out_proj", f"{ours}.{attention}.project_out")
                put(f"{theirs}.{norm_name}", f"{ours}.{around}.norm")
            put(f"{theirs}.fc1", f"{ours}.feed_forward.expand")
            put(f"{theirs}.fc2", f"{ours}.feed_forward.contract")
            put(f"{theirs}.final_layer_norm", f"{ours}.around_feed_forward.norm")
    embedding = torch.from_numpy(weights["embed_src.tokens.weight"])
    for name in ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens"):
        found[f"{name}.weight"] = embedding
    return found | {"lm_head.weight": embedding}


SYSTEMS: dict[str, Callable[[Path, int], Translate]] = {
    "heed int8": lambda folder, threads: open_heed(folder, threads, is_quantized=True),
    "heed float32": lambda folder, threads: open_heed(folder, threads, is_quantized=False),
    "CTranslate2 int8": lambda folder, threads: open_ctranslate2(folder, threads, kind="int8"),
    "CTranslate2 float32": lambda folder, threads: open_ctranslate2(
        folder, threads, kind="float32"
    ),
    "Hugging Face float32": open_transformers,
}


def run(folder: Path, system: str, threads: int) -> None:
    """Answer measurements until standard input ends."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    translate = SYSTEMS[system](folder, threads)
    vocab_size = json.loads((folder / "config.json").read_text())["src_vocab_size"]
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        random = np.random.default_rng(7)
        src = random.integers(4, vocab_size, (asked["batches"], asked["batch"], N_TOKENS))
        cpu_s, wall_s = time.process_time(), time.perf_counter()
        found = [ids for batch in src for ids in translate(batch, asked["beam"])]
        cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
        if any(len(ids) != N_TOKENS for ids in found):
            raise SystemExit(f"{system} wrote {sorted({len(ids) for ids in found})} tokens")
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
        answer = {
            "cpu_s": cpu_s,
            "wall_s": wall_s,
            "tokens": len(found) * N_TOKENS,
            "memory_mb": memory,
            "first": found[0],
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]), sys.argv[3])
    else:
        run(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
