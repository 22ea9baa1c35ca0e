"""What the model thinks of given words: of whole pairs, of the next token, of other ways to go on.

Not a search for the best answer. Read on in `search.py`, which `alternatives` calls.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.decode.state import Hypothesis
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


@torch.inference_mode()
def alternatives(
    model: Decodable,
    src: Tensor,
    prefix: Sequence[int],
    options: DecodeOptions,
    *,
    count: int,
    bos_id: int,
    eos_id: int,
    pad_id: int,
    forbidden: Sequence[int] = (),
) -> list[Hypothesis]:
    """Tell how else one translation may go on: each likely next token, continued by a search.

    Args:
        model: anything that can be decoded, in eval mode.
        src: one source, `(1, src_len)`.
        prefix: target ids before the place asked about.
        options: how to continue; the best hypothesis of each is taken.
        count: next tokens to try.
        bos_id: the target token before the first.
        eos_id: the target token that ends a hypothesis; it may be one of the alternatives.
        pad_id: what `src` is padded with.
        forbidden: ids never produced.

    Returns:
        One hypothesis for each next token, in the order of the tokens' probabilities.

    Raises:
        DataError: the prefix leaves no room below `max_length`.
    """
    control = sorted({*forbidden} - {eos_id} | {*options.suppress})
    [following] = next_token(
        model, src, [prefix], count=count, bos_id=bos_id, pad_id=pad_id, forbidden=control
    )
    found = decode(
        model,
        src.expand(len(following), -1),
        replace(options, n_best=1),
        bos_id=bos_id,
        eos_id=eos_id,
        pad_id=pad_id,
        forbidden=forbidden,
        prefixes=[[*prefix, token.id] for token in following],
    )
    return [best for best, *_ in found]
