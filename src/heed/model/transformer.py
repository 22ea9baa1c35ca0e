"""The encoder–decoder Transformer: embeddings, two stacks, output layer.

The order of computation: ids → `embed` → encoder layers → memory → decoder layers → `logits`.
`build.py` makes it from a config.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from heed.model.attention import Cache
from heed.model.cache import RunningState
from heed.model.fast.dropout import Dropout
from heed.model.layers import DecoderLayer, EncoderLayer
from heed.model.masks import padding_mask
from heed.model.merged import MergedDecoderLayer
from heed.model.network import TorchNetwork
from heed.model.plan import Weight
from heed.model.positions import Positions, Rotation
from heed.model.trace import see


@dataclass
class DecoderState:
    """The state of the decoder between two steps.

    Attributes:
        caches: one a decoder layer, keys and values `(rows, n_heads, position, d_k or d_v)`, their
            sums, or the state of a recurrent sublayer.
        memory_heads: one a decoder layer, keys and values of the source,
            `(n_sources, n_heads, src_len, d_k or d_v)`, or their sums.
        src_mask: True at real source tokens, `(n_sources, 1, 1, src_len)`, or None.
        position: number of target tokens read so far.
    """

    caches: list[Cache | RunningState]
    memory_heads: list[tuple[Tensor, ...]]
    src_mask: Tensor | None
    position: int = 0


class Embedding(nn.Module):
    """Token vectors times √d_model, plus positions, then dropout.

    Source: Vaswani et al. 2017, sections 3.4, 3.5 and 5.4.
    """

    def __init__(
        self, tokens: nn.Embedding, positions: Positions, *, is_scaled: bool, dropout: float
    ) -> None:
        super().__init__()
        self.tokens: nn.Embedding | nn.Linear = tokens  # linear: a map of image patches
        self.positions = positions
        self.scale = math.sqrt(tokens.embedding_dim) if is_scaled else 1.0
        self.dropout = Dropout(dropout)

    def forward(
        self, ids: Tensor, offset: int | Tensor = 0, names: tuple[str, str] = ("tokens", "sum")
    ) -> Tensor:
        """Embed tokens.

        Args:
            ids: `(batch, length)`.
            offset: position of the first, or of the first of each row, `(batch,)`.
            names: names of the tensors, which differ if one module embeds both sides.

        Returns:
            `(batch, length, d_model)`.
        """
        tokens = see(self, names[0], self.tokens(ids) * self.scale)
        embedded = see(self, names[1], self.positions(tokens, offset))
        dropped: Tensor = self.dropout(embedded)
        return dropped

    def rotation(self, length: int, offset: int = 0) -> Rotation | None:
        """Rotary angles of positions `offset …`, if the positions are of that kind."""
        return self.positions.rotation(length, offset)

    def distances(self, n_queries: int, n_keys: int, offset: int = 0) -> Tensor | None:
        """Distances of keys from queries `(n_queries, n_keys)`, if the positions are of that kind.

        Args:
            n_queries: number of queries; the first is at position `offset`.
            n_keys: number of keys; the first is at position 0.
            offset: position of the first query.
        """
        return self.positions.distances(n_queries, n_keys, offset)


class Transformer(TorchNetwork):
    """An encoder reads the source once, a decoder writes the target a token at a time.

    Args:
        plan: its weights, as `heed.model.plan` lists them.
        embed_src: source embedding.
        embed_tgt: target embedding.
        encoder: encoder layers, first to last.
        decoder: decoder layers, first to last.
        encoder_norm: after the last encoder layer (pre-norm), or the identity (post-norm).
        decoder_norm: likewise for the decoder.
        output: linear map to the target vocabulary; may share the embedding's matrix.
        pad_id: id of `<pad>`.
        is_same_layer: decoder layer i reads encoder layer i instead of the last one.
    """

    def __init__(
        self,
        *,
        plan: list[Weight],
        embed_src: Embedding,
        embed_tgt: Embedding,
        encoder: list[EncoderLayer],
        decoder: list[DecoderLayer | MergedDecoderLayer],
        encoder_norm: nn.Module,
        decoder_norm: nn.Module,
        output: nn.Linear,
        pad_id: int,
        is_same_layer: bool = False,
    ) -> None:
        super().__init__(plan=plan, pad_id=pad_id)
        self.embed_src = embed_src
        self.embed_tgt = embed_tgt
        self.encoder = nn.ModuleList(encoder)
        self.decoder = nn.ModuleList(decoder)
        self.encoder_norm = encoder_norm
        self.decoder_norm = decoder_norm
        self.output = output
        self.is_same_layer = is_same_layer

    def layers(self) -> list[nn.Module]:
        """All layers of both stacks."""
        return [*self.encoder, *self.decoder]

    def encode(self, src: Tensor, src_mask: Tensor | None = None) -> list[Tensor]:
        """Read the source.

        Args:
            src: source ids, `(batch, src_len)`.
            src_mask: True at real tokens, `(batch, 1, 1, src_len)`; None = nothing is padded.

        Returns:
            The memory each decoder layer reads, each `(batch, src_len, d_model)`: the last encoder
            layer's output every time (Vaswani et al. 2017, figure 1), or that of the same layer.
        """
        x, rotation = self.embed_src(src), self.embed_src.rotation(src.size(1))
        distances = self.embed_src.distances(src.size(1), src.size(1))
        outputs = []
        for layer in self.encoder:
            x = self.through(layer, x, src_mask, rotation, False, distances)
            outputs.append(x)
        if self.is_same_layer:
            return [
                see(self, f"memory.{number}", self.encoder_norm(x))
                for number, x in enumerate(outputs)
            ]
        return [see(self, "memory", self.encoder_norm(x))] * len(self.decoder)

    def decode(
        self, tgt_in: Tensor, memories: list[Tensor], src_mask: Tensor | None = None
    ) -> Tensor:
        """Refine all target positions in one pass (teacher forcing).

        Args:
            tgt_in: target ids that start with `<bos>`, `(batch, tgt_len)`. Padding after the
                target needs no mask: the causal mask hides it.
            memories: from `encode`.
            src_mask: True at real source tokens, `(batch, 1, 1, src_len)`, or None.

        Returns:
            Decoder states before the output layer, `(batch, tgt_len, d_model)`.
        """
        x, rotation = self.embed_tgt(tgt_in), self.embed_tgt.rotation(tgt_in.size(1))
        distances = self.embed_tgt.distances(tgt_in.size(1), tgt_in.size(1))
        for layer, memory in zip(self.decoder, memories, strict=True):
            x = self.through(layer, x, memory, src_mask, rotation, distances)
        return see(self, "states", self.decoder_norm(x))

    def forward(self, src: Tensor, tgt_in: Tensor, src_mask: Tensor | None = None) -> Tensor:
        """Decoder states `(batch, tgt_len, d_model)`; see `TorchNetwork.forward`."""
        return self.decode(tgt_in, self.encode(src, src_mask), src_mask)

    def start(self, src: Tensor, *, beam_size: int = 1) -> DecoderState:
        """Read `src` `(n_sources, src_len)` once; `beam_size` rows will continue each source."""
        src_mask = padding_mask(src, self.pad_id)
        memories = self.encode(src, src_mask)
        return DecoderState(
            caches=[layer.new_cache() for layer in self._decoder_layers()],
            memory_heads=[
                layer.project_memory(memory, src_mask)
                for layer, memory in zip(self._decoder_layers(), memories, strict=True)
            ],
            src_mask=src_mask,
        )

    def step(self, state: DecoderState, tokens: Tensor) -> Tensor:
        """Logits after `tokens` `(rows,)`, `(rows, tgt_vocab_size)`; see `TorchNetwork.step`."""
        x = self.embed_tgt(tokens[:, None], state.position)
        rotation = self.embed_tgt.rotation(1, state.position)
        distances = self.embed_tgt.distances(1, state.position + 1, state.position)
        for layer, cache, heads in zip(
            self._decoder_layers(), state.caches, state.memory_heads, strict=True
        ):
            x = layer.extend(x, cache, heads, state.src_mask, rotation, distances)
        state.position += 1
        return self.logits(see(self, "states", self.decoder_norm(x))[:, 0])

    def select(self, state: DecoderState, rows: Tensor, sources: Tensor | None = None) -> None:
        """Keep, repeat or reorder rows `(new_rows,)`; see `TorchNetwork.select`."""
        for cache in state.caches:
            cache.select(rows)
        if sources is not None:
            state.memory_heads = [
                tuple(torch.index_select(part, 0, sources) for part in heads)
                for heads in state.memory_heads
            ]
            if state.src_mask is not None:
                state.src_mask = state.src_mask[sources]

    def _decoder_layers(self) -> list[DecoderLayer | MergedDecoderLayer]:
        return list(self.decoder)  # type: ignore[arg-type]  # ModuleList forgets its element type
