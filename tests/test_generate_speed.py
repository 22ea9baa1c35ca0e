"""benchmarks/generate_speed.py and its systems: equal weights, equal work, the table."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

Scripts = dict[str, ModuleType]


@pytest.fixture
def folder(scripts: Scripts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny model as the benchmark writes it."""
    tiny = {"vocab_size": 60, "d_model": 32, "n_heads": 2, "d_ff": 48, "n_layers": 2}
    monkeypatch.setitem(scripts["generators"].SIZES, "tiny", tiny)
    scripts["generators"].make(tmp_path, "tiny")
    return tmp_path


def test_heed_and_gpt_neox_agree_at_equal_weights(
    scripts: Scripts, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claim 124: a decoder-only model on the engine beside another implementation."""
    script = scripts["generate_speed"]
    assert script.require_equal(folder) < script.ATOL
    translators, generators = scripts["translators"], scripts["generators"]
    weights = translators.read_weights(folder)
    wrong = generators.neox_weights(translators.read_config(folder), weights)
    wrong["gpt_neox.layers.1.attention.query_key_value.weight"][0] = 0.0
    monkeypatch.setattr(generators, "neox_weights", lambda *_: wrong)
    with pytest.raises(SystemExit, match=r"heed's log-probs must be within 0.0001 of Hugging"):
        script.require_equal(folder)


@pytest.mark.parametrize("is_quantized", [False, True])
def test_every_row_gets_as_many_tokens_and_does_not_depend_on_others(
    scripts: Scripts, folder: Path, is_quantized: bool
) -> None:
    generators = scripts["generators"]
    generate = generators.open_heed(folder, 1, is_quantized=is_quantized)
    prompts = np.random.default_rng(1).integers(4, 60, (3, 6))
    prompts[:, 0] = 2
    found = generate(prompts)
    assert [len(ids) for ids in found] == [generators.N_NEW] * 3
    assert found == [generate(prompt[None])[0] for prompt in prompts]


def test_the_table_has_ratios_to_each_peer(scripts: Scripts) -> None:
    rates = {"heed int8": [300.0], "llama.cpp int8": [100.0], "Hugging Face float32": [50.0]}
    results = {
        "rates": {"1x16": rates},
        "memory_mb": dict.fromkeys(rates, 20.0),
        "same_share": {},
    }
    assert scripts["generate_speed"].report(results).splitlines() == [
        "| tokens/s, batch x prompt | 1x16 | memory, MB | same tokens |",
        "|---|--:|--:|--:|",
        "| heed int8 | 300 | 20 |  |",
        "| llama.cpp int8 | 100 | 20 |  |",
        "| Hugging Face float32 | 50 | 20 |  |",
        "| heed int8 / llama.cpp int8 | 3.00 | | |",
        "| Hugging Face float32 / llama.cpp int8 | 0.50 | | |",
        "| heed int8 / Hugging Face float32 | 6.00 | | |",
    ]
