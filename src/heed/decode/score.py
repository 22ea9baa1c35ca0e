"""What the model thinks of given words: of whole pairs, and of the next token.

Not a search: nothing is looked for here. Read on in `search.py`, where it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from heed.decode.top import top
from heed.model.interface import Decodable


@dataclass(frozen=True, kw_only=True, slots=True)
class NextToken:
    """A token that may come next.

    Attributes:
        id: its target id.
        probability: what the model gives it, 0 to 1; forbidden ids keep their share.
        log_prob: the same as a natural log.
    """

    id: int
    probability: float
    log_prob: float


@torch.inference_mode()
def score_pairs(
    model: Decodable, src: Tensor, tgt_in: Tensor, tgt_out: Tensor, *, pad_id: int
) -> Tensor:
    """Tell how probable given targets are, token by token (teacher forcing).

    Args:
        model: anything that can be decoded, in eval mode.
        src: padded source ids, `(batch, src_len)`.
        tgt_in: padded target ids that begin with `<bos>`, `(batch, tgt_len)`.
        tgt_out: padded target ids that end with `<eos>`, `(batch, tgt_len)`.
        pad_id: what all of them are padded with.

    Returns:
        Natural log-probs of `tgt_out`, 0 where it is padding, `(batch, tgt_len)`.
    """
    logits = model.forced(src, tgt_in)
    losses = functional.cross_entropy(
        logits.flatten(0, 1), tgt_out.flatten(), ignore_index=pad_id, reduction="none"
    )
    return -losses.view_as(tgt_out)


@torch.inference_mode()
def next_token(
    model: Decodable,
    src: Tensor,
    prefixes: Sequence[Sequence[int]],
    *,
    count: int,
    bos_id: int,
    pad_id: int,
    forbidden: Sequence[int] = (),
) -> list[list[NextToken]]:
    """Tell which tokens may come next after a prefix, likeliest first.

    Args:
        model: anything that can be decoded, in eval mode.
        src: padded source ids, `(batch, src_len)`.
        prefixes: target ids so far without `<bos>`, one list a source.
        count: tokens to tell for each source; fewer if the vocabulary is smaller.
        bos_id: the target token before the first.
        pad_id: what shorter prefixes are padded with.
        forbidden: ids not to tell.

    Source: p(next word | source, words so far) is what training fits; Bengio et al. 2003.
    """
    lengths = src.new_tensor([len(prefix) for prefix in prefixes])
    longest = int(lengths.max()) if len(lengths) else 0
    tgt_in = torch.tensor(
        [[bos_id, *prefix, *[pad_id] * (longest - len(prefix))] for prefix in prefixes],
        dtype=torch.long,
        device=src.device,
    ).view(len(prefixes), longest + 1)
    logits = model.forced(src, tgt_in)
    rows = torch.arange(len(lengths), device=src.device)
    log_probs = logits[rows, lengths].log_softmax(dim=-1)
    log_probs[:, sorted(set(forbidden))] = -torch.inf
    values, ids = top(log_probs, count)
    return [
        [
            NextToken(id=token, probability=probability, log_prob=log_prob)
            for token, probability, log_prob in zip(*columns, strict=True)
            if probability > 0.0
        ]
        for columns in zip(ids.tolist(), values.exp().tolist(), values.tolist(), strict=True)
    ]
