"""The cost of training a model: operations of an epoch, and the speed of this machine."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from heed.errors import ConfigError
from heed.model.families import DEFAULT, family_named, plan
from heed.model.plan import Weight, operations
from heed.text.vocab import SPECIAL_IDS
from heed.train.step.config import POLYNOMIALS

EFFICIENCY = 0.5
"""Share of the matrix-product peak that training reaches, updates included: 0.56 to 0.7 where MKL
multiplies, 0.36 (`tiny`) to 0.55 (`base`) where oneDNN does and all the rest counts for more."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The facts by which a model is chosen.

    Attributes:
        src_vocab_size: pieces of the source vocabulary.
        tgt_vocab_size: pieces of the target vocabulary.
        n_pairs: training pairs; in both directions each counts twice.
        n_made: those of them that a model has translated.
        n_src_tokens: source tokens of one epoch.
        n_tgt_tokens: target tokens of one epoch.
        gflops: billions of float32 operations a second in large matrix products, all threads.
        special_ids: `pad_id`, `bos_id` and `eos_id` of the vocabularies.
        is_guess: there is no corpus yet, so that the sizes of its vocabularies are guesses.
    """

    src_vocab_size: int
    tgt_vocab_size: int
    n_pairs: int
    n_src_tokens: int
    n_tgt_tokens: int
    gflops: float
    special_ids: Mapping[str, int] = field(default_factory=lambda: SPECIAL_IDS)
    n_made: int = 0
    is_guess: bool = False

    @property
    def n_real(self) -> int:
        """The pairs that no model has translated."""
        return self.n_pairs - self.n_made


UNKNOWN = Facts(
    src_vocab_size=8000,
    tgt_vocab_size=8000,
    n_pairs=30_000,
    n_src_tokens=500_000,
    n_tgt_tokens=500_000,
    gflops=100.0,
    is_guess=True,
)
"""Stand-in facts for a check of settings before the corpus is read."""


def countable(
    model: Mapping[str, Any], asked: Mapping[str, Any], facts: Facts
) -> Mapping[str, Any]:
    """The settings of a model whose operations are counted.

    Args:
        model: sizes, which are valid.
        asked: the user's settings of a model, not checked yet.
        facts: by which the model is chosen.

    Returns:
        `model` with the other settings of `asked`; without them if they are invalid, which is
        reported later.
    """
    whole = {**asked, **model}
    try:
        _planned(whole, facts)
    except ConfigError:
        return model
    return whole


def expected_epochs(model: Mapping[str, Any], facts: Facts, time_s: float) -> float:
    """Epochs that a model of these sizes trains in `time_s` on this machine."""
    return time_s * facts.gflops * 1e9 * EFFICIENCY / flops_per_epoch(model, facts)


def flops_per_epoch(model: Mapping[str, Any], facts: Facts) -> float:
    """Operations of one epoch: 6 for each weight and its tokens (2 forward, 4 backward)."""
    of_src, of_tgt = weights_met(model, facts)
    return 6.0 * (of_src * facts.n_src_tokens + of_tgt * facts.n_tgt_tokens)


def weights_met(model: Mapping[str, Any], facts: Facts) -> tuple[float, float]:
    """Number of weights multiplied with a source token, and with a target token."""
    return operations(_planned(model, facts))


def orthogonalizing_flops(model: Mapping[str, Any], facts: Facts) -> float:
    """Operations of one update of Muon: for n x m, n ≤ m, each polynomial 4 n² m + 2 n³."""
    total = 0.0
    for weight in _planned(model, facts):
        if weight.role == "matrix" and weight.tied_to is None:
            for block in weight.blocks:
                least, most = sorted((block.n_rows, weight.shape[1]))
                total += 4 * least**2 * most + 2 * least**3
    return len(POLYNOMIALS) * total


def _planned(model: Mapping[str, Any], facts: Facts) -> list[Weight]:
    """The weights of a model of these settings."""
    family = family_named(model.get("family", DEFAULT))
    return plan(family.outline(model, facts.src_vocab_size, facts.tgt_vocab_size))


def measure_gflops(device: Any, *, seconds: float = 0.3) -> float:
    """Billions of float32 operations a second that this device reaches in matrix products."""
    import torch

    from heed.model.fast.products import faster_products

    width = 1024
    a = torch.randn(width, width, device=device)
    best = math.inf
    stop_at = time.perf_counter() + seconds
    with faster_products():
        while time.perf_counter() < stop_at:
            started_at = time.perf_counter()
            (a @ a)[0, 0].item()
            best = min(best, time.perf_counter() - started_at)
    return 2 * width * width * width / best / 1e9
