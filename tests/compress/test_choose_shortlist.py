"""A shortlist stays only if translations stay."""

from collections.abc import Iterator

import numpy as np
import pytest

from heed.compress.choose_shortlist import rest_logit_of, try_shortlists
from heed.engine.network import Network
from heed.engine.runtime import Engine
from heed.engine.shortlist import Shortlist
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.text.vocab import train_vocab
from heed.translate.lines import Line
from heed.translate.translator import Translator

LINES = ["A man is riding a bike.", "Two dogs play in the snow.", "A city.", "Snow."]
SIZE = 286


@pytest.fixture(scope="module")
def translator() -> Translator:
    """Of random weights: it says anything."""
    import torch

    torch.manual_seed(1)
    vocab = train_vocab(LINES * 9, size=SIZE)
    assert vocab.size == SIZE
    config = ModelConfig(
        src_vocab_size=vocab.size,
        tgt_vocab_size=vocab.size,
        d_model=16,
        n_heads=2,
        d_ff=16,
        n_encoder_layers=1,
        n_decoder_layers=1,
    )
    weights = {name: w.numpy() for name, w in build_model(config).state_dict().items()}
    return Translator(Engine(Network.of(config, weights)), vocab, vocab)


def short(*ids: int) -> Shortlist:
    return Shortlist(
        common_ids=np.array(sorted(ids), np.int32),
        offsets=np.zeros(SIZE + 1, np.int32),
        source_ids=np.empty(0, np.int32),
    )


def trials(
    translator: Translator, lists: list[Shortlist], max_changed: float
) -> Iterator[tuple[tuple[int, int], bool]]:
    lines = [Line(text) for text in LINES]
    for found, is_kept in try_shortlists(translator, lists, lines, max_changed):
        yield found.changed, is_kept


def test_the_first_that_changes_no_more_than_allowed_is_kept(translator: Translator) -> None:
    nothing, enough = short(3), short(*range(3, 200))
    assert list(trials(translator, [nothing, enough], 1.0)) == [((4, 4), True)]
    # One change is too many for it: nobody waits for the others.
    found = list(trials(translator, [nothing, nothing], 0.0))
    assert found == [((1, 1), False), ((1, 1), False)]


def test_a_list_of_nearly_everything_is_not_worth_it(translator: Translator) -> None:
    assert list(trials(translator, [short(*range(SIZE))], 1.0)) == []


def test_the_column_for_the_rest_takes_what_is_left_out(translator: Translator) -> None:
    random = np.random.default_rng(0)
    logits = random.normal(size=(5, SIZE))
    log_probs = (logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))).astype(np.float32)
    kept = short(*range(100))
    rest = rest_logit_of(kept, [(np.array([4, 5]), log_probs)])
    # Of normally distributed logits, half of their variance.
    assert rest == pytest.approx(0.5, abs=0.1)
    stand_in = np.exp(log_probs[:, 100:].mean(axis=1)) * (SIZE - 100) * np.exp(rest)
    assert stand_in.sum() == pytest.approx(np.exp(log_probs[:, 100:]).sum())
    assert rest_logit_of(short(*range(SIZE)), [(np.array([4]), log_probs)]) == 0.0


def test_with_the_column_scores_are_near_those_of_the_whole_vocabulary(
    translator: Translator,
) -> None:
    lines = [Line(text) for text in LINES]
    draft = short(*range(3, 200))
    ((kept, _),) = try_shortlists(translator, [draft], lines, 1.0)
    assert isinstance(translator.model, Engine)
    src = np.array([translator.reader.src_ids(LINES[0], [])])
    steps = [
        engine.step(engine.start(src), np.array([2])).all_log_probs()[0, 3:200]
        for engine in (translator.model, translator.model.with_shortlist(kept))
    ]
    # Without it, they would be apart by the log of 286 / 197, which is 0.37.
    np.testing.assert_allclose(*steps, atol=0.1)
