"""Exposure bias: the effect of the tokens that a decoder reads.

In training, the decoder reads the reference; in use, its own output.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.decode.batching import batches, padded
from heed.decode.options import DecodeOptions
from heed.errors import DataError
from heed.model.interface import Ids
from heed.translate.lines import pairs_of
from heed.translate.parts import Chunk
from heed.translate.translator import Translator
from heed.translate.whole import read_pair, required


@dataclass(frozen=True, kw_only=True)
class PositionBias:
    """The two losses at one position.

    Attributes:
        position: of the token predicted, from 0.
        n_tokens: number of references with this position whose greedy translation reaches it.
        forced_loss: mean of −log p(reference token | reference before it).
        own_loss: mean of −log p(reference token | own translation before it).
        forced_accuracy: share of tokens that are the most probable after the reference.
        own_accuracy: share of tokens that are the most probable after the own translation.
    """

    position: int
    n_tokens: int
    forced_loss: float
    own_loss: float
    forced_accuracy: float
    own_accuracy: float


@dataclass(frozen=True, kw_only=True)
class ExposureBias:
    """How much worse a model predicts references after its own output than after the references.

    A translation that differs from the reference can still be right, so part of the difference is
    not an error.

    Attributes:
        total: all positions together; its `position` is -1.
        positions: each position, in order.
    """

    total: PositionBias
    positions: list[PositionBias]

    @property
    def loss(self) -> float:
        """Loss after the own translation minus loss after the reference."""
        return self.total.own_loss - self.total.forced_loss

    @property
    def accuracy(self) -> float:
        """Accuracy after the reference minus accuracy after the own translation."""
        return self.total.forced_accuracy - self.total.own_accuracy


def exposure_bias(
    translator: Translator,
    src: Sequence[str],
    tgt: Sequence[str],
    *,
    target_lang: str | None = None,
    progress: Callable[[int], object] = lambda n_done: None,
) -> ExposureBias:
    """Compare predictions after the reference and after the greedy translation, on the same tokens.

    Args:
        translator: the translator to measure.
        src: source lines.
        tgt: their translations.
        target_lang: one of the model's target languages.
        progress: called with the number of pairs so far.

    Raises:
        DataError: `src` and `tgt` differ in length, or no pair has a token.

    Source: Ranzato et al. 2016, "Sequence Level Training", section 1, names the problem.
    """
    src, tgt = pairs_of(src, tgt)
    reader, vocab = translator.reader, translator.tgt_vocab
    tag = reader.tag(target_lang)
    read = [
        required(reader, read_pair(reader, *pair, tag), tag, "translation")
        for pair in zip(src, tgt, strict=True)
    ]
    sources = [chunk.src_ids for chunk in read]
    wanted = [[*chunk.prefix, vocab.eos_id] for chunk in read]
    greedy = replace(translator.options, **_GREEDY)
    losses: list[tuple[int, float, float, bool, bool]] = []
    lengths = [max(map(len, pair)) for pair in zip(sources, wanted, strict=True)]
    n_done = 0
    for batch in batches(lengths, translator.batch_tokens, translator.batch_lines):
        progress(n_done)
        n_done += len(batch)
        losses += _batch_losses(
            translator, [sources[i] for i in batch], [wanted[i] for i in batch], greedy
        )
    if not losses:
        raise DataError("Measuring exposure bias needs at least one pair, but there is none.")
    table = np.array(losses, dtype=np.float64)
    positions = [
        _means(table[table[:, 0] == position], position)
        for position in range(int(table[:, 0].max()) + 1)
    ]
    return ExposureBias(total=_means(table, -1), positions=positions)


_GREEDY: dict[str, Any] = {"beam_size": 1, "n_best": 1, "sample": False} | {
    "temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0
}  # fmt: skip


def _batch_losses(
    translator: Translator, sources: list[list[int]], wanted: list[list[int]], greedy: DecodeOptions
) -> list[tuple[int, float, float, bool, bool]]:
    """The position, both losses and both hits of every token."""
    vocab = translator.tgt_vocab
    found = translator.searcher.decode(
        [Chunk(ids, [], key) for key, ids in enumerate(sources)], greedy
    )
    src = padded(sources, translator.src_vocab.pad_id)
    tgt_out = padded(wanted, vocab.pad_id)
    forced = _read(translator, src, [ids[:-1] for ids in wanted], tgt_out)
    own_ids = [answer.ids[: len(ids) - 1] for [answer], ids in zip(found, wanted, strict=True)]
    own = _read(translator, src, own_ids, tgt_out)
    return [
        (t, forced[0][row, t], own[0][row, t], forced[1][row, t], own[1][row, t])
        for row, ids in enumerate(own_ids)
        for t in range(min(len(ids), len(wanted[row]) - 1) + 1)
    ]


def _read(
    translator: Translator, src: Ids, prefixes: list[list[int]], tgt_out: Ids
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Loss of each wanted token after these prefixes, and whether it is the most probable."""
    vocab = translator.tgt_vocab
    tgt_in = np.full(tgt_out.shape, vocab.pad_id)
    for line, ids in zip(tgt_in, prefixes, strict=True):
        line[: len(ids) + 1] = [vocab.bos_id, *ids]
    following = translator.model.teacher_forced(src, tgt_in)
    losses = -following.log_probs_of(tgt_out.reshape(-1, 1)).reshape(tgt_out.shape)
    is_best = following.top_k(1)[1].reshape(tgt_out.shape) == tgt_out
    return losses, is_best


def _means(table: NDArray[np.float64], position: int) -> PositionBias:
    _, forced_loss, own_loss, forced_accuracy, own_accuracy = table.mean(axis=0).tolist()
    return PositionBias(
        position=position,
        n_tokens=len(table),
        forced_loss=forced_loss,
        own_loss=own_loss,
        forced_accuracy=forced_accuracy,
        own_accuracy=own_accuracy,
    )


def exposure_lines(found: ExposureBias, *, n_positions: int = 12) -> list[str]:
    """Exposure bias as lines of text: a table by position, and the total."""
    head = "position   tokens   loss: forced  own   accuracy: forced  own"
    rows = [*found.positions[:n_positions], found.total]
    return [
        head,
        *(
            f"{'all' if each.position < 0 else each.position:>8} {each.n_tokens:>8}"
            f"{each.forced_loss:>15.3f}{each.own_loss:>7.3f}"
            f"{each.forced_accuracy:>16.1%}{each.own_accuracy:>8.1%}"
            for each in rows
        ),
    ]
