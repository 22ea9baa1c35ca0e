"""What strategies of decoding do over many sentences: loops, and how many tokens could be drawn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heed.explain.decoding.recorded import record_search
from heed.translate.translator import Translator

WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"beam_size": 1},
    "beam 5": {"beam_size": 5},
    "sample": {"sample": True},
    "top-k 10": {"sample": True, "top_k": 10},
    "top-p 0.9": {"sample": True, "top_p": 0.9},
}
"""Strategies to compare, each with its options."""


@dataclass(frozen=True, kw_only=True)
class LoopRate:
    """How often the translations of one strategy loop.

    Attributes:
        name: of the strategy.
        n_texts: translated.
        n_loops: translations with a loop.
        n_cut: translations that reached the length limit.
    """

    name: str
    n_texts: int
    n_loops: int
    n_cut: int

    @property
    def rate(self) -> float:
        """Share of the translations with a loop, 0 to 1."""
        return self.n_loops / self.n_texts if self.n_texts else 0.0


def has_loop(tokens: Sequence[object], *, times: int = 3) -> bool:
    """Whether some phrase, of one token or more, stands several times in a row.

    Args:
        tokens: of an output.
        times: how often in a row make a loop, at least 2.

    Source: Holtzman et al. 2020, table 1, there for phrases of two tokens or more at the end of a
        text; a translator also loops on single words, and may stop afterwards.
    """
    for length in range(1, len(tokens) // times + 1):
        run = 0
        for place in range(length, len(tokens)):
            run = run + 1 if tokens[place] == tokens[place - length] else 0
            if run == length * (times - 1):
                return True
    return False


def loop_rates(
    translator: Translator, texts: Sequence[str], ways: Mapping[str, Mapping[str, Any]] = WAYS
) -> list[LoopRate]:
    """How often each strategy loops on the same texts.

    Args:
        translator: to translate with.
        texts: in the source language.
        ways: options of decoding, by the name of the strategy.
    """
    rates = []
    for name, options in ways.items():
        found = translator.translate(texts, **options)
        rates.append(
            LoopRate(
                name=name,
                n_texts=len(found),
                n_loops=sum(has_loop(each.tokens) for each in found),
                n_cut=sum(each.status == "max_length" for each in found),
            )
        )
    return rates


def allowed_per_step(
    translator: Translator, texts: Sequence[str], **options: Any
) -> list[list[int]]:
    """How many tokens could be drawn at each step of a sample: the k of top-p changes by the step.

    Args:
        translator: to translate with.
        texts: sentences in the source language.
        **options: fields of `DecodeOptions` beside `sample`.

    Returns:
        A list for each text, with a number for each step.

    Source: Holtzman et al. 2020, section 3.1.
    """
    return [
        [
            step.draw.n_allowed
            for step in record_search(translator, text, sample=True, **options).record.steps
            if step.draw
        ]
        for text in texts
    ]


def loop_lines(rates: Sequence[LoopRate]) -> list[str]:
    """A table of loop rates as lines of text."""
    width = max((len(each.name) for each in rates), default=0)
    return [
        f"{each.name:<{width}}  {each.rate:7.2%} loop ({each.n_loops} of {each.n_texts}), "
        f"{each.n_cut} cut at the limit"
        for each in rates
    ]


def allowed_lines(pieces: Sequence[str], sizes: Sequence[int]) -> list[str]:
    """The k of every step beside the token drawn, as lines of text.

    Args:
        pieces: drawn, one a step.
        sizes: tokens that could have been drawn, one a step.
    """
    width = max(map(len, pieces), default=0)
    return [f"{piece:<{width}}  {size:>6}" for piece, size in zip(pieces, sizes, strict=True)]
