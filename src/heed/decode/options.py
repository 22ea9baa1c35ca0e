"""All options of decoding, checked when they are set."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Annotated, Any

import numpy as np

from heed.config import Choices, Range, check
from heed.decode.early_stopping import EARLY_STOPPING
from heed.decode.length_penalty import LENGTH_FORMULAS
from heed.errors import ConfigError

_MOST_STORED = {
    "beam_size": 64,
    "n_best": 64,
    "max_length_factor": 20.0,
    "max_length_offset": 256.0,
}
"""Largest values that a model folder may set. A folder may come from anywhere, and a word must not
take minutes: with these it takes at most about 300 steps of 64 hypotheses."""
_SAMPLING_ONLY = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}


@dataclass(frozen=True, kw_only=True)
class DecodeOptions:
    """Options of a search. Lengths count target tokens, log-probs are natural.

    Attributes:
        beam_size: partial hypotheses kept at each step, 1 to 1024. 1 is greedy search, whatever
            `early_stopping` says. Not used by sampling. Source: Sutskever et al. 2014.
        n_best: hypotheses returned for each source, best first, 1 to `beam_size`; with `sample`,
            independent samples, 1 to 1024. Fewer come back only if the search found fewer.
        length_penalty: strength of the length penalty, 0 (neutral) to 10. Larger favors longer
            answers.
        length_formula: formula from the log-prob, which favors short answers, to a score: `gnmt`,
            `power` or `none` (neutral). Formulas and sources in `length_penalty.py`.
        early_stopping: when a beam search may stop before the length limit: `first`, `bound` or
            `never` (neutral). Rules and sources in `early_stopping.py`.
        max_length: most tokens predicted, `<eos>` included, 1 to 4096: each costs more than the
            one before, and no model learns positions that far. A hypothesis cut here has the
            status `max_length` and ranks below every complete one.
        max_length_factor: with `max_length_offset`, a limit that depends on the source:
            `max_length_factor * src_len + max_length_offset` tokens (after a forced prefix), where
            `src_len` counts every source id given. 0 to 100. The lower limit applies.
        max_length_offset: see `max_length_factor`; 0 to 4096. At least one token is predicted.
        min_length: tokens before `<eos>` is allowed, 0 (neutral) to below `max_length`.
        sample: draw tokens at random instead of searching for the most probable.
        temperature: log-probs are divided by it before sampling, 0.001 to 1000. 1.0 is neutral,
            below is safer, above is wilder. Source: Ackley et al. 1985.
        top_k: sample among the `top_k` most probable tokens; 0 (neutral) is all, 1 is greedy.
            Source: Fan et al. 2018, section 5.1.
        top_p: sample among the smallest set of most probable tokens whose total probability is
            above `top_p`, after `top_k`; 0 to 1 (neutral). 0 is greedy.
            Source: Holtzman et al. 2020, section 3.1.
        min_p: sample among tokens at least `min_p` times as probable as the best one, after the
            other filters; 0 (neutral) to 1. Source: Nguyen et al. 2024.
        seed: with the key of a sentence, decides all its random draws, 0 to 2**64 - 1.
        no_repeat_ngram_size: no n-gram of this size occurs twice in a hypothesis; 0 (neutral)
            to 1000. Source: Paulus et al. 2018, section 2.5.
        repetition_penalty: log-probs of tokens already in the hypothesis are multiplied by it, 1
            (neutral) to 100. It changes search and score; token log-probs stay the model's own.
            Source: Keskar et al. 2019, section 4.1, there on logits, whose sign is arbitrary.
        suppress: target ids never produced. Empty is neutral.

    Raises:
        ConfigError: a value is out of its range, or would have no effect.
    """

    beam_size: Annotated[
        int, Range(1, 1024, "Use 1 for greedy search, 4 or 5 for translation.")
    ] = 5
    n_best: Annotated[int, Range(1, 1024, "Use 1 for the best hypothesis only.")] = 1
    length_penalty: Annotated[float, Range(0.0, 10.0, "Use 0.6 with gnmt, 1.0 with power.")] = 0.6
    length_formula: Annotated[str, Choices(LENGTH_FORMULAS)] = "gnmt"
    early_stopping: Annotated[str, Choices(EARLY_STOPPING)] = "first"
    max_length: Annotated[int, Range(1, 4096, "256 suits sentences.")] = 256
    max_length_factor: Annotated[
        float, Range(0.0, 100.0, "Use 2.0 for languages of like length.")
    ] = 2.0
    max_length_offset: Annotated[float, Range(0.0, 4096.0, "Use 20 for sentences.")] = 20.0
    min_length: Annotated[int, Range(0, 4096, "Use 0 for no minimum.")] = 0
    sample: bool = False
    temperature: Annotated[
        float, Range(1e-3, 1e3, "Use 1.0 for the model's probabilities, less for likelier tokens.")
    ] = 1.0
    top_k: Annotated[int, Range(0, 10_000_000, "Use 0 to keep every token.")] = 0
    top_p: Annotated[float, Range(0.0, 1.0, "Use 1.0 to keep every token.")] = 1.0
    min_p: Annotated[float, Range(0.0, 1.0, "Use 0.0 to keep every token.")] = 0.0
    seed: Annotated[int, Range(0, 2**64 - 1, "Any whole number from 0 will do.")] = 0
    no_repeat_ngram_size: Annotated[
        int, Range(0, 1000, "Use 0 to allow repeats, 3 or 4 to stop loops.")
    ] = 0
    repetition_penalty: Annotated[float, Range(1.0, 100.0, "Use 1.0 for none.")] = 1.0
    suppress: tuple[Annotated[int, Range(0, 2**31 - 1)], ...] = ()

    def __post_init__(self) -> None:
        check(self, "decoding")
        object.__setattr__(self, "suppress", tuple(self.suppress))  # a file gives a list
        self._check_together()

    def source_limit(self, src_len: int) -> int:
        """The limit that depends on the source, from 1."""
        return max(1, int(self.max_length_factor * src_len + self.max_length_offset))

    def _check_together(self) -> None:
        if self.min_length >= self.max_length:
            raise ConfigError(
                f"decoding.min_length must be below decoding.max_length ({self.max_length}), "
                f"but is {self.min_length}. Raise decoding.max_length or lower decoding.min_length."
            )
        if self.sample:
            return
        if self.n_best > self.beam_size:
            raise ConfigError(
                f"decoding.n_best must be at most decoding.beam_size ({self.beam_size}), "
                f"but is {self.n_best}. Raise decoding.beam_size or lower decoding.n_best."
            )
        for name, neutral in _SAMPLING_ONLY.items():
            if getattr(self, name) != neutral:
                raise ConfigError(
                    f"decoding.{name} must be {neutral} unless decoding.sample is on, but is "
                    f"{getattr(self, name)!r}. "
                    f"Turn decoding.sample on or leave decoding.{name} out."
                )


def with_new_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of stored options, with the names of an older heed replaced.

    Its `length_penalty` was the formula, and `alpha` the strength.
    """
    values = dict(values)
    if isinstance(values.get("length_penalty"), str):
        values["length_formula"] = values.pop("length_penalty")
    if "alpha" in values and "length_penalty" not in values:
        values["length_penalty"] = values.pop("alpha")
    return values


def options_from(base: DecodeOptions, changes: Mapping[str, Any]) -> DecodeOptions:
    """`base` with some options changed.

    Raises:
        ConfigError: an option does not exist or its value is out of range.
    """
    if not changes:
        return base
    renamed = with_new_names(changes)
    if renamed.keys() != changes.keys():
        warnings.warn(
            "alpha is now called length_penalty, and the old length_penalty length_formula. The "
            "old names will be removed in the next version of heed.",
            FutureWarning,
            stacklevel=3,
        )
    changes = renamed
    known = [option.name for option in fields(DecodeOptions)]
    for name in changes:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else f". Options: {', '.join(known)}."
            raise ConfigError(f"{name} is not a decoding option{hint}")
    plain = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in changes.items()
    }
    return replace(base, **plain)


def require_storable(
    options: DecodeOptions,
    *,
    where: str = "where it is stored with a model",
    remedy: str = " A single call may ask for more.",
) -> None:
    """Refuse values that a call may set, but not a model folder or a client.

    Args:
        options: the options to check.
        where: the place of the limit, for the error.
        remedy: the end of the error.

    Raises:
        ConfigError: an option is above its limit there.
    """
    for name, most in _MOST_STORED.items():
        if (value := getattr(options, name)) > most:
            raise ConfigError(
                f"decoding.{name} must be at most {most} {where}, but is {value!r}.{remedy}"
            )


def with_alternatives(options: DecodeOptions, count: int) -> DecodeOptions:
    """`options` that find `count` more translations, from 0; the beam grows only if it must.

    All hypotheses of a beam are returned, so that enough are left after equal texts are dropped.
    """
    if not count:
        return options
    if options.sample:
        return replace(options, n_best=max(options.n_best, count + 1))
    beam_size = max(options.beam_size, count + 1)
    return replace(options, beam_size=beam_size, n_best=beam_size)
