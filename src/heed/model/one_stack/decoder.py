"""The decoder-only Transformer: the source is the beginning of the sequence, the target its end.

One stack of layers with self-attention and no cross-attention reads [source; target]. A target
token attends to the whole source and to the target before it. Both count positions from 0, and a
learned vector tells the two sides apart, as in UniLM (Dong et al. 2019, section 2.1).
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from heed.model.attention import Cache
from heed.model.cache import KVCache
from heed.model.layers import EncoderLayer
from heed.model.masks import both, padding_mask, prefix_mask
from heed.model.network import TorchNetwork
from heed.model.plan import Weight
from heed.model.positions import Rotation
from heed.model.trace import recording, see
from heed.model.transformer import Embedding
from heed.model.window import window_mask

SOURCE, TARGET = 0, 1
"""Rows of `sides`."""
SRC_NAMES, TGT_NAMES = ("src_tokens", "src_sum"), ("tgt_tokens", "tgt_sum")
"""Of the tensors of the embedding, which both sides share."""


@dataclass
class DecoderOnlyState:
    """The state between two steps.

    Attributes:
        caches: one a layer, keys and values of the source and of the target so far, or their sums.
        src_mask: True at real source tokens, `(rows, 1, 1, src_len)`, or None.
        position: number of target tokens read so far, including the padding in front of them.
        n_padded: how many of these are padding in each row, `(rows,)`; None = no padding.
    """

    caches: list[Cache]
    src_mask: Tensor | None
    position: int = 0
    n_padded: Tensor | None = None


class DecoderOnly(TorchNetwork):
    """One stack that reads the source and writes the target.

    Args:
        plan: its weights.
        embed: embedding of both sides.
        decoder: the layers, first to last.
        decoder_norm: after the last layer (pre-norm), or the identity (post-norm).
        output: linear map to the vocabulary; may share the embedding's matrix.
        pad_id: id of `<pad>`.
        is_bidirectional: source tokens attend to each other in both directions.
        window: positions to each side that a token attends to on its own side besides its own; the
            target attends to the whole source, as cross-attention does.
    """

    def __init__(
        self,
        *,
        plan: list[Weight],
        embed: Embedding,
        decoder: list[EncoderLayer],
        decoder_norm: nn.Module,
        output: nn.Linear,
        pad_id: int,
        is_bidirectional: bool,
        window: int | None = None,
    ) -> None:
        super().__init__(plan=plan, pad_id=pad_id)
        self.sides = nn.Parameter(torch.empty(2, output.in_features))
        nn.init.normal_(self.sides, std=0.02)
        self.embed = embed
        self.decoder = nn.ModuleList(decoder)
        self.decoder_norm = decoder_norm
        self.output = output
        self.is_bidirectional = is_bidirectional
        self.window = window
        caches = [layer.self_attention.new_cache() for layer in decoder]
        self.reads_prompts = window is None and all(isinstance(each, KVCache) for each in caches)

    def layers(self) -> list[nn.Module]:
        """All layers."""
        return list(self.decoder)

    def forward(self, src: Tensor, tgt_in: Tensor, src_mask: Tensor | None = None) -> Tensor:
        """States of the target `(batch, tgt_len, d_model)`; see `TorchNetwork.forward`."""
        n_src, n_tgt = src.size(1), tgt_in.size(1)
        x = torch.cat([self._embedded_src(src), self._embedded_tgt(tgt_in)], dim=1)
        rotation = _joined(self.embed.rotation(n_src), self.embed.rotation(n_tgt))
        distances = self._distances(n_src, n_tgt)
        mask, is_causal = self._mask(n_src, n_tgt, src_mask, src.device)
        n_prefix = n_src if is_causal and self.is_bidirectional else 0
        for layer in self.decoder:
            x = self.through(layer, x, mask, rotation, is_causal, distances, n_prefix)
        return see(self, "states", self.decoder_norm(x)[:, n_src:])

    def start(self, src: Tensor, *, beam_size: int = 1) -> DecoderOnlyState:
        """Read `src` `(n_sources, src_len)` once; `beam_size` rows will continue each source."""
        src_mask = padding_mask(src, self.pad_id)
        layers = self._decoder_layers()
        caches = [layer.self_attention.new_cache(src.size(1)) for layer in layers]
        if src.size(1):
            x = self._embedded_src(src)
            rotation = self.embed.rotation(src.size(1))
            distances = self._distances(src.size(1), 0)
            mask, is_causal = self._mask(src.size(1), 0, src_mask, src.device)
            is_causal = is_causal and not self.is_bidirectional
            for layer, cache in zip(layers, caches, strict=True):
                x = layer.extend(x, cache, mask, rotation, distances, is_causal)
        rows = torch.arange(len(src), device=src.device).repeat_interleave(beam_size)
        state = DecoderOnlyState(caches, src_mask)
        self.select(state, rows)
        return state

    def start_from(self, prompts: Tensor) -> DecoderOnlyState:
        """Read `prompts` `(rows, length)` at once; see `TorchNetwork.start_from`.

        Padding is put in front, so that all rows end at the same position. No token reads it, and
        each row counts its positions from its own first token.
        """
        length = prompts.size(1)
        n_padded = length - (prompts != self.pad_id).sum(dim=1)
        places = torch.arange(length, device=prompts.device) - n_padded[:, None]
        caches = [layer.self_attention.new_cache() for layer in self._decoder_layers()]
        state = DecoderOnlyState(caches, None, n_padded=n_padded if n_padded.any() else None)
        self._extended(state, prompts.gather(1, places % length))
        return state

    def step(self, state: DecoderOnlyState, tokens: Tensor) -> Tensor:
        """Logits after `tokens` `(rows,)`, `(rows, tgt_vocab_size)`; see `TorchNetwork.step`."""
        x = self._extended(state, tokens[:, None])
        return self.logits(see(self, "states", self.decoder_norm(x))[:, 0])

    def extend(self, state: DecoderOnlyState, tokens: Tensor) -> None:
        """Advance every row by tokens `(rows, n_tokens)` at once; see `TorchNetwork.extend`."""
        if self.window is not None:  # the cache then holds only the window of one new token
            super().extend(state, tokens)
            return
        self._extended(state, tokens)

    def select(self, state: DecoderOnlyState, rows: Tensor, sources: Tensor | None = None) -> None:
        """Keep, repeat or reorder rows `(new_rows,)`; see `TorchNetwork.select`."""
        for cache in state.caches:
            cache.select(rows)
        if state.src_mask is not None:
            state.src_mask = state.src_mask[rows]
        if state.n_padded is not None:
            state.n_padded = state.n_padded[rows]

    def source_attention(self, src: Tensor, tgt_in: Tensor) -> list[Tensor]:
        """The part of each layer's self-attention in which the target reads the source."""
        with recording(self, "self_attention.weights") as caught:
            self(src, tgt_in, padding_mask(src, self.pad_id))
        n_src = src.size(1)
        return [weights[:, :, n_src:, :n_src] for weights in caught.values()]

    def _extended(self, state: DecoderOnlyState, tokens: Tensor) -> Tensor:
        """The last layer's output for new tokens `(rows, n_new)`, `(rows, n_new, d_model)`."""
        n_new, first, mask = tokens.size(1), state.position, None
        n_src = state.caches[0].length - first
        x = self._embedded_tgt(tokens, first if state.n_padded is None else first - state.n_padded)
        # Rotations and distances count the padding too: attention depends only on the distance of
        # two positions.
        rotation = self.embed.rotation(n_new, first)
        distances = self._from_side(n_new, n_src, first + n_new, first)
        state.position += n_new
        if state.src_mask is not None:
            n_tgt = min(state.position, self.window + 1) if self.window else state.position
            is_tgt = state.src_mask.new_ones(len(tokens), 1, 1, n_tgt)
            mask = torch.cat([state.src_mask, is_tgt], dim=-1)
        elif state.n_padded is not None:
            places = torch.arange(state.position, device=tokens.device)
            mask = (places >= state.n_padded[:, None])[:, None, None]
        for layer, cache in zip(self._decoder_layers(), state.caches, strict=True):
            x = layer.extend(x, cache, mask, rotation, distances, n_new > 1)
        return x

    def _embedded_src(self, src: Tensor) -> Tensor:
        """`(batch, src_len)` → `(batch, src_len, d_model)`."""
        return see(self, "embedded_src", self.embed(src, names=SRC_NAMES) + self.sides[SOURCE])

    def _embedded_tgt(self, tokens: Tensor, offset: int | Tensor = 0) -> Tensor:
        """`(batch, length)` at positions `offset …` → `(batch, length, d_model)`.

        An offset `(batch,)` has one number for each row; padding has positions below 0.
        """
        embedded = self.embed(tokens, offset, TGT_NAMES) + self.sides[TARGET]
        return see(self, "embedded_tgt", embedded)

    def _mask(
        self, n_src: int, n_tgt: int, src_mask: Tensor | None, device: torch.device
    ) -> tuple[Tensor | None, bool]:
        """The mask of source and target, and whether it leaves the causal part to the layers."""
        if n_src == 0:
            return None, True
        keys = None
        if src_mask is not None:
            keys = torch.cat([src_mask, src_mask.new_ones(len(src_mask), 1, 1, n_tgt)], dim=-1)
        if self.window is None:
            return keys, True
        length = n_src + n_tgt
        near = window_mask(length, length, self.window, device)
        near[n_src:, :n_src] = True
        earlier = prefix_mask(length, n_src if self.is_bidirectional else 0, device)
        return both(keys, near & earlier), False

    def _distances(self, n_src: int, n_tgt: int) -> Tensor | None:
        """From source and target to source and target, `(n_src + n_tgt, n_src + n_tgt)`."""
        of_src, of_tgt = self._from_side(n_src, n_src, n_tgt), self._from_side(n_tgt, n_src, n_tgt)
        return None if of_src is None or of_tgt is None else torch.cat([of_src, of_tgt])

    def _from_side(self, n_queries: int, n_src: int, n_tgt: int, offset: int = 0) -> Tensor | None:
        """From `n_queries` of either side to source and target, `(n_queries, n_src + n_tgt)`."""
        to_src = self.embed.distances(n_queries, n_src, offset)
        to_tgt = self.embed.distances(n_queries, n_tgt, offset)
        return None if to_src is None or to_tgt is None else torch.cat([to_src, to_tgt], dim=1)

    def _decoder_layers(self) -> list[EncoderLayer]:
        return list(self.decoder)  # type: ignore[arg-type]  # ModuleList forgets its element type


def _joined(first: Rotation | None, second: Rotation | None) -> Rotation | None:
    """The rotations of two concatenated sequences."""
    if first is None or second is None:
        return None
    return torch.cat([first[0], second[0]]), torch.cat([first[1], second[1]])
