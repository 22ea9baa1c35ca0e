"""A trace has every tensor of a translation, from the model that translates; an edit changes it."""

from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heed.bundle.bundle import Bundle, save_bundle
from heed.disk.tensors import encode_tensors
from heed.errors import FormatError, UsageError
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.text.vocab import train_vocab
from heed.train.step.averages import to_arrays
from heed.translate import stepwise
from heed.translate.remember import remember
from heed.translate.result import Match
from heed.translate.trace import FORMAT, BatchTrace, Trace, read_trace
from heed.translate.translator import Translator, load

LINES = ["A dog runs.", "Two men ride a bike in the snow.", "Snow."]
SIZES = {"d_model": 16, "n_heads": 2, "d_ff": 24, "n_encoder_layers": 2, "n_decoder_layers": 2}
LENGTHS = {"head": 2, "d_k": 8, "d_v": 8, "d_model": 16, "heads·d_v": 16, "d_ff": 24}


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    torch.manual_seed(2)
    vocab = train_vocab(LINES * 9, size=320)
    config = ModelConfig(src_vocab_size=vocab.size, tgt_vocab_size=vocab.size, **SIZES)
    model = build_model(config)
    folder = tmp_path_factory.mktemp("trace") / "model"
    bundle = Bundle(
        config=config,
        weights=to_arrays(model.state_dict()),
        src_vocab=vocab,
        tgt_vocab=vocab,
        source_lang="en",
        target_lang="de",
        decoding={"beam_size": 2, "max_length": 12},
    )
    save_bundle(folder, bundle)
    return load(folder, threads=1)


def test_each_axis_has_the_length_of_its_name(translator: Translator) -> None:
    trace = translator.trace(LINES[0], LINES[1])
    lengths = LENGTHS | {
        "src": len(trace.source_tokens),
        "tgt": len(trace.target_tokens),
        "piece": translator.tgt_vocab.size,
    }
    for node in trace.nodes:
        assert node.shape == trace[node.name].shape == tuple(lengths[axis] for axis in node.axes)


def test_scores_are_recomputed_from_queries_and_keys(translator: Translator) -> None:
    """Claim 48: the six steps of attention, from the tensors of a trace alone."""
    trace = translator.trace(LINES[1], LINES[0])
    for name in trace.named("attention.weights"):
        module = name.removesuffix(".weights")
        query, key, value = (trace[f"{module}.{part}"] for part in ("query", "key", "value"))
        scores = query @ key.swapaxes(1, 2) / np.sqrt(np.float32(8))
        np.testing.assert_allclose(trace[f"{module}.scores"], scores, atol=1e-5)
        weights = trace[name]
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=1e-5)
        np.testing.assert_allclose(trace[f"{module}.context"], weights @ value, atol=1e-5)
        if module.startswith("decoder") and "self" in module:
            future = np.triu(np.ones(weights.shape[1:], dtype=bool), k=1)
            assert (weights[:, future] == 0).all()
            assert np.isneginf(trace[f"{module}.masked"][:, future]).all()


def test_inputs_are_what_each_tensor_is_computed_from(translator: Translator) -> None:
    trace = translator.trace(LINES[0], LINES[0])
    attention = "decoder.1.cross_attention"
    assert trace.node(f"{attention}.products").inputs == (f"{attention}.query", f"{attention}.key")
    assert set(trace.node(f"{attention}.key").inputs) == {
        "memory",
        f"{attention}.project_in.weight",
        f"{attention}.project_in.bias",
    }
    assert trace.node("encoder.1.in").inputs == ("encoder.0.out",)
    known = {*trace, *(weight.name for weight in translator.traced.network.plan)}
    known |= {"embed_src.positions.table", "embed_tgt.positions.table"}
    for node in trace.nodes:
        assert node.inputs and known.issuperset(node.inputs)


def test_the_traced_translation_is_the_translators(translator: Translator) -> None:
    trace = translator.trace(LINES[1])
    assert trace.translation == translator(LINES[1])
    greedy = translator.trace(LINES[1], beam_size=1, steps=True)
    chosen = [trace["logits"].argmax() for trace in greedy.steps]
    assert translator.tgt_vocab.pieces(chosen) == greedy.expected_tokens[: len(chosen)]


@pytest.mark.parametrize("translation", [None, "Ein Hund."])
def test_a_trace_ends_where_its_progress_raises(
    translator: Translator, translation: str | None
) -> None:
    def count() -> None:
        nonlocal n_calls
        n_calls += 1
        if n_calls == limit:
            raise InterruptedError

    n_calls, limit = 0, -1
    whole = translator.trace("a dog", translation, on_progress=count)
    n_steps = 0 if translation else 12  # the longest translation
    assert n_calls == len(whole.nodes) + n_steps
    for limit in (1, n_calls):
        n_calls = 0
        with pytest.raises(InterruptedError):
            translator.trace("a dog", translation, on_progress=count)
        assert n_calls == limit


def test_a_step_of_the_search_computes_a_row_of_the_whole(translator: Translator) -> None:
    """Claims 95, 96: the table of keys grows by one row at each step."""
    trace = translator.trace(LINES[1], beam_size=1, steps=True)
    name = "decoder.1.self_attention"
    for number, step in enumerate(trace.steps):
        assert step[f"{name}.weights"].shape == (1, 2, 1, number + 1)
        row = trace[f"{name}.key"][:, number]
        np.testing.assert_allclose(step[f"{name}.key"][0, :, 0], row, atol=1e-5)
    assert "memory" in trace.steps[0]
    assert "memory" not in trace.steps[1]


@pytest.mark.parametrize(
    "options", [{"beam_size": 3}, {"sample": True, "n_best": 2, "seed": 3}, {"beam_size": 1}]
)
def test_rows_of_a_search_lead_back_to_their_hypotheses(
    translator: Translator, options: dict[str, Any]
) -> None:
    trace = translator.trace(LINES[1], steps=True, **options)
    assert len(trace.rows) == len(trace.steps)
    for number, rows in enumerate(trace.rows):
        assert len(trace.steps[number]["logits"]) == len(rows.prefixes) == len(rows.parents)
        for prefix, parent in zip(rows.prefixes, rows.parents, strict=True):
            assert len(prefix) == number + 1
            if number:
                assert trace.rows[number - 1].prefixes[parent] == prefix[:-1]
    # The translation is one of the hypotheses, at each of its steps.
    read = [translator.tgt_vocab.bos_id, *trace.expected_ids[:-1]]
    for number, rows in enumerate(trace.rows[: len(read)]):
        row = rows.prefixes.index(read[: number + 1])
        np.testing.assert_allclose(
            trace.steps[number]["log_probs"][row], trace["log_probs"][number], atol=1e-4
        )


def test_of_a_long_search_only_the_first_steps_are_kept(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = translator.trace(LINES[1], steps=True)
    size = sum(array.nbytes for step in whole.steps[:2] for array in step.values())
    monkeypatch.setattr(stepwise, "MOST_BYTES", size)
    part = translator.trace(LINES[1], steps=True)
    assert len(part.steps) == 3
    assert part.rows == whole.rows


def test_a_saved_trace_is_read_as_it_was(translator: Translator, tmp_path: Path) -> None:
    trace = translator.trace(LINES[0], steps=True)
    trace.save(tmp_path / "trace.safetensors")
    found = read_trace(tmp_path / "trace.safetensors")
    assert found.nodes == trace.nodes
    assert [*found] == [*trace]
    assert (found.source, found.translation) == (trace.source, trace.translation)
    assert (found.rows, found.expected_ids) == (trace.rows, trace.expected_ids)
    for step, other in zip([trace, *trace.steps], [found, *found.steps], strict=True):
        assert step.keys() == other.keys()
        for key in step:
            np.testing.assert_array_equal(step[key], other[key])


def test_a_trace_keeps_the_pair_that_guided_its_translation(
    translator: Translator, tmp_path: Path
) -> None:
    """Also in a file and in a batch, but not of a translation that was given."""
    guided = copy(translator)
    guided.reader = copy(translator.reader)
    remember(guided, [(LINES[0], LINES[2])])
    match = Match(similarity=1.0, source=LINES[0], target=LINES[2])
    found = guided.trace(LINES[0])
    assert (found.translation, found.match) == (LINES[2], match)
    batch = guided.trace([LINES[0], LINES[1], LINES[0]], [None, None, LINES[2]])
    assert [each.match for each in batch.sentences] == [match, None, None]
    assert guided.trace(LINES[0], LINES[2]).match is None
    paths = tmp_path / "one.safetensors", tmp_path / "several.safetensors"
    found.save(paths[0])
    batch.save(paths[1])
    one, several = map(read_trace, paths)
    assert isinstance(one, Trace)
    assert isinstance(several, BatchTrace)
    assert one.match == match
    assert [each.match for each in several.sentences] == [match, None, None]


def test_traces_and_translators_are_one_readable_line(translator: Translator) -> None:
    size = f"{translator.src_vocab.size:,}"
    assert repr(translator) == f"<Translator en → de: {size} source and {size} target pieces>"
    guided = copy(translator)
    guided.reader = copy(translator.reader)
    remember(guided, [(LINES[0], LINES[2])])
    assert repr(guided).endswith("target pieces, 1 remembered pair>")
    trace = translator.trace("Snow.", "A dog runs.")
    n_src, n_tgt = len(trace.source_tokens), len(trace.target_tokens)
    lengths = f"{n_src} source and {n_tgt} target tokens"
    assert repr(trace) == f"<Trace 'Snow.' → 'A dog runs.': {lengths}, {len(trace)} tensors>"
    batch = translator.trace(["Snow.", "Snow."], ["A dog runs.", "Snow."])
    assert repr(batch) == (
        f"<BatchTrace of 2 sentences: {lengths} with padding, {len(batch)} tensors>"
    )


def test_other_files_are_no_traces(translator: Translator, tmp_path: Path) -> None:
    assert translator.twin is not None
    with pytest.raises(FormatError, match="is not a trace written by heed"):
        read_trace(translator.twin.folder / "model.safetensors")


@pytest.mark.parametrize(
    "description", ["{", "{}", '{"nodes": [{"name": "x"}]}', '{"nodes": [], "rows": [], "own": 1}']
)
def test_a_damaged_description_is_an_error_in_words(tmp_path: Path, description: str) -> None:
    metadata = {"format": FORMAT, "trace": description}
    path = tmp_path / "trace.safetensors"
    path.write_bytes(encode_tensors({"x": np.zeros(1, np.float32)}, metadata=metadata))
    with pytest.raises(FormatError, match="is damaged: its description does not match"):
        read_trace(path)


def test_an_edit_changes_what_is_computed_behind_it(translator: Translator) -> None:
    before = translator.trace(LINES[0], LINES[1])
    with translator.edit({"encoder.0.self_attention.weights": lambda weights: weights * 0}):
        edited = translator.trace(LINES[0], LINES[1])
        assert translator(LINES[0]) == translator.trace(LINES[0]).translation
    assert (edited["encoder.0.self_attention.context"] == 0).all()
    np.testing.assert_array_equal(
        edited["encoder.0.self_attention.scores"], before["encoder.0.self_attention.scores"]
    )
    assert not np.allclose(edited["logits"], before["logits"])
    after = translator.trace(LINES[0], LINES[1])
    np.testing.assert_array_equal(after["logits"], before["logits"])


def test_an_edit_of_a_head_is_that_of_its_weights_in_the_output(translator: Translator) -> None:
    """A head whose context is 0 adds nothing: the same as zeros in its columns of W^O."""
    network = translator.traced.network
    weight = network.get_parameter("decoder.0.cross_attention.project_out.weight")

    def without_first(context: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.zeros_like(context[:, :1]), context[:, 1:]], dim=1)

    with translator.edit({"decoder.0.cross_attention.context": without_first}):
        edited = translator.trace(LINES[0], LINES[1])["logits"]
    before = weight.detach().clone()
    with torch.no_grad():
        weight[:, :8] = 0
    try:
        zeroed = translator.trace(LINES[0], LINES[1])["logits"]
    finally:
        with torch.no_grad():
            weight.copy_(before)
    np.testing.assert_allclose(edited, zeroed, atol=1e-5)


def test_an_edit_without_effect_is_an_error(translator: Translator) -> None:
    message = r"No tensor decoder.7.out was computed inside the edit; did you mean decoder\.\d.out"
    with pytest.raises(UsageError, match=message), translator.edit({"decoder.7.out": torch.neg}):
        translator(LINES[0])
    message = r"The edit of memory must return the shape \(1, \d+, 16\), but returned \(1, 16\)"
    with pytest.raises(UsageError, match=message), translator.edit({"memory": lambda m: m[:, 0]}):
        translator(LINES[0])


@pytest.mark.parametrize(("number", "word"), [(float("nan"), "NaN"), (float("inf"), "NaN|inf")])
def test_an_edit_that_returns_no_numbers_is_named(
    translator: Translator, number: float, word: str
) -> None:
    """The weights are not to blame."""
    message = f"The edit of memory must return finite numbers, .* but returned ({word})"
    with (
        pytest.raises(UsageError, match=message),
        translator.edit({"memory": lambda tensor: tensor * number}),
    ):
        translator(LINES[0])

    def without_first(scores: torch.Tensor) -> torch.Tensor:
        scores = scores.clone()
        scores[..., 0] = -torch.inf
        return scores

    with translator.edit({"encoder.0.self_attention.scores": without_first}):
        weights = translator.trace(LINES[0], LINES[1])["encoder.0.self_attention.weights"]
    assert (weights[..., 0] == 0).all()


def test_a_tensor_that_a_trace_lacks_is_named_with_the_nearest(translator: Translator) -> None:
    trace = translator.trace(LINES[0], LINES[1])
    message = "There is no tensor named memori; did you mean memory?"
    for get in (trace.__getitem__, trace.node):
        with pytest.raises(UsageError) as caught:
            get("memori")
        assert str(caught.value) == message
        assert isinstance(caught.value, KeyError)
    assert "memori" not in trace
    assert trace.get("memori") is None


def test_a_translator_without_a_folder_cannot_be_traced(translator: Translator) -> None:
    bare = Translator(translator.model, translator.src_vocab, translator.tgt_vocab)
    with pytest.raises(UsageError, match="loaded from a folder can be traced or edited"):
        bare.trace(LINES[0])
