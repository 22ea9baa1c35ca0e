"""Roles of heads by hand, and diversity from a trace."""

import numpy as np
import pytest

from heed.errors import UsageError
from heed.explain.attention.maps import maps
from heed.explain.attention.roles import distances_of, main_role, roles, roles_of
from heed.translate.translator import Translator


def test_shares_of_a_head_by_hand() -> None:
    weights = np.array(
        [[0.1, 0.2, 0.3, 0.4], [0.5, 0.5, 0, 0], [0, 0.4, 0.4, 0.2], [0, 0, 1, 0]], np.float32
    )
    found = roles(weights, ["▁a", "▁b", ".", "<eos>"], is_self=True, rarest=[1])
    assert found == pytest.approx(
        {
            "previous": (0.5 + 0.4 + 1) / 4,
            "next": (0.2 + 0 + 0.2) / 4,
            "same": (0.1 + 0.5 + 0.4 + 0) / 4,
            "special": (0.4 + 0 + 0.2 + 0) / 4,
            "punctuation": (0.3 + 0 + 0.4 + 1) / 4,
            "rare": (0.2 + 0.5 + 0.4 + 0) / 4,
        }
    )
    assert main_role(found) is None
    assert main_role(found, least=0.4) == "previous"


def test_every_head_of_a_trace_has_shares(translator: Translator) -> None:
    trace = translator.trace("Two men ride a bike.", "A dog runs.")
    found = roles_of(trace, "cross", translator.src_vocab)
    assert [len(layer) for layer in found] == [2, 2]
    with pytest.raises(UsageError, match="use must be encoder, decoder or cross"):
        roles_of(trace, "joint")
    weights = maps(trace, "cross")[1][0]
    assert found[1][0]["special"] == pytest.approx(weights[:, -1].mean(), abs=1e-6)
    vocab = translator.src_vocab
    numbers = {piece: i for i, piece in enumerate(vocab.pieces(range(vocab.size)))}
    rare = max(trace.source_tokens, key=lambda piece: numbers[piece])
    columns = [i for i, piece in enumerate(trace.source_tokens) if piece == rare]
    assert found[1][0]["rare"] == pytest.approx(weights[:, columns].sum(axis=1).mean(), abs=1e-6)
    assert "previous" not in found[0][0]
    assert set(roles_of(trace, "encoder")[0][0]) > {"previous", "next", "same"}


def test_heads_of_a_trace_differ(translator: Translator) -> None:
    """Claim 61."""
    trace = translator.trace("Two men ride a bike.", "A dog runs.")
    for distances in distances_of(trace, "encoder"):
        assert distances.shape == (2, 2)
        assert 0 < distances[0, 1] == distances[1, 0] < 1
        assert distances[0, 0] == pytest.approx(0, abs=1e-9)
