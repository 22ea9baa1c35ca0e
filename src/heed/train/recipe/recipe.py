"""A run's settings in three states.

`Asked` (`asked.py`): the user's settings, from a recipe file, `section.key=value` or flags; they
always win. `Draft`: the settings known before the corpus is read. `Recipe`: all settings, with
the rest filled in by `choose.py`. The meaning of a setting is documented at its dataclass.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

from heed.config import build_config, read_toml
from heed.data.corpus import DataConfig, TextConfig
from heed.data.vocabularies import take_over_vocabs
from heed.decode.options import DecodeOptions, require_storable
from heed.errors import ConfigError
from heed.machine.device import has_gpu
from heed.machine.memory import spare_host_memory
from heed.model.config import PRESETS, AnyConfig
from heed.model.families import FAMILIES, Family, stored_shapes
from heed.model.one_stack.config import EncoderConfig
from heed.text.extend import kind_of
from heed.text.vocab import TokenizerConfig, Vocab
from heed.train.recipe.asked import Asked, TaskName, merge
from heed.train.recipe.choose import choose, family_of, is_preset
from heed.train.recipe.cost import UNKNOWN, Facts
from heed.train.recipe.renamed import with_new_names
from heed.train.step.config import TrainConfig
from heed.translate.lines import MAX_SOURCE_TOKENS, MIN_SOURCE_TOKENS

FROM_VOCABULARY = ("src_vocab_size", "tgt_vocab_size", "pad_id", "bos_id", "eos_id")
"""Model settings that follow from its vocabularies; values set by the user must be the same."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that decides a run; written resolved into the run folder.

    Attributes:
        task: what the model learns, a key of `TASKS`.
        data: cleaning and splitting.
        text: how a language model reads its text.
        tokenizer: the vocabulary.
        model: the network's shape.
        training: optimizer, schedule, clock.
        decoding: how the finished model translates unless told otherwise.
    """

    task: TaskName = "translate"
    data: DataConfig = field(default_factory=DataConfig)
    text: TextConfig = field(default_factory=TextConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: AnyConfig
    training: TrainConfig = field(default_factory=TrainConfig)
    decoding: DecodeOptions = field(default_factory=DecodeOptions)


@dataclass(frozen=True, kw_only=True)
class Draft:
    """The settings known before the corpus is read; they depend on neither corpus nor machine.

    Attributes:
        task: what the model learns.
        data: cleaning and splitting.
        text: how a language model reads its text.
        tokenizer: the vocabulary.
        device: `auto`, `cpu` or `cuda`.
        threads: CPU threads; 0 = as many as there are cores.
        seed: of everything random.
        shard: whether the weights are split between processes.
        first_embeddings: how embeddings are initialized.
        parent: the model that training starts from; "" = none.
    """

    task: TaskName
    data: DataConfig
    text: TextConfig
    tokenizer: TokenizerConfig
    device: str
    threads: int
    seed: int
    shard: bool
    first_embeddings: str
    parent: str


def sections() -> dict[str, tuple[type[Any], ...]]:
    """The dataclasses of each section's settings; the model has one for each family."""
    by_name = get_type_hints(Recipe)
    models = tuple(family.config for family in FAMILIES.values())
    return {
        name: models if name == "model" else (kind,)
        for name, kind in by_name.items()
        if name != "task"
    }


def draft(asked: Asked) -> Draft:
    """Check the user's settings and derive those that do not depend on the corpus.

    Raises:
        ConfigError: an unknown key, an impossible value, or a model larger than the memory.
        FormatError: the vocabulary to take over cannot be read.
    """
    recipe = resolve(asked)
    training = recipe.training
    if recipe.tokenizer.vocab_from and not training.parent:
        vocabs = take_over_vocabs(recipe.tokenizer.vocab_from)
        _require_own_pieces(asked, facts_of_pieces(*vocabs))
    return Draft(
        task=recipe.task,
        data=recipe.data,
        text=recipe.text,
        tokenizer=recipe.tokenizer,
        device=training.device,
        threads=training.threads,
        seed=training.seed,
        shard=training.shard,
        first_embeddings=training.first_embeddings,
        parent=training.parent,
    )


def facts_of_pieces(src_vocab: Vocab, tgt_vocab: Vocab) -> dict[str, Any]:
    """The settings of a tokenizer that can be read off its vocabularies."""
    return {"kind": kind_of(src_vocab), "joint": src_vocab is tgt_vocab}


def _require_own_pieces(asked: Asked, found: Mapping[str, Any]) -> None:
    """Refuse settings that contradict the vocabularies that are taken over."""
    section = asked.section("tokenizer")
    for key, value in found.items():
        if section.get(key, value) != value:
            raise ConfigError(
                f"tokenizer.{key} cannot be {section[key]} with the pieces of "
                f"{section['vocab_from']}, where it is {value}. Leave it out."
            )
    if asked.get("data.both_directions") and not found["joint"]:
        raise ConfigError(
            "data.both_directions needs one vocabulary for both languages, but "
            f"{section['vocab_from']} has two."
        )


def resolve(asked: Asked, facts: Facts = UNKNOWN) -> Recipe:
    """Fill in the settings missing from `asked` and check all.

    Args:
        asked: the user's settings; `preset` names a model of `PRESETS`.
        facts: known facts about corpus and machine.

    Raises:
        ConfigError: an unknown key, an impossible value, or a model larger than the memory.
    """
    values = with_new_names(asked.values)
    preset = values.pop("preset", None)
    mistakes = []
    if preset is not None and not is_preset(preset):
        mistakes.append(f"preset must be one of {', '.join(PRESETS)}, but is {preset!r}.")
        preset = None
    mistakes += _against_vocabulary(asked, facts)
    if "model" in values and isinstance(values["model"], Mapping):
        values["model"] = {k: v for k, v in values["model"].items() if k not in FROM_VOCABULARY}
    family = family_of(Asked(values), mistakes, preset)
    mistakes += _of_other_families(values, family)
    first = asked.get("training.first_embeddings", "random")
    if family.counts_texts and first != "random":
        mistakes.append(
            f"training.first_embeddings = {first} is for a table of pieces, which a bag of n-grams "
            "does not have. Leave it out, or set model.family = encoder."
        )
    renamed = Asked(values, asked.where, asked.not_there)
    recipe = build_config(
        Recipe,
        merge(choose(renamed, facts, preset), values),
        where=asked.where,
        without=asked.not_there,
        also_wrong=mistakes,
        sections={"model": family.config},
    )
    require_storable(recipe.decoding)
    _require_pooling(recipe)
    _require_positions(recipe)
    _require_memory(recipe)
    return recipe


def load_recipe(path: Path) -> Recipe:
    """Read a recipe that this heed or an older one wrote.

    Raises:
        ConfigError: it cannot be read, or a setting in it is wrong.
    """
    return build_recipe(with_new_names(read_toml(path)), where=str(path))


def build_recipe(values: Mapping[str, Any], *, where: str) -> Recipe:
    """Check the values of a whole recipe.

    Raises:
        ConfigError: a setting is missing, unknown or wrong.
    """
    mistakes: list[str] = []
    model = family_of(Asked(values), mistakes).config
    return build_config(Recipe, values, where=where, also_wrong=mistakes, sections={"model": model})


def _of_other_families(values: dict[str, Any], family: Family) -> list[str]:
    """Remove settings of other families from `values`; return a mistake for each."""
    section, mistakes = values.get("model"), []
    if not isinstance(section, Mapping):
        return []
    own = {field.name for field in fields(family.config)}
    kept = {**section, "family": family.name}  # an unknown one is reported already
    for key in section.keys() - own:
        others = [
            other.name
            for other in FAMILIES.values()
            if key in {field.name for field in fields(other.config)}
        ]
        if others:
            mistakes.append(f"model.{key} is a setting of {_listed(others)}, not of {family.name}.")
            del kept[key]
    values["model"] = kept
    return mistakes


def _listed(names: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _against_vocabulary(asked: Asked, facts: Facts) -> list[str]:
    """Mistakes in model settings that must agree with its vocabularies."""
    # Vocabularies taken from a model or a folder may have unusual special ids.
    is_taken_over = asked.get("training.parent") or asked.get("tokenizer.vocab_from")
    right = {} if facts.is_guess and is_taken_over else dict(facts.special_ids)
    if not facts.is_guess:
        right |= {"src_vocab_size": facts.src_vocab_size, "tgt_vocab_size": facts.tgt_vocab_size}
    mistakes = []
    for key, value in asked.section("model").items():
        if key in FROM_VOCABULARY and (type(value) is not int or value != right.get(key, value)):
            known = f", where it is {right[key]}" if key in right else " and is a whole number"
            mistakes.append(
                f"model.{key} follows from the vocabulary{known}, but is set to {value!r}. "
                "Leave it out."
            )
    return mistakes


def _require_pooling(recipe: Recipe) -> None:
    """Refuse an encoder with a vector for each text where tokens are predicted, or vice versa."""
    if isinstance(recipe.model, EncoderConfig):
        needed = "mean" if recipe.task == "classify" else "none"
        if recipe.model.pooling != needed:
            raise ConfigError(
                f"model.pooling must be {needed} for the task {recipe.task}, but is "
                f"{recipe.model.pooling}. Leave it out."
            )


def _require_positions(recipe: Recipe) -> None:
    """Refuse a model with fewer learned positions than its training has tokens in a text."""
    limit = recipe.model.length_limit
    if limit is None:
        return
    needed, setting = recipe.text.context, "text.context"
    if recipe.task == "translate":
        needed, setting = recipe.data.max_length + 2, "data.max_length + 2 (language tag, end)"
    if needed > limit:
        raise ConfigError(
            f"model.max_positions must be at least {setting}, which is {needed}, but is {limit}. "
            f"Raise it, or lower {setting.partition(' ')[0]}."
        )


def _require_memory(recipe: Recipe) -> None:
    """Refuse a model that cannot be trained in this machine's memory, before it is allocated.

    Weights are allocated in main memory. If they stay there whole, gradients and optimizer state
    take at least as much each.
    """
    training = recipe.training
    is_on_gpu = training.device == "cuda" or (training.device == "auto" and has_gpu())
    n_copies = 1 if is_on_gpu or training.shard else 3
    shapes = stored_shapes(recipe.model)
    n_parameters = sum(map(math.prod, shapes.values()))
    needed, spare = 4.0 * n_copies * n_parameters, spare_host_memory()
    if needed > spare:
        raise ConfigError(
            f"the model has {n_parameters:,} parameters and needs at least "
            f"{_spelled_size(needed)} of memory for training, but only {_spelled_size(spare)} are "
            "available. Lower model.d_model, model.d_ff, the numbers of layers or the vocabulary."
        )


def _spelled_size(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.1f} MB"


def max_source_tokens(recipe: Recipe, longest: int) -> int:
    """Longest source to translate as a whole: the longest in training, within limits.

    The model has not learned positions beyond the training sentences, and a translation has a
    length limit. A longer source is translated in parts.

    Args:
        recipe: the model's shape and its decoding.
        longest: pieces of the longest training source.
    """
    most = max(MAX_SOURCE_TOKENS, recipe.decoding.max_length)
    if recipe.model.length_limit is not None:
        most = max(1, min(most, recipe.model.length_limit - 2))  # less a language tag and `<eos>`
    return min(most, max(MIN_SOURCE_TOKENS, longest))
