"""The model in training as it is now: a bundle to keep, a translator to validate with."""

from dataclasses import asdict

from heed.bundle.bundle import Bundle
from heed.data.prepared import Prepared
from heed.decode.options import DecodeOptions
from heed.model.decodable import TorchDecodable
from heed.train.recipe.recipe import Recipe, max_source_tokens
from heed.train.step.averages import to_arrays
from heed.train.step.trainer import Trainer
from heed.translate.translator import Translator


def make_bundle(trainer: Trainer, recipe: Recipe, data: Prepared) -> Bundle:
    """A bundle of the current weights."""
    defaults = asdict(DecodeOptions())
    decoding = {
        key: value for key, value in asdict(recipe.decoding).items() if value != defaults[key]
    }
    return Bundle(
        config=recipe.model,
        weights=to_arrays(trainer.weights()),
        src_vocab=data.src_vocab,
        tgt_vocab=data.tgt_vocab,
        source_lang=data.source_lang,
        target_lang=data.target_lang,
        target_langs=data.target_langs,
        decoding={**decoding, **_limits(data, recipe)},
        task=recipe.task,
        labels=data.labels,
    )


def _limits(data: Prepared, recipe: Recipe) -> dict[str, int]:
    """How much the model reads at once, among its decoding options."""
    if recipe.task != "translate":
        return {"max_length": recipe.text.context}
    return {"max_source_tokens": _max_source_tokens(data, recipe)}


def _max_source_tokens(data: Prepared, recipe: Recipe) -> int:
    longest = int(data.train.src_lengths.max())
    # `<eos>` and the tag of a target language do not count as pieces of the sentence.
    return max_source_tokens(recipe, longest - 1 - bool(data.target_langs))


def make_translator(trainer: Trainer, data: Prepared, recipe: Recipe) -> Translator:
    """The model as it is now, ready to translate text while it is in evaluation mode."""
    return Translator(
        TorchDecodable(trainer.model, trainer.device),
        data.src_vocab,
        data.tgt_vocab,
        options=recipe.decoding,
        source_lang=data.source_lang,
        target_lang=data.target_lang,
        target_langs=data.target_langs,
        max_source_tokens=_max_source_tokens(data, recipe),
    )
