"""The reference of a pronoun, as far as attention and interventions show it.

In "The animal didn't cross the street because it was too tired" the words decide which noun "it"
refers to. If the target language marks gender, the translation shows the model's decision.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from heed.errors import UsageError
from heed.explain.causes.attribution import erased_rows
from heed.explain.causes.effects import array
from heed.explain.causes.pair import Pair
from heed.model.interface import Floats
from heed.model.trace import recording
from heed.text.spans import BLANK_SIGN


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A pronoun of the source and its translation.

    Attributes:
        words: source words that could decide, as given.
        attention: attention of the pronoun to each word in the encoder's self-attention, summed
            over the word's pieces, `(n_words, n_layers, n_heads)`; of a model without it,
            `(n_words, 0, 0)`.
        chosen: the target piece in the translation.
        rival: the piece for the other reference.
        preference: log p(chosen) - log p(rival), in nats.
        lost: decrease of the preference with `<unk>` in place of each word, `(n_words,)`.
    """

    words: list[str]
    attention: Floats
    chosen: str
    rival: str
    preference: float
    lost: Floats


@torch.no_grad()
def reference(
    pair: Pair, pronoun: str, words: Sequence[str], *, chosen: str, rival: str
) -> Reference:
    """Measure which words decide the reference of a pronoun.

    Args:
        pair: a sentence with the pronoun, and its translation.
        pronoun: a piece of the source, without the mark of a blank: `it`.
        words: source words, each a single piece.
        chosen: the piece of the translation that depends on the reference: `il`.
        rival: the piece for another reference: `elle`.

    Raises:
        UsageError: a piece does not occur.

    Source: the contrast with a rival piece, Yin and Neubig 2022, "Interpreting Language Models with
        Contrastive Explanations".
    """
    at = _place(pair.source_tokens, pronoun)
    places = [_place(pair.source_tokens, word) for word in words]
    position = _place(pair.expected_tokens, chosen)
    with recording(pair.network, "self_attention.weights") as caught:
        pair.log_probs()
    weights = [array(each[0, :, at]) for name, each in caught.items() if name.startswith("encoder")]
    chosen_id, rival_id = pair.tgt_out_ids[position], _rival(pair, position, rival)

    def preference(log_probs: torch.Tensor) -> torch.Tensor:
        return log_probs[:, position, chosen_id] - log_probs[:, position, rival_id]

    nothing = np.zeros((0, 0, len(pair.src_ids)), np.float32)
    attention = np.stack(weights) if weights else nothing
    rows = erased_rows(pair)[places]
    before = preference(pair.log_probs())
    after = preference(pair.log_probs_of(rows, pair.rows(pair.tgt_in_ids, len(rows))))
    return Reference(
        words=[*words],
        attention=attention[:, :, places].transpose(2, 0, 1),
        chosen=chosen,
        rival=rival,
        preference=float(before),
        lost=array(before - after),
    )


def _place(tokens: Sequence[str], word: str) -> int:
    """The index of a word that is a single piece."""
    for place, token in enumerate(tokens):
        if token.removeprefix(BLANK_SIGN) == word:
            return place
    raise UsageError(f"{word} must be one of the tokens: {' '.join(tokens)}")


def _rival(pair: Pair, position: int, rival: str) -> int:
    """The id of a piece, with the mark of a blank if the expected piece has it."""
    piece = BLANK_SIGN * pair.expected_tokens[position].startswith(BLANK_SIGN) + rival
    pieces = pair.tgt_vocab.pieces(range(pair.tgt_vocab.size))
    if piece not in pieces:
        raise UsageError(f"{rival} is not in the target vocabulary.")
    return pieces.index(piece)
