"""The systems that `generate_speed.py` compares, each in a process of its own.

    python benchmarks/generators.py make FOLDER small
    PEER/bin/python benchmarks/generators.py export FOLDER CTranslate2
    PEER/bin/python benchmarks/generators.py run FOLDER "CTranslate2 int8" 1

`make` writes one random language model as heed's files, `export` as those of a peer; `run` loads
such files and then times what it reads on standard input. The model is a GPT-NeoX: rotary
positions, pre-norm, GELU. All systems get the same prompts and write exactly as many tokens,
greedily. Not here: tables and turns.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import exports
import translators

N_NEW = 128
"""Tokens that each row gets."""
MOST_ROWS, MOST_TOKENS = 32, 400
"""Rows of the largest batch, and tokens of its longest row."""

Generate = Callable[[NDArray[np.int64]], list[list[int]]]
"""`prompts (rows, prompt_len)`, `<bos>` in front -> the new ids of each row."""

SIZES = {
    "small": {"vocab_size": 8000, "d_model": 256, "n_heads": 4, "d_ff": 1024, "n_layers": 6},
    "base": {"vocab_size": 32000, "d_model": 512, "n_heads": 8, "d_ff": 2048, "n_layers": 12},
}


def shape(size: str) -> dict[str, Any]:
    """The fields of heed's `DecoderConfig`."""
    sizes = dict(SIZES[size])
    vocab_size = sizes.pop("vocab_size")
    return {
        **sizes,
        "src_vocab_size": vocab_size,
        "tgt_vocab_size": vocab_size,
        "norm": "pre",
        "norm_eps": 1e-5,
        "activation": "gelu",
        "positions": "rotary",
        "tied": "none",
        "scale_embedding": False,
    }


def make(folder: Path, size: str) -> None:
    """Write the weights, as float32 and as heed rounds them."""
    import torch
    from safetensors.numpy import save_file

    from heed.engine.network import Network
    from heed.engine.packed import to_arrays
    from heed.model.build import build_model
    from heed.model.one_stack.config import DecoderConfig

    torch.manual_seed(1)
    config = DecoderConfig(**shape(size))
    weights = {
        # With layers as faint as when training starts, each token would be the one before.
        name: (tensor * (translators.LAYER_GAIN if name.endswith(translators.LOUDER) else 1))
        for name, tensor in build_model(config).state_dict().items()
    }
    arrays = {name: tensor.numpy().copy() for name, tensor in weights.items()}
    save_file(arrays, folder / translators.FLOATS)
    network = Network.of(config, arrays, is_quantized=True)
    save_file(to_arrays(network), folder / translators.INTS)
    (folder / "config.json").write_text(json.dumps(shape(size)))


# ---------------------------------------------------------------------------- heed


def open_heed(folder: Path, threads: int, *, is_quantized: bool) -> Generate:
    """heed's engine under heed's own search."""
    from safetensors.numpy import load_file

    from heed.decode.options import DecodeOptions
    from heed.decode.search import decode
    from heed.engine.network import Network
    from heed.engine.packed import from_arrays
    from heed.engine.runtime import Engine
    from heed.model.one_stack.config import DecoderConfig

    config = DecoderConfig(**translators.read_config(folder))
    if is_quantized:
        ints = folder / translators.INTS
        network = from_arrays(config, load_file(ints), ints)
    else:
        network = Network.of(config, translators.read_weights(folder))
    engine = Engine(network, threads=threads, kernels=os.environ.get("HEED_KERNELS", ""))

    def generate(prompts: NDArray[np.int64]) -> list[list[int]]:
        n_prompt = prompts.shape[1] - 1
        found = decode(
            engine,
            np.zeros((len(prompts), 0), np.int64),
            DecodeOptions(
                beam_size=1,
                max_length=n_prompt + N_NEW,
                max_length_factor=0.0,
                max_length_offset=float(N_NEW),
                suppress=(config.eos_id,),
            ),
            bos_id=config.bos_id,
            eos_id=config.eos_id,
            pad_id=config.pad_id,
            prefixes=prompts[:, 1:].tolist(),
            score_prefixes=False,
        )
        return [ranked[0].ids[n_prompt:] for ranked in found]

    return generate


# ---------------------------------------------------------------------------- GPT-NeoX elsewhere


def embeddings(weights: exports.Weights) -> NDArray[np.float32]:
    """Embeddings with the vector that marks heed's target."""
    table: NDArray[np.float32] = weights["embed.tokens.weight"] + weights["sides"][1]
    return table


LAYER = {
    "around_self.norm": "input_layernorm",
    "self_attention.project_in": "attention.query_key_value",
    "self_attention.project_out": "attention.dense",
    "around_feed_forward.norm": "post_attention_layernorm",
    "feed_forward.expand": "mlp.dense_h_to_4h",
    "feed_forward.contract": "mlp.dense_4h_to_h",
}
"""heed's name of a part of a layer, and GPT-NeoX's."""


def each_part(config: exports.Config, weights: exports.Weights) -> Iterator[tuple[int, str, Any]]:
    """Layer, name and array of all weights and biases of the layers."""
    for layer in range(config["n_layers"]):
        for part in LAYER:
            for kind in ("weight", "bias"):
                yield layer, f"{part}.{kind}", weights[f"decoder.{layer}.{part}.{kind}"]


def neox_weights(config: exports.Config, weights: exports.Weights) -> exports.Weights:
    """The weights as Hugging Face's GPT-NeoX names them; queries, keys and values by head."""
    found = {
        "gpt_neox.embed_in.weight": embeddings(weights),
        "gpt_neox.final_layer_norm.weight": weights["decoder_norm.weight"],
        "gpt_neox.final_layer_norm.bias": weights["decoder_norm.bias"],
        "lm_head.weight": weights["output.weight"],
    }
    for layer, name, array in each_part(config, weights):
        part, _, kind = name.rpartition(".")
        if part == "self_attention.project_in":
            by_head = array.reshape(3, config["n_heads"], -1, *array.shape[1:]).swapaxes(0, 1)
            array = by_head.reshape(array.shape)
        found[f"gpt_neox.layers.{layer}.{LAYER[part]}.{kind}"] = array
    return {name: np.ascontiguousarray(array) for name, array in found.items()}


def neox_config(config: exports.Config) -> dict[str, Any]:
    """The fields of Hugging Face's `GPTNeoXConfig`."""
    return {
        "vocab_size": config["src_vocab_size"],
        "hidden_size": config["d_model"],
        "num_hidden_layers": config["n_layers"],
        "num_attention_heads": config["n_heads"],
        "intermediate_size": config["d_ff"],
        "hidden_act": "gelu",
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000.0,
            "partial_rotary_factor": 1.0,
        },
        "rotary_pct": 1.0,
        "max_position_embeddings": MOST_TOKENS,
        "layer_norm_eps": config["norm_eps"],
        "use_parallel_residual": False,
        "tie_word_embeddings": False,
        "bos_token_id": 2,
        "eos_token_id": 3,
        "pad_token_id": 0,
    }


def export_transformers(folder: Path) -> None:
    """A folder of Hugging Face's GPT-NeoX."""
    import torch
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    config, weights = translators.read_config(folder), translators.read_weights(folder)
    model = GPTNeoXForCausalLM(GPTNeoXConfig(**neox_config(config)))
    tensors = {
        name: torch.from_numpy(array) for name, array in neox_weights(config, weights).items()
    }
    model.load_state_dict(tensors)
    model.save_pretrained(folder / "transformers")


def open_transformers(folder: Path, threads: int) -> Generate:
    """Hugging Face's `generate`."""
    import torch
    from transformers import GPTNeoXForCausalLM

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    model: Any = GPTNeoXForCausalLM.from_pretrained(folder / "transformers")
    model.eval()

    def generate(prompts: NDArray[np.int64]) -> list[list[int]]:
        ids = torch.from_numpy(prompts)
        found = model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            min_new_tokens=N_NEW,
            max_new_tokens=N_NEW,
        )
        new: list[list[int]] = found[:, ids.size(1) :].tolist()
        return new

    return generate


def export_ctranslate2(folder: Path) -> None:
    """CTranslate2's own description of a model."""
    from ctranslate2.specs import common_spec, transformer_spec

    config, weights = translators.read_config(folder), translators.read_weights(folder)
    spec = transformer_spec.TransformerDecoderModelSpec.from_config(
        config["n_layers"],
        config["n_heads"],
        activation=common_spec.Activation.GELU,
        pre_norm=True,
        rotary_dim=config["d_model"] // config["n_heads"],
        rotary_interleave=False,
    )
    decoder = spec.decoder
    decoder.scale_embeddings = False
    decoder.embeddings.weight = embeddings(weights)
    decoder.layer_norm.gamma = weights["decoder_norm.weight"]
    decoder.layer_norm.beta = weights["decoder_norm.bias"]
    decoder.projection.weight = weights["output.weight"]
    for number, layer in enumerate(decoder.layer):
        parts = {
            "around_self.norm": layer.self_attention.layer_norm,
            "self_attention.project_in": layer.self_attention.linear[0],
            "self_attention.project_out": layer.self_attention.linear[1],
            "around_feed_forward.norm": layer.ffn.layer_norm,
            "feed_forward.expand": layer.ffn.linear_0,
            "feed_forward.contract": layer.ffn.linear_1,
        }
        for part, to in parts.items():
            both = (weights[f"decoder.{number}.{part}.{kind}"] for kind in ("weight", "bias"))
            names = ("gamma", "beta") if part.endswith("norm") else ("weight", "bias")
            for name, array in zip(names, both, strict=True):
                setattr(to, name, array)
    spec.register_vocabulary(exports.vocabulary(config))
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = "<s>", "</s>", "<unk>"
    spec.validate()
    spec.optimize(quantization="float32")
    target = folder / "ctranslate2"
    target.mkdir()
    spec.save(str(target))


def open_ctranslate2(folder: Path, threads: int, *, kind: str) -> Generate:
    """CTranslate2, which rounds to int8 as it loads."""
    import ctranslate2

    generator = ctranslate2.Generator(
        str(folder / "ctranslate2"),
        device="cpu",
        compute_type=kind,
        inter_threads=1,
        intra_threads=threads,
    )
    tokens = exports.vocabulary(translators.read_config(folder))

    def generate(prompts: NDArray[np.int64]) -> list[list[int]]:
        found = generator.generate_batch(
            [[tokens[i] for i in row] for row in prompts.tolist()],
            max_batch_size=len(prompts),
            min_length=N_NEW,
            max_length=N_NEW,
            sampling_topk=1,
            include_prompt_in_result=False,
        )
        return [list(each.sequences_ids[0]) for each in found]

    return generate


GGUF_LAYER = {
    "around_self.norm": "attn_norm",
    "self_attention.project_in": "attn_qkv",
    "self_attention.project_out": "attn_output",
    "around_feed_forward.norm": "ffn_norm",
    "feed_forward.expand": "ffn_up",
    "feed_forward.contract": "ffn_down",
}
"""heed's name of a part of a layer, and llama.cpp's."""


def export_llama(folder: Path) -> None:
    """Two files for llama.cpp: float32, and Q8_0, its eight bits."""
    import gguf

    config, weights = translators.read_config(folder), translators.read_weights(folder)
    tensors = {
        "token_embd.weight": embeddings(weights),
        "output_norm.weight": weights["decoder_norm.weight"],
        "output_norm.bias": weights["decoder_norm.bias"],
        "output.weight": weights["output.weight"],
    }
    for layer, name, array in each_part(config, weights):
        part, _, kind = name.rpartition(".")
        tensors[f"blk.{layer}.{GGUF_LAYER[part]}.{kind}"] = array
    eight = gguf.GGMLQuantizationType.Q8_0
    for file, is_rounded in (("float32.gguf", False), ("int8.gguf", True)):
        writer = gguf.GGUFWriter(folder / file, "gptneox")
        writer.add_context_length(MOST_TOKENS)
        writer.add_embedding_length(config["d_model"])
        writer.add_block_count(config["n_layers"])
        writer.add_feed_forward_length(config["d_ff"])
        writer.add_rope_dimension_count(config["d_model"] // config["n_heads"])
        writer.add_head_count(config["n_heads"])
        writer.add_parallel_residual(False)
        writer.add_layer_norm_eps(config["norm_eps"])
        writer.add_vocab_size(config["src_vocab_size"])
        writer.add_tokenizer_model("no_vocab")
        for name, array in tensors.items():
            if is_rounded and array.ndim == 2:
                writer.add_tensor(name, gguf.quants.quantize(array, eight), raw_dtype=eight)
            else:
                writer.add_tensor(name, np.ascontiguousarray(array))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def open_llama(folder: Path, threads: int, *, file: str) -> Generate:
    """llama.cpp by its C interface: prompts in one call, then a call for each step of all rows."""
    import llama_cpp

    llama_cpp.llama_log_set(SILENT := llama_cpp.llama_log_callback(lambda *_: None), None)
    vocab_size = translators.read_config(folder)["src_vocab_size"]
    model = llama_cpp.llama_model_load_from_file(
        str(folder / file).encode(), llama_cpp.llama_model_default_params()
    )
    params = llama_cpp.llama_context_default_params()
    params.n_ctx = MOST_ROWS * MOST_TOKENS
    params.n_batch = MOST_ROWS * MOST_TOKENS
    params.n_seq_max = MOST_ROWS
    params.n_threads = params.n_threads_batch = threads
    context = llama_cpp.llama_init_from_model(model, params)
    batch = llama_cpp.llama_batch_init(params.n_batch, 0, 1)

    def advance(tokens: NDArray[np.int64], first: int) -> NDArray[np.int64]:
        """Read tokens `(rows, n)` at positions `first …`, and return the likeliest next ones."""
        rows, n = tokens.shape
        batch.n_tokens = rows * n
        for place, token in enumerate(tokens.ravel().tolist()):
            row, t = divmod(place, n)
            batch.token[place], batch.pos[place] = token, first + t
            batch.n_seq_id[place], batch.seq_id[place][0] = 1, row
            batch.logits[place] = t == n - 1
        if llama_cpp.llama_decode(context, batch):
            raise SystemExit("llama.cpp failed")
        best = np.empty(rows, np.int64)
        for row in range(rows):
            logits = llama_cpp.llama_get_logits_ith(context, row * n + n - 1)
            scores = np.ctypeslib.as_array(logits, (vocab_size,))
            scores[3] = -np.inf
            best[row] = scores.argmax()
        return best

    def generate(prompts: NDArray[np.int64]) -> list[list[int]]:
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)
        length = prompts.shape[1]
        found = [advance(prompts, 0)]
        for step in range(N_NEW - 1):
            found.append(advance(found[-1][:, None], length + step))
        rows: list[list[int]] = np.stack(found, axis=1).tolist()
        return rows

    generate.kept = SILENT  # type: ignore[attr-defined]  # ctypes must not lose the callback
    return generate


EXPORTS = {
    "CTranslate2": export_ctranslate2,
    "Hugging Face": export_transformers,
    "llama.cpp": export_llama,
}

SYSTEMS: dict[str, Callable[[Path, int], Generate]] = {
    "heed int8": lambda folder, threads: open_heed(folder, threads, is_quantized=True),
    "heed float32": lambda folder, threads: open_heed(folder, threads, is_quantized=False),
    "CTranslate2 int8": lambda folder, threads: open_ctranslate2(folder, threads, kind="int8"),
    "CTranslate2 float32": lambda folder, threads: open_ctranslate2(
        folder, threads, kind="float32"
    ),
    "llama.cpp int8": lambda folder, threads: open_llama(folder, threads, file="int8.gguf"),
    "llama.cpp float32": lambda folder, threads: open_llama(folder, threads, file="float32.gguf"),
    "Hugging Face float32": open_transformers,
}


def run(folder: Path, system: str, threads: int) -> None:
    """Answer measurements until standard input ends."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    generate = SYSTEMS[system](folder, threads)
    vocab_size = translators.read_config(folder)["src_vocab_size"]

    def work(asked: dict[str, int]) -> list[list[int]]:
        shape = (asked["batches"], asked["batch"], 1 + asked["prompt"])
        prompts = np.random.default_rng(7).integers(4, vocab_size, shape)
        prompts[:, :, 0] = 2
        return [ids for batch in prompts for ids in generate(batch)]

    translators.serve(system, work, N_NEW)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]), sys.argv[3])
    elif sys.argv[1] == "export":
        EXPORTS[sys.argv[3]](Path(sys.argv[2]))
    else:
        run(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
