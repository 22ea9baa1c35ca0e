"""A second copy of a folder's model, in torch, whose tensors can be read and changed.

`trace.py` records them. The model that translates may run on heed's engine, which has no trace.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from heed.bundle.bundle import Bundle, load_bundle
from heed.decode.options import DecodeOptions
from heed.errors import UsageError
from heed.machine.threads import choose_threads
from heed.model.interface import Decodable
from heed.translate.load import (
    Traceable,
    network_of,
    open_in_torch,
    open_model,
    stored_decoding,
)

if TYPE_CHECKING:
    from heed.model.trace import Edit


class Twin:
    """A second copy of a folder's model: in torch, in float32 on the CPU.

    Its tensors can be read and changed. If the engine computes with int8, the weights are the
    dequantized int8 values, so that the twin equals the model that translates.

    Args:
        folder: of the model.
        is_rounded: the engine computes with int8.
    """

    def __init__(self, folder: str | Path, *, is_rounded: bool = False) -> None:
        self.folder = Path(folder)
        self.is_rounded = is_rounded
        self._opening = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its folder, which another process opens when it needs to."""
        return partial(Twin, is_rounded=self.is_rounded), (self.folder,)

    @property
    def model(self) -> Traceable:
        """The model, opened on first use by one thread while others wait.

        Raises:
            MissingExtraError: torch is not installed.
        """
        with self._opening:
            return self._model

    @cached_property
    def _model(self) -> Traceable:
        bundle = load_bundle(self.folder, prefer_int8=self.is_rounded)
        if self.is_rounded:
            bundle = replace(bundle, weights=network_of(bundle, "int8").weights())
        model = open_in_torch(bundle, "cpu", "float32", choose_threads(None))
        # Weights that are not trained are inputs of the computation, too.
        model.network.requires_grad_()
        return model


@dataclass(frozen=True, kw_only=True)
class Opened:
    """An opened model folder.

    Attributes:
        bundle: its content.
        model: the model that is used.
        options: its decoding options.
        max_source_tokens: pieces of its longest source, if stored.
        twin: the same in torch; None = there are several models.
    """

    bundle: Bundle
    model: Decodable
    options: DecodeOptions
    max_source_tokens: int | None
    twin: Twin | None


def open_with_twin(
    folder: str | Path,
    *,
    device: str,
    dtype: str,
    threads: int | None,
    task: str,
    use_shortlist: bool = True,
    runtime: str = "auto",
) -> Opened:
    """Open a model folder; arguments and errors are those of `heed.translate.load.open_model`."""
    bundle, model = open_model(
        folder,
        device=device,
        dtype=dtype,
        threads=threads,
        use_shortlist=use_shortlist,
        runtime=runtime,
        task=task,
    )
    options, max_source_tokens = stored_decoding(bundle)
    return Opened(
        bundle=bundle,
        model=model,
        options=options,
        max_source_tokens=max_source_tokens,
        twin=Twin(folder, is_rounded=dtype == "int8" or bundle.int8 is not None),
    )


def traceable(twin: Twin | None) -> Traceable:
    """The model of a twin.

    Raises:
        MissingExtraError: torch is not installed.
        UsageError: there is no twin.
    """
    if twin is None:
        raise UsageError("Only one model that was loaded from a folder can be traced or edited.")
    return twin.model


class HasTwin(Protocol):
    """An object with a model, and possibly the model's twin.

    Attributes:
        model: the model that is used.
        twin: of the same folder; None = there is no folder.
    """

    model: Decodable
    twin: Twin | None


@contextmanager
def edited(owner: HasTwin, edits: Mapping[str, "Edit"]) -> Iterator[None]:
    """Replace tensors by functions of them; inside the block, the twin is the model.

    Args:
        owner: such as a translator.
        edits: functions by the name of a tensor, as in `heed.model.trace.editing`.

    Raises:
        UsageError: there is no twin, a function returned another shape, or no such tensor was
            computed.
    """
    before, twin = owner.model, traceable(owner.twin)
    from heed.model.trace import editing

    owner.model = twin
    try:
        with editing(twin.network, edits):
            yield
    finally:
        owner.model = before
