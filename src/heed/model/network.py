"""The base class of each family's model in torch: the methods that training and search call."""

from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from heed.model.config import AnyConfig
from heed.model.masks import padding_mask
from heed.model.plan import Weight
from heed.model.positions import Rotation
from heed.model.trace import recording, see


class TorchNetwork(nn.Module):
    """A model that scores target tokens, in one pass or step by step.

    A family implements `forward`, `start`, `step` and `select`, and sets `output`.
    `heed.model.decodable` wraps it for the searches.

    Args:
        plan: its weights, as its family lists them.
        pad_id: id of `<pad>`.

    Attributes:
        config: the config from which `heed.model.build.build_model` made it.
        output: linear map to the target vocabulary; may share the embedding's matrix. Parameters
            have the order of their modules, so a family sets it where its plan has it.
        is_recomputing: in training, keep only the inputs of each of `layers` and compute the layer
            again in the backward pass: less memory, a third more work, equal gradients (Chen et al.
            2016, "Training Deep Nets with Sublinear Memory Cost").
        reads_prompts: whether it has `start_from`.
    """

    config: AnyConfig
    output: nn.Linear
    reads_prompts: bool = False

    def __init__(self, *, plan: list[Weight], pad_id: int) -> None:
        super().__init__()
        self.plan = plan
        self.pad_id = pad_id
        self.is_recomputing = False
        self._wide_output: tuple[Tensor, ...] = ()

    def layers(self) -> list[nn.Module]:
        """Modules that can be recomputed or sharded one at a time; may be none."""
        return []

    def forward(self, src: Tensor, tgt_in: Tensor, src_mask: Tensor | None = None) -> Tensor:
        """Decoder states of given targets (teacher forcing); training takes its loss from these.

        Args:
            src: source ids, `(batch, src_len)`.
            tgt_in: target ids that start with `<bos>`, `(batch, tgt_len)`.
            src_mask: True at real tokens, `(batch, 1, 1, src_len)`; None = nothing is padded.

        Returns:
            `(batch, tgt_len, d_model)`; position `t` predicts token `t + 1`.
        """
        raise NotImplementedError

    def start(self, src: Tensor, *, beam_size: int = 1) -> Any:
        """Read `src` `(n_sources, src_len)` once; `beam_size` rows will continue each source."""
        raise NotImplementedError

    def start_from(self, prompts: Tensor) -> Any:
        """Read beginnings of targets without sources, one for each row.

        Args:
            prompts: target ids, padded at the end, `(rows, length)`.
        """
        raise NotImplementedError

    def step(self, state: Any, tokens: Tensor) -> Tensor:
        """Advance every row by one token.

        Args:
            state: from `start`; changed in place.
            tokens: the last token of each row, `<bos>` at first, `(rows,)`.

        Returns:
            Logits of the next token in float32, `(rows, tgt_vocab_size)`.
        """
        raise NotImplementedError

    def extend(self, state: Any, tokens: Tensor) -> None:
        """Advance every row by several tokens; a network that can do so at once overrides this.

        Args:
            state: from `start`; changed in place.
            tokens: the next tokens of each row, `(rows, n_tokens)`.
        """
        for column in tokens.unbind(1):
            self.step(state, column)

    def select(self, state: Any, rows: Tensor, sources: Tensor | None = None) -> None:
        """Keep, repeat or reorder rows, in place.

        Args:
            state: from `start`; changed in place.
            rows: which old row each new row continues, `(new_rows,)`.
            sources: which old sources stay, `(new_n_sources,)`; None keeps all, in order.
        """
        raise NotImplementedError

    def counted(self, texts: Iterable[tuple[Tensor, Tensor | None]]) -> dict[str, Tensor]:
        """Initial weights that are counted from the training texts; few families have any.

        Args:
            texts: batches of source ids and of their masks, as `forward` has them.

        Returns:
            Weights by name, on the CPU.
        """
        return {}

    def through(self, layer: nn.Module, *inputs: Tensor | Rotation | int | None) -> Tensor:
        """Run a layer, recomputing it if set so; its output is `(batch, length, d_model)`."""
        is_learning = self.training and torch.is_grad_enabled()
        refined: Tensor
        if self.is_recomputing and is_learning:
            # The random state is restored, so that dropout drops the same numbers.
            refined = checkpoint(layer, *inputs, use_reentrant=False)
        else:
            refined = layer(*inputs)
        return refined

    def logits(self, states: Tensor) -> Tensor:
        """Scores of every target piece before softmax: `(…, d_model)` → `(…, tgt_vocab_size)`."""
        # In float32 or wider, whatever the layers compute in: logits of 8 bits are often equal.
        wide = torch.promote_types(states.dtype, torch.float32)
        weight_and_bias = self._wide_output or self.output.parameters()
        logits = F.linear(states.to(wide), *(each.to(wide) for each in weight_and_bias))
        return see(self, "logits", logits.float())

    def keep_wide_output(self) -> None:
        """Keep a copy of the output layer as it is now, before the model gets fewer bits."""
        self._wide_output = tuple(each.detach().clone() for each in self.output.parameters())

    def teacher_forced(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Score given targets in one pass.

        Args:
            src: source ids, padded, `(batch, src_len)`.
            tgt_in: target ids that start with `<bos>`, padded, `(batch, tgt_len)`.

        Returns:
            Logits in float32, `(batch, tgt_len, tgt_vocab_size)`; position `t` predicts `t + 1`.
        """
        return self.logits(self(src, tgt_in, padding_mask(src, self.pad_id)))

    def source_attention(self, src: Tensor, tgt_in: Tensor) -> list[Tensor]:
        """Attention weights from target to source in one pass, in each layer that has them.

        If one softmax covers source and target, the weights of the source are not rescaled: they
        sum to less than 1.

        Args:
            src: source ids, padded, `(batch, src_len)`.
            tgt_in: target ids that start with `<bos>`, padded, `(batch, tgt_len)`.

        Returns:
            Each `(batch, n_heads, tgt_len, src_len)`.
        """
        with recording(self, "cross_attention.weights", "joint_attention.weights") as caught:
            self(src, tgt_in, padding_mask(src, self.pad_id))
        return [weights[..., : src.size(1)] for weights in caught.values()]
