"""The encoder-only Transformer: a vector for each token of a text, or one for the whole text.

Source: Devlin et al. 2019, "BERT", section 3; here one text without segments, and the mean of the
tokens in place of the vector of `[CLS]`.
"""

import torch
from torch import Tensor, nn

from heed.model.fast.dropout import Dropout
from heed.model.layers import EncoderLayer
from heed.model.network import TorchNetwork
from heed.model.plan import Weight
from heed.model.trace import see
from heed.model.transformer import Embedding


class EncoderOnly(TorchNetwork):
    """One stack that reads a text in both directions.

    Args:
        plan: its weights.
        embed: embedding of the text.
        encoder: the layers, first to last.
        encoder_norm: after the last layer (pre-norm), or the identity (post-norm).
        output: linear map to the pieces or labels; may share the embedding's matrix.
        pad_id: id of `<pad>`.
        dropout: rate on the mean of the tokens.
        is_pooled: return the mean of the tokens.
    """

    def __init__(
        self,
        *,
        plan: list[Weight],
        embed: Embedding,
        encoder: list[EncoderLayer],
        encoder_norm: nn.Module,
        output: nn.Linear,
        pad_id: int,
        dropout: float,
        is_pooled: bool,
    ) -> None:
        super().__init__(plan=plan, pad_id=pad_id)
        self.embed = embed
        self.encoder = nn.ModuleList(encoder)
        self.encoder_norm = encoder_norm
        self.output = output
        self.dropout = Dropout(dropout)
        self.is_pooled = is_pooled

    def layers(self) -> list[nn.Module]:
        """All layers."""
        return list(self.encoder)

    def forward(self, src: Tensor, tgt_in: Tensor, src_mask: Tensor | None = None) -> Tensor:
        """Read texts.

        Args:
            src: their ids, `(batch, src_len)`; or as many patches of images.
            tgt_in: not used: predictions do not depend on earlier ones.
            src_mask: True at real tokens, `(batch, 1, 1, src_len)`; None = nothing is padded.

        Returns:
            A state for each token, `(batch, src_len, d_model)`; pooled, one for each text.
        """
        x, rotation = self.embed(src), self.embed.rotation(src.size(1))
        distances = self.embed.distances(src.size(1), src.size(1))
        for layer in self.encoder:
            x = self.through(layer, x, src_mask, rotation, False, distances)
        x = see(self, "memory", self.encoder_norm(x))
        if not self.is_pooled:
            return see(self, "states", x)
        is_real = x.new_ones(x.shape[:2]) if src_mask is None else src_mask[:, 0, 0]
        # Exact counts, even if `x` has 16 bits.
        counted = is_real.to(torch.promote_types(x.dtype, torch.float32))
        shares = counted / counted.sum(dim=1, keepdim=True).clamp(min=1)
        mean = shares[:, None].to(x) @ x
        pooled: Tensor = self.dropout(see(self, "states", mean))
        return pooled
