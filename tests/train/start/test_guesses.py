"""The decoder's first guesses: frequencies of pieces, and translations of what it reads."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heed.data.store import Store
from heed.model.build import build_model
from heed.model.config import AnyConfig, ModelConfig
from heed.model.one_stack.config import DecoderConfig
from heed.model.recurrent.config import RecurrentConfig
from heed.train.start import guesses
from heed.train.start.cooccurrence import cooccurrence_weights
from heed.train.start.guesses import frequency_bias, with_guesses

N_WORDS, FIRST, N = 12, 4, 40
EOS = 3


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Four words a source, low ones more often; the target has their translations, turned round."""
    random = np.random.default_rng(1)
    shares = 1 / (1 + np.arange(N_WORDS))
    with Store.create(tmp_path / "train.bin", "00" * 32, "00" * 32) as writer:
        for _ in range(400):
            src = random.choice(N_WORDS, 4, replace=False, p=shares / shares.sum()) + FIRST
            writer.add(src.tolist(), (src[::-1] + N_WORDS).tolist())
    return Store.open(tmp_path / "train.bin", "00" * 32, "00" * 32)


def fresh(**changes: Any) -> tuple[ModelConfig, dict[str, torch.Tensor]]:
    torch.manual_seed(1)
    sizes = {"src_vocab_size": N, "tgt_vocab_size": N, "d_model": 16, "n_heads": 2, "norm": "pre"}
    sizes |= {"n_encoder_layers": 2, "n_decoder_layers": 2, "dropout": 0.0, "eos_id": EOS}
    config = ModelConfig(**{**sizes, **changes})
    return config, {name: p.detach() for name, p in build_model(config).named_parameters()}


def target_shares(store: Store) -> torch.Tensor:
    counts = np.zeros(N)
    for index in range(len(store)):
        np.add.at(counts, [*store.tgt(index).tolist(), EOS], 1)
    return torch.from_numpy(counts / counts.sum())


@pytest.mark.parametrize("tied", ["three-way", "output", "none"])
def test_the_bias_gives_pieces_their_frequencies(store: Store, tied: str) -> None:
    config, weights = fresh(tied=tied, d_model=32)
    found = with_guesses(weights, config, store)
    table = {"three-way": "embed_src.tokens", "output": "embed_tgt.tokens", "none": "output"}[tied]
    said = (weights[f"{table}.weight"] @ found["decoder_norm.bias"]).softmax(0)
    shares = target_shares(store)
    assert (said - shares).abs().sum() < 0.4
    assert (1 / N - shares).abs().sum() > 1  # of a bias of zeros


def test_newton_finds_the_minimum() -> None:
    table = torch.randn(30, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    counts = np.arange(30) ** 2
    bias = frequency_bias(table, counts).requires_grad_()
    wanted = torch.from_numpy(counts / counts.sum())
    loss = -(wanted * (table @ bias).log_softmax(0)).sum()
    (loss + guesses.PENALTY * bias.square().sum() / 2).backward()
    assert bias.grad is not None
    assert bias.grad.abs().max() < 1e-6


def test_cross_attention_writes_the_way_it_reads(store: Store) -> None:
    config, weights = fresh(d_v=5)
    found = with_guesses(weights, config, store)
    for layer in range(2):
        name = f"decoder.{layer}.cross_attention.project"
        value = found[f"{name}_in.weight"][-10:]
        out, usual = found[f"{name}_out.weight"], weights[f"{name}_out.weight"]
        assert torch.equal(found[f"{name}_in.weight"], weights[f"{name}_in.weight"])
        cosine = torch.nn.functional.cosine_similarity(out.flatten(), value.T.flatten(), dim=0)
        assert cosine > 0.9999
        torch.testing.assert_close(out.norm(), usual.norm())
    changed = {name for name, weight in found.items() if weight is not weights[name]}
    outs = {f"decoder.{layer}.cross_attention.project_out.weight" for layer in range(2)}
    assert changed == {*outs, "decoder_norm.bias"}


def test_an_untrained_model_prefers_translations_of_its_source(store: Store) -> None:
    config, weights = fresh(d_model=32)
    model = build_model(config).eval()
    near = cooccurrence_weights(weights, config, store, seed=1)
    shares = []
    for begins_with in (near, with_guesses(near, config, store)):
        model.load_state_dict(begins_with, strict=False)
        src = torch.tensor([[*store.src(index), EOS] for index in range(100)])
        with torch.no_grad():
            states = model(src, torch.full((100, 1), config.bos_id))[:, 0]
            probabilities = model.logits(states).softmax(-1)
        translations = src[:, :4] + N_WORDS
        shares.append(float(probabilities.gather(1, translations).sum(1).mean()))
    assert shares[1] > 2 * shares[0]


def test_what_a_model_does_not_have_stays(store: Store) -> None:
    config, weights = fresh(norm="post", output_projection=False)
    found = with_guesses(weights, config, store)
    assert all(weight is weights[name] for name, weight in found.items())
    others: list[AnyConfig] = [
        DecoderConfig(src_vocab_size=N, tgt_vocab_size=N, d_model=16, n_heads=2, norm="pre"),
        RecurrentConfig(src_vocab_size=N, tgt_vocab_size=N, d_model=16),
    ]
    for other in others:
        weights = {name: p.detach() for name, p in build_model(other).named_parameters()}
        found = with_guesses(weights, other, store)
        assert all(weight is weights[name] for name, weight in found.items())


def test_of_a_large_corpus_some_pairs_are_counted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, _ = fresh()
    every = guesses._target_counts(store, config)
    assert every[EOS] == 400
    assert every.sum() == 400 * 5
    monkeypatch.setattr(guesses, "MOST_PAIRS", 150)
    some = guesses._target_counts(store, config)
    assert some[EOS] == 134
    assert some.sum() == 134 * 5
