"""A feed-forward network as a memory: the features that fire at a position, and what they add.

The rows of W_1 are keys, which are compared with the state of a position. The columns of W_2 are
values, which are added in proportion to the match.

Source: Geva et al. 2021, "Transformer Feed-Forward Layers Are Key-Value Memories"; Geva et al.
2022, "Transformer Feed-Forward Layers Build Predictions by Promoting Concepts in the Vocabulary
Space".
"""

from dataclasses import dataclass

import torch

from heed.errors import UsageError
from heed.explain.causes.effects import array
from heed.explain.causes.pair import Pair
from heed.explain.causes.parts import Feature, features_of, within
from heed.model.interface import Floats
from heed.model.trace import recording
from heed.translate.arguments import require_text, require_whole


@dataclass(frozen=True, kw_only=True)
class Firing:
    """A feature at one position.

    Attributes:
        feature: the feature.
        activation: its activation at this position.
        length: length of the vector that it adds: |activation| times that of its value vector.
        raised: the pieces whose logits it increases most, most first.
        raised_by: the increases, as if no norm followed, `(k,)`.
        lowered: the pieces whose logits it decreases most.
        lowered_by: the changes, `(k,)`; negative.
    """

    feature: Feature
    activation: float
    length: float
    raised: list[str]
    raised_by: Floats
    lowered: list[str]
    lowered_by: Floats


@torch.no_grad()
def firing(
    pair: Pair, position: int, feed_forward: str, *, n_features: int = 5, k: int = 5
) -> list[Firing]:
    """The features of a decoder layer that add the longest vectors at a position.

    Args:
        pair: the sentence.
        position: target position, from 0; the piece read there is `pair.target_tokens[position]`.
        feed_forward: its name, such as `decoder.1.feed_forward`.
        n_features: number of features.
        k: number of pieces.

    Returns:
        The features, the longest vector first.

    Raises:
        UsageError: the network or the position does not exist, or a number is not a whole one
            from 1.
    """
    require_whole(n_features, "n_features", 1)
    require_whole(k, "k", 1)
    require_text(feed_forward=feed_forward)
    if feed_forward not in features_of(pair) or not feed_forward.startswith("decoder"):
        raise UsageError(f"There is no feed-forward network of the decoder named {feed_forward}.")
    n_tgt = len(pair.tgt_in_ids)
    position = within(position, n_tgt, "position")
    with recording(pair.network, f"{feed_forward}.activated") as caught:
        pair.log_probs()
    # In a decoder-only model the source comes first.
    activations = caught[f"{feed_forward}.activated"][0, position - n_tgt]
    values = pair.network.get_parameter(f"{feed_forward}.contract.weight")
    lengths = activations.abs() * values.norm(dim=0)
    best, features = lengths.topk(min(n_features, len(lengths)))
    written = activations[features, None] * (pair.network.output.weight @ values[:, features]).mT
    found = []
    for length, feature, logits in zip(best, features.tolist(), written, strict=True):
        n_pieces = min(k, len(logits))
        up, down = logits.topk(n_pieces), logits.topk(n_pieces, largest=False)
        found.append(
            Firing(
                feature=Feature(feed_forward=feed_forward, feature=feature),
                activation=float(activations[feature]),
                length=float(length),
                raised=pair.tgt_vocab.pieces(up.indices.tolist()),
                raised_by=array(up.values),
                lowered=pair.tgt_vocab.pieces(down.indices.tolist()),
                lowered_by=array(down.values),
            )
        )
    return found
