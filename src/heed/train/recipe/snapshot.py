"""The model in training as it is now: a bundle to keep, a translator to validate with."""

from dataclasses import asdict
from typing import Any

import torch

from heed.bundle.bundle import Bundle
from heed.data.prepared import Prepared
from heed.decode.options import DecodeOptions
from heed.engine.library import is_compiled
from heed.engine.network import Network, engine_config
from heed.engine.runtime import Engine
from heed.model.decodable import TorchDecodable
from heed.model.families import family_of, with_all_names
from heed.model.interface import Decodable
from heed.train.recipe.recipe import Recipe, max_source_tokens
from heed.train.step.averages import to_arrays
from heed.train.step.rollback import are_finite
from heed.train.step.trainer import Trainer
from heed.translate.lines import LineReader
from heed.translate.translator import Translator


def make_bundle(trainer: Trainer, recipe: Recipe, data: Prepared) -> Bundle:
    """A bundle of the current weights."""
    return Bundle(
        config=recipe.model,
        weights=to_arrays(trainer.weights()),
        src_vocab=data.src_vocab,
        tgt_vocab=data.tgt_vocab,
        source_lang=data.source_lang,
        target_lang=data.target_lang,
        target_langs=data.target_langs,
        directions=data.directions,
        decoding=decoding_to_store(data, recipe),
        task=recipe.task,
        labels=data.labels,
    )


def decoding_to_store(data: Prepared, recipe: Recipe) -> dict[str, Any]:
    """The decoding options stored in a model folder: those that are not the default, and limits."""
    defaults = asdict(DecodeOptions())
    own = {key: value for key, value in asdict(recipe.decoding).items() if value != defaults[key]}
    return {**own, **_limits(data, recipe)}


def _limits(data: Prepared, recipe: Recipe) -> dict[str, int]:
    """The decoding options that limit how much the model reads at once."""
    if recipe.task != "translate":
        return {"max_length": recipe.text.context}
    return {"max_source_tokens": _max_source_tokens(data, recipe)}


def _max_source_tokens(data: Prepared, recipe: Recipe) -> int:
    longest = int(data.train.src_lengths.max())
    # `<eos>` and the tag of a target language do not count as pieces of the sentence.
    return max_source_tokens(recipe, longest - 1 - bool(data.target_langs))


def make_reader(data: Prepared, recipe: Recipe) -> LineReader:
    """A reader that turns lines into ids as a translator of the model does."""
    return LineReader(
        data.src_vocab,
        data.tgt_vocab,
        source_lang=data.source_lang,
        target_lang=data.target_lang,
        target_langs=data.target_langs,
        max_source_tokens=_max_source_tokens(data, recipe),
        length_limit=recipe.model.length_limit,
    )


def make_translator(trainer: Trainer, data: Prepared, recipe: Recipe) -> Translator:
    """The model as it is now, ready to translate text while it is in evaluation mode."""
    return Translator(
        _decodable(trainer, recipe),
        data.src_vocab,
        data.tgt_vocab,
        options=recipe.decoding,
        source_lang=data.source_lang,
        target_lang=data.target_lang,
        target_langs=data.target_langs,
        max_source_tokens=_max_source_tokens(data, recipe),
    )


def _decodable(trainer: Trainer, recipe: Recipe) -> Decodable:
    """The model for a search: in the engine if possible, which is several times as fast.

    The engine computes with a copy of the weights at the time of the call.
    """
    weights = trainer.weights()
    # Only torch returns numbers that are not finite, which show that a model has diverged.
    if not _is_for_engine(trainer, recipe) or not are_finite(weights.values()):
        return TorchDecodable(trainer.model, trainer.device)
    arrays = with_all_names(to_arrays(weights), recipe.model)
    network = Network.of(engine_config(recipe.model), arrays)
    return Engine(network, threads=torch.get_num_threads())


def _is_for_engine(trainer: Trainer, recipe: Recipe) -> bool:
    is_sharded = trainer.unfilled is not None
    is_known = family_of(recipe.model).runs_on_engine(recipe.model)
    return is_compiled() and is_known and trainer.device.type == "cpu" and not is_sharded
