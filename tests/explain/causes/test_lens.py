"""Each layer as if it were the last, and what features of a feed-forward network write."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.explain.causes.conftest import LINES

from heed.errors import UsageError
from heed.explain.causes.effects import changed, effect_on
from heed.explain.causes.lens import logit_lens, nearest_embeddings
from heed.explain.causes.memories import firing
from heed.explain.causes.pair import Pair
from heed.explain.causes.parts import Layer
from heed.translate.translator import Translator

TranslatorOf = Callable[..., Translator]

KINDS: dict[str, dict[str, Any]] = {
    "pre": {"norm": "pre"},
    "post": {},
    "merged": {"decoder_attention": "merged"},
    "decoder": {"family": "decoder", "norm": "pre"},
    "conv": {"family": "conv"},
}


@pytest.fixture(params=KINDS)
def translator(request: pytest.FixtureRequest, translator_of: TranslatorOf) -> Translator:
    return translator_of(**KINDS[request.param])


def test_the_last_layer_says_what_the_model_says(translator: Translator) -> None:
    pair = Pair.of(translator, LINES[0], LINES[1])
    first, last = logit_lens(pair, k=3)
    with torch.no_grad():
        probabilities = pair.log_probs()[0].exp()
        own = pair.token_log_probs()[0].exp().numpy()
    values, ids = probabilities.topk(3)
    np.testing.assert_allclose(last.values, values.numpy(), atol=1e-6)
    assert last.pieces == [pair.tgt_vocab.pieces(row) for row in ids.tolist()]
    np.testing.assert_allclose(last.own, own, atol=1e-6)
    assert (first.layer, last.layer) == ("decoder.0", "decoder.1")


def test_a_layer_says_what_the_model_says_without_those_behind_it(translator: Translator) -> None:
    pair = Pair.of(translator, LINES[0], LINES[1])
    first, _ = logit_lens(pair)
    without = effect_on(pair, [Layer(name="decoder.1")])
    np.testing.assert_allclose(np.log(first.own), without.after, atol=1e-4)
    assert [row[0] for row in first.pieces] == without.likeliest


def test_layers_of_an_encoder_are_compared_with_embeddings(translator_of: TranslatorOf) -> None:
    translator = translator_of(norm="pre")
    pair = Pair.of(translator, LINES[0], LINES[1])
    first, last = nearest_embeddings(pair, k=2)
    memory = translator.trace(LINES[0], LINES[1])["memory"]
    table = translator.traced.network.get_parameter("embed_src.tokens.weight").detach().numpy()
    cosines = memory @ table.T / np.linalg.norm(memory, axis=1)[:, None]
    cosines /= np.linalg.norm(table, axis=1)
    np.testing.assert_allclose(last.own, cosines[range(9), pair.src_ids], atol=1e-5)
    np.testing.assert_allclose(last.values[:, 0], cosines.max(axis=1), atol=1e-5)
    nearest = [pieces[0] for pieces in last.pieces]
    assert nearest == pair.tgt_vocab.pieces(cosines.argmax(axis=1).tolist())
    assert not np.allclose(first.own, last.own)
    assert len(nearest_embeddings(Pair.of(translator_of(cross_from="same"), "A dog", "Two"))) == 2


def test_a_model_without_layers_says_so(translator_of: TranslatorOf) -> None:
    pair = Pair.of(translator_of(family="rnn"), LINES[0], LINES[1])
    with pytest.raises(UsageError, match="no stack of decoder layers"):
        logit_lens(pair)
    with pytest.raises(UsageError, match="no stack of encoder layers"):
        nearest_embeddings(Pair.of(translator_of(family="decoder"), LINES[0], LINES[1]))


@pytest.mark.parametrize("family", ["transformer", "decoder"])
def test_without_a_feature_its_pieces_change_by_what_it_wrote(
    translator_of: TranslatorOf, family: str
) -> None:
    """Claim 94: the network is a table of keys and values, from which one entry is taken out."""
    # Without norms, what the last layer adds reaches the logits as it is.
    pair = Pair.of(translator_of(norm="none", family=family), LINES[0], LINES[1])
    strongest, *others = firing(pair, 2, "decoder.1.feed_forward", n_features=4, k=5)
    assert all(strongest.length >= other.length for other in others)

    def logits() -> Any:
        from heed.model.trace import recording

        with torch.no_grad(), recording(pair.network, "logits") as caught:
            pair.log_probs()
        return caught["logits"][0, 2]

    before = logits()
    with changed(pair, [strongest.feature]):
        fallen = before - logits()
    values, ids = fallen.topk(5)
    assert pair.tgt_vocab.pieces(ids.tolist()) == strongest.raised
    np.testing.assert_allclose(strongest.raised_by, values.numpy(), atol=1e-4)
    values, ids = fallen.topk(5, largest=False)
    assert pair.tgt_vocab.pieces(ids.tolist()) == strongest.lowered
    np.testing.assert_allclose(strongest.lowered_by, values.numpy(), atol=1e-4)


def test_a_memory_that_is_not_there_is_an_error(translator_of: TranslatorOf) -> None:
    pair = Pair.of(translator_of(), LINES[0], LINES[1])
    for name in ("encoder.0.feed_forward", "decoder.4.feed_forward"):
        with pytest.raises(
            UsageError, match=f"no feed-forward network of the decoder named {name}"
        ):
            firing(pair, 0, name)
    with pytest.raises(UsageError, match="position must lie between 0 and .*, but is 99"):
        firing(pair, 99, "decoder.0.feed_forward")


def test_the_number_of_pieces_is_a_whole_number_from_1(translator_of: TranslatorOf) -> None:
    pair = Pair.of(translator_of(), LINES[0], LINES[1])
    network = "decoder.0.feed_forward"
    for k in (-1, 0, 2.5):
        with pytest.raises(UsageError, match=f"k must be a whole number from 1, but is {k}"):
            logit_lens(pair, k=k)
        with pytest.raises(UsageError, match=f"k must be a whole number from 1, but is {k}"):
            nearest_embeddings(pair, k=k)
        with pytest.raises(UsageError, match=f"k must be a whole number from 1, but is {k}"):
            firing(pair, 0, network, k=k)
        with pytest.raises(UsageError, match=f"n_features must be a .* from 1, but is {k}"):
            firing(pair, 0, network, n_features=k)
    with pytest.raises(UsageError, match="position must lie between 0 and .*, but is 'x'"):
        firing(pair, "x", network)
    with pytest.raises(UsageError, match="feed_forward must be a string, but is 1"):
        firing(pair, 0, 1)
    assert len(firing(pair, 0, network, n_features=1, k=10**6)[0].raised) == pair.tgt_vocab.size
