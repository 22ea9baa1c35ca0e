"""The recurrent encoder–decoder: one state is updated word by word.

Three decoders, by `RecurrentConfig.attention`; s_t is the state of the last layer, y_t a token:

- none: s_t = cell([y_{t-1}; c], s_{t-1}), where c is the encoder's last state (Cho et al. 2014).
- additive: c_t = attend(s_{t-1}), then s_t = cell([y_{t-1}; c_t], s_{t-1}) (Bahdanau et al. 2015).
- dot: s_t = cell(y_{t-1}, s_{t-1}), then c_t = attend(s_t) (Luong et al. 2015, section 3.1).

With attention the output layer reads tanh(W [s_t; c_t]) (Luong et al. 2015, equation 5). With
`residual` encoder layers above the first add their input to their output (Wu et al. 2016, section
3.1), and the output layer reads c_t + W [s_t; c_t].
"""

import functools
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from heed.model.fast.dropout import Dropout
from heed.model.fast.products import Linear
from heed.model.masks import padding_mask
from heed.model.network import TorchNetwork
from heed.model.recurrent.attention import ATTENTIONS, attend
from heed.model.recurrent.cells import CELLS, Cell, See, Unrolled, advance, reverse
from heed.model.recurrent.config import RecurrentConfig
from heed.model.recurrent.plan import GATES, recurrent_plan
from heed.model.trace import see


class EncoderLayer(nn.Module):
    """A layer that reads the source forward, and backward with the other half of its width."""

    def __init__(self, cell: Cell, d_model: int, *, is_bidirectional: bool) -> None:
        super().__init__()
        width = d_model // 2 if is_bidirectional else d_model
        self.forwards = cell(d_model, width, batch_first=True)
        self.backwards = cell(d_model, width, batch_first=True) if is_bidirectional else None

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Read every source.

        Args:
            x: `(n_sources, src_len, d_model)`.
            lengths: real tokens of each source, `(n_sources,)`.

        Returns:
            The states, `(n_sources, src_len, d_model)`, and the last state of each source, of both
            directions, `(n_sources, d_model)`.
        """
        states, _ = advance(self.forwards, x)
        last = states[torch.arange(len(x), device=x.device), lengths.clamp(min=1) - 1]
        if self.backwards is None:
            return states, last
        turn = functools.partial(reverse, lengths=lengths)
        unrolled = Unrolled(self.backwards, x.size(1), turn)
        backwards = turn(advance(self.backwards, turn(x), unrolled=unrolled)[0])
        return torch.cat([states, backwards], dim=-1), torch.cat([last, backwards[:, 0]], dim=-1)


@dataclass
class Memory:
    """The encoder's states, as the decoder reads them.

    Attributes:
        last: the encoder's last state, `(n_sources, d_model)`.
        states: all its states, `(n_sources, src_len, d_model)`.
        keys: compared with queries, `(n_sources, src_len, d_model)`; None = no attention.
        src_mask: True at real source tokens, `(n_sources, 1, src_len)`, or None.
    """

    last: Tensor
    states: Tensor
    keys: Tensor | None
    src_mask: Tensor | None

    def of(self, sources: Tensor) -> "Memory":
        """The memory of some sources `(new_n_sources,)`."""
        return Memory(
            last=self.last[sources],
            states=self.states[sources],
            keys=None if self.keys is None else self.keys[sources],
            src_mask=None if self.src_mask is None else self.src_mask[sources],
        )


@dataclass
class RecurrentState:
    """The state of the decoder between two steps.

    Attributes:
        memory: of the sources.
        layers: of each layer, as `advance` returns it.
    """

    memory: Memory
    layers: list[Tensor]


class Recurrent(TorchNetwork):
    """An encoder reads the source word by word, a decoder writes the target word by word.

    Args:
        config: the shape.
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(plan=recurrent_plan(config), pad_id=config.pad_id)
        width, cell = config.d_model, CELLS[config.cell]
        self.attention = config.attention
        self.is_lstm = config.cell == "lstm"
        self.is_residual = config.residual
        # As in the Transformer: a table that is tied to the output has small numbers.
        self.scale = math.sqrt(width)
        self.embed_src = nn.Embedding(config.src_vocab_size, width)
        self.embed_tgt = nn.Embedding(config.tgt_vocab_size, width)
        self.encoder = nn.ModuleList(
            EncoderLayer(cell, width, is_bidirectional=config.bidirectional)
            for _ in range(config.n_encoder_layers)
        )
        # The first layer reads the context beside the token, unless attention comes after it.
        n_inputs = [width if config.attention == "dot" else 2 * width]
        n_inputs += [width] * (config.n_decoder_layers - 1)
        self.decoder = nn.ModuleList(cell(n, width, batch_first=True) for n in n_inputs)
        if config.attention != "none":
            self.cross_attention = ATTENTIONS[config.attention](width)
        self.bridge = Linear(width, config.n_decoder_layers * width)
        if config.attention != "none":
            self.readout = Linear(2 * width, width)
        self.output = nn.Linear(width, config.tgt_vocab_size, bias=False)
        self.dropout = Dropout(config.dropout)
        if config.tied == "three-way":
            self.embed_tgt.weight = self.embed_src.weight
        if config.tied != "none":
            self.output.weight = self.embed_tgt.weight
        self.apply(functools.partial(initialize, n_gates=len(GATES[config.cell])))

    def encode(self, src: Tensor, src_mask: Tensor | None = None) -> Memory:
        """Read the source.

        Args:
            src: source ids, `(n_sources, src_len)`.
            src_mask: True at real tokens, `(n_sources, 1, 1, src_len)`; None = nothing is padded.
        """
        if src.size(1) == 0:  # a cell reads at least one token; this one is hidden
            src = src.new_full((len(src), 1), self.pad_id)
            src_mask = torch.zeros_like(src, dtype=torch.bool)[:, None, None, :]
        x = see(self, "embedded_src", self.scale * self.embed_src(src))
        if src_mask is None:
            lengths = src.new_full((len(src),), src.size(1))
        else:
            lengths = src_mask.sum(dim=-1)[:, 0, 0]
        for number, layer in enumerate(self.encoder):
            read = self.dropout(see(layer, "in", x))
            x, last = layer(read, lengths)
            x = see(layer, "out", x + read if number and self.is_residual else x)
        states = see(self, "memory", x)
        return Memory(
            last=see(self, "last", last.masked_fill(lengths[:, None] == 0, 0.0)),
            states=states,
            keys=None if self.attention == "none" else self.cross_attention.keys(states),
            src_mask=None if src_mask is None else src_mask[:, 0],
        )

    def first_states(self, memory: Memory) -> list[Tensor]:
        """The decoder's states before the first token: h = tanh(W c), an LSTM's memory cell 0.

        Returns:
            For each layer a state as `advance` takes it, with a row for each source.
        """
        hidden = see(self.bridge, "out", torch.tanh(self.bridge(memory.last)))
        return [
            torch.stack([part, torch.zeros_like(part)] if self.is_lstm else [part])
            for part in hidden.chunk(len(self.decoder), dim=-1)
        ]

    def forward(self, src: Tensor, tgt_in: Tensor, src_mask: Tensor | None = None) -> Tensor:
        """Decoder states `(batch, tgt_len, d_model)`; see `TorchNetwork.forward`."""
        memory = self.encode(src, src_mask)
        layers = self.first_states(memory)
        embedded = see(self, "embedded_tgt", self.scale * self.embed_tgt(tgt_in))
        # If the context depends on the state before a token, each token needs its own step.
        is_stepwise = self.attention == "additive"
        parts = torch.split(embedded, 1, dim=1) if is_stepwise else [embedded]
        unrolled = self._unrolled(tgt_in.size(1))
        states = [self.read(part, memory, layers, unrolled) for part in parts]
        return see(self, "states", torch.cat(states, dim=1))

    def read(
        self,
        embedded: Tensor,
        memory: Memory,
        layers: list[Tensor],
        unrolled: list[Unrolled],
    ) -> Tensor:
        """Read target tokens; with additive attention one at a time.

        Args:
            embedded: the tokens, `(rows, length, d_model)`.
            memory: of the sources.
            layers: the state of each layer, replaced by that after the last token.
            unrolled: names the tensors of each layer, and last those of attention.

        Returns:
            The input of the output layer, `(rows, length, d_model)`.
        """
        x = self.dropout(embedded)
        if self.attention == "none":
            n_beams = len(x) // len(memory.last)
            context = memory.last.repeat_interleave(n_beams, dim=0)[:, None].expand_as(x)
            x = torch.cat([x, context], dim=-1)
        elif self.attention == "additive":
            context = self.attend(layers[-1][0][:, None], memory, unrolled[-1].see)
            x = torch.cat([x, context], dim=-1)
        for number, cell in enumerate(self.decoder):
            x = self.dropout(x) if number else x
            x, layers[number] = advance(cell, x, layers[number], unrolled[number])
        if self.attention == "none":
            states: Tensor = self.dropout(x)
            return states
        if self.attention == "dot":
            context = self.attend(x, memory, unrolled[-1].see)
        mixed = self.readout(torch.cat([x, context], dim=-1))
        read: Tensor = self.dropout(context + mixed if self.is_residual else torch.tanh(mixed))
        return read

    def attend(self, query: Tensor, memory: Memory, see: See) -> Tensor:
        """Let decoder states read the memory.

        Args:
            query: the states, `(rows, length, d_model)`.
            memory: of the sources.
            see: gets the name and value of each stage and returns the value. They have the shapes
                of a Transformer with one head.

        Returns:
            Contexts, `(rows, length, d_model)`.
        """
        assert memory.keys is not None
        # All beams of a source read its memory together: no copy of the memory per beam.
        n_sources, d_model = len(memory.states), query.size(-1)

        def shown(name: str, stage: Tensor) -> Tensor:
            of_rows = stage.reshape(len(query), 1, query.size(1), -1)
            return see(name, of_rows).reshape(stage.shape)

        queries = query.reshape(n_sources, -1, d_model)
        scores = self.cross_attention.scores(queries, memory.keys)
        context = attend(scores, memory.states, memory.src_mask, see=shown)
        return context.view(query.shape)

    def start(self, src: Tensor, *, beam_size: int = 1) -> RecurrentState:
        """Read `src` `(n_sources, src_len)` once; `beam_size` rows will continue each source."""
        memory = self.encode(src, padding_mask(src, self.pad_id))
        layers = [layer.repeat_interleave(beam_size, dim=1) for layer in self.first_states(memory)]
        return RecurrentState(memory, layers)

    def step(self, state: RecurrentState, tokens: Tensor) -> Tensor:
        """Logits after `tokens` `(rows,)`, `(rows, tgt_vocab_size)`; see `TorchNetwork.step`."""
        embedded = see(self, "embedded_tgt", self.scale * self.embed_tgt(tokens[:, None]))
        states = self.read(embedded, state.memory, state.layers, self._unrolled(1))
        return self.logits(see(self, "states", states)[:, 0])

    def select(self, state: RecurrentState, rows: Tensor, sources: Tensor | None = None) -> None:
        """Keep, repeat or reorder rows `(new_rows,)`; see `TorchNetwork.select`."""
        state.layers = [torch.index_select(layer, 1, rows) for layer in state.layers]
        if sources is not None:
            state.memory = state.memory.of(sources)

    def _unrolled(self, length: int) -> list[Unrolled]:
        """Those of each layer of the decoder and of attention, for targets of this length."""
        modules = list(self.decoder)
        if self.attention != "none":
            modules.append(self.cross_attention)
        return [Unrolled(module, length) for module in modules]


def initialize(module: nn.Module, n_gates: int) -> None:
    """Fill one module's own parameters: Glorot for each gate's matrix, zero for biases.

    An LSTM's forget gate begins open, with a bias of 1 (Jozefowicz et al. 2015, section 4).
    """
    if isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
    elif isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.RNNBase):
        for name, parameter in module.named_parameters():
            for gate, block in enumerate(parameter.detach().chunk(n_gates)):
                if block.dim() > 1:
                    nn.init.xavier_uniform_(block)
                else:
                    is_open = n_gates == 4 and gate == 1 and name.startswith("bias_ih")
                    nn.init.constant_(block, float(is_open))
