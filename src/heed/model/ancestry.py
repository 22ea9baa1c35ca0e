"""From which named tensors and weights each named tensor was computed, read from autograd's graph.

The graph is recorded by the computation itself, so this is right for every family and option.
"""

from typing import Any

from torch import Tensor, nn

_Output = tuple[Any, int]
"""A node of the graph and which of its outputs."""


class Ancestry:
    """The nearest named ancestors of tensors that are computed with gradients enabled.

    Args:
        model: whose weights have names.
    """

    def __init__(self, model: nn.Module) -> None:
        self._weights = {id(weight): name for name, weight in model.named_parameters()}
        # The nodes are kept alive, so that no other can have the same identity.
        self._named: dict[_Output, str] = {}

    def add(self, name: str, tensor: Tensor) -> tuple[str, ...]:
        """Give a tensor a name.

        Args:
            name: of the tensor.
            tensor: just computed.

        Returns:
            The names of the tensors and weights it was computed from, in the order of its
            arguments; the earlier name alone where the same tensor already has one.
        """
        if tensor.grad_fn is None:
            return ()
        found: dict[str, None] = {}
        begun: set[_Output] = set()
        waiting: list[_Output] = [(tensor.grad_fn, tensor.output_nr)]
        while waiting:
            node, output = waiting.pop()
            if node is None or (node, output) in begun:
                continue
            begun.add((node, output))
            if known := self._named.get((node, output)):
                found[known] = None
            elif (weight := getattr(node, "variable", None)) is not None:
                found[self._weights[id(weight)]] = None
            else:
                waiting += reversed(node.next_functions)
        self._named[tensor.grad_fn, tensor.output_nr] = name
        return tuple(found)
