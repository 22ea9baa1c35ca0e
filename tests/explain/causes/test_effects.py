"""A part that is switched off is one whose weights are zeros; what follows is computed anew."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.explain.causes.conftest import LINES

from heed.errors import UsageError
from heed.explain.causes.effects import (
    changed,
    effect,
    effect_on,
    first_order,
    importance,
    log_probs_under,
)
from heed.explain.causes.pair import Pair
from heed.explain.causes.parts import (
    Cause,
    Feature,
    Head,
    Layer,
    Patch,
    Position,
    Sublayer,
    features_of,
    heads_of,
    keys_of,
    layers_of,
    source_readings,
    sublayers_of,
)
from heed.translate.remember import remember
from heed.translate.translator import Translator

TranslatorOf = Callable[..., Translator]

FAMILIES: dict[str, dict[str, Any]] = {
    "post": {},
    "pre": {"norm": "pre", "activation": "swiglu", "positions": "rotary"},
    "shaw": {"positions": "shaw", "norm": "pre"},
    "alibi": {"positions": "alibi", "bias": False},
    "linear": {"attention": "linear"},
    "masked after": {"mask": "after"},
    "merged": {"decoder_attention": "merged"},
    "average": {"decoder_self": "average"},
    "ssru": {"decoder_self": "ssru"},
    "same layer": {"cross_from": "same"},
    "conv": {"family": "conv"},
    "decoder": {"family": "decoder"},
    "recurrent": {"family": "rnn"},
}


@pytest.fixture(params=FAMILIES)
def translator(request: pytest.FixtureRequest, translator_of: TranslatorOf) -> Translator:
    return translator_of(**FAMILIES[request.param])


def pair_of(translator: Translator) -> Pair:
    return Pair.of(translator, LINES[0], LINES[1], beam_size=2, max_length=9)


@contextmanager
def zeroed(translator: Translator, name: str, columns: slice) -> Iterator[None]:
    """Zeros in some columns of a matrix inside the block."""
    weight = translator.traced.network.get_parameter(name)
    before = weight.detach().clone()
    with torch.no_grad():
        weight[:, columns] = 0
        yield
        weight.copy_(before)


@torch.no_grad()
def token_log_probs(pair: Pair) -> Any:
    return pair.token_log_probs()[0].numpy()


def test_a_head_that_is_off_has_zeros_in_its_columns(translator: Translator) -> None:
    """Claim 63."""
    pair = pair_of(translator)
    for attention, n_heads in heads_of(pair).items():
        found = effect_on(pair, [Head(attention=attention, head=1)])
        width = pair.shapes[f"{attention}.joined"][-1] // n_heads
        columns = slice(width, 2 * width)
        with zeroed(translator, f"{attention}.project_out.weight", columns):
            expected = token_log_probs(pair)
            translation = pair.text_of(pair.search())
        np.testing.assert_allclose(found.after, expected, atol=1e-5)
        assert found.new_translation == translation
        assert not np.allclose(found.after, found.before)


def test_a_feature_that_is_off_has_zeros_in_its_column(translator: Translator) -> None:
    """Claim 94: without its value vector, what a key found is not written."""
    pair = pair_of(translator)
    for feed_forward in features_of(pair):
        found = effect_on(pair, [Feature(feed_forward=feed_forward, feature=3)])
        with zeroed(translator, f"{feed_forward}.contract.weight", slice(3, 4)):
            expected = token_log_probs(pair)
            translation = pair.text_of(pair.search())
        np.testing.assert_allclose(found.after, expected, atol=1e-5)
        assert found.new_translation == translation


def test_layers_with_the_same_weights_are_switched_off_one_by_one(
    translator_of: TranslatorOf,
) -> None:
    pair = pair_of(translator_of(share_layers="all"))
    one, other = (
        effect_on(pair, [Head(attention=f"encoder.{layer}.self_attention", head=0)]).lost
        for layer in (0, 1)
    )
    assert one != other


def test_a_layer_of_pre_norm_is_passed_by_if_its_sublayers_add_nothing(
    translator_of: TranslatorOf,
) -> None:
    pair = pair_of(translator_of(norm="pre"))
    for layer in layers_of(pair):
        found = effect_on(pair, [Layer(name=layer)])
        inside = [Sublayer(name=each) for each in sublayers_of(pair) if each.startswith(layer)]
        assert len(inside) == (3 if layer.startswith("decoder") else 2)
        silent = effect_on(pair, inside)
        np.testing.assert_allclose(found.after, silent.after, atol=1e-5)
        assert found.new_translation == silent.new_translation


def test_a_sublayer_that_is_off_has_zeros_in_its_last_matrix(translator_of: TranslatorOf) -> None:
    translator = translator_of(bias=False)
    pair = pair_of(translator)
    for sublayer in sublayers_of(pair):
        matrix = "contract" if "feed_forward" in sublayer else "project_out"
        found = effect_on(pair, [Sublayer(name=sublayer)])
        with zeroed(translator, f"{sublayer}.{matrix}.weight", slice(None)):
            np.testing.assert_allclose(found.after, token_log_probs(pair), atol=1e-5)


def test_a_source_position_that_nothing_reads_is_one_that_is_masked(
    translator: Translator,
) -> None:
    pair = pair_of(translator)
    causes = source_readings(pair, 1)
    if not causes or any("decoder.0.self" in cause.attention for cause in causes):
        pytest.skip("no softmax over the source, or its mask is of both sides")
    src = torch.tensor([pair.src_ids])
    mask = torch.ones_like(src, dtype=torch.bool)[:, None, None]
    mask[..., 1] = False
    with torch.no_grad():
        network = translator.traced.network
        states = network(src, torch.tensor([pair.tgt_in_ids]), mask)
        expected = pair.of_expected(network.logits(states).log_softmax(-1))[0].numpy()
    if any("mean" in name or "mixed" in name for name in pair.shapes):
        pytest.skip("convolutions and averages have no attention to mask")
    np.testing.assert_allclose(effect_on(pair, causes).after, expected, atol=1e-5)


def test_attention_to_a_position_keeps_its_sum(translator_of: TranslatorOf) -> None:
    translator = translator_of()
    pair = pair_of(translator)
    name = "decoder.1.self_attention"
    before = translator.trace(LINES[0], LINES[1])[f"{name}.weights"]
    cause = Position(attention=name, position=2, scale=0.5)
    with translator.edit(cause.edits(pair)):
        weights = translator.trace(LINES[0], LINES[1])[f"{name}.weights"]
    expected = before * np.where(np.arange(before.shape[-1]) == 2, 0.5, 1)
    expected /= expected.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(weights, expected, atol=1e-6)


def test_a_position_that_alone_could_be_read_leaves_nothing(translator_of: TranslatorOf) -> None:
    pair = pair_of(translator_of())
    found = effect_on(pair, [Position(attention="decoder.0.self_attention", position=0)])
    assert np.isfinite(found.after).all()


def all_causes(pair: Pair, scale: float) -> list[Cause]:
    """One cause of every kind that this model has."""
    return [
        *(Head(attention=name, head=0, scale=scale) for name in heads_of(pair)),
        *(Feature(feed_forward=name, feature=0, scale=scale) for name in features_of(pair)),
        *(Sublayer(name=name, scale=scale) for name in sublayers_of(pair)),
        *(Layer(name=name, scale=scale) for name in layers_of(pair)),
        *(Position(attention=name, position=0, scale=scale) for name in keys_of(pair)),
    ]


def test_a_scale_of_1_changes_nothing(translator: Translator) -> None:
    pair = pair_of(translator)
    translation = pair.text_of(pair.search())
    for cause in all_causes(pair, 1.0):
        found = effect_on(pair, [cause])
        np.testing.assert_array_equal(found.after, found.before)
        assert found.new_translation == translation


def test_many_changes_at_once_are_as_one_at_a_time(translator: Translator) -> None:
    pair = pair_of(translator)
    causes = all_causes(pair, 0.0)
    if not causes:
        pytest.skip("nothing to switch off")
    rows = log_probs_under(pair, causes)
    for row, cause in zip(rows, causes, strict=True):
        with changed(pair, [cause]):
            np.testing.assert_allclose(row, token_log_probs(pair), atol=1e-5)


@given(
    n_heads=st.sampled_from([1, 2, 4]),
    seed=st.integers(0, 5),
    norm=st.sampled_from(["pre", "post"]),
    scale=st.floats(-2, 2),
    data=st.data(),
)
def test_a_scaled_head_has_scaled_columns(
    translator_of: TranslatorOf, n_heads: int, seed: int, norm: str, scale: float, data: Any
) -> None:
    translator = translator_of(n_heads=n_heads, seed=seed, norm=norm)
    pair = pair_of(translator)
    attention = data.draw(st.sampled_from([*heads_of(pair)]))
    head = data.draw(st.integers(0, n_heads - 1))
    found = log_probs_under(pair, [Head(attention=attention, head=head, scale=scale)])[0]
    weight = translator.traced.network.get_parameter(f"{attention}.project_out.weight")
    width = 8 // n_heads
    with torch.no_grad():
        weight[:, head * width : (head + 1) * width] *= scale
    np.testing.assert_allclose(found, token_log_probs(pair), atol=1e-4)


def test_a_sentence_patched_with_itself_is_as_it_was(translator_of: TranslatorOf) -> None:
    translator = translator_of(norm="pre")
    pair = pair_of(translator)
    trace = translator.trace(LINES[0], LINES[1])
    for name in ("memory", "encoder.0.out", "decoder.1.cross_attention.context", "decoder.0.in"):
        found = effect_on(pair, [Patch(name=name, other=trace)])
        np.testing.assert_allclose(found.after, found.before, atol=1e-6)


def test_the_memory_of_another_sentence_brings_its_translation(translator_of: TranslatorOf) -> None:
    translator = translator_of()
    pair = Pair.of(translator, "a dog", max_length=9)
    other = translator.trace("dog a", max_length=9)
    found = effect_on(pair, [Patch(name="memory", other=other)])
    there = replace(pair, src_ids=pair.src_ids[1::-1] + pair.src_ids[2:])
    assert there.source_tokens == other.source_tokens
    np.testing.assert_allclose(found.after, token_log_probs(there), atol=1e-5)
    assert not np.allclose(found.after, found.before)
    assert found.new_translation == other.translation


def test_a_position_is_patched_in_a_search_at_its_step(translator_of: TranslatorOf) -> None:
    """A search computes one target position at a time; the forced pass all at once."""
    translator = translator_of(norm="pre")
    other = translator.trace(LINES[1], LINES[2])
    cause = Patch(name="decoder.0.out", other=other, positions={1: 4, 2: 3})
    pair = Pair.of(translator, LINES[0], beam_size=1, max_length=6)
    with changed(pair, [cause]):
        found = replace(pair, tgt_ids=pair.search())
    # Greedy search: the likeliest piece of each forced position is the one that was written.
    assert effect_on(found, [cause]).likeliest[:5] == found.expected_tokens[:5]
    assert found.tgt_ids != pair.tgt_ids


def test_one_head_is_patched(translator_of: TranslatorOf) -> None:
    translator = translator_of()
    pair, name = pair_of(translator), "decoder.0.cross_attention.context"
    other = translator.trace(LINES[1], LINES[1])
    cause = Patch(name=name, other=other, positions={2: 5}, head=1)
    before = translator.trace(LINES[0], LINES[1])[name]
    with translator.edit(cause.edits(pair)):
        after = translator.trace(LINES[0], LINES[1])[name]
    expected = before.copy()
    expected[1, 2] = other[name][1, 5]
    np.testing.assert_array_equal(after, expected)


def test_importance_is_what_is_lost_without_each_part(translator_of: TranslatorOf) -> None:
    pair = pair_of(translator_of(norm="pre"))
    found = importance(pair, n_features=4)
    assert found.tokens == pair.expected_tokens
    assert {name: len(rows) for name, rows in found.heads.items()} == heads_of(pair)
    name = "decoder.1.cross_attention"
    one = effect_on(pair, [Head(attention=name, head=1)])
    np.testing.assert_allclose(found.heads[name][1], one.before - one.after, atol=1e-5)
    assert [*found.layers] == layers_of(pair)
    assert [*found.sublayers] == sublayers_of(pair)
    assert len(found.features) == 4
    for feature, lost in found.features:
        assert effect_on(pair, [feature]).lost == pytest.approx(lost.sum(), abs=1e-4)


def test_first_order_is_the_derivative_of_a_gate(translator_of: TranslatorOf) -> None:
    pair = pair_of(translator_of(dtype=torch.float64, activation="gelu"))
    found = first_order(pair)
    name = "encoder.1.feed_forward"
    for feature in (0, 7):
        up, down = (
            Feature(feed_forward=name, feature=feature, scale=1 + step) for step in (1e-4, -1e-4)
        )
        slope = effect_on(pair, [down]).lost - effect_on(pair, [up]).lost
        assert found[name][feature] == pytest.approx(slope / 2e-4, rel=0.05, abs=1e-3)


def test_a_changed_model_follows_the_memory_as_the_translator_does(
    translator_of: TranslatorOf,
) -> None:
    """Otherwise a change would get the blame for what the memory does."""
    translator = translator_of()
    assert remember(translator, [(LINES[0], LINES[2])]) == 1
    options = {"beam_size": 2, "max_length": 60}
    trace = translator.trace(LINES[0], **options)
    assert trace.translation == translator.translate([LINES[0]], **options)[0].text == LINES[2]
    for pair in (
        Pair.of_trace(translator, trace, **options),
        Pair.of(translator, LINES[0], **options),
        Pair.of(translator, LINES[0], LINES[2], **options),
    ):
        found = effect_on(pair, [])
        assert found.translation == found.new_translation == LINES[2]


def test_the_pair_of_a_trace_has_its_capitals(translator_of: TranslatorOf) -> None:
    translator = translator_of()
    remember(translator, [(LINES[0], LINES[2])])
    trace = translator.trace(LINES[0].upper(), max_length=60)
    found = effect_on(Pair.of_trace(translator, trace, max_length=60), [])
    assert trace.translation == found.translation == found.new_translation == LINES[2].upper()


def test_the_model_translates_if_no_translation_is_given(translator_of: TranslatorOf) -> None:
    translator = translator_of()
    found = effect(translator, LINES[0], [], max_length=9)
    assert found.translation == found.new_translation == translator(LINES[0], max_length=9)
    assert found.lost == 0
    with pytest.raises(UsageError, match="no attention heads named decoder.5; did you mean decode"):
        effect(translator, LINES[0], [Head(attention="decoder.5", head=0)])


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        (Head(attention="encoder.0.self_attention", head=2), "must lie between 0 and 1, but is 2"),
        (Feature(feed_forward="encoder.0.feed_forward", feature=-1), "0 and 11, but is -1"),
        (Sublayer(name="encoder.0"), "no sublayers named encoder.0; did you mean encoder.0."),
        (Layer(name="encoder.9"), "no layers named encoder.9; did you mean encoder."),
        (Position(attention="memory", position=0), "no softmax attention named memory"),
        (
            Position(attention="encoder.0.self_attention", position=0, scale=-1.0),
            "scale of a position must be 0 or more, but is -1.0",
        ),
    ],
)
def test_a_part_that_is_not_there_is_an_error(
    translator_of: TranslatorOf, cause: Cause, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        effect_on(pair_of(translator_of()), [cause])


def test_a_patch_that_does_not_fit_is_an_error(translator_of: TranslatorOf) -> None:
    translator = translator_of()
    pair = pair_of(translator)
    trace = translator.trace(LINES[0], LINES[1])
    for patch, message in (
        (Patch(name="memo", other=trace), "no tensors named memo; did you mean memory"),
        (
            Patch(name="encoder.0.self_attention.weights", other=trace),
            r"needs a tensor with one axis of positions, but .* has \(head, src, src\)",
        ),
        (Patch(name="memory", other=trace, head=0), "memory has no axis of heads: leave out head"),
        (Patch(name="memory", other=trace, positions={99: 0}), "position of memory must lie"),
        (Patch(name="memory", other=trace, positions={0: 99}), "of the other trace must lie"),
    ):
        with pytest.raises(UsageError, match=message):
            effect_on(pair, [patch])
    wide = translator_of(d_model=16).trace(LINES[0], LINES[1])
    with pytest.raises(UsageError, match="memory of the other trace has a different width"):
        effect_on(pair, [Patch(name="memory", other=wide)])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: effect_on(p, Layer(name="encoder.0")), r"causes must be a list .* is Layer\(na"),
        (lambda p: effect_on(p, ["x"]), r"causes must be a list of changes, .* but is \['x'\]"),
        (lambda p: effect_on(p, [Layer]), "causes must be a list of changes"),
        (lambda p: log_probs_under(p, "x"), "causes must be a list of changes"),
        (lambda p: Layer(name="encoder.0", scale="x"), "scale must be a finite number, but is 'x'"),
        (lambda p: Sublayer(name=None), "name must be a string, but is None"),
        (lambda p: Head(attention=3, head=0), "attention must be a string, but is 3"),
        (
            lambda p: effect_on(p, [Head(attention="encoder.0.self_attention", head="x")]),
            "head of encoder.0.self_attention must lie between 0 and 1, but is 'x'",
        ),
        (lambda p: Patch(name="memory", other=None), "other must be a trace, but is None"),
        (lambda p: source_readings(p, "a"), "position must be a whole number from 0, but is 'a'"),
        (lambda p: importance(p, n_features=-1), "n_features must be a whole number from 0"),
    ],
)
def test_an_argument_of_a_wrong_type_is_named(
    translator_of: TranslatorOf, call: Callable[[Pair], object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        call(pair_of(translator_of()))


def test_the_arguments_of_an_effect_are_checked_first(translator_of: TranslatorOf) -> None:
    translator, wrong = translator_of(), ["a"]
    with pytest.raises(UsageError, match="source must be a string, but is None"):
        Pair.of(translator, None)
    with pytest.raises(UsageError, match=r"translation must be a string, but is \['a'\]"):
        Pair.of(translator, "a dog", wrong)
    with pytest.raises(UsageError, match="causes must be a list of changes"):
        effect(translator, "a dog", Layer(name="encoder.0"))
    trace, places = translator.trace(LINES[0], LINES[1]), [1]
    with pytest.raises(UsageError, match=r"positions must map .*, but is \[1\]"):
        Patch(name="memory", other=trace, positions=places)


@pytest.mark.parametrize("scale", [float("nan"), float("inf"), float("-inf")])
def test_a_scale_is_finite(scale: float) -> None:
    places: tuple[Callable[[], Cause], ...] = (
        lambda: Head(attention="encoder.0.self_attention", head=0, scale=scale),
        lambda: Sublayer(name="encoder.0.feed_forward", scale=scale),
        lambda: Layer(name="encoder.0", scale=scale),
        lambda: Feature(feed_forward="encoder.0.feed_forward", feature=0, scale=scale),
        lambda: Position(attention="encoder.0.self_attention", position=0, scale=scale),
    )
    for make in places:
        with pytest.raises(UsageError, match=f"scale must be a finite number, but is {scale}"):
            make()
    assert Layer(name="encoder.0", scale=np.float32(0.5)).scale == 0.5


def test_a_model_without_the_part_says_so(translator_of: TranslatorOf) -> None:
    pair = pair_of(translator_of(family="rnn"))
    for cause, message in (
        (Head(attention="decoder.0.self_attention", head=0), "This model has no attention heads"),
        (Layer(name="encoder.0"), "This model has no layers"),
        (Feature(feed_forward="encoder.0.feed_forward", feature=0), "has no feed-forward features"),
    ):
        with pytest.raises(UsageError, match=message):
            effect_on(pair, [cause])


def test_a_window_hides_positions_from_a_search(translator_of: TranslatorOf) -> None:
    pair = pair_of(translator_of(window=2))
    with pytest.raises(UsageError, match="attends to a sliding window"):
        effect_on(pair, [Position(attention="decoder.0.self_attention", position=0)])
    found = effect_on(pair, [Position(attention="encoder.0.self_attention", position=0)])
    assert not np.allclose(found.after, found.before)
