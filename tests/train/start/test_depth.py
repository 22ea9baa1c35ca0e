"""Layers left out or taken twice: which, and that all other weights stay."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.families import stored_shapes
from heed.train.start.depth import spread, with_depth

DEEP = ModelConfig(
    src_vocab_size=20,
    tgt_vocab_size=20,
    d_model=8,
    n_heads=2,
    d_ff=12,
    n_encoder_layers=11,  # numbers of one figure and of two
    n_decoder_layers=3,
    norm="pre",
)


@pytest.mark.parametrize(
    ("n_layers", "n_wanted", "chosen"),
    [
        (3, 1, [0]),
        (3, 2, [0, 2]),
        (6, 3, [0, 2, 5]),
        (4, 4, [0, 1, 2, 3]),
        (3, 5, [0, 0, 1, 2, 2]),
        (1, 2, [0, 0]),
        (3, 0, []),
    ],
)
def test_layers_are_spread_evenly_and_keep_their_order(
    n_layers: int, n_wanted: int, chosen: list[int]
) -> None:
    assert spread(n_layers, n_wanted) == chosen


def test_weights_are_those_of_the_chosen_layers_under_the_names_of_their_new_places() -> None:
    shapes = stored_shapes(DEEP)
    new = replace(DEEP, n_encoder_layers=2, n_decoder_layers=5)
    taken = with_depth({name: name for name in shapes}, DEEP, new)
    assert taken.keys() == stored_shapes(new).keys()
    places = {"encoder": (0, 10), "decoder": (0, 0, 1, 2, 2)}
    for name, origin in taken.items():
        stack, *rest = name.split(".")
        if stack in places:
            rest[0] = str(places[stack][int(rest[0])])
        assert origin == ".".join([stack, *rest])


def test_layers_that_change_nothing_can_be_left_out() -> None:
    """What a layer adds to its input is projected last: with zeros there, it adds nothing."""
    torch.manual_seed(1)
    deep = build_model(DEEP)
    for stack, kept in ((deep.encoder, (0, 10)), (deep.decoder, (0,))):
        for number, layer in enumerate(stack):
            if number not in kept:
                for name, weight in layer.named_parameters():
                    if "project_out" in name or "contract" in name:
                        torch.nn.init.zeros_(weight)
    new = replace(DEEP, n_encoder_layers=2, n_decoder_layers=1)
    shallow = build_model(new)
    shallow.load_state_dict(with_depth(deep.state_dict(), DEEP, new))
    src, tgt_in = torch.tensor([[5, 6, 7, 3]]), torch.tensor([[2, 8, 9]])
    with torch.no_grad():
        found, wanted = (model.eval()(src, tgt_in) for model in (shallow, deep))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)
