"""`translator_of(**changes)`: a tiny random translator of any family that can be traced."""

from collections.abc import Callable

import pytest
import torch

from heed.model.decodable import TorchDecodable
from heed.model.transformer import Transformer
from heed.text.vocab import Vocab, train_vocab
from heed.translate.load import Traceable
from heed.translate.translator import Translator
from heed.translate.twin import Twin

LINES = ["A dog runs.", "Two men ride a bike in the snow.", "Snow falls on the men and the dog."]


class OpenTwin(Twin):
    """A twin of no folder, open already."""

    def __init__(self, model: Traceable) -> None:
        super().__init__("nowhere")
        self._open = model

    @property
    def model(self) -> Traceable:
        return self._open


@pytest.fixture(scope="session")
def vocab() -> Vocab:
    """Pieces of a few English words."""
    return train_vocab(LINES * 9, size=320)


@pytest.fixture(scope="session")
def translator_of(tiny: Callable[..., Transformer], vocab: Vocab) -> Callable[..., Translator]:
    """A translator with the weights of `tiny(**changes)`; `dtype` is float32 if not given."""

    def make(*, dtype: torch.dtype = torch.float32, **changes: object) -> Translator:
        network = tiny(src_vocab_size=vocab.size, tgt_vocab_size=vocab.size, **changes)
        model = TorchDecodable(network.to(dtype), torch.device("cpu"))
        return Translator(model, vocab, vocab, twin=OpenTwin(model))

    return make
