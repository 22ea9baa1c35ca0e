from typing import Any

import numpy as np

from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.decode.state import ENDED

TINY: dict[str, Any] = {"bos_id": 0, "eos_id": 1, "pad_id": 99}
GREEDY = DecodeOptions(beam_size=1, max_length=12)


def test_greedy_takes_the_likeliest_token_at_every_step(fakes: Any) -> None:
    """Claims 112, 113."""
    model = fakes.hash_model(0, vocab_size=9, n_kinds=6)
    for kind, [found] in enumerate(decode(model, np.arange(6)[:, None], GREEDY, **TINY)):
        ids: list[Any] = []
        while len(ids) < 12:
            log_probs = model.log_probs_after(kind, [0, *ids])
            ids.append(log_probs.index(max(log_probs)))
            if ids[-1] == 1:
                break
        assert found.ids == (ids[:-1] if ids[-1] == 1 else ids)
        assert found.status == ("eos" if ids[-1] == 1 else "max_length")


def test_finished_rows_leave_the_batch_in_company(fakes: Any) -> None:
    table = np.zeros((17, 40, 6))
    table[..., 4] = 5.0
    model = fakes.HashModel(table)
    src = np.zeros((16, 17), dtype=np.int64)
    for row in range(16):
        src[row, : row + 2] = row + 1  # row r may get r + 2 tokens
    options = DecodeOptions(
        beam_size=1, max_length=40, max_length_factor=1.0, max_length_offset=0.0
    )
    found = decode(model, src, options, bos_id=0, eos_id=1, pad_id=0)
    assert [len(answer.ids) for [answer] in found] == list(range(2, 18))
    needed = sum(range(2, 18))
    assert needed <= model.rows_computed < 1.15 * needed


def test_the_observer_sees_every_live_row_once_a_step(fakes: Any) -> None:
    model = fakes.hash_model(1, vocab_size=5, n_kinds=8)
    steps: list[Any] = []
    found = decode(model, np.arange(8)[:, None], GREEDY, observer=steps.append, **TINY)
    seen: dict[int, list[Any]] = {source: [] for source in range(8)}
    for step in steps:
        for source, token, slot in zip(
            step.sources.tolist(), step.ids[:, 0].tolist(), step.slots[:, 0].tolist(), strict=True
        ):
            assert (slot == ENDED) == (token == 1)
            seen[source].append(token)
        assert step.n_allowed is None
    for source, [answer] in enumerate(found):
        assert seen[source] == answer.ids + [1] * (answer.status == "eos")
