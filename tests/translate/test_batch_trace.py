"""A trace of several sentences: each is what it is alone, and nothing reads padding."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.random_bundle import bundle
from tests.translate.test_traced_families import MODELS

from heed.bundle.bundle import save_bundle
from heed.errors import DataError, FormatError, UsageError
from heed.model.config import ModelConfig
from heed.model.stages import BOTH
from heed.text.vocab import train_vocab
from heed.translate.trace import BatchTrace, Trace, read_trace
from heed.translate.tracer import Tracer
from heed.translate.translator import Translator, load

LINES = ["A dog runs.", "Two men ride a bike in the snow.", "Snow."]
OTHERS = ["Snow.", "A dog.", "Two men ride a bike in the snow."]
SIZES = {"d_model": 16, "n_heads": 2, "d_ff": 24, "n_encoder_layers": 2, "n_decoder_layers": 2}
WRITERS = [one for one in MODELS if one.get("family") not in ("encoder", "bag")]
Tiny = Callable[..., Any]


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    vocab = train_vocab(LINES * 9, size=320)
    folder = tmp_path_factory.mktemp("batch") / "model"
    decoding = {"beam_size": 2, "max_length": 12}
    save_bundle(folder, replace(bundle(vocab, ModelConfig, **SIZES), decoding=decoding))
    return load(folder, threads=1)


def require_equal(part: Trace, alone: Trace) -> None:
    """The tensors of a sentence in a batch are those it has alone, up to rounding."""
    found = part.without_padding()
    for name in ("source", "translation", "source_tokens", "target_tokens", "expected_tokens"):
        assert getattr(found, name) == getattr(alone, name)
    assert found.expected_ids == alone.expected_ids
    # Where nothing is padded nothing has to be masked, and that stage is missing.
    assert all(name.endswith(".masked") for name in found.keys() - alone.keys())
    for name in alone:
        if alone.node(name).operation == "softmax, then mask":
            continue  # its softmax is over padding too; the weights behind it are not
        largest = max(1.0, float(np.abs(alone[name][np.isfinite(alone[name])]).max()))
        np.testing.assert_allclose(found[name], alone[name], atol=2e-5 * largest, err_msg=name)


def require_padding_unread(part: Trace) -> None:
    """Weights of padding are exactly 0 in each row of a real token."""
    n_src = len(part.source_tokens) - part.n_src_padding
    n_tgt = len(part.target_tokens) - part.n_tgt_padding
    n_read = len(part.source_tokens)
    real = {
        "src": [*range(n_src)],
        "tgt": [*range(n_tgt)],
        BOTH: [*range(n_src), *range(n_read, n_read + n_tgt)],
    }
    for node in part.nodes:
        if not node.name.endswith("attention.weights"):
            continue
        rows, columns = (real[axis] for axis in node.axes[-2:])
        read = np.delete(part[node.name][:, rows], columns, axis=-1)
        assert (read == 0).all(), node.name


@pytest.mark.parametrize(
    "targets", [OTHERS, None, [None, OTHERS[1], None]], ids=["forced", "searched", "both"]
)
def test_each_sentence_is_what_it_is_alone(
    translator: Translator, targets: Sequence[str | None] | None
) -> None:
    batch = translator.trace(LINES, targets)
    for place, (part, line) in enumerate(zip(batch.sentences, LINES, strict=True)):
        require_equal(part, translator.trace(line, targets and targets[place]))
        require_padding_unread(part)


def test_sampled_sentences_draw_as_alone(translator: Translator) -> None:
    options: dict[str, Any] = {"sample": True, "seed": 5}
    batch = translator.trace(LINES, **options)
    alone = [translator.trace(line, **options).translation for line in LINES]
    assert [part.translation for part in batch.sentences] == alone


def test_the_batch_is_the_first_axis(translator: Translator) -> None:
    batch = translator.trace(LINES, OTHERS)
    assert {node.axes[0] for node in batch.nodes} == {"batch"}
    for node in batch.nodes:
        assert node.shape == batch[node.name].shape
        assert node.shape[0] == len(LINES)
        for place, part in enumerate(batch.sentences):
            np.testing.assert_array_equal(part[node.name], batch[node.name][place])
            assert part.node(node.name).axes == node.axes[1:]
    assert batch.size_bytes == sum(tensor.nbytes for tensor in batch.values())


def test_padding_stands_behind_the_tokens(translator: Translator) -> None:
    batch = translator.trace(LINES, OTHERS)
    for tokens in ("source_tokens", "target_tokens", "expected_tokens"):
        assert len({len(getattr(part, tokens)) for part in batch.sentences}) == 1
    for part, line, other in zip(batch.sentences, LINES, OTHERS, strict=True):
        n_src = len(translator.reader.src_ids(line, []))
        n_tgt = len(translator.reader.tgt_ids(other)) + 1
        assert part.source_tokens[n_src:] == ["<pad>"] * part.n_src_padding
        assert part.target_tokens[n_tgt:] == ["<pad>"] * part.n_tgt_padding
        assert "<pad>" not in part.source_tokens[:n_src] + part.target_tokens[:n_tgt]
    assert min(part.n_src_padding for part in batch.sentences) == 0


@pytest.mark.parametrize(
    "changes", WRITERS, ids=lambda changes: "-".join(f"{k}={v}" for k, v in changes.items())
)
def test_every_family_and_option_pads_alike(changes: dict[str, Any], tiny: Tiny) -> None:
    network = tiny(**changes)
    network.requires_grad_()
    vocab = train_vocab(LINES * 9, size=320)
    tracer = Tracer(_Model(network), vocab, vocab)
    src_ids, tgt_ids = [[5, 6, 7, 3], [5, 3]], [[8, 9], [8, 9, 5, 4, 7]]
    batch = tracer.batch(["a", "b"], src_ids, ["c", "d"], tgt_ids)
    for part, src, tgt in zip(batch.sentences, src_ids, tgt_ids, strict=True):
        require_equal(part, tracer.forced(part.source, src, part.translation, tgt))
        require_padding_unread(part)


class _Model:
    """What a tracer needs of a model."""

    def __init__(self, network: Any) -> None:
        self.network = network


def test_a_saved_batch_is_read_as_it_was(translator: Translator, tmp_path: Path) -> None:
    batch = translator.trace(LINES)
    batch.save(tmp_path / "batch.safetensors")
    found = read_trace(tmp_path / "batch.safetensors")
    assert isinstance(found, BatchTrace)
    assert found.nodes == batch.nodes
    assert [*found] == [*batch]
    for part, other in zip(found.sentences, batch.sentences, strict=True):
        assert part.source_tokens == other.source_tokens
        assert (part.n_src_padding, part.n_tgt_padding) == (
            other.n_src_padding,
            other.n_tgt_padding,
        )
        assert part.expected_ids == other.expected_ids
    for name in batch:
        np.testing.assert_array_equal(found[name], batch[name])


def test_a_part_of_a_batch_can_be_saved_too(translator: Translator, tmp_path: Path) -> None:
    part = translator.trace(LINES).sentences[0]
    part.save(tmp_path / "part.safetensors")
    found = read_trace(tmp_path / "part.safetensors")
    assert isinstance(found, Trace)
    assert found.n_src_padding == part.n_src_padding > 0
    require_equal(found, translator.trace(LINES[0]))


def test_a_batch_file_with_too_many_sentences_is_refused(
    translator: Translator, tmp_path: Path
) -> None:
    batch = translator.trace(LINES)
    damaged = BatchTrace(
        sentences=[*batch.sentences, batch.sentences[0]], nodes=batch.nodes, tensors=batch.tensors
    )
    damaged.save(tmp_path / "damaged.safetensors")
    with pytest.raises(FormatError, match="description does not match"):
        read_trace(tmp_path / "damaged.safetensors")


def test_a_notebook_shows_the_sentences(translator: Translator) -> None:
    shown = translator.trace(LINES)._repr_html_()
    assert all(line in shown for line in LINES)
    assert "3 sentences" in shown


def test_sentences_and_translations_must_be_as_many(translator: Translator) -> None:
    with pytest.raises(DataError, match="one target for each source"):
        translator.trace(LINES, OTHERS[:1])
    with pytest.raises(UsageError, match="needs a source"):
        translator.trace([])
    with pytest.raises(UsageError, match="is of one source only"):
        translator.trace(LINES, steps=True)
    with pytest.raises(UsageError, match="tgt must be a list"):
        translator.trace(LINES, "Snow.")
    with pytest.raises(UsageError, match="tgt must be a string"):
        translator.trace(LINES[0], OTHERS)
