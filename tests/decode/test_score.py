from typing import Any

import numpy as np
import pytest

from heed.decode.options import DecodeOptions
from heed.decode.score import next_token, score_pairs
from heed.decode.search import decode

WORDS: dict[str, Any] = {"bos_id": 2, "eos_id": 3, "pad_id": 0}


def test_pairs_are_scored_token_by_token_and_padding_counts_nothing(fakes: Any) -> None:
    """Claim 1."""
    model = fakes.hash_model(0, vocab_size=9, n_kinds=3)
    tgt_in = np.array([[2, 5, 6], [2, 7, 0]])
    tgt_out = np.array([[5, 6, 3], [7, 3, 0]])
    log_probs = score_pairs(model, np.array([[1], [2]]), tgt_in, tgt_out, pad_id=0)
    for row, kind in enumerate((1, 2)):
        for place in range(3):
            token = int(tgt_out[row, place])
            history = tgt_in[row, : place + 1].tolist()
            expected = model.log_probs_after(kind, history)[token] if token else 0.0
            assert float(log_probs[row, place]) == pytest.approx(expected, abs=1e-6)


def test_the_chances_of_the_next_token_add_up(fakes: Any) -> None:
    """Claim 3."""
    model = fakes.hash_model(0, vocab_size=9, n_kinds=3)
    prefixes = [[], [4, 5, 6]]
    found = next_token(model, np.array([[1], [2]]), prefixes, count=9, bos_id=2, pad_id=0)
    for kind, prefix, tokens in zip((1, 2), prefixes, found, strict=True):
        expected = model.log_probs_after(kind, [2, *prefix])
        assert sum(token.probability for token in tokens) == pytest.approx(1.0, abs=1e-6)
        assert [token.id for token in tokens] == sorted(range(9), key=lambda i: -expected[i])
        assert all(token.log_prob == expected[token.id] for token in tokens)


def test_forbidden_tokens_are_not_told_and_keep_their_share(fakes: Any) -> None:
    model = fakes.hash_model(0, vocab_size=9)
    free, barred = (
        next_token(
            model,
            np.array([[0]]),
            [[5]],
            count=4,
            bos_id=2,
            pad_id=0,
            forbidden=forbidden,
        )[0]
        for forbidden in ([], [0, 1, 2])
    )
    assert not {token.id for token in barred} & {0, 1, 2}
    assert [token for token in free if token.id > 2] == barred[: len(free)][
        : len([token for token in free if token.id > 2])
    ]


def test_nothing_asked_gives_nothing(fakes: Any) -> None:
    model = fakes.hash_model(0, vocab_size=9)
    src = np.empty((0, 3), dtype=np.int64)
    assert next_token(model, src, [], count=4, bos_id=2, pad_id=0) == []


def test_a_next_token_and_a_search_make_alternatives(fakes: Any) -> None:
    model = fakes.hash_model(3, vocab_size=9)
    src, prefix = np.array([[0]]), [5, 6]
    [following] = next_token(model, src, [prefix], count=4, bos_id=2, pad_id=0, forbidden=[0, 1, 2])
    found = decode(
        model,
        src.repeat(4, axis=0),
        DecodeOptions(beam_size=3, max_length=12),
        prefixes=[[*prefix, token.id] for token in following],
        forbidden=[0, 1, 2],
        **WORDS,
    )
    for [answer], token in zip(found, following, strict=True):
        assert [*answer.ids, 3][:3] == [5, 6, token.id]
        assert answer.token_log_probs[2] == token.log_prob
