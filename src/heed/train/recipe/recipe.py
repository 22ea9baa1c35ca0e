"""A whole run's settings, and the rule that fills in those nobody set.

Not the settings' meaning: that stands beside the code each steers. What a person sets (a recipe
file, `section.key=value`, flags) always wins; `choose` fills the rest from the corpus, the time
given and the machine's measured speed. `docs/log` holds the experiments behind the numbers.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heed.config import build_config, parse_duration, read_toml
from heed.data.corpus import DataConfig
from heed.decode.options import DecodeOptions, require_storable
from heed.errors import ConfigError
from heed.machine.device import has_gpu
from heed.machine.memory import spare_host_memory
from heed.model.config import PRESETS, AnyConfig
from heed.model.families import DEFAULT, Family, family_named, stored_shapes
from heed.text.vocab import TokenizerConfig
from heed.train.recipe.cost import (
    UNKNOWN,
    Facts,
    expected_epochs,
    flops_per_epoch,
    orthogonalizing_flops,
    weights_met,
)
from heed.train.recipe.renamed import with_new_names
from heed.train.step.config import TrainConfig
from heed.translate.lines import MAX_SOURCE_TOKENS, MIN_SOURCE_TOKENS

Values = dict[str, Any]

FROM_VOCABULARY = ("src_vocab_size", "tgt_vocab_size", "pad_id", "bos_id", "eos_id")
"""Settings of a model that its vocabularies decide: given by hand, they must be the same."""

DEFAULT_TIME_S = 1800.0
"""How long a run takes when nobody says."""

MIN_TOKENS_PER_WEIGHT = 1.5
"""A model that learns from fewer target tokens a weight in the time given is too large for it.

On 29,000 pairs, `small` with 0.3 ended 1.7 BLEU below `tiny`; with 1.2 they were level.
"""

WEIGHT_DECAY = 0.2
"""What Muon's matrices lose each step, times the rate: so their updates stay large beside them.

Multi30k, development loss with 0, 0.2 and 0.5: 3.11, 3.02, 3.02 after 500 steps of 850 tokens;
1.99, 1.91, 1.95 after 1,100 of 2,000.
"""

FINE_TUNING_RATE = 0.3
"""Share of the usual learning rates for a run that starts from a model."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that decides a run; written resolved into the run folder.

    Attributes:
        data: cleaning and splitting.
        tokenizer: the vocabulary.
        model: the network's shape.
        training: optimizer, schedule, clock.
        decoding: how the finished model translates unless told otherwise.
    """

    data: DataConfig = field(default_factory=DataConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: AnyConfig
    training: TrainConfig = field(default_factory=TrainConfig)
    decoding: DecodeOptions = field(default_factory=DecodeOptions)


def resolve(explicit: Mapping[str, Any], facts: Facts = UNKNOWN, *, where: str = "") -> Recipe:
    """Fill in what `explicit` leaves open and check everything.

    Args:
        explicit: sections and keys somebody set, as nested dicts; `preset` at the top names a
            model of `PRESETS`.
        facts: what is known of corpus and machine.
        where: the file the settings come from, for messages.

    Raises:
        ConfigError: an unknown key, an impossible value, or a model larger than the memory.
    """
    explicit = with_new_names(explicit)
    preset = explicit.pop("preset", None)
    mistakes = []
    if preset is not None and not is_preset(preset):
        mistakes.append(f"preset must be one of {', '.join(PRESETS)}, but is {preset!r}.")
        preset = None
    sections = {name: value for name, value in explicit.items() if isinstance(value, Mapping)}
    mistakes += _against_vocabulary(sections, facts)
    if "model" in sections:
        explicit["model"] = sections["model"] = {
            key: value for key, value in sections["model"].items() if key not in FROM_VOCABULARY
        }
    family = _family(sections, mistakes)
    chosen = choose(sections, facts, preset)
    recipe = build_config(
        Recipe,
        merge(chosen, explicit),
        where=where,
        also_wrong=mistakes,
        sections={"model": family.config},
    )
    require_storable(recipe.decoding)
    _require_memory(recipe)
    return recipe


def load_recipe(path: Path) -> Recipe:
    """Read a recipe that heed wrote, also an older heed.

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
    model = _family(values, mistakes).config
    return build_config(Recipe, values, where=where, also_wrong=mistakes, sections={"model": model})


def _family(values: Mapping[str, Any], mistakes: list[str]) -> Family:
    """The family that settings name, else the default and a mistake."""
    model = values.get("model", {})
    try:
        return family_named(model.get("family", DEFAULT) if isinstance(model, Mapping) else DEFAULT)
    except ConfigError as error:
        mistakes.append(str(error))
        return family_named(DEFAULT)


def is_preset(name: object) -> bool:
    """Whether a value from a file is the name of a preset."""
    return isinstance(name, str) and name in PRESETS


def _against_vocabulary(sections: Mapping[str, Any], facts: Facts) -> list[str]:
    """What is wrong with settings of the model that its vocabularies decide."""
    # A model or a folder that pieces are taken from may have other special ids than are usual.
    is_taken_over = sections.get("training", {}).get("parent") or sections.get("tokenizer", {}).get(
        "vocab_from"
    )
    right = {} if facts.is_guess and is_taken_over else dict(facts.special_ids)
    if not facts.is_guess:
        right |= {"src_vocab_size": facts.src_vocab_size, "tgt_vocab_size": facts.tgt_vocab_size}
    mistakes = []
    for key, value in sections.get("model", {}).items():
        if key in FROM_VOCABULARY and (type(value) is not int or value != right.get(key, value)):
            known = f", where it is {right[key]}" if key in right else " and is a whole number"
            mistakes.append(
                f"model.{key} follows from the vocabulary{known}, but is set to {value!r}. "
                "Leave it out."
            )
    return mistakes


def _require_memory(recipe: Recipe) -> None:
    """Refuse a model that cannot be trained in this machine's memory, before it is allocated.

    Weights are made in the machine's own memory. Where they stay there whole, gradients and what
    the optimizer remembers of them take at least as much each.
    """
    training = recipe.training
    is_on_gpu = training.device == "cuda" or (training.device == "auto" and has_gpu())
    n_copies = 1 if is_on_gpu or training.shard else 3
    shapes = stored_shapes(recipe.model)
    n_parameters = sum(map(math.prod, shapes.values()))
    needed, spare = 4.0 * n_copies * n_parameters, spare_host_memory()
    if needed > spare:
        raise ConfigError(
            f"the model has {n_parameters:,} parameters and needs at least {_spelled_size(needed)} "
            f"of memory for training, but there are {_spelled_size(spare)}. Lower model.d_model, "
            "model.d_ff, the numbers of layers or the vocabulary."
        )


def _spelled_size(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.1f} MB"


def choose(explicit: Mapping[str, Any], facts: Facts, preset: str | None) -> Values:
    """Good values for whatever `explicit` does not set, as nested dicts."""
    training = explicit.get("training", {})
    time_s = training.get("time_s")
    has_budget = time_s is not None or training.get("max_steps") is not None
    max_steps = _asked(training, "max_steps", 0)
    # A run of so many steps is the same on every machine; a run of an hour is what its speed gives.
    n_tokens_by_steps = tokens_of_steps(training, facts, max_steps) if time_s is None else 0.0
    budget_s = _asked_seconds(time_s)
    wanted = explicit.get("model", {})
    family = _family(explicit, [])
    name = preset or choose_size(facts, budget_s, n_tokens_by_steps, family.presets)
    model: Values = {
        "family": family.name,
        **family.presets[name],
        "src_vocab_size": facts.src_vocab_size,
        "tgt_vocab_size": facts.tgt_vocab_size,
        **facts.special_ids,
    }
    for key, size in family.presets[name].items():
        if type(size) is int:
            model[key] = _asked(wanted, key, size)
    is_joint = explicit.get("tokenizer", {}).get("joint", TokenizerConfig.joint)
    is_joint = is_joint and facts.src_vocab_size == facts.tgt_vocab_size
    epochs = n_tokens_by_steps / facts.n_tgt_tokens or expected_epochs(model, facts, budget_s)
    model |= family.usual(is_joint)
    if preset is None:
        model["dropout"] = choose_dropout(epochs)
    n_tokens = max_steps * 4096.0 if n_tokens_by_steps else epochs * facts.n_tgt_tokens
    batches = choose_batches(facts, n_tokens)
    batch_tokens = _asked(training, "batch_tokens", batches["batch_tokens"])
    batches["first_batch_tokens"] = min(batches["first_batch_tokens"], batch_tokens)
    if _uses_muon(training):
        batches["matrix_every"] = choose_matrix_every(model, facts, batch_tokens)
        batches["warmup_steps"] = choose_warmup(max_steps or n_tokens / batch_tokens)
        # Nothing is gained where a parent's weights go on.
        batches["weight_decay"] = 0.0 if training.get("parent") else WEIGHT_DECAY
    batches |= choose_rates(training, model["d_model"])
    # Beam search likes short texts, more so the younger a model is: 0.6 lost 7 % of the words.
    chosen: Values = {"model": model, "training": batches, "decoding": {"length_penalty": 1.4}}
    if not has_budget:
        chosen["training"]["time_s"] = DEFAULT_TIME_S
    return chosen


def _asked(section: Mapping[str, Any], key: str, otherwise: int) -> int:
    """A number set by hand, if it is a sound one: what is unsound is complained of later."""
    value = section.get(key)
    return value if type(value) is int and 0 < value <= 10**9 else otherwise


def _asked_seconds(value: Any) -> float:
    """A budget of time set by hand, if it is a sound one, else the default."""
    try:
        seconds = parse_duration(value)
    except ConfigError:
        return DEFAULT_TIME_S
    return seconds if 1 <= seconds <= 1e8 else DEFAULT_TIME_S


def _uses_muon(training: Mapping[str, Any]) -> bool:
    return bool(training.get("optimizer", TrainConfig.optimizer) == "muon")


def choose_batches(facts: Facts, n_tokens: float) -> Values:
    """Small batches for a short run, larger ones for a long run; half as large at first.

    What a step may learn from grows slowly while a model learns, so the batch grows with the root
    of the tokens seen. Above 4 096 nothing is gained at these sizes; below 512 Muon, whose cost a
    step does not depend on the batch, takes most of the time.

    Args:
        facts: a corpus of few batches gets smaller ones.
        n_tokens: target tokens the whole run will learn from, repeats counted.
    """
    last = min(4096, max(512, round(1.2 * n_tokens**0.5)), max(512, facts.n_tgt_tokens // 64))
    return {"batch_tokens": last, "first_batch_tokens": last // 2}


def tokens_of_steps(training: Mapping[str, Any], facts: Facts, max_steps: int) -> float:
    """Target tokens that a run of `max_steps` steps learns from, repeats counted.

    One batch a step: several processes, or `training.accumulate`, learn from more, but must get the
    recipe of one process, for their weights are to be the same.
    """
    batches = choose_batches(facts, max_steps * 4096.0)
    last = _asked(training, "batch_tokens", batches["batch_tokens"])
    first = min(last, _asked(training, "first_batch_tokens", batches["first_batch_tokens"]))
    # Batches grow from the first size to the last one over the first third of the run.
    return max_steps * (last - (last - first) / 6)


def choose_warmup(n_steps: float) -> int:
    """Steps over which the rate rises: a thirtieth of the run, a hundred at most.

    Muon's updates have the size of the rate from the first step on, whatever the gradients, so
    there is little to wait for; Adam alone wants more.
    """
    return max(1, min(100, round(n_steps / 30)))


def choose_rates(training: Mapping[str, Any], d_model: int) -> Values:
    """Peak learning rates: what the optimizer bears, less for a model that has learned already."""
    share = FINE_TUNING_RATE if training.get("parent") else 1.0
    if _uses_muon(training):
        matrix_rate = share * TrainConfig.matrix_learning_rate
        # Beside it, Adam moves embeddings, biases and norms: the wider, the less they bear, and
        # less still where embeddings are nearly right from the start.
        begins_with = training.get("first_embeddings", TrainConfig.first_embeddings)
        is_by_cooccurrence = begins_with == "cooccurrence" and not training.get("parent")
        rate = min(0.008, (0.256 if is_by_cooccurrence else 1.024) / d_model)
        return {"learning_rate": share * rate, "matrix_learning_rate": matrix_rate}
    # The paper's schedule has its rate in the formula.
    return {"learning_rate": share * (1.0 if training.get("schedule") == "paper" else 1e-3)}


def choose_matrix_every(model: Mapping[str, Any], facts: Facts, batch_tokens: int) -> int:
    """Steps between Muon's updates: as few as leave it a tenth of the time, four at most.

    Orthogonalizing costs the same however small the batch. The momentum takes in every gradient
    meanwhile, so nothing is lost but how early it is heeded.
    """
    step = flops_per_epoch(model, facts) / facts.n_tgt_tokens * batch_tokens
    return max(1, min(4, math.ceil(9 * orthogonalizing_flops(model, facts) / step)))


def max_source_tokens(recipe: Recipe, longest: int) -> int:
    """Longest source to translate in one piece: the longest learned from, within sound limits.

    Positions that no training sentence reached are noise to the model. And what is too long for the
    target side would be cut off there. A longer source is translated in parts.

    Args:
        recipe: the model's shape and its decoding.
        longest: pieces of the longest training source.
    """
    most = max(MAX_SOURCE_TOKENS, recipe.decoding.max_length)
    if recipe.model.source_limit is not None:
        most = max(1, min(most, recipe.model.source_limit - 2))  # less a language tag and `<eos>`
    return min(most, max(MIN_SOURCE_TOKENS, longest))


def choose_size(
    facts: Facts,
    time_s: float,
    n_tokens_by_steps: float = 0.0,
    presets: Mapping[str, Mapping[str, Any]] = PRESETS,
) -> str:
    """The largest preset that learns from enough tokens.

    Args:
        facts: of corpus and machine.
        time_s: the time given; on a faster machine a larger model learns enough in it.
        n_tokens_by_steps: target tokens of a run that steps alone limit; it gets `small` at most,
            because nothing says how long a larger model may take. 0 = the time decides.
        presets: those of the model's family.
    """
    fitting = "tiny"
    for name in ("small",) if n_tokens_by_steps else ("small", "base", "big"):
        n_tokens_by_time = expected_epochs(presets[name], facts, time_s) * facts.n_tgt_tokens
        n_tokens = n_tokens_by_steps or n_tokens_by_time
        if n_tokens >= MIN_TOKENS_PER_WEIGHT * sum(weights_met(presets[name], facts)):
            fitting = name
    # Fewer pairs than this do not fill a larger model, however long it trains.
    ceilings = {"small": 0, "base": 300_000, "big": 3_000_000}
    while facts.n_pairs < ceilings.get(fitting, 0):
        fitting = {"base": "small", "big": "base"}[fitting]
    return fitting


def choose_dropout(epochs: float) -> float:
    """More dropout the more often the same sentences come by: 0.1 up to 5 epochs, 0.3 from 40 on.

    Between them it rises with the logarithm of the epochs, so that a speed measured a tenth higher
    or lower changes it by 0.01 at most.
    """
    low, high = 5.0, 40.0
    share = math.log(max(low, min(high, epochs)) / low) / math.log(high / low)
    return round(0.1 + 0.2 * share, 2)


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> Values:
    """`base` with the values of `over` laid on top, section by section."""
    merged = dict(base)
    for key, value in over.items():
        is_section = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = merge(merged[key], value) if is_section else value
    return merged
