"""Open a model folder with a runtime: heed's own engine, or torch.

torch is imported only if it is the runtime: with the engine, its import time and memory are saved.
"""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from heed.bundle.bundle import Bundle, load_bundle
from heed.bundle.find import CONFIG
from heed.decode.options import DecodeOptions, options_from, require_storable, with_new_names
from heed.engine.library import is_compiled
from heed.engine.network import Network, engine_config
from heed.engine.packed import from_arrays
from heed.engine.runtime import Engine
from heed.engine.shortlist import load_shortlist
from heed.errors import ConfigError, FormatError, MissingExtraError, UsageError
from heed.machine.device import DTYPES, RUNTIMES, has_gpu, split_device
from heed.machine.threads import choose_threads
from heed.model.families import family_of
from heed.model.interface import Decodable
from heed.translate.arguments import require_flag, require_text

if TYPE_CHECKING:
    from heed.model.network import TorchNetwork

ENGINE_DTYPES = ("auto", "float32", "int8")

MIN_STORED_TOKENS, MAX_STORED_TOKENS = 16, 4096
"""Limits for `max_source_tokens` of a folder. `heed train` writes 64 or more, and no more than a
translation may have; with fewer, lines would be cut into parts shorter than a sentence."""

OTHER_TASKS = {
    "translate": "is a translator. Use heed translate, or heed.load.",
    "lm": "is a language model. Use heed generate, or "
    "heed.translate.language_model.load_language_model.",
    "mlm": "is a masked language model. Use heed fill, or heed.translate.masked.load_masked.",
    "classify": "is a classifier. Use heed classify, or heed.translate.classifier.load_classifier.",
}
"""By the task of a model, the end of the error for another task."""


def open_model(
    folder: str | Path,
    *,
    device: str = "auto",
    dtype: str = "auto",
    threads: int | None = None,
    use_shortlist: bool = True,
    runtime: str = "auto",
    task: str = "translate",
) -> tuple[Bundle, Decodable]:
    """Read a model folder and open it with a runtime.

    Args:
        folder: a model or run folder.
        device: `auto` = a GPU if there is one, `cpu`, `cuda` or `cuda:N`.
        dtype: the type to compute in. `auto` = on a CPU int8 if the folder holds it (`heed
            quantize`), else float32; on a GPU a fast one.
        threads: CPU threads; None = as many as there are cores.
        use_shortlist: the engine uses the folder's shortlist, if it holds one.
        runtime: `engine` = heed's own, on a CPU; `torch`, in which `heed.model.trace` shows every
            tensor; `auto` = the engine on a CPU if it is compiled, else torch.
        task: the task that the model must have.

    Raises:
        FormatError: the folder is not a model, or a file in it is damaged.
        ConfigError: the model has another task, there is no such device here, or device, `dtype`,
            runtime and model do not go together.
        UsageError: the folder is not a path, or another argument of a wrong type.
    """
    threads = choose_threads(threads)
    if not isinstance(folder, str | os.PathLike):
        raise UsageError(f"folder must be the path of a model folder, but is {folder!r}.")
    if not isinstance(device, str):
        raise UsageError(f"device must be auto, cpu, cuda or cuda:N, but is {device!r}.")
    require_flag(use_shortlist, "shortlist")
    require_text(dtype=dtype, runtime=runtime)
    if dtype not in DTYPES:
        raise ConfigError(f"dtype must be one of {', '.join(DTYPES)}, but is {dtype!r}.")
    if runtime not in RUNTIMES:
        raise ConfigError(f"runtime must be one of {', '.join(RUNTIMES)}, but is {runtime!r}.")
    is_on_gpu = runtime != "engine" and _is_on_gpu(device)
    _require_compatible(runtime, device, dtype, is_on_gpu=is_on_gpu)
    prefer_int8 = runtime != "torch" and (dtype == "int8" or (dtype == "auto" and not is_on_gpu))
    bundle = load_bundle(folder, prefer_int8=prefer_int8)
    if bundle.task != task:
        raise ConfigError(f"{folder} {OTHER_TASKS[bundle.task]}")
    if runtime == "engine" or (
        runtime == "auto" and not is_on_gpu and _is_for_engine(bundle, dtype)
    ):
        return bundle, _with_engine(bundle, dtype, threads, use_shortlist=use_shortlist)
    return bundle, open_in_torch(bundle, device, dtype, threads)


class Traceable(Decodable, Protocol):
    """A model in torch, whose tensors have names.

    Attributes:
        network: the model.
    """

    network: "TorchNetwork"


def stored_decoding(bundle: Bundle) -> tuple[DecodeOptions, int | None]:
    """The decoding options of a model folder, and the pieces of its longest source, if stored.

    Raises:
        FormatError: an option does not exist, or is out of the range allowed in a folder.
    """
    where = (bundle.path or Path()) / CONFIG
    values = dict(bundle.decoding)
    longest = values.pop("max_source_tokens", None)
    try:
        options = options_from(DecodeOptions(), with_new_names(values))
        require_storable(options)
    except ConfigError as error:
        raise FormatError(f"{where}: {error}") from None
    least = MIN_STORED_TOKENS
    if bundle.config.length_limit is not None:  # may be lower than that
        least = max(1, min(least, bundle.config.length_limit - 2))
    is_sound = type(longest) is int and least <= longest <= MAX_STORED_TOKENS
    if "max_source_tokens" in bundle.decoding and not is_sound:
        raise FormatError(
            f"{where}: decoding.max_source_tokens must be a whole number from {least} to "
            f"{MAX_STORED_TOKENS}, but is {longest!r}."
        )
    return options, longest


def _is_on_gpu(device: str) -> bool:
    kind, _ = split_device(device)
    if kind == "auto":
        return _has_torch() and has_gpu()
    return kind != "cpu"


def _has_torch() -> bool:
    return find_spec("torch") is not None


def _is_for_engine(bundle: Bundle, dtype: str) -> bool:
    if dtype not in ENGINE_DTYPES or not family_of(bundle.config).runs_on_engine(bundle.config):
        return False
    # Without the compiled engine torch is faster; but it has no int8, and may be missing.
    return bundle.int8 is not None or is_compiled() or dtype == "int8" or not _has_torch()


def _require_compatible(runtime: str, device: str, dtype: str, *, is_on_gpu: bool) -> None:
    if runtime == "engine" and split_device(device)[0] == "cuda":
        raise ConfigError(f"runtime engine computes on a CPU, but device is {device}.")
    if runtime == "engine" and dtype not in ENGINE_DTYPES:
        raise ConfigError(
            f"runtime engine computes in {' or '.join(ENGINE_DTYPES[1:])}, but dtype is {dtype}."
        )
    if runtime == "torch" and dtype == "int8":
        raise ConfigError("dtype int8 is for the engine; give --runtime engine, or another dtype.")
    if dtype == "int8" and is_on_gpu:
        raise ConfigError("dtype int8 is for a CPU; give --device cpu, or dtype auto on a GPU.")


def _with_engine(bundle: Bundle, dtype: str, threads: int, *, use_shortlist: bool) -> Engine:
    assert bundle.path is not None
    network = network_of(bundle, dtype)
    return Engine(
        network,
        threads=threads,
        kernels=os.environ.get("HEED_KERNELS", ""),
        shortlist=load_shortlist(bundle.path, network.config) if use_shortlist else None,
    )


def network_of(bundle: Bundle, dtype: str) -> Network:
    """The network that the engine computes: the int8 of a folder, or its weights in `dtype`."""
    config = engine_config(bundle.config)
    if bundle.int8 is not None:
        return from_arrays(config, bundle.int8, f"the int8 file of {bundle.path}")
    return Network.of(config, bundle.weights, is_quantized=dtype == "int8")


def open_in_torch(bundle: Bundle, device: str, dtype: str, threads: int) -> Traceable:
    """The model of a bundle in torch.

    Raises:
        MissingExtraError: torch is not installed.
    """
    if not _has_torch():
        raise MissingExtraError("A model that torch computes", "train")
    from heed.machine.cpu import prepare_cpu
    from heed.machine.device import choose_device, choose_dtype, prepare_gpu
    from heed.machine.threads import set_threads
    from heed.model.decodable import TorchDecodable

    prepare_cpu()
    prepare_gpu()
    set_threads(threads)
    where = choose_device(device)
    numbers = choose_dtype(dtype, where, setting="dtype")
    return TorchDecodable.of(bundle.config, bundle.weights, device=where, dtype=numbers)
