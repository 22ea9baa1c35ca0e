"""A student's shape, whether it starts from its teacher's weights, and its learning rates.

`train/start/finetune.py` copies the weights.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heed.bundle.bundle import load_bundle
from heed.bundle.find import WEIGHTS, find_model_folder
from heed.disk.folders import read_manifest
from heed.model.config import PRESETS, AnyConfig, ModelConfig
from heed.train.recipe.asked import Asked
from heed.train.recipe.choose import Values, choose_rates, is_preset
from heed.train.start.finetune import FREE

RATE = 0.5
"""Factor for the learning rates of a run that starts from a model: the remaining layers are already
trained."""

BATCH_TOKENS = 1280
"""Smaller batches learn faster from scratch, but disturb weights that are nearly right."""


def student_settings(asked: Asked, teacher: Path) -> Asked:
    """The settings with the student's shape, and with its rates if it starts from the teacher.

    Args:
        asked: settings made by the user; `preset` names a shape, `model` changes parts of it.
        teacher: model or run folder. The student gets its shape with two thirds of its decoder
            layers, unless `asked` says otherwise. If it starts from its weights, the learning
            rates are low and fall from the start.

    Source: Kasai et al. 2021, "Deep Encoder, Shallow Decoder": the decoder's layers take time for
        every word.
    """
    folder = find_model_folder(teacher)
    config = load_bundle(folder, prefer_int8=True).config
    preset = asked.get("preset")
    if preset is not None and not is_preset(preset):
        return asked  # `resolve` raises the error
    usual = PRESETS[preset] if preset else _shallow(config)
    # A decoder with fewer layers than the encoder cannot read the encoder's layers one to one.
    shape = {"cross_from": "last", **usual, **asked.section("model")}
    changed = {key for key in shape if shape[key] != getattr(config, key, None)}
    if changed <= {*FREE} and WEIGHTS in read_manifest(folder).files:
        asked = asked.over({"training": _gentle(asked.section("training"), config.d_model)})
        asked = asked.plus("training.parent", str(teacher))
    return asked.without("preset").plus_all({"model": shape})


def _gentle(asked: Mapping[str, Any], d_model: int) -> Values:
    """Training settings that change the weights slowly, unless the user has set them."""
    usual = choose_rates({**asked, "parent": "the teacher"}, d_model)
    rates = {key: RATE * peak for key, peak in usual.items()}
    batches = {
        "batch_tokens": BATCH_TOKENS,
        "first_batch_tokens": asked.get("batch_tokens", BATCH_TOKENS),
    }
    return {"schedule": "linear", **rates, **batches}


def _shallow(teacher: AnyConfig) -> Values:
    """A Transformer's shape with two thirds of its decoder layers; `student` for other families."""
    if not isinstance(teacher, ModelConfig):
        return PRESETS["student"]
    keys = [key for key in PRESETS["student"] if key != "dropout"]
    if teacher.d_k or teacher.d_v:  # of a pruned teacher
        keys += ["d_k", "d_v"]
    sizes = {key: getattr(teacher, key) for key in keys}
    return {**sizes, "n_decoder_layers": max(1, round(2 * teacher.n_decoder_layers / 3))}
