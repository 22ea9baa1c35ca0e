"""The divisor of a hypothesis's score by its length: one function for each formula.

Each takes numbers or arrays. `beam.py` applies them; the limits of length are in `options.py`.
"""

from collections.abc import Callable
from typing import Any

LengthPenalty = Callable[[Any, float], Any]
"""`(length, alpha) -> divisor`; `length` counts predicted tokens, `<eos>` included, from 1."""


def length_penalty_gnmt(length: Any, alpha: float) -> Any:
    """`((5 + length) / 6) ** alpha`: gentle for short sentences, neutral at alpha 0.

    Source: Wu et al. 2016, "Google's Neural Machine Translation System", equation 14.
    """
    return ((5.0 + length) / 6.0) ** alpha


def length_penalty_power(length: Any, alpha: float) -> Any:
    """`length ** alpha`: alpha 1 makes the score a mean log-prob per token, alpha 0 is neutral.

    Source: fairseq's `lenpen`, Marian's `normalize`; Jean et al. 2015 for alpha 1.
    """
    return (1.0 * length) ** alpha


def length_penalty_none(length: Any, alpha: float) -> Any:
    """1 for every length, whatever `alpha` is: the score is the plain log-prob.

    Source: Sutskever et al. 2014, section 3.2.
    """
    return (1.0 * length) ** 0.0


LENGTH_FORMULAS: dict[str, LengthPenalty] = {
    "gnmt": length_penalty_gnmt,
    "power": length_penalty_power,
    "none": length_penalty_none,
}
