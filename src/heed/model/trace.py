"""Look inside a model: `see` names a tensor and returns it unchanged.

Modules call `see(self, "query", tensor)` at every value the paper names. Without a listener that
costs one comparison. Inside `listening`, the listener gets the module's name in the model, a dot
and the value's name: `decoder.0.cross_attention.query`. The modules' names are those of `plan.py`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

from torch import Tensor, nn

Hear = Callable[[str, Tensor], None]

# Dynamo can guard a number, and comparing one is cheaper than asking the context.
_n_listeners = 0
_count = Lock()
_listener: ContextVar[tuple[dict[int, str], Hear] | None] = ContextVar("listener", default=None)


def see(module: nn.Module, name: str, tensor: Tensor) -> Tensor:
    """Pass a tensor to the listener of the model that `module` belongs to, if there is one.

    Args:
        module: that computes the tensor.
        name: of the tensor in the module.
        tensor: any.

    Returns:
        The tensor itself.
    """
    if _n_listeners and (listener := _listener.get()):
        names, hear = listener
        if (prefix := names.get(id(module))) is not None:
            hear(f"{prefix}.{name}" if prefix else name, tensor.detach())
    return tensor


def is_heard(module: nn.Module) -> bool:
    """Whether the model of `module` has a listener: attention then computes its weights."""
    if not _n_listeners:
        return False
    listener = _listener.get()
    return listener is not None and id(module) in listener[0]


@contextmanager
def listening(model: nn.Module, hear: Hear) -> Iterator[None]:
    """Call `hear` with the name and value of every tensor that passes `see` in this thread.

    The tensors are the model's own: copy what is kept beyond the call, because memory is reused.

    Args:
        model: the module at which names begin.
        hear: called in the order of the computation.
    """
    global _n_listeners
    token = _listener.set(({id(module): name for name, module in model.named_modules()}, hear))
    with _count:
        _n_listeners += 1
    try:
        yield
    finally:
        with _count:
            _n_listeners -= 1
        _listener.reset(token)


@contextmanager
def recording(model: nn.Module, *names: str) -> Iterator[dict[str, Tensor]]:
    """Keep the latest tensor of each name that `model` shows inside the block.

    Args:
        model: the module at which names begin.
        names: last parts of names, such as `cross_attention.weights`; none = all tensors.

    Yields:
        Name → its latest tensor.
    """
    latest: dict[str, Tensor] = {}

    def hear(name: str, tensor: Tensor) -> None:
        if not names or name.endswith(names):
            latest[name] = tensor

    with listening(model, hear):
        yield latest
