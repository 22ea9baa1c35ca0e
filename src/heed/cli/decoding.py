"""`heed evaluate --decoding`: a model's loops, candidate tokens and exposure bias."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from heed.cli.command import Session
from heed.cli.terminal import echo
from heed.cli.waiting import Waiting

if TYPE_CHECKING:
    from heed.translate.translator import Translator

NUCLEUS = 0.9
N_SAMPLED = 60
"""Texts whose samples are recorded step by step, which is slower than translating them."""


def show_decoding(
    session: Session,
    translator: "Translator",
    src: Sequence[str],
    tgt: Sequence[str],
    target_lang: str | None,
    *,
    as_json: bool,
) -> None:
    """Measure the effects of decoding strategies on these lines, and print them."""
    import numpy as np

    from heed.explain.decoding.prefixes import exposure_bias, exposure_lines
    from heed.explain.decoding.strategies import allowed_per_step, loop_lines, loop_rates

    sampled = src[:N_SAMPLED]
    into: Any = {"target_lang": target_lang}
    with Waiting(session) as waiting:

        def shown(phase: str, of: int) -> Callable[[int], None]:
            return lambda n_done: waiting(phase, n_done, of, "lines")

        def translating(name: str, n_done: int) -> None:
            shown(f"translating with {name}", len(src))(n_done)

        rates = loop_rates(translator, src, **into, progress=translating)
        sampling = shown("sampling token by token", len(sampled))
        drawn = allowed_per_step(translator, sampled, top_p=NUCLEUS, **into, progress=sampling)
        comparing = shown("comparing with the references", len(src))
        bias = exposure_bias(translator, src, tgt, **into, progress=comparing)
    sizes = np.array([size for text in drawn for size in text])
    if as_json:
        record = {
            "loops": [asdict(each) | {"rate": each.rate} for each in rates],
            "allowed": {"top_p": NUCLEUS, "per_step": drawn},
            "exposure_bias": asdict(bias) | {"loss": bias.loss, "accuracy": bias.accuracy},
        }
        echo(json.dumps(record, ensure_ascii=False))
        return
    echo("Loops: a phrase three times in a row")
    for line in loop_lines(rates):
        echo(line)
    echo(
        f"\nTokens that can be drawn at a step, with top-p {NUCLEUS}: from {sizes.min():,} to "
        f"{sizes.max():,}, {np.median(sizes):,.0f} in the median ({len(sampled)} texts)"
    )
    echo("\nExposure bias: the reference's tokens, after the reference and after the model's own")
    for line in exposure_lines(bias):
        echo(line)
