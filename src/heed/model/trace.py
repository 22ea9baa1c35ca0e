"""Look inside a model: `see` names a tensor and returns it, or the tensor that replaces it.

Modules call `see(self, "query", tensor)` for every value that the paper names, and continue with
the result. Without a listener that costs one comparison. Inside `listening` and `editing`, a
function gets the module's name in the model, a dot and the value's name:
`decoder.0.cross_attention.query`.
The modules' names are those of `plan.py`; `stages.py` says what each value is.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from fnmatch import fnmatchcase
from threading import Lock

import numpy as np
import torch
from torch import Tensor, nn

from heed.errors import UsageError

Hear = Callable[[str, Tensor], None]
Edit = Callable[[Tensor], Tensor]
_Change = Callable[[str, Tensor], Tensor]

# Dynamo can guard a number, and comparing one is cheaper than reading the context variable.
_n_listeners = 0
_count = Lock()
_listeners: ContextVar[tuple[tuple[dict[int, str], _Change], ...]] = ContextVar(
    "listeners", default=()
)


def see(module: nn.Module, name: str, tensor: Tensor) -> Tensor:
    """Pass a tensor to the listeners and edits of the model that `module` belongs to.

    Args:
        module: the module that computes the tensor.
        name: the tensor's name in the module.
        tensor: any tensor.

    Returns:
        The tensor itself, or the one that an edit puts in its place.
    """
    if _n_listeners:
        for names, change in _listeners.get():
            if (prefix := names.get(id(module))) is not None:
                tensor = change(f"{prefix}.{name}" if prefix else name, tensor)
    return tensor


def is_heard(module: nn.Module) -> bool:
    """Whether the model of `module` has a listener: attention then computes its weights."""
    if not _n_listeners:
        return False
    return any(id(module) in names for names, _ in _listeners.get())


@contextmanager
def listening(model: nn.Module, hear: Hear) -> Iterator[None]:
    """Call `hear` with the name and value of every tensor that passes `see` in this thread.

    The tensors are the model's own: copy those you keep, because their memory is reused.

    Args:
        model: the module at which names begin.
        hear: called in the order of the computation.
    """

    def heard(name: str, tensor: Tensor) -> Tensor:
        hear(name, tensor)
        return tensor

    with _changing(model, heard):
        yield


@contextmanager
def editing(model: nn.Module, edits: Mapping[str, Edit]) -> Iterator[None]:
    """Replace tensors by functions of them; later tensors are computed from the new ones.

    Blocks may be nested: the inner edits get the results of the outer ones. A listener inside the
    block gets the new tensors.

    Args:
        model: the module at which names begin.
        edits: by the name of a tensor; `*` stands for any characters. Each function returns a
            tensor of the same shape.

    Raises:
        UsageError: a function returned another shape, or NaN or +inf in place of a finite number,
            or no tensor of a name was computed in the block.
    """
    given: object = edits
    if not isinstance(given, Mapping) or not all(map(callable, given.values())):
        raise UsageError("edits must map tensor names to functions: {name: function}.")
    unused = set(edits)
    computed: dict[str, None] = {}

    def change(name: str, tensor: Tensor) -> Tensor:
        computed[name] = None
        for pattern, edit in edits.items():
            if pattern == name or fnmatchcase(name, pattern):
                unused.discard(pattern)
                new: object = edit(tensor)
                if isinstance(new, np.ndarray):
                    new = torch.from_numpy(new)
                if not isinstance(new, Tensor):
                    raise UsageError(f"The edit of {name} must return a tensor.")
                if new.shape != tensor.shape:
                    raise UsageError(
                        f"The edit of {name} must return the shape {tuple(tensor.shape)}, but "
                        f"returned {tuple(new.shape)}."
                    )
                new = new.to(tensor)  # a number of NumPy's is float64
                if _is_broken(new) and not _is_broken(tensor):
                    wrong = "NaN" if new.isnan().any() else "inf"
                    raise UsageError(
                        f"The edit of {name} must return finite numbers, or -inf for a score that "
                        f"is masked, but returned {wrong}."
                    )
                tensor = new
        return tensor

    with _changing(model, change):
        yield
    if unused:
        name = min(unused)
        near = get_close_matches(name, computed, n=1)
        hint = f"did you mean {near[0]}?" if near else "trace() lists the names."
        raise UsageError(f"No tensor {name} was computed inside the edit; {hint}")


def _is_broken(tensor: Tensor) -> bool:
    """Whether a number is NaN or +inf; -inf is the score of a masked position."""
    return bool((tensor.isnan() | tensor.isposinf()).any())


@contextmanager
def recording(model: nn.Module, *names: str) -> Iterator[dict[str, Tensor]]:
    """Keep the latest tensor of each name that `model` computes inside the block.

    Args:
        model: the module at which names begin.
        names: last parts of names, such as `cross_attention.weights`; none = all tensors.

    Yields:
        Name → its latest tensor.
    """
    latest: dict[str, Tensor] = {}

    def hear(name: str, tensor: Tensor) -> None:
        if not names or name.endswith(names):
            latest[name] = tensor.detach()

    with listening(model, hear):
        yield latest


@contextmanager
def _changing(model: nn.Module, change: _Change) -> Iterator[None]:
    """Pass every tensor of `model` that this thread computes through `change`."""
    global _n_listeners
    names = {id(module): name for name, module in model.named_modules()}
    token = _listeners.set((*_listeners.get(), (names, change)))
    with _count:
        _n_listeners += 1
    try:
        yield
    finally:
        with _count:
            _n_listeners -= 1
        _listeners.reset(token)
