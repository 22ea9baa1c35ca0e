"""What decides the reference of a pronoun, in any family; `tests/learn` trains a model for it."""

from collections.abc import Callable

import numpy as np
import pytest
from tests.explain.causes.conftest import LINES

from heed.errors import UsageError
from heed.explain.causes.pair import Pair
from heed.explain.causes.reference import reference
from heed.translate.translator import Translator

TranslatorOf = Callable[..., Translator]


@pytest.mark.parametrize("family", ["transformer", "conv", "decoder", "rnn"])
def test_words_are_compared_also_without_self_attention_of_an_encoder(
    translator_of: TranslatorOf, family: str
) -> None:
    pair = Pair.of(translator_of(family=family), LINES[0], LINES[2])
    found = reference(pair, "n", ["dog", "s"], chosen="S", rival="T")
    has_encoder = family == "transformer"
    assert found.attention.shape == ((2, 2, 2) if has_encoder else (2, 0, 0))
    row = pair.log_probs()[0, pair.expected_tokens.index("S")].detach().numpy()
    pieces = pair.tgt_vocab.pieces(range(pair.tgt_vocab.size))
    preference = row[pieces.index("S")] - row[pieces.index("T")]
    np.testing.assert_allclose(found.preference, preference, atol=1e-5)
    assert (found.lost != 0).all()


def test_a_word_that_is_not_in_the_source_is_named(translator_of: TranslatorOf) -> None:
    pair = Pair.of(translator_of(), LINES[0], LINES[2])
    with pytest.raises(UsageError, match="elephant must be one of the tokens"):
        reference(pair, "elephant", [], chosen="S", rival="T")
