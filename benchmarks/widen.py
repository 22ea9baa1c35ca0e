"""A trained model in another size: the same translations, by more arithmetic.

    python benchmarks/widen.py RUN OUT --d-model 512 --heads 8 --d-ff 2048 --layers 6
    heed quantize OUT

A server is compared with a model of the size that people serve, which takes hours to train. Here
every number of a vector is repeated, and every matrix takes means over the repetitions; layers that
are added change nothing. So a model of minutes writes what it wrote before, at the cost of a large
one. For a pre-norm Transformer with sinusoidal positions, which become a table.
"""

import argparse
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import exports

Weights = dict[str, NDArray[np.float32]]


def widen(config: Any, weights: Weights, wide: Any) -> Weights:
    """The weights of `wide`, a `ModelConfig` whose sizes are multiples of those of `config`.

    A feature of the wide model is feature `i % d_model` of the narrow one, and likewise a head, a
    place in a head and a place in the feed-forward network.
    """
    model = np.arange(wide.d_model) % config.d_model
    inner = np.arange(wide.d_ff) % config.d_ff
    d_k, wide_d_k = (each.d_model // each.n_heads for each in (config, wide))
    head, place = np.divmod(np.arange(wide.d_model), wide_d_k)
    heads = head % config.n_heads * d_k + place % d_k
    # A product of query and key has each term more often, and is divided by another root.
    query_gain = math.sqrt(wide_d_k / d_k) / (wide_d_k / d_k)
    # Queries, keys and values, each from `width` on.
    width = config.d_model
    project_in = np.concatenate([heads, heads + width, heads + 2 * width])
    gains = np.repeat([query_gain, 1.0, 1.0], wide.d_model)
    # Embeddings are multiplied by the root of the width; as output they meet each feature again.
    embedding_gain = math.sqrt(config.d_model / wide.d_model)
    output_gain = config.d_model / wide.d_model / embedding_gain
    rows: dict[str, tuple[NDArray[Any], NDArray[Any], NDArray[Any] | float]] = {
        "project_in": (project_in, model, gains),
        "project_out": (model, heads, 1.0),
        "expand": (inner, model, 1.0),
        "contract": (model, inner, 1.0),
    }

    def wider(name: str) -> NDArray[Any]:
        weight, part = weights[name], name.split(".")[-2]
        found: NDArray[Any]
        if part == "tokens":
            found = weight[:, model] * embedding_gain
        elif part not in rows:
            found = weight[model] * (output_gain if name.startswith("decoder_norm") else 1.0)
        else:
            out, into, gain = rows[part]
            found = (weight[out] if name.endswith("bias") else weight[out][:, into]).copy()
            found *= np.broadcast_to(gain, len(out)).reshape(-1, *[1] * (found.ndim - 1))
            if found.ndim == 2:
                found *= weight.shape[1] / len(into)  # a mean over what is repeated
        return found

    table = exports.positions(config.d_model, is_interleaved=config.positions == "sinusoidal")[
        : wide.max_positions, model
    ]
    found = {f"embed_{side}.positions.table": table for side in ("src", "tgt")}
    found |= {name: wider(name) for name in weights if not name.startswith("output")}
    found["output.weight"] = found["embed_tgt.tokens.weight"]
    for side in ("encoder", "decoder"):
        narrow_layers = getattr(config, f"n_{side}_layers")
        for layer in range(narrow_layers, getattr(wide, f"n_{side}_layers")):
            for name in [name for name in found if name.startswith(f"{side}.0.")]:
                # What leaves a sublayer is nothing.
                gain = 0.0 if name.split(".")[-2] in ("project_out", "contract") else 1.0
                found[name.replace(f"{side}.0.", f"{side}.{layer}.")] = found[name] * gain
    return {name: np.ascontiguousarray(weight, np.float32) for name, weight in found.items()}


def main() -> None:
    """Read a model folder, write another."""
    from heed.bundle.bundle import load_bundle, save_bundle

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    for name in ("d-model", "heads", "d-ff", "layers"):
        parser.add_argument(f"--{name}", type=int, required=True)
    settings = parser.parse_args()
    bundle = load_bundle(settings.model)
    config: Any = bundle.config
    wide = replace(
        config,
        d_model=settings.d_model,
        n_heads=settings.heads,
        d_ff=settings.d_ff,
        n_encoder_layers=settings.layers,
        n_decoder_layers=settings.layers,
        positions="learned",
        max_positions=exports.MAX_POSITIONS,
    )
    weights = widen(config, dict(bundle.weights), wide)
    save_bundle(settings.out, replace(bundle, config=wide, weights=weights, int8=None, path=None))


if __name__ == "__main__":
    main()
