"""The log-probabilities of given targets: of whole pairs, and of the next token."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heed.model.interface import Decodable, Floats, Ids, largest


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoredToken:
    """A token that may come next.

    Attributes:
        id: its target id.
        probability: by the model, 0 to 1; forbidden ids keep their share.
        log_prob: the same as a natural log.
    """

    id: int
    probability: float
    log_prob: float


def score_pairs(model: Decodable, src: Ids, tgt_in: Ids, tgt_out: Ids, *, pad_id: int) -> Floats:
    """Log-probs of given targets, token by token (teacher forcing).

    Args:
        model: anything that can be decoded, in eval mode.
        src: padded source ids, `(batch, src_len)`.
        tgt_in: padded target ids that begin with `<bos>`, `(batch, tgt_len)`.
        tgt_out: padded target ids that end with `<eos>`, `(batch, tgt_len)`.
        pad_id: fills the shorter rows.

    Returns:
        Natural log-probs of `tgt_out`, 0 where it is padding, `(batch, tgt_len)`.
    """
    next_tokens = model.teacher_forced(src, tgt_in)
    log_probs = next_tokens.log_probs_of(tgt_out.reshape(-1, 1)).reshape(tgt_out.shape)
    return np.where(tgt_out == pad_id, np.float32(0.0), log_probs)


def next_token(
    model: Decodable,
    src: Ids,
    prefixes: Sequence[Sequence[int]],
    *,
    count: int,
    bos_id: int,
    pad_id: int,
    forbidden: Sequence[int] = (),
) -> list[list[ScoredToken]]:
    """The tokens that may follow a prefix, most probable first.

    Args:
        model: anything that can be decoded, in eval mode.
        src: padded source ids, `(batch, src_len)`.
        prefixes: target ids so far without `<bos>`, one list a source.
        count: tokens for each source; fewer if the vocabulary is smaller.
        bos_id: the target token before the first.
        pad_id: fills shorter prefixes.
        forbidden: ids that are left out.

    Source: p(next word | source, words so far) is what training fits; Bengio et al. 2003.
    """
    if not prefixes:
        return []
    width = max(map(len, prefixes)) + 1
    tgt_in = np.full((len(prefixes), width), pad_id)
    tgt_in[:, 0] = bos_id
    for row, prefix in zip(tgt_in, prefixes, strict=True):
        row[1 : len(prefix) + 1] = prefix
    last = [row * width + len(prefix) for row, prefix in enumerate(prefixes)]
    log_probs = model.teacher_forced(src, tgt_in).all_log_probs()[last]
    log_probs[:, sorted(set(forbidden))] = -math.inf
    values, ids = largest(log_probs, count)
    return [
        [
            ScoredToken(id=token, probability=probability, log_prob=log_prob)
            for token, probability, log_prob in zip(*columns, strict=True)
            if probability > 0.0
        ]
        for columns in zip(ids.tolist(), np.exp(values).tolist(), values.tolist(), strict=True)
    ]
