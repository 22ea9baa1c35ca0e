"""A model in memory with weights drawn at random, for tests of what reads weights."""

from collections.abc import Callable
from typing import Any

import numpy as np

from heed.bundle.bundle import Bundle
from heed.model.families import stored_shapes, ties
from heed.text.vocab import Vocab


def bundle(vocab: Vocab, config_of: Callable[..., Any], **changes: Any) -> Bundle:
    """A bundle of `config_of(**changes)` with this vocabulary on both sides."""
    sizes = {"src_vocab_size": vocab.size, "tgt_vocab_size": vocab.size}
    config = config_of(**(sizes | changes))
    random = np.random.default_rng(1)
    weights = {
        name: random.normal(size=shape).astype(np.float32)
        for name, shape in stored_shapes(config).items()
    }
    weights |= {alias: weights[name] for alias, name in ties(config).items()}
    return Bundle(config=config, weights=weights, src_vocab=vocab, tgt_vocab=vocab)
