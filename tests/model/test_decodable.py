import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.model.decodable import TorchDecodable, TorchNextTokens, stable_top, top
from heed.model.interface import Changes
from heed.model.trace import recording
from heed.model.transformer import Transformer

SRC = np.array([[3, 4, 5, 2], [6, 7, 2, 0]])
TGT_IN = np.array([[1, 8, 9], [1, 5, 0]])


@pytest.fixture
def model(tiny: Callable[..., Transformer]) -> TorchDecodable:
    return TorchDecodable(tiny(), torch.device("cpu"))


def expected(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    ids = scores.sort(dim=-1, descending=True, stable=True).indices[:, :count]
    return scores.gather(1, ids), ids


# --------------------------------------------------------------------------------------- the top


Top = Callable[[Tensor, int], tuple[Tensor, Tensor]]


@pytest.fixture(params=[top, stable_top])
def find_top(request: pytest.FixtureRequest) -> Top:
    return request.param


@pytest.mark.parametrize("width", [1, 5, 63, 64, 700, 4096, 5001])
@pytest.mark.parametrize("count", [1, 2, 6, 40])
@pytest.mark.parametrize("n_levels", [3, 50, 10**7])
def test_top_is_a_stable_sort_cut_short(
    find_top: Top, width: int, count: int, n_levels: int
) -> None:
    generator = torch.Generator().manual_seed(width + count)
    scores = -torch.randint(n_levels, (9, width), generator=generator).float() / 7
    scores[:, ::5] *= -1 if n_levels == 3 else 1  # some are -0.0, and others 0.0
    scores = scores.minimum(torch.tensor(0.0))
    values, ids = find_top(scores, count)
    assert torch.equal(values, expected(scores, count)[0])
    assert torch.equal(ids, expected(scores, count)[1])


def test_neighboring_floats_are_not_taken_for_equals(find_top: Top) -> None:
    below = torch.nextafter(torch.tensor(-7.0), torch.tensor(-8.0)).item()
    scores = torch.full((1, 3000), -7.0)
    scores[0, :10] = below
    assert find_top(scores, 2)[1].tolist() == [[10, 11]]


def test_a_row_with_one_possible_entry_begins_with_it(find_top: Top) -> None:
    scores = torch.full((2, 1000), -math.inf)
    scores[0, 999], scores[1, 17] = -1.0, -2.0
    values, ids = find_top(scores, 3)
    assert ids[:, 0].tolist() == [999, 17]
    assert values[:, 1:].eq(-math.inf).all()


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("width", [7, 3000])
def test_what_is_no_number_comes_first(find_top: Top, sign: float, width: int) -> None:
    """Beside equals, and whatever its bit of the sign is, so that a search notices it."""
    scores = torch.full((2, width), -1.0)
    scores[1, 5] = math.copysign(math.nan, sign)
    values, _ = find_top(scores, 2)
    assert values[1, 0].isnan()
    assert values[0].tolist() == [-1.0, -1.0]


def test_a_strided_row_is_no_trouble(find_top: Top) -> None:
    scores = -torch.rand(4, 3000, generator=torch.Generator().manual_seed(0))[:, ::2]
    assert torch.equal(find_top(scores, 3)[1], expected(scores, 3)[1])


def test_logits_of_half_precision_are_not_rounded(tiny: Callable[..., Transformer]) -> None:
    """Rounded to bfloat16, a third of the likeliest of 13 would be equal."""
    network = tiny().to(torch.bfloat16)
    states = torch.randn(200, 8, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    with torch.inference_mode():
        logits = network.logits(states)
    truth = states.double() @ network.output.weight.double().t()
    torch.testing.assert_close(logits.double(), truth, rtol=1e-5, atol=1e-5)


# ----------------------------------------------------------------------------------- the answers


def changes_of(**given: Any) -> Changes:
    kinds = {"forbidden": np.int64, "rows": np.int64, "ids": np.int64, "scores": np.float32}
    return Changes(
        **{name: np.array(given.get(name, []), dtype=kind) for name, kind in kinds.items()}
    )


@pytest.mark.parametrize("width", [7, 3000])
def test_changes_count_for_one_answer_and_leave_the_log_probs_alone(width: int) -> None:
    generator = torch.Generator().manual_seed(0)
    log_probs = torch.randn(3, width, generator=generator).log_softmax(-1)
    best = log_probs.argmax(dim=-1).tolist()
    following = TorchNextTokens(log_probs.clone())
    changes = changes_of(
        forbidden=[best[0]],
        # Two for one entry: the lower counts. One that would raise a score: it does not.
        rows=[1, 1, 2],
        ids=[best[1], best[1], best[2]],
        scores=[-math.inf, -50.0, 0.0],
    )
    altered = log_probs.clone()
    altered[1, best[1]] = -math.inf
    altered[:, best[0]] = -math.inf
    for _ in range(2):
        values, ids = following.top_k(4, changes)
        assert (torch.from_numpy(values) == expected(altered, 4)[0]).all()
        assert (torch.from_numpy(ids) == expected(altered, 4)[1]).all()
        assert (following.all_log_probs() == log_probs.numpy()).all()
    assert (
        following.log_probs_of(np.array([[best[0], 1]] * 3)).tolist()
        == log_probs[:, [best[0], 1]].tolist()
    )
    everything = following.all_log_probs()
    everything[:] = 0.0
    assert (following.all_log_probs() == log_probs.numpy()).all()


def test_arrays_get_what_tensors_get(model: TorchDecodable) -> None:
    """Step by step, reordered on the way, and in one forced pass."""
    network = model.network
    with torch.inference_mode():
        state, twin = model.start(SRC, beam_size=2), network.start(torch.tensor(SRC), beam_size=2)
        for tokens in ([1, 1, 1, 1], [3, 4, 5, 6]):
            following = model.step(state, np.array(tokens))
            logits = network.step(twin, torch.tensor(tokens))
            assert (following.n_rows, following.vocab_size) == (4, 13)
            assert (following.all_log_probs() == logits.log_softmax(-1).numpy()).all()
            model.select(state, np.array([1, 0, 3, 3]))
            network.select(twin, torch.tensor([1, 0, 3, 3]))
        model.select(state, np.array([3, 2]), np.array([1]))
        network.select(twin, torch.tensor([3, 2]), torch.tensor([1]))
        logits = network.step(twin, torch.tensor([7, 8]))
        assert (
            model.step(state, np.array([7, 8])).all_log_probs() == logits.log_softmax(-1).numpy()
        ).all()
        whole = network.teacher_forced(torch.tensor(SRC), torch.tensor(TGT_IN)).log_softmax(-1)
        assert (
            model.teacher_forced(SRC, TGT_IN).all_log_probs() == whole.flatten(0, 1).numpy()
        ).all()


def test_two_searches_at_once_do_not_meet(model: TorchDecodable) -> None:
    one, two = model.start(SRC), model.start(SRC[::-1].copy())
    first = model.step(one, np.array([1, 1]))
    before = first.all_log_probs()
    model.step(two, np.array([1, 1]))
    assert (first.all_log_probs() == before).all()


def test_cross_attention_is_that_of_every_layer_in_order(
    tiny: Callable[..., Transformer],
) -> None:
    network = tiny(n_decoder_layers=3)
    found = TorchDecodable(network, torch.device("cpu")).cross_attention(SRC, TGT_IN)
    with recording(network) as caught:
        network.teacher_forced(torch.tensor(SRC), torch.tensor(TGT_IN))
    names = [f"decoder.{number}.cross_attention.weights" for number in range(3)]
    for weights, name in zip(found, names, strict=True):
        assert weights.dtype == np.float32
        assert (weights == caught[name].detach().numpy()).all()


def test_a_model_of_half_precision_keeps_its_output_layer(tiny: Callable[..., Transformer]) -> None:
    network = tiny()
    weights = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    half = TorchDecodable.of(
        network.config, weights, device=torch.device("cpu"), dtype=torch.bfloat16
    ).network
    assert half.output.weight.dtype == torch.bfloat16
    states = torch.randn(50, 8, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    with torch.inference_mode():
        torch.testing.assert_close(half.logits(states), network.logits(states.float()))


def test_a_model_is_built_from_weights_that_nobody_may_write(
    tiny: Callable[..., Transformer], config_of: Callable[..., Any]
) -> None:
    network = tiny()
    weights = {name: tensor.numpy().copy() for name, tensor in network.state_dict().items()}
    for array in weights.values():
        array.flags.writeable = False
    cpu = torch.device("cpu")
    model = TorchDecodable.of(config_of(), weights, device=cpu, dtype=torch.float32)
    assert not model.network.training
    before, after = (
        one.teacher_forced(SRC, TGT_IN).all_log_probs()
        for one in (TorchDecodable(network, cpu), model)
    )
    assert (before == after).all()
    half = TorchDecodable.of(config_of(), weights, device=cpu, dtype=torch.bfloat16)
    assert half.network.output.weight.dtype == torch.bfloat16
    assert half.teacher_forced(SRC, TGT_IN).all_log_probs().dtype == np.float32


# --------------------------------------------------------------------------------------- prompts

PROMPTS = np.array([[5, 9, 7, 8, 4, 6], [6, 0, 0, 0, 0, 0], [0] * 6, [9, 9, 4, 7, 0, 0]])
NO_SOURCES = np.zeros((1, 0), np.int64)
READERS: dict[str, dict[str, Any]] = {
    "sinusoidal": {"positions": "sinusoidal"},
    "learned": {"positions": "learned", "max_positions": 12},
    "rotary": {"positions": "rotary", "prefix": "causal", "norm": "post"},
    "alibi": {"positions": "alibi"},
    "shaw": {"positions": "shaw", "max_distance": 2},
    "none": {"positions": "none", "mask": "after"},
}


@pytest.mark.parametrize("kind", READERS)
def test_prompts_of_any_length_are_read_at_once_as_one_token_after_another(
    kind: str, tiny: Callable[..., Any]
) -> None:
    """Beside the same tokens one after another, alone; also after rows have left and moved."""
    model = TorchDecodable(tiny(family="decoder", **READERS[kind]), torch.device("cpu"))
    assert model.reads_prompts
    tokens, stay = np.random.default_rng(1).integers(4, 11, (len(PROMPTS), 4)), np.array([3, 0])
    state = model.start_from(PROMPTS)
    found = [model.step(state, column).all_log_probs() for column in tokens[:, :2].T]
    model.select(state, stay, stay)
    model.extend(state, tokens[stay, 2:3])
    found.append(model.step(state, tokens[stay, 3]).all_log_probs())
    places = [(row, row, number) for row in range(4) for number in (0, 1)]
    for row, place, number in [*places, (3, 0, 2), (0, 1, 2)]:
        prompt = PROMPTS[row][PROMPTS[row] != 0]
        alone = model.start(NO_SOURCES)
        for token in [*prompt, *tokens[row, : (1, 2, 4)[number]]]:
            wanted = model.step(alone, np.array([token])).all_log_probs()
        np.testing.assert_allclose(found[number][place], wanted[0], rtol=1e-6, atol=2e-6)


def test_prompts_of_one_length_need_no_mask_and_give_the_bits_of_a_start(
    tiny: Callable[..., Any],
) -> None:
    model = TorchDecodable(tiny(family="decoder"), torch.device("cpu"))
    prompts, last = PROMPTS[:1].repeat(2, axis=0), np.array([7, 8])
    one, other = model.start_from(prompts), model.start(NO_SOURCES.repeat(2, axis=0))
    model.extend(other, prompts)
    assert one.decoder.n_padded is None
    found, wanted = (model.step(state, last).all_log_probs() for state in (one, other))
    assert (found == wanted).all()


@pytest.mark.parametrize("changes", [{"window": 2}, {"attention": "linear"}])
def test_a_window_and_sums_read_prompts_as_far_as_all_go(
    changes: dict[str, Any], tiny: Callable[..., Any]
) -> None:
    """Their memory has no place for padding; what they go on with is what each does alone."""
    model = TorchDecodable(tiny(family="decoder", **changes), torch.device("cpu"))
    assert not model.reads_prompts
    prompts = [[5, 9, 7, 8], [6]]

    def answers(rows: list[list[int]]) -> list[list[int]]:
        options = DecodeOptions(
            beam_size=1, max_length=9, max_length_factor=0.0, max_length_offset=4
        )
        found = decode(
            model,
            NO_SOURCES.repeat(len(rows), axis=0),
            options,
            bos_id=1,
            eos_id=2,
            pad_id=0,
            prefixes=rows,
            score_prefixes=False,
        )
        return [best.ids for best, *_ in found]

    assert answers(prompts) == [answers([prompt])[0] for prompt in prompts]
