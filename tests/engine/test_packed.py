"""int8 networks as arrays: what comes back is what went in, and nothing else gets in."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from heed.engine.network import Network, relative_errors
from heed.engine.packed import expected, from_arrays, to_arrays
from heed.engine.runtime import Engine
from heed.errors import FormatError
from heed.model.network import TorchNetwork

ARCHITECTURES: list[dict[str, Any]] = [
    {},
    {"tied": "three-way", "src_vocab_size": 70, "bias": False},
    {"tied": "output", "norm": "pre", "activation": "swiglu"},
    {"positions": "learned", "cross_from": "same", "d_v": 5},
    {"family": "decoder", "positions": "learned"},
    {"family": "decoder", "tied": "none", "bias": False, "positions": "rotary"},
]


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_a_network_comes_back(
    architecture: dict[str, Any], network: Callable[..., Network]
) -> None:
    one = network(is_quantized=True, **architecture)
    arrays = to_arrays(one)
    other = from_arrays(one.config, arrays, "there")
    src = np.array([[4, 5, 6], [7, 0, 0]])
    steps = [
        engine.step(engine.start(src), np.array([2, 2])).all_log_probs()
        for engine in (Engine(one), Engine(other))
    ]
    np.testing.assert_array_equal(*steps)
    assert {name: (array.dtype, array.shape) for name, array in arrays.items()} == expected(
        one.config
    )


def test_a_tied_matrix_is_stored_once(network: Callable[..., Network]) -> None:
    tied = to_arrays(network(is_quantized=True, tied="three-way", src_vocab_size=70))
    assert [name for name in tied if name.startswith(("embed", "output"))] == [
        "embed_src.ints",
        "embed_src.scales",
    ]


def test_arrays_that_do_not_fit_the_config_are_refused(network: Callable[..., Network]) -> None:
    one = network(is_quantized=True)
    arrays = to_arrays(one)

    def refused(changed: dict[str, Any], words: str) -> None:
        with pytest.raises(FormatError, match=words):
            from_arrays(one.config, changed, "there")

    without = {name: array for name, array in arrays.items() if name != "output.scales"}
    refused(without, r"there lacks output\.scales")
    refused(arrays | {"output.extra": np.zeros(3, np.float32)}, r"there holds output\.extra")
    ints = arrays["decoder.1.query.ints"]
    refused(arrays | {"decoder.1.query.ints": ints[:-1]}, r"decoder\.1\.query\.ints must be int8")
    refused(arrays | {"decoder.1.query.ints": ints.view(np.uint8)}, "but is uint8")
    refused(
        arrays | {"decoder.1.query.ints": np.full_like(ints, 64)}, "beyond ±63; .* heed quantize"
    )
    refused(arrays | {"decoder.1.query.ints": np.full_like(ints, -128)}, "beyond ±63")
    gain = arrays["decoder.1.cross.norm.gain"].astype(np.float64)
    refused(arrays | {"decoder.1.cross.norm.gain": gain}, "must be float32")


def test_the_error_of_rounding_is_told_by_matrix(
    network: Callable[..., Network], torch_model: Callable[..., TorchNetwork]
) -> None:
    rounded = network(is_quantized=True)
    weights = {name: tensor.numpy() for name, tensor in torch_model().state_dict().items()}
    errors = relative_errors(rounded, weights)
    assert errors.keys() == rounded.matrices.keys()
    assert all(0.002 < error < 0.03 for error in errors.values())
