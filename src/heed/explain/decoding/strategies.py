"""Measure decoding strategies over many sentences: loops, and the number of candidate tokens."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from heed.explain.decoding.record import SearchRecord
from heed.explain.decoding.recorded import record_search
from heed.explain.decoding.tree import memory_lines
from heed.explain.render import width_of
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
        name: name of the strategy.
        n_texts: number of translations.
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
    """Whether some phrase, of one token or more, is repeated several times in a row.

    Args:
        tokens: tokens of an output.
        times: number of consecutive occurrences that make a loop, at least 2.

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
    translator: Translator,
    texts: Sequence[str],
    ways: Mapping[str, Mapping[str, Any]] = WAYS,
    *,
    target_lang: str | None = None,
    progress: Callable[[str, int], object] = lambda name, n_done: None,
) -> list[LoopRate]:
    """How often each strategy loops on the same texts.

    Args:
        translator: the translator.
        texts: sentences in the source language.
        ways: decoding options, by the name of the strategy.
        target_lang: one of the model's target languages.
        progress: called with the name of a strategy and the number of its translations so far.
    """
    rates = []
    for name, options in ways.items():
        progress(name, 0)
        found = []
        for each in translator.translate_stream(texts, target_lang=target_lang, **options):
            found.append(each)
            progress(name, len(found))
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
    translator: Translator,
    texts: Sequence[str],
    *,
    target_lang: str | None = None,
    progress: Callable[[int], object] = lambda n_done: None,
    **options: Any,
) -> list[list[int]]:
    """The number of tokens that could be drawn at each step of a sample: the k of top-p varies.

    Args:
        translator: the translator.
        texts: sentences in the source language.
        target_lang: one of the model's target languages.
        progress: called with the number of texts so far.
        **options: fields of `DecodeOptions` beside `sample`.

    Returns:
        A list for each text, with a number for each step.

    Source: Holtzman et al. 2020, section 3.1.
    """
    found: list[list[int]] = []
    for text in texts:
        progress(len(found))
        drawn = record_search(translator, text, target_lang=target_lang, sample=True, **options)
        found.append([step.draw.n_allowed for step in drawn.record.steps if step.draw])
    return found


def loop_lines(rates: Sequence[LoopRate]) -> list[str]:
    """A table of loop rates as lines of text."""
    width = max((len(each.name) for each in rates), default=0)
    return [
        f"{each.name:<{width}}  {each.rate:7.2%} loop ({each.n_loops} of {each.n_texts}), "
        f"{each.n_cut} cut at the limit"
        for each in rates
    ]


def sample_lines(record: SearchRecord) -> list[str]:
    """A sample as lines of text: one step per line, with the distribution before and after filters.

    A line below names the remembered pair that guided the search, if there is one.

    Args:
        record: record of a sampling search.
    """
    rows = []
    for step in record.steps:
        assert step.draw is not None
        [drawn] = [each for each in step.candidates if each.fate != "pruned"]
        first, last = step.draw.stages[0], step.draw.stages[-1]
        filters = ", ".join(
            f"{each.name} {each.value:g} leaves {each.n_allowed:,}"
            for stage, each in pairwise(step.draw.stages)
            if each.value is not None and each.n_allowed < stage.n_allowed
        )
        bits = f"{first.entropy:.2f} -> {last.entropy:.2f}"
        before, after = math.exp(drawn.log_prob), step.draw.probability
        chances = (f"{before:.4f}", f"{after:.4f}")
        rows.append((drawn.piece, f"{last.n_allowed:,}", *chances, bits, filters))
    heads = ("drawn", "of", "p", "filtered", "bits", "filters")
    table = [heads, *rows]
    widths = [max(width_of(row[column]) for row in table) for column in range(len(heads))]
    lines = [
        "  ".join(
            text + blanks if column in (0, 5) else blanks + text
            for column, text in enumerate(row)
            for blanks in [" " * (widths[column] - width_of(text))]
        ).rstrip()
        for row in table
    ]
    return lines + memory_lines(record.match)
