"""Seeds: every source of randomness is derived from one seed and a purpose.

See docs/decisions/0007-randomness-is-derived.md.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import torch


def derive_seed(seed: int, *parts: int | str) -> int:
    """A seed of 63 bits for one purpose, as `derive_seed(seed, "dropout", step)`.

    Randomness that is derived need not be stored: a resumed run knows its seed and its step.
    """
    import hashlib

    text = repr((seed, *parts)).encode("ascii", "backslashreplace")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little") >> 1


def derived_random(seed: int, *parts: int | str) -> "np.random.Generator":
    """NumPy's random numbers for one purpose, from `derive_seed`."""
    import numpy as np

    return np.random.Generator(np.random.Philox(key=derive_seed(seed, *parts)))


def seed_torch(seed: int, device: "torch.device") -> None:
    """Seed torch's generators of the CPU and of a device, as `torch.manual_seed` does.

    That one formats a stack trace each time until a GPU is used: a millisecond and more.
    """
    import torch

    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


def seed_everything(seed: int, *parts: int | str) -> None:
    """Seed torch on all devices, numpy's and Python's global generators from `derive_seed`."""
    import random

    import numpy as np
    import torch

    derived = derive_seed(seed, *parts)
    random.seed(derived)
    np.random.seed(derived % 2**32)
    torch.manual_seed(derived)
