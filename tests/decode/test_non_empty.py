"""No translation is empty where a search finds another."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.decode.state import Hypothesis, IsWanted
from heed.translate.empty import search_non_empty
from heed.translate.parts import Chunk

BOS, EOS = 0, 1


@pytest.fixture
def model(fakes: Any) -> Any:
    """Of two kinds of source, only the first ends at once; both then go on and on."""
    logits = np.full((2, 1, 5), -9.0)
    logits[..., EOS] = [[-1.0], [-8.0]]
    logits[..., 2] = 0.0
    return fakes.HashModel(logits)


def searched(
    model: Any, options: DecodeOptions, sources: Sequence[int], is_wanted: IsWanted | None = None
) -> tuple[list[list[Hypothesis]], list[int]]:
    """The hypotheses, and the number of parts in each search."""
    sizes = []

    def search(
        chunks: Sequence[Chunk], options: DecodeOptions, is_wanted: IsWanted | None
    ) -> list[list[Hypothesis]]:
        sizes.append(len(chunks))
        src = np.array([chunk.src_ids for chunk in chunks])
        ids = {"bos_id": BOS, "eos_id": EOS, "pad_id": 4}
        return decode(model, src, options, is_wanted=is_wanted, **ids)

    chunks = [Chunk([source], [], key) for key, source in enumerate(sources)]
    return search_non_empty(search, chunks, options, is_wanted), sizes


def test_a_part_with_an_empty_translation_is_searched_again(model: Any) -> None:
    options = DecodeOptions(beam_size=2, max_length=4)
    found, sizes = searched(model, options, [1, 0, 1])
    assert sizes == [3, 1]
    assert all(hypotheses[0].ids for hypotheses in found)
    alone, _ = searched(model, options, [0])
    assert found[1] == alone[0]
    assert [each.ids for each in found[1]] == [[2]]


@pytest.mark.parametrize(
    "options", [{"max_length": 1}, {"sample": True, "seed": 2}, {"sample": True, "seed": 9}]
)
def test_samples_and_searches_without_room_stay(model: Any, options: dict[str, Any]) -> None:
    found, sizes = searched(model, DecodeOptions(**options), [0, 1])
    assert sizes == [2] and len(found) == 2


def test_a_part_that_is_unwanted_is_not_searched_to_its_end(model: Any) -> None:
    asked: list[list[int]] = []

    def is_wanted(parts: Any) -> Any:
        asked.append(parts.tolist())
        return parts != 2

    options = DecodeOptions(beam_size=2, max_length=4)
    found, sizes = searched(model, options, [1, 0, 0], is_wanted)
    assert sizes == [3, 1]
    assert found[2] == []
    assert {part for parts in asked for part in parts} <= {0, 1, 2}
