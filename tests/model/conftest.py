"""What tests of this folder share, besides the fixtures of `tests/conftest.py`."""

from typing import get_args, get_type_hints

from heed.model.config import ModelConfig


def choices(name: str) -> tuple[str, ...]:
    """The words of a setting of the model, such as `("post", "pre")` of `norm`."""
    words: tuple[str, ...] = get_args(get_type_hints(ModelConfig)[name])
    return words
